//! Derivative of `dropout`.

use crate::autodiff::graph::SharedRule;
use crate::autodiff::ops::one_input;
use crate::backend::Backend;
use crate::ops::DropoutMask;
use crate::tensor::Tensor;

/// The same dropout of the gradient: its mask is made again.
pub(crate) fn dropout_rule<B: Backend>(mask: DropoutMask) -> SharedRule<B> {
    one_input(move |g: &Tensor<B>| g.dropout(mask))
}
