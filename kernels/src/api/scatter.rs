//! Addition of rows to rows that an index names.

use super::same_len;
use crate::scatter::Addend;

/// `y[b, index[i]] += x[b, i]`: rows of `x` `[batch, index.len(), cols]` are added to those of `y`
/// `[batch, rows, cols]`, where `shape` is `[rows, cols]`.
///
/// Rows are added one after another, in order, and each sum is rounded: a row of `y` that is named many
/// times has the same bits whatever the instruction set.
///
/// ```
/// let mut y = [0.5f32, 0.0, 1.0, 1.0];
/// swath_kernels::scatter_add_rows(&[1.0, 2.0, 3.0, 4.0], &[0, 0], [2, 2], &mut y);
/// assert_eq!(y, [4.5, 6.0, 1.0, 1.0]);
/// ```
///
/// # Panics
/// Before anything is added: if an index is not in `0..rows`, the length of `x` is no multiple of
/// `index.len() · cols`, or that of `y` is not as many times `rows · cols` (where that is 0, it may be anything).
#[track_caller]
pub fn scatter_add_rows<E: Addend>(x: &[E], index: &[i64], shape: [usize; 2], y: &mut [E]) {
    let name = "scatter_add_rows";
    let [rows, cols] = shape;
    if let Some(i) = index.iter().find(|&&i| !usize::try_from(i).is_ok_and(|i| i < rows)) {
        panic!("{name}: index {i} of {rows} rows");
    }
    if let Some(batch) = batch(name, x.len(), index.len(), cols) {
        let wanted = batch.checked_mul(rows).and_then(|all| all.checked_mul(cols));
        same_len(name, y.len(), wanted.unwrap_or(usize::MAX));
        E::add_rows(x, index, shape, 0, y);
    }
}

/// What [`scatter_add_rows`] adds to a part of its `y`, the rows from `first` on of all its `batch · rows`;
/// rows of `x` for others, or for none, are passed over. So threads share the rows that are added to: each has all
/// of `x` and its own part, and every sum is taken in the same order.
///
/// ```
/// let mut y = [0.5f32, 0.0];
/// swath_kernels::scatter_add_rows_from(&[1.0, 2.0, 3.0, 4.0], &[7, 2], [9, 2], 7, &mut y);
/// assert_eq!(y, [1.5, 2.0]);
/// ```
///
/// # Panics
/// If the length of `x` is no multiple of `index.len() · cols`, that of `y` none of `cols`, `y` ends beyond the
/// last of the rows (of any number, where `index.len() · cols` is 0), or no `i64` names the last row of `rows`.
#[track_caller]
pub fn scatter_add_rows_from<E: Addend>(
    x: &[E],
    index: &[i64],
    shape: [usize; 2],
    first: usize,
    y: &mut [E],
) {
    let name = "scatter_add_rows_from";
    let ([rows, cols], len) = (shape, y.len());
    let batch = batch(name, x.len(), index.len(), cols);
    assert!(len.is_multiple_of(cols), "{name}: {len} elements in rows of {cols}");
    if let Some(batch) = batch {
        assert!(i64::try_from(rows).is_ok(), "{name}: {rows} rows");
        // In numbers that hold any two lengths.
        let (end, all) = (first as u128 + (len / cols) as u128, batch as u128 * rows as u128);
        assert!(end <= all, "{name}: rows up to {end} of {all}");
        E::add_rows(x, index, shape, first, y);
    }
}

/// How many times `index.len() · cols` elements `x` has; `None` of none of them, where it says nothing.
#[track_caller]
fn batch(name: &str, x: usize, indices: usize, cols: usize) -> Option<usize> {
    let block = indices.saturating_mul(cols);
    assert!(x.is_multiple_of(block), "{name}: {x} elements in {indices} rows of {cols}");
    x.checked_div(block)
}
