//! Poolings.

use swath::{Backend, DType, PadMode, PoolOptions, Tensor, s};

use super::Rows;
use super::windows::{Sliding, image_axes, list, sliding, windows};
use crate::error::{Error, Result};
use crate::row::Default::{Absent, Int, Required};
use crate::row::{Call, Results, Row, all, extents, one, row};

/// The windows of a pooling of images.
fn pooling<B: Backend>(call: &Call<'_, B>, x: &Tensor<B>) -> Result<Vec<Sliding>> {
    let axes = image_axes(x)?;
    windows(call, &x.dims()[2..], &list(call, "kernel_shape", axes, 1)?, call.flag("ceil_mode")?)
}

/// The options of a pooling along a number of axes.
fn options<const N: usize>(along: &[Sliding], count_include_pad: bool) -> PoolOptions<N> {
    let each =
        |f: fn(&Sliding) -> usize| std::array::from_fn::<usize, N, _>(|axis| f(&along[axis]));
    PoolOptions::new(each(|a| a.kernel))
        .stride(each(|a| a.stride))
        .dilation(each(|a| a.dilation))
        .padding(each(|a| a.pads[0]))
        .padding_after(each(|a| a.pads[1]))
        .ceil_mode(along.iter().any(|a| a.ceil))
        .count_include_pad(count_include_pad)
}

/// Means over windows that swath accepts.
fn means<B: Backend>(
    x: &Tensor<B>,
    along: &[Sliding],
    count_include_pad: bool,
) -> Result<Tensor<B>> {
    Ok(match along.len() {
        1 => x.avg_pool1d(options(along, count_include_pad)),
        2 => x.avg_pool2d(options(along, count_include_pad)),
        _ => x.avg_pool3d(options(along, count_include_pad)),
    }?)
}

/// True if swath accepts the windows: padding is at most half a kernel, and no window can lack pixels of the image.
fn is_accepted(along: &[Sliding]) -> bool {
    along
        .iter()
        .all(|a| a.pads == [0; 2] || a.dilation == 1 && a.pads[0].max(a.pads[1]) <= a.kernel / 2)
}

/// Images with the pixels that windows reach beyond them, and the windows without padding.
fn padded<B: Backend>(
    x: &Tensor<B>,
    along: &[Sliding],
    value: f64,
) -> Result<(Tensor<B>, Vec<Sliding>)> {
    let pads = along
        .iter()
        .zip(&x.dims()[2..])
        .map(|(a, &image)| (a.pads[0] as isize, a.reach(image) as isize));
    let x = x.pad(&pads.collect::<Vec<_>>(), PadMode::Constant(value))?;
    Ok((x, along.iter().map(|a| Sliding { pads: [0; 2], ceil: false, ..*a }).collect()))
}

fn max_pool<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let x = call.tensor(0)?;
    let along = pooling(call, x)?;
    // 8-bit integers are exact as floats, which swath pools.
    let wide = if x.dtype().is_float() { x.clone() } else { x.to_dtype(DType::F32)? };
    let (images, inner) = match is_accepted(&along) {
        true => (wide, along.clone()),
        false => padded(&wide, &along, f64::NEG_INFINITY)?,
    };
    let back = |y: Tensor<B>| y.to_dtype(x.dtype());
    if call.outputs() < 2 {
        return one(back(match along.len() {
            1 => images.max_pool1d(options(&inner, false)),
            2 => images.max_pool2d(options(&inner, false)),
            _ => images.max_pool3d(options(&inner, false)),
        }?));
    }
    let (y, positions) = match along.len() {
        1 => images.max_pool1d_with_positions(options(&inner, false)),
        2 => images.max_pool2d_with_positions(options(&inner, false)),
        _ => images.max_pool3d_with_positions(options(&inner, false)),
    }?;
    // swath's positions are those in a channel of the images that it got; ONNX's are those in the whole input.
    let (image, channels) = (&x.dims()[2..], x.dims()[0] * x.dims()[1]);
    let pixels: usize = image.iter().product();
    let first = Tensor::arange_as(0.0, channels as f64, 1.0, DType::I64)?.mul(pixels as i64)?;
    let mut indices = first.reshape([&x.dims()[..2], &vec![1; image.len()][..]].concat())?;
    let is_column_major = call.flag("storage_order")?;
    if is_accepted(&along) && !is_column_major {
        return all([back(y)?, indices.add(&positions)?]);
    }
    let mut rest = positions;
    for axis in (0..image.len()).rev() {
        let (extent, before) =
            (images.dims()[2 + axis] as i64, along[axis].pads[0] - inner[axis].pads[0]);
        let step = if is_column_major { &image[..axis] } else { &image[axis + 1..] };
        let at = rest.remainder(extent)?.sub(before as i64)?;
        indices = indices.add(&at.mul(step.iter().product::<usize>() as i64)?)?;
        rest = rest.floor_divide(extent)?;
    }
    all([back(y)?, indices])
}

/// The means over the windows of a node's attributes.
pub fn average<B: Backend>(call: &Call<'_, B>, x: &Tensor<B>) -> Result<Tensor<B>> {
    let (along, count_include_pad) = (pooling(call, x)?, call.flag("count_include_pad")?);
    if is_accepted(&along) {
        return means(x, &along, count_include_pad);
    }
    // The mean of the pixels that count is that of all over the mean of a mask of them.
    let wide = if x.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
    let (images, inner) = padded(&x.to_dtype(wide)?, &along, 0.0)?;
    let mut counted = vec![1, 1];
    let mut around = Vec::new();
    for (a, &image) in along.iter().zip(&x.dims()[2..]) {
        let reach = a.reach(image);
        let after = a.pads[1].min(reach);
        counted.push(if count_include_pad { a.pads[0] + image + after } else { image });
        around.push(if count_include_pad { (0, reach - after) } else { (a.pads[0], reach) });
    }
    let around: Vec<_> =
        around.into_iter().map(|(before, after)| (before as isize, after as isize)).collect();
    let mask = Tensor::ones(counted, wide)?.pad(&around, PadMode::Constant(0.0))?;
    Ok(means(&images, &inner, false)?.div(&means(&mask, &inner, false)?)?.to_dtype(x.dtype())?)
}

/// The norms over the windows of a node's attributes.
fn norms<B: Backend>(call: &Call<'_, B>) -> Result<Tensor<B>> {
    let x = call.tensor(0)?;
    let along = pooling(call, x)?;
    let (mut seen, _) = padded(x, &along, 0.0)?;
    for (axis, a) in (2..).zip(&along) {
        seen = seen.narrow(axis, 0, (a.count - 1) * a.stride + a.window())?.unfold(
            axis,
            a.window(),
            a.stride,
        )?;
        if a.dilation > 1 {
            let taps = a.dilation as isize;
            seen = seen.movedim(-1, 0)?.slice(s![..;taps])?.movedim(0, -1)?;
        }
    }
    Ok(seen.norm(
        call.int("p")? as f64,
        Some(&(x.rank()..2 * x.rank() - 2).collect::<Vec<_>>()),
        false,
    )?)
}

/// A reduction of all pixels of each channel.
fn global<B: Backend>(
    call: &Call<'_, B>,
    reduce: impl Fn(&Tensor<B>, Option<&[usize]>, bool) -> swath::Result<Tensor<B>>,
) -> Results<B> {
    let x = call.tensor(0)?;
    one(reduce(x, Some(&(2..x.rank()).collect::<Vec<_>>()), true))
}

fn max_unpool<B: Backend>(call: &Call<'_, B>) -> Result<Tensor<B>> {
    let (x, indices) = (call.tensor(0)?, call.tensor(1)?);
    let axes = image_axes(x)?;
    let (kernel, strides) = (list(call, "kernel_shape", axes, 1)?, list(call, "strides", axes, 1)?);
    let pads = list(call, "pads", 2 * axes, 0)?;
    let mut shape = x.dims().to_vec();
    for axis in 0..axes {
        let extent = shape[2 + axis]
            .saturating_sub(1)
            .checked_mul(strides[axis])
            .map(|end| end + kernel[axis]);
        let extent = extent.and_then(|end| end.checked_sub(pads[axis] + pads[axes + axis]));
        shape[2 + axis] = extent
            .ok_or_else(|| Error::operator(format!("no pixels are left along axis {axis}")))?;
    }
    let total = shape.iter().try_fold(1usize, |total, &extent| total.checked_mul(extent));
    let total =
        total.ok_or_else(|| Error::operator(format!("images of {shape:?} are too large")))?;
    let y = Tensor::zeros(total, x.dtype())?.scatter(
        0,
        &indices.flatten(0, -1)?,
        &x.flatten(0, -1)?,
    )?;
    let y = y.reshape(shape.as_slice())?;
    let Some(wanted) = call.ints_of(2)? else { return Ok(y) };
    let wanted = extents(&wanted)?;
    if wanted.len() != shape.len() {
        return Err(Error::operator(format!(
            "\"output_shape\" must have {} extents, not {wanted:?}",
            shape.len()
        )));
    }
    // The indices are those of the shape that the windows imply, whose images are the first corner of the result's.
    let more = wanted.iter().zip(&shape).map(|(&wanted, &own)| (0, wanted as isize - own as isize));
    Ok(y.pad(&more.collect::<Vec<_>>(), PadMode::Constant(0.0))?)
}

impl<B: Backend> Rows<B> {
    pub const POOL: &'static [Row<B>] = &[
        row("MaxPool", 1, sliding!(KERNEL, CEIL, ("storage_order", Int(0))), max_pool),
        row("AveragePool", 7, sliding!(KERNEL, CEIL, ("count_include_pad", Int(0))), |c| {
            one(average(c, c.tensor(0)?))
        }),
        row("LpPool", 2, sliding!(KERNEL, CEIL, ("p", Int(2))), |c| one(norms(c))),
        row("GlobalAveragePool", 1, &[], |c| global(c, |x, axes, keep| x.mean(axes, keep))),
        row("GlobalMaxPool", 1, &[], |c| global(c, |x, axes, keep| x.max(axes, keep))),
        row("GlobalLpPool", 2, &[("p", Int(2))], |c| {
            let p = c.int("p")? as f64;
            global(c, |x, axes, keep| x.norm(p, axes, keep))
        }),
        row("MaxUnpool", 9, &[KERNEL, ("pads", Absent), ("strides", Absent)], |c| {
            one(max_unpool(c))
        }),
    ];
}

pub const KERNEL: (&str, crate::row::Default) = ("kernel_shape", Required);
pub const CEIL: (&str, crate::row::Default) = ("ceil_mode", Int(0));
