//! Sine and cosine by one op.

use crate::testing::suite::Tested;
use crate::testing::suite::agree::{Disagreements, Reference, Tolerance, floats};
use crate::testing::suite::backends::half::every_value;
use crate::testing::suite::inputs::{Arrangement, Fill, Input, Rng, SHAPES, Specials};
use swath::prelude::*;

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
