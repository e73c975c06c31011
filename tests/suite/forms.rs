//! Further forms of ops: negative indices, several axes, run-time dtypes and numbers of axes, masks beside indices, factors,
//! statistics.

use swath::prelude::*;
use swath::{Axes, ConvSlices, Reduction};

use crate::distances::{agree, at};

type T = Tensor<CpuBackend>;

fn text<V>(result: Result<V>) -> String {
    result.err().expect("should be an error").to_string()
}

#[test]
fn forms_of_pytorch_agree() {
    fn mask<B: Backend>(values: &[i64]) -> Tensor<B> {
        at(values.len(), values).to_dtype(DType::Bool).unwrap()
    }
    fn weight<B: Backend>(x: &Tensor<B>) -> Tensor<B> {
        let weight = Tensor::<B>::from_vec(vec![0.5, 2.0, 1.5], 3).unwrap();
        weight.to_dtype(x.dtype()).unwrap()
    }
    agree! {
        "add_scaled", 2, |xs| xs[0].add_scaled(&xs[1], -2.5);
        "mask_beside_an_index", 1, |xs| xs[0].index(&[Some(&mask(&[1, 0, 1])), Some(&at(2, &[2, 0]))]);
        "mask_of_two_axes", 1, |xs| {
            let mask = mask(&[1, 0, 0, 1, 1, 1]).reshape((3, 2))?;
            xs[0].index(&[None, Some(&mask)])
        };
        "mask_apart", 1, |xs| xs[0].index(&[Some(&mask(&[1, 0, 1])), None, Some(&at(2, &[2, 0]))]);
        "mask_put", 2, |xs| {
            xs[0].index_put(&[Some(&mask(&[1, 0, 1])), Some(&at(2, &[2, -4]))], &xs[1])
        };
        "layer_norm", 3, |xs| {
            Ok(xs[0].layer_norm_with_statistics(Some(&xs[1]), Some(&xs[2]), 0.25)?.0)
        };
        "layer_norm_mean", 1, |xs| Ok(xs[0].layer_norm_with_statistics(None, None, 0.25)?.1);
        "layer_norm_scale", 1, |xs| Ok(xs[0].layer_norm_with_statistics(None, None, 0.25)?.2);
        "embedding_padded", 1, |xs| {
            xs[0].embedding_with_padding(&at((2, 3), &[1, 0, 2, 2, 2, 1]), -1)
        };
        "probabilities", 2, |xs| {
            let weight = weight(&xs[0]);
            let options = CrossEntropy {
                axis: Some(1.into()),
                weight: Some(&weight),
                label_smoothing: 0.25,
                ..Default::default()
            };
            xs[0].cross_entropy(&xs[1].softmax(1)?, options)
        };
        "classes", 1, |xs| {
            let weight = weight(&xs[0]);
            let (weight, ignore_index) = (Some(&weight), Some(1));
            let options = CrossEntropy { weight, ignore_index, ..Default::default() };
            xs[0].cross_entropy(&at((2, 2, 2), &[0, 2, 1, 1, 2, 2, 0, 1]), options)
        };
        "conv_of_one_axis", 3, |xs| {
            let options = ConvSlices {
                stride: &[2], padding: &[1], dilation: &[2], groups: Some(2), ..Default::default()
            };
            xs[0].conv(&xs[1], Some(&xs[2]), options)
        };
        "conv_of_two_axes", 2, |xs| {
            let options = ConvSlices { stride: &[1, 2], padding: &[0, 2, 1, 1], ..Default::default() };
            xs[0].conv(&xs[1], None, options)
        };
        "conv_same", 3, |xs| {
            let options = ConvSlices { same: true, dilation: &[2], groups: Some(2), ..Default::default() };
            xs[0].conv(&xs[1], Some(&xs[2]), options)
        };
        "conv_transpose", 3, |xs| {
            let options = ConvSlices {
                stride: &[2, 3], padding: &[1], output_padding: &[1], ..Default::default()
            };
            xs[0].conv_transpose(&xs[1], Some(&xs[2]), options)
        };
    }
}

#[test]
fn indices_of_elements_count_from_either_end() -> Result<()> {
    let x = T::arange(0., 6., 1.)?.reshape((2, 3))?;
    for (from_end, from_front) in [(-3i64, 0usize), (-2, 1), (-1, 2)] {
        let (i, j) = (tensor![i64; from_end], tensor![i64; from_front as i64]);
        let column = |index: &T| index.broadcast_to((2, 1));
        let source = tensor![[7.0], [8.0]];
        let pairs = [
            (x.narrow(-1, from_end, 1)?, x.narrow(1, from_front, 1)?),
            (x.index_select(1, &i)?, x.index_select(1, &j)?),
            (x.gather(1, &column(&i)?)?, x.gather(1, &column(&j)?)?),
            (x.scatter(1, &column(&i)?, &source)?, x.scatter(1, &column(&j)?, &source)?),
            (x.scatter_add(1, &column(&i)?, &source)?, x.scatter_add(1, &column(&j)?, &source)?),
            (x.index_add(1, &i, &source)?, x.index_add(1, &j, &source)?),
            (x.index(&[None, Some(&i)])?, x.index(&[None, Some(&j)])?),
            (x.index_put(&[None, Some(&i)], &source)?, x.index_put(&[None, Some(&j)], &source)?),
            (x.slice(s![.., from_end as isize])?, x.slice(s![.., from_front as isize])?),
            (
                x.slice_assign(s![.., from_end as isize], 9)?,
                x.slice_assign(s![.., from_front as isize], 9)?,
            ),
        ];
        for (found, expected) in pairs {
            assert_eq!(found.to_vec::<f32>()?, expected.to_vec::<f32>()?);
        }
    }
    assert_eq!(
        text(x.narrow(1, -4, 1)),
        "narrow: index -4 is out of range for axis 1 of shape [2, 3]"
    );
    assert_eq!(
        text(x.narrow(1, -1, 2)),
        "narrow: index 4 is out of range for axis 1 of shape [2, 3]"
    );
    assert!(x.narrow(1, isize::MIN, 0).is_err() && x.narrow(1, usize::MAX, 1).is_err());
    let classes = tensor![i64; -1];
    assert!(classes.one_hot(3).is_err() && x.embedding(&classes).is_err());
    Ok(())
}

#[test]
fn several_axes_are_inserted_and_removed() -> Result<()> {
    let x = T::ones((2, 3), DType::F32)?.requires_grad();
    let y = x.unsqueeze((-1, 0, 2))?;
    assert_eq!(y.dims(), [1, 2, 1, 3, 1]);
    let z = y.squeeze((4, 0, -3))?;
    assert_eq!((z.dims(), z.sum_all()?.backward()?.wrt(&x)?.dims()), (&[2, 3][..], &[2, 3][..]));
    assert_eq!(T::ones((), DType::F32)?.unsqueeze([0, 1])?.dims(), [1, 1]);
    assert_eq!(T::ones([1, 1, 1], DType::F32)?.squeeze(..)?.dims(), [0; 0]);
    assert_eq!(x.unsqueeze([0usize; 0])?.dims(), [2, 3]);
    let axis = swath::Axis::from(-1);
    assert_eq!(x.unsqueeze(axis)?.squeeze(axis)?.dims(), [2, 3]);
    assert_eq!(
        text(y.squeeze((0, 1))),
        "squeeze: shape [1, 2, 1, 3, 1]: only an axis of extent 1 can be squeezed"
    );
    assert_eq!(text(y.squeeze((0, -5))), "squeeze: axis 0 appears twice for shape [1, 2, 1, 3, 1]");
    assert_eq!(text(x.unsqueeze((0, 4))), "unsqueeze: axis 4 is out of range for shape [2, 3]");
    assert_eq!(text(x.unsqueeze((0, -4))), "unsqueeze: axis 0 appears twice for shape [2, 3]");
    assert_eq!(
        text(x.unsqueeze([0, 1, 2, 3, 4, 5, 6])),
        "unsqueeze: 9 axes, at most 8 are supported"
    );
    Ok(())
}

/// One signed form of the axes of every reduction: one axis, several, all, those of an `Option`.
#[test]
fn reductions_have_one_signed_form() -> Result<()> {
    let x = T::rand((2, 3, 4), 0.5..2.0, &mut Rng::seed(4))?;
    type Form = fn(&T, Axes) -> Result<T>;
    type Fixed = fn(&T, Option<&[usize]>) -> Result<T>;
    let forms: [(Form, Fixed); 11] = [
        (|x, axes| x.sum_axis(axes, true), |x, axes| x.sum(axes, true)),
        (|x, axes| x.prod_axis(axes, true), |x, axes| x.prod(axes, true)),
        (|x, axes| x.mean_axis(axes, true), |x, axes| x.mean(axes, true)),
        (|x, axes| x.max_axis(axes, true), |x, axes| x.max(axes, true)),
        (|x, axes| x.min_axis(axes, true), |x, axes| x.min(axes, true)),
        (|x, axes| x.logsumexp_axis(axes, true), |x, axes| x.logsumexp(axes, true)),
        (|x, axes| x.variance_axis(axes, true, 1), |x, axes| x.variance(axes, true, 1)),
        (|x, axes| x.std_axis(axes, true, 1), |x, axes| x.std(axes, true, 1)),
        (|x, axes| x.norm_axis(3.0, axes, true), |x, axes| x.norm(3.0, axes, true)),
        (|x, axes| x.all_axis(axes, true), |x, axes| x.all(axes, true)),
        (|x, axes| x.any_axis(axes, true), |x, axes| x.any(axes, true)),
    ];
    for (signed, fixed) in forms {
        let same = |axes: Axes, positive: Option<&[usize]>| {
            let (found, expected) = (signed(&x, axes).unwrap(), fixed(&x, positive).unwrap());
            assert_eq!(found.shape(), expected.shape());
            let wide = |x: &T| x.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
            assert_eq!(wide(&found), wide(&expected));
        };
        same((-1).into(), Some(&[2]));
        same((0, -1).into(), Some(&[0, 2]));
        same((..).into(), None);
        same(None::<&[i64]>.into(), None);
        same(Some(&[-2i64][..]).into(), Some(&[1]));
    }
    assert_eq!(
        x.flip(..)?.slice(s![0, 0, 0])?.item::<f32>()?,
        x.slice(s![1, 2, 3])?.item::<f32>()?
    );
    Ok(())
}

#[test]
fn values_of_a_dtype_known_at_run_time() -> Result<()> {
    for dtype in DType::ALL {
        let x = T::full_as((2, 1), 1, dtype)?;
        assert_eq!((x.dtype(), x.to_dtype(DType::F64)?.to_vec::<f64>()?), (dtype, vec![1.0; 2]));
        for (k, expected) in [
            (0, [1.0, 0.0, 0.0, 0.0, 1.0, 0.0]),
            (1, [0.0, 1.0, 0.0, 0.0, 0.0, 1.0]),
            (-1, [0.0, 0.0, 0.0, 1.0, 0.0, 0.0]),
            (isize::MIN, [0.0; 6]),
            (isize::MAX, [0.0; 6]),
        ] {
            let x = T::eye_with((2, 3), k, dtype)?;
            assert_eq!(
                (x.dtype(), x.to_dtype(DType::F64)?.to_vec::<f64>()?),
                (dtype, expected.to_vec())
            );
        }
        let ids = tensor![i64; [2, 0], [1, 1]];
        let last = ids.one_hot(3)?.to_dtype(dtype)?;
        for axis in [-3, -2, -1, 0, 1, 2] {
            let x = ids.one_hot_as(3, axis, dtype)?;
            assert_eq!(x.dtype(), dtype);
            let x = x.movedim(axis, -1)?.to_dtype(DType::F64)?.to_vec::<f64>()?;
            assert_eq!(x, last.to_dtype(DType::F64)?.to_vec::<f64>()?);
        }
    }
    let reason = "full_as: scalar 300 is not representable in u8, the dtype of shape [2]";
    assert_eq!(text(T::full_as(2, 300, DType::U8)), reason);
    assert_eq!(
        text(T::eye_with((1, 2, 3), 0, DType::F32)),
        "eye_with: shape [1, 2, 3]: expected one or two extents"
    );
    assert_eq!(
        text(tensor![i64; 3].one_hot_as(3, 0, DType::F32)),
        "one_hot_as: index 3 is out of range for axis 0 of shape [3, 1]"
    );
    assert_eq!(
        text(tensor![i64; 3].one_hot_as(3, 2, DType::F32)),
        "one_hot_as: axis 2 is out of range for shape [1]"
    );
    assert_eq!(tensor![i64; 0].narrow(0, 0, 0)?.one_hot_as(2, 0, DType::Bool)?.dims(), [2, 0]);
    Ok(())
}

#[test]
fn logic_takes_numbers_of_any_kind() -> Result<()> {
    let x = tensor![0.0, f32::NAN, 2.0];
    assert_eq!(x.logical_and(0.5)?.to_vec::<bool>()?, [false, true, true]);
    assert_eq!(x.logical_and(0)?.to_vec::<bool>()?, [false; 3]);
    assert_eq!(x.logical_or(f64::NAN)?.to_vec::<bool>()?, [true; 3]);
    assert_eq!(x.logical_xor(1)?.to_vec::<bool>()?, [true, false, false]);
    // A fraction is true of integers, too.
    assert_eq!(tensor![i64; 0, 3].logical_and(0.5)?.to_vec::<bool>()?, [false, true]);
    assert_eq!(tensor![i64; 0, 3].logical_xor(tensor![1.0, 1.0])?.to_vec::<bool>()?, [true, false]);
    Ok(())
}

#[test]
fn masks_that_do_not_fit_are_errors() -> Result<()> {
    let x = T::ones((2, 3), DType::F32)?;
    let (two, three) = (tensor![bool; true, false], tensor![bool; true, false, true]);
    assert_eq!(text(x.index(&[Some(&three)])), "index: shapes [2, 3] and [3] do not fit");
    assert_eq!(text(x.index(&[None, None, Some(&two)])), "index: shapes [2, 3] and [2] do not fit");
    let all = T::ones((2, 3), DType::Bool)?;
    assert_eq!(
        text(x.index_put(&[Some(&all), Some(&two)], &x)),
        "index_put: shapes [2, 3] and [2] do not fit"
    );
    assert_eq!(
        text(x.index(&[Some(&tensor![bool; true].reshape(())?)])),
        "index: shapes [2, 3] and [] do not fit"
    );
    let fourth = text(x.index(&[None, None, Some(&tensor![i64; 0])]));
    assert_eq!(fourth, "index: axis 2 is out of range for shape [2, 3]");
    // A mask of no true element selects nothing; one of all is a selection of all.
    let none = two.logical_and(0)?;
    assert_eq!(x.index(&[Some(&none)])?.dims(), [0, 3]);
    assert_eq!(x.index(&[Some(&all)])?.dims(), [6]);
    assert_eq!(x.index_put(&[Some(&none)], &tensor![5.0])?.to_vec::<f32>()?, [1.0; 6]);
    assert_eq!(x.index_put(&[Some(&all)], &tensor![5.0])?.to_vec::<f32>()?, [5.0; 6]);
    Ok(())
}

#[test]
fn factors_of_integers_and_of_floats() -> Result<()> {
    let (a, b) = (tensor![i64; 1, 2], tensor![i64; 10, i64::MAX]);
    assert_eq!(a.add_scaled(&b, -2)?.to_vec::<i64>()?, [-19, 4]);
    assert!(
        text(a.add_scaled(&b, 0.5))
            .starts_with("add_scaled: scalar 0.5 is not representable in i64")
    );
    assert!(
        text(tensor![bool; true].add_scaled(&tensor![bool; true], 1))
            .starts_with("add_scaled: not defined for bool")
    );
    assert_eq!(
        text(tensor![1.0, 2.0].add_scaled(&tensor![[1.0, 2.0, 3.0]], 1)),
        "add_scaled: shapes [2] and [1, 3] do not fit"
    );
    // One rounding: 1 + 2^-12 times itself is 1 + 2^-11 + 2^-24.
    let x = 1.0 + 2f32.powi(-12);
    let y = tensor![-1.0 - 2f32.powi(-11)].add_scaled(&tensor![x], x)?;
    assert_eq!(y.item::<f32>()?, 2f32.powi(-24));
    Ok(())
}

#[test]
fn statistics_of_rows_of_16_bits_have_32() -> Result<()> {
    let x = tensor![[1.0, 5.0], [2.0, 2.5]].to_dtype(DType::F16)?;
    let (y, mean, scale) = x.layer_norm_with_statistics(None, None, 0.0)?;
    assert_eq!((y.dtype(), mean.dtype(), scale.dtype()), (DType::F16, DType::F32, DType::F32));
    assert_eq!((mean.to_vec::<f32>()?, scale.to_vec::<f32>()?), (vec![3.0, 2.25], vec![0.5, 4.0]));
    assert_eq!(mean.dims(), [2, 1]);
    let error = text(tensor![1.0, 2.0].layer_norm_with_statistics(None, None, -1.0));
    assert_eq!(error, "layer_norm_with_statistics: eps must be at least 0, got -1.0 for shape [2]");
    Ok(())
}

#[test]
fn unsorted_largest_elements_are_those_of_topk() -> Result<()> {
    let x = T::randn((3, 40), &mut Rng::seed(2))?;
    let (values, indices) = x.topk_unsorted(7, -1)?;
    assert_eq!(x.gather(-1, &indices)?.to_vec::<f32>()?, values.to_vec::<f32>()?);
    assert_eq!(values.sort(-1, true)?.0.to_vec::<f32>()?, x.topk(7, -1)?.0.to_vec::<f32>()?);
    Ok(())
}

#[test]
fn padding_rows_and_options_that_do_not_fit_are_errors() -> Result<()> {
    let table = T::ones((3, 2), DType::F32)?;
    let ids = tensor![i64; 0, 2];
    for padding in [3, -4, i64::MIN] {
        let error = text(table.embedding_with_padding(&ids, padding));
        assert_eq!(
            error,
            format!(
                "embedding_with_padding: index {padding} is out of range for axis 0 of shape [3, 2]"
            )
        );
    }
    let (x, w) = (T::ones((1, 1, 4, 4), DType::F32)?, T::ones((1, 1, 2, 2), DType::F32)?);
    let stride = ConvSlices { stride: &[1, 1, 1], ..Default::default() };
    assert_eq!(
        text(x.conv(&w, None, stride)),
        "conv: expected a number for each of 2 axes or one, got [1, 1, 1]"
    );
    let uneven = ConvSlices { padding: &[0, 0, 1, 1], ..Default::default() };
    assert!(
        text(x.conv_transpose(&w, None, uneven))
            .starts_with("conv_transpose: expected equal padding at both ends")
    );
    let flat = T::ones((1, 1), DType::F32)?;
    assert_eq!(
        text(x.conv(&flat, None, ConvSlices::default())),
        "conv: shape [1, 1]: expected filters with 3 to 5 axes: [out, in, …]"
    );
    let volume = T::ones((1, 1, 2, 2, 2), DType::F32)?;
    assert!(
        text(x.conv(&volume, None, ConvSlices::default()))
            .starts_with("conv: shape [1, 1, 4, 4]: expected 5 axes")
    );
    let plain = x.conv(&w, None, ConvSlices::default())?;
    assert_eq!(
        plain.to_vec::<f32>()?,
        x.conv2d(&w, None, ConvOptions::default())?.to_vec::<f32>()?
    );
    Ok(())
}

/// Probabilities of classes on axis 1 have the losses of the classes that they name.
#[test]
fn probabilities_on_axis_1_name_classes() -> Result<()> {
    let x = T::randn((2, 3, 4, 5), &mut Rng::seed(1))?;
    let classes = T::randint((2, 4, 5), 0..3, &mut Rng::seed(2))?;
    let p = classes.one_hot_as(3, 1, DType::F32)?;
    for reduction in [Reduction::Mean, Reduction::Sum, Reduction::None] {
        let options = CrossEntropy { reduction, axis: Some(1.into()), ..Default::default() };
        let by_class = x.cross_entropy(&classes, options)?;
        assert!(x.cross_entropy(&p, options)?.allclose(&by_class, 1e-5, 1e-6)?);
    }
    Ok(())
}
