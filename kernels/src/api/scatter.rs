//! Scatter-add: adds rows to the rows that an index names.

use super::same_len;
use crate::scatter::Addend;

/// Adds each row of `x` `[batch, index.len(), cols]` to the row of `y` `[batch, rows, cols]` that its
/// index names: `y[b, index[i]] += x[b, i]`. `shape` is `[rows, cols]`.
///
/// Rows are added in the order of the index, each addition being rounded, so that a row of `y` that
/// is named several times has the same bits on every instruction set.
///
/// ```
/// let mut y = [0.5f32, 0.0, 1.0, 1.0];
/// swath_kernels::scatter_add_rows(&[1.0, 2.0, 3.0, 4.0], &[0, 0], [2, 2], &mut y);
/// assert_eq!(y, [4.5, 6.0, 1.0, 1.0]);
/// ```
///
/// # Panics
/// Before anything is added: if an index is not in `0..rows`, if `x.len()` is not a multiple of
/// `index.len() · cols`, or if `y.len()` is not the same multiple of `rows · cols`. (If
/// `index.len() · cols` is 0, `y` may have any length.)
#[track_caller]
pub fn scatter_add_rows<E: Addend>(x: &[E], index: &[i64], shape: [usize; 2], y: &mut [E]) {
    let name = "scatter_add_rows";
    let [rows, cols] = shape;
    if let Some(i) = index.iter().find(|&&i| !usize::try_from(i).is_ok_and(|i| i < rows)) {
        panic!("{name}: index {i} is not in 0..{rows}");
    }
    if let Some(batch) = batch(name, x.len(), index.len(), cols) {
        let wanted = batch.checked_mul(rows).and_then(|all| all.checked_mul(cols));
        same_len(name, y.len(), wanted.unwrap_or(usize::MAX));
        E::add_rows(x, index, shape, 0, y);
    }
}

/// [`scatter_add_rows`] for a part of the result: `y` holds its rows from row `first` of the
/// `batch · rows` on. Rows of `x` whose index names a row outside the part, or no row at all, are
/// skipped. Threads can share one scatter-add this way: each reads all of `x` and owns a part of the
/// result, and the additions to each row keep their order.
///
/// ```
/// let mut y = [0.5f32, 0.0];
/// swath_kernels::scatter_add_rows_from(&[1.0, 2.0, 3.0, 4.0], &[7, 2], [9, 2], 7, &mut y);
/// assert_eq!(y, [1.5, 2.0]);
/// ```
///
/// # Panics
/// If `x.len()` is not a multiple of `index.len() · cols`, if `y.len()` is not a multiple of
/// `cols`, if `y` extends past the last of the `batch · rows` rows, or if `rows` exceeds `i64::MAX`.
/// (If `index.len() · cols` is 0, `y` may have any number of rows.)
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
    assert!(len.is_multiple_of(cols), "{name}: {len} elements do not divide into rows of {cols}");
    if let Some(batch) = batch {
        assert!(i64::try_from(rows).is_ok(), "{name}: {rows} rows exceed the range of i64");
        // These sums and products cannot overflow `u128`.
        let (end, all) = (first as u128 + (len / cols) as u128, batch as u128 * rows as u128);
        assert!(end <= all, "{name}: rows end at {end}, beyond {all}");
        E::add_rows(x, index, shape, first, y);
    }
}

/// Returns the batch size, `x / (indices · cols)`; `None` if the divisor is 0.
#[track_caller]
fn batch(name: &str, x: usize, indices: usize, cols: usize) -> Option<usize> {
    let block = indices.saturating_mul(cols);
    assert!(
        x.is_multiple_of(block),
        "{name}: {x} elements do not divide into {indices} rows of {cols}"
    );
    x.checked_div(block)
}
