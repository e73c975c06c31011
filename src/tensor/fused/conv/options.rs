//! Options of convolutions.

use crate::options::{PerAxis, setters};

/// Padding of images with zeros. A number, or an array of one for each axis, converts into
/// [`Padding::Zeros`], an array of pairs into [`Padding::Uneven`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Padding<const N: usize> {
    /// No padding: windows lie inside the image.
    #[default]
    Valid,
    /// As many zeros as give `⌈extent / stride⌉` windows; an odd one is added at the end.
    Same,
    /// This number of zeros before and after the image along each axis.
    Zeros([usize; N]),
    /// These numbers of zeros before and after the image along each axis.
    Uneven([[usize; 2]; N]),
}

impl<const N: usize> From<usize> for Padding<N> {
    fn from(zeros: usize) -> Self {
        Padding::Zeros([zeros; N])
    }
}

impl<const N: usize> From<[usize; N]> for Padding<N> {
    fn from(zeros: [usize; N]) -> Self {
        Padding::Zeros(zeros)
    }
}

impl<const N: usize> From<[(usize, usize); N]> for Padding<N> {
    fn from(zeros: [(usize, usize); N]) -> Self {
        Padding::Uneven(zeros.map(<[usize; 2]>::from))
    }
}

/// Options of convolutions over images of N axes.
///
/// ```
/// use swath::{ConvOptions, Padding};
/// let halves = ConvOptions::<2>::new().stride(2).padding(1);
/// assert_eq!((halves.dilation, halves.groups), ([1, 1], 1));
/// let same = ConvOptions { stride: [2, 2], padding: Padding::Zeros([1, 1]), ..Default::default() };
/// assert_eq!(halves, same);
/// let causal = ConvOptions::<1>::new().padding([(2, 0)]);
/// assert_eq!(causal.padding, Padding::Uneven([[2, 0]]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConvOptions<const N: usize> {
    /// Distance between neighbouring windows in pixels.
    pub stride: [usize; N],
    /// Padding of the images.
    pub padding: Padding<N>,
    /// Distance between the pixels of a window; 1 if they are adjacent.
    pub dilation: [usize; N],
    /// Number of groups of channels: each group of outputs reads its own group of inputs.
    pub groups: usize,
}

impl<const N: usize> Default for ConvOptions<N> {
    fn default() -> Self {
        ConvOptions { stride: [1; N], padding: Padding::Valid, dilation: [1; N], groups: 1 }
    }
}

/// Options of transposed convolutions over images of N axes.
///
/// ```
/// use swath::ConvTransposeOptions;
/// let doubled = ConvTransposeOptions::<2>::new().stride(2).padding([0, 1]);
/// assert_eq!((doubled.stride, doubled.padding), ([2, 2], [0, 1]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConvTransposeOptions<const N: usize> {
    /// Pixels of the result from a pixel of the input to the next.
    pub stride: [usize; N],
    /// Pixels left out at either end of the result.
    pub padding: [usize; N],
    /// Pixels more at the end of the result; less than the stride or the dilation.
    pub output_padding: [usize; N],
    /// Distance between the pixels of a window; 1 if they are adjacent.
    pub dilation: [usize; N],
    /// Number of groups of channels: each group of outputs reads its own group of inputs.
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

setters! {
    [const N: usize] ConvOptions<N> {
        @new;
        stride: impl PerAxis<N>, per_axis;
        padding: impl Into<Padding<N>>, into;
        dilation: impl PerAxis<N>, per_axis;
        groups: usize;
    }
    [const N: usize] ConvTransposeOptions<N> {
        @new;
        stride: impl PerAxis<N>, per_axis;
        padding: impl PerAxis<N>, per_axis;
        output_padding: impl PerAxis<N>, per_axis;
        dilation: impl PerAxis<N>, per_axis;
        groups: usize;
    }
}
