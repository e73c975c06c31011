//! Sine and cosine by one op.

use swath::prelude::*;

use crate::backends::half::every_value;
use crate::support::agree::{Disagreements, Reference, Tested, Tolerance, floats};
use crate::support::inputs::{Arrangement, Fill, Input, Rng, SHAPES, Specials};

fn agree<B: Tested>(seen: &mut Disagreements, x: B::Tensor, context: &str) {
    let x = Tensor::<B>::from_data(x);
    let (sine, cosine) = x.sincos().unwrap();
    for (both, alone) in [(sine, x.sin()), (cosine, x.cos())] {
        let alone = alone.unwrap();
        let want = Reference::from_host(B::to_host(alone.data()).unwrap(), *alone.shape());
        let context = || format!("sincos {context}");
        seen.compare::<B>(context, Ok(both.data().clone()), want, &Tolerance::EXACT);
    }
}

pub fn sincos_matches_sin_and_cos_bitwise<B: Tested>() {
    let (mut seen, mut rng) = (Disagreements::default(), Rng(21));
    let shapes = SHAPES.into_iter().chain([&[3, 5000][..], &[1024], &[1025]]);
    for (shape, dtype) in shapes.flat_map(|shape| floats::<B>().map(move |dtype| (shape, dtype))) {
        for arrangement in Arrangement::ALL {
            let fill = Fill::plain(-1e4, 1e4).with(8, Specials::All);
            let x = Input::new(dtype, shape, arrangement, || fill.draw(&mut rng, dtype));
            agree::<B>(&mut seen, x.on::<B>(), &format!("{dtype} {shape:?} {arrangement:?}"));
        }
    }
    for host in every_value::<B>() {
        agree::<B>(&mut seen, B::from_host(host, (1 << 16).into()).unwrap(), "all numbers");
    }
    seen.finish();
}

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
