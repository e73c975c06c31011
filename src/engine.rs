//! The entry points of the engine: heavy functions that are generic over the backend, each behind a hidden
//! method of [`Backend`](crate::Backend).
//!
//! ```text
//! x.softmax(1)                      a thin method, compiled in the user's crate
//!   Tensor::normalised(…)           from the table below
//!     B::engine_softmax(…)          CpuBackend: a plain function, compiled once, in this crate
//!       Tensor::softmax_body(…)     the work
//! ```
//!
//! A generic function is compiled in every crate that calls it. The CPU backend writes these methods out
//! ([`engine_methods`]), so that what lies behind them is compiled here, and a user's program links it.
//! Other backends inherit them, and are compiled where they are used, as any generic code is.

/// Hands the entry points to the macro `$expand`, with `$B` for the backend: the hidden method, the
/// function of `Tensor` that calls it, and the one that does the work. All return a `Result`.
macro_rules! engine {
    ($expand:ident, $B:ty) => {
        $expand! {
            engine_unary, unary_input, unary_body:
                (op: UnaryOp, x: Input<'_, $B>) -> Tensor<$B>;
            engine_binary, binary_inputs, binary_body:
                (op: BinaryOp, a: Input<'_, $B>, b: Input<'_, $B>) -> Tensor<$B>;
            engine_ternary, ternary_inputs, ternary_body:
                (op: TernaryOp, a: &Tensor<$B>, b: Input<'_, $B>, c: Input<'_, $B>) -> Tensor<$B>;
            engine_compare, compare_input, compare_body:
                (op: CompareOp, x: &Tensor<$B>, rhs: Input<'_, $B>) -> Tensor<$B>;
            engine_where, chosen_where, where_body:
                (mask: &Tensor<$B>, a: &Tensor<$B>, b: &Tensor<$B>) -> Tensor<$B>;
            engine_cast, converted, cast_body:
                (x: &Tensor<$B>, dtype: DType) -> Tensor<$B>;
            engine_reduce, reduced, reduce_body:
                (x: &Tensor<$B>, op: ReduceOp, axes: Option<&[usize]>, keepdims: bool) -> Tensor<$B>;
            engine_sum_to, summed_to, sum_to_body:
                (x: &Tensor<$B>, shape: Shape) -> Tensor<$B>;
            engine_scan, scanned, scan_body:
                (x: &Tensor<$B>, op: ScanOp, axis: Axis) -> Tensor<$B>;

            engine_reshape, reshaped, reshape_body:
                (x: &Tensor<$B>, shape: Shape) -> Tensor<$B>;
            engine_permute, permuted, permute_body:
                (x: &Tensor<$B>, op: &'static str, axes: &[usize]) -> Tensor<$B>;
            engine_narrow, narrowed, narrow_body:
                (x: &Tensor<$B>, axis: Axis, start: usize, len: usize) -> Tensor<$B>;
            engine_slice, sliced, slice_body:
                (x: &Tensor<$B>, items: &[SliceItem]) -> Tensor<$B>;
            engine_flip, flipped, flip_body:
                (x: &Tensor<$B>, axis: Axis) -> Tensor<$B>;
            engine_diagonal, diagonal_of, diagonal_body:
                (x: &Tensor<$B>, axes: [Axis; 2]) -> Tensor<$B>;
            engine_unsqueeze, unsqueezed, unsqueeze_body:
                (x: &Tensor<$B>, axis: Axis) -> Tensor<$B>;
            engine_squeeze, squeezed, squeeze_body:
                (x: &Tensor<$B>, axis: Axis) -> Tensor<$B>;
            engine_expand, expanded, expand_body:
                (x: &Tensor<$B>, op: &'static str, shape: Shape) -> Tensor<$B>;
            engine_contiguous, without_gaps, contiguous_body:
                (x: &Tensor<$B>) -> Tensor<$B>;

            engine_matmul, matrix_product, matmul_body:
                (a: &Tensor<$B>, b: &Tensor<$B>) -> Tensor<$B>;
            engine_outer, outer_product, outer_body:
                (a: &Tensor<$B>, b: &Tensor<$B>) -> Tensor<$B>;
            engine_tensordot, contracted_over, tensordot_body:
                (a: &Tensor<$B>, b: &Tensor<$B>, axes: TensordotAxes) -> Tensor<$B>;
            engine_einsum, by_equation, einsum_body:
                (equation: &str, operands: &[&Tensor<$B>]) -> Tensor<$B>;
            engine_gather, gathered, gather_body:
                (x: &Tensor<$B>, axis: Axis, index: &Tensor<$B>) -> Tensor<$B>;
            engine_scatter_add, scattered, scatter_add_body:
                (x: &Tensor<$B>, axis: Axis, index: &Tensor<$B>, source: &Tensor<$B>) -> Tensor<$B>;
            engine_index_select, selected, index_select_body:
                (x: &Tensor<$B>, axis: Axis, index: &Tensor<$B>) -> Tensor<$B>;
            engine_index_add, added_at, index_add_body:
                (x: &Tensor<$B>, axis: Axis, index: &Tensor<$B>, source: &Tensor<$B>) -> Tensor<$B>;
            engine_cat, joined, cat_body:
                (tensors: &[&Tensor<$B>], axis: Axis) -> Tensor<$B>;

            engine_softmax, normalised, softmax_body:
                (x: &Tensor<$B>, axis: Axis, log: bool) -> Tensor<$B>;
            engine_cross_entropy, classified, cross_entropy_body:
                (x: &Tensor<$B>, targets: &Tensor<$B>, options: CrossEntropy) -> Tensor<$B>;
            engine_layer_norm, layer_normalised, layer_norm_body:
                (x: &Tensor<$B>, weight: Option<&Tensor<$B>>, bias: Option<&Tensor<$B>>, eps: f64)
                    -> Tensor<$B>;
            engine_rms_norm, rms_normalised, rms_norm_body:
                (x: &Tensor<$B>, weight: Option<&Tensor<$B>>, eps: f64) -> Tensor<$B>;
            engine_linear, linear_product, linear_body:
                (x: &Tensor<$B>, weight: &Tensor<$B>, bias: Option<&Tensor<$B>>,
                    activation: Option<Activation>) -> Tensor<$B>;
            engine_bias_activation, activated, bias_activation_body:
                (x: &Tensor<$B>, bias: &Tensor<$B>, activation: Activation) -> Tensor<$B>;
            engine_dropout, dropped_out, dropout_body:
                (x: &Tensor<$B>, mask: DropoutMask) -> Tensor<$B>;
            engine_sincos, sine_and_cosine, sincos_body:
                (x: &Tensor<$B>) -> (Tensor<$B>, Tensor<$B>);
            engine_im2col, window_columns, im2col_body:
                (x: &Tensor<$B>, window: Window) -> Tensor<$B>;
            engine_col2im, window_sums, col2im_body:
                (x: &Tensor<$B>, image: [usize; 2], window: Window) -> Tensor<$B>;
            engine_dot, inner_product, dot_body:
                (a: &Tensor<$B>, b: &Tensor<$B>) -> Tensor<$B>;
            engine_attention, attended, attention_body:
                (q: &Tensor<$B>, k: &Tensor<$B>, v: &Tensor<$B>, options: Attention<'_, $B>)
                    -> Tensor<$B>;

            engine_backward, gradients_from, backward_body:
                (root: &Tensor<$B>, upstream: Tensor<$B>, options: Backward) -> Gradients<$B>;
            engine_grad, gradients_of, grad_body:
                (y: &Tensor<$B>, xs: &[&Tensor<$B>], create_graph: bool) -> Vec<Tensor<$B>>;
            engine_step, stepped_by, step_body:
                (update: &dyn Update<$B>, slots: &mut Slots<$B>, model: &mut dyn Visit<$B>,
                    grads: &Gradients<$B>) -> ();
            engine_clip, clipped, clip_body:
                (leaves: &[Tensor<$B>], grads: &mut Gradients<$B>, max_norm: f64) -> f64;
            engine_text, as_text, text_body:
                (x: &Tensor<$B>, precision: Option<usize>) -> String;
        }
    };
}
pub(crate) use engine;

/// Methods of [`Backend`](crate::Backend): in the trait their defaults, in an implementation the same
/// again, compiled once.
macro_rules! engine_methods {
    ($($method:ident, $shell:ident, $body:ident:
        ($($arg:ident: $Arg:ty),* $(,)?) -> $Out:ty;)*) => {$(
        #[doc(hidden)]
        fn $method($($arg: $Arg),*) -> Result<$Out> {
            Tensor::<Self>::$body($($arg),*)
        }
    )*};
}
pub(crate) use engine_methods;

/// What the signatures name, for glob imports beside a use of [`engine`].
pub(crate) mod names {
    pub(crate) use crate::autodiff::{Backward, Gradients};
    pub(crate) use crate::dtype::DType;
    pub(crate) use crate::error::Result;
    pub(crate) use crate::layout::SliceItem;
    pub(crate) use crate::nn::Visit;
    pub(crate) use crate::ops::{
        Activation, BinaryOp, CompareOp, DropoutMask, ReduceOp, ScanOp, TernaryOp, UnaryOp, Window,
    };
    pub(crate) use crate::optim::{Slots, Update};
    pub(crate) use crate::shape::{Axis, Shape};
    pub(crate) use crate::tensor::{Attention, CrossEntropy, Input, Tensor, TensordotAxes};
}

use crate::backend::Backend;
use names::*;

macro_rules! engine_shells {
    ($($method:ident, $shell:ident, $body:ident:
        ($($arg:ident: $Arg:ty),* $(,)?) -> $Out:ty;)*) => {
        impl<B: Backend> Tensor<B> {$(
            #[inline]
            pub(crate) fn $shell($($arg: $Arg),*) -> Result<$Out> {
                B::$method($($arg),*)
            }
        )*}
    };
}
engine!(engine_shells, B);
