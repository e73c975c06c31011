//! Sine and cosine by one op: gradients, and errors.

use swath::prelude::*;

#[test]
fn gradients_of_sine_and_cosine_add_up() -> Result<()> {
    let x = tensor![f64; 0.3, -2.0, 1e3].requires_grad();
    let (sine, cosine) = x.sincos()?;
    let loss = sine.mul_scalar(3.0)?.add(&cosine.mul_scalar(5.0)?)?.sum(None, false)?;
    let grads = loss.backward()?;
    let want = x.to_vec::<f64>()?.into_iter().map(|x| 3.0 * x.cos() - 5.0 * x.sin());
    for (got, want) in grads.wrt(&x)?.to_vec::<f64>()?.into_iter().zip(want) {
        assert!((got - want).abs() <= 1e-14, "{got} {want}");
    }
    Ok(())
}

#[test]
fn integers_are_an_error() {
    let error = tensor![i64; [1, 2]].sincos().unwrap_err().to_string();
    assert!(error.contains("sincos") && error.contains("i64") && error.contains("[1, 2]"));
}
