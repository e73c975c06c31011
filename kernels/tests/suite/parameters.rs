//! Parameters out of range: a panic names the function and the number, and nothing is written.

use std::panic::{AssertUnwindSafe, catch_unwind};

use swath_kernels::{Adam, Dropout, adam, dropout};

fn panic_of(f: impl FnOnce()) -> Option<String> {
    let payload = catch_unwind(AssertUnwindSafe(f)).err()?;
    let text = payload.downcast_ref::<&str>().map(|text| text.to_string());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
}

#[test]
fn dropout_rejects_probabilities_outside_0_to_1() {
    let mut y = [7f32; 2];
    let mut run = |p: f64| {
        panic_of(|| dropout(Dropout { p, seed: 1, stream: 0, first: 0 }, &[1.0; 2], &mut y))
    };
    for p in [1.0, 1.5, -0.1, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
        let text = format!("dropout: the probability {p} is not in 0..1");
        assert_eq!(run(p), Some(text));
    }
    assert_eq!([0.0, -0.0, 1.0f64.next_down()].map(&mut run), [None, None, None]);
    run(2.0);
    assert_eq!(y, [0.0; 2], "the result of the last valid call");
}

#[test]
fn adam_rejects_step_zero() {
    let mut values = [1f64; 3];
    let [p, m, v] = &mut values;
    let mut run = |number| {
        let step = Adam {
            rate: 0.1,
            betas: [0.9, 0.99],
            eps: 1e-8,
            weight_decay: 0.0,
            decoupled: false,
            step: number,
        };
        let [p, m, v] = [&mut *p, &mut *m, &mut *v].map(std::slice::from_mut);
        panic_of(|| adam(step, p, &[1.0], m, v))
    };
    assert_eq!(run(0).as_deref(), Some("adam: step 0, but the first is 1"));
    assert_eq!([run(1), run(u64::MAX)], [None, None]);
    assert!(values.iter().all(|x| x.is_finite()), "{values:?}");
}
