//! Derivatives of `im2col` and `col2im`: each is the other's.

use crate::autodiff::graph::SharedRule;
use crate::autodiff::ops::one_input;
use crate::backend::Backend;
use crate::ops::Window;
use crate::tensor::Tensor;

/// Of images of this shape.
pub(crate) fn im2col_rule<B: Backend>(images: &[usize], window: Window) -> SharedRule<B> {
    let image = [images[2], images[3]];
    one_input(move |g: &Tensor<B>| g.col2im(image, window))
}

pub(crate) fn col2im_rule<B: Backend>(window: Window) -> SharedRule<B> {
    one_input(move |g: &Tensor<B>| g.im2col(window))
}
