//! The windows of a convolution, as data.

use super::{window_count, window_extent};

/// The windows of a convolution along depth, height and width, and the groups of its channels. Images of
/// fewer axes have an extent, a kernel, a stride and a dilation of 1 in front.
///
/// Window o has the pixels `o · stride + k · dilation - padding` for k in `0..kernel`, which are 0 outside the
/// image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Convolution {
    /// Distance between neighbouring windows in pixels; not 0.
    pub stride: [usize; 3],
    /// Distance between the pixels of a window; not 0.
    pub dilation: [usize; 3],
    /// Number of zeros before and after the image along each axis.
    pub padding: [[usize; 2]; 3],
    /// Number of groups of channels: each group of output channels reads its own group of input channels. Not 0.
    pub groups: usize,
}

impl Convolution {
    /// Number of windows of images of these extents; `None` if none fits along an axis, if a kernel, stride or
    /// dilation is 0, or on overflow.
    pub fn output(&self, image: [usize; 3], kernel: [usize; 3]) -> Option<[usize; 3]> {
        let mut output = [0; 3];
        for (axis, output) in output.iter_mut().enumerate() {
            let window = window_extent(kernel[axis], self.dilation[axis])?;
            *output = window_count(image[axis], self.padding[axis], window, self.stride[axis])?;
        }
        Some(output)
    }
}
