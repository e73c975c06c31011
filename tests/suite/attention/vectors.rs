//! PyTorch's results, written by `tests/vectors/make_attention.py`.

use std::collections::HashMap;

use super::*;

fn vectors() -> HashMap<&'static str, T> {
    let lines = include_str!("../../vectors/attention.txt").lines();
    let parsed = lines.map(|line| {
        let [name, extents, values] = line.splitn(3, ": ").collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let extents: Vec<usize> = extents.split(' ').map(|x| x.parse().unwrap()).collect();
        let values: Vec<f64> = values.split(' ').map(|x| x.parse().unwrap()).collect();
        (name, T::from_vec(values, Shape::new(extents)).unwrap())
    });
    parsed.collect()
}

#[test]
fn pytorch_attention_and_its_gradients() {
    let vectors = vectors();
    for case in ["plain", "causal", "rank 3, scaled", "bool mask", "float mask"] {
        for (dtype, tolerance) in [(DType::F64, 1e-14), (DType::F32, 2e-6)] {
            let get =
                |name: &str| vectors[format!("{case}/{name}").as_str()].to_dtype(dtype).unwrap();
            let [q, k, v] = ["q", "k", "v"].map(|name| get(name).requires_grad());
            let mask = vectors.get(format!("{case}/mask").as_str()).map(|mask| {
                let to = if case == "bool mask" { DType::Bool } else { dtype };
                mask.to_dtype(to).unwrap()
            });
            let scale = (case == "rank 3, scaled").then_some(0.3);
            let (mask, causal) = (mask.as_ref(), case == "causal");
            let options = Attention { mask, causal, scale, dropout: None };
            let y = q.scaled_dot_product_attention(&k, &v, options).unwrap();
            let grads = y.backward_with(&get("g")).unwrap();
            let results =
                [&y, grads.wrt(&q).unwrap(), grads.wrt(&k).unwrap(), grads.wrt(&v).unwrap()];
            for (name, result) in ["y", "dq", "dk", "dv"].into_iter().zip(results) {
                let text = close(&wide(result), &wide(&get(name)), tolerance);
                assert!(text.is_none(), "{case} {dtype} {name}: {}", text.unwrap());
            }
        }
    }
}

#[test]
fn pytorch_gelu_and_its_gradient() {
    let vectors = vectors();
    let x = vectors["gelu/x"].requires_grad();
    let y = x.gelu().unwrap();
    let grads = y.sum(None, false).unwrap().backward().unwrap();
    for (got, want) in [(&y, &vectors["gelu/y"]), (grads.wrt(&x).unwrap(), &vectors["gelu/dx"])] {
        for ((got, want), x) in wide(got).iter().zip(wide(want)).zip(wide(&x)) {
            // PyTorch adds 1 to erf, which loses 2^-53 x of the tail.
            let tolerance = 1e-15 * want.abs() + 3e-16 * x.abs() + 1e-16;
            assert!((got - want).abs() <= tolerance, "at {x}: {got:e}, not {want:e}");
        }
    }
}
