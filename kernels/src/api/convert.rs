//! Conversions between element types.

use crate::convert::{self, Convert};

pub use crate::convert::nonzero;

/// `y[i] = x[i] as B`; see [`Convert`] for the types.
///
/// Floats to integers cut the fraction off and saturate, NaN gives 0; integers wrap; anything to a
/// float is rounded once, to nearest, ties to even.
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
