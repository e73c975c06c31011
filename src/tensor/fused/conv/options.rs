//! Options of convolutions.

/// Zeros around images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Padding<const N: usize> {
    /// None: windows lie inside the image.
    #[default]
    Valid,
    /// As many as make `⌈extent / stride⌉` windows; if their number is odd, one more at the end.
    Same,
    /// So many before and after, along each axis.
    Zeros([usize; N]),
}

/// Options of convolutions over images of N axes.
///
/// ```
/// use swath::{ConvOptions, Padding};
/// let halves = ConvOptions { stride: [2, 2], padding: Padding::Zeros([1, 1]), ..Default::default() };
/// assert_eq!((halves.dilation, halves.groups), ([1, 1], 1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConvOptions<const N: usize> {
    /// Pixels from a window to the next.
    pub stride: [usize; N],
    /// Zeros around images.
    pub padding: Padding<N>,
    /// Pixels from a place in a window to the next; 1: they are adjacent.
    pub dilation: [usize; N],
    /// Groups of channels: each group of outputs sees its group of inputs.
    pub groups: usize,
}

impl<const N: usize> Default for ConvOptions<N> {
    fn default() -> Self {
        ConvOptions { stride: [1; N], padding: Padding::Valid, dilation: [1; N], groups: 1 }
    }
}

/// Options of transposed convolutions over images of N axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConvTransposeOptions<const N: usize> {
    /// Pixels of the result from a pixel of the input to the next.
    pub stride: [usize; N],
    /// Pixels left out at either end of the result.
    pub padding: [usize; N],
    /// Pixels more at the end of the result; less than the stride or the dilation.
    pub output_padding: [usize; N],
    /// Pixels from a place in a window to the next; 1: they are adjacent.
    pub dilation: [usize; N],
    /// Groups of channels: each group of outputs sees its group of inputs.
    pub groups: usize,
}

impl<const N: usize> Default for ConvTransposeOptions<N> {
    fn default() -> Self {
        let (padding, output_padding) = ([0; N], [0; N]);
        ConvTransposeOptions {
            stride: [1; N],
            padding,
            output_padding,
            dilation: [1; N],
            groups: 1,
        }
    }
}
