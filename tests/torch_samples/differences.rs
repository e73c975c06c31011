//! Where swath's results differ from PyTorch's, and why. "Where PyTorch differs" on the page "From NumPy and PyTorch"
//! says the same.

use std::collections::BTreeMap;

use crate::sample::Call;

/// The samples in which a part differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Samples {
    /// Those with NaN or infinities among the arguments.
    NotFinite,
    /// Those with an argument in `f32`.
    F32,
    All,
}

use Samples::{All, F32, NotFinite};

/// A row: the operations and the part, by the start of their names, the samples, how many differ at most with PyTorch
/// 2.15, and the reason.
type Row = (&'static str, &'static str, Samples, usize, &'static str);

#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("adaptive_max_pool", "", NotFinite, 16, "of several NaN the first one is taken"),
    ("amax amin index_reduce-a scatter_reduce-a", "gradient", NotFinite, 90, "the gradient of an extremum that is NaN is 0"),
    ("cdist", "", NotFinite, 29, "an infinite distance is infinite, and so is what its gradient says"),
    ("cdist logcumsumexp", "gradient", F32, 6, "PyTorch's is less accurate in f32"),
    ("conv", "result", NotFinite, 4, "the 0 of padding is a factor: NaN beside an infinite weight"),
    ("copysign fmax fmin fmod hardshrink hardsigmoid ldexp linalg.vander logit polygamma softshrink", "gradient",
        NotFinite, 41, "gradients at NaN and infinities"),
    ("cov", "result", F32, 1, "PyTorch's is less accurate with weights in f32"),
    ("cov layer_norm native_layer_norm", "gradient", F32, 8, "PyTorch's is the rounding error of a zero"),
    ("cross_entropy", "", NotFinite, 1, "a class of probability 0 has no part in a result"),
    ("fft stft istft", "", NotFinite, 17, "sums of infinities"),
    ("interpolate", "", NotFinite, 111, "a pixel of weight 0 has no part in a result"),
    ("grid_sample", "gradient 1", NotFinite, 28, "the gradient of a position does not see pixels outside the image"),
    ("hardsigmoid", "gradient", All, 1, "PyTorch's slope in f64 is 1/6 in f32"),
    ("index_reduce-prod scatter_reduce-prod", "gradient", NotFinite, 46, "the product of the other elements"),
    ("ldexp", "result", NotFinite, 4, "rounded once: 2^e is no factor of its own"),
    ("max_unpool", "gradient", All, 890, "of elements with one position only the last has a gradient"),
    ("max_unpool", "result", NotFinite, 2, "of elements with one position the last is written"),
    ("median nanmean", "gradient", NotFinite, 2, "a result that is NaN for all has no gradient"),
    ("mode", "result 1", All, 6, "the index is that of the last one"),
    ("mode", "result", NotFinite, 1, "NaN equals nothing"),
    ("nanquantile", "result", NotFinite, 1, "an infinity of weight 0 has no part in a result"),
    ("polygamma", "result", NotFinite, 14, "NaN at -∞"),
    ("topk", "", NotFinite, 14, "NaN is last"),
    ("topk", "result 1", All, 21, "of equal elements the first comes first"),
    ("unique", "result", NotFinite, 44, "NaN equals NaN"),
];

/// Why a part of a sample may differ: `result 0`, `gradient 1`.
pub fn reason(op: &str, part: &str, call: &Call) -> Option<&'static str> {
    let is_named = |names: &str| names.split(' ').any(|name| op.starts_with(name));
    let is_among = |samples| match samples {
        NotFinite => call.is_not_finite(),
        F32 => call.is_f32(),
        All => true,
    };
    let is_row = |row: &&Row| is_named(row.0) && part.starts_with(row.1) && is_among(row.2);
    ROWS.iter().find(is_row).map(|row| row.4)
}

/// The reasons for which more samples differ than their rows say.
pub fn exceeded(counts: &BTreeMap<String, usize>) -> Vec<String> {
    let over = |row: &Row| {
        let count = counts.get(row.4).copied().unwrap_or(0);
        (count > row.3).then(|| format!("{count} instead of {}: {}", row.3, row.4))
    };
    ROWS.iter().filter_map(over).collect()
}
