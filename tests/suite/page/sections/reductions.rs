//! Reductions. Written by `tests/vectors/check_page.py`.

use crate::page::{found, row};
use swath::cpu::prelude::*;

pub fn rows() -> Result<()> {
    let x = tensor![[1.0, 2.0], [3.0, 5.0]];
    let (points, w) = (tensor![0.0, 2.0], tensor![i64; 1, 3]);
    row(
        "`x.sum()` `x.mean()` `x.max()` `x.min()` `x.prod()` `x.sum_all()?` `x.sum(None, false)?` `x.mean_all()?` `x.max_all()?` `x.min_all()?` `x.prod_all()?`",
        &[
            found(&(x.sum_all()?)),
            found(&(x.sum(None, false)?)),
            found(&(x.mean_all()?)),
            found(&(x.max_all()?)),
            found(&(x.min_all()?)),
            found(&(x.prod_all()?)),
        ],
        &["[]: 11", "[]: 2.75", "[]: 5", "[]: 1", "[]: 30"],
    );
    row(
        "`x.sum(axis=0)` `x.sum(0)` `x.sum_axis(0, false)?` `x.sum(Some(&[0]), false)?`",
        &[found(&(x.sum_axis(0, false)?)), found(&(x.sum(Some(&[0]), false)?))],
        &["[2]: 4 7", "[2]: 4 7"],
    );
    row(
        "`x.mean((0, -1), keepdims=True)` `x.mean_axis((0, -1), true)?` `x.mean_axis(.., true)?`",
        &[found(&(x.mean_axis((0, -1), true)?)), found(&(x.mean_axis(.., true)?))],
        &["[1, 1]: 2.75"],
    );
    row(
        "`x.max(axis=1)` `x.amax(1)` `x.max_axis(1, false)?`",
        &[found(&(x.max_axis(1, false)?))],
        &["[2]: 2 5 | [2]: 2 5; [2]: 1 1", "[2]: 2 5"],
    );
    row(
        "`x.std(ddof=1)` `x.std()` `x.std(None, false, 1)?` `ddof`",
        &[found(&(x.std(None, false, 1)?))],
        &["[]: 1.7078251838684082", "[]: 1.4790199995040894 | []: 1.7078251838684082"],
    );
    row(
        "`x.var(axis=0)` `x.var(0, correction=0)` `x.variance_axis(0, false, 0)?`",
        &[found(&(x.variance_axis(0, false, 0)?))],
        &["[2]: 1 2.25 | [2]: 2 4.5", "[2]: 1 2.25"],
    );
    row(
        "`np.linalg.norm(x)` `x.norm()` `x.norm(2.0, None, false)?`",
        &[found(&(x.norm(2.0, None, false)?))],
        &["[]: 6.244997978210449", "[]: 6.244997978210449"],
    );
    row(
        "`x.argmax(axis=1)` `x.argmax(1)` `x.argmax()` `x.argmax(1, false)?` `x.argmax_all()?`",
        &[found(&(x.argmax(1, false)?)), found(&(x.argmax_all()?))],
        &["[2]: 1 1", "[2]: 1 1", "[]: 3"],
    );
    row(
        "`(x > 2).any()` `(x > 2).all()` `x.gt(2.0)?.any(None, false)?` `x.gt(2.0)?.all(None, false)?`",
        &[found(&(x.gt(2.0)?.any(None, false)?)), found(&(x.gt(2.0)?.all(None, false)?))],
        &["[]: 1", "[]: 0"],
    );
    row(
        "`np.cumsum(x, 1)` `x.cumsum(1)` `x.cumsum(1)?`",
        &[found(&(x.cumsum(1)?))],
        &["[2, 2]: 1 3 3 8", "[2, 2]: 1 3 3 8"],
    );
    row(
        "`np.trapezoid(x, dx=0.5)` `torch.trapezoid(x, points)` `x.trapezoid(0.5, -1)?` `x.trapezoid(&points, -1)?`",
        &[found(&(x.trapezoid(0.5, -1)?)), found(&(x.trapezoid(&points, -1)?))],
        &["[2]: 0.75 2", "[2]: 3 8"],
    );
    row(
        "`torch.cumulative_trapezoid(x, dim=0)` `x.cumulative_trapezoid(1, 0)?`",
        &[found(&(x.cumulative_trapezoid(1, 0)?))],
        &["[1, 2]: 2 3.5"],
    );
    row(
        "`torch.cov(x)` `np.cov(x, fweights=w)` `np.corrcoef(x)` `x.cov(1, None, None)?` `x.cov(1, Some(&w), None)?` `x.corrcoef()?`",
        &[
            found(&(x.cov(1, None, None)?)),
            found(&(x.cov(1, Some(&w), None)?)),
            found(&(x.corrcoef()?)),
        ],
        &[
            "[2, 2]: 0.5 1 1 2",
            "[2, 2]: 0.25 0.5 0.5 1",
            "[2, 2]: 0.9999999999999999 0.9999999999999999 0.9999999999999999 0.9999999999999999",
        ],
    );
    row(
        "`x.cummax(1)` `x.cummax(1)?`",
        &[found(&(x.cummax(1)?))],
        &["[2, 2]: 1 2 3 5; [2, 2]: 0 1 0 1"],
    );
    row(
        "`np.median` `x.median(1)` `x.median(1, false)?` `x.median_with_indices(1, false)?`",
        &[found(&(x.median(1, false)?)), found(&(x.median_with_indices(1, false)?))],
        &["[2]: 1 3; [2]: 0 0"],
    );
    row(
        "`np.quantile(x, 0.25, 1)` `x.quantile(0.25, 1)` `x.quantile(0.25, 1, false)?`",
        &[found(&(x.quantile(0.25, 1, false)?))],
        &["[2]: 1.25 3.5", "[2]: 1.25 3.5"],
    );
    row(
        "`np.nansum(x)` `x.nansum(1)` `x.nanmean(1)` `x.nansum(None, false)?` `x.nansum_axis(1, false)?` `x.nanmean_axis(1, false)?`",
        &[
            found(&(x.nansum(None, false)?)),
            found(&(x.nansum_axis(1, false)?)),
            found(&(x.nanmean_axis(1, false)?)),
        ],
        &["[]: 11", "[2]: 3 8", "[2]: 1.5 4"],
    );
    row(
        "`x.nanmedian(1)` `np.nanquantile(x, 0.25, 1)` `x.nanmedian(1, false)?` `x.nanquantile(0.25, 1, false)?`",
        &[found(&(x.nanmedian(1, false)?)), found(&(x.nanquantile(0.25, 1, false)?))],
        &["[2]: 1 3; [2]: 0 0", "[2]: 1.25 3.5"],
    );
    row(
        "`np.count_nonzero(x)` `x.count_nonzero(1)` `x.count_nonzero(None, false)?` `x.count_nonzero_axis(1, false)?`",
        &[found(&(x.count_nonzero(None, false)?)), found(&(x.count_nonzero_axis(1, false)?))],
        &["[]: 4", "[2]: 2 2"],
    );
    row(
        "`np.max(x, initial=4)` `np.min(x, initial=0)` `x.max_with_initial(4, None, false)?` `x.min_with_initial(0, None, false)?`",
        &[
            found(&(x.max_with_initial(4, None, false)?)),
            found(&(x.min_with_initial(0, None, false)?)),
        ],
        &["[]: 5", "[]: 0"],
    );
    row("`x.mode(1)` `x.mode(1, false)?`", &[found(&(x.mode(1, false)?))], &["[2]: 1 3; [2]: 0 0"]);
    row(
        "`np.diff(x, axis=1)` `x.diff(1, 0)` `x.diff(1, 1)?` `x.diff(1, 0)?`",
        &[found(&(x.diff(1, 1)?)), found(&(x.diff(1, 0)?))],
        &["[2, 1]: 1 2", "[1, 2]: 2 3"],
    );
    row(
        "`x.logcumsumexp(1)` `x.logcumsumexp(1)?`",
        &[found(&(x.logcumsumexp(1)?))],
        &["[2, 2]: 1 2.3132617473602295 3 5.126927852630615"],
    );
    row(
        "`scipy.special.logsumexp(x, 1)` `x.logsumexp(1)` `x.logsumexp_axis(1, false)?`",
        &[found(&(x.logsumexp_axis(1, false)?))],
        &["[2]: 2.3132615089416504 5.126927852630615", "[2]: 2.3132617473602295 5.126927852630615"],
    );
    row(
        "`x.softmax(1)` `x.log_softmax(1)` `x.softmax(1)?` `x.log_softmax(1)?`",
        &[found(&(x.softmax(1)?)), found(&(x.log_softmax(1)?))],
        &[
            "[2, 2]: 0.2689414322376251 0.7310585975646973 0.11920291185379028 0.8807970285415649",
            "[2, 2]: -1.31326162815094 -0.31326165795326233 -2.1269280910491943 -0.12692804634571075",
        ],
    );
    Ok(())
}
