//! Softmax and cross-entropy along the columns of matrices, and their gradients. An operand to read
//! is a slice, and the distance between the starts of its rows; results may be columns of a larger
//! matrix. A column gets the bits that the function of rows gives for its elements.

use super::call::{Call, Rows, Work};
use super::rows::check_classes;
use super::same_len;
use crate::fold::strips::Strip;
use crate::gemm::MatMut;
use crate::rows::{
    CrossEntropyColumns, CrossEntropyColumnsTask, CrossEntropyGradColumnsTask, SoftmaxColumns,
    SoftmaxGradColumns,
};

/// [`softmax`](crate::softmax) of each column.
///
/// ```
/// use swath_kernels::{MatMut, softmax_columns};
/// let mut y = [0.0f32; 4];
/// softmax_columns((&[1000.0, 7.0, 1000.0, 7.0], 2), MatMut::row_major(&mut y, [2, 2])?);
/// assert_eq!(y, [0.5; 4]);
/// # Ok::<(), swath_kernels::GemmError>(())
/// ```
///
/// # Panics
/// If the matrix exceeds the slice, or if the result is uninitialised or its rows are not contiguous.
#[track_caller]
pub fn softmax_columns<E: Rows>(x: (&[E], usize), y: MatMut<'_, E>) {
    softmax_forward("softmax", x, y, false);
}

/// [`log_softmax`](crate::log_softmax) of each column.
///
/// # Panics
/// In the cases of [`softmax_columns`].
#[track_caller]
pub fn log_softmax_columns<E: Rows>(x: (&[E], usize), y: MatMut<'_, E>) {
    softmax_forward("log_softmax", x, y, true);
}

/// The gradient of [`softmax_columns`] from upstream gradient `g` and output `y`.
///
/// # Panics
/// In the cases of [`softmax_columns`].
#[track_caller]
pub fn softmax_grad_columns<E: Rows>(g: (&[E], usize), y: (&[E], usize), dx: MatMut<'_, E>) {
    softmax_backward("softmax_grad", g, y, dx, false);
}

/// The gradient of [`log_softmax_columns`] from upstream gradient `g` and output `y`.
///
/// # Panics
/// In the cases of [`softmax_columns`].
#[track_caller]
pub fn log_softmax_grad_columns<E: Rows>(g: (&[E], usize), y: (&[E], usize), dx: MatMut<'_, E>) {
    softmax_backward("log_softmax_grad", g, y, dx, true);
}

#[track_caller]
fn softmax_forward<E: Rows>(name: &str, x: (&[E], usize), y: MatMut<'_, E>, log: bool) {
    let y = y.into_strip(name);
    let x = Strip::new(name, x, y.shape());
    E::run(Call(Work::SoftmaxColumns(SoftmaxColumns { x, y, log })));
}

#[track_caller]
fn softmax_backward<E: Rows>(
    name: &str,
    g: (&[E], usize),
    y: (&[E], usize),
    dx: MatMut<'_, E>,
    log: bool,
) {
    let dx = dx.into_strip(name);
    let (g, y) = (Strip::new(name, g, dx.shape()), Strip::new(name, y, dx.shape()));
    E::run(Call(Work::SoftmaxGradColumns(SoftmaxGradColumns { g, y, dx, log })));
}

/// Writes each column's loss, its largest logit, and `Σ e^(x − largest) − 1`, like
/// [`cross_entropy_rows`](crate::cross_entropy_rows).
///
/// ```
/// use swath_kernels::{CrossEntropyColumns, cross_entropy_columns};
/// let columns = CrossEntropyColumns {
///     logits: &[0.0f32, 0.0, 0.0, 100.0],
///     stride: 2,
///     classes: 2,
///     targets: &[0, 1],
///     ignore_index: None,
///     label_smoothing: 0.0,
/// };
/// let (mut losses, mut largest, mut rest) = ([0.0; 2], [0.0; 2], [0.0; 2]);
/// cross_entropy_columns(columns, &mut losses, &mut largest, &mut rest);
/// assert_eq!((losses[0], largest, rest), (std::f32::consts::LN_2, [0.0, 100.0], [1.0, 0.0]));
/// ```
///
/// # Panics
/// If the logits exceed their slice, a length is not that of the targets, or a target is not a class.
#[track_caller]
pub fn cross_entropy_columns<E: Rows>(
    columns: CrossEntropyColumns<'_, E>,
    losses: &mut [E],
    largest: &mut [E],
    rest: &mut [E],
) {
    let name = "cross_entropy";
    let logits = checked(name, &columns);
    for len in [losses.len(), largest.len(), rest.len()] {
        same_len(name, len, columns.targets.len());
    }
    let task = CrossEntropyColumnsTask { columns, logits, losses, largest, rest };
    E::run(Call(Work::CrossEntropyColumns(task)));
}

/// Writes the gradient of the logits, like [`cross_entropy_grad_rows`](crate::cross_entropy_grad_rows).
///
/// # Panics
/// In the cases of [`cross_entropy_columns`]; if the result does not have the logits' shape, is
/// uninitialised, or its rows are not contiguous.
#[track_caller]
pub fn cross_entropy_grad_columns<E: Rows>(
    columns: CrossEntropyColumns<'_, E>,
    g: &[E],
    largest: &[E],
    rest: &[E],
    dx: MatMut<'_, E>,
) {
    let name = "cross_entropy_grad";
    let (logits, dx) = (checked(name, &columns), dx.into_strip(name));
    for len in [g.len(), largest.len(), rest.len()] {
        same_len(name, len, columns.targets.len());
    }
    let (shape, wanted) = (dx.shape(), [columns.classes, columns.targets.len()]);
    assert!(shape == wanted, "{name}: expected a result of {wanted:?}, got {shape:?}");
    let task = CrossEntropyGradColumnsTask { columns, logits, g, largest, rest, dx };
    E::run(Call(Work::CrossEntropyGradColumns(task)));
}

/// Returns the logits; panics if a target is neither a class nor ignored.
#[track_caller]
fn checked<'a, E: Rows>(name: &str, columns: &CrossEntropyColumns<'a, E>) -> Strip<'a, E> {
    let &CrossEntropyColumns { logits, stride, classes, targets, ignore_index, .. } = columns;
    check_classes(name, targets, classes, ignore_index);
    Strip::new(name, (logits, stride), [classes, targets.len()])
}
