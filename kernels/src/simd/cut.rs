//! Floats to integers: the fraction is cut off, what is out of range saturates, NaN gives 0, as Rust's
//! `as` does it, of which compilers make one scalar instruction after the other.
//!
//! ```text
//! cut(x), where the largest integer is a float       v = min(max(x, MIN), MAX), with NaN for 0
//! cut(x), where it is not and END = MAX + 1 is       v = max(x, MIN) if that is below END, else MIN
//!                                                    MAX where it was not, 0 of NaN
//! ```
//!
//! Comparisons and choices become masks; what is left to convert is in range, which is one instruction
//! of vectors where the machine has it.

/// A float that can be converted to an integer `T`, without its fraction.
pub(crate) trait Cut<T>: Copy {
    fn cut(self) -> T;
}

macro_rules! cut {
    // Through an integer that holds all of the target's.
    (clamped: $($from:ident $to:ident $through:ident;)*) => {$(
        impl Cut<$to> for $from {
            #[inline(always)]
            fn cut(self) -> $to {
                const MIN: $from = $to::MIN as $from;
                const MAX: $from = $to::MAX as $from;
                let number = if self.is_nan() { 0.0 } else { self };
                let above = if number > MIN { number } else { MIN };
                let inside = if above < MAX { above } else { MAX };
                // SAFETY: it lies between the least and the largest integer, both of which are floats.
                unsafe { inside.to_int_unchecked::<$through>() as $to }
            }
        }
    )*};
    (beyond: $($from:ident $to:ident;)*) => {$(
        impl Cut<$to> for $from {
            #[inline(always)]
            fn cut(self) -> $to {
                const MIN: $from = $to::MIN as $from;
                // The largest integer rounds up to the power of two behind it.
                const END: $from = $to::MAX as $from;
                let above = if self > MIN { self } else { MIN };
                let fits = above < END;
                let inside = if fits { above } else { MIN };
                // SAFETY: it is the least integer, or above it and below the power of two.
                let integer = unsafe { inside.to_int_unchecked::<$to>() };
                let integer = if fits { integer } else { $to::MAX };
                if self.is_nan() { 0 } else { integer }
            }
        }
    )*};
}
cut!(clamped: f32 u8 i32; f64 u8 i32; f64 i32 i32; f64 u32 u32;);
cut!(beyond: f32 i32; f32 u32; f32 i64; f64 i64;);
