//! Gradients of fused ops if some operands are untracked, or several operands are one tensor; embeddings.

use swath::ops::Activation;
use swath::prelude::*;

type T = Tensor<CpuBackend>;

#[test]
fn gradients_by_parameters_alone_agree_to_second_order() {
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
    // One tensor as two operands.
    check(&|xs| xs[0].narrow(0, 0, 1)?.reshape(5)?.bias_activation(&b, Activation::Silu), &[&x]);
    check(&|xs| xs[0].layer_norm(Some(&xs[0]), Some(&xs[0]), 1e-2), &[&w]);
}

#[test]
fn embedding_gathers_rows_and_adds_their_gradients() -> Result<()> {
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
