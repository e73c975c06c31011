//! What the pages of these operations promise: dtypes, empty axes, weights of 0, ties, errors.

use super::*;

const NAN: f32 = f32::NAN;
const INF: f32 = f32::INFINITY;

fn row(values: &[f32]) -> T {
    T::from_slice(values, (1, 1, 1, values.len())).unwrap()
}

fn bits(x: &T) -> Vec<u32> {
    x.to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
}

#[test]
fn integers_and_booleans_are_selected_and_moved() -> Result<()> {
    let x = tensor![i64; [1, 2, 3]];
    let nearest = Resize::new(ResizeMode::Nearest(NearestMode::PreferFloor));
    let y = x.resize(&nearest.clone().size(&[2, 6]))?;
    assert_eq!(y.to_vec::<i64>()?, [1, 1, 2, 2, 3, 3, 1, 1, 2, 2, 3, 3]);
    let roi = vec![[-1.0, 1.0]];
    let cropped = nearest.coordinates(Coordinates::TfCropAndResize { roi, outside: -7.0 });
    let y = x.resize(&cropped.clone().size(&[5]))?;
    assert_eq!(y.to_vec::<i64>()?, [-7, -7, 1, 2, 3]);
    let error = x.to_dtype(DType::U8)?.resize(&cropped.size(&[5])).unwrap_err().to_string();
    assert!(error.contains("-7"), "{error}");
    let x = tensor![bool; true, false, false, false].reshape((4, 1, 1))?;
    assert_eq!(x.pixel_shuffle(2)?.to_vec::<bool>()?, [true, false, false, false]);
    let x = tensor![u8; [[5, 6]]];
    let y = x.max_unpool1d(&tensor![i64; [[3, -1]]], 4)?;
    assert_eq!(y.to_vec::<u8>()?, [0, 0, 0, 6]);
    let volume = tensor![i64; 1, 2].reshape((1, 1, 1, 1, 2))?;
    let y = volume.interpolate([1, 2, 3], Interpolation::NearestExact)?;
    assert_eq!(y.to_vec::<i64>()?, [1, 2, 2, 1, 2, 2]);
    Ok(())
}

/// The position is `(i + ½) / s`, for which ONNX's reference has no code; with `Ceil` it moves even where s is 1.
#[test]
fn the_older_half_pixel_for_nearest() -> Result<()> {
    let x = tensor![0.0, 1.0, 2.0];
    let moved = |mode, size: usize| {
        let resize = Resize::new(ResizeMode::Nearest(mode)).size(&[size]);
        x.resize(&resize.coordinates(Coordinates::TfHalfPixelForNn))?.to_vec::<f32>()
    };
    assert_eq!(moved(NearestMode::Floor, 6)?, [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]);
    assert_eq!(moved(NearestMode::PreferCeil, 6)?, [0.0, 1.0, 1.0, 2.0, 2.0, 2.0]);
    assert_eq!(moved(NearestMode::Floor, 3)?, [0.0, 1.0, 2.0]);
    assert_eq!(moved(NearestMode::Ceil, 3)?, [1.0, 2.0, 2.0]);
    Ok(())
}

#[test]
fn positions_are_computed_from_a_given_scale() -> Result<()> {
    let x = row(&[0.0, 1.0, 2.0, 3.0]);
    let linear = Interpolation::Bilinear { align_corners: false };
    // 4 pixels of 4 · 1.2, but each at (i + ½) / 1.2 - ½: PyTorch copies such images, `resize` does not.
    assert_eq!(x.interpolate([1.0, 1.2], linear)?.to_vec::<f32>()?, [0.0, 1.0, 2.0, 3.0]);
    let resize = Resize::new(ResizeMode::Linear).axes(&[-1]).scale(&[1.25]);
    let scaled = x.resize(&resize)?;
    let expected = tensor![f64; 0.0, 0.7, 1.5, 2.3, 3.0].reshape((1, 1, 1, 5))?;
    close("a given scale", &scaled, &expected, 1e-6);
    let both = x.resize(&resize.size(&[2]))?;
    assert_eq!(both.to_vec::<f32>()?, scaled.to_vec::<f32>()?[..2]);
    let corners = Interpolation::Bilinear { align_corners: true };
    assert_eq!(
        x.interpolate([1.0, 1.7], corners)?.to_vec::<f32>()?,
        x.interpolate([1, 6], corners)?.to_vec::<f32>()?
    );
    Ok(())
}

#[test]
fn one_axis_may_have_no_element() -> Result<()> {
    let none = T::zeros((0, 2, 3, 4), DType::F32)?;
    let bilinear = Interpolation::BilinearAntialias;
    assert_eq!(none.interpolate([5, 1], bilinear)?.dims(), [0, 2, 5, 1]);
    assert_eq!(none.interpolate([0.5, 2.0], Interpolation::Area)?.dims(), [0, 2, 1, 8]);
    let grid = |n: usize, w: usize| T::zeros((n, 1, w, 2), DType::F32);
    let sample =
        |x: &T, grid: &T| x.grid_sample(grid, GridMode::Bicubic, GridPadding::Reflection, false);
    assert_eq!(sample(&none, &grid(0, 2)?)?.dims(), [0, 2, 1, 2]);
    let images = T::zeros((1, 2, 3, 4), DType::F32)?;
    assert_eq!(sample(&images, &grid(1, 0)?)?.dims(), [1, 2, 1, 0]);
    assert_eq!(
        T::zeros((0, 2, 3), DType::F32)?.affine_grid((0, 1, 2, 2), true)?.dims(),
        [0, 2, 2, 2]
    );
    let rois = T::zeros((0, 5), DType::F32)?;
    assert_eq!(images.roi_align(&rois, [3, 2], 1.0, 0, true)?.dims(), [0, 2, 3, 2]);
    let channels = T::zeros((1, 0, 3, 4), DType::F32)?;
    let rois = tensor![[0.0, 0.0, 0.0, 1.0, 1.0]];
    assert_eq!(channels.roi_align(&rois, 2, 1.0, 0, true)?.dims(), [1, 0, 2, 2]);
    assert_eq!(sample(&channels, &grid(1, 2)?)?.dims(), [1, 0, 1, 2]);
    assert_eq!(channels.pixel_shuffle(3)?.dims(), [1, 0, 9, 12]);
    assert_eq!(channels.channel_shuffle(3)?.dims(), [1, 0, 3, 4]);
    assert_eq!(channels.local_response_norm(5, 1.0, 1.0, 1.0)?.dims(), [1, 0, 3, 4]);
    let boxes = T::zeros((0, 4), DType::F32)?;
    assert_eq!(boxes.nms(&T::zeros(0, DType::F32)?, 0.5)?.dims(), [0]);
    let unpooled =
        T::zeros((1, 0, 2), DType::F32)?.max_unpool1d(&T::zeros((1, 0, 2), DType::I64)?, 7)?;
    assert_eq!(unpooled.dims(), [1, 0, 7]);
    Ok(())
}

/// NaN and infinities beyond an image, or with a weight of 0 in a resize, have no part; PyTorch's do in a grid.
#[test]
fn pixels_without_a_part_do_not_make_nan() -> Result<()> {
    for far in [NAN, INF, -INF] {
        let x = row(&[far, 2.0, far]);
        let same = Resize::new(ResizeMode::Linear).axes(&[3]).size(&[1]).antialias(false);
        assert_eq!(x.resize(&same)?.to_vec::<f32>()?, [2.0]);
        let sampled = |at: f32, padding| {
            let grid = T::from_slice(&[at, 0.0], (1, 1, 1, 2))?;
            x.grid_sample(&grid, GridMode::Bilinear, padding, true)?.item::<f32>()
        };
        assert_eq!(sampled(-3.5, GridPadding::Zeros)?, 0.0);
        assert_eq!(sampled(1.0, GridPadding::Border)?.to_bits() << 1, far.to_bits() << 1);
        assert!(sampled(0.0, GridPadding::Border)?.is_nan());
        let rois = tensor![[0.0, 10.0, 10.0, 12.0, 12.0]];
        assert_eq!(x.roi_align(&rois, 1, 1.0, 2, false)?.item::<f32>()?, 0.0);
        assert_eq!(x.roi_align_max(&rois, 1, 1.0, 2, false)?.item::<f32>()?, 0.0);
    }
    Ok(())
}

#[test]
fn many_regions_have_the_bits_of_each_alone() -> Result<()> {
    let rng = &mut Rng::seed(3);
    let x = T::randn((2, 96, 9, 8), rng)?;
    let images = T::randint_as((90, 1), 0..2, DType::F32, rng)?;
    let rois = T::cat(
        &[&images, &T::rand((90, 2), -1.0..4.0, rng)?, &T::rand((90, 2), 3.0..9.0, rng)?],
        1,
    )?;
    for ratio in [0, 2] {
        let all = x.roi_align(&rois, 7, 1.0, ratio, true)?;
        for (i, region) in rois.split(1, 0)?.iter().enumerate() {
            let alone = x.roi_align(region, 7, 1.0, ratio, true)?;
            assert_eq!(bits(&alone), bits(&all.narrow(0, i, 1)?.contiguous()?), "{i}");
        }
    }
    // A region of width 0 has no samples, and one that ends before it begins is one pixel wide without `aligned`.
    let x = row(&[1.0, 2.0, 3.0]);
    let flat = tensor![[0.0, 1.0, 0.0, 1.0, 2.0]];
    assert_eq!(x.roi_align(&flat, 1, 1.0, 0, true)?.item::<f32>()?, 0.0);
    let turned = tensor![[0.0, 1.0, 0.0, 0.0, 0.0]];
    assert_eq!(x.roi_align(&turned, 1, 1.0, 1, false)?.item::<f32>()?, 2.5);
    Ok(())
}

#[test]
fn ties_and_nan_among_boxes() -> Result<()> {
    let boxes = tensor![
        [0.0, 0.0, 2.0, 1.0],
        [0.0, 0.0, 1.0, 1.0],
        [5.0, 5.0, 5.0, 5.0],
        [5.0, 5.0, 5.0, 5.0]
    ];
    let kept = |scores: &T, threshold| boxes.nms(scores, threshold)?.to_vec::<i64>();
    // An overlap that equals the threshold is kept; empty boxes overlap nothing.
    assert_eq!(kept(&tensor![0.5, 0.5, -0.0, 0.0], 0.5)?, [0, 1, 2, 3]);
    assert_eq!(kept(&tensor![0.5, 0.5, -0.0, 0.0], 0.49)?, [0, 2, 3]);
    assert_eq!(kept(&tensor![0.5, NAN, INF, -INF], 0.49)?, [1, 2, 3]);
    let half = boxes.to_dtype(DType::F16)?;
    assert_eq!(half.nms(&tensor![0.25, 0.5, 0.0, 1.0], 0.5)?.to_vec::<i64>()?, [3, 1, 0, 2]);
    Ok(())
}

/// Every error names the operation and what does not fit.
#[test]
fn errors_name_the_operation_and_the_shapes() -> Result<()> {
    let x = T::ones((2, 3, 4, 5), DType::F32)?;
    let integers = x.to_dtype(DType::I64)?;
    let line = tensor![1.0, 2.0];
    let empty = T::zeros((1, 1, 0, 2), DType::F32)?;
    let grid = T::zeros((2, 1, 1, 2), DType::F32)?;
    let rois = tensor![[0.0, 0.0, 0.0, 1.0, 1.0]];
    let linear = Resize::new(ResizeMode::Linear);
    let tiny = linear.clone().axes(&[2]).size(&[1]).scale(&[1e-300]).antialias(true);
    let crop = Coordinates::TfCropAndResize { roi: vec![[0.0, f64::INFINITY]], outside: 0.0 };
    let sample =
        |x: &T, grid: &T| x.grid_sample(grid, GridMode::Nearest, GridPadding::Zeros, false);
    let huge = usize::MAX;
    let cases: Vec<(Result<T>, &[&str])> = vec![
        (line.interpolate([2.0, 2.0], Interpolation::Nearest), &["interpolate", "[2]"]),
        (
            x.interpolate([0.1, 2.0], Interpolation::NearestExact),
            &["interpolate", "[2, 3, 4, 5]", "0.1"],
        ),
        (
            x.interpolate([f64::from(NAN), 2.0], Interpolation::Area),
            &["interpolate", "[2, 3, 4, 5]"],
        ),
        (
            x.interpolate([1e300, 2.0], Interpolation::BilinearAntialias),
            &["interpolate", "elements"],
        ),
        (x.interpolate([1; 0], Interpolation::Nearest), &["interpolate", "[2, 3, 4, 5]"]),
        (integers.interpolate([1, 1], Interpolation::Area), &["interpolate", "i64"]),
        (x.resize(&linear), &["resize", "[2, 3, 4, 5]"]),
        (x.resize(&linear.clone().size(&[1; 5])), &["resize", "[2, 3, 4, 5]"]),
        (x.resize(&linear.clone().size(&[1, 2]).scale(&[0.5])), &["resize", "[1, 2]", "[0.5]"]),
        (x.resize(&linear.clone().axes(&[4]).size(&[1])), &["resize", "axis 4"]),
        (x.resize(&linear.clone().axes(&[1, -3]).size(&[1, 1])), &["resize", "axis 1", "twice"]),
        (x.resize(&linear.clone().scale(&[f64::NAN])), &["resize", "NaN"]),
        (x.resize(&linear.clone().size(&[huge])), &["resize", "elements"]),
        (x.resize(&linear.clone().size(&[2]).coordinates(crop)), &["resize", "[2, 3, 4, 5]"]),
        (x.resize(&tiny), &["resize", "1e-300"]),
        (integers.resize(&linear.clone().size(&[2])), &["resize", "i64"]),
        (sample(&x, &line), &["grid_sample", "[2, 3, 4, 5]", "[2]"]),
        (sample(&x, &x), &["grid_sample", "[2, 3, 4, 5]"]),
        (sample(&empty, &grid.narrow(0, 0, 1)?), &["grid_sample", "[1, 1, 0, 2]"]),
        (sample(&x, &grid.to_dtype(DType::F64)?), &["grid_sample", "f64"]),
        (sample(&integers, &grid), &["grid_sample", "i64"]),
        (line.affine_grid((1, 1, 2, 2), true), &["affine_grid", "[2]", "[1, 1, 2, 2]"]),
        (T::zeros((1, 2, 3), DType::F32)?.affine_grid((1, 1, huge, 2), true), &["affine_grid"]),
        (line.pixel_shuffle(1), &["pixel_shuffle", "[2]"]),
        (x.pixel_shuffle(2), &["pixel_shuffle", "[2, 3, 4, 5]", "2"]),
        (x.pixel_shuffle(0), &["pixel_shuffle", "[2, 3, 4, 5]"]),
        (x.pixel_shuffle(huge), &["pixel_shuffle", "[2, 3, 4, 5]"]),
        (x.pixel_unshuffle(2), &["pixel_unshuffle", "[2, 3, 4, 5]"]),
        (empty.pixel_unshuffle(huge), &["pixel_unshuffle"]),
        (x.channel_shuffle(2), &["channel_shuffle", "[2, 3, 4, 5]"]),
        (line.channel_shuffle(1), &["channel_shuffle", "[2]"]),
        (x.local_response_norm(0, 1.0, 1.0, 1.0), &["local_response_norm", "[2, 3, 4, 5]"]),
        (integers.local_response_norm(1, 1.0, 1.0, 1.0), &["local_response_norm", "i64"]),
        (x.max_unpool2d(&grid, 8), &["max_unpool2d", "[2, 3, 4, 5]", "[2, 1, 1, 2]"]),
        (x.max_unpool1d(&x, 8), &["max_unpool1d", "3 axes"]),
        (x.max_unpool2d(&integers, huge), &["max_unpool2d", "elements"]),
        (x.max_unpool2d(&integers.mul(9)?, 2), &["max_unpool2d", "9"]),
        (line.roi_align(&rois, 1, 1.0, 0, true), &["roi_align", "[2]"]),
        (x.roi_align(&line, 1, 1.0, 0, true), &["roi_align", "[2]"]),
        (x.roi_align(&rois, 0, 1.0, 0, true), &["roi_align", "[2, 3, 4, 5]"]),
        (x.roi_align(&rois.add(2.0)?, 1, 1.0, 0, true), &["roi_align", "2 images"]),
        (x.roi_align(&rois.div(0.0)?, 1, 1.0, 0, true), &["roi_align", "NaN"]),
        (x.roi_align_max(&rois, huge, 1.0, 0, true), &["roi_align_max", "elements"]),
        (x.roi_align_max(&rois, 1, 1.0, huge, true), &["roi_align_max", "allocate"]),
        (x.nms(&line, 0.5), &["nms", "[2, 3, 4, 5]", "[2]"]),
        (T::zeros((3, 4), DType::F32)?.nms(&line, 0.5), &["nms", "3, 4]"]),
        (integers.non_max_suppression(&line, 1, 0.5, None, true), &["non_max_suppression", "i64"]),
        (x.non_max_suppression(&line, 1, 0.5, None, true), &["non_max_suppression", "[2]"]),
    ];
    for (i, (result, words)) in cases.into_iter().enumerate() {
        let error =
            result.map(|y| *y.shape()).expect_err(&format!("case {i}: {words:?}")).to_string();
        assert!(words.iter().all(|word| error.contains(word)), "case {i}: {error}: {words:?}");
    }
    Ok(())
}
