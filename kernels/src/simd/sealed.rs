//! What closes [`Float`](super::Float).

use crate::copy::Tiles;
use crate::dispatch::{ElementTask, FoldTask, Task, run};

/// Closes [`super::Float`], and carries what code generic over the element type cannot say
/// otherwise: every token has lanes of it.
pub trait Sealed: Sized {
    /// The lowest bits of the number's representation.
    fn low_bits(self) -> usize;
    /// Runs the task on the chosen level.
    fn enter<T: ElementTask<Self>>(task: T) -> T::Output
    where
        Self: super::Float;
    /// As [`Sealed::enter`].
    fn enter_fold<T: FoldTask<Self>>(task: T) -> T::Output
    where
        Self: super::Float;
    /// [`super::Token::call`] for a task that is generic over the element type.
    fn call<S: super::Token, T: ElementTask<Self>>(simd: S, task: T) -> T::Output
    where
        Self: super::Float;
    /// [`Sealed::enter`] for transposing: not generic, so that it is compiled with this crate and not
    /// again in each that uses it.
    fn transpose(task: Tiles<'_, Self>);
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
                fn run<S: super::Simd>(self, simd: S) -> T::Output {
                    self.0.run::<S>(simd)
                }
            }
            struct FoldOnSimd<T>(T);
            impl<T: FoldTask<$t>> Task for FoldOnSimd<T> {
                type Home = T::Home;
                type Output = T::Output;
                #[inline(always)]
                fn run<S: super::Simd>(self, simd: S) -> T::Output {
                    self.0.run::<S>(simd)
                }
            }
            impl Sealed for $t {
                #[inline(always)]
                fn low_bits(self) -> usize {
                    self.to_bits() as usize
                }
                #[inline(always)]
                fn enter_fold<T: FoldTask<Self>>(task: T) -> T::Output {
                    run(FoldOnSimd(task))
                }
                #[inline(always)]
                fn enter<T: ElementTask<Self>>(task: T) -> T::Output {
                    run(OnSimd(task))
                }
                #[inline(always)]
                fn call<S: super::Token, T: ElementTask<Self>>(simd: S, task: T) -> T::Output {
                    simd.call(OnSimd(task))
                }
                fn transpose(task: Tiles<'_, Self>) {
                    Self::enter(task);
                }
            }
        };
    )*};
}
impl_sealed!(f32 f64);
