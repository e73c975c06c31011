//! The windows of a pooling, as data.

/// The windows of a pooling along depth, height and width. Images of fewer axes have extents of 1 in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pooling {
    /// Extents of a window.
    pub kernel: [usize; 3],
    /// Distance between neighbouring windows in pixels.
    pub stride: [usize; 3],
    /// Distance between the pixels of a window.
    pub dilation: [usize; 3],
    /// Number of padding pixels before and after the image.
    pub padding: [usize; 3],
    /// Number of windows. The last ones may reach beyond the padding; each contains a pixel of the image.
    pub windows: [usize; 3],
    /// True if padding counts in the divisor of a mean.
    pub count_include_pad: bool,
}
