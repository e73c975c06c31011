//! Steps of optimizers: against the reference backend, and what they write where.

use swath::backend::cpu::CpuTensor;
use swath::ops::UpdateOp;
use swath::{Backend, DType, Error, HostData, Result, Scalar, Shape, TensorData};

use super::Subject;
use super::bounds::Places;
use crate::support::agree::{Disagreements, Reference, Tolerance};
use crate::support::inputs::{Arrangement, FLOATS, Fill, Input, Rng};

pub fn ops() -> Vec<UpdateOp> {
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

#[test]
fn every_step_is_the_references() {
    let (mut found, mut rng) = (Disagreements::default(), Rng(6));
    for dtype in FLOATS {
        for shape in [&[][..], &[0], &[1], &[7], &[33, 65], &[3, 0, 2], &[5, 1030]] {
            for op in ops() {
                let p = Places::of(dtype);
                let mut draw = |low: f64, arrangement| {
                    let fill = Fill::plain(low, 2.0);
                    Input::new(dtype, shape, arrangement, || fill.draw(&mut rng, dtype))
                };
                let contiguous = Arrangement::Contiguous;
                let inputs =
                    [draw(-2.0, contiguous), draw(-2.0, contiguous), draw(0.0, contiguous)];
                let gradient = draw(-2.0, contiguous);
                let states = op.states();
                let mut got: Vec<_> = inputs.iter().map(|x| x.on::<Subject>()).collect();
                let mut want: Vec<_> = inputs.iter().map(|x| x.on::<Reference>()).collect();
                let (parameter, state) = got.split_at_mut(1);
                let gradient_here = gradient.on::<Subject>();
                Subject::update(&op, &mut parameter[0], &gradient_here, &mut state[..states])
                    .unwrap();
                let (parameter, state) = want.split_at_mut(1);
                let gradient_here = gradient.on::<Reference>();
                Reference::update(&op, &mut parameter[0], &gradient_here, &mut state[..states])
                    .unwrap();
                for (k, (got, want)) in got.into_iter().zip(want).enumerate() {
                    let host = Reference::to_host(&want).unwrap();
                    let bound = |i| p.bound(host.get(i).unwrap().to_f64(), 16.0);
                    let tolerance = Tolerance::absolute((0..host.len()).map(bound).collect());
                    let context = || format!("{op:?} {dtype} {shape:?}, tensor {k}");
                    found.compare::<Subject>(context, Ok(got), Ok(want), &tolerance);
                }
            }
        }
    }
    found.finish();
}

fn tensor(values: &[f32]) -> CpuTensor {
    Subject::from_host(HostData::F32(values.to_vec()), Shape::from(values.len())).unwrap()
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
fn unshared_storage_is_written_and_shared_storage_is_left_alone() -> Result<()> {
    let gradient = tensor(&[1.0, 1.0]);
    let (mut p, mut state) = (tensor(&[5.0, 6.0]), [tensor(&[2.0, 4.0])]);
    let places = [p.as_slice::<f32>()?.as_ptr(), state[0].as_slice::<f32>()?.as_ptr()];
    Subject::update(&PLAIN, &mut p, &gradient, &mut state)?;
    assert_eq!(
        (p.as_slice::<f32>()?, state[0].as_slice::<f32>()?),
        (&[3.0, 3.0][..], &[2.0, 3.0][..])
    );
    assert_eq!(places, [p.as_slice::<f32>()?.as_ptr(), state[0].as_slice::<f32>()?.as_ptr()]);

    let others = [p.clone(), state[0].clone(), gradient.clone()];
    Subject::update(&PLAIN, &mut p, &gradient, &mut state)?;
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
    Subject::update(&PLAIN, &mut p, &gradient, &mut state)?;
    assert_eq!(
        (p.as_slice::<f32>()?, state[0].as_slice::<f32>()?),
        (&[-2.5, -3.0][..], &[7.5, 9.0][..])
    );
    Ok(())
}

#[test]
fn what_does_not_fit_is_an_error_and_changes_nothing() {
    let same = || [tensor(&[1.0, 2.0])];
    let wrong = [
        (tensor(&[1.0]), same().to_vec()),
        (tensor(&[1.0, 1.0]), vec![tensor(&[1.0])]),
        (tensor(&[1.0, 1.0]), vec![]),
        (tensor(&[1.0, 1.0]), [same(), same()].concat()),
        (Subject::full(Shape::from(2), Scalar::Float(1.0), DType::F64).unwrap(), same().to_vec()),
    ];
    for (gradient, mut state) in wrong {
        let mut p = tensor(&[5.0, 6.0]);
        let error = Subject::update(&PLAIN, &mut p, &gradient, &mut state).unwrap_err();
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
        let error = Subject::update(&none(decoupled), &mut p, &gradient, &mut state).unwrap_err();
        let text = format!("{name}: step 0, but the first is 1");
        assert_eq!(error.to_string(), text);
        assert_eq!(p.as_slice::<f32>().unwrap(), [5.0, 6.0]);
        let one = || Reference::full(Shape::from(2), Scalar::Float(1.0), DType::F32).unwrap();
        let (mut p, mut state) = (one(), [one(), one()]);
        let error = Reference::update(&none(decoupled), &mut p, &one(), &mut state).unwrap_err();
        assert_eq!(error.to_string(), text);
    }
    let integers = Subject::full(Shape::from(2), Scalar::Int(1), DType::I64).unwrap();
    let (mut p, mut state) = (integers.clone(), [integers.clone()]);
    let error = Subject::update(&PLAIN, &mut p, &integers, &mut state).unwrap_err();
    assert!(matches!(error, Error::UnsupportedDType { op: "sgd", .. }), "{error}");
    assert_eq!(p.shape(), integers.shape());
}
