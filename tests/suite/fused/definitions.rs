//! The fused forward and first-order gradient against the definitions that are recorded where a
//! gradient will be differentiated again.

use swath::ops::{Activation, DropoutMask};
use swath::prelude::*;
use swath::{CrossEntropy, Reduction};

type T = Tensor<CpuBackend>;
type Function = Box<dyn Fn(&[T]) -> Result<T>>;

fn functions() -> Vec<(String, &'static [&'static [usize]], Function)> {
    let mut all: Vec<(String, &'static [&'static [usize]], Function)> = Vec::new();
    let mut add = |name: &str, shapes, f: Function| all.push((name.to_owned(), shapes, f));
    for axis in [0, 1, 2] {
        add("softmax", &[&[4, 3, 5]], Box::new(move |xs| xs[0].softmax(axis)));
        add("log_softmax", &[&[4, 3, 5]], Box::new(move |xs| xs[0].log_softmax(axis)));
    }
    let plain = CrossEntropy::default();
    for options in [
        plain,
        CrossEntropy { reduction: Reduction::None, ..plain },
        CrossEntropy { reduction: Reduction::Sum, ignore_index: Some(1), ..plain },
        CrossEntropy { label_smoothing: 0.3, ..plain },
        CrossEntropy { label_smoothing: 0.3, ignore_index: Some(-100), ..plain },
    ] {
        let other = if options.ignore_index == Some(-100) { -100 } else { 1 };
        let f = move |xs: &[T]| {
            let targets = tensor![i64; [0, other, 6], [2, 2, other]];
            xs[0].cross_entropy(&targets, options)
        };
        add(&format!("{options:?}"), &[&[2, 3, 7]], Box::new(f));
    }
    let shapes: &[&[usize]] = &[&[3, 2, 6], &[6]];
    add("layer_norm", &[&[3, 2, 6], &[6], &[6]], {
        Box::new(|xs| xs[0].layer_norm(Some(&xs[1]), Some(&xs[2]), 1e-3))
    });
    add("layer_norm weight", shapes, Box::new(|xs| xs[0].layer_norm(Some(&xs[1]), None, 1e-3)));
    add("layer_norm bias", shapes, Box::new(|xs| xs[0].layer_norm(None, Some(&xs[1]), 1e-3)));
    add("layer_norm alone", &[&[40, 6]], Box::new(|xs| xs[0].layer_norm(None, None, 1e-3)));
    add("rms_norm", shapes, Box::new(|xs| xs[0].rms_norm(Some(&xs[1]), 1e-3)));
    add("rms_norm alone", &[&[40, 6]], Box::new(|xs| xs[0].rms_norm(None, 1e-3)));
    for activation in Activation::ALL {
        let f = move |xs: &[T]| xs[0].bias_activation(&xs[1], activation);
        add(&format!("{activation:?}"), shapes, Box::new(f));
    }
    let mask = DropoutMask { p: 0.4, seed: 8, stream: 2 };
    add("dropout", &[&[7, 9]], Box::new(move |xs| xs[0].dropout(mask)));
    all
}

#[test]
fn the_fused_gradient_is_that_of_the_recorded_definition() -> Result<()> {
    for (dtype, tolerance) in [(DType::F64, 1e-14), (DType::F32, 4e-6)] {
        for (name, shapes, f) in functions() {
            let mut rng = Rng::seed(5);
            let draw = |shape: &&[usize], rng: &mut Rng| {
                T::randn(Shape::from(*shape), rng)?.to_dtype(dtype).map(|x| x.requires_grad())
            };
            let xs: Vec<T> =
                shapes.iter().map(|shape| draw(shape, &mut rng)).collect::<Result<_>>()?;
            let y = f(&xs)?;
            let g = T::randn(*y.shape(), &mut rng)?.to_dtype(dtype)?;
            let loss = y.mul(&g)?.sum(None, false)?;
            let inputs: Vec<&T> = xs.iter().collect();
            let recorded = grad(&loss, &inputs, true)?;
            let fused = loss.backward()?;
            for (x, recorded) in inputs.into_iter().zip(recorded) {
                let (got, want) = (fused.wrt(x)?, recorded.detach());
                let difference = got.sub(&want)?.abs()?.max(None, false)?.to_dtype(DType::F64)?;
                let scale = want.abs()?.max(None, false)?.to_dtype(DType::F64)?.item::<f64>()?;
                let error = difference.item::<f64>()? / scale.max(1.0);
                assert!(error <= tolerance, "{name} {dtype}: {error:e}");
            }
        }
    }
    Ok(())
}

#[test]
fn parameters_alone_have_gradients_to_second_order() {
    let x = T::randn((4, 5), &mut Rng::seed(1)).unwrap().to_dtype(DType::F64).unwrap();
    let w = x.narrow(0, 1, 1).unwrap().reshape(5).unwrap().add_scalar(2.0).unwrap();
    let b = x.narrow(0, 2, 1).unwrap().reshape(5).unwrap().contiguous().unwrap();
    let options = GradCheck { order: 2, ..Default::default() };
    let check = |f: &dyn Fn(&[T]) -> Result<T>, xs: &[&T]| check_gradients(f, xs, options).unwrap();
    check(&|xs| x.layer_norm(Some(&xs[0]), None, 1e-2)?.square(), &[&w]);
    check(&|xs| x.layer_norm(None, Some(&xs[0]), 1e-2)?.square(), &[&b]);
    check(&|xs| x.layer_norm(Some(&xs[0]), Some(&xs[1]), 1e-2)?.square(), &[&w, &b]);
    check(&|xs| xs[0].layer_norm(Some(&w), Some(&xs[1]), 1e-2)?.square(), &[&x, &b]);
    check(&|xs| x.rms_norm(Some(&xs[0]), 1e-2)?.square(), &[&w]);
    check(&|xs| xs[0].rms_norm(Some(&xs[0]), 1e-2), &[&w]);
    check(&|xs| x.bias_activation(&xs[0], Activation::GeluTanh)?.square(), &[&b]);
    // One tensor in two places.
    check(&|xs| xs[0].narrow(0, 0, 1)?.reshape(5)?.bias_activation(&b, Activation::Silu), &[&x]);
    check(&|xs| xs[0].layer_norm(Some(&xs[0]), Some(&xs[0]), 1e-2), &[&w]);
}

#[test]
fn embedding_reads_rows_and_adds_their_gradients_up() -> Result<()> {
    let table = T::randn((5, 3), &mut Rng::seed(2))?.to_dtype(DType::F64)?;
    for ids in [tensor![i64; [4, 0, 4], [4, 1, 0]], tensor![i64; 3], tensor![i64; [[2], [2]]]] {
        let y = table.embedding(&ids)?;
        let shape: Vec<usize> = ids.dims().iter().copied().chain([3]).collect();
        assert_eq!(y.dims(), shape);
        let (rows, table) = (y.to_vec::<f64>()?, table.to_vec::<f64>()?);
        for (row, id) in rows.chunks(3).zip(ids.to_vec::<i64>()?) {
            assert_eq!(row, &table[id as usize * 3..][..3]);
        }
    }
    let ids = tensor![i64; [4, 0, 4], [4, 1, 0]];
    let options = GradCheck { order: 2, ..Default::default() };
    check_gradients(|xs: &[T]| xs[0].embedding(&ids)?.square(), &[&table], options)?;
    let tracked = table.requires_grad();
    let grads = tracked.embedding(&ids)?.sum(None, false)?.backward()?;
    let counts: Vec<f64> = grads.wrt(&tracked)?.sum(Some(&[1]), false)?.to_vec()?;
    assert_eq!(counts, [6.0, 3.0, 0.0, 0.0, 9.0]);

    let none = T::zeros((0, 2), DType::I64)?;
    assert_eq!(table.embedding(&none)?.dims(), [0, 2, 3]);
    let error = table.embedding(&tensor![i64; 1, 5]).unwrap_err();
    assert!(matches!(error, Error::IndexOutOfRange { op: "embedding", index: 5, .. }), "{error}");
    let error = table.embedding(&tensor![i64; -1]).unwrap_err();
    assert!(matches!(error, Error::IndexOutOfRange { op: "embedding", index: -1, .. }), "{error}");
    let error = table.embedding(&tensor![1.0]).unwrap_err();
    assert!(matches!(error, Error::DTypeMismatch { op: "embedding", .. }), "{error}");
    let error = ids.flatten(0, 1)?.embedding(&ids).unwrap_err();
    assert!(matches!(error, Error::InvalidShape { op: "embedding", .. }), "{error}");
    Ok(())
}
