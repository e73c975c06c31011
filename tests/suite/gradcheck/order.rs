//! Cases of ops that order elements. Equal elements tie, where their derivatives jump, so no input may be expanded
//! along the axis.

use super::cases::{ALL, DENSE, Suite, T};
use swath::prelude::*;

pub fn orders(op: &str, s: &mut Suite) {
    match op {
        "sort" => {
            s.one("last axis", |x| Ok(x.sort(-1, false)?.0));
            s.one("inner axis, descending", |x| Ok(x.sort(1, true)?.0));
            s.add("first axis", &[&[5, 2]], &DENSE, |xs| Ok(xs[0].sort(0, false)?.0));
        }
        "topk" => {
            s.one("last axis", |x| Ok(x.topk(2, -1)?.0));
            s.one("inner axis", |x| Ok(x.topk(3, 1)?.0));
        }
        "bottomk" => {
            s.one("last axis", |x| Ok(x.bottomk(3, -1)?.0));
            s.one("inner axis", |x| Ok(x.bottomk(1, 1)?.0));
        }
        "cummax" => {
            s.one("last axis", |x| Ok(x.cummax(-1)?.0));
            s.one("inner axis", |x| Ok(x.cummax(1)?.0));
        }
        "cummin" => {
            s.one("last axis", |x| Ok(x.cummin(-1)?.0));
            s.one("inner axis", |x| Ok(x.cummin(1)?.0));
        }
        "median" => {
            s.one("odd", |x| x.median(1, false));
            s.one("even", |x| x.median(-1, true));
        }
        "quantile" => {
            s.one("one", |x| x.quantile(0.3, 1, false));
            s.one("kept", |x| x.quantile(0.9, -1, true));
            let methods = [
                QuantileMethod::Linear,
                QuantileMethod::Lower,
                QuantileMethod::Higher,
                QuantileMethod::Nearest,
                QuantileMethod::Midpoint,
            ];
            for method in methods {
                let f = move |x: &T| x.quantiles(&[0.1, 0.55, 1.0], 2, false, method);
                s.one(&format!("{method:?}"), f);
            }
        }
        "unique" => s.add("all", &[&[2, 3]], &DENSE, |xs| Ok(xs[0].unique()?.0)),
        "bincount_weighted" => {
            let numbers = tensor![i64; [3, 0, 1], [1, 1, 3]];
            s.add("weights", &[&[2, 3]], &ALL, move |xs| numbers.bincount_weighted(&xs[0], 5));
        }
        _ => super::arithmetic::arithmetic(op, s),
    }
}
