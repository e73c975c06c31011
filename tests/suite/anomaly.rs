//! Anomalies are found where they are made, forwards and backwards; finite programs have none.

use std::panic::catch_unwind;
use std::sync::Arc;

use swath::nn::{self, Module, TransformerBlock, TransformerBlockOptions};
use swath::ops::Activation;
use swath::prelude::*;

type T = Tensor<CpuBackend>;

fn leaf(values: &[f32]) -> T {
    T::from_slice(values, values.len()).unwrap().requires_grad()
}

fn total(x: &T) -> Result<T> {
    x.sum(None, false)
}

fn found<R>(f: impl FnOnce() -> Result<R>) -> String {
    match detect_anomaly(f) {
        Ok(_) => "nothing".to_owned(),
        Err(error @ Error::Anomaly { .. }) => error.to_string(),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn forward_anomalies_name_their_op() {
    let x = leaf(&[1.0, 0.0, -1.0]);
    let large = leaf(&[3e38, 1.0, 1e30]);
    type Case<'a> = (&'a str, &'a dyn Fn() -> Result<T>);
    let cases: [Case; 12] = [
        ("log: the result of shape [3] is -inf at index [1]", &|| x.exp()?.log()?.log()),
        ("log: the result of shape [3] is NaN at index [2]", &|| x.add(0.5)?.log()?.exp()),
        ("div: the result of shape [3] is NaN at index [1]", &|| x.div(&x)),
        ("div: the result of shape [3] is -inf at index [2]", &|| tensor![-1.0].div(x.add(1.0)?)),
        ("mul: the result of shape [3] is inf at index [0]", &|| large.mul(4.0)?.sub(&large)),
        ("mul_add: the result of shape [3] is inf at index [0]", &|| large.mul_add(&large, 1.0)),
        ("sum: the result of shape [] is inf at index []", &|| {
            T::cat(&[&large, &large], 0)?.sum(None, false)
        }),
        ("to_dtype: the result of shape [3] is inf at index [0]", &|| large.to_dtype(DType::F16)),
        ("matmul: the result of shape [3, 3] is inf at index [0, 0]", &|| {
            large.unsqueeze(1)?.matmul(&large.unsqueeze(0)?)
        }),
        ("linear: the result of shape [1, 1] is inf at index [0, 0]", &|| {
            let row = large.unsqueeze(0)?;
            row.linear(&row, None)
        }),
        ("variance: the result of shape [] is inf at index []", &|| large.variance(None, false, 1)),
        ("cumsum: the result of shape [2, 3] is inf at index [1, 0]", &|| {
            large.broadcast_to((2, 3))?.cumsum(0)
        }),
    ];
    for (expected, f) in cases {
        let text = found(f);
        assert!(text.starts_with(expected), "{expected}: {text}");
        // The backward pass that follows is not run.
        let mut ran = false;
        let text = found(|| {
            total(&f()?)?.backward()?;
            ran = true;
            Ok(())
        });
        assert!(text.starts_with(expected) && !ran, "{expected}: {text}");
    }
}

#[test]
fn backward_anomalies_name_the_op_whose_rule_made_them() {
    let x = T::var("x", CpuBackend::from_vec(vec![4.0, 0.0, 1.0], 3).unwrap());
    let y = leaf(&[2.0, 3.0, 1.0]);
    let tiny = leaf(&[1e-30]);
    type Case<'a> = (&'a str, &'a dyn Fn() -> Result<T>);
    let cases: [Case; 6] = [
        ("sqrt: the gradient of input 0 (\"x\") of shape [3] is inf at index [1]", &|| x.sqrt()),
        ("sqrt: the gradient of input 0 of shape [3, 1] is inf at index [1, 0]", &|| {
            x.unsqueeze(1)?.sqrt()?.square()?.sqrt()?.mul(&y.unsqueeze(1)?)
        }),
        ("pow: the gradient of input 0 (\"x\") of shape [3] is inf at index [1]", &|| {
            y.exp()?.mul(x.pow(0.5)?)
        }),
        ("div: the gradient of input 1 of shape [3] is -inf at index [0]", &|| {
            tensor![1.0].div(y.mul(1e-25)?)
        }),
        ("mul: the gradient of input 0 of shape [1] is inf at index [0]", &|| {
            tiny.mul(1e20)?.mul(1e20)?.mul(1e20)
        }),
        // Each part is finite.
        ("mul: the gradient of input 0 of shape [1] is inf at index [0]", &|| {
            tiny.mul(2.5e38)?.add(tiny.mul(2.5e38)?)
        }),
    ];
    for (expected, f) in cases {
        for create_graph in [false, true] {
            let options = Backward { create_graph, ..Backward::default() };
            let text = found(|| total(&f()?)?.backward_opts(options));
            assert!(text.starts_with(expected), "{expected}: {text}");
        }
    }
    // Nothing is said of a pass that begins with infinity.
    let upstream = T::full(3, f32::INFINITY).unwrap();
    assert_eq!(found(|| y.exp()?.backward_with(&upstream)), "nothing");
}

#[test]
fn the_first_of_several_is_reported_and_the_state_restored() {
    let x = leaf(&[0.0, 1.0]);
    let text = found(|| {
        x.log()?;
        x.recip()
    });
    assert!(text.starts_with("log"), "{text}");
    // Outside nothing is inspected, nor after an error or a panic.
    assert!(x.log().is_ok());
    assert!(matches!(detect_anomaly(|| x.reshape(3)), Err(Error::ShapeMismatch { .. })));
    assert!(catch_unwind(|| detect_anomaly(|| -> Result<()> { panic!("on purpose") })).is_err());
    assert!(total(&x.log().unwrap()).unwrap().backward().is_ok());
    // An inner call has its own.
    let text = found(|| {
        assert!(found(|| x.log()).starts_with("log"));
        x.recip()
    });
    assert!(text.starts_with("recip"), "{text}");
    assert_eq!(found(|| Ok(found(|| x.log()))), "nothing");
    // The error that the function swallowed.
    let text = found(|| Ok(total(&x.sqrt()?)?.backward().is_err()));
    assert!(text.starts_with("sqrt"), "{text}");
    // In a checkpointed function, in its first run.
    let text = found(|| checkpoint_with(&[&x], |xs: &[T]| xs[0].log()?.exp()));
    assert!(text.starts_with("log"), "{text}");
    let text = found(|| total(&checkpoint_with(&[&x], |xs: &[T]| xs[0].sqrt())?)?.backward());
    assert!(text.starts_with("sqrt: the gradient"), "{text}");
    // Found by another thread of its own.
    let both = std::thread::scope(|scope| {
        let other = scope.spawn(|| found(|| x.recip()));
        (found(|| x.log()), other.join().unwrap())
    });
    assert!(both.0.starts_with("log") && both.1.starts_with("recip"));
}

/// Values that were not finite before are no anomaly, nor is what is made of them.
#[test]
fn masks_and_untracked_values_are_none() {
    let x = leaf(&[1.0, 2.0, 3.0]);
    let lowest = f64::NEG_INFINITY;
    let mask = tensor![bool; true, false, false];
    type Case<'a> = &'a dyn Fn() -> Result<T>;
    let cases: [Case; 7] = [
        &|| x.masked_fill(&mask, lowest)?.softmax(0),
        &|| x.add(tensor![0.0, f32::NEG_INFINITY, 0.0])?.logsumexp(None, false),
        &|| x.mul(f64::INFINITY),
        &|| x.clamp(0.0, f64::INFINITY),
        &|| x.maximum(lowest),
        &|| x.detach().sub(1.0)?.log(),
        &|| no_grad(|| x.sub(1.0)?.log()),
    ];
    for f in cases {
        assert_eq!(found(f), "nothing");
    }
    let queries = T::randn((1, 2, 4, 8), &mut Rng::seed(1)).unwrap().requires_grad();
    let mask = T::full((4, 4), f32::NEG_INFINITY).unwrap();
    let attend = || {
        let options = Attention { mask: Some(&mask), ..Default::default() };
        total(&queries.scaled_dot_product_attention(&queries, &queries, options)?)?.backward()
    };
    assert_eq!(found(attend), "nothing");
}

/// Gradients that are not finite because a kept value or an upstream gradient was not.
#[test]
fn gradients_of_values_that_were_not_finite_are_none() {
    let (x, infinite) = (leaf(&[1.0, 2.0, 3.0]), tensor![f32::INFINITY, 1.0, 1.0]);
    let image = T::randn((2, 3, 4), &mut Rng::seed(1)).unwrap().requires_grad();
    let filters = T::full((5, 3, 2), f32::INFINITY).unwrap();
    type Case<'a> = &'a dyn Fn() -> Result<T>;
    let cases: [Case; 8] = [
        &|| x.mul(&infinite),
        &|| x.mul(f64::INFINITY),
        // The upstream gradient of the first op is infinite, or part of a sum with one that is.
        &|| x.exp()?.tanh()?.mul(&infinite),
        &|| x.mul(&infinite)?.add(x.exp()?),
        &|| x.exp()?.add(x.mul(&infinite)?),
        &|| image.batch_norm(&tensor![0.0, 0.0, 0.0], &tensor![-1.0, 1.0, 1.0], None, None, 0.1),
        &|| image.conv1d(&filters, None, Default::default()),
        &|| checkpoint_with(&[&x], |xs: &[T]| xs[0].exp()?.mul(tensor![f32::INFINITY, 1.0, 1.0])),
    ];
    for (i, f) in cases.into_iter().enumerate() {
        for create_graph in [false, true] {
            let options = Backward { create_graph, ..Backward::default() };
            assert_eq!(found(|| total(&f()?)?.backward_opts(options)), "nothing", "case {i}");
        }
    }
    // Elsewhere in the same pass it is still found.
    let zero = leaf(&[0.0]);
    let text = found(|| total(&x.mul(&infinite)?)?.add(total(&zero.sqrt()?)?)?.backward());
    assert!(text.starts_with("sqrt: the gradient of input 0"), "{text}");
}

#[test]
fn finite_programs_pass_and_keep_their_bits() {
    let options = TransformerBlockOptions { causal: true, dropout: 0.1, ..Default::default() };
    let block = || TransformerBlock::with_options(16, 4, options, &mut Rng::seed(1)).unwrap();
    let x = T::randn((2, 5, 16), &mut Rng::seed(2)).unwrap().requires_grad();
    let loss = |block: Arc<TransformerBlock>| {
        let y = block.forward(&x)?;
        let y = checkpoint_with(&[&y], move |xs: &[T]| block.forward(&xs[0]))?;
        let classes = T::from_vec(vec![0i64, 3, 5, 7, 15, 2, 1, 1, 0, 9], 10)?;
        let loss = y.reshape((10, 16))?.cross_entropy(&classes, Default::default())?;
        loss.add(nn::loss::mse(&y, &x)?)?.backward()
    };
    let plain = loss(Arc::new(block())).unwrap();
    let inspected = detect_anomaly(|| loss(Arc::new(block()))).unwrap();
    let values = |grads: &Gradients<CpuBackend>| grads.wrt(&x).unwrap().to_vec::<f32>().unwrap();
    assert_eq!(values(&inspected), values(&plain));
    let second = || {
        let slope = grad(&total(&x.gelu()?.mul(&x)?)?, &[&x], true)?.remove(0);
        let rows = x.linear_activation(&T::ones((3, 16), DType::F32)?, None, Activation::Silu)?;
        total(&slope.square()?)?.add(total(&rows)?)?.backward()
    };
    detect_anomaly(second).unwrap();
    // A rule that computes infinity on its way, and does not return it.
    let (base, exponent) = (leaf(&[0.0, 2.0]), leaf(&[2.0, 3.0]));
    let power = || grad(&total(&base.pow(&exponent)?)?, &[&exponent], true);
    detect_anomaly(power).unwrap();
}
