//! Cases of ops on sets of elements, and of reductions at indices and without NaN. Equal elements tie where a derivative
//! jumps, so no input may be expanded along the axis.

use super::cases::{ALL, DENSE, Suite, T};
use swath::prelude::*;

/// `x` with NaN at some places, which do not depend on it.
fn with_nan(x: &T) -> Result<T> {
    x.masked_fill(&tensor![bool; false, true, false, false], f64::NAN)
}

pub fn sets(op: &str, s: &mut Suite) {
    match op {
        "unique_along" => {
            s.add("elements", &[&[2, 3]], &DENSE, |xs| Ok(xs[0].unique_with_indices()?.values));
            s.add("rows", &[&[3, 2]], &DENSE, |xs| Ok(xs[0].unique_along(0)?.values));
            s.one("runs", |x| Ok(x.unique_consecutive(Some(-1))?.values));
            s.one("columns", |x| Ok(x.unique_along(-1)?.values));
        }
        "repeat_interleave" => {
            s.one("a number", |x| x.repeat_interleave(2, 1));
            s.one("numbers", |x| x.repeat_interleave(tensor![i64; 0, 3, 1], -2));
        }
        "diff" => {
            s.one("once", |x| x.diff(1, 1));
            s.one("twice", |x| x.diff(2, -1));
        }
        "mode" => s.add("mode", &[&[3, 4]], &DENSE, |xs| Ok(xs[0].mode(1, false)?.0)),
        "nanmedian" => {
            s.one("of numbers", |x| Ok(with_nan(x)?.nanmedian(-1, true)?.0));
            s.one("with its index", |x| Ok(x.median_with_indices(-1, false)?.0));
        }
        "nanquantile" => {
            s.one("one", |x| with_nan(x)?.nanquantile(0.3, -1, false));
            s.one("several", |x| {
                with_nan(x)?.nanquantiles(&[0.2, 0.9], 2, false, QuantileMethod::Linear)
            });
        }
        "nansum" => {
            s.one("of two axes", |x| with_nan(x)?.nansum(Some(&[0, 2]), false));
            s.one("kept", |x| with_nan(x)?.nansum_axis(-1, true));
        }
        "nanmean" => {
            s.one("of two axes", |x| with_nan(x)?.nanmean(Some(&[0, 2]), false));
            s.one("kept", |x| with_nan(x)?.nanmean_axis(-1, true));
        }
        "max_with_initial" => {
            s.one("max", |x| x.max_with_initial(0.5, Some(&[1]), false));
            s.one("min", |x| x.min_with_initial(-0.5, Some(&[1]), true));
        }
        "logcumsumexp" => {
            s.one("last axis", |x| x.logcumsumexp(-1));
            s.one("inner axis", |x| x.logcumsumexp(1));
            s.add("odd", &[&[5, 2]], &ALL, |xs| xs[0].mul(5.0)?.logcumsumexp(0));
        }
        "scatter_reduce" => {
            let modes = [ReduceMode::Max, ReduceMode::Min, ReduceMode::Prod, ReduceMode::Mean];
            for mode in modes.into_iter().chain([ReduceMode::Sum]) {
                for include_self in [true, false] {
                    let index = tensor![i64; [0, 2, 2, 0], [1, 1, 1, -1]];
                    let f =
                        move |xs: &[T]| xs[0].scatter_reduce(1, &index, &xs[1], mode, include_self);
                    let name = format!("{mode:?}, {include_self}");
                    s.add(&name, &[&[2, 4], &[2, 4]], &DENSE, f);
                }
            }
        }
        "index_reduce" => {
            for mode in [ReduceMode::Max, ReduceMode::Min, ReduceMode::Prod, ReduceMode::Mean] {
                let index = tensor![i64; 1, 0, 1];
                let f = move |xs: &[T]| xs[0].index_reduce(0, &index, &xs[1], mode, true);
                s.add(&format!("{mode:?}"), &[&[3, 2], &[3, 2]], &DENSE, f);
            }
        }
        "histogram_edges" => {
            let (x, edges) = (tensor![[0.5, 1.0, 2.0], [3.0, 4.0, 9.0]], tensor![0.0, 1.0, 4.0]);
            let f = move |density| {
                let (x, edges) = (x.clone(), edges.clone());
                move |xs: &[T]| x.histogram_edges(&edges, Some(&xs[0]), density)
            };
            s.add("weights", &[&[2, 3]], &ALL, f(false));
            let dense = f(true);
            s.add("density", &[&[2, 3]], &DENSE, move |xs| dense(&[xs[0].add(5.0)?]));
        }
        _ => {}
    }
}
