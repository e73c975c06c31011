//! The ops that graphs record, by name: the rows of the op table, and the ops with parameters.
//!
//! `mutation.rs` compares the list with the rules that run; `docs/OPS.md` is generated from it.

use swath::testing::ROWS;

/// The family of an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A row of the op table.
    Unary,
    /// A row of the op table.
    Binary,
    /// A row of the op table.
    Ternary,
    /// A reduction over axes.
    Reduction,
    /// An op that replaces a composite of simpler ops by one pass over memory.
    Fused,
    /// Products, selection, indexing, views, conversion.
    Parametric,
}

/// A recorded op.
pub struct RecordedOp {
    /// The name under which it is recorded, which is the name of its method.
    pub name: &'static str,
    pub kind: Kind,
    /// Description of the result.
    pub formula: &'static str,
    /// The inputs that can have gradients (two for `cat`), each with its gradient in terms of `g`, that of
    /// the result.
    pub gradients: Vec<(&'static str, &'static str)>,
    /// True if gradients that will themselves be differentiated have a second rule.
    pub two_rules: bool,
}

/// Name, formula, and the inputs with their gradients.
type Entry = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

/// Reductions; `k` is the number of elements per result.
const REDUCTIONS: &[Entry] = &[
    ("sum", "Sum over axes; 0 of no elements.", &[("x", "g, repeated")]),
    ("mean", "Mean over axes; NaN of no elements.", &[("x", "g / k, repeated")]),
    ("prod", "Product over axes; 1 of no elements.", &[("x", "g times the product of the others")]),
    (
        "variance",
        "`Σ (x - mean)² / (k - ddof)` over axes.",
        &[("x", "2 g (x - mean) / (k - ddof)")],
    ),
    (
        "std",
        "Square root of the variance.",
        &[("x", "g (x - mean) / (y (k - ddof)); 0 where y is 0")],
    ),
    (
        "norm",
        "`(Σ |x|^p)^(1/p)` over axes; p = 0: elements other than 0, ±∞: an extreme magnitude.",
        &[("x", "g sign(x) (|x|/y)^(p-1); 0 for p = 0, p = ±∞: as max, min; 0 where x is 0")],
    ),
    ("logsumexp", "`log Σ e^x` over axes.", &[("x", "g e^(x - y); 0 where y is -∞")]),
    (
        "max",
        "Largest element over axes.",
        &[("x", "g where x equals the result, split among ties")],
    ),
    (
        "min",
        "Smallest element over axes.",
        &[("x", "g where x equals the result, split among ties")],
    ),
];

/// Fused ops with a second rule for gradients that will themselves be differentiated.
const FUSED_TWICE: &[Entry] = &[
    ("softmax", "`e^(x - max) / Σ e^(x - max)` along an axis.", &[("x", "y (g - Σ g y)")]),
    ("log_softmax", "`x - max - log Σ e^(x - max)` along an axis.", &[("x", "g - e^y Σ g")]),
    (
        "cross_entropy",
        "`log Σ e^x - (1 - ε) x[target] - ε mean(x)` of each row, with label smoothing ε; 0 where \
         ignored.",
        &[("x", "g (softmax(x) - (1 - ε) onehot(target) - ε/n); 0 where ignored")],
    ),
    (
        "layer_norm",
        "`z weight + bias` with z = (x - mean) / √(variance + ε) over the last axis.",
        &[
            ("x", "(h - mean(h) - z mean(h z)) / √(variance + ε) with h = g weight"),
            ("weight", "g z, summed over rows"),
            ("bias", "g, summed over rows"),
        ],
    ),
    (
        "rms_norm",
        "`z weight` with z = x / √(mean(x²) + ε) over the last axis.",
        &[
            ("x", "(h - z mean(h z)) / √(mean(x²) + ε) with h = g weight"),
            ("weight", "g z, summed over rows"),
        ],
    ),
    (
        "batch_norm",
        "`z weight + bias` with z = (x - mean) / √(variance + ε) over all axes but that of channels: \
         `batch_norm_training`. With a given mean and variance, `batch_norm`, it is recorded as a `mul_add`.",
        &[
            ("x", "(h - mean(h) - z mean(h z)) / √(variance + ε) with h = g weight"),
            ("weight", "g z, summed over all but channels"),
            ("bias", "g, summed over all but channels"),
        ],
    ),
    (
        "sincos",
        "sin(x) and cos(x).",
        &[("x", "g cos(x) of the sine, -g sin(x) of the cosine; both added up")],
    ),
    (
        "bias_activation",
        "`f(x + bias)` with f one of relu, gelu, gelu_tanh, silu, sigmoid, tanh.",
        &[("x", "g f′(x + bias)"), ("bias", "the same, summed over rows")],
    ),
    (
        "avg_pool",
        "Mean of each window: `avg_pool1d` to `avg_pool3d`.",
        &[("x", "g divided as in the mean, added up over windows")],
    ),
    (
        "scaled_dot_product_attention",
        "`softmax(scale q·kᵀ + mask)·v`; P are the weights.",
        &[
            ("q", "scale S·k with S = P (g·vᵀ - the row sums of g y)"),
            ("k", "scale Sᵀ·q"),
            ("v", "Pᵀ·g"),
        ],
    ),
];

/// Fused ops with one rule.
const FUSED_ONCE: &[Entry] = &[
    (
        "max_pool",
        "Largest pixel of each window: `max_pool1d` to `max_pool3d`.",
        &[("x", "g added up at the positions of the largest pixels")],
    ),
    (
        "conv",
        "Products of filters with the windows of images, and the bias: `conv1d`, `conv2d`, `conv3d`.",
        &[
            ("x", "`conv_transpose` of g"),
            ("weight", "`conv_weight_grad` of x and g"),
            ("bias", "g, summed over images and pixels"),
        ],
    ),
    (
        "conv_transpose",
        "Every pixel times a filter, added up where they overlap: `conv_transpose1d` to `conv_transpose3d`.",
        &[("x", "`conv` of g"), ("weight", "`conv_weight_grad` of g and x")],
    ),
    (
        "conv_weight_grad",
        "Products of the windows of images with a gradient: that of the filters of `conv`.",
        &[
            ("x", "`conv_transpose` of the gradient with g as filters"),
            ("gradient", "`conv` of x with g as filters"),
        ],
    ),
    (
        "linear",
        "`x·weightᵀ + bias`; `linear_activation` is recorded as it and the function after it.",
        &[("x", "g·weight"), ("weight", "gᵀ·x"), ("bias", "g, summed over rows")],
    ),
    (
        "dropout",
        "x / (1 - p) where a counter-based generator says so, else 0 · x.",
        &[("x", "g / (1 - p) at the same places, else 0")],
    ),
];

/// Products, selection, indexing, views.
const PARAMETRIC: &[Entry] = &[
    ("matmul", "`A·B`, leading axes broadcast.", &[("a", "g·Bᵀ"), ("b", "Aᵀ·g")]),
    ("outer", "Products of every a and every b, of vectors.", &[("a", "g·b"), ("b", "a·g")]),
    (
        "einsum",
        "Products of two operands, summed over axes that both have: the steps of `einsum`, and `tensordot`.",
        &[
            ("a", "the same of g and b, with the axes of a"),
            ("b", "the same of g and a, with the axes of b"),
        ],
    ),
    (
        "logaddexp",
        "`ln(e^a + e^b)`, without overflow.",
        &[("a", "g σ(a - b)"), ("b", "g σ(b - a)")],
    ),
    (
        "logaddexp2",
        "`log2(2^a + 2^b)`, without overflow.",
        &[("a", "g σ((a - b) ln 2)"), ("b", "g σ((b - a) ln 2)")],
    ),
    ("erfinv", "Inverse of the error function.", &[("x", "g √π/2 e^(y²)")]),
    ("lgamma", "`ln |Γ(x)|`.", &[("x", "g digamma(x)")]),
    ("digamma", "Derivative of `lgamma`.", &[("x", "g polygamma(1, x)")]),
    ("polygamma", "Derivative of order n of `digamma`.", &[("x", "g polygamma(n + 1, x)")]),
    ("i0", "Modified Bessel function of order 0.", &[("x", "g i1(x)")]),
    ("i0e", "`e^-|x| i0(x)`.", &[("x", "g (i1e(x) - sign(x) y)")]),
    ("i1", "Modified Bessel function of order 1.", &[("x", "g (i0(x) - y/x)")]),
    ("i1e", "`e^-|x| i1(x)`.", &[("x", "g ((i0e(x) + I₂(x) e^-|x|)/2 - sign(x) y)")]),
    ("sinc", "`sin πx / πx`; 1 at 0.", &[("x", "g (cos πx - y) / x")]),
    ("frexp", "Mantissa and exponent, `m 2^e`.", &[("x", "g / 2^e, of the mantissa")]),
    ("ldexp", "`x 2^e`, rounded once.", &[("x", "g 2^e"), ("e", "g y ln 2")]),
    (
        "copysign",
        "The magnitude of a with the sign of b, whose gradient is 0.",
        &[("a", "±g by the signs of a and y, 0 where a is 0")],
    ),
    ("logit", "`ln(x / (1 - x))`, of x clamped by `eps`.", &[("x", "g / (x (1 - x))")]),
    (
        "where_cond",
        "a where the mask is not 0, else b.",
        &[("a", "g where chosen, else 0"), ("b", "g where chosen, else 0")],
    ),
    (
        "cumsum",
        "Sums of the elements up to each, along an axis.",
        &[("x", "g added up from the other end")],
    ),
    (
        "cumprod",
        "Products of the elements up to each, along an axis.",
        &[("x", "the product before each, times s: sᵢ = gᵢ + xᵢ₊₁ sᵢ₊₁")],
    ),
    (
        "cummax",
        "Largest element up to each, along an axis, and its index.",
        &[("x", "g added up at the indices")],
    ),
    (
        "cummin",
        "Smallest element up to each, along an axis, and its index.",
        &[("x", "g added up at the indices")],
    ),
    (
        "sort",
        "Elements along an axis in order, and their indices; `argsort` the indices alone.",
        &[("x", "g at the places of the elements")],
    ),
    (
        "topk",
        "The largest elements along an axis in order, and their indices.",
        &[("x", "g at the places of the elements, else 0")],
    ),
    (
        "bottomk",
        "The smallest elements along an axis in order, and their indices.",
        &[("x", "g at the places of the elements, else 0")],
    ),
    ("dot", "`Σ a b` of two vectors.", &[("a", "g b"), ("b", "g a")]),
    (
        "adaptive_avg_pool",
        "Means of a given number of windows along an axis: `adaptive_avg_pool1d`, `adaptive_avg_pool2d`; one \
         window is recorded as a `mean`.",
        &[("x", "g divided as in the mean, added up over windows")],
    ),
    ("gather", "Elements of x at indices along an axis.", &[("x", "g added up at the indices")]),
    ("index_select", "Parts of an axis, by their numbers.", &[("x", "g added up at the numbers")]),
    (
        "scatter_add",
        "x with `source` added at indices along an axis; also `index_add`.",
        &[("x", "g"), ("source", "g at the indices")],
    ),
    (
        "cat",
        "Tensors one after the other along an axis.",
        &[("first", "its part of g"), ("second", "its part of g")],
    ),
    (
        "scatter",
        "x with elements at indices along an axis replaced by those of `source`, of several the last.",
        &[
            ("x", "g, 0 where replaced"),
            ("source", "g at the indices, 0 where another one remains"),
        ],
    ),
    (
        "slice_assign",
        "x with a slice replaced by `source`.",
        &[("x", "g, 0 in the slice"), ("source", "the slice of g")],
    ),
    (
        "pad",
        "Elements added to the ends of axes, or removed.",
        &[("x", "g added up at the elements that were repeated, 0 where removed")],
    ),
    ("roll", "Elements moved along axes, from one end to the other.", &[("x", "g moved back")]),
    (
        "scatter_reduce",
        "x with elements at indices along an axis reduced with those of `source` to the largest or smallest; also \
         `index_reduce`. Sums, means and products are made of `scatter_add`, `scatter`, `gather`, `mul`, `where_cond`.",
        &[
            ("x", "g where x equals the result, split among ties"),
            ("source", "g at the indices where it equals the result, split among ties"),
        ],
    ),
    (
        "reshape",
        "The same elements in another shape; also `flatten`.",
        &[("x", "g in the shape of x")],
    ),
    ("squeeze", "Without an axis of extent 1.", &[("x", "g in the shape of x")]),
    ("unsqueeze", "With an axis of extent 1.", &[("x", "g in the shape of x")]),
    ("transpose", "Axes reordered; also `t`.", &[("x", "g with its axes put back")]),
    ("permute", "Axes reordered; also `swap_axes`.", &[("x", "g with its axes put back")]),
    ("diagonal", "Equal indices of two axes.", &[("x", "g on the diagonal, else 0")]),
    ("narrow", "A range of an axis.", &[("x", "g at those places, else 0")]),
    ("slice", "Ranges with steps, and indices.", &[("x", "g at those places, else 0")]),
    ("flip", "An axis in reverse order.", &[("x", "g in reverse order")]),
    (
        "unfold",
        "Windows of an axis, as a new last axis.",
        &[("x", "g added up where windows overlap, 0 between them")],
    ),
    ("broadcast_to", "Axes of extent 1 repeated.", &[("x", "g, summed over what was repeated")]),
    ("expand", "As `broadcast_to`.", &[("x", "g, summed over what was repeated")]),
    ("sum_to", "Summed over what `broadcast_to` would repeat.", &[("x", "g, repeated")]),
    ("contiguous", "The same elements without gaps.", &[("x", "g")]),
    (
        "fft",
        "`s Σ x[j] e^(-2πi jk/n)` of complex numbers, along axes.",
        &[("x", "`ifft` of g with the same s")],
    ),
    (
        "ifft",
        "`s Σ x[k] e^(2πi jk/n)` of complex numbers, along axes.",
        &[("x", "`fft` of g with the same s")],
    ),
    (
        "rfft",
        "The first n/2 + 1 numbers of `fft` of real ones.",
        &[("x", "`irfft` of g with the same s, with half of those that stand for two of n")],
    ),
    (
        "irfft",
        "Real numbers by `ifft` of n/2 + 1, completed by conjugates.",
        &[("x", "`rfft` of g with the same s, doubled where a number stands for two of n")],
    ),
    ("to_dtype", "Converted to another dtype.", &[("x", "g, converted back")]),
];

/// Every op that the engine records.
pub fn recorded_ops() -> Vec<RecordedOp> {
    let rows = ROWS.iter().zip([Kind::Unary, Kind::Binary, Kind::Ternary]);
    let rows = rows.flat_map(|(rows, kind)| {
        rows.iter().map(move |row| {
            let inputs: &[&str] = if row.rules.len() == 1 { &["x"] } else { &["a", "b", "c"] };
            let texts = row.rules.iter().map(|rule| rule.text);
            let gradients = inputs.iter().copied().zip(texts).collect();
            RecordedOp { name: row.name, kind, formula: row.doc, gradients, two_rules: false }
        })
    });
    let listed = [
        (Kind::Reduction, false, REDUCTIONS),
        (Kind::Fused, true, FUSED_TWICE),
        (Kind::Fused, false, FUSED_ONCE),
        (Kind::Parametric, false, PARAMETRIC),
    ];
    let listed = listed.into_iter().flat_map(|(kind, two_rules, entries)| {
        entries.iter().map(move |&(name, formula, gradients)| {
            let gradients = gradients.to_vec();
            RecordedOp { name, kind, formula, gradients, two_rules }
        })
    });
    rows.chain(listed).collect()
}
