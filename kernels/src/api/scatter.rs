//! Scatter-add: adds rows to the rows that an index names.

use crate::scatter::Addend;

/// Adds each row of `x` `[batch, index.len(), cols]` to the row of the result `[batch, rows, cols]` that
/// its index names: `y[b, index[i]] += x[b, i]`. `shape` is `[rows, cols]`, and `y` is the result or a part
/// of it: its rows from row `first` of the `batch · rows` on. Rows of `x` whose index names a row outside
/// the part, or no row at all, are skipped.
///
/// Rows are added in the order of the index, each addition being rounded, so that a row of `y` that
/// is named several times has the same bits on every instruction set. Threads can share one scatter-add: each
/// reads all of `x` and owns a part of the result.
///
/// ```
/// let (x, mut y) = ([1.0, 2.0, 3.0, 4.0], [0.5f32, 0.0, 1.0, 1.0]);
/// swath_kernels::scatter_add_rows(&x, &[0, 0], [2, 2], 0, &mut y);
/// assert_eq!(y, [4.5, 6.0, 1.0, 1.0]);
/// swath_kernels::scatter_add_rows(&x, &[7, 2], [9, 2], 7, &mut y[..2]);
/// assert_eq!(y, [5.5, 8.0, 1.0, 1.0]);
/// ```
///
/// # Panics
/// If `x.len()` is not a multiple of `index.len() · cols`, if `y.len()` is not a multiple of
/// `cols`, if `y` extends past the last of the `batch · rows` rows, or if `rows` exceeds `i64::MAX`.
/// (If `index.len() · cols` is 0, `y` may have any number of rows.)
#[track_caller]
pub fn scatter_add_rows<E: Addend>(
    x: &[E],
    index: &[i64],
    shape: [usize; 2],
    first: usize,
    y: &mut [E],
) {
    let name = "scatter_add_rows";
    let ([rows, cols], len) = (shape, y.len());
    let block = index.len().saturating_mul(cols);
    assert!(
        x.len().is_multiple_of(block),
        "{name}: {} elements do not divide into {} rows of {cols}",
        x.len(),
        index.len()
    );
    assert!(len.is_multiple_of(cols), "{name}: {len} elements do not divide into rows of {cols}");
    if let Some(batch) = x.len().checked_div(block) {
        assert!(i64::try_from(rows).is_ok(), "{name}: {rows} rows exceed the range of i64");
        // These sums and products cannot overflow `u128`.
        let (end, all) = (first as u128 + (len / cols) as u128, batch as u128 * rows as u128);
        assert!(end <= all, "{name}: rows end at {end}, beyond {all}");
        E::add_rows(x, index, shape, first, y);
    }
}
