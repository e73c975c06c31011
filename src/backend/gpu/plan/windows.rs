//! Words that describe windows sliding over images. `shaders/windows.wgsl` reads them as `p.axes`:
//!
//! ```text
//! 0  extents of the images     6  number of windows     12  dilation
//! 3  taps of a window          9  stride                15  padding before the image
//! ```
//! Each entry has three words: depth, height, width.

use crate::error::Result;
use crate::ops::Geometry;
use crate::shape::Shape;

use super::word;

/// Returns the words of windows whose padding is not negative.
///
/// # Errors
/// [`Error::Overflow`](crate::Error::Overflow) if a position in a padded image does not fit a word.
pub fn axes_of(op: &'static str, shape: &Shape, geometry: &Geometry) -> Result<[u32; 18]> {
    let mut words = [0; 18];
    for at in 0..3 {
        let axis = geometry.axis(at);
        let padding = axis.padding[0].max(0) as usize;
        let all = [axis.image, axis.kernel, axis.windows, axis.stride, axis.dilation, padding];
        for (i, x) in all.into_iter().enumerate() {
            words[3 * i + at] = word(op, shape, x)?;
        }
        // Coordinates below 0 wrap, and must stay larger than every valid one.
        let reach = axis.windows * axis.stride + axis.kernel * axis.dilation;
        word(
            op,
            shape,
            reach.saturating_add(axis.image).saturating_add(padding).saturating_mul(2),
        )?;
    }
    Ok(words)
}
