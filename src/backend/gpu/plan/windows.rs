//! Words that describe windows sliding over images. `shaders/windows.wgsl` reads them.
//!
//! ```text
//! words   7   extents of the images      13  number of windows        19  dilation
//!         10  extents of a window        16  stride                   22  padding before the image
//! ```
//! Each entry has three words: depth, height, width.

use crate::error::Result;
use crate::shape::Shape;

use super::{Words, word};

/// Windows that slide over images.
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    /// Extents of the images.
    pub image: [usize; 3],
    /// Extents of a window.
    pub kernel: [usize; 3],
    /// Number of windows.
    pub windows: [usize; 3],
    /// Distance between windows.
    pub stride: [usize; 3],
    /// Distance between the pixels of a window.
    pub dilation: [usize; 3],
    /// Padding before the images.
    pub padding: [usize; 3],
}

impl Windows {
    /// Writes the words.
    ///
    /// # Errors
    /// [`Error::Overflow`](crate::Error::Overflow) if a position in a padded image does not fit a word.
    pub fn put(&self, op: &'static str, shape: &Shape, words: &mut Words) -> Result<()> {
        let Windows { image, kernel, windows, stride, dilation, padding } = *self;
        let all = [image, kernel, windows, stride, dilation, padding];
        for (at, &x) in all.iter().flatten().enumerate() {
            words[7 + at] = word(op, shape, x)?;
        }
        for axis in 0..3 {
            // Coordinates below 0 wrap, and must stay larger than every valid one.
            let reach = windows[axis].saturating_mul(stride[axis]);
            let reach = reach.saturating_add(kernel[axis].saturating_mul(dilation[axis]));
            let reach = reach.saturating_add(image[axis]).saturating_add(padding[axis]);
            word(op, shape, reach.saturating_mul(2))?;
        }
        Ok(())
    }
}
