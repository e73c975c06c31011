//! Optimizer steps: kernels against the formulas.

use crate::testing::suite::Tested;
use crate::testing::suite::agree::{Disagreements, Reference, Tolerance, floats};
use crate::testing::suite::inputs::{Arrangement, Fill, Input, Rng};
use crate::testing::suite::oracle::{Rounding, values, wide};
use swath::optim::{self, AdamOptions, AdamWOptions, Decays, SgdOptions, Step, Update};
use swath::{Backend, DType, Error, Result, Tensor, TensorData};

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

/// A step by the formula in tensor operations, as optimizers run it on a backend without a kernel: 16-bit floats are
/// widened, and rounded once.
fn composed<B: Backend>(
    update: &dyn Both<B>,
    parameter: &mut B::Tensor,
    gradient: &B::Tensor,
    state: &mut [B::Tensor],
    step: &Step<'_>,
) -> Result<()> {
    let dtype = parameter.dtype();
    let computed_in = if dtype.size() == 2 { DType::F32 } else { dtype };
    let wide = |x: &B::Tensor| Tensor::<B>::from_data(x.clone()).to_dtype(computed_in);
    let narrow = |x: &Tensor<B>| x.to_dtype(dtype).map(|x| x.data().clone());
    let mut values = state.iter().map(wide).collect::<Result<Vec<_>>>()?;
    let new = Update::<B>::update(update, &wide(parameter)?, &wide(gradient)?, &mut values, step)?;
    for (state, value) in state.iter_mut().zip(&values) {
        *state = narrow(value)?;
    }
    *parameter = narrow(&new)?;
    Ok(())
}

/// Compares the kernels, or the formulas if the backend has none, with the formulas in tensor operations on the
/// reference backend, in `f64`, which `optim/torch.rs` compares with PyTorch.
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
                    Err(Error::Unsupported { .. }) => {
                        composed(&*update, &mut p, &g, state, &step).unwrap();
                    }
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
