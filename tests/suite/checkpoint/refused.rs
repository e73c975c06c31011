//! What is an error, and that nothing stays behind after one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use swath::prelude::*;
use swath::{is_grad_enabled, is_recomputing, nn, replayed};

use super::{T, bits, leaf, total};

/// Different in the second run.
fn twice(f: impl Fn(usize, &T) -> Result<Vec<T>> + Send + Sync + 'static) -> Result<Error> {
    let runs = AtomicUsize::new(0);
    let x = leaf(&[1.0, 2.0, 3.0]);
    let g = move |xs: &[T]| f(runs.fetch_add(1, Relaxed), &xs[0]);
    let y = checkpoint_with(&[&x], g)?;
    let error = total(&y[0]).backward().expect_err("the replay differs");
    assert!(!is_recomputing() && !is_checkpointing() && is_grad_enabled());
    Ok(error)
}

#[test]
fn a_replay_that_differs_is_an_error_that_says_how() -> Result<()> {
    let dropout = nn::Dropout::new(0.5, &mut Rng::seed(1))?;
    let cases = [
        (twice(|run, x| Ok(vec![x.exp()?.narrow(0, 0, 3 - run)?]))?, ["[3] f32", "[2] f32"]),
        (
            twice(|run, x| {
                let dtype = if run == 0 { DType::F64 } else { DType::BF16 };
                Ok(vec![x.exp()?.to_dtype(dtype)?])
            })?,
            ["[3] f64", "[3] bf16"],
        ),
        (twice(|run, x| Ok(vec![x.exp()?; 2 - run]))?, ["and 2 outputs", "and 1 outputs"]),
        (
            twice(|run, x| Ok(vec![if run == 0 { x.exp()? } else { x.exp()?.neg()?.neg()? }]))?,
            ["1 recorded operations", "3 recorded operations"],
        ),
        (
            twice(|run, x| Ok(vec![if run == 0 { x.exp()?.neg()? } else { x.exp()? }]))?,
            ["2 recorded operations", "1 recorded operations"],
        ),
        (
            twice(move |run, x| {
                (run..2).for_each(|_| _ = dropout.next_mask());
                Ok(vec![x.exp()?])
            })?,
            ["2 draws", "1 draws"],
        ),
        (
            twice(|run, x| {
                (0..=run).for_each(|i| _ = replayed(|| i));
                Ok(vec![x.exp()?])
            })?,
            ["1 draws", "2 draws"],
        ),
        // A draw of another type.
        (
            twice(|run, x| {
                if run == 0 {
                    _ = replayed(|| 1u8)
                } else {
                    _ = replayed(|| 1u16)
                };
                Ok(vec![x.exp()?])
            })?,
            ["1 draws", "2 draws"],
        ),
        // As many operations, another one of them is the output.
        (
            twice(|run, x| {
                let pair = [x.exp()?, x.sin()?];
                Ok(vec![pair[run].clone()])
            })?,
            ["[3] f32 (#", "[3] f32 (#"],
        ),
        // Untracked in the second run.
        (
            twice(|run, x| Ok(vec![if run == 0 { x.exp()? } else { x.detach().exp()? }]))?,
            ["1 recorded operations", "0 recorded operations"],
        ),
        // Another op of the same shape, and another inner shape: the outputs are alike.
        (
            twice(|run, x| Ok(vec![if run == 0 { x.exp()? } else { x.sin()? }]))?,
            [
                "1 recorded operations",
                "operation 1 is `sin` of shape [3] and dtype f32 instead of `exp`",
            ],
        ),
        (
            twice(|run, x| {
                let x = x.unsqueeze(0)?;
                Ok(vec![x.narrow(1, 0, 2 - run)?.exp()?.sum(None, false)?])
            })?,
            [
                "4 recorded operations",
                "operation 2 is `narrow` of shape [1, 1] and dtype f32 instead of `narrow` of another shape",
            ],
        ),
        (
            twice(|run, x| {
                let dtype = if run == 0 { DType::F64 } else { DType::BF16 };
                Ok(vec![x.to_dtype(dtype)?.to_dtype(DType::F32)?])
            })?,
            ["2 recorded operations", "operation 1 is `to_dtype` of shape [3] and dtype bf16"],
        ),
    ];
    for (error, expected) in cases {
        let text = error.to_string();
        assert!(text.starts_with("checkpoint: the function does not do the same again"), "{text}");
        let (first, again) = text.split_once("its replay").expect("both runs");
        assert!(first.contains(expected[0]) && again.contains(expected[1]), "{text}");
    }
    Ok(())
}

/// A tensor that leaves a first run by another way than its outputs.
#[test]
fn results_that_escape_have_no_silent_gradient() {
    let x = leaf(&[1.0, 2.0]);
    let held = Arc::new(Mutex::new(Vec::new()));
    let shelf = held.clone();
    let y = checkpoint_with(&[&x], move |xs: &[T]| {
        let middle = xs[0].exp()?;
        shelf.lock().unwrap().push(middle.clone());
        middle.square()
    });
    let y = y.unwrap();
    let escaped = held.lock().unwrap()[0].clone();
    assert_eq!(bits(&escaped), bits(&x.exp().unwrap()));
    for loss in [total(&escaped), total(&escaped.mul(&x).unwrap())] {
        let error = loss.backward().unwrap_err();
        assert!(matches!(error, Error::NoGradient { op: "exp", .. }), "{error}");
        assert!(error.to_string().contains("return it from the function"), "{error}");
    }
    // Itself is not affected.
    total(&y).backward().unwrap();
    let y = with_checkpoint_mode(|| x.exp()).unwrap();
    assert!(y.is_tracked() && total(&y).backward().is_err());
    let y = with_checkpoint_mode(|| checkpoint_with(&[&x], |xs: &[T]| xs[0].exp())).unwrap();
    assert!(y.is_tracked() && total(&y).backward().is_err());
    // A gradient of it in the first run would be lost as well.
    let y = checkpoint_with(&[&x], |xs: &[T]| {
        let y = total(&xs[0].square()?);
        Ok(grad(&y, &[&xs[0]], true)?.remove(0))
    });
    let error = y.unwrap_err().to_string();
    assert!(error.contains("use vjp inside"), "{error}");
}

#[test]
fn parts_on_other_threads_are_refused() {
    let x = leaf(&[1.0, 2.0]);
    let y = checkpoint_with(&[&x], |xs: &[T]| {
        let part = std::thread::scope(|scope| scope.spawn(|| xs[0].exp()).join().unwrap())?;
        part.mul(&xs[0])
    });
    let error = total(&y.unwrap()).backward().unwrap_err().to_string();
    assert!(error.contains("checkpoint: an operand of `mul`"), "{error}");
    assert!(error.contains("[2]") && error.contains("another thread"), "{error}");
}

/// Errors and panics of the function, in both runs.
#[test]
fn modes_are_restored_after_errors_and_panics() {
    let x = leaf(&[1.0, 2.0]);
    let plain = || is_grad_enabled() && !is_checkpointing() && !is_recomputing();
    for when in [0, 1] {
        for panics in [false, true] {
            let runs = AtomicUsize::new(0);
            let f = move |xs: &[T]| match runs.fetch_add(1, Relaxed) == when {
                true if panics => panic!("on purpose"),
                true => xs[0].reshape(7),
                false => xs[0].exp(),
            };
            let both = || total(&checkpoint_with(&[&x], f)?).backward();
            let outcome = catch_unwind(AssertUnwindSafe(both));
            match outcome {
                Ok(result) => {
                    let error = result.unwrap_err();
                    assert!(!panics && matches!(error, Error::ShapeMismatch { op: "reshape", .. }));
                }
                Err(_) => assert!(panics),
            }
            assert!(plain());
            // New nodes are new.
            let y = total(&checkpoint_with(&[&x], |xs: &[T]| xs[0].exp()).unwrap());
            assert_eq!(bits(y.backward().unwrap().wrt(&x).unwrap()), bits(&x.exp().unwrap()));
        }
    }
    let panicked = catch_unwind(|| with_checkpoint_mode(|| panic!("on purpose")));
    assert!(panicked.is_err() && plain());
    // Inside another first run: an error that the function survives.
    let f = |xs: &[T]| {
        let failing = checkpoint_with(&[&xs[0]], |xs: &[T]| xs[0].exp()?.reshape(7));
        failing.or_else(|_| xs[0].sin())
    };
    let y = checkpoint_with(&[&x], f).unwrap();
    let found = total(&y).backward().unwrap();
    assert_eq!(bits(found.wrt(&x).unwrap()), bits(&x.cos().unwrap()));
}

#[test]
fn no_segments_are_an_error() {
    let layers: [fn(&T) -> Result<T>; 1] = [|x| x.exp()];
    let error = checkpoint_sequential(&leaf(&[1.0]), &layers, 0).unwrap_err().to_string();
    assert_eq!(error, "checkpoint_sequential: expected at least one segment for 1 layers, got 0");
}
