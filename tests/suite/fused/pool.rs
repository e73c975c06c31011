//! Pooling: against PyTorch, and against the composites on the reference backend.

use swath::PoolOptions;
use swath::prelude::*;

use crate::support::agree::Tested;
use crate::support::vectors::Vectors;

type T = Tensor<CpuBackend>;
type R = Tensor<ReferenceBackend>;

fn numbers<B: Backend>(x: &Tensor<B>) -> Vec<f64> {
    let x: R = x.detach().to_backend().unwrap();
    x.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap()
}

fn close(what: &str, x: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(x.len(), expected.len(), "{what}");
    for (i, (x, y)) in x.iter().zip(expected).enumerate() {
        assert!((x - y).abs() <= tolerance, "{what}, element {i}: {x} instead of {y}");
    }
}

/// Compares the values and gradients of a pooling with PyTorch, in two types.
fn check(name: &str, f: impl Fn(&T) -> Result<(T, Option<T>)>) {
    let vectors = Vectors::read(include_str!("../../vectors/conv.txt"));
    for (dtype, tolerance) in [(DType::F64, 1e-15), (DType::F32, 5e-7)] {
        let get = |part: &str| vectors.input(&format!("{name}/{part}"), dtype);
        let x = get("x").requires_grad();
        let (y, positions) = f(&x).unwrap();
        assert_eq!(y.shape(), get("y").shape(), "{name}");
        close(&format!("{name}, {dtype}, y"), &numbers(&y), &numbers(&get("y")), tolerance);
        if let Some(positions) = positions {
            assert_eq!(numbers(&positions), numbers(&get("positions")), "{name}");
        }
        let grads = y.backward_with(&get("g")).unwrap();
        let dx = numbers(grads.wrt(&x).unwrap());
        close(&format!("{name}, {dtype}, dx"), &dx, &numbers(&get("dx")), 4.0 * tolerance);
    }
}

#[test]
fn pytorch_poolings_and_their_gradients() {
    let options = PoolOptions { stride: Some([2, 1]), padding: [1, 1], ..PoolOptions::new([3, 2]) };
    let max = |options| {
        move |x: &T| x.max_pool2d_with_positions(options).map(|(y, positions)| (y, Some(positions)))
    };
    check("max", max(options));
    check("max_ceil", max(PoolOptions { ceil_mode: true, ..PoolOptions::default() }));
    let dilated = PoolOptions { stride: Some([1]), dilation: [2], ..PoolOptions::new([3]) };
    check("max_dilated", |x| {
        x.max_pool1d_with_positions(dilated).map(|(y, positions)| (y, Some(positions)))
    });
    let counted = PoolOptions { count_include_pad: true, ..options };
    check("avg", |x| Ok((x.avg_pool2d(counted)?, None)));
    let inside = PoolOptions { stride: Some([2, 2]), padding: [1, 1], ..PoolOptions::new([3, 3]) };
    check("avg_inside", |x| Ok((x.avg_pool2d(inside)?, None)));
    let ceil = PoolOptions { ceil_mode: true, ..PoolOptions::new([3]) };
    check("avg_ceil", |x| Ok((x.avg_pool1d(ceil)?, None)));
    let counted = PoolOptions {
        stride: Some([2, 3]),
        padding: [1, 2],
        ceil_mode: true,
        count_include_pad: true,
        ..PoolOptions::new([3, 4])
    };
    check("avg_ceil_padding", |x| Ok((x.avg_pool2d(counted)?, None)));
    let short = PoolOptions { stride: Some([2]), ceil_mode: true, ..PoolOptions::new([3]) };
    check("max_short", |x| {
        x.max_pool1d_with_positions(short).map(|(y, positions)| (y, Some(positions)))
    });
}

/// Images with ties, NaN and infinities, in every float type, also with permuted axes.
pub fn poolings_agree<B: Tested>() {
    let mut rng = Rng::seed(21);
    let mut i = 0;
    for kernel in [[1, 1], [2, 2], [3, 2], [2, 5]] {
        for stride in [None, Some([1, 1]), Some([2, 3])] {
            for (dilation, ceil_mode) in [([1, 1], false), ([1, 1], true), ([2, 1], true)] {
                let options = PoolOptions {
                    stride,
                    padding: [kernel[0] / 2, kernel[1] / 2],
                    dilation,
                    ceil_mode,
                    count_include_pad: i % 2 == 0,
                    ..PoolOptions::new(kernel)
                };
                i += 1;
                let x = R::randn((2, 3, 6, 2 + 97 * (i % 7)), &mut rng).unwrap();
                let x = x.mul(4.0).and_then(|x| x.round()?.to_dtype(DType::F64)).unwrap();
                for (dtype, tolerance) in [
                    (DType::F64, 1e-14),
                    (DType::F32, 1e-6),
                    (DType::F16, 2e-2),
                    (DType::BF16, 2e-2),
                ] {
                    if !B::DTYPES.contains(&dtype) {
                        continue;
                    }
                    let what = format!("{dtype} {options:?}");
                    max_agrees::<B>(&what, &x, dtype, options).unwrap();
                    if dilation == [1, 1] {
                        mean_agrees::<B>(&what, &x, dtype, B::SLACK * tolerance, options).unwrap();
                    }
                }
            }
        }
    }
}

fn max_agrees<B: Backend>(what: &str, x: &R, dtype: DType, options: PoolOptions<2>) -> Result<()> {
    let mut values = numbers(x);
    values.iter_mut().step_by(41).for_each(|x| *x = f64::NEG_INFINITY);
    values.iter_mut().skip(3).step_by(57).for_each(|x| *x = f64::NAN);
    let plain = R::from_vec(values.clone(), *x.shape())?.requires_grad();
    let (expected, expected_positions) = plain.max_pool2d_with_positions(options)?;
    let x: Tensor<B> = R::from_vec(values, *x.shape())?.to_dtype(dtype)?.to_backend()?;
    let x = x.permute(&[0, 2, 3, 1])?.contiguous()?.permute(&[0, 3, 1, 2])?.requires_grad();
    let (y, positions) = x.max_pool2d_with_positions(options)?;
    assert_eq!(y.dtype(), dtype, "{what}");
    let bits = |x: Vec<f64>| {
        x.into_iter().map(|x| if x.is_nan() { 1 } else { x.to_bits() }).collect::<Vec<_>>()
    };
    assert!(bits(numbers(&y)) == bits(numbers(&expected)), "{what}");
    assert!(numbers(&positions) == numbers(&expected_positions), "{what}");
    assert!(bits(numbers(&x.max_pool2d(options)?)) == bits(numbers(&expected)), "{what}");
    // Small integers, whose sums are exact in every type.
    let g: Vec<f64> = numbers(&positions).into_iter().map(|position| position % 3.0).collect();
    let plain_g = R::from_vec(g.clone(), *y.shape())?;
    let g: Tensor<B> = plain_g.to_dtype(dtype)?.to_backend()?;
    let dx = numbers(y.backward_with(&g)?.wrt(&x)?);
    assert!(dx == numbers(expected.backward_with(&plain_g)?.wrt(&plain)?), "{what}");
    Ok(())
}

fn mean_agrees<B: Backend>(
    what: &str,
    x: &R,
    dtype: DType,
    tolerance: f64,
    options: PoolOptions<2>,
) -> Result<()> {
    let plain = x.requires_grad();
    let x: Tensor<B> = x.to_dtype(dtype)?.to_backend()?;
    let x = x.requires_grad();
    let (y, expected) = (x.avg_pool2d(options)?, plain.avg_pool2d(options)?);
    assert_eq!(y.dtype(), dtype, "{what}");
    close(what, &numbers(&y), &numbers(&expected), tolerance);
    let dx = y.backward_with(&y.detach())?;
    let expected = expected.backward_with(&R::from_vec(numbers(&y), *y.shape())?)?;
    close(what, &numbers(dx.wrt(&x)?), &numbers(expected.wrt(&plain)?), 2.0 * tolerance);
    Ok(())
}

#[test]
fn poolings_that_do_not_fit_are_errors() {
    let x = T::zeros((1, 2, 3, 4), DType::F32).unwrap();
    let error = |y: Result<T>| y.unwrap_err().to_string();
    let large = PoolOptions::new([4, 1]);
    assert!(error(x.max_pool2d(large)).starts_with(
        "max_pool2d: axis 0 of images of shape [1, 2, 3, 4]: the window is larger than the padded image; got kernel 4"
    ));
    for (options, text) in [
        (
            PoolOptions { padding: [2, 0], ..PoolOptions::new([3, 3]) },
            "the padding must be at most half the kernel; got kernel 3",
        ),
        (
            PoolOptions { stride: Some([0, 1]), ..PoolOptions::default() },
            "the stride must be at least 1",
        ),
        (
            PoolOptions { dilation: [0, 1], ..PoolOptions::default() },
            "the dilation must be at least 1",
        ),
        (PoolOptions::new([0, 1]), "the kernel must be at least 1"),
        // The dilation makes both taps of a window fall into the padding.
        (
            PoolOptions { dilation: [4, 1], padding: [1, 0], ..PoolOptions::new([2, 1]) },
            "expected a pixel in every window",
        ),
    ] {
        let error = error(x.max_pool2d(options));
        assert!(error.contains(text), "{options:?}: {error}");
    }
    let dilated = PoolOptions { dilation: [2, 1], ..PoolOptions::default() };
    assert!(error(x.avg_pool2d(dilated)).contains("dilation [2, 1] must be 1"));
    assert!(
        error(x.to_dtype(DType::I64).unwrap().max_pool2d(PoolOptions::default())).contains("i64")
    );
    assert!(error(x.max_pool1d(PoolOptions::default())).contains("expected 3 axes"));
    let empty = T::zeros((0, 2, 3, 4), DType::F32).unwrap();
    assert_eq!(empty.max_pool2d(PoolOptions::default()).unwrap().dims(), [0, 2, 1, 2]);
}
