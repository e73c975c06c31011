//! The methods that are made of recorded ops, by name, for `docs/OPS.md` and the gradient checks.

/// A method without an op of its own, whose derivative is that of what it is made of.
pub struct Composed {
    pub name: &'static str,
    /// What it computes.
    pub formula: &'static str,
    /// The recorded ops that it is made of.
    pub ops: &'static str,
}

/// A row of the list below.
const fn composed(name: &'static str, formula: &'static str, ops: &'static str) -> Composed {
    Composed { name, formula, ops }
}

/// Methods made of recorded ops.
pub const COMPOSED: &[Composed] = &[
    composed(
        "stft",
        "Spectra of overlapping frames of a signal, multiplied by a window.",
        "`pad`, `unfold`, `mul`, `rfft`",
    ),
    composed(
        "istft",
        "The signal of such spectra, by least squares.",
        "`irfft`, `mul`, `pad`, `add`, `div`",
    ),
    composed("fftshift", "Negative frequencies before the others; also `ifftshift`.", "`roll`"),
    composed(
        "clamp_min",
        "`clamp` with one bound; also `clamp_max`.",
        "`clamp`; of integers `maximum`, `minimum`",
    ),
    composed("nan_to_num", "Other numbers for NaN and infinities.", "`where_cond`"),
    composed(
        "softplus_with",
        "`ln(1 + e^(beta x)) / beta`; x above a threshold.",
        "`mul`, `softplus`, `div`, `where_cond`",
    ),
    composed(
        "fmax",
        "Larger number of two, of a number and NaN the number; also `fmin`.",
        "`where_cond`",
    ),
    composed("float_power", "`pow` computed in and returned as f64.", "`to_dtype`, `pow`"),
    composed(
        "hardshrink",
        "x, 0 where `|x|` is at most lambda; `softshrink` moves the others towards 0.",
        "`sub`, `where_cond`",
    ),
    composed("hardsigmoid_with", "`alpha x + beta`, clamped to 0 … 1.", "`mul`, `add`, `clamp`"),
    composed(
        "nll",
        "`-x[target]` of each row, and `cross_entropy` with weights of classes or probabilities as \
                  targets.",
        "`log_softmax`, `gather`, `index_select`, `mul`, `where_cond`, `mean`, `sum`",
    ),
    composed(
        "im2col",
        "Windows of images as columns.",
        "`pad`, `narrow`, `unfold`, `slice`, `permute`, `reshape`",
    ),
    composed(
        "col2im",
        "Columns added up to images: the adjoint of `im2col`.",
        "the rules of those",
    ),
    composed("stack", "Tensors joined along a new axis.", "`unsqueeze`, `cat`"),
    composed("split", "An axis cut into parts: `split`, `chunk`, `unbind`.", "`narrow`, `squeeze`"),
    composed("repeat", "Axes repeated as a whole: `repeat`, `tile`.", "`reshape`, `broadcast_to`"),
    composed("movedim", "Axes moved to other places.", "`permute`"),
    composed("tril", "Matrices, 0 above or below a diagonal: `tril`, `triu`.", "`where_cond`"),
    composed(
        "diag",
        "A matrix of its diagonal, or the diagonal of matrices.",
        "`cat`, `reshape`, `pad`, or `narrow`, `diagonal`",
    ),
    composed(
        "meshgrid",
        "Vectors as the axes of a grid: `meshgrid`, `meshgrid_xy`.",
        "`reshape`, `broadcast_to`",
    ),
    composed(
        "index",
        "Elements at indices of several axes.",
        "`permute`, `reshape`, `index_select`",
    ),
    composed(
        "index_put",
        "x with elements at indices of several axes replaced.",
        "`permute`, `reshape`, `scatter`",
    ),
    composed(
        "masked_select",
        "Elements where a mask is not 0, as a vector.",
        "`reshape`, `index_select`",
    ),
    composed(
        "masked_scatter",
        "x with the elements where a mask is not 0 replaced.",
        "`reshape`, `scatter`",
    ),
    composed(
        "interpolate",
        "Images resized, by weighted sums of the nearest 1, 2 or 4 pixels along each axis.",
        "`index_select`, `mul_add`",
    ),
    composed(
        "resize",
        "Any axes resized, with ONNX's options; `interpolate` has PyTorch's.",
        "`index_select`, `mul_add`, `where_cond`",
    ),
    composed(
        "grid_sample",
        "Images read at positions, by weighted sums of the nearest 1, 2 or 4 pixels along each axis.",
        "`pad`, `gather`, `mul_add`; positions: `affine`, `sub`, `clamp`, `abs`, `rem`",
    ),
    composed(
        "affine_grid",
        "Positions that affine maps send the pixels of an image to.",
        "`matmul`",
    ),
    composed(
        "max_unpool",
        "Images with elements at given positions, else 0: `max_unpool1d` to `max_unpool3d`.",
        "`scatter`",
    ),
    composed(
        "pixel_shuffle",
        "Pixels made of channels, and channels of pixels: `pixel_unshuffle`.",
        "`reshape`, `permute`",
    ),
    composed("channel_shuffle", "Channels of groups interleaved.", "`reshape`, `permute`"),
    composed(
        "local_response_norm",
        "`x / (k + alpha · mean)^beta` with the mean of the squares of neighbouring channels.",
        "`square`, `pad`, `unfold`, `sum`, `powf`, `div`",
    ),
    composed(
        "roi_align",
        "Mean of interpolated samples in the cells of regions; `roi_align_max` the largest weighted pixel.",
        "`pad`, `index_select`, `mul`, `sum`, `max`, `cat`",
    ),
    composed(
        "adaptive_max_pool",
        "Largest pixels of a given number of windows: `adaptive_max_pool1d`, `adaptive_max_pool2d`, and their \
                  positions.",
        "`max_pool`, or `gather`",
    ),
    composed(
        "median",
        "Middle one of the sorted elements along an axis, the lower of two.",
        "`gather`",
    ),
    composed(
        "quantile",
        "Element at a fraction of the sorted elements along an axis, interpolated; several of them: `quantiles`.",
        "`gather`, `lerp`",
    ),
    composed(
        "unique",
        "Distinct elements in order, the number of each element among them, and their counts.",
        "`index_select`",
    ),
    composed(
        "bincount_weighted",
        "Sums of the weights of equal integers; `bincount` counts them.",
        "`scatter_add`",
    ),
    composed(
        "unique_along",
        "Distinct elements or slices, in order or of each run, and where they are: `unique_with_indices`, \
                  `unique_along`, `unique_consecutive`.",
        "`index_select`",
    ),
    composed(
        "repeat_interleave",
        "Elements of an axis repeated one by one.",
        "`reshape`, `broadcast_to`, or `index_select`",
    ),
    composed("diff", "Differences of neighbours.", "`narrow`, `sub`"),
    composed("mode", "Most frequent element along an axis.", "`gather`"),
    composed("nanmedian", "Median without NaN.", "`gather`"),
    composed("nanquantile", "Quantiles without NaN.", "`gather`, `lerp`"),
    composed("nansum", "Sum without NaN.", "`where_cond`, `sum`"),
    composed("nanmean", "Mean without NaN.", "`nansum`, `div`"),
    composed(
        "max_with_initial",
        "Extrema of a number and the elements: `max_with_initial`, `min_with_initial`.",
        "`max`, `maximum`, or `min`, `minimum`",
    ),
    composed(
        "logcumsumexp",
        "`ln(e^x[0] + … + e^x[i])` along an axis.",
        "`flip`, `sub`, `exp`, `narrow`, `mul`, `add`, `cat`, `log`",
    ),
    composed("index_reduce", "`scatter_reduce` of slices.", "those of that"),
    composed("histogram_edges", "Weights between edges.", "`scatter_add`"),
    composed(
        "group_norm",
        "Groups of channels of each image, normalized, then channels scaled and shifted.",
        "`layer_norm`, `mul_add`",
    ),
    composed(
        "instance_norm",
        "`group_norm` with a group for each channel.",
        "`layer_norm`, `mul_add`",
    ),
    composed(
        "cosine_similarity",
        "Cosine of the angle between vectors.",
        "`norm`, `clamp`, `div`, `mul`",
    ),
    composed("pairwise_distance", "`‖a - b + ε‖`, the p-norm.", "`sub`, `add`, `norm`"),
    composed(
        "cdist",
        "Distances of all pairs of points.",
        "`sub`, `norm`, `matmul`, `sqrt`, `scatter`",
    ),
    composed("cross", "Cross product along an axis.", "`roll`, `mul`, `sub`"),
    composed("kron", "Kronecker product.", "`reshape`, `mul`"),
    composed("cov", "Weighted covariances of rows.", "`sub`, `sum`, `matmul`, `div`"),
    composed("corrcoef", "Correlations of rows.", "those of `cov`, `diagonal`, `sqrt`, `clamp`"),
    composed(
        "trapezoid",
        "Integrals: also `cumulative_trapezoid`.",
        "`narrow`, `add`, `mul`, `cumsum`",
    ),
    composed("matrix_power", "Powers of square matrices.", "`matmul`"),
    composed("diag_embed", "Vectors as diagonals.", "`cat`, `reshape`, `pad`, `permute`"),
    composed("block_diag", "Matrices along a diagonal.", "`pad`, `cat`"),
    composed(
        "cartesian_prod",
        "All tuples of elements of vectors.",
        "`reshape`, `broadcast_to`, `cat`",
    ),
    composed("vander", "Powers of the elements of vectors.", "`cat`, `cumprod`"),
    composed("add_scaled", "`a + alpha b`.", "`mul_add`; of integers `mul`, `add`"),
    composed("layer_norm_with_statistics", "And mean, scale.", "`layer_norm`, `mean`, `variance`"),
    composed(
        "embedding_with_padding",
        "Rows, one without a gradient.",
        "`index_select`, `where_cond`",
    ),
];
