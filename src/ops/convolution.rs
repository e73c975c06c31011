//! How the windows of a convolution slide.

/// The windows of a convolution along depth, height and width, and the groups of its channels. Images of
/// fewer axes have an extent, a kernel, a stride and a dilation of 1 in front.
///
/// Window o has the pixels `o · stride + k · dilation - padding` for k in `0..kernel`, which are 0 outside the
/// image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Convolution {
    /// Pixels from a window to the next; not 0.
    pub stride: [usize; 3],
    /// Pixels from a place in a window to the next; not 0.
    pub dilation: [usize; 3],
    /// Zeros before the first and after the last pixel.
    pub padding: [[usize; 2]; 3],
    /// The channels of input and output are cut into as many groups; each group of outputs sees its group
    /// of inputs. Not 0.
    pub groups: usize,
}

impl Convolution {
    /// The number of windows of images of these extents; `None` if none fits along an axis, a kernel,
    /// stride or dilation is 0, or a size overflows.
    pub fn output(&self, image: [usize; 3], kernel: [usize; 3]) -> Option<[usize; 3]> {
        let mut output = [0; 3];
        for (axis, output) in output.iter_mut().enumerate() {
            let [before, after] = self.padding[axis];
            let padded = image[axis].checked_add(before)?.checked_add(after)?;
            let window = self.extent(axis, kernel)?;
            *output = padded.checked_sub(window)?.checked_div(self.stride[axis])? + 1;
        }
        Some(output)
    }

    /// Pixels that a window spans; `None` if a kernel or dilation is 0, or the size overflows.
    pub(crate) fn extent(&self, axis: usize, kernel: [usize; 3]) -> Option<usize> {
        let dilation = Some(self.dilation[axis]).filter(|&dilation| dilation > 0)?;
        kernel[axis].checked_sub(1)?.checked_mul(dilation)?.checked_add(1)
    }
}
