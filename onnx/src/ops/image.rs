//! Images: resizing, sampling at positions, regions.

use swath::{
    AspectRatio, Backend, Coordinates, DType, GridMode, GridPadding, NearestMode, Resize,
    ResizeMode, Tensor,
};

use super::Rows;
use crate::error::{Error, Result};
use crate::row::Default::{Absent, Float, Int, Text};
use crate::row::{Call, Results, Row, axis, extents, one, row};

/// The value of an attribute, by its name.
fn choice<T: Clone>(call: &Call<'_, impl Backend>, name: &str, choices: &[(&str, T)]) -> Result<T> {
    let text = call.text(name)?;
    let found = choices.iter().find(|(own, _)| *own == text).map(|(_, value)| value.clone());
    found.ok_or_else(|| {
        let names: Vec<&str> = choices.iter().map(|(own, _)| *own).collect();
        Error::operator(format!("{name} must be one of {}, but is {text:?}", names.join(", ")))
    })
}

/// The numbers in an input; none if it is left out.
fn numbers<B: Backend>(call: &Call<'_, B>, at: usize) -> Result<Vec<f64>> {
    Ok(call
        .find(at)
        .map(|x| x.to_dtype(DType::F64)?.to_vec::<f64>())
        .transpose()?
        .unwrap_or_default())
}

/// The shortest decimal number that is this one in `f32`: a scale of 0.7 puts element 3 at 3 / 0.7, not next to it, which
/// may be nearest to another element.
fn decimal(scale: f32) -> f64 {
    scale.to_string().parse().unwrap_or(scale.into())
}

/// The scales in an input; none if it is left out.
fn scales<B: Backend>(call: &Call<'_, B>, at: usize) -> Result<Vec<f64>> {
    Ok(numbers(call, at)?.into_iter().map(|scale| decimal(scale as f32)).collect())
}

/// The new extents of axes by scales. As in ONNX Runtime, products that are not whole are rounded to `f32` first, in which
/// an extent of 100 times the scale 0.29 is 29.
fn scaled<B: Backend>(x: &Tensor<B>, axes: &[usize], scale: &[f64]) -> Result<Vec<usize>> {
    if let Some(scale) = scale.iter().find(|&&scale| scale <= 0.0 || !scale.is_finite()) {
        return Err(Error::operator(format!("scales must be positive, but one is {scale}")));
    }
    let scaled = |(&axis, &scale): (&usize, &f64)| match x.dims()[axis] as f64 * scale {
        whole if whole.fract() == 0.0 => whole as usize,
        _ => (x.dims()[axis] as f32 * scale as f32) as usize,
    };
    Ok(axes.iter().zip(scale).map(scaled).collect())
}

/// Resizes axes to new extents, with these scales unless they are the quotients of the extents.
fn resized<B: Backend>(
    x: &Tensor<B>,
    axes: &[usize],
    size: &[usize],
    scale: &[f64],
    options: &Resize,
) -> Result<Tensor<B>> {
    if size.contains(&0) {
        let mut shape = x.dims().to_vec();
        axes.iter().zip(size).for_each(|(&axis, &extent)| shape[axis] = extent);
        return Ok(Tensor::zeros(shape, x.dtype())?);
    }
    let is_quotient = |((&axis, &size), scale): ((&usize, &usize), &f64)| {
        x.dims()[axis] as f64 * scale == size as f64
    };
    let scale = if axes.iter().zip(size).zip(scale).all(is_quotient) { &[] } else { scale };
    let signed: Vec<isize> = axes.iter().map(|&axis| axis as isize).collect();
    let options = options.clone().axes(&signed).size(size).scale(scale);
    Ok(match options.mode {
        ResizeMode::Linear | ResizeMode::Cubic { .. } if !x.dtype().is_float() => {
            x.to_dtype(DType::F64)?.resize(&options)?.to_dtype(x.dtype())?
        }
        _ => x.resize(&options)?,
    })
}

/// `Resize` before version 11, and `Upsample`: output i lies at `i / scale`, and the nearest element is the one before
/// it, or the one after it along an axis that shrinks.
fn upsample<B: Backend>(call: &Call<'_, B>, scale: &[f64]) -> Result<Tensor<B>> {
    let x = call.tensor(0)?;
    if scale.len() != x.rank() {
        return Err(Error::operator(format!(
            "{} axes need as many scales, but there are {}",
            x.rank(),
            scale.len()
        )));
    }
    let is_linear =
        choice(call, "mode", &[("nearest", false), ("linear", true), ("bilinear", true)])?;
    let mut y = x.clone();
    for (shrinks, rounding) in [(false, NearestMode::Floor), (true, NearestMode::Ceil)] {
        let axes: Vec<usize> = (0..x.rank())
            .filter(|&axis| scale[axis] != 1.0 && (scale[axis] < 1.0) == shrinks)
            .collect();
        if axes.is_empty() {
            continue;
        }
        let scale: Vec<f64> = axes.iter().map(|&axis| scale[axis]).collect();
        let mode = if is_linear { ResizeMode::Linear } else { ResizeMode::Nearest(rounding) };
        let size = scaled(&y, &axes, &scale)?;
        y = resized(
            &y,
            &axes,
            &size,
            &scale,
            &Resize::new(mode).coordinates(Coordinates::Asymmetric),
        )?;
    }
    Ok(y)
}

fn resize<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    if call.version() < 11 {
        return one(upsample(call, &scales(call, 1)?));
    }
    let x = call.tensor(0)?;
    let (roi, scale, size) =
        (numbers(call, 1)?, scales(call, 2)?, call.ints_of(3)?.unwrap_or_default());
    let axes: Vec<usize> = match call.find_ints("axes")? {
        Some(axes) => axes.iter().map(|&at| axis(at, x.rank())).collect::<Result<_>>()?,
        None => (0..x.rank()).collect(),
    };
    if [scale.len(), size.len()].iter().any(|&len| len != 0 && len != axes.len())
        || scale.len() == size.len()
    {
        let (scales, sizes) = (scale.len(), size.len());
        let reason = format!(
            "expected {} scales or sizes, got {scales} scales and {sizes} sizes",
            axes.len()
        );
        return Err(Error::operator(reason));
    }
    let nearest = [
        ("round_prefer_floor", NearestMode::PreferFloor),
        ("round_prefer_ceil", NearestMode::PreferCeil),
        ("floor", NearestMode::Floor),
        ("ceil", NearestMode::Ceil),
    ];
    let mode = match choice(call, "mode", &[("nearest", 0), ("linear", 1), ("cubic", 2)])? {
        0 => ResizeMode::Nearest(choice(call, "nearest_mode", &nearest)?),
        1 => ResizeMode::Linear,
        _ => ResizeMode::Cubic { a: call.float("cubic_coeff_a")? },
    };
    if call.text("coordinate_transformation_mode")? == "tf_crop_and_resize"
        && roi.len() != 2 * axes.len()
    {
        return Err(Error::operator(format!(
            "expected a roi of {} numbers, got {}",
            2 * axes.len(),
            roi.len()
        )));
    }
    let roi: Vec<[f64; 2]> =
        roi.iter().zip(roi.iter().skip(axes.len())).map(|(&start, &end)| [start, end]).collect();
    let crop = Coordinates::TfCropAndResize { roi, outside: call.float("extrapolation_value")? };
    let coordinates = [
        ("half_pixel", Coordinates::HalfPixel),
        ("half_pixel_symmetric", Coordinates::HalfPixelSymmetric),
        ("pytorch_half_pixel", Coordinates::PytorchHalfPixel),
        ("align_corners", Coordinates::AlignCorners),
        ("asymmetric", Coordinates::Asymmetric),
        ("tf_half_pixel_for_nn", Coordinates::TfHalfPixelForNn),
        ("tf_crop_and_resize", crop),
    ];
    let policies = [
        ("stretch", AspectRatio::Stretch),
        ("not_larger", AspectRatio::NotLarger),
        ("not_smaller", AspectRatio::NotSmaller),
    ];
    let mut options = Resize::new(mode)
        .coordinates(choice(call, "coordinate_transformation_mode", &coordinates)?)
        .antialias(call.flag("antialias")?)
        .exclude_outside(call.flag("exclude_outside")?);
    if scale.is_empty() {
        options = options.aspect_ratio(choice(call, "keep_aspect_ratio_policy", &policies)?);
    }
    let size = if scale.is_empty() { extents(&size)? } else { scaled(x, &axes, &scale)? };
    one(resized(x, &axes, &size, &scale, &options))
}

fn grid_sample<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let (x, grid) = (call.tensor(0)?, call.tensor(1)?);
    let modes = [
        ("linear", GridMode::Bilinear),
        ("bilinear", GridMode::Bilinear),
        ("nearest", GridMode::Nearest),
        ("cubic", GridMode::Bicubic),
        ("bicubic", GridMode::Bicubic),
    ];
    let paddings = [
        ("zeros", GridPadding::Zeros),
        ("border", GridPadding::Border),
        ("reflection", GridPadding::Reflection),
    ];
    let (mode, padding) = (choice(call, "mode", &modes)?, choice(call, "padding_mode", &paddings)?);
    let dtype = match (x.dtype(), grid.dtype()) {
        (a, b) if a == b => a,
        (DType::F16 | DType::BF16 | DType::F32, DType::F16 | DType::BF16 | DType::F32) => {
            DType::F32
        }
        _ => DType::F64,
    };
    let y = x.to_dtype(dtype)?.grid_sample(
        &grid.to_dtype(dtype)?,
        mode,
        padding,
        call.flag("align_corners")?,
    )?;
    one(y.to_dtype(x.dtype()))
}

fn affine_grid<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let size = call.ints_of(1)?.ok_or_else(|| Error::operator("the size is missing"))?;
    one(call.tensor(0)?.affine_grid(extents(&size)?, call.flag("align_corners")?))
}

fn roi_align<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let (x, rois, images) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
    let rois =
        Tensor::cat(&[images.unsqueeze(-1)?.to_dtype(DType::F64)?, rois.to_dtype(DType::F64)?], 1)?;
    let size = extents(&[call.int("output_height")?, call.int("output_width")?])?;
    let size = [size[0], size[1]];
    let ratio = usize::try_from(call.int("sampling_ratio")?).unwrap_or(0);
    let scale = call.float("spatial_scale")?;
    let modes = [("half_pixel", true), ("output_half_pixel", false)];
    let aligned = call.version() >= 16 && choice(call, "coordinate_transformation_mode", &modes)?;
    match choice(call, "mode", &[("avg", false), ("max", true)])? {
        false => one(x.roi_align(&rois, size, scale, ratio, aligned)),
        true => one(x.roi_align_max(&rois, size, scale, ratio, aligned)),
    }
}

fn non_max_suppression<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let most = call.ints_of(2)?.and_then(|most| most.first().copied()).unwrap_or(0);
    let most = usize::try_from(most).unwrap_or(0);
    let (overlap, least) = (call.number_of(3)?.unwrap_or(0.0), call.number_of(4)?);
    let is_center = call.flag("center_point_box")?;
    one(call.tensor(0)?.non_max_suppression(call.tensor(1)?, most, overlap, least, is_center))
}

impl<B: Backend> Rows<B> {
    pub const IMAGE: &'static [Row<B>] = &[
        row(
            "Resize",
            10,
            &[
                ("mode", Text("nearest")),
                ("nearest_mode", Text("round_prefer_floor")),
                ("coordinate_transformation_mode", Text("half_pixel")),
                ("cubic_coeff_a", Float(-0.75)),
                ("exclude_outside", Int(0)),
                ("extrapolation_value", Float(0.0)),
                ("antialias", Int(0)),
                ("axes", Absent),
                ("keep_aspect_ratio_policy", Text("stretch")),
            ],
            resize,
        ),
        row("Upsample", 7, &[("mode", Text("nearest")), ("scales", Absent)], |c| {
            match c.find_floats("scales")? {
                Some(scales) => one(upsample(
                    c,
                    &scales.iter().map(|&scale| decimal(scale)).collect::<Vec<f64>>(),
                )),
                None => one(upsample(c, &scales(c, 1)?)),
            }
        }),
        row(
            "GridSample",
            16,
            &[("mode", Text("linear")), ("padding_mode", Text("zeros")), ("align_corners", Int(0))],
            grid_sample,
        ),
        row("AffineGrid", 20, &[("align_corners", Int(0))], affine_grid),
        row(
            "RoiAlign",
            10,
            &[
                ("mode", Text("avg")),
                ("output_height", Int(1)),
                ("output_width", Int(1)),
                ("sampling_ratio", Int(0)),
                ("spatial_scale", Float(1.0)),
                ("coordinate_transformation_mode", Text("half_pixel")),
            ],
            roi_align,
        ),
        row("NonMaxSuppression", 10, &[("center_point_box", Int(0))], non_max_suppression),
    ];
}
