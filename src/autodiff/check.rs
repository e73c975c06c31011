//! Checks derivatives by finite differences.

use crate::backend::Backend;
use crate::dtype::{DType, Element, HostData, Scalar, for_dtype};
use crate::error::{Error, Result};
use crate::rng::Rng;
use crate::shape::Shape;
use crate::tensor::Tensor;

use super::backward::{Backward, Keep};
use super::gradients::Gradients;
use super::mode::no_grad;

/// Options of [`check_gradients`].
#[derive(Clone, Copy, Debug)]
pub struct GradCheck {
    /// 1 checks the gradient. 2 also checks the recorded gradient (`create_graph`) and its own
    /// gradient.
    pub order: u32,
    /// Half the distance between the two points of a difference; 1e-5 for `F64` and 1e-2 for other
    /// dtypes if `None`.
    pub eps: Option<f64>,
    /// Relative tolerance; 1e-5 for `F64` and 2e-2 for other dtypes if `None`.
    pub rtol: Option<f64>,
    /// Absolute tolerance; 1e-7 for `F64` and 1e-2 for other dtypes if `None`.
    pub atol: Option<f64>,
    /// Number of random directions, at least one, for inputs of more than 32 elements; smaller
    /// inputs are checked element by element.
    pub directions: usize,
    /// Seed of the random projections.
    pub seed: u64,
}

impl Default for GradCheck {
    fn default() -> Self {
        GradCheck { order: 1, eps: None, rtol: None, atol: None, directions: 8, seed: 0 }
    }
}

/// Computes the gradient of `f`, which returns one element, at `x` by central differences:
/// `(f(x + eps·e) - f(x - eps·e)) / (2·eps)` for every element.
///
/// ```
/// use swath::prelude::*;
/// let x = tensor![f64; 1.0, 2.0];
/// let g = numerical_gradient(|x| x.square()?.sum(None, false), &x, 1e-6)?;
/// assert!((g.to_vec::<f64>()?[1] - 4.0).abs() < 1e-6);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::NotScalar`] if `f` returns more than one element; `f`'s own.
pub fn numerical_gradient<B: Backend>(
    f: impl Fn(&Tensor<B>) -> Result<Tensor<B>>,
    x: &Tensor<B>,
    eps: f64,
) -> Result<Tensor<B>> {
    differences(&f, x, eps)
}

/// A function of one tensor, behind a pointer so that what calls it is compiled once.
type One<'a, B> = &'a dyn Fn(&Tensor<B>) -> Result<Tensor<B>>;

/// A function of several tensors.
type Several<'a, B> = &'a dyn Fn(&[Tensor<B>]) -> Result<Tensor<B>>;

fn differences<B: Backend>(f: One<'_, B>, x: &Tensor<B>, eps: f64) -> Result<Tensor<B>> {
    let value = |x: &Tensor<B>| -> Result<f64> {
        let y = no_grad(|| f(x))?;
        if y.numel() != 1 {
            return Err(Error::NotScalar { shape: *y.shape() });
        }
        Ok(B::item(y.data())?.to_f64())
    };
    x.check_float("numerical_gradient")?;
    let point = values_of(x)?;
    let mut slopes = Vec::with_capacity(point.len());
    for i in 0..point.len() {
        // The step is measured after rounding to the dtype.
        let moved = |by: f64| -> Result<(f64, f64)> {
            let mut values = point.clone();
            values[i] += by;
            let moved = tensor_like(x, &values)?;
            Ok((value(&moved)?, values_of(&moved)?[i]))
        };
        let ((high, high_x), (low, low_x)) = (moved(eps)?, moved(-eps)?);
        slopes.push((high - low) / (high_x - low_x));
    }
    tensor_like(x, &slopes)
}

/// Compares the gradients of `f` at `inputs` with central differences.
///
/// The output is projected onto random weights, so that one pass checks all of its elements. Inputs
/// of up to 32 elements are checked element by element, larger ones along random directions.
///
/// ```
/// use swath::prelude::*;
/// let x = tensor![f64; 0.5, -1.0];
/// check_gradients(|xs: &[Tensor<CpuBackend>]| xs[0].tanh(), &[&x], GradCheck::default())?;
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::GradientCheck`] names the input, the element or direction, and both values; errors of
/// `f`.
pub fn check_gradients<B: Backend>(
    f: impl Fn(&[Tensor<B>]) -> Result<Tensor<B>>,
    inputs: &[&Tensor<B>],
    options: GradCheck,
) -> Result<()> {
    check_orders(&f, inputs, options)
}

fn check_orders<B: Backend>(
    f: Several<'_, B>,
    inputs: &[&Tensor<B>],
    options: GradCheck,
) -> Result<()> {
    if !(1..=2).contains(&options.order) {
        let reason = format!("order must be 1 or 2, got {}", options.order);
        return Err(Error::InvalidArgument { op: "check_gradients", reason });
    }
    inputs.iter().try_for_each(|x| x.check_float("check_gradients"))?;
    check_first_order(f, inputs, options)?;
    if options.order == 2 {
        let mut rng = Rng::seed(options.seed ^ 0x5eed_0f02);
        let weights =
            inputs.iter().map(|x| random_like(x, &mut rng)).collect::<Result<Vec<_>>>()?;
        let slope = |xs: &[Tensor<B>]| projected_gradient(f, xs, &weights, options);
        let first = GradCheck { order: 1, ..options };
        check_first_order(&slope, inputs, first).map_err(|error| match error {
            Error::GradientCheck { report } => {
                Error::GradientCheck { report: format!("second order: {report}") }
            }
            error => error,
        })?;
    }
    Ok(())
}

/// `Σ weights_i · df/dx_i`, where f is projected onto random weights, recorded for another
/// derivative.
fn projected_gradient<B: Backend>(
    f: Several<'_, B>,
    xs: &[Tensor<B>],
    weights: &[Tensor<B>],
    options: GradCheck,
) -> Result<Tensor<B>> {
    // The points of a difference are untracked, but their gradients are needed here.
    let xs: &[Tensor<B>] = &xs.iter().map(Tensor::requires_grad).collect::<Vec<_>>();
    let gradients = crate::runtime::recording::with_recording(true, || {
        let y = f(xs)?;
        let upstream = random_like(&y, &mut Rng::seed(options.seed))?;
        let opts = Backward { create_graph: true, keep: Keep::Leaves, ..Backward::default() };
        B::engine_backward(&y, upstream, opts)
    })?;
    let wide = B::wide(None);
    let mut total = Tensor::zeros(Shape::scalar(), wide)?;
    for (x, weight) in xs.iter().zip(weights) {
        if let Some(gradient) = gradients.get(x) {
            let part = gradient.mul(weight)?.sum(None, false)?;
            total = total.add(&part.to_dtype(wide)?)?;
        }
    }
    Ok(total)
}

fn check_first_order<B: Backend>(
    f: Several<'_, B>,
    inputs: &[&Tensor<B>],
    options: GradCheck,
) -> Result<()> {
    let points: Vec<Tensor<B>> = inputs.iter().map(|x| x.detach()).collect();
    let leaves: Vec<Tensor<B>> = points.iter().map(Tensor::requires_grad).collect();
    let y = f(&leaves)?;
    let mut rng = Rng::seed(options.seed);
    let weights = random_like(&y, &mut rng)?;
    let gradients = gradients_of(&y, &weights, options)?;
    let loss = |xs: &[Tensor<B>]| -> Result<f64> {
        let y = no_grad(|| f(xs))?;
        let wide = B::wide(Some(y.data()));
        let dot = y.to_dtype(wide)?.mul(&weights.to_dtype(wide)?)?;
        Ok(B::item(dot.sum(None, false)?.data())?.to_f64())
    };
    for (i, leaf) in leaves.iter().enumerate() {
        let analytic = |(name, gradients): &(&'static str, Gradients<B>)| {
            // An untracked output claims that the derivative is 0, which is checked too.
            let zeros = || Ok(vec![0.0; leaf.numel()]);
            Ok((*name, gradients.get(leaf).map_or_else(zeros, values_of)?))
        };
        let analytic = gradients.iter().map(analytic).collect::<Result<Vec<_>>>()?;
        let point = values_of(leaf)?;
        for (along, direction) in directions(point.len(), options, &mut rng)? {
            let double = leaf.dtype() == DType::F64;
            let eps = options.eps.unwrap_or(if double { 1e-5 } else { 1e-2 });
            let at = |by: f64| -> Result<(f64, Vec<f64>)> {
                let moved: Vec<f64> =
                    point.iter().zip(&direction).map(|(x, d)| d.mul_add(by, *x)).collect();
                let mut xs = points.clone();
                xs[i] = tensor_like(leaf, &moved)?;
                // The step is measured after rounding to the dtype.
                Ok((loss(&xs)?, values_of(&xs[i])?))
            };
            let ((high, high_x), (low, low_x)) = (at(eps)?, at(-eps)?);
            let numeric = (high - low) / (2.0 * eps);
            for (name, analytic) in &analytic {
                let steps = high_x.iter().zip(&low_x).map(|(h, l)| h - l);
                let expected: f64 = analytic.iter().zip(steps).map(|(g, step)| g * step).sum();
                let expected = expected / (2.0 * eps);
                let rtol = options.rtol.unwrap_or(if double { 1e-5 } else { 2e-2 });
                let atol = options.atol.unwrap_or(if double { 1e-7 } else { 1e-2 });
                let allowed = rtol.mul_add(numeric.abs().max(expected.abs()), atol);
                let difference = (numeric - expected).abs();
                if difference.is_nan() || allowed.is_nan() || difference > allowed {
                    let report = format!(
                        "input {i} of shape {}, {along}: {name} {expected:e}, finite difference \
                         {numeric:e}, allowed difference {allowed:e}",
                        leaf.shape()
                    );
                    return Err(Error::GradientCheck { report });
                }
            }
        }
    }
    Ok(())
}

/// The gradients of a plain pass and, to check a higher order, of a recorded one. Fused ops compute these in another way,
/// by the composite.
fn gradients_of<B: Backend>(
    y: &Tensor<B>,
    weights: &Tensor<B>,
    options: GradCheck,
) -> Result<Vec<(&'static str, Gradients<B>)>> {
    let recorded = Backward { create_graph: true, ..Backward::default() };
    let passes = [("recorded gradient", recorded), ("gradient", Backward::default())];
    let gradients = passes.into_iter().skip(usize::from(options.order == 1)).map(|(name, pass)| {
        let gradients = match y.is_tracked() {
            true => B::engine_backward(y, weights.clone(), pass)?,
            false => Gradients::new(),
        };
        Ok((name, gradients))
    });
    gradients.collect()
}

/// Unit vectors for small inputs, random directions for large ones.
fn directions(len: usize, options: GradCheck, rng: &mut Rng) -> Result<Vec<(String, Vec<f64>)>> {
    if len <= 32 {
        let unit = |i| (0..len).map(|j| f64::from(u8::from(i == j))).collect();
        return Ok((0..len).map(|i| (format!("element {i}"), unit(i))).collect());
    }
    let random = |i| Ok((format!("direction {i}"), rng.uniform_vec(len, -1.0..1.0)?));
    (0..options.directions.max(1)).map(random).collect()
}

fn values_of<B: Backend>(x: &Tensor<B>) -> Result<Vec<f64>> {
    let host = B::to_host(x.data())?;
    Ok((0..host.len()).filter_map(|i| host.get(i)).map(Scalar::to_f64).collect())
}

/// A tensor of these values with the shape and dtype of `x`.
fn tensor_like<B: Backend>(x: &Tensor<B>, values: &[f64]) -> Result<Tensor<B>> {
    let host: HostData = for_dtype!(x.dtype(), T => {
        T::into_host(values.iter().map(|&v| T::from_scalar(Scalar::Float(v))).collect())
    });
    Ok(Tensor::from_data(B::from_host(host, *x.shape())?))
}

/// Random weights of magnitude at least 0.5, so that every element is checked.
fn random_like<B: Backend>(x: &Tensor<B>, rng: &mut Rng) -> Result<Tensor<B>> {
    let signed = rng.uniform_vec::<f64>(x.numel(), -1.0..1.0)?;
    let values: Vec<f64> = signed.iter().map(|v| v + 0.5f64.copysign(*v)).collect();
    tensor_like(x, &values)
}
