//! The windows that a convolution sees.

/// Windows of images of `[height, width]`: along either axis, window o has the elements
/// `o · stride + k · dilation - padding` for k in `0..kernel`, which are 0 outside the image.
///
/// The fields are PyTorch's parameters of `unfold` and `fold`, rows before columns.
///
/// ```
/// use swath::ops::Window;
/// let window = Window { stride: [2, 1], padding: [1, 0], dilation: [1, 2], ..Window::new([3, 3]) };
/// assert_eq!(window.output([8, 9]), Some([4, 5]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    /// Rows and columns of a window; not 0.
    pub kernel: [usize; 2],
    /// From a window to the next, down and across; not 0.
    pub stride: [usize; 2],
    /// Zeros beyond either edge, above and below, left and right.
    pub padding: [usize; 2],
    /// From a row of a window to the next, and from a column; 1: they are adjacent; not 0.
    pub dilation: [usize; 2],
}

impl Window {
    /// Windows at every place inside the image: strides and dilations 1, no padding.
    pub const fn new(kernel: [usize; 2]) -> Self {
        Window { kernel, stride: [1, 1], padding: [0, 0], dilation: [1, 1] }
    }

    /// Elements of a window; `None` if that overflows.
    pub(crate) fn numel(&self) -> Option<usize> {
        self.kernel[0].checked_mul(self.kernel[1])
    }

    /// Windows down and across an image of `[height, width]`; `None` if none fits, a kernel, stride or
    /// dilation is 0, or a size overflows.
    pub fn output(&self, image: [usize; 2]) -> Option<[usize; 2]> {
        let along = |axis: usize| {
            let (kernel, dilation) = (self.kernel[axis], self.dilation[axis]);
            if dilation == 0 {
                return None;
            }
            let padded = image[axis].checked_add(self.padding[axis].checked_mul(2)?)?;
            let extent = kernel.checked_sub(1)?.checked_mul(dilation)?.checked_add(1)?;
            let last = padded.checked_sub(extent)?;
            Some(last.checked_div(self.stride[axis])? + 1)
        };
        Some([along(0)?, along(1)?])
    }
}
