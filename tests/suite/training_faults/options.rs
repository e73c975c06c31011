//! Options that are refused when something is made of them, norms, states, gradients of custom ops.

use std::time::Duration;

use super::{T, randn, text};
use crate::distributed::on_ranks;
use swath::distributed::World;
use swath::nn::{
    Activation, BatchNorm1d, BatchNorm2d, BatchNormOptions, Conv2d, ConvLayerOptions,
    ConvTranspose1d, GroupNorm, GroupNormOptions, LayerNorm, LayerNormOptions, MultiHeadAttention,
    RmsNorm, RmsNormOptions, TransformerBlock, TransformerBlockOptions, init,
};
use swath::optim::{
    self, AdamW, AdamWOptions, ClipOptions, CosineSchedule, StepSchedule, WarmupSchedule,
};
use swath::prelude::*;
use swath::{ConvOptions, ConvTransposeOptions};

/// Numbers that no option accepts.
const INVALID: [f64; 4] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.1];

fn refused<V>(result: Result<V>, option: &str) {
    let text = text(result);
    assert!(text.contains(option), "{text}");
}

#[test]
fn options_of_layers_are_checked_when_they_are_made() {
    let rng = &mut Rng::seed(1);
    for bad in INVALID {
        let eps = |eps| BatchNormOptions { eps, ..Default::default() };
        refused(BatchNorm1d::<CpuBackend>::with_options(3, eps(bad)), "eps");
        refused(BatchNorm2d::<CpuBackend>::with_options(3, eps(bad)), "eps");
        let options = LayerNormOptions { eps: bad, ..Default::default() };
        refused(LayerNorm::<CpuBackend>::with_options(3, options), "eps");
        let options = GroupNormOptions { eps: bad, ..Default::default() };
        refused(GroupNorm::<CpuBackend>::with_options(1, 3, options), "eps");
        let options = RmsNormOptions { eps: bad, ..Default::default() };
        refused(RmsNorm::<CpuBackend>::with_options(3, options), "eps");
        let options = TransformerBlockOptions { eps: bad, ..Default::default() };
        refused(TransformerBlock::<CpuBackend>::with_options(4, 2, options, rng), "eps");
        if bad.is_nan() {
            for activation in [Activation::LeakyRelu(bad), Activation::Elu(bad)] {
                let options = TransformerBlockOptions::new().activation(activation);
                let block = TransformerBlock::<CpuBackend>::with_options(4, 2, options, rng);
                refused(block, "activation");
            }
        }
        refused(init::normal::<CpuBackend>(3, 0.0, bad, DType::F32, rng), "deviation");
        refused(init::uniform::<CpuBackend>(3, bad, DType::F32, rng), "bound");
    }
    for bad in [f64::NAN, f64::INFINITY] {
        refused(init::normal::<CpuBackend>(3, bad, 1.0, DType::F32, rng), "mean");
        refused(init::kaiming_normal::<CpuBackend>((3, 3), bad, DType::F32, rng), "of a ");
        refused(init::kaiming_uniform::<CpuBackend>((3, 3), bad, DType::F32, rng), "of a ");
    }
    for momentum in [f64::NAN, f64::INFINITY, -0.1, 1.5] {
        let options = BatchNormOptions { momentum, ..Default::default() };
        refused(BatchNorm1d::<CpuBackend>::with_options(3, options), "momentum");
        refused(BatchNorm2d::<CpuBackend>::with_options(3, options), "momentum");
    }
    for momentum in [0.0, 1.0] {
        let options = BatchNormOptions { momentum, eps: 0.0, ..Default::default() };
        BatchNorm2d::<CpuBackend>::with_options(3, options).unwrap();
    }
    refused(GroupNorm::<CpuBackend>::new(0, 4), "0 groups");
    refused(GroupNorm::<CpuBackend>::new(3, 4), "3 groups");
}

#[test]
fn options_of_convolutions_are_checked_when_they_are_made() {
    let rng = &mut Rng::seed(1);
    let conv = |conv| ConvLayerOptions { conv, ..Default::default() };
    let mut made = |options: ConvOptions<2>, kernel| {
        Conv2d::<CpuBackend>::with_options(4, 4, kernel, conv(options), rng)
    };
    let plain = ConvOptions::default();
    refused(made(ConvOptions { stride: [1, 0], ..plain }, [3, 3]), "stride");
    refused(made(ConvOptions { dilation: [0, 1], ..plain }, [3, 3]), "dilation");
    refused(made(ConvOptions { groups: 0, ..plain }, [3, 3]), "groups");
    refused(made(plain, [3, 0]), "filter");
    refused(made(plain, [usize::MAX, 2]), "conv");
    let options = ConvTransposeOptions { output_padding: [1], ..Default::default() };
    let options = ConvLayerOptions { conv: options, ..Default::default() };
    refused(ConvTranspose1d::<CpuBackend>::with_options(2, 2, [3], options, rng), "output_padding");
}

#[test]
fn a_width_beyond_all_memory_is_an_error() {
    let rng = &mut Rng::seed(1);
    refused(MultiHeadAttention::<CpuBackend>::new(1 << 63, 1, rng), "");
    refused(TransformerBlock::<CpuBackend>::new(1 << 62, 1, rng), "");
}

#[test]
fn schedules_are_checked_when_they_are_made() {
    for bad in INVALID {
        refused(CosineSchedule::new(bad, 0.0, 10), "peak");
        refused(CosineSchedule::new(1.0, bad, 10), "floor");
        refused(StepSchedule::new(bad, 0.5, 10), "initial");
        refused(StepSchedule::new(1.0, bad, 10), "factor");
        refused(WarmupSchedule::new(10, bad), "rate");
        let inner = CosineSchedule { peak: bad, floor: 0.0, steps: 10 };
        refused(WarmupSchedule::new(10, inner), "rate");
    }
    let made = CosineSchedule::new(1.0, 0.5, 10).and_then(|then| WarmupSchedule::new(3, then));
    let then = CosineSchedule { peak: 1.0, floor: 0.5, steps: 10 };
    assert_eq!(made, Ok(WarmupSchedule { warmup: 3, then }));
}

fn gradients(x: &T, values: &[f64]) -> Gradients<CpuBackend> {
    let mut grads = Gradients::new();
    let g = T::from_slice(values, values.len()).unwrap();
    grads.accumulate(x, g.to_dtype(x.dtype()).unwrap()).unwrap();
    grads
}

/// The norm before clipping, and the gradients after it.
fn clipped(values: &[f64], max_norm: f64) -> (f64, Vec<f64>) {
    let x = T::zeros(values.len(), DType::F64).unwrap().requires_grad();
    let mut grads = gradients(&x, values);
    let norm = optim::clip_grad_norm(&x, &mut grads, max_norm).unwrap();
    (norm, grads.wrt(&x).unwrap().to_vec().unwrap())
}

#[test]
fn the_norm_of_gradients_neither_overflows_nor_underflows() {
    let close = |found: f64, expected: f64| {
        assert!((found - expected).abs() <= 1e-13 * expected, "{found:e}, not {expected:e}");
    };
    for scale in [1e200, 1e-170, 2f64.powi(-1000), 2f64.powi(1020), 1e-5, 1.0] {
        let (norm, after) = clipped(&[3.0 * scale, -4.0 * scale], f64::INFINITY);
        close(norm, 5.0 * scale);
        assert_eq!(after, [3.0 * scale, -4.0 * scale]);
        // PyTorch's factor has 1e-6 in its denominator.
        let largest = scale;
        let (norm, after) = clipped(&[3.0 * scale, -4.0 * scale], largest);
        close(norm, 5.0 * scale);
        let found = (after[0] / largest).hypot(after[1] / largest);
        assert!((0.5..=1.0 + 1e-14).contains(&found), "{scale:e}: {found}");
        close(-after[1] * 0.75, after[0]);
    }
    // Below the limit nothing changes.
    assert_eq!(clipped(&[1e-170; 2], 1.0).1, [1e-170; 2]);
    assert_eq!(clipped(&[1e-170; 2], 1e-8).1, [1e-170; 2]);
    close(clipped(&[1e-170; 2], 1.0).0, 2f64.sqrt() * 1e-170);
    // The smallest numbers have few digits.
    assert_eq!(clipped(&[5e-324, 0.0], 1.0).0, 5e-324);
    assert_eq!(clipped(&[0.0; 3], 0.0), (0.0, vec![0.0; 3]));
    assert_eq!(clipped(&[], 1.0), (0.0, vec![]));
    assert_eq!(clipped(&[1e200; 2], 0.0).1, [0.0; 2]);
}

#[test]
fn a_factor_that_the_dtype_cannot_hold_does_not_make_gradients_zero() -> Result<()> {
    let close = |dtype: DType, value: f64, max_norm: f64| -> Result<()> {
        let x = T::zeros(2, dtype)?.requires_grad();
        let mut grads = gradients(&x, &[value, -value]);
        optim::clip_grad_norm(&x, &mut grads, max_norm)?;
        let found = grads.wrt(&x)?.to_dtype(DType::F64)?.to_vec::<f64>()?;
        let expected = max_norm / 2f64.sqrt();
        let tolerance = if dtype == DType::BF16 { 1e-2 } else { 1e-6 };
        for (found, expected) in found.into_iter().zip([expected, -expected]) {
            assert!((found / expected - 1.0).abs() < tolerance, "{dtype}: {found:e}, {expected:e}");
        }
        Ok(())
    };
    close(DType::F32, 1e38, 1e-10)?;
    close(DType::F32, 1e38, 1e-1)?;
    close(DType::BF16, 1e38, 1e-10)?;
    close(DType::F64, 1e38, 1e-10)?;
    close(DType::F64, 1e200, 1e-200)?;
    close(DType::F64, 1e300, 1e-300)?;
    // Together, with a limit that `f32` cannot hold.
    let zero = |dtype| T::zeros(1, dtype).map(|x| x.requires_grad());
    let model = vec![zero(DType::F64)?, zero(DType::F32)?];
    let mut grads = Gradients::new();
    grads.accumulate(&model[0], T::full(1, 1e200)?)?;
    grads.accumulate(&model[1], T::full(1, 1e38f32)?)?;
    optim::clip_grad_norm(&model, &mut grads, 1e150)?;
    assert!((grads.wrt(&model[0])?.item::<f64>()? / 1e150 - 1.0).abs() < 1e-12);
    assert!((grads.wrt(&model[1])?.item::<f32>()? / 1e-12 - 1.0).abs() < 1e-6);
    Ok(())
}

#[test]
fn gradients_of_very_different_sizes_have_one_norm() -> Result<()> {
    let [large, small, single] = [3e200, 1e-170, 4.0].map(|value| T::full(1, value));
    let model = vec![large?.requires_grad(), small?.requires_grad(), single?.requires_grad()];
    let mut grads = Gradients::new();
    for (x, value) in model.iter().zip([3e200, 1e-170, 4e200]) {
        grads.accumulate(x, T::full(1, value)?)?;
    }
    let norm = optim::clip_grad_norm(&model, &mut grads, 5e199)?;
    assert!((norm / 5e200 - 1.0).abs() < 1e-14, "{norm:e}");
    assert!((grads.wrt(&model[0])?.item::<f64>()? / 3e199 - 1.0).abs() < 1e-14);
    Ok(())
}

#[test]
fn a_norm_that_is_not_finite_is_an_error_if_asked_for() {
    let strict = ClipOptions { max_norm: 1.0, error_if_nonfinite: true };
    for (dtype, values) in [
        (DType::F64, [f64::NAN, 1.0]),
        (DType::F64, [f64::INFINITY, f64::NEG_INFINITY]),
        (DType::F64, [f64::MAX, f64::MAX]),
        (DType::F32, [f64::NAN, 0.0]),
        (DType::F16, [1e9, 1.0]),
    ] {
        let x = T::zeros(2, dtype).unwrap().requires_grad();
        let mut grads = gradients(&x, &values);
        let before = grads.wrt(&x).unwrap().to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
        let error = text(optim::clip_grad_norm_with(&x, &mut grads, strict));
        assert!(error.starts_with("clip_grad_norm: the norm of the gradients is "), "{error}");
        let norm = optim::clip_grad_norm(&x, &mut grads, 1.0).unwrap();
        assert!(!norm.is_finite(), "{norm}");
        let after = grads.wrt(&x).unwrap().to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
        assert_eq!(format!("{after:?}"), format!("{before:?}"));
    }
    let x = T::zeros(2, DType::F32).unwrap().requires_grad();
    let mut grads = gradients(&x, &[3.0, 4.0]);
    assert_eq!(optim::clip_grad_norm_with(&x, &mut grads, strict), Ok(5.0));
}

#[test]
fn a_state_with_an_entry_twice_is_refused() -> Result<()> {
    let mut model = randn((2, 2), 1).requires_grad();
    let mut optimizer: AdamW = AdamW::new(AdamWOptions::default())?;
    let grads = model.square()?.sum(None, false)?.backward()?;
    optimizer.step(&mut model, &grads)?;
    let state = optimizer.state()?;
    for name in state.iter().map(|(name, _)| name.clone()) {
        let mut twice = state.clone();
        let (_, entry) = state.iter().find(|(other, _)| *other == name).unwrap();
        twice.push((name.clone(), entry.mul(0.0)?.to_dtype(entry.dtype())?));
        let error = text(optimizer.load_state(twice));
        assert_eq!(error, format!("adamw: `{name}` appears twice"));
    }
    let values = |state: Vec<(String, T)>| -> Vec<(String, String)> {
        state.into_iter().map(|(name, x)| (name, format!("{x:e}"))).collect()
    };
    assert_eq!(values(optimizer.state()?), values(state));
    Ok(())
}

#[test]
fn ranks_without_a_deadline_and_too_many_ranks() {
    let found = on_ranks(3, |world| {
        let world = world.with_deadline(Duration::MAX);
        world.barrier()?;
        world.all_gather(&T::full(1, world.rank() as f64)?)?[2].to_vec::<f64>()
    });
    assert!(found.iter().all(|found| *found == Ok(vec![2.0])), "{found:?}");
    for size in [0, 1 << 21, usize::MAX] {
        let error = text(World::local(size));
        assert_eq!(error, format!("World::local: expected 1 to 65536 ranks, got {size}"));
    }
}

/// The product, whose gradients have dtypes and shapes of their own.
#[derive(Clone)]
struct Product([fn(&T) -> Result<T>; 2]);

impl CustomOp<CpuBackend> for Product {
    fn name(&self) -> &'static str {
        "product"
    }

    fn forward(
        &self,
        xs: &[&<CpuBackend as Backend>::Tensor],
    ) -> Result<<CpuBackend as Backend>::Tensor> {
        CpuBackend::mul(xs[0], xs[1])
    }

    fn backward(&self, xs: &[&T], _: &T, g: &T) -> Result<Vec<Option<T>>> {
        let [first, second] = &self.0;
        Ok(vec![Some(first(&g.mul(xs[1])?)?), Some(second(&g.mul(xs[0])?)?)])
    }
}

#[test]
fn a_custom_gradient_of_another_dtype_or_shape_names_the_input() -> Result<()> {
    let [a, b] = [1, 2].map(|seed| randn((2, 3), seed).requires_grad());
    let run = |first: fn(&T) -> Result<T>, second: fn(&T) -> Result<T>, b: &T| {
        T::apply(&Product([first, second]), &[&a, b])?.sum(None, false)?.backward()
    };
    let same: fn(&T) -> Result<T> = |g| Ok(g.clone());
    let bool: fn(&T) -> Result<T> = |g| g.to_dtype(DType::Bool);
    let double: fn(&T) -> Result<T> = |g| g.to_dtype(DType::F64);
    let part: fn(&T) -> Result<T> = |g| g.narrow(1, 0, 2);
    for (first, second, expected) in [
        (same, bool, "gradient of input 1: expected f32 of shape [2, 3], got bool of shape [2, 3]"),
        (
            double,
            same,
            "gradient of input 0: expected f32 of shape [2, 3], got f64 of shape [2, 3]",
        ),
        (same, part, "gradient of input 1: expected f32 of shape [2, 3], got f32 of shape [2, 2]"),
    ] {
        assert_eq!(text(run(first, second, &b)), format!("product: {expected}"));
    }
    // One that the input broadcasts to is summed; that of an untracked input is not used.
    let rows: fn(&T) -> Result<T> = |g| g.broadcast_to((4, 2, 3));
    let grads = run(rows, bool, &b.detach())?;
    let expected: Vec<f32> = b.to_vec::<f32>()?.into_iter().map(|x| 4.0 * x).collect();
    assert_eq!(grads.wrt(&a)?.to_vec::<f32>()?, expected);
    Ok(())
}
