//! Pooling against the composites on the reference backend.

use crate::testing::suite::Tested;
use swath::PoolOptions;
use swath::prelude::*;

type R = Tensor<ReferenceBackend>;

pub fn numbers<B: Backend>(x: &Tensor<B>) -> Vec<f64> {
    let x: R = x.detach().to_backend().unwrap();
    x.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap()
}

pub fn close(what: &str, x: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(x.len(), expected.len(), "{what}");
    for (i, (x, y)) in x.iter().zip(expected).enumerate() {
        assert!((x - y).abs() <= tolerance, "{what}, element {i}: {x} instead of {y}");
    }
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
                    mean_agrees::<B>(&what, &x, dtype, B::SLACK * tolerance, options).unwrap();
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
