//! Saturating conversion of floats to integers: truncates, saturates out of range, NaN gives 0. The
//! result is that of Rust's `as`, which compilers turn into scalar instructions.
//!
//! ```text
//! the largest integer is a float:         v = min(max(x, MIN), MAX), with NaN replaced by 0
//! it is not, and END = MAX + 1 is one:    v = max(x, MIN) if that is below END, else MIN
//!                                         then MAX if it was not below, 0 for NaN
//! ```
//!
//! Comparisons and selections become masks; what is left to convert is in range, which is one
//! vector instruction on machines that have it.

/// A float that converts to an integer `T`, truncating and saturating.
pub(crate) trait ToInt<T>: Copy {
    fn to_int(self) -> T;
}

macro_rules! to_int {
    // Through an integer type that holds all values of the target.
    (clamped: $($from:ident $to:ident $through:ident;)*) => {$(
        impl ToInt<$to> for $from {
            #[inline(always)]
            fn to_int(self) -> $to {
                const MIN: $from = $to::MIN as $from;
                const MAX: $from = $to::MAX as $from;
                let number = if self.is_nan() { 0.0 } else { self };
                let above = if number > MIN { number } else { MIN };
                let inside = if above < MAX { above } else { MAX };
                // SAFETY: it is between the smallest and the largest integer, which are floats.
                unsafe { inside.to_int_unchecked::<$through>() as $to }
            }
        }
    )*};
    (beyond: $($from:ident $to:ident;)*) => {$(
        impl ToInt<$to> for $from {
            #[inline(always)]
            fn to_int(self) -> $to {
                const MIN: $from = $to::MIN as $from;
                // The largest integer rounds up to the next power of two.
                const END: $from = $to::MAX as $from;
                let above = if self > MIN { self } else { MIN };
                let fits = above < END;
                let inside = if fits { above } else { MIN };
                // SAFETY: it is at least the smallest integer and below the power of two.
                let integer = unsafe { inside.to_int_unchecked::<$to>() };
                let integer = if fits { integer } else { $to::MAX };
                if self.is_nan() { 0 } else { integer }
            }
        }
    )*};
}
to_int!(clamped: f32 u8 i32; f64 u8 i32; f64 i32 i32; f64 u32 u32;);
to_int!(clamped: f32 i8 i32; f32 i16 i32; f32 u16 i32; f64 i8 i32; f64 i16 i32; f64 u16 i32;);
to_int!(beyond: f32 i32; f32 u32; f32 i64; f64 i64; f32 u64; f64 u64;);
