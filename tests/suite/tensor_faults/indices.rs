//! Indices count from the end if they are negative; ids and classes do not.

use super::{T, floats, integers, text, values};
use swath::prelude::*;

fn matrix<B: Backend>() -> Tensor<B> {
    floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).reshape((2, 3)).unwrap()
}

fn check<B: Backend>() -> Result<()> {
    let x = matrix::<B>();
    let i = integers::<B>(&[-1, 0, -3, 2]).reshape((2, 2))?;
    // As numpy.take_along_axis.
    assert_eq!(values(&x.gather(1, &i)?), [3.0, 1.0, 4.0, 6.0]);
    assert_eq!(values(&x.gather(-1, &i.to_dtype(DType::I32)?)?), [3.0, 1.0, 4.0, 6.0]);
    // A transposed and a broadcast index.
    assert_eq!(values(&x.gather(1, &i.t()?)?), [3.0, 1.0, 4.0, 6.0]);
    let last = integers::<B>(&[-1]).broadcast_to((2, 1))?;
    assert_eq!(values(&x.gather(1, &last)?), [3.0, 6.0]);
    let y = floats::<B>(&[10.0, 20.0, 30.0, 40.0]).reshape((2, 2))?;
    assert_eq!(values(&x.scatter(1, &i, &y)?), [20.0, 2.0, 10.0, 30.0, 5.0, 40.0]);
    assert_eq!(values(&x.scatter_add(1, &i, &y)?), [21.0, 2.0, 13.0, 34.0, 5.0, 46.0]);
    let ids = integers::<B>(&[-1, 1, -2]);
    let rows = [4.0, 5.0, 6.0, 4.0, 5.0, 6.0, 1.0, 2.0, 3.0];
    assert_eq!(values(&x.index_select(0, &ids)?), rows);
    assert_eq!(values(&x.index(&[Some(&ids)])?), rows);
    let added = x.index_add(1, &ids, &x)?;
    // Columns 2, 1 and 1.
    assert_eq!(values(&added), [1.0, 7.0, 4.0, 4.0, 16.0, 10.0]);
    let put = x.index_put(&[None, Some(&integers(&[-3]))], &floats(&[9.0]))?;
    assert_eq!(values(&put), [9.0, 2.0, 3.0, 9.0, 5.0, 6.0]);
    Ok(())
}

#[test]
fn negative_indices_count_from_the_end() -> Result<()> {
    check::<CpuBackend>()?;
    check::<ReferenceBackend>()?;
    check::<swath::AnyBackend>()
}

#[test]
fn gradients_reach_the_elements_that_negative_indices_name() -> Result<()> {
    let x = matrix::<CpuBackend>().requires_grad();
    let (i, w) = (tensor![i64; [-1, 0, -1], [1, -2, 1]], tensor![f64; [1, 2, 4], [8, 16, 32]]);
    let grads = x.gather(1, &i)?.mul(&w)?.sum_all()?.backward()?;
    assert_eq!(values(grads.wrt(&x)?), [2.0, 0.0, 5.0, 0.0, 56.0, 0.0]);
    let source = w.requires_grad();
    let grads = x.scatter(1, &tensor![i64; [-1], [-3]], &source.narrow(1, 0, 1)?)?;
    let grads = grads.mul(matrix())?.sum_all()?.backward()?;
    assert_eq!(values(grads.wrt(&x)?), [1.0, 2.0, 0.0, 0.0, 5.0, 6.0]);
    assert_eq!(values(grads.wrt(&source)?), [3.0, 0.0, 0.0, 4.0, 0.0, 0.0]);
    for f in [
        (|x: &T| x.index_select(1, &tensor![i64; -1, 0, -1])) as fn(&T) -> Result<T>,
        |x| x.gather(0, &tensor![i64; [-1, -2, -1]]),
        |x| x.index_add(0, &tensor![i64; -1, -1], &x.square()?),
        |x| x.scatter_add(1, &tensor![i64; [-2, -1, -2], [0, -1, 0]], &x.square()?),
    ] {
        check_gradients(|xs: &[T]| f(&xs[0]), &[&x.detach()], GradCheck::default())?;
    }
    Ok(())
}

/// The error names the index as it was given.
#[test]
fn indices_before_the_first_are_errors() -> Result<()> {
    let (x, y) = (matrix::<CpuBackend>(), matrix::<CpuBackend>());
    for bad in [-4, 3, i64::MIN, i64::MAX] {
        let (i, one) = (tensor![i64; [bad, -1, 0], [0, 0, 0]], integers(&[bad]));
        let results = [
            x.gather(1, &i),
            x.scatter(1, &i, &y),
            x.scatter_add(1, &i, &y),
            x.index_select(1, &one),
            x.index_add(1, &one, &y.narrow(1, 0, 1)?),
            x.index(&[None, Some(&one)]),
            x.index_put(&[None, Some(&one)], &floats(&[1.0])),
            x.narrow(0, 0, 0)?.index_select(1, &one),
        ];
        for (row, result) in results.into_iter().enumerate() {
            let text = text(result);
            assert!(text.contains(&format!("index {bad} ")), "{row}: {text}");
        }
    }
    Ok(())
}

#[test]
fn ids_and_classes_are_not_negative() -> Result<()> {
    let x = matrix::<CpuBackend>();
    let ids = tensor![i64; -1, 0];
    let results = [
        x.embedding(&ids),
        ids.one_hot(3),
        x.cross_entropy(&ids, CrossEntropy::default()),
        x.nll(&ids, CrossEntropy::default()),
        x.cross_entropy(&ids, CrossEntropy { label_smoothing: 1.0, ..Default::default() }),
    ];
    for (row, result) in results.into_iter().enumerate() {
        let text = text(result);
        assert!(text.contains("index -1 "), "{row}: {text}");
    }
    let reference = matrix::<ReferenceBackend>();
    let options = CrossEntropy { weight: Some(&floats(&[1.0; 3])), ..Default::default() };
    assert!(text(reference.cross_entropy(&integers(&[-1, 0]), options)).contains("index -1 "));
    assert!(text(ids.bincount(0)).contains("-1"));
    Ok(())
}
