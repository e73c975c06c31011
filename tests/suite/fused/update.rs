//! Optimizer steps of the CPU backend: against the formulas, and which storage they write.

use swath::backend::cpu::CpuTensor;
use swath::ops::UpdateOp;
use swath::{Backend, CpuBackend, DType, Error, HostData, Result, Scalar, Shape, TensorData};

use crate::support::agree::{Disagreements, Reference, Tolerance};
use crate::support::inputs::{Arrangement, FLOATS, Fill, Input, Rng};
use crate::support::oracle::{Rounding, values, wide};

fn ops() -> Vec<UpdateOp> {
    let sgd = |momentum, dampening, weight_decay, nesterov, first| UpdateOp::Sgd {
        rate: 0.1,
        momentum,
        dampening,
        weight_decay,
        nesterov,
        first,
    };
    let adam = |weight_decay, decoupled, step| UpdateOp::Adam {
        rate: 0.05,
        betas: [0.8, 0.95],
        eps: 1e-4,
        weight_decay,
        decoupled,
        step,
    };
    vec![
        sgd(0.0, 0.0, 0.0, false, false),
        sgd(0.0, 0.0, 0.2, false, true),
        sgd(0.9, 0.3, 0.0, false, true),
        sgd(0.9, 0.3, 0.2, false, false),
        sgd(0.9, 0.0, 0.2, true, false),
        adam(0.0, false, 1),
        adam(0.3, false, 2),
        adam(0.0, true, 7),
        adam(0.3, true, 100_000),
    ]
}

/// Parameter and state after a step, by the formulas in the documentation of [`UpdateOp`].
fn formula(op: &UpdateOp, [p, mut s, mut v]: [f64; 3], mut g: f64) -> [f64; 3] {
    match *op {
        UpdateOp::Sgd { rate, momentum, dampening, weight_decay, nesterov, first } => {
            g += weight_decay * p;
            if momentum != 0.0 {
                s = if first { g } else { momentum * s + (1.0 - dampening) * g };
                g = if nesterov { g + momentum * s } else { s };
            }
            [p - rate * g, s, v]
        }
        UpdateOp::Adam { rate, betas: [b, c], eps, weight_decay, decoupled, step } => {
            let pulled = if decoupled { p * (1.0 - rate * weight_decay) } else { p };
            g += if decoupled { 0.0 } else { weight_decay * p };
            (s, v) = (b * s + (1.0 - b) * g, c * v + (1.0 - c) * g * g);
            let [of_s, of_v] = [b, c].map(|beta| 1.0 - beta.powf(step as f64));
            [pulled - rate / of_s * s / ((v / of_v).sqrt() + eps), s, v]
        }
        _ => unreachable!("{op:?}"),
    }
}

#[test]
fn every_step_matches_its_formula() {
    let (mut seen, mut rng) = (Disagreements::default(), Rng(6));
    for dtype in FLOATS {
        for shape in [&[][..], &[0], &[1], &[7], &[33, 65], &[3, 0, 2], &[5, 1030]] {
            for op in ops() {
                let all = [-2.0, -2.0, 0.0, -2.0].map(|low| {
                    let fill = Fill::plain(low, 2.0);
                    Input::new(dtype, shape, Arrangement::Contiguous, || fill.draw(&mut rng, dtype))
                });
                let [p, s, v, g] = &all;
                let mut state = [s.on::<CpuBackend>(), v.on::<CpuBackend>()];
                let (mut parameter, gradient) = (p.on::<CpuBackend>(), g.on::<CpuBackend>());
                CpuBackend::update(&op, &mut parameter, &gradient, &mut state[..op.states()])
                    .unwrap();
                let before = all.each_ref().map(|x| values(&wide(x)));
                let [s, v] = state;
                for (k, got) in [parameter, s, v].into_iter().enumerate() {
                    let after = (0..p.shape.numel()).map(|i| {
                        let [p, s, v, g] = before.each_ref().map(|x| x[i]);
                        formula(&op, [p, s, v], g)[k]
                    });
                    let after: Vec<f64> = after.collect();
                    let bounds =
                        after.iter().map(|&y| Rounding::of(dtype).bound(y, 16.0)).collect();
                    let after: Vec<_> = after.into_iter().map(Scalar::Float).collect();
                    let want = Ok(Input::of(dtype, shape, &after).on::<Reference>());
                    let context = || format!("{op:?} {dtype} {shape:?}, tensor {k}");
                    let tolerance = Tolerance::absolute(bounds);
                    seen.compare::<CpuBackend>(context, Ok(got), want, &tolerance);
                }
            }
        }
    }
    seen.finish();
}

fn tensor(values: &[f32]) -> CpuTensor {
    CpuBackend::from_host(HostData::F32(values.to_vec()), Shape::from(values.len())).unwrap()
}

const PLAIN: UpdateOp = UpdateOp::Sgd {
    rate: 1.0,
    momentum: 0.5,
    dampening: 0.0,
    weight_decay: 0.0,
    nesterov: false,
    first: false,
};

#[test]
fn unshared_storage_is_updated_in_place_and_shared_storage_is_copied() -> Result<()> {
    let gradient = tensor(&[1.0, 1.0]);
    let (mut p, mut state) = (tensor(&[5.0, 6.0]), [tensor(&[2.0, 4.0])]);
    let addresses = [p.as_slice::<f32>()?.as_ptr(), state[0].as_slice::<f32>()?.as_ptr()];
    CpuBackend::update(&PLAIN, &mut p, &gradient, &mut state)?;
    assert_eq!(
        (p.as_slice::<f32>()?, state[0].as_slice::<f32>()?),
        (&[3.0, 3.0][..], &[2.0, 3.0][..])
    );
    assert_eq!(addresses, [p.as_slice::<f32>()?.as_ptr(), state[0].as_slice::<f32>()?.as_ptr()]);

    let others = [p.clone(), state[0].clone(), gradient.clone()];
    CpuBackend::update(&PLAIN, &mut p, &gradient, &mut state)?;
    assert_eq!(
        (p.as_slice::<f32>()?, state[0].as_slice::<f32>()?),
        (&[1.0, 0.5][..], &[2.0, 2.5][..])
    );
    let left = others.each_ref().map(|x| x.as_slice::<f32>().unwrap());
    assert_eq!(left, [&[3.0, 3.0][..], &[2.0, 3.0], &[1.0, 1.0]]);
    Ok(())
}

#[test]
fn a_parameter_may_be_its_own_gradient() -> Result<()> {
    let mut p = tensor(&[5.0, 6.0]);
    let gradient = p.clone();
    let mut state = [gradient.clone()];
    CpuBackend::update(&PLAIN, &mut p, &gradient, &mut state)?;
    assert_eq!(
        (p.as_slice::<f32>()?, state[0].as_slice::<f32>()?),
        (&[-2.5, -3.0][..], &[7.5, 9.0][..])
    );
    Ok(())
}

#[test]
fn arguments_that_do_not_fit_are_errors_and_change_nothing() {
    let same = || [tensor(&[1.0, 2.0])];
    let wrong = [
        (tensor(&[1.0]), same().to_vec()),
        (tensor(&[1.0, 1.0]), vec![tensor(&[1.0])]),
        (tensor(&[1.0, 1.0]), vec![]),
        (tensor(&[1.0, 1.0]), [same(), same()].concat()),
        (
            CpuBackend::full(Shape::from(2), Scalar::Float(1.0), DType::F64).unwrap(),
            same().to_vec(),
        ),
    ];
    for (gradient, mut state) in wrong {
        let mut p = tensor(&[5.0, 6.0]);
        let error = CpuBackend::update(&PLAIN, &mut p, &gradient, &mut state).unwrap_err();
        assert!(error.to_string().starts_with("sgd"), "{error}");
        assert_eq!(p.as_slice::<f32>().unwrap(), [5.0, 6.0]);
    }
    let none = |decoupled| UpdateOp::Adam {
        rate: 1.0,
        betas: [0.9, 0.99],
        eps: 1e-8,
        weight_decay: 0.0,
        decoupled,
        step: 0,
    };
    for (decoupled, name) in [(false, "adam"), (true, "adamw")] {
        let (mut p, gradient, mut state) =
            (tensor(&[5.0, 6.0]), tensor(&[1.0, 1.0]), [same(), same()].concat());
        let error =
            CpuBackend::update(&none(decoupled), &mut p, &gradient, &mut state).unwrap_err();
        assert_eq!(error.to_string(), format!("{name}: step 0, but the first is 1"));
        assert_eq!(p.as_slice::<f32>().unwrap(), [5.0, 6.0]);
    }
    let integers = CpuBackend::full(Shape::from(2), Scalar::Int(1), DType::I64).unwrap();
    let (mut p, mut state) = (integers.clone(), [integers.clone()]);
    let error = CpuBackend::update(&PLAIN, &mut p, &integers, &mut state).unwrap_err();
    assert!(matches!(error, Error::UnsupportedDType { op: "sgd", .. }), "{error}");
    assert_eq!(p.shape(), integers.shape());
}
