//! Order and counts. Written by `tests/vectors/check_page.py`.

use crate::page::{found, row};
use swath::cpu::prelude::*;

pub fn rows() -> Result<()> {
    let x = tensor![3.0, 1.0, 2.0, 1.0];
    let (v, inverse, counts) = x.unique()?;
    let ids = tensor![i64; 1, 1, 0, 2];
    let counts = x.histogram2d(&x, [2, 2], [0.0..4.0, 0.0..4.0])?;
    let rows = x.reshape((2, 2))?;
    let (w, mut rng) = (tensor![0.5, 0.25, 0.25], Rng::seed(1));
    row(
        "`np.sort(x)` `x.sort()` `x.sort(-1, false)?`",
        &[found(&(x.sort(-1, false)?))],
        &["[4]: 1 1 2 3", "[4]: 1 1 2 3; [4]: 1 3 2 0"],
    );
    row(
        "`np.argsort(x)` `x.argsort(descending=True)` `x.argsort(-1, false)?` `x.argsort(-1, true)?`",
        &[found(&(x.argsort(-1, false)?)), found(&(x.argsort(-1, true)?))],
        &["[4]: 1 3 2 0", "[4]: 0 2 1 3"],
    );
    row(
        "`x.topk(2)` `x.topk(2, largest=False)` `x.topk(2, -1)?` `x.bottomk(2, -1)?`",
        &[found(&(x.topk(2, -1)?)), found(&(x.bottomk(2, -1)?))],
        &["[2]: 3 2; [2]: 0 2", "[2]: 1 1; [2]: 1 3"],
    );
    row(
        "`x.topk(2, sorted=False)` `x.topk_unsorted(2, -1)?`",
        &[found(&(x.topk_unsorted(2, -1)?))],
        &["[2]: 3 2; [2]: 0 2"],
    );
    row(
        "`np.unique(x, return_inverse=True, return_counts=True)` `x.unique()?`",
        &[found(&(x.unique()?))],
        &["[3]: 1 2 3; [4]: 2 0 1 0; [3]: 2 1 1"],
    );
    row(
        "`np.unique(x, return_index=True)` `x.unique_with_indices()?`",
        &[found(&(x.unique_with_indices()?))],
        &["[3]: 1 2 3; [3]: 1 2 0"],
    );
    row(
        "`np.unique(rows, axis=0)` `rows.unique(dim=0)` `rows.unique_along(0)?`",
        &[found(&(rows.unique_along(0)?))],
        &["[2, 2]: 2 1 3 1", "[2, 2]: 2 1 3 1"],
    );
    row(
        "`x.unique_consecutive()` `rows.unique_consecutive(dim=0)` `x.unique_consecutive(None)?` `rows.unique_consecutive(Some(0))?`",
        &[found(&(x.unique_consecutive(None)?)), found(&(rows.unique_consecutive(Some(0))?))],
        &["[4]: 3 1 2 1", "[2, 2]: 3 1 2 1"],
    );
    row(
        "`np.isin(x, v)` `torch.isin(x, v)` `x.isin(&v)?`",
        &[found(&(x.isin(&v)?))],
        &["[4]: 1 1 1 1", "[4]: 1 1 1 1"],
    );
    row(
        "`np.searchsorted(v, x)` `torch.searchsorted(v, x)` `np.searchsorted(v, x, \"right\")` `x.searchsorted(&v)?` `x.searchsorted_right(&v)?`",
        &[found(&(x.searchsorted(&v)?)), found(&(x.searchsorted_right(&v)?))],
        &["[4]: 2 0 1 0", "[4]: 2 0 1 0", "[4]: 3 1 2 1"],
    );
    row(
        "`torch.searchsorted(v, x, right=True, out_int32=True)` `x.searchsorted_as(&v, true, DType::I32)?`",
        &[found(&(x.searchsorted_as(&v, true, DType::I32)?))],
        &["[4]: 3 1 2 1"],
    );
    row(
        "`torch.bucketize(x, v, right=True)` `np.digitize(x, v)` `x.bucketize(&v, true)?`",
        &[found(&(x.bucketize(&v, true)?))],
        &["[4]: 3 1 2 1", "[4]: 3 1 2 1"],
    );
    row(
        "`np.bincount(ids)` `torch.bincount(ids, weights=x)` `ids.bincount(0)?` `ids.bincount_weighted(&x, 0)?`",
        &[found(&(ids.bincount(0)?)), found(&(ids.bincount_weighted(&x, 0)?))],
        &["[3]: 1 2 1", "[3]: 2 4 1"],
    );
    row(
        "`np.histogram(x, 4, (0, 4))` `torch.histc(x, 4, 0, 4)` `x.histogram(4, 0.0..4.0)?`",
        &[found(&(x.histogram(4, 0.0..4.0)?))],
        &["[4]: 0 2 1 1; [5]: 0 1 2 3 4", "[4]: 0 2 1 1"],
    );
    row(
        "`np.histogram(x, v, weights=x)[0]` `np.histogram(x, v, density=True)[0]` `x.histogram_edges(&v, Some(&x), false)?` `x.histogram_edges(&v, None, true)?`",
        &[
            found(&(x.histogram_edges(&v, Some(&x), false)?)),
            found(&(x.histogram_edges(&v, None, true)?)),
        ],
        &["[2]: 2 5", "[2]: 0.5 0.5"],
    );
    row(
        "`np.histogram2d(x, x, (2, 2), ((0, 4), (0, 4)))` `x.histogram2d(&x, [2, 2], [0.0..4.0, 0.0..4.0])?`",
        &[found(&(x.histogram2d(&x, [2, 2], [0.0..4.0, 0.0..4.0])?))],
        &["[2, 2]: 2 0 0 2; [3]: 0 2 4; [3]: 0 2 4"],
    );
    row(
        "`torch.multinomial(w, 5, replacement=True)` `torch.multinomial(w, 2)` `w.multinomial(5, &mut rng)?` `w.multinomial_distinct(2, &mut rng)?`",
        &[found(&(w.multinomial(5, &mut rng)?)), found(&(w.multinomial_distinct(2, &mut rng)?))],
        &["[5]", "[2]"],
    );
    Ok(())
}
