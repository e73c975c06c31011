//! Convolutions.

use swath::ops::Activation;
use swath::{Backend, ConvOptions, ConvSlices, DType, GridMode, GridPadding, PadMode, Tensor};

use super::Rows;
use super::matrix::activated;
use super::prepared::activation;
use super::quantize::{Exact, exact_sum, requantized, scales};
use super::windows::{Sliding, filters, halves, image_axes, list, pads, sliding, windows};
use crate::error::{Error, Result};
use crate::row::Default::{Absent, Int, Text};
use crate::row::{Call, Results, Row, all, one, row};

/// The number of groups of channels.
fn groups<B: Backend>(call: &Call<'_, B>, name: &str) -> Result<usize> {
    let groups = call.int(name)?;
    let found = usize::try_from(groups).ok().filter(|&groups| groups > 0);
    found.ok_or_else(|| {
        Error::operator(format!("attribute {name:?} must be positive, but is {groups}"))
    })
}

/// The options of a convolution along a number of axes.
fn options<const N: usize>(along: &[Sliding], groups: usize) -> ConvOptions<N> {
    let each =
        |f: fn(&Sliding) -> usize| std::array::from_fn::<usize, N, _>(|axis| f(&along[axis]));
    let pads = std::array::from_fn::<(usize, usize), N, _>(|axis| along[axis].pads.into());
    ConvOptions::new()
        .stride(each(|a| a.stride))
        .dilation(each(|a| a.dilation))
        .padding(pads)
        .groups(groups)
}

/// A bias of channels, beside images with so many axes.
fn along_channels<B: Backend>(bias: &Tensor<B>, axes: usize) -> Result<Tensor<B>> {
    Ok(bias.reshape([vec![bias.numel()], vec![1; axes]].concat())?)
}

/// The convolution of input 0 with the filters of input 1 and the bias of input 2, and a function of the result.
fn conv<B: Backend>(call: &Call<'_, B>, function: Option<Activation>) -> Result<Tensor<B>> {
    let (x, weight, bias) = (call.tensor(0)?, call.tensor(1)?, call.find(2));
    let kernel = filters(call, x, weight)?;
    let along = windows(call, &x.dims()[2..], kernel, false)?;
    convolved(x, weight, bias, &along, groups(call, "group")?, function)
}

/// A convolution along one to three axes.
fn convolved<B: Backend>(
    x: &Tensor<B>,
    weight: &Tensor<B>,
    bias: Option<&Tensor<B>>,
    along: &[Sliding],
    groups: usize,
    function: Option<Activation>,
) -> Result<Tensor<B>> {
    Ok(match (along.len(), function) {
        (1, None) => x.conv1d(weight, bias, options(along, groups)),
        (2, None) => x.conv2d(weight, bias, options(along, groups)),
        (_, None) => x.conv3d(weight, bias, options(along, groups)),
        (1, Some(f)) => x.conv1d_activation(weight, bias, options(along, groups), f),
        (2, Some(f)) => x.conv2d_activation(weight, bias, options(along, groups), f),
        (_, Some(f)) => x.conv3d_activation(weight, bias, options(along, groups), f),
    }?)
}

/// The sums of the products of a convolution of integers, as `I32`.
fn exact_conv<B: Backend>(call: &Call<'_, B>, x: Exact<B>, weight: Exact<B>) -> Result<Tensor<B>> {
    let kernel = filters(call, &x.values, &weight.values)?;
    let along = windows(call, &x.values.dims()[2..], kernel, false)?;
    let groups = groups(call, "group")?;
    let (channels, each) = (x.values.dims()[1], weight.values.dims()[1]);
    if each.checked_mul(groups) != Some(channels) {
        let reason = format!(
            "filters of {each} channels in {groups} groups do not fit images of {channels}"
        );
        return Err(Error::operator(reason));
    }
    let taps = kernel.iter().product();
    exact_sum([x, weight], [each, taps], |[x, weight], start, count| {
        // Some channels of each group.
        let mut split = x.dims().to_vec();
        split.splice(1..2, [groups, each]);
        let mut shape = x.dims().to_vec();
        shape[1] = groups * count;
        let part = x.reshape(split)?.narrow(2, start, count)?.reshape(shape)?;
        convolved(&part, &weight.narrow(1, start, count)?, None, &along, groups, None)
    })
}

/// Zero points or scales of the filters, which are the first axis: one for all or one for each.
fn of_filters<B: Backend>(each: Option<&Tensor<B>>, axes: usize) -> Result<Option<Tensor<B>>> {
    each.map(|each| along_channels(each, axes + 1)).transpose()
}

fn conv_integer<B: Backend>(call: &Call<'_, B>) -> Result<Tensor<B>> {
    let axes = image_axes(call.tensor(0)?)?;
    let x = Exact::new(call.tensor(0)?, call.find(2))?;
    let weight = Exact::new(call.tensor(1)?, of_filters(call.find(3), axes)?.as_ref())?;
    exact_conv(call, x, weight)
}

fn qlinear_conv<B: Backend>(call: &Call<'_, B>) -> Result<Tensor<B>> {
    let axes = image_axes(call.tensor(0)?)?;
    let x = Exact::new(call.tensor(0)?, call.find(2))?;
    let weight = Exact::new(call.tensor(3)?, of_filters(call.find(5), axes)?.as_ref())?;
    let mut sums = exact_conv(call, x, weight)?;
    if let Some(bias) = call.find(8) {
        sums = sums.add(&along_channels(bias, axes)?)?;
    }
    let scale = scales(call.tensor(1)?, &along_channels(call.tensor(4)?, axes)?, call.tensor(6)?)?;
    requantized(&sums.to_dtype(DType::F32)?.mul(&scale)?, call.find(7), call.tensor(0)?.dtype())
}

fn conv_transpose<B: Backend>(call: &Call<'_, B>) -> Result<Tensor<B>> {
    let (x, weight) = (call.tensor(0)?, call.tensor(1)?);
    let kernel = filters(call, x, weight)?;
    let axes = kernel.len();
    let (strides, dilations) = (list(call, "strides", axes, 1)?, list(call, "dilations", axes, 1)?);
    let more = list(call, "output_padding", axes, 0)?;
    let (auto_pad, pads) = pads(call, axes)?;
    let wanted =
        call.find_ints("output_shape")?.map(|_| list(call, "output_shape", axes, 0)).transpose()?;
    // The result without padding is cut at both ends, or extended by zeros.
    let (mut before, mut extents, mut ends) = (Vec::new(), Vec::new(), Vec::new());
    for axis in 0..axes {
        let pixels = x.dims()[2 + axis];
        let end = pixels.saturating_sub(1).saturating_mul(strides[axis]);
        let end =
            end.saturating_add(kernel[axis].saturating_sub(1).saturating_mul(dilations[axis]) + 1);
        let full = end.saturating_add(more[axis]);
        let same = || auto_pad.starts_with("SAME").then(|| pixels.saturating_mul(strides[axis]));
        let extent = wanted.as_ref().map(|wanted| wanted[axis]).or_else(same);
        let [first, last] = match extent {
            Some(extent) => halves(full.saturating_sub(extent), auto_pad),
            None => pads[axis],
        };
        let extent = extent.or_else(|| full.checked_sub(first)?.checked_sub(last));
        let extent = extent
            .filter(|&extent| extent > 0 && extent < isize::MAX as usize)
            .ok_or_else(|| {
                Error::operator(format!(
                    "pads of {first} and {last} leave none of the {full} pixels of axis {axis}"
                ))
            })?;
        before.push(first);
        extents.push(extent);
        ends.push(end);
    }
    // swath cuts equally at both ends and adds less than a stride or a dilation at the last.
    let added = |axis: usize| (extents[axis] + 2 * before[axis]).checked_sub(ends[axis]);
    let most = |axis: usize| strides[axis].max(dilations[axis]);
    let is_even = |axis| {
        added(axis).is_some_and(|n| n == 0 || n < most(axis)) && 2 * before[axis] < ends[axis]
    };
    let output_padding =
        (0..axes).map(|axis| added(axis).filter(|_| is_even(axis))).collect::<Option<Vec<_>>>();
    let mut options = ConvSlices {
        stride: &strides,
        dilation: &dilations,
        groups: Some(groups(call, "group")?),
        ..ConvSlices::default()
    };
    let mut y = if let Some(output_padding) = &output_padding {
        (options.padding, options.output_padding) = (&before, output_padding);
        x.conv_transpose(weight, None, options)?
    } else {
        let mut y = x.conv_transpose(weight, None, options)?;
        let mut zeros = vec![(0, 0); axes];
        for axis in 0..axes {
            let start = before[axis].min(ends[axis]);
            let kept = (ends[axis] - start).min(extents[axis]);
            y = y.narrow(2 + axis, start, kept)?;
            zeros[axis].1 = (extents[axis] - kept) as isize;
        }
        y.pad(&zeros, PadMode::Constant(0.0))?
    };
    if let Some(bias) = call.find(2) {
        y = y.add(&along_channels(bias, axes)?)?;
    }
    Ok(y)
}

fn deform_conv<B: Backend>(call: &Call<'_, B>) -> Result<Tensor<B>> {
    let (x, weight, offset) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
    let (bias, mask) = (call.find(3), call.find(4));
    let kernel = filters(call, x, weight)?;
    let (n, channels, image) = (x.dims()[0], x.dims()[1], &x.dims()[2..]);
    let (outputs, axes) = (weight.dims()[0], image.len());
    let along = windows(call, image, kernel, false)?;
    let (groups, shifts) = (groups(call, "group")?, groups(call, "offset_group")?);
    if weight.dims()[1].checked_mul(groups) != Some(channels)
        || outputs % groups != 0
        || channels % shifts != 0
    {
        let reason = format!(
            "{groups} groups and {shifts} groups of offsets of {channels} and {outputs} channels"
        );
        return Err(Error::operator(format!(
            "{reason} do not fit filters of shape {}",
            weight.shape()
        )));
    }
    let taps: usize = kernel.iter().product();
    let counts: Vec<usize> = along.iter().map(|a| a.count).collect();
    let places: usize = counts.iter().product();
    let dtype = x.dtype();
    let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    // The pixels that are read: [n, axes, taps, places], the last axis of the image first, as `grid_sample` has them.
    let offset = offset
        .to_dtype(wide)?
        .reshape([n * shifts, taps, axes, places])?
        .flip(2)?
        .swap_axes(1, 2)?;
    let mut grid = Vec::with_capacity(axes);
    for axis in (0..axes).rev() {
        let of = |extents: &[usize], at: usize| {
            at / extents[axis + 1..].iter().product::<usize>() % extents[axis]
        };
        let Sliding { stride, dilation, pads, .. } = along[axis];
        let tap = |tap| (of(kernel, tap) * dilation) as f32 - pads[0] as f32;
        let place = |place| (of(&counts, place) * stride) as f32;
        let tap = Tensor::from_vec((0..taps).map(tap).collect(), [taps, 1])?;
        let regular = tap.add(&Tensor::from_vec((0..places).map(place).collect(), [1, places])?)?;
        let moved = offset.narrow(1, grid.len(), 1)?.squeeze(1)?.add(&regular.to_dtype(wide)?)?;
        // The units of `grid_sample` are those of the image's edges, from -1 to 1.
        grid.push(moved.affine(2.0 / image[axis] as f64, 1.0 / image[axis] as f64 - 1.0)?);
    }
    let spread = [vec![n * shifts], vec![1; axes - 1], vec![taps * places, axes]].concat();
    let grid = Tensor::stack(&grid, -1)?.reshape(spread)?;
    let images = [&[n * shifts, channels / shifts], image].concat();
    let read = x.to_dtype(wide)?.reshape(images)?.grid_sample(
        &grid,
        GridMode::Bilinear,
        GridPadding::Zeros,
        false,
    )?;
    let mut read = read.reshape([n, shifts, channels / shifts, taps, places])?;
    if let Some(mask) = mask {
        read = read.mul(&mask.to_dtype(wide)?.reshape([n, shifts, 1, taps, places])?)?;
    }
    let read = read.reshape([n, groups, channels / groups * taps, places])?;
    let weight =
        weight.to_dtype(wide)?.reshape([groups, outputs / groups, channels / groups * taps])?;
    let mut y = weight.matmul(&read)?.reshape([&[n, outputs], &counts[..]].concat())?;
    if let Some(bias) = bias {
        y = y.add(&along_channels(&bias.to_dtype(wide)?, axes)?)?;
    }
    Ok(y.to_dtype(dtype)?)
}

fn causal_conv<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let (x, weight, bias) = (call.tensor(0)?, call.tensor(1)?, call.find(2));
    let (&[n, channels, length], &[_, _, kernel]) = (x.dims(), weight.dims()) else {
        let shapes = format!("{} and {}", x.shape(), weight.shape());
        return Err(Error::operator(format!(
            "[n, channels, length] and filters [channels, 1, k] expected, not {shapes}"
        )));
    };
    let kept =
        kernel.checked_sub(1).ok_or_else(|| Error::operator("the filters have no elements"))?;
    let function = match call.text("activation")? {
        "none" => None,
        "silu" | "swish" => Some(Activation::Silu),
        other => return Err(Error::operator(format!("\"activation\" is {other:?}"))),
    };
    let past = match call.find(3) {
        Some(past) => past.clone(),
        None => Tensor::zeros((n, channels, kept), x.dtype())?,
    };
    let seen = Tensor::cat(&[&past, x], 2)?;
    let options = ConvOptions::<1>::new().groups(channels);
    let y = match function {
        _ if length == 0 => x.clone(),
        Some(function) => seen.conv1d_activation(weight, bias, options, function)?,
        None => seen.conv1d(weight, bias, options)?,
    };
    all([y, seen.narrow(2, length, kept)?])
}

fn fused_conv<B: Backend>(call: &Call<'_, B>) -> Result<Tensor<B>> {
    let parameters = call.find_floats("activation_params")?.unwrap_or_default();
    activated(call.text("activation")?, parameters, |function| match (call.find(3), function) {
        (None, function) => conv(call, function),
        (Some(added), None) => Ok(conv(call, None)?.add(added)?),
        (Some(added), Some(function)) => Ok(conv(call, None)?.add(added)?.activation(function)?),
    })
}

impl<B: Backend> Rows<B> {
    pub const CONVOLUTION: &'static [Row<B>] = &[
        row("Conv", 1, CONV, |c| one(conv(c, None))),
        row("swath.Conv", 1, sliding!(KERNEL, GROUP, ("activation", Absent)), |c| {
            one(conv(c, activation(c)?))
        }),
        row("ConvInteger", 10, CONV, |c| one(conv_integer(c))),
        row("QLinearConv", 10, CONV, |c| one(qlinear_conv(c))),
        row(
            "ConvTranspose",
            1,
            sliding!(KERNEL, GROUP, ("output_padding", Absent), ("output_shape", Absent)),
            |c| one(conv_transpose(c)),
        ),
        row("DeformConv", 19, sliding!(KERNEL, GROUP, ("offset_group", Int(1))), |c| {
            one(deform_conv(c))
        }),
        row("CausalConvWithState", 27, &[("activation", Text("none"))], causal_conv),
        row(
            "com.microsoft.FusedConv",
            1,
            sliding!(KERNEL, GROUP, ("activation", Text("")), ("activation_params", Absent)),
            |c| one(fused_conv(c)),
        ),
    ];
}

const KERNEL: (&str, crate::row::Default) = ("kernel_shape", Absent);
const GROUP: (&str, crate::row::Default) = ("group", Int(1));
const CONV: &[(&str, crate::row::Default)] = sliding!(KERNEL, GROUP);
