//! More elements than one thread goes through: Mesa's CPU device would end a loop after 65,535 rounds without an error.

use swath::prelude::*;
use swath::{ConvOptions, WgpuBackend};

type T = Tensor<WgpuBackend>;

/// Whole numbers from -3 to 3 without a period that a workgroup has, the extremes once each.
fn values(n: usize) -> Vec<f32> {
    let mut values: Vec<f32> = (0..n).map(|i| ((i * 7919) % 65_537 % 5) as f32 - 2.0).collect();
    (values[n - 2], values[n / 3]) = (3.0, -3.0);
    values
}

/// Compares what both backends compute from the values, relative to the largest result, element by element.
fn check(
    what: &str,
    shape: &[usize],
    tolerance: f64,
    wgpu: impl Fn(&T) -> Result<T>,
    cpu: impl Fn(&Tensor<CpuBackend>) -> Result<Tensor<CpuBackend>>,
) {
    let n = shape.iter().product();
    let there = wgpu(&T::from_vec(values(n), shape).unwrap()).unwrap();
    let here = cpu(&Tensor::from_vec(values(n), shape).unwrap()).unwrap();
    assert_eq!((there.shape(), there.dtype()), (here.shape(), here.dtype()), "{what}");
    let wide = |x: Vec<f32>| x.into_iter().map(f64::from).collect::<Vec<f64>>();
    let there = wide(there.to_dtype(DType::F32).unwrap().to_vec().unwrap());
    let here = wide(here.to_dtype(DType::F32).unwrap().to_vec().unwrap());
    let largest = here.iter().fold(1.0, |most: f64, x| most.max(x.abs()));
    for (i, (x, y)) in there.iter().zip(&here).enumerate() {
        let is_close = x == y || (x - y).abs() <= tolerance * largest;
        assert!(is_close, "{what} of {shape:?}: element {i} is {x}, the CPU's {y}");
    }
}

macro_rules! check {
    ($what:expr, $shape:expr, $tolerance:expr, |$x:ident| $f:expr) => {
        check($what, $shape, $tolerance, |$x| $f, |$x| $f)
    };
}

#[test]
fn reductions_of_millions_of_elements() {
    let whole = &[(1 << 23) + 3];
    check!("sum", whole, 0.0, |x| x.sum(None, false));
    check!("mean", whole, 1e-7, |x| x.mean(None, false));
    check!("var", whole, 1e-7, |x| x.variance(None, false, 1));
    check!("norm", whole, 2e-7, |x| x.norm(2.0, None, false));
    check!("norm 3", whole, 1e-6, |x| x.norm(3.0, None, false));
    check!("logsumexp", whole, 1e-6, |x| x.logsumexp(None, false));
    check!("max", whole, 0.0, |x| x.max(None, false));
    check!("min", whole, 0.0, |x| x.min(None, false));
    check!("argmax", whole, 0.0, |x| x.argmax(0, false));
    check!("argmin", whole, 0.0, |x| x.argmin(0, false));
    check!("prod", whole, 1e-6, |x| x.div(1e6)?.add(1.0)?.prod(None, false));
    check!("any", whole, 0.0, |x| x.gt(2.5)?.any(None, false));
    check!("all", whole, 0.0, |x| x.gt(-2.5)?.all(None, false));
    // Several results, of axes that are not the last.
    let many = &[50_000, 5, 3];
    check!("sum of columns", many, 0.0, |x| x.sum(Some(&[0]), false));
    check!("var of columns", many, 1e-6, |x| x.variance(Some(&[0, 2]), true, 0));
    check!("any of columns", many, 0.0, |x| x.gt(2.5)?.any(Some(&[0]), false));
    check!("argmax of columns", many, 0.0, |x| x.argmax(0, true));
    check!("integers", many, 0.0, |x| x.to_dtype(DType::I64)?.sum(Some(&[0]), false));
}

#[test]
fn scans_of_millions_of_elements() {
    check!("cumsum", &[(1 << 23) + 3], 0.0, |x| x.cumsum(0));
    check!("cumsum along the first axis", &[40_001, 3, 2], 0.0, |x| x.cumsum(0));
    check!("integers", &[2, 40_001], 0.0, |x| x.to_dtype(DType::I64)?.cumsum(1));
    check!("cumprod", &[70_000], 1e-6, |x| x.div(1e5)?.add(1.0)?.cumprod(0));
}

#[test]
fn products_of_great_depth() {
    let k = 65_553;
    for [m, n] in [[3, 5], [34, 33]] {
        check!("matmul", &[m + n, k], 0.0, |x| {
            x.narrow(0, 0, m)?.matmul(&x.narrow(0, m, n)?.t()?)
        });
    }
    check!("batches", &[2, 4, 20_000], 0.0, |x| x.matmul(&x.swap_axes(1, 2)?));
    check!("16 bits", &[2, 2, 20_000], 1e-3, |x| {
        let x = x.to_dtype(DType::F16)?;
        x.matmul(&x.swap_axes(1, 2)?)
    });
}

#[test]
fn gradients_of_filters_over_many_pixels() {
    fn gradient<B: Backend>(x: &Tensor<B>) -> Result<Tensor<B>> {
        let w = Tensor::<B>::from_vec(values(2 * 3 * 9), (2, 3, 3, 3))?;
        let w = w.to_dtype(x.dtype())?.requires_grad();
        let y = x.conv2d(&w, None, ConvOptions::default())?;
        y.sum(None, false)?.backward()?.wrt(&w).cloned()
    }
    check("conv2d", &[2, 3, 190, 190], 0.0, gradient, gradient);
    check!("16 bits", &[1, 3, 60, 60], 1e-3, |x| gradient(&x.to_dtype(DType::F16)?));
}

#[test]
fn additions_to_one_place() {
    fn index<B: Backend>(last: i64) -> Result<Tensor<B>> {
        let mut places: Vec<i64> = (0..70_000).map(|i| i % 3).collect();
        places[69_998] = last;
        Tensor::from_vec(places, (1, 70_000))
    }
    fn add<B: Backend>(x: &Tensor<B>, last: i64) -> Result<Tensor<B>> {
        Tensor::<B>::zeros((1, 3), DType::F32)?.scatter_add(1, &index(last)?, x)
    }
    let shape = &[1, 70_000];
    check("scatter_add", shape, 0.0, |x| add(x, 1), |x| add(x, 1));
    // The entry is in a later dispatch.
    let x = T::from_vec(values(70_000), shape).unwrap();
    let error = add(&x, 3).and_then(|y| y.to_vec::<f32>()).unwrap_err();
    assert!(matches!(error, Error::IndexOutOfRange { index: 3, axis: 1, .. }), "{error}");
}

#[test]
fn rows_of_a_million_elements() {
    let shape = &[2, (1 << 20) + 5];
    check!("softmax", shape, 1e-6, |x| x.softmax(1));
    check!("log_softmax", shape, 1e-6, |x| x.log_softmax(1));
    check!("layer_norm", shape, 1e-5, |x| x.layer_norm(None, None, 1e-5));
    check!("dot", &[(1 << 20) + 5], 1e-6, |x| x.dot(x));
}
