//! The entry points of the engine: large functions that are generic over the backend, each called through
//! a hidden method of [`Backend`](crate::Backend).
//!
//! ```text
//! x.softmax(1)                    a thin method, compiled in the user's crate
//!   B::engine_softmax(…)          CpuBackend: a function that is not generic, compiled once, in this crate
//!     Tensor::softmax_body(…)     the implementation
//! ```
//!
//! A generic function is compiled in every crate that calls it. The CPU backend defines these methods
//! itself ([`engine_methods`]), so that their bodies are compiled in this crate and a user's program only
//! links them. Other backends inherit the defaults and are compiled where they are used, like any generic
//! code.

/// Passes the entry points to the macro `$expand`, with `$B` for the backend. An entry is a hidden method
/// and the function of `Tensor` that it calls; all return a `Result`.
macro_rules! engine {
    ($expand:ident, $B:ty) => {
        $expand! {
            engine_unary, unary_body:
                (op: UnaryOp, x: Input<'_, $B>) -> Tensor<$B>;
            engine_binary, binary_body:
                (op: BinaryOp, a: Input<'_, $B>, b: Input<'_, $B>) -> Tensor<$B>;
            engine_assign, assign_body:
                (op: BinaryOp, x: &mut Tensor<$B>, rhs: Input<'_, $B>) -> ();
            engine_ternary, ternary_body:
                (op: TernaryOp, a: &Tensor<$B>, b: Input<'_, $B>, c: Input<'_, $B>) -> Tensor<$B>;
            engine_logaddexp, logaddexp_body:
                (a: &Tensor<$B>, b: Input<'_, $B>, binary: bool) -> Tensor<$B>;
            engine_softplus_with, softplus_with_body:
                (x: &Tensor<$B>, beta: f64, threshold: f64) -> Tensor<$B>;
            engine_nan_to_num, nan_to_num_body:
                (x: &Tensor<$B>, nan: f64, posinf: Option<f64>, neginf: Option<f64>) -> Tensor<$B>;
            engine_isclose, isclose_body:
                (a: &Tensor<$B>, b: &Tensor<$B>, tolerances: [f64; 2], equal_nan: bool) -> Tensor<$B>;
            engine_compare, compare_body:
                (op: CompareOp, x: &Tensor<$B>, rhs: Input<'_, $B>) -> Tensor<$B>;
            engine_where, where_body:
                (mask: &Tensor<$B>, a: &Tensor<$B>, b: &Tensor<$B>) -> Tensor<$B>;
            engine_cast, cast_body:
                (x: &Tensor<$B>, dtype: DType) -> Tensor<$B>;
            engine_reduce, reduce_body:
                (x: &Tensor<$B>, reducer: Reducer<<$B as Backend>::Tensor>, axes: Option<&[usize]>,
                    keepdims: bool) -> Tensor<$B>;
            engine_logsumexp, logsumexp_body:
                (x: &Tensor<$B>, axes: Option<&[usize]>, keepdims: bool) -> Tensor<$B>;
            engine_sum_to, sum_to_body:
                (x: &Tensor<$B>, shape: Shape) -> Tensor<$B>;
            engine_scan, scan_body:
                (x: &Tensor<$B>, op: ScanOp, axis: Axis) -> Tensor<$B>;
            engine_arg_scan, arg_scan_body:
                (x: &Tensor<$B>, op: Extremum, axis: Axis) -> (Tensor<$B>, Tensor<$B>);

            engine_order, order_body:
                (x: &Tensor<$B>, op: OrderOp, axis: Axis) -> (Tensor<$B>, Tensor<$B>);
            engine_search_sorted, search_sorted_body:
                (x: &Tensor<$B>, sorted: &Tensor<$B>, right: bool) -> Tensor<$B>;
            engine_quantile, quantile_body:
                (x: &Tensor<$B>, op: &'static str, qs: &[f64], axis: Axis, method: QuantileMethod,
                    skips_nan: bool) -> Tensor<$B>;
            engine_unique, unique_body:
                (x: &Tensor<$B>, op: &'static str, axis: Option<Axis>, sorts: bool) -> Unique<$B>;
            engine_bincount, bincount_body:
                (x: &Tensor<$B>, weights: Option<&Tensor<$B>>, n: usize) -> Tensor<$B>;
            engine_histogram, histogram_body:
                (x: &Tensor<$B>, bins: usize, range: Range<f64>) -> Tensor<$B>;
            engine_multinomial, multinomial_body:
                (x: &Tensor<$B>, n: usize, distinct: bool, rng: &mut Rng) -> Tensor<$B>;

            engine_reshape, reshape_body:
                (x: &Tensor<$B>, shape: NewShape) -> Tensor<$B>;
            engine_permute, permute_body:
                (x: &Tensor<$B>, op: &'static str, axes: &[usize]) -> Tensor<$B>;
            engine_narrow, narrow_body:
                (x: &Tensor<$B>, axis: Axis, start: Position, len: usize) -> Tensor<$B>;
            engine_slice, slice_body:
                (x: &Tensor<$B>, items: &[SliceItem]) -> Tensor<$B>;
            engine_flip, flip_body:
                (x: &Tensor<$B>, axes: Axes) -> Tensor<$B>;
            engine_diagonal, diagonal_body:
                (x: &Tensor<$B>, axes: [Axis; 2]) -> Tensor<$B>;
            engine_unsqueeze, unsqueeze_body:
                (x: &Tensor<$B>, axes: Axes) -> Tensor<$B>;
            engine_squeeze, squeeze_body:
                (x: &Tensor<$B>, axes: Axes) -> Tensor<$B>;
            engine_expand, expand_body:
                (x: &Tensor<$B>, op: &'static str, shape: Shape) -> Tensor<$B>;
            engine_unfold, unfold_body:
                (x: &Tensor<$B>, axis: Axis, size: usize, step: usize) -> Tensor<$B>;
            engine_pad, pad_body:
                (x: &Tensor<$B>, pads: &[(isize, isize)], mode: PadMode) -> Tensor<$B>;
            engine_interpolate, interpolate_body:
                (x: &Tensor<$B>, size: ImageSize, mode: Interpolation) -> Tensor<$B>;
            engine_resize, resize_body:
                (x: &Tensor<$B>, op: &'static str, options: &Resize) -> Tensor<$B>;
            engine_contiguous, contiguous_body:
                (x: &Tensor<$B>) -> Tensor<$B>;

            engine_matmul, matmul_body:
                (a: &Tensor<$B>, b: &Tensor<$B>) -> Tensor<$B>;
            engine_outer, outer_body:
                (a: &Tensor<$B>, b: &Tensor<$B>) -> Tensor<$B>;
            engine_tensordot, tensordot_body:
                (a: &Tensor<$B>, b: &Tensor<$B>, axes: TensordotAxes) -> Tensor<$B>;
            engine_einsum, einsum_body:
                (equation: &str, operands: &[&Tensor<$B>]) -> Tensor<$B>;
            engine_gather, gather_body:
                (x: &Tensor<$B>, axis: Axis, index: &Tensor<$B>) -> Tensor<$B>;
            engine_scatter_add, scatter_add_body:
                (x: &Tensor<$B>, axis: Axis, index: &Tensor<$B>, source: &Tensor<$B>) -> Tensor<$B>;
            engine_index_select, index_select_body:
                (x: &Tensor<$B>, op: &'static str, axis: Axis, index: &Tensor<$B>) -> Tensor<$B>;
            engine_index_add, index_add_body:
                (x: &Tensor<$B>, axis: Axis, index: &Tensor<$B>, source: &Tensor<$B>) -> Tensor<$B>;
            engine_cat, cat_body:
                (tensors: &[&Tensor<$B>], axis: Axis) -> Tensor<$B>;
            engine_stack, stack_body:
                (tensors: &[&Tensor<$B>], axis: Axis) -> Tensor<$B>;
            engine_split, split_body:
                (x: &Tensor<$B>, sizes: SplitSizes, axis: Axis) -> Vec<Tensor<$B>>;
            engine_repeat, repeat_body:
                (x: &Tensor<$B>, op: &'static str, counts: Shape) -> Tensor<$B>;
            engine_roll, roll_body:
                (x: &Tensor<$B>, shifts: Shifts, axes: Axes) -> Tensor<$B>;
            engine_triangle, triangle_body:
                (x: &Tensor<$B>, op: &'static str, k: isize) -> Tensor<$B>;
            engine_diag, diag_body:
                (x: &Tensor<$B>, k: isize) -> Tensor<$B>;
            engine_scatter, scatter_body:
                (x: &Tensor<$B>, axis: Axis, index: &Tensor<$B>, source: &Tensor<$B>) -> Tensor<$B>;
            engine_slice_assign, slice_assign_body:
                (x: &Tensor<$B>, items: &[SliceItem], source: Input<'_, $B>) -> Tensor<$B>;
            engine_index, index_body:
                (x: &Tensor<$B>, indices: &[Option<&Tensor<$B>>]) -> Tensor<$B>;
            engine_index_put, index_put_body:
                (x: &Tensor<$B>, indices: &[Option<&Tensor<$B>>], source: &Tensor<$B>)
                    -> Tensor<$B>;
            engine_masked_select, masked_select_body:
                (x: &Tensor<$B>, mask: &Tensor<$B>) -> Tensor<$B>;
            engine_nonzero, nonzero_body:
                (x: &Tensor<$B>) -> Tensor<$B>;

            engine_softmax, softmax_body:
                (x: &Tensor<$B>, axis: Axis, log: bool) -> Tensor<$B>;
            engine_cross_entropy, cross_entropy_body:
                (x: &Tensor<$B>, targets: &Tensor<$B>, options: CrossEntropy<'_, $B>) -> Tensor<$B>;
            engine_nll, nll_body:
                (log_p: &Tensor<$B>, targets: &Tensor<$B>, options: CrossEntropy<'_, $B>) -> Tensor<$B>;
            engine_layer_norm, layer_norm_body:
                (x: &Tensor<$B>, weight: Option<&Tensor<$B>>, bias: Option<&Tensor<$B>>, eps: f64)
                    -> Tensor<$B>;
            engine_rms_norm, rms_norm_body:
                (x: &Tensor<$B>, weight: Option<&Tensor<$B>>, eps: f64) -> Tensor<$B>;
            engine_linear, linear_body:
                (x: &Tensor<$B>, weight: &Tensor<$B>, bias: Option<&Tensor<$B>>,
                    activation: Option<Activation>) -> Tensor<$B>;
            engine_bias_activation, bias_activation_body:
                (x: &Tensor<$B>, bias: &Tensor<$B>, activation: Activation) -> Tensor<$B>;
            engine_dropout, dropout_body:
                (x: &Tensor<$B>, mask: DropoutMask) -> Tensor<$B>;
            engine_sincos, sincos_body:
                (x: &Tensor<$B>) -> (Tensor<$B>, Tensor<$B>);
            engine_conv, conv_body:
                (op: &'static str, x: &Tensor<$B>, weight: &Tensor<$B>, bias: Option<&Tensor<$B>>,
                    geometry: Geometry, groups: usize, activation: Option<Activation>) -> Tensor<$B>;
            engine_conv_transpose, conv_transpose_body:
                (g: &Tensor<$B>, weight: &Tensor<$B>, geometry: Geometry, groups: usize)
                    -> Tensor<$B>;
            engine_conv_weight_grad, conv_weight_grad_body:
                (x: &Tensor<$B>, g: &Tensor<$B>, geometry: Geometry, groups: usize)
                    -> Tensor<$B>;
            engine_max_pool, max_pool_body:
                (x: &Tensor<$B>, geometry: Geometry, with_positions: bool)
                    -> (Tensor<$B>, Option<Tensor<$B>>);
            engine_avg_pool, avg_pool_body:
                (x: &Tensor<$B>, geometry: Geometry, count_include_pad: bool) -> Tensor<$B>;
            engine_adaptive_pool, adaptive_pool_body:
                (op: &'static str, x: &Tensor<$B>, size: &[usize], is_max: bool, with_positions: bool)
                    -> (Tensor<$B>, Option<Tensor<$B>>);
            engine_batch_norm, batch_norm_body:
                (x: &Tensor<$B>, statistics: [&Tensor<$B>; 2], parameters: [Option<&Tensor<$B>>; 2],
                    eps: f64) -> Tensor<$B>;
            engine_batch_norm_training, batch_norm_training_body:
                (x: &Tensor<$B>, parameters: [Option<&Tensor<$B>>; 2], eps: f64)
                    -> (Tensor<$B>, Tensor<$B>, Tensor<$B>);
            engine_group_norm, group_norm_body:
                (op: &'static str, x: &Tensor<$B>, groups: Option<usize>,
                    parameters: [Option<&Tensor<$B>>; 2], eps: f64) -> Tensor<$B>;
            engine_dot, dot_body:
                (a: &Tensor<$B>, b: &Tensor<$B>) -> Tensor<$B>;
            engine_attention, attention_body:
                (q: &Tensor<$B>, k: &Tensor<$B>, v: &Tensor<$B>, options: Attention<'_, $B>)
                    -> Tensor<$B>;

            engine_backward, backward_body:
                (root: &Tensor<$B>, upstream: Tensor<$B>, options: Backward) -> Gradients<$B>;
            engine_grad, grad_body:
                (y: &Tensor<$B>, xs: &[&Tensor<$B>], create_graph: bool) -> Vec<Tensor<$B>>;
            engine_step, step_body:
                (update: &dyn Update<$B>, slots: &mut Slots<$B>, model: &mut dyn Visit<$B>,
                    grads: &Gradients<$B>) -> ();
            engine_clip, clip_body:
                (leaves: &[Tensor<$B>], grads: &mut Gradients<$B>, options: ClipOptions) -> f64;
            engine_text, text_body:
                (x: &Tensor<$B>, style: TextStyle) -> String;
        }
    };
}
pub(crate) use engine;

/// Expands the entry points to methods of [`Backend`](crate::Backend): defaults in the trait, and the same
/// definitions, compiled once, in an implementation.
macro_rules! engine_methods {
    ($($method:ident, $body:ident:
        ($($arg:ident: $Arg:ty),* $(,)?) -> $Out:ty;)*) => {$(
        #[doc(hidden)]
        fn $method($($arg: $Arg),*) -> Result<$Out> {
            Tensor::<Self>::$body($($arg),*)
        }
    )*};
}
pub(crate) use engine_methods;

/// Types of the signatures that backends do not import otherwise.
pub(crate) mod names {
    pub(crate) use std::ops::Range;

    pub(crate) use crate::autodiff::{Backward, Gradients};
    pub(crate) use crate::layout::SliceItem;
    pub(crate) use crate::nn::Visit;
    pub(crate) use crate::ops::{Activation, DropoutMask, Geometry};
    pub(crate) use crate::optim::{ClipOptions, Slots, Update};
    pub(crate) use crate::rng::Rng;
    pub(crate) use crate::shape::{Axes, Axis, NewShape, Position};
    pub(crate) use crate::tensor::{
        Attention, CrossEntropy, ImageSize, Input, Interpolation, PadMode, QuantileMethod, Resize,
        Shifts, SplitSizes, Tensor, TensordotAxes, TextStyle, Unique,
    };
}
