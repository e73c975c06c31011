//! The sealing trait of [`Float`].

use super::{Entries, Float, Isa, Simd, Task, Token};

/// Seals [`Float`], and provides what generic code cannot express: every token has lanes of this
/// element type.
pub trait Sealed: Sized {
    /// The lowest bits of the number's representation.
    fn low_bits(self) -> usize;
    /// Runs a task on a level.
    ///
    /// # Safety
    /// The level is available on this machine.
    unsafe fn enter_on<T: Task<Self>>(isa: Isa, task: T) -> T::Output
    where
        Self: Float;
    /// [`Token::call`] for a task of this element type.
    fn call<S: Token, T: Task<Self>>(simd: S, task: T) -> T::Output
    where
        Self: Float;
}

/// A task of `f64` as one of `f32`, which every token has lanes of too.
struct OnF64<T>(T);

impl<T: Task<f64>> Task for OnF64<T> {
    const ALIGNS_FRAME: bool = T::ALIGNS_FRAME;
    type Home = T::Home;
    type Output = T::Output;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> T::Output {
        self.0.run::<S>(simd)
    }
}

macro_rules! impl_sealed {
    ($($t:ident $On:ty, |$task:ident| $on:expr;)*) => {$(
        impl Sealed for $t {
            #[inline(always)]
            fn low_bits(self) -> usize {
                self.to_bits() as usize
            }
            #[inline(always)]
            unsafe fn enter_on<T: Task<Self>>(isa: Isa, $task: T) -> T::Output {
                // SAFETY: as the caller promises.
                unsafe { Entries::<$On>::TABLE[isa as usize]($on) }
            }
            #[inline(always)]
            fn call<S: Token, T: Task<Self>>(simd: S, $task: T) -> T::Output {
                simd.call($on)
            }
        }
    )*};
}
impl_sealed! {
    f32 T, |task| task;
    f64 OnF64<T>, |task| OnF64(task);
}
