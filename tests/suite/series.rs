//! Programs of the tutorial series "Deep Learning from Scratch in Rust", from which swath developed,
//! rewritten with `?`.

use swath::prelude::*;
use swath::{AnyBackend, Device, Keep, broadcast_index, broadcast_shape};

type T = Tensor<CpuBackend>;

fn close(a: &[f32], b: &[f32], tolerance: f32) {
    assert_eq!(a.len(), b.len());
    for (x, y) in a.iter().zip(b) {
        assert!((x - y).abs() <= tolerance * y.abs().max(1.0), "{a:?} against {b:?}");
    }
}

#[test]
fn shapes_and_strides() -> Result<()> {
    let shape = Shape::new(vec![2, 3]);
    assert_eq!(shape.ndim(), 2);
    assert_eq!(shape.rank(), 2);
    assert_eq!(shape.numel(), 6);
    assert_eq!(shape.dim(1), 3);
    assert_eq!(shape.contiguous_strides().as_slice(), &[3, 1]);
    let out = broadcast_shape(&Shape::new(vec![2, 1, 3]), &Shape::new(vec![4, 1]))?;
    assert_eq!(out.dims(), &[2, 4, 3]);
    assert!(broadcast_shape(&Shape::new(vec![2]), &Shape::new(vec![3])).is_err());
    assert_eq!(broadcast_index(&[1, 2, 0], &Shape::new(vec![1, 3])), [0, 0]);
    Ok(())
}

#[test]
fn broadcasting_forward_and_backward() -> Result<()> {
    let a = T::var(
        "a",
        CpuBackend::from_vec(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0], Shape::new(vec![2, 3]))?,
    );
    let b = T::var("b", CpuBackend::from_vec(vec![10.0, 20.0, 30.0], Shape::new(vec![3]))?);
    let y = &a * &b;
    assert_eq!(y.to_vec::<f32>()?, [10., 40., 90., 40., 100., 180.]);
    let grads = y.sum(None, false)?.backward()?;
    assert_eq!(grads.wrt(&a)?.to_vec::<f32>()?, [10., 20., 30., 10., 20., 30.]);
    assert_eq!(grads.wrt(&b)?.to_vec::<f32>()?, [5., 7., 9.]);
    assert_eq!(grads.wrt(&b)?.shape(), b.shape());
    Ok(())
}

#[test]
fn sum_to_is_the_adjoint_of_broadcast_to() -> Result<()> {
    let x = T::arange(0., 24., 1.)?.reshape((2, 3, 4))?;
    assert_eq!(x.sum_to((3, 1))?.to_vec::<f32>()?, [60., 92., 124.]);
    assert_eq!(x.sum_to(())?.item::<f32>()?, 276.);
    assert!(x.sum_to(5).is_err());
    let summed = CpuBackend::sum_to(x.data(), &Shape::new(vec![4]))?;
    assert_eq!(T::from_data(summed).to_vec::<f32>()?, [60., 66., 72., 78.]);
    Ok(())
}

#[test]
fn reductions_with_axes_and_keepdims() -> Result<()> {
    let x = T::var(
        "x",
        CpuBackend::from_vec((1..=6).map(|i| i as f32).collect(), Shape::new(vec![2, 3]))?,
    );
    assert_eq!(x.sum(Some(&[0]), false)?.to_vec::<f32>()?, [5., 7., 9.]);
    assert_eq!(x.sum(Some(&[1]), true)?.dims(), &[2, 1]);
    assert_eq!(x.mean(Some(&[1]), false)?.to_vec::<f32>()?, [2., 5.]);
    assert_eq!(x.max(Some(&[0]), true)?.to_vec::<f32>()?, [4., 5., 6.]);
    assert_eq!(x.sum(None, true)?.dims(), &[1, 1]);
    let grads = x.mean(Some(&[0]), true)?.square()?.sum(None, false)?.backward()?;
    assert_eq!(grads.wrt(&x)?.to_vec::<f32>()?, [2.5, 3.5, 4.5, 2.5, 3.5, 4.5]);
    let grads = x.max(Some(&[1]), false)?.sum(None, false)?.backward()?;
    assert_eq!(grads.wrt(&x)?.to_vec::<f32>()?, [0., 0., 1., 0., 0., 1.]);
    Ok(())
}

/// The gradient of a maximum, written on the backend as the series does.
#[test]
fn the_gradient_of_max_on_the_backend() -> Result<()> {
    let x = CpuBackend::from_vec(vec![1.0, 5.0, 2.0], Shape::new(vec![3]))?;
    let max = CpuBackend::max(&x, None, true)?;
    let g = CpuBackend::ones(Shape::new(vec![3]))?;
    let masked = CpuBackend::mul(&g, &CpuBackend::eq(&x, &max)?)?;
    assert_eq!(T::from_data(masked).to_vec::<f32>()?, [0., 1., 0.]);
    Ok(())
}

#[test]
fn batched_matmul_and_its_gradients() -> Result<()> {
    let mut rng = Rng::seed(3);
    let a = T::randn((2, 3, 4), &mut rng)?.requires_grad();
    let b = T::randn((4, 5), &mut rng)?.requires_grad();
    let y = a.matmul(&b)?;
    assert_eq!(y.dims(), &[2, 3, 5]);
    let grads = y.sum(None, false)?.backward()?;
    // With an upstream gradient of ones, dA[.., i, k] = Σ_j B[k, j] and dB[k, j] = Σ A[.., k].
    let row_sums = b.sum(Some(&[1]), false)?.to_vec::<f32>()?;
    let expected: Vec<f32> = row_sums.iter().copied().cycle().take(24).collect();
    close(&grads.wrt(&a)?.to_vec::<f32>()?, &expected, 1e-5);
    let col_sums = a.sum(Some(&[0, 1]), false)?.to_vec::<f32>()?;
    let expected: Vec<f32> = col_sums.iter().flat_map(|&s| [s; 5]).collect();
    close(&grads.wrt(&b)?.to_vec::<f32>()?, &expected, 1e-5);
    Ok(())
}

#[test]
fn numerical_check() -> Result<()> {
    let x = T::var("x", CpuBackend::from_vec(vec![1.0, 2.0, 3.0], Shape::new(vec![3]))?);
    let f = |x: &T| x.mul(x)?.exp()?.log()?.sum(None, false);
    let numeric = numerical_gradient(f, &x, 1e-2)?;
    let grads = f(&x)?.backward()?;
    close(&grads.wrt(&x)?.to_vec::<f32>()?, &numeric.to_vec::<f32>()?, 1e-2);
    Ok(())
}

#[test]
fn gradients_of_intermediates_with_keep_all() -> Result<()> {
    let x = T::var("x", CpuBackend::from_vec(vec![1.0, 2.0], Shape::new(vec![2]))?);
    let y = x.exp()?;
    let z = y.sum(None, false)?;
    let grads = z.backward_opts(Backward { keep: Keep::All, ..Default::default() })?;
    assert_eq!(grads.get(&y).expect("kept").to_vec::<f32>()?, [1.0, 1.0]);
    Ok(())
}

#[test]
fn gradients_accumulate_on_the_backend() -> Result<()> {
    let mut total = CpuBackend::zeros(Shape::new(vec![2]))?;
    for _ in 0..3 {
        CpuBackend::accumulate_grad(&mut total, &CpuBackend::from_vec(vec![1.0, 2.0], 2)?)?;
    }
    let twin = CpuBackend::clone_tensor(&total);
    assert_eq!(T::from_data(twin).to_vec::<f32>()?, [3.0, 6.0]);
    let scaled = CpuBackend::mul(&total, &CpuBackend::scalar(0.5)?)?;
    assert_eq!(T::from_data(scaled).to_vec::<f32>()?, [1.5, 3.0]);
    Ok(())
}

/// The backend chosen when the program is compiled, and the device of [`AnyBackend`] that is the same.
#[cfg(debug_assertions)]
type DefaultBackend = CpuBackend;
#[cfg(debug_assertions)]
const DEFAULT_DEVICE: Device = Device::Cpu;
#[cfg(not(debug_assertions))]
type DefaultBackend = ReferenceBackend;
#[cfg(not(debug_assertions))]
const DEFAULT_DEVICE: Device = Device::Reference;

/// Trains `y = x·w + b` by gradient descent on any backend; returns the first and the last loss.
fn train_model<B: Backend>(steps: usize) -> Result<(f32, f32)> {
    let xs: Vec<f32> = (0..16).map(|i| i as f32 / 8.0 - 1.0).collect();
    let ys = xs.iter().map(|x| 3.0 * x - 0.5).collect();
    let x = Tensor::<B>::from_data(B::from_vec(xs, (16, 1))?);
    let y = Tensor::<B>::from_data(B::from_vec(ys, (16, 1))?);
    let mut w = Tensor::<B>::var("w", B::zeros((1, 1))?);
    let mut b = Tensor::<B>::var("b", B::zeros(1)?);
    let mut losses = Vec::new();
    for _ in 0..steps {
        let loss = (x.matmul(&w)? + &b - &y).square()?.mean(None, false)?;
        losses.push(loss.item::<f32>()?);
        let grads = loss.backward()?;
        let updated = |name, p: &Tensor<B>| -> Result<Tensor<B>> {
            let next = no_grad(|| p.sub(grads.wrt(p)?.mul_scalar(0.5)?))?;
            Ok(Tensor::var(name, next.data().clone()))
        };
        (w, b) = (updated("w", &w)?, updated("b", &b)?);
    }
    Ok((losses[0], losses[losses.len() - 1]))
}

#[test]
fn one_program_trains_on_every_backend() -> Result<()> {
    let (first, last) = train_model::<DefaultBackend>(50)?;
    assert!(first > 1.0 && last < 1e-4, "{first} {last}");
    let (first, last) = train_model::<ReferenceBackend>(50)?;
    assert!(first > 1.0 && last < 1e-4, "{first} {last}");
    Ok(())
}

#[test]
fn choices_when_compiled_and_when_run_give_equal_losses() -> Result<()> {
    let compiled = train_model::<DefaultBackend>(50)?;
    let chosen = AnyBackend::with_device(DEFAULT_DEVICE, || train_model::<AnyBackend>(50))?;
    assert_eq!(chosen, compiled);
    // One program, two devices, in the order that a user asks for them.
    let on = |name: &str| {
        AnyBackend::with_device(name.parse::<Device>()?, || train_model::<AnyBackend>(50))
    };
    assert_eq!(on("cpu")?, train_model::<CpuBackend>(50)?);
    assert_eq!(on("reference")?, train_model::<ReferenceBackend>(50)?);
    Ok(())
}
