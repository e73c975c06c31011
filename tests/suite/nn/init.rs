//! Initial values: bounds, means and deviations, at sizes that make random fluctuations small.

use super::{T, parameters};
use swath::nn::{Embedding, LayerNorm, Linear, MultiHeadAttention, init};
use swath::prelude::*;

fn rng() -> Rng {
    Rng::seed(9)
}

/// Uniform in `±bound`: nearly reaches the bound and has the standard deviation `bound / √3`.
fn assert_uniform(x: &T, bound: f64) {
    let values = x.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
    let largest = values.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    assert!(largest <= bound && largest > 0.97 * bound, "{largest} of {bound}");
    assert_moments(&values, bound / 3f64.sqrt());
}

fn assert_moments(values: &[f64], deviation: f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let square = values.iter().map(|v| v * v).sum::<f64>() / n;
    assert!(mean.abs() < 4.0 * deviation / n.sqrt(), "mean {mean}");
    assert!((square.sqrt() / deviation - 1.0).abs() < 0.1, "{} of {deviation}", square.sqrt());
    assert!(parameters_differ(values));
}

fn parameters_differ(values: &[f64]) -> bool {
    values.windows(2).any(|pair| pair[0] != pair[1])
}

fn assert_all(x: &T, value: f32) {
    assert!(x.to_vec::<f32>().unwrap().iter().all(|&v| v == value));
}

#[test]
fn layers_are_initialized_like_pytorchs() -> Result<()> {
    let linear: Linear = Linear::new(25, 200, &mut rng())?;
    assert_uniform(&linear.weight, 0.2);
    assert_uniform(linear.bias.as_ref().unwrap(), 0.2);

    let table: Embedding = Embedding::new(100, 50, &mut rng())?;
    let values = table.weight.to_dtype(DType::F64)?.to_vec::<f64>()?;
    assert_moments(&values, 1.0);
    assert!(values.iter().any(|v| v.abs() > 3.0));

    let norm: LayerNorm = LayerNorm::new(7)?;
    assert_all(norm.weight.as_ref().unwrap(), 1.0);
    assert_all(norm.bias.as_ref().unwrap(), 0.0);

    let attention: MultiHeadAttention = MultiHeadAttention::new(64, 4, &mut rng())?;
    assert_uniform(&attention.in_proj_weight, (6.0f64 / 256.0).sqrt());
    assert_uniform(&attention.out_proj.weight, 0.125);
    assert_all(attention.in_proj_bias.as_ref().unwrap(), 0.0);
    assert_all(attention.out_proj.bias.as_ref().unwrap(), 0.0);
    assert!(parameters(&attention).iter().all(|(_, p)| p.is_tracked()));
    Ok(())
}

#[test]
fn initializers_have_the_published_deviations() -> Result<()> {
    let shape = [40, 30, 2];
    let (fan_in, fan_out) = (60.0f64, 80.0f64);
    let deviation = |x: T| x.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
    for dtype in [DType::F32, DType::F64] {
        let x: T = init::xavier_uniform(shape, 2.0, dtype, &mut rng())?;
        assert_eq!(x.dtype(), dtype);
        assert_uniform(&x, 2.0 * (6.0 / (fan_in + fan_out)).sqrt());
        let x: T = init::xavier_normal(shape, 1.0, dtype, &mut rng())?;
        assert_moments(&deviation(x), (2.0 / (fan_in + fan_out)).sqrt());
        let x: T = init::kaiming_uniform(shape, 0.0, dtype, &mut rng())?;
        assert_uniform(&x, (6.0 / fan_in).sqrt());
        let x: T = init::kaiming_uniform(shape, 5f64.sqrt(), dtype, &mut rng())?;
        assert_uniform(&x, 1.0 / fan_in.sqrt());
        let x: T = init::kaiming_normal(shape, 0.0, dtype, &mut rng())?;
        assert_moments(&deviation(x), (2.0 / fan_in).sqrt());
        let x: T = init::normal(2400, 0.0, 0.02, dtype, &mut rng())?;
        assert_moments(&deviation(x), 0.02);
    }
    Ok(())
}

#[test]
fn edge_cases_of_initialization() -> Result<()> {
    let none: Linear = Linear::new(0, 3, &mut rng())?;
    assert_eq!(none.weight.dims(), [3, 0]);
    assert_all(none.bias.as_ref().unwrap(), 0.0);
    let x: T = init::uniform(3, 0.5, DType::BF16, &mut rng())?;
    assert_eq!(x.dtype(), DType::BF16);
    let refused: Result<T> = init::xavier_uniform(3, 1.0, DType::F32, &mut rng());
    assert!(matches!(refused, Err(Error::InvalidShape { .. })));
    let refused: Result<T> = init::uniform(3, f64::NAN, DType::F32, &mut rng());
    assert!(matches!(refused, Err(Error::InvalidArgument { .. })));
    let refused: Result<T> = init::normal(3, 0.0, 1.0, DType::I64, &mut rng());
    assert!(matches!(refused, Err(Error::UnsupportedDType { .. })));
    Ok(())
}
