//! Cases of functions that are composed of element-wise ops, and of losses.

use super::cases::{ALL, Suite};
use swath::prelude::*;
use swath::{CrossEntropy, Reduction};

pub fn arithmetic(op: &str, s: &mut Suite) {
    match op {
        "clamp_min" => {
            s.one("below", |x| x.clamp_min(-0.5));
            s.one("above", |x| x.clamp_max(0.5));
        }
        "nan_to_num" => s.one("numbers", |x| x.nan_to_num(0.0, Some(1.0), Some(-1.0))),
        "softplus_with" => s.one("on both sides of the threshold", |x| x.softplus_with(2.0, 1.0)),
        "nll" => {
            let targets = tensor![i64; 2, 0, 1];
            let classes = targets.clone();
            s.add("each", &[&[3, 4]], &ALL, move |xs| {
                let options = CrossEntropy { reduction: Reduction::None, ..Default::default() };
                xs[0].nll(&classes, options)
            });
            s.add("weighted mean, one ignored", &[&[3, 4]], &ALL, move |xs| {
                let weight = tensor![f64; 0.5, 2.0, 1.5, 1.0].to_dtype(xs[0].dtype())?;
                let (weight, ignore_index) = (Some(&weight), Some(0));
                let options = CrossEntropy { weight, ignore_index, ..Default::default() };
                xs[0].cross_entropy(&targets, options)
            });
        }
        _ => {
            super::numbers::numbers(op, s);
            super::sets::sets(op, s);
            super::linear::linear(op, s);
            super::spectra::spectra(op, s);
        }
    }
}
