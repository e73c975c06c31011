//! Softmax, cross-entropy, layer norm and RMS norm of rows, and their gradients. A function named
//! `…_rows` takes a row-major matrix; the result of a row depends on that row alone.

use core::mem::MaybeUninit;

use super::call::{Call, Rows, Work};
use super::same_len;
use crate::map::rows::places;
use crate::output::Output;
use crate::rows::{
    CrossEntropyGradTask, CrossEntropyRows, CrossEntropyTask, LayerNormGradRows, LayerNormGradTask,
    LayerNormRows, LayerNormTask, RmsNormGradRows, RmsNormGradTask, RmsNormRows, RmsNormTask,
    SoftmaxGradTask, SoftmaxTask,
};

/// Softmax of the slice: `y[i] = e^x[i] / Σ e^x`.
///
/// * Safe against overflow: the largest element is subtracted first. These differences are rounded:
///   with u the unit roundoff, the relative error is at most (4.3 + |x\[i\] − max| + D) u if the
///   result is normal, where D = Σ y |x − max| bounds the contribution of the other differences. D
///   is at most ln n; the bound is reached only if all differences round in the same direction. For
///   `f64`, the error of the [`sum`](crate::sum), up to 64 u, comes on top.
/// * If an element is NaN or +∞, or all are −∞, every result is NaN.
///
/// ```
/// let mut y = [0.0f32; 2];
/// swath_kernels::softmax(&[1000.0, 1000.0], &mut y);
/// assert_eq!(y, [0.5, 0.5]);
/// ```
///
/// # Panics
/// If the lengths differ.
#[track_caller]
pub fn softmax<E: Rows>(x: &[E], y: &mut (impl Output<E> + ?Sized)) {
    softmax_rows(x, x.len(), y);
}

/// [`softmax`] of each row of `cols` elements.
///
/// # Panics
/// If the lengths differ or are not a multiple of `cols`.
#[track_caller]
pub fn softmax_rows<E: Rows>(x: &[E], cols: usize, y: &mut (impl Output<E> + ?Sized)) {
    softmax_forward("softmax", x, cols, places(y), false);
}

/// Log-softmax of the slice: `y[i] = x[i] − ln Σ e^x`.
///
/// * Safe against overflow, and more accurate than the logarithm of [`softmax`]. With u the unit
///   roundoff and s = Σ e^(x − max), the error is at most (|x\[i\] − max| + D + 2 ln s + |y\[i\]| +
///   2) u, D ≤ ln n as for [`softmax`].
/// * If an element is NaN or +∞, or all are −∞, every result is NaN.
///
/// ```
/// let mut y = [0.0f32; 2];
/// swath_kernels::log_softmax(&[0.0, 1000.0], &mut y);
/// assert_eq!(y, [-1000.0, 0.0]);
/// ```
///
/// # Panics
/// If the lengths differ.
#[track_caller]
pub fn log_softmax<E: Rows>(x: &[E], y: &mut (impl Output<E> + ?Sized)) {
    log_softmax_rows(x, x.len(), y);
}

/// [`log_softmax`] of each row of `cols` elements.
///
/// # Panics
/// If the lengths differ or are not a multiple of `cols`.
#[track_caller]
pub fn log_softmax_rows<E: Rows>(x: &[E], cols: usize, y: &mut (impl Output<E> + ?Sized)) {
    softmax_forward("log_softmax", x, cols, places(y), true);
}

/// The gradient of [`softmax_rows`] from upstream gradient `g` and output `y`: `dx = y (g − Σ g y)`
/// per row.
///
/// # Panics
/// If the lengths differ or are not a multiple of `cols`.
#[track_caller]
pub fn softmax_grad_rows<E: Rows>(
    g: &[E],
    y: &[E],
    cols: usize,
    dx: &mut (impl Output<E> + ?Sized),
) {
    softmax_backward("softmax_grad", g, y, cols, places(dx), false);
}

/// The gradient of [`log_softmax_rows`] from upstream gradient `g` and output `y`:
/// `dx = g − e^y Σ g` per row.
///
/// # Panics
/// If the lengths differ or are not a multiple of `cols`.
#[track_caller]
pub fn log_softmax_grad_rows<E: Rows>(
    g: &[E],
    y: &[E],
    cols: usize,
    dx: &mut (impl Output<E> + ?Sized),
) {
    softmax_backward("log_softmax_grad", g, y, cols, places(dx), true);
}

/// Panics unless all lengths are equal and a multiple of `cols`.
#[track_caller]
fn check(name: &str, lens: &[usize], cols: usize, len: usize) {
    lens.iter().for_each(|&input| same_len(name, input, len));
    assert!(
        len == 0 || len.is_multiple_of(cols),
        "{name}: {len} elements do not divide into rows of {cols}"
    );
}

#[track_caller]
fn softmax_forward<E: Rows>(name: &str, x: &[E], cols: usize, y: &mut [MaybeUninit<E>], log: bool) {
    check(name, &[x.len()], cols, y.len());
    E::run(Call(Work::Softmax(SoftmaxTask { x, y, cols: cols.max(1), log })));
}

#[track_caller]
fn softmax_backward<E: Rows>(
    name: &str,
    g: &[E],
    y: &[E],
    cols: usize,
    dx: &mut [MaybeUninit<E>],
    log: bool,
) {
    check(name, &[g.len(), y.len()], cols, dx.len());
    E::run(Call(Work::SoftmaxGrad(SoftmaxGradTask { g, y, dx, cols: cols.max(1), log })));
}

/// Writes each row's loss in nats, its largest logit, and `Σ e^(x − largest) − 1`, all `[r]`;
/// [`cross_entropy_grad_rows`] takes the last two.
///
/// Each is rounded once from `f64`. The error is half an ULP, plus that of the exponentials, whose
/// arguments x − largest are rounded to `E`. If a logit is NaN or +∞, or all are −∞, the loss
/// is NaN.
///
/// ```
/// use swath_kernels::{CrossEntropyRows, cross_entropy_rows};
/// let logits = [0.0f32, 0.0, 0.0, 100.0];
/// let (mut losses, mut largest, mut rest) = ([0.0f32; 2], [0.0f32; 2], [0.0f32; 2]);
/// let rows = CrossEntropyRows {
///     logits: &logits,
///     targets: &[0, 1],
///     ignore_index: None,
///     label_smoothing: 0.0,
/// };
/// cross_entropy_rows(rows, &mut losses, &mut largest, &mut rest);
/// assert_eq!((losses[0], largest, rest), (std::f32::consts::LN_2, [0.0, 100.0], [1.0, 0.0]));
/// ```
///
/// # Panics
/// If the lengths are not those of `r` rows, or a target is not a class.
#[track_caller]
pub fn cross_entropy_rows<E: Rows>(
    rows: CrossEntropyRows<'_, E>,
    losses: &mut (impl Output<E> + ?Sized),
    largest: &mut (impl Output<E> + ?Sized),
    rest: &mut (impl Output<E> + ?Sized),
) {
    let name = "cross_entropy";
    let cols = classes(name, &rows);
    let (losses, largest, rest) = (places(losses), places(largest), places(rest));
    for len in [losses.len(), largest.len(), rest.len()] {
        same_len(name, len, rows.targets.len());
    }
    let task = CrossEntropyTask { rows, cols, losses, largest, rest };
    E::run(Call(Work::CrossEntropy(task)));
}

/// Writes the gradient of the logits from that of the losses, `g` `[r]`, and each row's largest
/// logit and `Σ e^(x − largest) − 1`, both `[r]`.
///
/// However large the logits, a probability p that is a normal number has a relative error of at
/// most u (max − x + ln n + 8), u being the unit roundoff: the error of x − max and of the
/// exponentials summed. The same holds for the target's 1 − p, except for the rounding of the sum
/// in `f64`: below 2^-46, which only matters for `f64` logits. The term ε/n, its addition and the
/// product with `g` are rounded once each.
///
/// # Panics
/// If the lengths are not those of `r` rows, or a target is not a class.
#[track_caller]
pub fn cross_entropy_grad_rows<E: Rows>(
    rows: CrossEntropyRows<'_, E>,
    g: &[E],
    largest: &[E],
    rest: &[E],
    dx: &mut (impl Output<E> + ?Sized),
) {
    let name = "cross_entropy_grad";
    let cols = classes(name, &rows);
    for len in [g.len(), largest.len(), rest.len()] {
        same_len(name, len, rows.targets.len());
    }
    let dx = places(dx);
    same_len(name, dx.len(), rows.logits.len());
    let task = CrossEntropyGradTask { rows, cols, g, largest, rest, dx };
    E::run(Call(Work::CrossEntropyGrad(task)));
}

/// Writes the normalised rows, `[r, n]`, and each row's mean and `1/√(σ² + ε)`, both `[r]`.
///
/// The statistics are rounded once from `f64`. The normalised x̂ has four roundings; weight and bias
/// add one, as a fused multiply-add.
/// For `f64` the mean itself is a rounded sum: if it is r standard deviations from 0, x̂ is off by
/// up to about 64 r 2^-53.
///
/// A NaN or an infinity makes its row NaN. Elements are infinite or NaN if `x − μ` or `1/√(σ² + ε)`
/// exceeds the range, as for `f32` rows that span more than 3.4e38, or rows of 1e-40 with ε = 0.
/// For `f64`, squares may overflow or underflow: a row with an element further than about 1e154 from the
/// mean becomes zeros, as does its `1/√(σ² + ε)`, or NaN if the sum of its elements overflows. If
/// all are nearer than 1e-154 to the mean, σ² loses digits and finally becomes 0.
///
/// ```
/// use swath_kernels::{LayerNormRows, layer_norm_rows};
/// let (mut y, mut mean, mut r) = ([0.0f32; 2], [0.0f32; 1], [0.0f32; 1]);
/// let rows = LayerNormRows { x: &[1.0, 5.0], weight: None, bias: None, eps: 0.0 };
/// layer_norm_rows(rows, &mut y, &mut mean, &mut r);
/// assert_eq!((y, mean, r), ([-1.0, 1.0], [3.0], [0.5]));
/// ```
///
/// # Panics
/// If the lengths are not those of `r` rows.
#[track_caller]
pub fn layer_norm_rows<E: Rows>(
    rows: LayerNormRows<'_, E>,
    y: &mut (impl Output<E> + ?Sized),
    mean: &mut (impl Output<E> + ?Sized),
    reciprocal_deviation: &mut (impl Output<E> + ?Sized),
) {
    let name = "layer_norm";
    let (y, mean, deviation) = (places(y), places(mean), places(reciprocal_deviation));
    let cols = columns(name, rows.x.len(), mean.len());
    same_len(name, y.len(), rows.x.len());
    same_len(name, deviation.len(), mean.len());
    let parameters = [rows.weight, rows.bias].into_iter().flatten();
    // Without rows, the length of the parameters is unconstrained.
    for parameter in parameters.filter(|_| !mean.is_empty()) {
        same_len(name, parameter.len(), cols);
    }
    let task = LayerNormTask { rows, cols, y, mean, deviation };
    E::run(Call(Work::LayerNorm(task)));
}

/// Writes the gradient of x, `[r, n]`, and accumulates the gradients of weight and bias, `[n]`, in
/// `dweight` and `dbias`, row by row.
///
/// # Panics
/// If the lengths are not those of `r` rows.
#[track_caller]
pub fn layer_norm_grad_rows<E: Rows>(
    rows: LayerNormGradRows<'_, E>,
    dx: &mut (impl Output<E> + ?Sized),
    dweight: &mut [f64],
    dbias: &mut [f64],
) {
    let name = "layer_norm_grad";
    let dx = places(dx);
    let count = rows.reciprocal_deviation.len();
    let cols = columns(name, rows.x.len(), count);
    for len in [rows.g.len(), dx.len()] {
        same_len(name, len, rows.x.len());
    }
    let parameters = rows.weight.map(<[E]>::len).into_iter().chain([dweight.len(), dbias.len()]);
    for len in parameters.filter(|_| count > 0) {
        same_len(name, len, cols);
    }
    let task = LayerNormGradTask { rows, cols, dx, dweight, dbias };
    E::run(Call(Work::LayerNormGrad(task)));
}

/// Writes the rows divided by their root mean square, `[r, n]`, and each row's `1/√(mean x² + ε)`,
/// `[r]`.
///
/// The statistic is rounded once from `f64`; an element has two more roundings, or one without a
/// weight. A NaN makes its row NaN; an infinity becomes NaN and the rest of its row 0. For `f64`,
/// squares of elements beyond 1e154 overflow, which makes the row zeros; squares of elements below
/// 1e-154 lose digits and finally become 0. If `1/√(mean x² + ε)` exceeds the range, as for `f32`
/// near 1e-40 with ε = 0, elements are infinite, or NaN if they are 0.
///
/// ```
/// use swath_kernels::{RmsNormRows, rms_norm_rows};
/// let (mut y, mut r) = ([0.0f32; 4], [0.0f32; 1]);
/// let rows = RmsNormRows { x: &[2.0, -2.0, 4.0, 0.0], weight: None, eps: 10.0 };
/// rms_norm_rows(rows, &mut y, &mut r);
/// assert_eq!((y, r), ([0.5, -0.5, 1.0, 0.0], [0.25]));
/// ```
///
/// # Panics
/// If the lengths are not those of `r` rows.
#[track_caller]
pub fn rms_norm_rows<E: Rows>(
    rows: RmsNormRows<'_, E>,
    y: &mut (impl Output<E> + ?Sized),
    reciprocal_rms: &mut (impl Output<E> + ?Sized),
) {
    let name = "rms_norm";
    let (y, reciprocal) = (places(y), places(reciprocal_rms));
    let cols = columns(name, rows.x.len(), reciprocal.len());
    same_len(name, y.len(), rows.x.len());
    // Without rows, the length of the weight is unconstrained.
    if let Some(weight) = rows.weight.filter(|_| !reciprocal.is_empty()) {
        same_len(name, weight.len(), cols);
    }
    E::run(Call(Work::RmsNorm(RmsNormTask { rows, cols, y, reciprocal })));
}

/// Writes the gradient of x, `[r, n]`, and accumulates the gradient of the weight, `[n]`, in
/// `dweight`, row by row.
///
/// # Panics
/// If the lengths are not those of `r` rows.
#[track_caller]
pub fn rms_norm_grad_rows<E: Rows>(
    rows: RmsNormGradRows<'_, E>,
    dx: &mut (impl Output<E> + ?Sized),
    dweight: &mut [f64],
) {
    let name = "rms_norm_grad";
    let dx = places(dx);
    let cols = columns(name, rows.x.len(), rows.reciprocal_rms.len());
    for len in [rows.g.len(), dx.len()] {
        same_len(name, len, rows.x.len());
    }
    let parameters = rows.weight.map(<[E]>::len).into_iter().chain([dweight.len()]);
    for len in parameters.filter(|_| !rows.reciprocal_rms.is_empty()) {
        same_len(name, len, cols);
    }
    E::run(Call(Work::RmsNormGrad(RmsNormGradTask { rows, cols, dx, dweight })));
}

/// Returns the number of columns of a matrix of `len` elements in `rows` rows; 0 if there are none.
#[inline]
#[track_caller]
fn columns(name: &str, len: usize, rows: usize) -> usize {
    let columns = len.checked_div(rows).unwrap_or(0);
    assert!(columns * rows == len, "{name}: {len} elements do not divide into {rows} rows");
    columns
}

/// Returns the number of classes; panics if a target is neither a class nor ignored.
#[track_caller]
fn classes<E>(name: &str, rows: &CrossEntropyRows<'_, E>) -> usize {
    let cols = columns(name, rows.logits.len(), rows.targets.len());
    check_classes(name, rows.targets, cols, rows.ignore_index);
    cols
}

/// Panics if a target is neither a class nor ignored.
#[track_caller]
pub(super) fn check_classes(name: &str, targets: &[i64], classes: usize, ignore: Option<i64>) {
    for &target in targets.iter().filter(|&&target| ignore != Some(target)) {
        let is_class = usize::try_from(target).is_ok_and(|target| target < classes);
        assert!(is_class, "{name}: target {target} is not in 0..{classes}");
    }
}
