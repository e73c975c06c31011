//! The sealing trait of [`Float`].

use super::{ElementTask, Entries, Float, FoldTask, Isa, Simd, Task, Token};

/// Seals [`Float`], and provides what generic code cannot express: every token has lanes of this
/// element type.
pub trait Sealed: Sized {
    /// The lowest bits of the number's representation.
    fn low_bits(self) -> usize;
    /// Runs a task on a level.
    ///
    /// # Safety
    /// The level is available on this machine.
    unsafe fn enter_on<T: ElementTask<Self>>(isa: Isa, task: T) -> T::Output
    where
        Self: Float;
    /// Runs a fold task on a level.
    ///
    /// # Safety
    /// The level is available on this machine.
    unsafe fn enter_fold_on<T: FoldTask<Self>>(isa: Isa, task: T) -> T::Output
    where
        Self: Float;
    /// [`Token::call`] for a task that is generic over the element type.
    fn call<S: Token, T: ElementTask<Self>>(simd: S, task: T) -> T::Output
    where
        Self: Float;
    /// [`Token::call`] for a fold task.
    fn call_fold<S: Token, T: FoldTask<Self>>(simd: S, task: T) -> T::Output
    where
        Self: Float;
}

macro_rules! impl_sealed {
    ($($t:ident)*) => {$(
        const _: () = {
            struct OnSimd<T>(T);
            impl<T: ElementTask<$t>> Task for OnSimd<T> {
                const ALIGNS_FRAME: bool = T::ALIGNS_FRAME;
                type Home = T::Home;
                type Output = T::Output;
                #[inline(always)]
                fn run<S: Simd>(self, simd: S) -> T::Output {
                    self.0.run::<S>(simd)
                }
            }
            struct FoldOnSimd<T>(T);
            impl<T: FoldTask<$t>> Task for FoldOnSimd<T> {
                type Home = T::Home;
                type Output = T::Output;
                #[inline(always)]
                fn run<S: Simd>(self, simd: S) -> T::Output {
                    self.0.run::<S>(simd)
                }
            }
            impl Sealed for $t {
                #[inline(always)]
                fn low_bits(self) -> usize {
                    self.to_bits() as usize
                }
                #[inline(always)]
                unsafe fn enter_fold_on<T: FoldTask<Self>>(isa: Isa, task: T) -> T::Output {
                    // SAFETY: as the caller promises.
                    unsafe { Entries::<FoldOnSimd<T>>::TABLE[isa as usize](FoldOnSimd(task)) }
                }
                #[inline(always)]
                unsafe fn enter_on<T: ElementTask<Self>>(isa: Isa, task: T) -> T::Output {
                    // SAFETY: as the caller promises.
                    unsafe { Entries::<OnSimd<T>>::TABLE[isa as usize](OnSimd(task)) }
                }
                #[inline(always)]
                fn call<S: Token, T: ElementTask<Self>>(simd: S, task: T) -> T::Output {
                    simd.call(OnSimd(task))
                }
                #[inline(always)]
                fn call_fold<S: Token, T: FoldTask<Self>>(simd: S, task: T) -> T::Output {
                    simd.call(FoldOnSimd(task))
                }
            }
        };
    )*};
}
impl_sealed!(f32 f64);
