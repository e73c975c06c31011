//! Conversions between element types.

use crate::convert::{self, Convert};

pub use crate::convert::nonzero;

/// Converts elements: `y[i] = x[i] as B`. See [`Convert`] for the types.
///
/// Floats to integers truncate and saturate, with NaN giving 0; integers to integers wrap;
/// conversions to a float round once, to nearest, ties to even.
///
/// ```
/// let mut y = [0u8; 4];
/// swath_kernels::convert(&[-1.0f32, 2.9, 300.0, f32::NAN], &mut y);
/// assert_eq!(y, [0, 2, 255, 0]);
/// ```
///
/// # Panics
/// If the lengths differ.
#[track_caller]
pub fn convert<A: Convert<B>, B>(x: &[A], y: &mut [B]) {
    convert::convert(x, y);
}
