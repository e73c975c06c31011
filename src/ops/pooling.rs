//! The windows of a pooling.

/// The windows of a pooling along depth, height and width. Images of fewer axes have extents of 1 in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pooling {
    /// Extents of a window.
    pub kernel: [usize; 3],
    /// Pixels from a window to the next.
    pub stride: [usize; 3],
    /// Pixels from a place in a window to the next.
    pub dilation: [usize; 3],
    /// Pixels before the image that windows reach.
    pub padding: [usize; 3],
    /// Number of windows. The last ones may reach beyond the image, and each has a pixel of it.
    pub windows: [usize; 3],
    /// True if means are taken over all places in a window, with zeros outside the image.
    pub count_include_pad: bool,
}
