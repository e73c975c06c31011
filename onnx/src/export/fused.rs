//! Fused operations that ONNX has operators for. Others are composed by swath, of operations that are recorded.

use swath::backend::Results;
use swath::backend::cpu::CpuTensor;
use swath::ops::{Activation, AttentionParameters, FusedOp, Geometry, Sliding};
use swath::{Backend, CpuBackend, DType, Error, Result, Shape, Tensor, TensorData};

use super::recipes::T;
use super::record::*;
use super::trace::{Trace, is_recorded};
use crate::proto;

fn cpu(op: &FusedOp<'_, TraceTensor>) -> Result<Results<CpuTensor>> {
    CpuBackend::fused(&op.try_map(|x| Ok::<_, Error>(&x.data))?)
}

pub fn fused(op: &FusedOp<'_, TraceTensor>) -> Result<Results<TraceTensor>> {
    if !is_recorded(op.operands())? {
        return Ok(cpu(op)?.into_iter().map(TraceTensor::new).collect());
    }
    let name = op.name();
    let inputs = |operands: &[Option<&TraceTensor>]| {
        let each = operands.iter().map(|x| x.map_or(Ok(Operand::Absent), whole));
        each.collect::<Result<Vec<_>>>()
    };
    let last = int("axis", -1);
    match *op {
        FusedOp::Softmax { x, log } => {
            let node = if log { "LogSoftmax" } else { "Softmax" };
            results(name, node, inputs(&[Some(x)])?, vec![last], cpu(op)?)
        }
        FusedOp::LayerNorm { x, weight, bias, eps } => {
            let ones =
                Trace::full(Shape::new(&x.dims()[x.dims().len() - 1..]), 1.into(), x.dtype())?;
            let inputs = inputs(&[Some(x), weight.or(Some(&ones)), bias])?;
            let attributes = vec![last, float("epsilon", eps)];
            let mut data = cpu(op)?.into_iter();
            let mut y = results(name, "LayerNormalization", inputs, attributes, data.next())?;
            y.extend(data.map(|statistic| TraceTensor::bound(statistic, None)));
            Ok(y)
        }
        FusedOp::Linear { x, weight, bias, activation, keep_sums: false }
            if x.shape().ndim() == 2 =>
        {
            let sums = FusedOp::Linear { x, weight, bias, activation: None, keep_sums: false };
            let inputs = inputs(&[Some(x), Some(weight), bias])?;
            let transposed = vec![int("transB", 1)];
            activated(results(name, "Gemm", inputs, transposed, cpu(&sums)?)?, activation)
        }
        FusedOp::Conv { x, weight, bias, activation, geometry, groups } => {
            let sums = FusedOp::Conv { x, weight, bias, activation: None, geometry, groups };
            let mut attributes = windows(&geometry, x, name)?;
            attributes.push(int("group", groups as i64));
            let inputs = inputs(&[Some(x), Some(weight), bias])?;
            activated(results(name, "Conv", inputs, attributes, cpu(&sums)?)?, activation)
        }
        FusedOp::ConvTranspose { g, weight, geometry, groups } => {
            let mut attributes = windows(&geometry, g, name)?;
            let rest = axes(&geometry, g)
                .map(|axis| axis.with_padding().image.saturating_sub(reach(axis)) as i64);
            attributes.push(list("output_padding", rest));
            attributes.push(int("group", groups as i64));
            results(name, "ConvTranspose", inputs(&[Some(g), Some(weight)])?, attributes, cpu(op)?)
        }
        FusedOp::MaxPool { x, geometry, with_positions } => {
            let mut attributes = windows(&geometry, x, name)?;
            attributes.push(ceil_mode(&geometry, x));
            let mut y = results(name, "MaxPool", inputs(&[Some(x)])?, attributes, cpu(op)?)?;
            if let Some(positions) = y.get_mut(1).filter(|_| with_positions) {
                // ONNX counts over all images and channels.
                let pixels: usize = x.dims()[2..].iter().product();
                *positions =
                    T::from_data(positions.clone()).remainder(pixels as i64)?.data().clone();
            }
            Ok(y)
        }
        FusedOp::AvgPool { x, geometry, count_include_pad } => {
            let mut attributes = windows(&geometry, x, name)?;
            let counts = int("count_include_pad", i64::from(count_include_pad));
            attributes.extend([ceil_mode(&geometry, x), counts]);
            results(name, "AveragePool", inputs(&[Some(x)])?, attributes, cpu(op)?)
        }
        FusedOp::Attention { q, k, v, mask, parameters } if parameters.dropout.is_none() => {
            let y = attention([q, k, v], mask, parameters)?.data().clone();
            let rest = cpu(op)?.into_iter().skip(1).map(|x| TraceTensor::bound(x, None));
            Ok(std::iter::once(y).chain(rest).collect())
        }
        FusedOp::Dropout { .. } | FusedOp::Attention { .. } => {
            Err(error("dropout is random: put the model into evaluation by set_training(false)"))
        }
        _ => Err(Error::Unsupported { op: name, backend: Trace::NAME }),
    }
}

fn activated(
    y: Results<TraceTensor>,
    function: Option<Activation>,
) -> Result<Results<TraceTensor>> {
    match function.and_then(Activation::op) {
        Some(op) => y.iter().map(|y| Trace::unary(op, y)).collect(),
        None => Ok(y),
    }
}

/// The axes of images, which may be fewer than three.
fn axes<'g>(
    geometry: &'g Geometry,
    x: &TraceTensor,
) -> impl Iterator<Item = &'g Sliding> + Clone + use<'g> {
    let first = 5 - x.shape().ndim();
    (first..3).map(|axis| geometry.axis(axis))
}

/// Number of padded pixels from the first that a window sees to the last.
fn reach(axis: &Sliding) -> usize {
    axis.windows.saturating_sub(1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1
}

/// The attributes of windows, whose padding ONNX lets not be negative.
fn windows(geometry: &Geometry, x: &TraceTensor, op: &'static str) -> Result<Attributes> {
    let each = |f: fn(&Sliding) -> usize| axes(geometry, x).map(move |axis| f(axis) as i64);
    let pads = [0, 1].map(|end| axes(geometry, x).map(move |axis| axis.padding[end] as i64));
    if pads.clone().into_iter().flatten().any(|count| count < 0) {
        return Err(Error::Unsupported { op, backend: Trace::NAME });
    }
    Ok(vec![
        list("kernel_shape", each(|axis| axis.kernel)),
        list("strides", each(|axis| axis.stride)),
        list("dilations", each(|axis| axis.dilation)),
        list("pads", pads.into_iter().flatten()),
    ])
}

/// 1 if there are more windows than lie in the padded image.
fn ceil_mode(geometry: &Geometry, x: &TraceTensor) -> proto::Attribute<'static> {
    let has_more = axes(geometry, x).any(|axis| reach(axis) > axis.with_padding().image);
    int("ceil_mode", i64::from(has_more))
}

/// The numbers from 0. While extents are compared, they are a node, since their number may be an extent.
pub fn positions(n: usize) -> Result<T> {
    let positions = Tensor::<Trace>::arange_as(0.0, n as f64, 1.0, DType::I64)?;
    if !with(|recording| recording.is_dynamic) {
        return Ok(positions);
    }
    let inputs = [0, n as i64, 1].map(|bound| number(bound, DType::I64));
    let inputs = inputs.into_iter().collect::<Result<_>>()?;
    let at = push("positions", "Range", inputs, vec![], vec![(vec![n], DType::I64)]);
    Ok(T::from_data(TraceTensor::bound(positions.data().data.clone(), at)))
}

/// Attention by products and a softmax.
fn attention(
    operands: [&TraceTensor; 3],
    mask: Option<&TraceTensor>,
    parameters: AttentionParameters,
) -> Result<T> {
    let dtype = operands[0].dtype();
    let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let [q, k, v] = operands.map(|x| T::from_data(x.clone()).to_dtype(wide));
    let (q, k) = (q?.mul(parameters.scale)?, k?);
    let (t, s) = (q.dims()[q.rank() - 2], k.dims()[k.rank() - 2]);
    let lowest = Tensor::full_as((), f64::NEG_INFINITY, wide)?;
    let mut scores = q.matmul(&k.t()?)?;
    if let Some(mask) = mask.map(|mask| T::from_data(mask.clone())) {
        scores = match mask.dtype() {
            DType::Bool => Tensor::where_cond(&mask, &scores, &lowest)?,
            _ => scores.add(mask.to_dtype(wide)?)?,
        };
    }
    if parameters.causal {
        let row = positions(t)?.add(s as i64 - t as i64)?.unsqueeze(-1)?;
        scores = Tensor::where_cond(&positions(s)?.le(&row)?, &scores, &lowest)?;
    }
    let mut weights = scores.softmax(-1)?;
    if mask.is_some() || (parameters.causal && s < t) {
        // The softmax of a query that attends to no key is NaN.
        let largest = scores.max(Some(&[scores.rank() - 1]), true)?;
        weights = weights.masked_fill(&largest.eq(f64::NEG_INFINITY)?, 0.0)?;
    }
    weights.matmul(&v?)?.to_dtype(dtype)
}

/// Normalization by given statistics.
pub fn batch_norm(
    x: &T,
    [mean, variance]: [&T; 2],
    [weight, bias]: [Option<&T>; 2],
    eps: f64,
) -> Result<T> {
    let cpu = |x: &T| Tensor::<CpuBackend>::from_data(x.data().data.clone());
    let (w, b) = (weight.map(cpu), bias.map(cpu));
    let data = cpu(x).batch_norm(&cpu(mean), &cpu(variance), w.as_ref(), b.as_ref(), eps)?;
    let (ones, zeros) = (mean.ones_like()?, mean.zeros_like()?);
    let inputs = [x, weight.unwrap_or(&ones), bias.unwrap_or(&zeros), mean, variance];
    let inputs = inputs.iter().map(|x| whole(x.data())).collect::<Result<_>>()?;
    let attributes = vec![float("epsilon", eps)];
    let data = data.data().clone();
    one("batch_norm", "BatchNormalization", inputs, attributes, data).map(T::from_data)
}
