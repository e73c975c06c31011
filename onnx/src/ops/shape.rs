//! Shapes, parts of axes, padding, and tensors that are made of shapes and numbers alone.

use swath::{Backend, DType, PadMode, Shape, SliceItem, Tensor, broadcast_shape};

use super::Rows;
use crate::error::{Error, Result};
use crate::row::Default::{Absent, Int, Required, Text};
use crate::row::{Call, Results, Row, all, axis, extents, ints, one, row};
use crate::weights;

/// The same elements in another shape, in which 0 is an extent of the input and -1 follows from the others.
fn reshape<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let x = call.tensor(0)?;
    let mut shape = ints(call.tensor(1)?)?;
    if !call.flag("allowzero")? {
        for (axis, extent) in shape.iter_mut().enumerate().filter(|(_, extent)| **extent == 0) {
            let same = x.dims().get(axis).ok_or_else(|| {
                Error::operator(format!(
                    "extent {axis} is to be that of the input, which has shape {}",
                    x.shape()
                ))
            });
            *extent = *same? as i64;
        }
    }
    one(x.reshape(shape))
}

fn transpose<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let x = call.tensor(0)?;
    match call.find_ints("perm")? {
        Some(order) => one(x.permute(&extents(order)?)),
        None => one(x.permute(&(0..x.rank()).rev().collect::<Vec<_>>())),
    }
}

fn squeeze<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let x = call.tensor(0)?;
    let ones = || (0..).zip(x.dims()).filter(|(_, extent)| **extent == 1).map(|(axis, _)| axis);
    one(x.squeeze(call.ints_in("axes", 1)?.unwrap_or_else(|| ones().collect())))
}

fn unsqueeze<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let axes = call.ints_in("axes", 1)?.ok_or_else(|| Error::operator("the axes are missing"))?;
    one(call.tensor(0)?.unsqueeze(axes))
}

/// A matrix: the axes before one, and the others.
fn flatten<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let x = call.tensor(0)?;
    let at = match call.int("axis")? {
        end if end == x.rank() as i64 => x.rank(),
        other => axis(other, x.rank())?,
    };
    let (rows, columns) = x.dims().split_at(at);
    one(x.reshape((rows.iter().product::<usize>(), columns.iter().product::<usize>())))
}

fn split<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let x = call.tensor(0)?;
    let axis = call.axis("axis", x.rank())?;
    let (extent, count) = (x.dims()[axis], call.node.outputs.len());
    let sizes = match call.ints_in("split", 1)? {
        Some(sizes) => extents(&sizes)?,
        None => {
            let wanted = call.find_int("num_outputs")?.unwrap_or(count as i64);
            if wanted != count as i64 {
                return Err(Error::operator(format!("expected {wanted} outputs, got {count}")));
            }
            let size = extent.div_ceil(count.max(1));
            (0..count).map(|i| size.min(extent.saturating_sub(i * size))).collect()
        }
    };
    all(x.split(sizes, axis)?)
}

fn slice<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let x = call.tensor(0)?;
    let needed = |name, at| {
        let list = call.ints_in(name, at)?;
        list.ok_or_else(|| Error::operator(format!("the {name} are missing")))
    };
    let (starts, ends) = (needed("starts", 1)?, needed("ends", 2)?);
    let axes = call.ints_in("axes", 3)?.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = call.ints_of(4)?.unwrap_or_else(|| vec![1; starts.len()]);
    if [ends.len(), axes.len(), steps.len()].iter().any(|&len| len != starts.len()) {
        return Err(Error::operator("starts, ends, axes and steps must be equally many"));
    }
    let mut items = vec![SliceItem::from(..); x.rank()];
    for (i, &at) in axes.iter().enumerate() {
        let at = axis(at, x.rank())?;
        items[at] = range_of(starts[i], ends[i], steps[i], x.dims()[at])?;
    }
    one(x.slice(items))
}

/// The range of a slice. ONNX moves a start before the axis to its first element even if the step is negative, for
/// which swath selects nothing.
fn range_of(start: i64, end: i64, step: i64, extent: usize) -> Result<SliceItem> {
    let extent = extent as i64;
    let from_front = |bound: i64| if bound < 0 { bound.saturating_add(extent) } else { bound };
    let (start, end) = (from_front(start), from_front(end));
    let (start, end) = match step {
        0 => return Err(Error::operator("a step must not be 0")),
        1.. => (start.clamp(0, extent), end.clamp(0, extent)),
        _ => (start.clamp(0, (extent - 1).max(0)), end.clamp(-1, (extent - 1).max(-1))),
    };
    Ok(SliceItem::Range {
        start: Some(start as isize),
        // -1 would be the last element.
        end: (end >= 0).then_some(end as isize),
        step: step.clamp(-extent - 1, extent + 1) as isize,
    })
}

fn tile<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let (x, counts) = (call.tensor(0)?, extents(&ints(call.tensor(1)?)?)?);
    if counts.len() != x.rank() {
        let reason = format!(
            "expected a number of repeats for each axis of {}, got {}",
            x.shape(),
            counts.len()
        );
        return Err(Error::operator(reason));
    }
    one(x.repeat(counts))
}

fn expand<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let (x, shape) = (call.tensor(0)?, Shape::new(extents(&ints(call.tensor(1)?)?)?));
    shape.validate("Expand")?;
    one(x.broadcast_to(broadcast_shape(x.shape(), &shape)?))
}

fn shape<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let x = call.tensor(0)?;
    let rank = x.rank() as i64;
    let bound =
        |at: i64| (if at < 0 { at.saturating_add(rank) } else { at }).clamp(0, rank) as usize;
    let (start, end) = (bound(call.int("start")?), bound(call.find_int("end")?.unwrap_or(rank)));
    let part: Vec<i64> =
        x.dims()[start..end.max(start)].iter().map(|&extent| extent as i64).collect();
    one(Tensor::from_slice(&part, part.len()))
}

fn constant<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    if let Some(value) = call.find_tensor("value")? {
        one(on_backend(value))
    } else if let Some(value) = call.find_float("value_float")? {
        one(Tensor::full((), value as f32))
    } else if let Some(values) = call.find_floats("value_floats")? {
        one(Tensor::from_slice(values, values.len()))
    } else if let Some(value) = call.find_int("value_int")? {
        one(Tensor::full((), value))
    } else if let Some(values) = call.find_ints("value_ints")? {
        one(Tensor::from_slice(values, values.len()))
    } else {
        Err(Error::Unsupported(vec!["constants of text".to_owned()]))
    }
}

/// A tensor of an attribute, on the backend.
fn on_backend<B: Backend>(x: &Tensor) -> Result<Tensor<B>> {
    Ok(Tensor::from_bytes(x.dtype(), x.shape(), x.contiguous()?.as_bytes()?)?)
}

fn constant_of_shape<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let shape = Shape::new(extents(&ints(call.tensor(0)?)?)?);
    let value = match call.find_tensor("value")? {
        Some(value) => on_backend(value)?.reshape(())?,
        None => Tensor::full((), 0f32)?,
    };
    one(value.broadcast_to(shape))
}

fn eye_like<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let x = call.tensor(0)?;
    let dtype = match call.find_int("dtype")? {
        None => x.dtype(),
        Some(code) => weights::dtype(code).ok_or_else(|| {
            Error::Unsupported(vec![format!("tensors of type {}", weights::type_name(code))])
        })?,
    };
    let &[rows, columns] = x.dims() else {
        return Err(Error::operator(format!("expected two axes, got shape {}", x.shape())));
    };
    one(Tensor::eye_with((rows, columns), call.int("k")? as isize, dtype))
}

fn range<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let dtype = call.tensor(0)?.dtype();
    if dtype.is_float() {
        let number = |at| {
            call.number_of(at)?.ok_or_else(|| Error::operator(format!("input {at} is missing")))
        };
        return one(Tensor::arange_as(number(0)?, number(1)?, number(2)?, dtype));
    }
    let number = |at| match ints(call.tensor(at)?)?[..] {
        [number] => Ok(number),
        _ => Err(Error::operator(format!("input {at} must be one number"))),
    };
    let (start, limit, step) = (number(0)?, number(1)?, number(2)?);
    if step == 0 {
        return Err(Error::operator("the step must not be 0"));
    }
    let span = (i128::from(limit) - i128::from(start)) * i128::from(step.signum());
    let count = span.max(0).unsigned_abs().div_ceil(u128::from(step.unsigned_abs()));
    // Of integers that are not exact as floats, too. Where products and sums wrap, the result does not.
    let numbers = Tensor::arange_as(0.0, count as f64, 1.0, DType::I64)?;
    one(numbers.mul_scalar(step)?.add_scalar(start)?.to_dtype(dtype))
}

/// An image, its extents, and the extent of the blocks of its pixels.
fn image_blocks<'c, B: Backend>(
    call: &'c Call<'_, B>,
) -> Result<(&'c Tensor<B>, [usize; 4], usize)> {
    let x = call.tensor(0)?;
    let &[n, c, h, w] = x.dims() else {
        return Err(Error::operator(format!(
            "expected the axes [N, C, H, W], got shape {}",
            x.shape()
        )));
    };
    let block =
        usize::try_from(call.int("blocksize")?).ok().filter(|block| (1..1 << 16).contains(block));
    Ok((x, [n, c, h, w], block.ok_or_else(|| Error::operator("blocksize must be positive"))?))
}

fn depth_to_space<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let (x, [n, c, h, w], block) = image_blocks(call)?;
    let depth = c / (block * block);
    if depth * block * block != c {
        return Err(Error::operator(format!(
            "{c} channels are no whole blocks of {block} × {block} pixels"
        )));
    }
    let (parts, order) = match call.text("mode")? {
        "CRD" => ([n, depth, block, block, h, w], [0, 1, 4, 2, 5, 3]),
        _ => ([n, block, block, depth, h, w], [0, 3, 4, 1, 5, 2]),
    };
    one(x.reshape(parts)?.permute(&order)?.reshape([
        n,
        depth,
        h.saturating_mul(block),
        w.saturating_mul(block),
    ]))
}

fn space_to_depth<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let (x, [n, c, h, w], block) = image_blocks(call)?;
    if h % block != 0 || w % block != 0 {
        return Err(Error::operator(format!(
            "{h} × {w} pixels are no whole blocks of {block} × {block}"
        )));
    }
    let order = match call.text("mode")? {
        "CRD" => [0, 1, 3, 5, 2, 4],
        _ => [0, 3, 5, 1, 2, 4],
    };
    let [rows, columns] = [h, w].map(|extent| extent / block);
    let pixels = x.reshape([n, c, rows, block, columns, block])?.permute(&order)?;
    one(pixels.reshape([n, c.saturating_mul(block * block), rows, columns]))
}

fn center_crop_pad<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let (x, wanted) = (call.tensor(0)?, extents(&ints(call.tensor(1)?)?)?);
    let axes = match call.find_ints("axes")? {
        Some(axes) => axes.iter().map(|&at| axis(at, x.rank())).collect::<Result<Vec<_>>>()?,
        None => (0..x.rank()).collect(),
    };
    if wanted.len() != axes.len() {
        return Err(Error::operator(format!(
            "expected {} extents, got {}",
            axes.len(),
            wanted.len()
        )));
    }
    let mut pads = vec![(0, 0); x.rank()];
    for (&axis, &extent) in axes.iter().zip(&wanted) {
        let added = extent as isize - x.dims()[axis] as isize;
        pads[axis] = (added / 2, added - added / 2);
    }
    one(x.pad(&pads, PadMode::Constant(0.0)))
}

fn trilu<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let (x, k) = (call.tensor(0)?, call.number_of(1)?.unwrap_or(0.0) as isize);
    one(if call.flag("upper")? { x.triu(k) } else { x.tril(k) })
}

fn reverse_sequence<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let (x, lens) = (call.tensor(0)?, ints(call.tensor(1)?)?);
    let (time, batch) = (call.axis("time_axis", x.rank())?, call.axis("batch_axis", x.rank())?);
    let (steps, sequences) = (x.dims()[time] as i64, x.dims()[batch]);
    if time == batch || lens.len() != sequences || lens.iter().any(|len| !(0..=steps).contains(len))
    {
        let reason = format!("expected {sequences} lengths of 0 to {steps}, got {lens:?}");
        return Err(Error::operator(reason));
    }
    if x.numel() == 0 {
        return one(Ok::<_, Error>(x.clone()));
    }
    let mut index = Vec::new();
    for step in 0..steps {
        index.extend(lens.iter().map(|&len| if step < len { len - 1 - step } else { step }));
    }
    let mut index = Tensor::from_vec(index, [steps as usize, sequences])?;
    if batch < time {
        index = index.t()?;
    }
    let mut shape = vec![1; x.rank()];
    (shape[time], shape[batch]) = (steps as usize, sequences);
    one(x.gather(time, &index.reshape(shape)?.broadcast_to(x.shape())?))
}

/// Adds up the elements of columns, which are windows of an image of any number of axes.
fn col2im<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let x = call.tensor(0)?;
    let (image, block) = (extents(&ints(call.tensor(1)?)?)?, extents(&ints(call.tensor(2)?)?)?);
    let &[n, rows, columns] = x.dims() else {
        return Err(Error::operator(format!(
            "expected the axes [N, C · block, windows], got shape {}",
            x.shape()
        )));
    };
    let list = |name, default, len| {
        let list = call.find_ints(name)?.map_or_else(|| Ok(vec![default; len]), extents)?;
        let is_sound =
            list.len() == len && list.iter().all(|&number| (default..1 << 31).contains(&number));
        is_sound
            .then_some(list)
            .ok_or_else(|| Error::operator(format!("{name} must be {len} numbers")))
    };
    let axes = image.len();
    let (strides, dilations, pads) =
        (list("strides", 1, axes)?, list("dilations", 1, axes)?, list("pads", 0, 2 * axes)?);
    if block.len() != axes || image.iter().chain(&block).any(|&extent| extent >= 1 << 31) {
        return Err(Error::operator("expected an image and a block of as many axes"));
    }
    let windows: Vec<usize> = (0..axes)
        .map(|i| {
            let room = (image[i] + pads[i] + pads[axes + i])
                .checked_sub(dilations[i] * block[i].saturating_sub(1) + 1);
            room.map_or(0, |room| room / strides[i] + 1)
        })
        .collect();
    let product = |list: &[usize]| {
        list.iter().try_fold(1usize, |product, &extent| product.checked_mul(extent))
    };
    let taps = product(&block).filter(|&taps| taps > 0 && rows % taps == 0);
    let (Some(taps), true) = (taps, product(&windows) == Some(columns)) else {
        let reason = format!(
            "the columns of {} are not those of image {image:?} and block {block:?}",
            x.shape()
        );
        return Err(Error::operator(reason));
    };
    let channels = rows / taps;
    let result = Shape::new([&[n, channels], &image[..]].concat());
    result.validate("Col2Im")?;
    if x.numel() == 0 {
        return one(Tensor::zeros(result, x.dtype()));
    }
    // The pixel of each element of a column; those in the padding share one more, which is dropped.
    let (mut places, mut outer_taps, mut outer_windows) = (vec![Some(0)], 1, 1);
    for i in 0..axes {
        let mut next = Vec::new();
        for (tap, k) in (0..outer_taps).flat_map(|tap| (0..block[i]).map(move |k| (tap, k))) {
            for (window, at) in
                (0..outer_windows).flat_map(|window| (0..windows[i]).map(move |at| (window, at)))
            {
                let place = (at * strides[i] + k * dilations[i])
                    .checked_sub(pads[i])
                    .filter(|&place| place < image[i]);
                let outer: Option<usize> = places[tap * outer_windows + window];
                next.push(outer.zip(place).map(|(outer, place)| outer * image[i] + place));
            }
        }
        (places, outer_taps, outer_windows) =
            (next, outer_taps * block[i], outer_windows * windows[i]);
    }
    let pixels: usize = image.iter().product();
    let places: Vec<i64> = places.iter().map(|place| place.unwrap_or(pixels) as i64).collect();
    let places = Tensor::from_slice(&places, places.len())?;
    let zeros = Tensor::zeros((n * channels, pixels + 1), x.dtype())?;
    let sums = zeros.index_add(1, &places, &x.reshape((n * channels, taps * columns))?)?;
    one(sums.narrow(1, 0, pixels)?.reshape(result))
}

impl<B: Backend> Rows<B> {
    pub const SHAPE: &'static [Row<B>] = &[
        row("Reshape", 5, &[("allowzero", Int(0))], reshape),
        row("Transpose", 1, &[("perm", Absent)], transpose),
        row("Squeeze", 1, &[("axes", Absent)], squeeze),
        row("Unsqueeze", 1, &[("axes", Absent)], unsqueeze),
        row("Flatten", 1, &[("axis", Int(1))], flatten),
        row("Concat", 4, &[("axis", Required)], |c| {
            one(Tensor::cat(&c.tensors()?, c.int("axis")?))
        }),
        row("Split", 2, &[("split", Absent), ("axis", Int(0)), ("num_outputs", Absent)], split),
        row("Slice", 1, &[("starts", Absent), ("ends", Absent), ("axes", Absent)], slice),
        row("Tile", 6, &[], tile),
        row("Expand", 8, &[], expand),
        row("Shape", 1, &[("start", Int(0)), ("end", Absent)], shape),
        row("Size", 1, &[], |c| one(Tensor::full((), c.tensor(0)?.numel() as i64))),
        row(
            "Constant",
            1,
            &[
                ("value", Absent),
                ("value_float", Absent),
                ("value_floats", Absent),
                ("value_int", Absent),
                ("value_ints", Absent),
                ("value_string", Absent),
                ("value_strings", Absent),
            ],
            constant,
        ),
        row("ConstantOfShape", 9, &[("value", Absent)], constant_of_shape),
        row("EyeLike", 9, &[("dtype", Absent), ("k", Int(0))], eye_like),
        row("Range", 11, &[("stash_type", Int(1))], range),
        row("DepthToSpace", 1, &[("blocksize", Required), ("mode", Text("DCR"))], depth_to_space),
        row("SpaceToDepth", 1, &[("blocksize", Required), ("mode", Text("DCR"))], space_to_depth),
        row("CenterCropPad", 18, &[("axes", Absent)], center_crop_pad),
        row("Trilu", 14, &[("upper", Int(1))], trilu),
        row(
            "ReverseSequence",
            10,
            &[("time_axis", Int(0)), ("batch_axis", Int(1))],
            reverse_sequence,
        ),
        row("Col2Im", 18, &[("dilations", Absent), ("pads", Absent), ("strides", Absent)], col2im),
    ];
}
