//! The sliding windows of a convolution.

/// Sliding windows of images `[height, width]`. Along each axis, window o has the elements
/// `o · stride + k · dilation - padding` for k in `0..kernel`; elements outside the image are 0.
///
/// The fields are the parameters of PyTorch's `unfold` and `fold`, rows before columns.
///
/// ```
/// use swath::ops::Window;
/// let window = Window { stride: [2, 1], padding: [1, 0], dilation: [1, 2], ..Window::new([3, 3]) };
/// assert_eq!(window.output([8, 9]), Some([4, 5]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    /// Rows and columns of a window, not 0.
    pub kernel: [usize; 2],
    /// Distance between windows, down and across, not 0.
    pub stride: [usize; 2],
    /// Rows of zeros above and below, and columns of zeros left and right.
    pub padding: [usize; 2],
    /// Distance between the rows and between the columns of a window, not 0.
    pub dilation: [usize; 2],
}

impl Window {
    /// Creates windows at every position inside the image: strides and dilations of 1, no padding.
    pub const fn new(kernel: [usize; 2]) -> Self {
        Window { kernel, stride: [1, 1], padding: [0, 0], dilation: [1, 1] }
    }

    /// Number of elements of a window; `None` on overflow.
    pub(crate) fn numel(&self) -> Option<usize> {
        self.kernel[0].checked_mul(self.kernel[1])
    }

    /// Number of windows down and across an image `[height, width]`; `None` if none fits, if a
    /// kernel, stride or dilation is 0, or on overflow.
    pub fn output(&self, image: [usize; 2]) -> Option<[usize; 2]> {
        let along = |axis: usize| {
            let window = window_extent(self.kernel[axis], self.dilation[axis])?;
            window_count(image[axis], [self.padding[axis]; 2], window, self.stride[axis])
        };
        Some([along(0)?, along(1)?])
    }
}

/// Number of pixels that a window spans; `None` if the kernel or the dilation is 0, or on overflow.
pub(crate) fn window_extent(kernel: usize, dilation: usize) -> Option<usize> {
    let dilation = Some(dilation).filter(|&dilation| dilation > 0)?;
    kernel.checked_sub(1)?.checked_mul(dilation)?.checked_add(1)
}

/// Number of windows of this extent along an axis; `None` if none fits, if the stride is 0, or on overflow.
pub(crate) fn window_count(
    extent: usize,
    [before, after]: [usize; 2],
    window: usize,
    stride: usize,
) -> Option<usize> {
    let padded = extent.checked_add(before)?.checked_add(after)?;
    Some(padded.checked_sub(window)?.checked_div(stride)? + 1)
}
