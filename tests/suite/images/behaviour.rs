//! Dtypes, layouts, ties, empty extents, statistics, and errors.

use super::{R, T, close, wide};
use swath::prelude::*;

fn randn(shape: impl Into<Shape>, seed: u64) -> T {
    T::randn(shape, &mut Rng::seed(seed)).unwrap()
}

/// Images in other layouts: channels last, reversed, a part of larger ones, repeated.
fn layouts(x: &T) -> Result<[T; 4]> {
    let larger = T::cat(&[x, x], 3)?.narrow(3, 0, x.dims()[3])?;
    Ok([
        x.permute(&[0, 2, 3, 1])?.contiguous()?.permute(&[0, 3, 1, 2])?,
        x.flip(2)?.contiguous()?.flip(2)?,
        larger,
        x.narrow(0, 0, 1)?.broadcast_to(*x.shape())?,
    ])
}

type Op = (&'static str, fn(&T) -> Result<T>, fn(&R) -> Result<R>);

/// One op of each kind, for both backends.
fn ops() -> Vec<Op> {
    macro_rules! ops {
        ($($name:literal |$x:ident| $f:expr;)*) => {
            vec![$(($name, |$x: &T| $f, |$x: &R| $f)),*]
        };
    }
    ops! {
        "constant" |x| x.pad(&[(2, 1), (-1, 3)], PadMode::Constant(0.5));
        "reflect" |x| x.pad(&[(1, 1), (2, 3), (4, 0)], PadMode::Reflect);
        "replicate" |x| x.pad(&[(2, 0)], PadMode::Replicate);
        "circular" |x| x.pad(&[(2, 3), (0, 4)], PadMode::Circular);
        "unfold" |x| x.unfold(3, 4, 3);
        "unfold of rows" |x| x.unfold(2, 2, 1)?.unfold(3, 3, 2);
        "mean" |x| x.adaptive_avg_pool2d([3, 4]);
        "mean of equal windows" |x| x.adaptive_avg_pool2d([2, 7]);
        "mean of all" |x| x.adaptive_avg_pool2d([1, 1]);
        "largest" |x| x.adaptive_max_pool2d([5, 3]);
        "largest of equal windows" |x| x.adaptive_max_pool2d([3, 1]);
        "largest of all" |x| x.adaptive_max_pool2d([1, 1]);
        "nearest" |x| x.interpolate([9, 3], Interpolation::Nearest);
        "nearest repeated" |x| x.interpolate([12, 14], Interpolation::Nearest);
        "bilinear" |x| x.interpolate([13, 4], Interpolation::Bilinear { align_corners: false });
        "bicubic" |x| x.interpolate([4, 20], Interpolation::Bicubic { align_corners: true });
        "batch norm" |x| Ok(x.batch_norm_training(None, None, 1e-5)?.0);
        "group norm" |x| x.group_norm(3, None, None, 1e-5);
        "instance norm" |x| x.instance_norm(None, None, 1e-5);
    }
}

/// In every layout, also of the upstream gradient, on threads, in every float type.
#[test]
fn layouts_and_dtypes_agree_with_the_reference_backend() -> Result<()> {
    for (name, op, plain) in ops() {
        for (dtype, tolerance) in
            [(DType::F64, 1e-13), (DType::F32, 4e-6), (DType::F16, 4e-3), (DType::BF16, 3e-2)]
        {
            let x = randn((3, 6, 6, 7), 3).to_dtype(dtype)?;
            for (i, x) in [x.clone()].into_iter().chain(layouts(&x)?).enumerate() {
                let what = format!("{name}, {dtype}, layout {i}");
                let exact = R::from_vec(wide(&x), *x.shape())?.requires_grad();
                let x = x.requires_grad();
                let (y, expected) = (op(&x)?, plain(&exact)?);
                let value = |x: &R| T::from_vec(wide(x), *x.shape());
                close(&what, &y, &value(&expected)?, tolerance);
                let g = randn(*y.shape(), 4).to_dtype(dtype)?;
                let last = y.rank() - 1;
                for g in [g.clone(), g.flip(last)?.contiguous()?.flip(last)?] {
                    let dx = op(&x)?.backward_with(&g)?;
                    let plain_g = R::from_vec(wide(&g), *g.shape())?;
                    let expected = plain(&exact)?.backward_with(&plain_g)?;
                    close(&what, dx.wrt(&x)?, &value(expected.wrt(&exact)?)?, 2.0 * tolerance);
                }
            }
        }
    }
    Ok(())
}

#[test]
fn integers_and_booleans_are_padded_unfolded_and_repeated() -> Result<()> {
    let x = tensor![i64; [1, 2, 3]];
    let padded = |mode| x.pad(&[(0, 1), (1, 1)], mode)?.to_vec::<i64>();
    assert_eq!(padded(PadMode::Constant(-2.7))?, [-2, 1, 2, 3, -2, -2, -2, -2, -2, -2]);
    assert_eq!(padded(PadMode::Replicate)?, [1, 1, 2, 3, 3, 1, 1, 2, 3, 3]);
    let x = tensor![bool; true, false, false];
    assert_eq!(
        x.pad(&[(1, 1)], PadMode::Constant(3.0))?.to_vec::<bool>()?,
        [true, true, false, false, true]
    );
    assert_eq!(x.pad(&[(1, 2)], PadMode::Circular)?.to_vec::<bool>()?.len(), 6);
    let x = tensor![u8; 1, 2, 3, 4];
    assert_eq!(x.unfold(0, 3, 1)?.to_vec::<u8>()?, [1, 2, 3, 2, 3, 4]);
    let image = x.reshape((1, 1, 2, 2))?;
    let y = image.interpolate([2, 3], Interpolation::Nearest)?;
    assert_eq!(y.to_vec::<u8>()?, [1, 1, 2, 3, 3, 4]);
    Ok(())
}

/// An unfolded tensor shares its elements, and may be the operand of a product.
#[test]
fn unfolded_windows_are_a_view() -> Result<()> {
    let x = T::arange(0., 1000., 1.)?;
    let windows = x.unfold(0, 8, 1)?;
    assert_eq!((windows.layout().strides(), windows.dims()), (&[1, 1][..], &[993, 8][..]));
    let y = windows.matmul(&T::ones((8, 3), DType::F32)?)?.to_vec::<f32>()?;
    assert!((0..993).all(|i| y[3 * i] == (8 * i + 28) as f32 && y[3 * i + 2] == y[3 * i]));
    // The storage is not written to, though the view has as many elements as it spans.
    let strided = T::arange(0., 32., 1.)?.slice(s![..;2])?.unfold(0, 7, 2)?.narrow(0, 0, 3)?;
    let doubled = strided.clone().mul(2.0)?.to_vec::<f32>()?;
    assert_eq!(strided.mul(2.0)?.to_vec::<f32>()?, doubled);
    assert_eq!(doubled[..8], [0.0, 4.0, 8.0, 12.0, 16.0, 20.0, 24.0, 8.0]);
    Ok(())
}

/// A window with NaN gives NaN, an infinity stays in its windows, and the gradient goes to the first maximum.
#[test]
fn special_values_and_ties_of_adaptive_poolings() -> Result<()> {
    let row = |values: &[f32]| T::from_slice(values, (1, 1, values.len()));
    let x = row(&[1.0, f32::NAN, 2.0, 3.0, f32::INFINITY])?;
    for count in [1, 3, 5] {
        let (mean, largest) = (x.adaptive_avg_pool1d(count)?, x.adaptive_max_pool1d(count)?);
        let [mean, largest] = [mean.to_vec::<f32>()?, largest.to_vec::<f32>()?];
        assert!(mean[0].is_nan() || count == 5, "{count}");
        assert!(mean.iter().zip(&largest).all(|(a, b)| a.is_nan() == b.is_nan()), "{mean:?}");
        assert!(
            count == 1 || mean[count - 1] == f32::INFINITY && largest[count - 1] == f32::INFINITY
        );
    }
    let ties = row(&[1.0, 2.0, 2.0, 2.0, 0.0, 2.0, 2.0])?.requires_grad();
    let gradient = |count| -> Result<Vec<f32>> {
        let y = ties.adaptive_max_pool1d(count)?;
        y.sum(None, false)?.backward()?.wrt(&ties)?.to_vec::<f32>()
    };
    assert_eq!(gradient(1)?, [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    // Windows 0..3, 2..5 and 4..7.
    assert_eq!(gradient(3)?, [0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0]);
    // Along both axes the first in row-major order.
    let image = tensor![[0.0, 1.0, 5.0], [5.0, 2.0, 5.0], [5.0, 0.0, 0.0]].reshape((1, 1, 3, 3))?;
    let image = image.requires_grad();
    let y = image.adaptive_max_pool2d([2, 2])?;
    let gradient = y.sum(None, false)?.backward()?.wrt(&image)?.to_vec::<f32>()?;
    assert_eq!(gradient, [0.0, 0.0, 1.0, 2.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
    Ok(())
}

/// Means and their gradient by definition, for windows of one or two pixels, of few and of many, many windows of few
/// elements and few of many. An infinity is in the windows of its pixel, and in the gradient of its window's pixels.
#[test]
fn adaptive_means_read_their_windows_alone() -> Result<()> {
    let cases = [(1, 4), (3, 7), (5, 15), (12, 4), (60, 7), (60, 37), (48, 30), (100, 3), (47, 45)];
    for ((extent, count), channels) in cases.into_iter().flat_map(|case| [(case, 2), (case, 600)]) {
        let at = format!("{extent} to {count}, {channels} channels");
        let bounds = |i: usize| (i * extent / count, ((i + 1) * extent).div_ceil(count));
        let mut values = randn((1, channels, extent), 3).to_vec::<f32>()?;
        let mut upstream = randn((1, channels, count), 4).to_vec::<f32>()?;
        values[extent / 2] = f32::INFINITY;
        upstream[count / 3] = f32::NEG_INFINITY;
        let x = T::from_slice(&values, (1, channels, extent))?.requires_grad();
        let g = T::from_slice(&upstream, (1, channels, count))?;
        let y = x.adaptive_avg_pool1d(count)?;
        let gradient = y.backward_with(&g)?.wrt(&x)?.to_vec::<f32>()?;
        let mut expected = vec![0.0; channels * count];
        let mut expected_gradient = vec![0.0; channels * extent];
        for (channel, i) in (0..channels).flat_map(|channel| (0..count).map(move |i| (channel, i)))
        {
            let (start, end) = bounds(i);
            let pixels = f64::from((end - start) as u32);
            for pixel in start..end {
                let (of_y, of_x) = (channel * count + i, channel * extent + pixel);
                expected[of_y] += f64::from(values[of_x]) / pixels;
                expected_gradient[of_x] += f64::from(upstream[of_y]) / pixels;
            }
        }
        let found = [y.to_vec::<f32>()?, gradient].concat();
        for (i, (found, expected)) in
            found.iter().zip(expected.iter().chain(&expected_gradient)).enumerate()
        {
            let found = f64::from(*found);
            let is_near = (found - expected).abs() <= 2e-6;
            assert!(found == *expected || is_near, "{at}, element {i}: {found} and {expected}");
        }
    }
    Ok(())
}

#[test]
fn nearest_pixels_are_exact() -> Result<()> {
    for (extent, count) in [(3, 7), (7, 3), (49, 100), (100, 49), (1000, 999), (5, 15)] {
        let x = T::arange_as(0., extent as f64, 1., DType::I64)?.reshape((1, 1, 1, extent))?;
        let y = x.interpolate([1, count], Interpolation::Nearest)?.to_vec::<i64>()?;
        assert!((0..count).all(|i| y[i] == (i * extent / count) as i64), "{extent} to {count}");
    }
    Ok(())
}

/// Resizing to the same size changes no bit, and constants stay constants.
#[test]
fn interpolation_keeps_sizes_and_constants() -> Result<()> {
    let x = randn((2, 3, 5, 6), 9);
    for align_corners in [false, true] {
        let modes =
            [Interpolation::Bilinear { align_corners }, Interpolation::Bicubic { align_corners }];
        for mode in modes {
            assert_eq!(x.interpolate([5, 6], mode)?.to_vec::<f32>()?, x.to_vec::<f32>()?);
            let y = T::full((1, 1, 3, 4), 2.5f64)?.interpolate([11, 9], mode)?;
            assert!(y.to_vec::<f64>()?.iter().all(|y| (y - 2.5).abs() < 1e-14));
        }
    }
    Ok(())
}

#[test]
fn statistics_are_those_of_the_batch_and_untracked() -> Result<()> {
    let x = randn((4, 3, 5, 2), 5).affine(3.0, 100.0)?;
    for (dtype, tolerance) in [(DType::F64, 1e-13), (DType::F32, 1e-6), (DType::F16, 1e-6)] {
        let x = x.to_dtype(dtype)?.requires_grad();
        let (y, mean, variance) = x.batch_norm_training(None, None, 1e-5)?;
        assert_eq!(
            (y.dtype(), mean.dtype()),
            (dtype, if dtype == DType::F64 { dtype } else { DType::F32 })
        );
        assert!(y.is_tracked() && !mean.is_tracked() && !variance.is_tracked());
        let exact = x.detach().to_dtype(DType::F64)?;
        close("mean", &mean, &exact.mean(Some(&[0, 2, 3]), false)?, tolerance);
        close("variance", &variance, &exact.variance(Some(&[0, 2, 3]), false, 0)?, tolerance);
    }
    Ok(())
}

/// Parameters and statistics of 16-bit images may be of `F32`.
#[test]
fn narrow_images_have_wide_parameters() -> Result<()> {
    let x = randn((3, 4, 2, 2), 6).to_dtype(DType::BF16)?.requires_grad();
    let [w, b] = [7, 8].map(|seed| randn(4, seed).requires_grad());
    let ys = [
        x.batch_norm_training(Some(&w), Some(&b), 1e-5)?.0,
        x.batch_norm(&b.detach(), &w.detach().abs()?, Some(&w), Some(&b), 1e-5)?,
        x.group_norm(2, Some(&w), Some(&b), 1e-5)?,
        x.instance_norm(None, Some(&b), 1e-5)?,
        x.instance_norm(Some(&w), None, 1e-5)?,
    ];
    for y in ys {
        let grads = y.sum(None, false)?.backward()?;
        assert_eq!((y.dtype(), grads.wrt(&x)?.dtype()), (DType::BF16, DType::BF16));
        for p in [&w, &b] {
            assert!(grads.get(p).is_none_or(|g| g.dtype() == DType::F32 && g.dims() == [4]));
        }
    }
    let wide = randn((3, 4), 1).to_dtype(DType::F64)?;
    assert!(matches!(wide.group_norm(2, Some(&w), None, 0.0), Err(Error::DTypeMismatch { .. })));
    Ok(())
}

/// Without a weight it is one, without a bias zero, in every op that takes them.
#[test]
fn absent_parameters_are_ones_and_zeros() -> Result<()> {
    let (x, w, b) = (randn((3, 4, 5), 1), randn(4, 2), randn(4, 3));
    let (ones, zeros) = (w.ones_like()?, w.zeros_like()?);
    let variance = w.square()?;
    type Op<'a> = &'a dyn Fn(Option<&T>, Option<&T>) -> Result<T>;
    let ops: [Op<'_>; 4] = [
        &|w, b| x.group_norm(2, w, b, 1e-5),
        &|w, b| x.instance_norm(w, b, 1e-5),
        &|w, b| Ok(x.batch_norm_training(w, b, 1e-5)?.0),
        &|w, b| x.batch_norm(&zeros, &variance, w, b, 1e-5),
    ];
    for op in ops {
        close("no bias", &op(Some(&w), None)?, &op(Some(&w), Some(&zeros))?, 1e-6);
        close("no weight", &op(None, Some(&b))?, &op(Some(&ones), Some(&b))?, 1e-6);
        close("neither", &op(None, None)?, &op(Some(&ones), Some(&zeros))?, 1e-6);
        assert_ne!(wide(&op(Some(&w), None)?), wide(&op(None, None)?));
    }
    Ok(())
}

#[test]
fn no_elements_give_no_elements_and_zero_gradients() -> Result<()> {
    for shape in [(0, 6, 6, 7), (2, 0, 6, 7)] {
        let x = T::zeros(shape, DType::F32)?.requires_grad();
        // One op mirrors channels, of which there must be some.
        let is_defined = |name: &str| x.dims()[1] > 0 || name != "reflect";
        for (name, op, _) in ops().into_iter().filter(|(name, ..)| is_defined(name)) {
            let y = op(&x).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(y.numel(), 0, "{name}");
            let grads = y.sum(None, false)?.backward()?;
            assert_eq!(grads.wrt(&x)?.shape(), x.shape(), "{name}");
        }
    }
    let x = T::zeros((0, 3, 4), DType::F32)?.requires_grad();
    let w = T::ones(3, DType::F32)?.requires_grad();
    let ys = [
        x.batch_norm_training(Some(&w), Some(&w), 1e-5)?.0,
        x.group_norm(3, Some(&w), None, 1e-5)?,
    ];
    for y in ys {
        let grads = y.sum(None, false)?.backward()?;
        assert_eq!(grads.wrt(&w)?.to_vec::<f32>()?, [0.0; 3]);
    }
    let empty = T::zeros((2, 3, 0), DType::F32)?;
    assert_eq!(empty.pad(&[(1, 2)], PadMode::Constant(4.0))?.to_vec::<f32>()?, [4.0; 18]);
    assert_eq!(empty.unfold(2, 0, 1)?.dims(), [2, 3, 1, 0]);
    assert_eq!(empty.instance_norm(None, None, 1e-5)?.dims(), [2, 3, 0]);
    Ok(())
}

#[test]
fn what_does_not_fit_is_an_error_that_names_it() {
    let zeros = |dims: &[usize]| T::zeros(dims, DType::F32).unwrap();
    let (x, row, c) = (zeros(&[2, 3, 4, 5]), zeros(&[3]), zeros(&[4]));
    let integers = x.to_dtype(DType::I64).unwrap();
    let wide = row.to_dtype(DType::F64).unwrap();
    let bilinear = Interpolation::Bilinear { align_corners: true };
    let cases: Vec<(Result<T>, &[&str])> = vec![
        (row.pad(&[(0, 1), (1, 0)], PadMode::Reflect), &["pad: ", "2 pairs", "[3]"]),
        (row.pad(&[(-2, -2)], PadMode::Reflect), &["pad: Reflect by -2 and -2", "[3]"]),
        (row.pad(&[(isize::MIN, 0)], PadMode::Circular), &["pad: ", "axis 0 of shape [3]"]),
        (row.pad(&[(1, 3)], PadMode::Reflect), &["pad: Reflect by 1 and 3", "at least 4", "[3]"]),
        (row.pad(&[(4, 3)], PadMode::Circular), &["pad: Circular", "at least 4", "[3]"]),
        (row.pad(&[(-3, 1)], PadMode::Replicate), &["pad: Replicate", "at least 1", "[3]"]),
        (row.pad(&[(isize::MAX, isize::MAX)], PadMode::Constant(0.0)), &["pad: ", "more elements"]),
        (row.unfold(1, 1, 1), &["unfold: axis 1", "[3]"]),
        (row.unfold(0, 4, 1), &["unfold: windows of 4 elements", "axis 0 of shape [3]"]),
        (row.unfold(0, 2, 0), &["unfold: ", "one every 0"]),
        (row.adaptive_avg_pool1d(2), &["adaptive_avg_pool1d: shape [3]: expected 3 axes"]),
        (
            x.adaptive_avg_pool2d([0, 2]),
            &["adaptive_avg_pool2d: no pixel", "[2, 3, 4, 5]", "[0, 2]"],
        ),
        (zeros(&[1, 1, 0, 2]).adaptive_max_pool2d([1, 2]), &["adaptive_max_pool2d: no pixel"]),
        (x.adaptive_max_pool2d([usize::MAX, 2]), &["adaptive_max_pool2d: ", "more elements"]),
        (integers.adaptive_avg_pool2d([1, 1]), &["adaptive_avg_pool2d: ", "i64"]),
        (row.interpolate([1, 1], bilinear), &["interpolate: shape [3]: expected 4 axes"]),
        (x.interpolate([3, 0], bilinear), &["interpolate: no pixel", "[2, 3, 4, 5]", "[3, 0]"]),
        (x.interpolate([3, usize::MAX], bilinear), &["interpolate: ", "more elements"]),
        (integers.interpolate([3, 3], bilinear), &["interpolate: ", "i64"]),
        (row.instance_norm(None, None, 0.0), &["instance_norm: shape [3]: expected at least two"]),
        (x.group_norm(2, None, None, 0.0), &["group_norm: 2 groups", "[2, 3, 4, 5]"]),
        (x.group_norm(0, None, None, 0.0), &["group_norm: 0 groups"]),
        (x.group_norm(3, Some(&c), None, 0.0), &["group_norm: ", "[2, 3, 4, 5] and [4]"]),
        (x.group_norm(3, None, None, -1.0), &["group_norm: eps", "-1"]),
        (x.batch_norm(&row, &c, None, None, 0.0), &["batch_norm: ", "[2, 3, 4, 5] and [4]"]),
        (x.batch_norm(&row, &wide, None, None, 0.0), &["batch_norm: dtypes f32", "f64"]),
        (x.batch_norm(&row, &row, None, None, f64::NAN), &["batch_norm: eps"]),
        (
            x.batch_norm_training(None, Some(&c), 0.0).map(|(y, ..)| y),
            &["batch_norm_training: ", "[2, 3, 4, 5] and [4]"],
        ),
        (
            integers.batch_norm_training(None, None, 0.0).map(|(y, ..)| y),
            &["batch_norm_training: ", "i64"],
        ),
    ];
    for (i, (result, parts)) in cases.into_iter().enumerate() {
        let text = result.err().unwrap_or_else(|| panic!("case {i} is no error")).to_string();
        assert!(!text.contains("filters"), "{text}");
        for part in parts {
            assert!(text.contains(part), "\"{text}\" should say \"{part}\"");
        }
    }
}
