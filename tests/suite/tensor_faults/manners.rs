//! Lists of tensors, short forms, numbers as operands, and errors that name what differs.

use super::{T, text, values};
use swath::prelude::*;
use swath::{ConvOptions, ConvTransposeOptions, bf16, f16};

#[test]
fn lists_hold_tensors_or_references() -> Result<()> {
    let x = T::arange(0., 6., 1.)?.reshape((2, 3))?;
    let (a, b) = (x.narrow(1, 0, 1)?, x.narrow(1, 1, 2)?);
    let parts: Vec<T> = x.split(1, 1)?;
    let references: Vec<&T> = parts.iter().collect();
    for joined in [
        Tensor::cat(&[&a, &b], 1)?,
        Tensor::cat(&[a.clone(), b.clone()], 1)?,
        Tensor::cat(&parts, 1)?,
        Tensor::cat(&parts[..], 1)?,
        Tensor::cat(&x.chunk(2, 1)?, -1)?,
        Tensor::cat(&references, 1)?,
        Tensor::cat(&[std::sync::Arc::new(a), std::sync::Arc::new(b)], 1)?,
    ] {
        assert_eq!(values(&joined), values(&x));
    }
    let columns = x.unbind(1)?;
    assert_eq!(values(&Tensor::stack(&columns, 1)?), values(&x));
    assert_eq!(values(&Tensor::stack(&[&columns[2], &columns[0]], 0)?), [2.0, 5.0, 0.0, 3.0]);
    let grid = Tensor::meshgrid(&columns[..2])?;
    assert_eq!(values(&grid[1]), values(&Tensor::meshgrid(&[&columns[0], &columns[1]])?[1]));
    assert_eq!(Tensor::meshgrid_xy(&columns)?.len(), 3);
    let product = Tensor::einsum("i,i->", &columns[..2])?;
    assert_eq!(values(&product), values(&Tensor::einsum("i,i->", &[&columns[0], &columns[1]])?));
    // Gradients reach owned tensors of a list.
    let leaf = x.requires_grad();
    let grads = Tensor::cat(&leaf.split([1, 2], 1)?, 1)?.square()?.sum_all()?.backward()?;
    assert_eq!(values(grads.wrt(&leaf)?), values(&x.mul(2)?));
    Ok(())
}

#[test]
fn reductions_of_all_have_short_forms() -> Result<()> {
    let x = tensor![[2.0, -3.0], [4.0, 5.0]];
    let found = [x.sum_all()?, x.prod_all()?, x.mean_all()?, x.max_all()?, x.min_all()?];
    assert!(found.iter().all(|y| y.rank() == 0));
    assert_eq!(found.map(|y| values(&y)[0]), [8.0, -120.0, 2.0, 5.0, -3.0]);
    assert!(text(T::zeros(0, DType::F32)?.max_all()).starts_with("max_all: "));
    assert!(text(tensor![i64; 1].mean_all()).starts_with("mean_all: "));
    Ok(())
}

#[test]
fn numbers_of_any_type_are_operands() -> Result<()> {
    let x = tensor![3.0, 5.0];
    let n = x.numel();
    let sums = [
        x.add(2.0)?,
        x.add(2)?,
        x.add(n)?,
        x.add(2f32)?,
        x.add(2u8)?,
        x.add(2i8)?,
        x.add(2u16)?,
        x.add(2i16)?,
        x.add(2u32)?,
        x.add(2u64)?,
        x.add(2isize)?,
        x.add(f16::from_f32(2.0))?,
        x.add(bf16::from_f32(2.0))?,
        &x + n,
        x.add_scalar(n)?,
        &x + 2,
    ];
    assert!(sums.iter().all(|sum| values(sum) == [5.0, 7.0]));
    assert_eq!(values(&(2.0 * &x).exp()?.log()?.round()?), [6.0, 10.0]);
    assert_eq!(values(&(1 - &x).square()?), [4.0, 16.0]);
    assert_eq!(values(&x.sub(1)?.mul(n)?.div(4u8)?.maximum(2usize)?), [2.0, 2.0]);
    // Beyond `i64`, the nearest float: not representable among integers.
    let huge = tensor![f64; 0].add(u64::MAX)?;
    assert_eq!(values(&huge), [2f64.powi(64)]);
    assert!(text(tensor![i64; 0].add(u64::MAX)).contains("not representable"));
    Ok(())
}

#[test]
fn slices_are_set_to_tensors_or_numbers() -> Result<()> {
    let mut x = T::zeros((2, 3), DType::F32)?;
    let place = x.as_slice::<f32>()?.as_ptr();
    x.set_slice(s![0], 1)?;
    x.set_slice(s![.., 1], &tensor![5.0, 6.0])?;
    x.set_slice(s![1, 2..], 0.5)?;
    assert_eq!(values(&x), [1.0, 5.0, 1.0, 0.0, 6.0, 0.5]);
    assert_eq!(x.as_slice::<f32>()?.as_ptr(), place);
    let leaf = x.requires_grad();
    let grads = leaf.slice_assign(s![0, ..], 7)?.square()?.sum_all()?.backward()?;
    assert_eq!(values(grads.wrt(&leaf)?), [0.0, 0.0, 0.0, 0.0, 12.0, 1.0]);
    let mut ids = tensor![i64; 1, 2];
    assert!(text(ids.set_slice(s![0], 0.5)).starts_with("set_slice: scalar 0.5"));
    assert!(text(ids.slice_assign(s![5], 1)).starts_with("slice_assign: index 5"));
    Ok(())
}

fn zeros(shape: impl Into<Shape>) -> T {
    T::zeros(shape, DType::F32).unwrap()
}

#[test]
fn errors_of_layers_say_which_extents_differ() -> Result<()> {
    let (x, w) = (zeros((4, 8)), zeros((5, 9)));
    let last = zeros((1, 32, 32, 3));
    let filters = zeros((8, 3, 5, 5));
    let groups = ConvOptions { groups: 2, ..Default::default() };
    let (plain, transposed) = (ConvOptions::default(), ConvTransposeOptions::default());
    let cases = [
        (x.linear(&w, None), "linear: 9 inputs expected, found 8"),
        (zeros((4, 9)).linear(&w, Some(&zeros(4))), "linear: a bias of 5 expected, found 4"),
        (x.linear(&zeros(8), None), "linear: shape [8]: expected weights [outputs, inputs]"),
        (
            last.conv2d(&filters, None, plain),
            "conv2d: 3 channels expected, axis 1 has 32: are the channels last?",
        ),
        (
            zeros((1, 4, 32, 32)).conv2d(&filters, None, ConvOptions::default()),
            "conv2d: 3 channels expected, axis 1 has 4",
        ),
        (
            zeros((1, 4, 32, 32)).conv2d(&filters, None, groups),
            "conv2d: 6 channels expected, axis 1 has 4",
        ),
        (
            zeros((1, 9, 3)).conv1d(&zeros((2, 3, 1)), None, ConvOptions::default()),
            "conv1d: 3 channels expected, axis 1 has 9: are the channels last?",
        ),
        (
            zeros((1, 9, 9, 9, 3)).conv3d(&zeros((2, 3, 1, 1, 1)), None, ConvOptions::default()),
            "conv3d: 3 channels expected, axis 1 has 9: are the channels last?",
        ),
        (
            last.conv_transpose2d(&zeros((3, 8, 2, 2)), None, transposed),
            "conv_transpose2d: 3 channels expected, axis 1 has 32: are the channels last?",
        ),
        (
            zeros((1, 3, 9, 9)).conv2d(&filters, Some(&zeros(3)), ConvOptions::default()),
            "conv2d: a bias of 8 expected, found 3",
        ),
    ];
    for (result, expected) in cases {
        let text = text(result);
        assert!(text.starts_with(expected), "{text}, not {expected}");
    }
    Ok(())
}

#[test]
fn errors_of_losses_say_that_labels_are_integers() {
    let logits = zeros((2, 3));
    for labels in [zeros(2), zeros(2).to_dtype(DType::F64).unwrap()] {
        for (op, result) in [
            ("cross_entropy", logits.cross_entropy(&labels, CrossEntropy::default())),
            ("nll", logits.nll(&labels, CrossEntropy::default())),
        ] {
            let text = text(result);
            assert!(text.starts_with(&format!("{op}: labels are integers")), "{text}");
        }
    }
    // Probabilities have the shape of the logits.
    assert!(logits.cross_entropy(&zeros((2, 3)), CrossEntropy::default()).is_ok());
}
