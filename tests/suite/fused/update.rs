//! Optimizer steps: kernels against the formulas, and which storage the CPU backend writes.

use swath::backend::cpu::CpuTensor;
use swath::ops::UpdateOp;
use swath::optim::{self, AdamOptions, AdamWOptions, Decays, SgdOptions, Step, Update};
use swath::{
    Backend, CpuBackend, DType, Error, HostData, Result, Scalar, Shape, Tensor, TensorData,
};

use crate::support::agree::{Disagreements, Reference, Tested, Tolerance, floats};
use crate::support::inputs::{Arrangement, Fill, Input, Rng};
use crate::support::oracle::{Rounding, values, wide};

trait Both<B: Backend>: Update<B> + Update<Reference> {}

impl<B: Backend, U: Update<B> + Update<Reference>> Both<B> for U {}

/// Updates, and the number of the step.
fn updates<B: Backend>() -> Vec<(Box<dyn Both<B>>, u64)> {
    let sgd = |momentum, dampening, weight_decay, nesterov| -> Box<dyn Both<B>> {
        let options = SgdOptions { learning_rate: 0.1, ..Default::default() };
        Box::new(SgdOptions { momentum, dampening, weight_decay, nesterov, ..options })
    };
    let (learning_rate, betas, eps, decays) = (0.05, [0.8, 0.95], 1e-4, optim::all as Decays);
    let adam = |weight_decay| -> Box<dyn Both<B>> {
        Box::new(AdamOptions { learning_rate, betas, eps, weight_decay, decays })
    };
    let adamw = |weight_decay| -> Box<dyn Both<B>> {
        Box::new(AdamWOptions { learning_rate, betas, eps, weight_decay, decays })
    };
    vec![
        (sgd(0.0, 0.0, 0.0, false), 2),
        (sgd(0.0, 0.0, 0.2, false), 1),
        (sgd(0.9, 0.3, 0.0, false), 1),
        (sgd(0.9, 0.3, 0.2, false), 2),
        (sgd(0.9, 0.0, 0.2, true), 2),
        (adam(0.0), 1),
        (adam(0.3), 2),
        (adamw(0.0), 7),
        (adamw(0.3), 100_000),
    ]
}

/// Compares the kernels, if the backend has any, with the formulas in tensor operations on the reference backend, in
/// `f64`, which `optim/torch.rs` compares with PyTorch.
pub fn steps_match_their_formulas<B: Tested>() {
    let (mut seen, mut rng) = (Disagreements::default(), Rng(6));
    for dtype in floats::<B>() {
        for shape in [&[][..], &[0], &[1], &[7], &[33, 65], &[3, 0, 2], &[5, 1030]] {
            for (update, number) in updates::<B>() {
                let all = [-2.0, -2.0, 0.0, -2.0].map(|low| {
                    let fill = Fill::plain(low, 2.0);
                    Input::new(dtype, shape, Arrangement::Contiguous, || fill.draw(&mut rng, dtype))
                });
                let step = Step { path: "", shape: &all[0].shape, number };
                let op = Update::<B>::kernel(&*update, &step).unwrap();
                let [mut p, s, v, g] = all.each_ref().map(|x| x.on::<B>());
                let mut state = [s, v];
                let state = &mut state[..op.states()];
                match B::update(&op, &mut p, &g, state) {
                    Err(Error::Unsupported { .. }) => return,
                    done => done.unwrap(),
                }

                let [old, s, v, g] =
                    all.each_ref().map(|x| Tensor::<Reference>::from_data(wide(x)));
                let mut after = [s, v];
                let after = &mut after[..op.states()];
                let new = update.update(&old, &g, after, &step).unwrap();
                let got = [p].into_iter().chain(state.iter().cloned());
                for (k, (got, want)) in got.zip([new].iter().chain(&*after)).enumerate() {
                    let bound = |y| Rounding::of(dtype).bound(y, 16.0);
                    let bounds = values(want.data()).into_iter().map(bound).collect();
                    let want = Reference::cast(want.data(), dtype);
                    let context = || format!("{op:?} {dtype} {shape:?}, tensor {k}");
                    let tolerance = Tolerance::absolute(bounds);
                    seen.compare::<B>(context, Ok(got), want, &tolerance);
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
