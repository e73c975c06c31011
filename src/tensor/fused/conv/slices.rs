//! Convolutions along a number of axes that is known at run time.

use super::{ConvOptions, ConvTransposeOptions, Padding};
use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::tensor::base::Tensor;

/// Options of convolutions along a number of axes that is known at run time. A slice has a number for each axis or one for
/// all; an empty one stands for the default.
///
/// ```
/// use swath::prelude::*;
/// use swath::ConvSlices;
/// let (x, w) = (tensor![[[1.0, 2.0, 4.0, 8.0]]], tensor![[[1.0, 1.0]]]);
/// let y = x.conv(&w, None, ConvSlices { stride: &[2], ..Default::default() })?;
/// assert_eq!(y.to_vec::<f32>()?, [3.0, 12.0]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ConvSlices<'a> {
    /// Distance between neighbouring windows, 1 by default.
    pub stride: &'a [usize],
    /// Zeros before and after the image along each axis, 0 by default; two numbers for each axis are those before the
    /// image, then those after it, as in ONNX.
    pub padding: &'a [usize],
    /// Pads as [`Padding::Same`] instead; not for `conv_transpose`.
    pub same: bool,
    /// Distance between the pixels of a window, 1 by default.
    pub dilation: &'a [usize],
    /// Pixels more at the end of the result, 0 by default; for `conv_transpose`.
    pub output_padding: &'a [usize],
    /// Number of groups of channels, 1 by default.
    pub groups: Option<usize>,
}

/// The number for each axis.
fn each<const N: usize>(op: &'static str, given: &[usize], default: usize) -> Result<[usize; N]> {
    match *given {
        [] => Ok([default; N]),
        [one] => Ok([one; N]),
        _ => given.try_into().map_err(|_| {
            let reason = format!("expected a number for each of {N} axes or one, got {given:?}");
            Error::InvalidArgument { op, reason }
        }),
    }
}

impl ConvSlices<'_> {
    /// Padding before the image, and after it.
    fn pads<const N: usize>(&self, op: &'static str) -> Result<[[usize; N]; 2]> {
        let (before, after) = match self.padding.len() == 2 * N {
            true => self.padding.split_at(N),
            false => (self.padding, self.padding),
        };
        Ok([each(op, before, 0)?, each(op, after, 0)?])
    }

    fn conv<const N: usize>(&self, op: &'static str) -> Result<ConvOptions<N>> {
        let [before, after] = self.pads::<N>(op)?;
        let uneven = std::array::from_fn(|axis| [before[axis], after[axis]]);
        let is_padded = self.padding.iter().any(|&pad| pad > 0);
        if !self.output_padding.is_empty() || self.same && is_padded {
            let reason = format!("expected no output_padding, and padding or same, got {self:?}");
            return Err(Error::InvalidArgument { op, reason });
        }
        let padding = if self.same { Padding::Same } else { Padding::Uneven(uneven) };
        let (stride, dilation) = (each(op, self.stride, 1)?, each(op, self.dilation, 1)?);
        Ok(ConvOptions { stride, padding, dilation, groups: self.groups.unwrap_or(1) })
    }

    fn conv_transpose<const N: usize>(&self, op: &'static str) -> Result<ConvTransposeOptions<N>> {
        let [padding, after] = self.pads(op)?;
        if padding != after || self.same {
            let reason = format!("expected equal padding at both ends, got {self:?}");
            return Err(Error::InvalidArgument { op, reason });
        }
        let (stride, dilation) = (each(op, self.stride, 1)?, each(op, self.dilation, 1)?);
        let (output_padding, groups) =
            (each(op, self.output_padding, 0)?, self.groups.unwrap_or(1));
        Ok(ConvTransposeOptions { stride, padding, output_padding, dilation, groups })
    }
}

macro_rules! by_axes {
    ($($(#[$doc:meta])* $method:ident $with_axes:ident($($none:expr)?);)*) => {
        /// # Convolutions along a number of axes that is known at run time
        impl<B: Backend> Tensor<B> {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// Those of these; [`Error::InvalidArgument`] for options that do not fit the axes.
                pub fn $method(
                    &self,
                    weight: &Tensor<B>,
                    bias: Option<&Tensor<B>>,
                    options: ConvSlices<'_>,
                ) -> Result<Self> {
                    let op = stringify!($method);
                    match weight.rank() {
                        3 => self.$with_axes::<1>(op, weight, bias, options.$method(op)? $(, $none)?),
                        4 => self.$with_axes::<2>(op, weight, bias, options.$method(op)? $(, $none)?),
                        5 => self.$with_axes::<3>(op, weight, bias, options.$method(op)? $(, $none)?),
                        _ => {
                            let reason = "expected filters with 3 to 5 axes: [out, in, …]";
                            Err(Error::InvalidShape { op, shape: *weight.shape(), reason })
                        }
                    }
                }
            )*
        }
    };
}

by_axes! {
    /// [`conv1d`](Tensor::conv1d) to [`conv3d`](Tensor::conv3d), by the axes of the filters; [`ConvSlices`] has an example.
    conv conv_axes(None);
    /// [`conv_transpose1d`](Tensor::conv_transpose1d) to [`conv_transpose3d`](Tensor::conv_transpose3d), by the axes of the
    /// filters.
    conv_transpose conv_transpose_axes();
}
