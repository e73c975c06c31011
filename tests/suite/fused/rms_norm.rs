//! Rms norm and its gradients against the reference backend.

use swath::ops::FusedOp;
use swath::{DType, Scalar, Shape, TensorData};

use super::bounds::{self, Places};
use super::reference::{Case, cases, compare, fills, input, rows, values};
use crate::support::agree::{Disagreements, Reference};
use crate::support::inputs::{Arrangement, Fill, Input, Rng};

const EPS: f64 = 1e-3;

fn check(found: &mut Disagreements, rng: &mut Rng, case: Case, fill: usize, has_weight: bool) {
    let (dtype, shape, arrangement) = case;
    let p = Places::of(dtype);
    let n = shape.dim(shape.ndim() - 1);
    let unit = Fill::plain(-2.0, 2.0);
    let x = input(rng, fills()[fill], dtype, shape, arrangement);
    let weight = has_weight.then(|| input(rng, unit, dtype, n, arrangement));
    let context = format!("{dtype} {shape} {arrangement:?} {has_weight}");
    let column = |x: &Option<_>| x.as_ref().map_or_else(|| vec![1.0; n], values);
    let inputs = [Some(&x), weight.as_ref()];
    compare(found, &FusedOp::RmsNorm { eps: EPS }, &context, &inputs, |_, want| {
        let wide = Places::of(want[1].dtype());
        let y = values(&want[0]);
        let reciprocals = values(&want[1]);
        vec![
            y.iter().map(|y| p.bound(*y, 6.0 * y)).collect(),
            reciprocals.iter().map(|&r| bounds::reciprocal_deviation(&wide, r)).collect(),
        ]
    });
    if fill > 0 {
        return;
    }
    let g = input(rng, unit, dtype, shape, arrangement);
    let x_rows = rows(&x.on::<Reference>());
    let mut each = x_rows.iter().map(|x| {
        let squares: f64 = x.iter().map(|x| x * x).sum();
        1.0 / (squares / x.len() as f64 + EPS).sqrt()
    });
    let lead = &shape.dims()[..shape.ndim() - 1];
    let statistics: Shape = lead.iter().copied().chain([1]).collect();
    let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let reciprocal = Input::new(wide, statistics, Arrangement::Contiguous, || {
        Scalar::Float(each.next().unwrap_or(1.0))
    });
    let inputs = [Some(&g), Some(&x), weight.as_ref(), Some(&reciprocal)];
    compare(found, &FusedOp::RmsNormGrad, &context, &inputs, |operands, want| {
        let [g, x] = [0, 1].map(|i| rows(operands[i].as_ref().unwrap()));
        let r = values(operands[3].as_ref().unwrap());
        let weight = column(&operands[2]);
        let (mut dx, mut sizes) = (Vec::new(), vec![0.0; n]);
        for (i, want) in rows(&want[0]).into_iter().enumerate() {
            let normal: Vec<f64> = x[i].iter().map(|x| x * r[i]).collect();
            let h: Vec<f64> = g[i].iter().zip(&weight).map(|(g, w)| g * w).collect();
            dx.extend(bounds::layer_norm_dx(&p, &h, &normal, r[i], 0.0, &want));
            for k in 0..n {
                sizes[k] += (g[i][k] * normal[k]).abs();
            }
        }
        let dweight = sizes.iter().zip(values(&want[1]));
        vec![dx, dweight.map(|(&size, want)| bounds::column(&p, size, want)).collect()]
    });
}

#[test]
fn rms_norm_and_its_gradients() {
    let (mut found, mut rng) = (Disagreements::default(), Rng(6));
    for case in cases() {
        for (fill, weight) in [(0, true), (0, false), (1, true)] {
            check(&mut found, &mut rng, case, fill, weight);
        }
    }
    found.finish();
}
