//! Expressions whose types are inferred.

use swath::prelude::*;

type T = Tensor<CpuBackend>;

#[test]
fn types_are_inferred() -> Result<()> {
    let x = tensor![1.0, 2.0];
    let a = (&x + 1.0).exp()?;
    let b = 1.0 - &x;
    let c = (&a * &b / 2.0 - 0.5f32 + &x).tanh()?;
    let d = (-&c).sum(None, false)?.item::<f32>()?;
    assert!(d.is_finite());

    let x = T::var("x", CpuBackend::from_vec(vec![1.0, 2.0, 3.0], Shape::new(vec![3]))?);
    assert_eq!(x.dtype(), DType::F32);
    let loss = (&x * &x).sum(None, false)?;
    let grads = loss.backward()?;
    assert_eq!(grads.wrt(&x)?.to_vec::<f32>()?, [2.0, 4.0, 6.0]);

    let wide = T::from_vec(vec![1.0f64, 2.0], 2)? * 2.0 + 0.25f32;
    assert_eq!(wide.dtype(), DType::F64);

    let mut rng = Rng::seed(42);
    let r = T::rand((2, 3), 0.0..1.0, &mut rng)?;
    assert_eq!((r.dtype(), r.dims()), (DType::F32, &[2, 3][..]));
    assert_eq!(T::randn(4, &mut rng)?.numel(), 4);
    Ok(())
}
