//! Values of basic operations: creation, views, conversion, softmax against the reference backend, and reuse
//! of buffers by operators.

use swath::prelude::*;

type T = Tensor<CpuBackend>;
type R = Tensor<ReferenceBackend>;

fn values(x: &T) -> Vec<f32> {
    x.to_vec::<f32>().unwrap()
}

#[test]
fn creation() -> Result<()> {
    assert_eq!(values(&T::eye(3, DType::F32)?), [1., 0., 0., 0., 1., 0., 0., 0., 1.]);
    assert_eq!(values(&T::arange(1., 2., 0.25)?), [1., 1.25, 1.5, 1.75]);
    assert_eq!(values(&T::arange(3., 0., -1.5)?), [3., 1.5]);
    assert_eq!(T::arange_as(250., 256., 2., DType::U8)?.to_vec::<u8>()?, [250, 252, 254]);
    assert!(T::arange_as(250., 260., 1., DType::U8).is_err());
    assert!(T::arange_as(0., 1., 0.25, DType::I64).is_err());
    assert_eq!(values(&T::linspace(0., 1., 5)?), [0., 0.25, 0.5, 0.75, 1.]);
    assert_eq!(values(&T::linspace(2., 9., 1)?), [2.]);
    assert_eq!(T::linspace(0., 1., 0)?.numel(), 0);
    let wide = T::linspace_as(-1.7e308, 1.7e308, 3, DType::F64)?.to_vec::<f64>()?;
    assert_eq!(wide, [-1.7e308, 0., 1.7e308]);
    assert!(T::linspace(0., f64::NAN, 3).is_err());
    assert_eq!(T::full((2, 1), 7u8)?.to_vec::<u8>()?, [7, 7]);
    assert_eq!(values(&T::ones(2, DType::F32)?), [1., 1.]);
    Ok(())
}

/// Sizes that are valid shapes but exceed memory.
#[test]
fn tensors_larger_than_memory_are_errors() {
    for result in [
        T::arange(0., 1e15, 1.),
        T::linspace(0., 1., 1 << 55),
        T::eye(1 << 27, DType::F64),
        T::zeros([1 << 57], DType::F32),
    ] {
        assert!(matches!(result, Err(Error::OutOfMemory { .. })), "{result:?}");
    }
}

#[test]
fn random_tensors_have_their_distribution() -> Result<()> {
    let mut rng = Rng::seed(1);
    let x = T::randn(20_000, &mut rng)?;
    let mean = x.mean(None, false)?.item::<f32>()?;
    let square = x.square()?.mean(None, false)?.item::<f32>()?;
    let fourth = x.square()?.square()?.mean(None, false)?.item::<f32>()?;
    assert!(mean.abs() < 0.03 && (square - 1.0).abs() < 0.04, "{mean} {square}");
    // The fourth moment of a normal distribution is 3, of a uniform one of variance 1 it is 1.8.
    assert!((fourth - 3.0).abs() < 0.25, "{fourth}");
    let u = T::rand(20_000, -2.0..4.0, &mut rng)?;
    let low = u.min(None, false)?.item::<f32>()?;
    let high = u.max(None, false)?.item::<f32>()?;
    assert!((-2.0..-1.99).contains(&low) && (3.99..4.0).contains(&high), "{low} {high}");
    Ok(())
}

#[test]
fn views_and_conversion() -> Result<()> {
    let x = T::arange(0., 6., 1.)?.reshape((1, 2, 3))?;
    assert_eq!(values(&x.swap_axes(1, -1)?), [0., 3., 1., 4., 2., 5.]);
    assert_eq!(x.swap_axes(0, 2)?.dims(), [3, 2, 1]);
    assert_eq!(x.flatten(0, 1)?.dims(), [2, 3]);
    let mask = x.gt(2.5)?;
    assert_eq!(values(&mask.select(&x, &x.neg()?)?), [0., -1., -2., 3., 4., 5.]);
    assert_eq!(x.to_dtype(DType::U8)?.to_dtype(DType::F32)?.to_vec::<f32>()?, values(&x));
    let elsewhere: R = x.to_backend()?;
    assert_eq!(elsewhere.to_vec::<f32>()?, values(&x));
    assert!(x.requires_grad().to_backend::<ReferenceBackend>().is_err());
    Ok(())
}

#[test]
fn softmax_agrees_with_the_reference_backend() -> Result<()> {
    let mut rng = Rng::seed(2);
    for (shape, axis) in [([3, 40], 1), ([40, 3], 0), ([1, 1000], -1), ([5, 1], 1)] {
        let x = T::randn(shape, &mut rng)?.mul_scalar(20.0)?;
        let exact: R = x.to_dtype(DType::F64)?.to_backend()?;
        // Rounding x - max changes the exponential by up to 2^-24 of the difference; log softmax may be near
        // 0.
        let pairs = [
            (x.softmax(axis)?, exact.softmax(axis)?, 1e-37),
            (x.log_softmax(axis)?, exact.log_softmax(axis)?, 1e-6),
        ];
        for (got, expected, absolute) in pairs {
            for (a, b) in values(&got).iter().zip(expected.to_vec::<f64>()?) {
                let allowed = 1e-5 * b.abs() + absolute;
                assert!((f64::from(*a) - b).abs() <= allowed, "{shape:?}: {a} {b}");
            }
        }
    }
    Ok(())
}

#[test]
fn operators_reuse_owned_unshared_buffers_alone() -> Result<()> {
    let pointer = |x: &T| x.data().as_slice::<f32>().unwrap().as_ptr();
    let x = T::ones((4, 8), DType::F32)?;
    let row = T::ones(8, DType::F32)?;
    let owned = &x + 1.0;
    let address = pointer(&owned);
    let sum = owned + &row;
    assert_eq!(pointer(&sum), address, "an owned buffer is reused, also with a broadcast row");
    let kept = sum.clone();
    let product = sum * 2.0;
    assert_ne!(pointer(&product), address, "a buffer that another handle shares is not reused");
    assert_eq!(values(&kept), [3.0; 32]);
    let view = product.narrow(0, 1, 2)?;
    drop(product);
    let moved = view + &row;
    assert_eq!(values(&moved), [7.0; 16]);
    let tracked = x.requires_grad();
    let twin = tracked.clone();
    let _ = tracked * 5.0;
    assert_eq!(values(&twin), [1.0; 32]);
    Ok(())
}

#[test]
fn scalars_beside_integers_must_be_values_of_their_type() -> Result<()> {
    let bytes = tensor![u8; 5, 255];
    for result in [bytes.add(-1.0), bytes.lt(300.0), bytes.eq(2.5), bytes.add_scalar(300i64)] {
        let text = result.unwrap_err().to_string();
        assert!(text.contains("u8"), "{text}");
    }
    assert!(tensor![i64; 5].mul(1e300).is_err());
    assert!(tensor![i64; 5].lt(2f64.powi(63)).is_err());
    assert!(tensor![bool; true].eq(2.0).is_err());
    assert_eq!(bytes.add(1.0)?.to_vec::<u8>()?, [6, 0]);
    assert_eq!(tensor![i64; 5].lt(-(2f64.powi(63)))?.to_vec::<bool>()?, [false]);
    Ok(())
}

#[test]
fn large_tensors_are_printed_by_their_ends() -> Result<()> {
    // Broadcast to more elements than fit into memory.
    let x = T::arange(0., 8., 1.)?.unsqueeze(1)?.broadcast_to([8, 1 << 40])?;
    let text = x.to_string();
    assert!(text.starts_with("[[0.0, 0.0, 0.0, ..., 0.0, 0.0, 0.0],"), "{text}");
    assert!(text.ends_with("[7.0, 7.0, 7.0, ..., 7.0, 7.0, 7.0]]"), "{text}");
    let y = T::arange(0., 2000., 1.)?.reshape((2, 1000))?;
    assert!(y.to_string().contains("1997.0, 1998.0, 1999.0]]"), "{y}");
    Ok(())
}
