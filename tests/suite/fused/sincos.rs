//! Sine and cosine at once: the bits of each alone.

use swath::ops::{FusedOp, UnaryOp};
use swath::prelude::*;
use swath::{Backend, HostData, ReferenceBackend};

use super::Subject;
use super::reference::input;
use crate::support::agree::{Disagreements, Reference, Tolerance};
use crate::support::inputs::{Arrangement, FLOATS, Fill, Rng, SHAPES, Specials};

fn agree<B: Backend>(found: &mut Disagreements, x: &B::Tensor, context: &str) {
    let both = B::fused(&FusedOp::SinCos, &[Some(x)]).unwrap();
    assert_eq!(both.len(), 2);
    for (both, op) in both.iter().zip([UnaryOp::Sin, UnaryOp::Cos]) {
        let alone = B::unary(op, x).unwrap();
        let want = Reference::from_host(B::to_host(&alone).unwrap(), *alone.shape());
        let context = || format!("{} {op:?} {context}", B::NAME);
        found.compare::<B>(context, Ok(both.clone()), want, &Tolerance::EXACT);
    }
}

#[test]
fn both_have_the_bits_of_each_alone() {
    let (mut found, mut rng) = (Disagreements::default(), Rng(21));
    let shapes = SHAPES.into_iter().chain([&[3, 5000][..], &[1024], &[1025]]);
    for (dtype, shape) in shapes.flat_map(|shape| FLOATS.map(|dtype| (dtype, shape))) {
        for arrangement in Arrangement::ALL {
            let fill = Fill::plain(-1e4, 1e4).with(8, Specials::All);
            let x = input(&mut rng, fill, dtype, shape, arrangement);
            let context = format!("{dtype} {shape:?} {arrangement:?}");
            agree::<Subject>(&mut found, &x.on::<Subject>(), &context);
            agree::<ReferenceBackend>(&mut found, &x.on::<Reference>(), &context);
        }
    }
    // All numbers of 16 bits.
    let every = || 0..=u16::MAX;
    for host in [
        HostData::F16(every().map(swath::f16::from_bits).collect()),
        HostData::BF16(every().map(swath::bf16::from_bits).collect()),
    ] {
        let x = Subject::from_host(host, (1 << 16).into()).unwrap();
        agree::<Subject>(&mut found, &x, "all numbers");
    }
    found.finish();
}

#[test]
fn the_gradients_of_both_add_up() -> Result<()> {
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
