//! Cases of special functions and of functions composed of element-wise ops.

use super::cases::{ALL, Suite};
use swath::prelude::*;

pub fn numbers(op: &str, s: &mut Suite) {
    match op {
        "erfinv" => s.one("inside", |x| x.mul(0.4)?.erfinv()),
        "lgamma" => {
            s.one("positive", |x| x.affine(0.5, 1.75)?.lgamma());
            s.one("negative", |x| x.affine(0.1, -1.5)?.lgamma());
        }
        "digamma" => s.one("positive", |x| x.affine(0.5, 1.75)?.digamma()),
        "polygamma" => {
            s.one("first", |x| x.affine(0.5, 1.75)?.polygamma(1));
            s.one("second", |x| x.affine(0.5, 1.75)?.polygamma(2));
            s.one("negative", |x| x.affine(0.1, -0.5)?.polygamma(1));
        }
        "i0" => s.one("both signs", Tensor::i0),
        "i0e" => s.one("both signs", Tensor::i0e),
        "i1" => s.one("both signs", Tensor::i1),
        "i1e" => s.one("both signs", Tensor::i1e),
        "sinc" => {
            s.one("both signs", Tensor::sinc);
            s.one("near 0", |x| x.mul(0.1)?.sinc());
        }
        "frexp" => s.one("mantissa", |x| Ok(x.frexp()?.0)),
        "ldexp" => {
            s.add("floats", &[&[2, 3], &[3]], &ALL, |xs| xs[0].ldexp(&xs[1]));
            s.one("integers", |x| x.ldexp(&tensor![i64; 3, -1, 0, 2]));
        }
        "copysign" => {
            s.add("both", &[&[2, 3], &[2, 3]], &ALL, |xs| xs[0].copysign(&xs[1]));
            s.add("broadcast", &[&[2, 1], &[3]], &ALL, |xs| xs[0].copysign(&xs[1]));
        }
        "logit" => {
            s.one("inside", |x| x.affine(0.2, 0.5)?.logit(None));
            s.one("clamped", |x| x.affine(0.4, 0.5)?.logit(0.1));
        }
        "logaddexp2" => {
            s.add("equal shapes", &[&[2, 3], &[2, 3]], &ALL, |xs| xs[0].logaddexp2(&xs[1]));
            s.add("broadcast", &[&[2, 1], &[3]], &ALL, |xs| xs[0].logaddexp2(&xs[1]));
        }
        "fmax" => {
            s.add("larger", &[&[2, 3], &[3]], &ALL, |xs| xs[0].fmax(&xs[1]));
            s.add("smaller", &[&[2, 3], &[3]], &ALL, |xs| xs[0].fmin(&xs[1]));
        }
        "float_power" => {
            s.one("number", |x| x.square()?.add(0.5)?.float_power(1.5));
            let base = |x: &Tensor<CpuBackend>| x.square()?.add(0.5);
            s.add("both", &[&[2, 3], &[3]], &ALL, move |xs| base(&xs[0])?.float_power(&xs[1]));
        }
        "hardshrink" => {
            s.one("hard", |x| x.hardshrink(0.5));
            s.one("soft", |x| x.softshrink(0.5));
        }
        "hardsigmoid_with" => s.one("both ends", |x| x.hardsigmoid_with(0.3, 0.4)),
        _ => {}
    }
}
