//! Optimizer steps: which storage the CPU backend writes, and errors.

use swath::backend::cpu::CpuTensor;
use swath::ops::UpdateOp;
use swath::{Backend, CpuBackend, DType, Error, HostData, Result, Scalar, Shape, TensorData};

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
