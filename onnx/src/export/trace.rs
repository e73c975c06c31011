//! [`Trace`], the backend that records.

use std::array::from_fn;

use swath::backend::Results;
use swath::backend::cpu::CpuTensor;
use swath::ops::{
    BinaryOp, CompareOp, Extremum, FusedOp, NumberTest, OrderOp, ReduceOp, ScanOp, TernaryOp,
    UnaryOp,
};
use swath::{
    Arg, AxisPart, Backend, CpuBackend, DType, HostData, Layout, Result, Scalar, Shape, Tensor,
    TensorData,
};

use super::recipes::{self, Recipe, T};
use super::record::*;
use super::{fused, view};
use crate::weights::code;

/// A backend that computes as [`CpuBackend`] and, during [`Export::trace`](super::Export::trace), records ONNX nodes.
#[derive(Clone, Debug)]
pub struct Trace;

type Op = &'static str;
type Traced = Result<TraceTensor>;

/// An operation on elements, by this recipe if not by the one for its name. Along axes where all operands repeat their
/// elements the result does, too.
fn elementwise<const N: usize>(
    name: Op,
    recipe: Option<Recipe>,
    operands: [Arg<'_, TraceTensor>; N],
    cpu: impl FnOnce([&CpuTensor; N]) -> Result<CpuTensor>,
) -> Traced {
    let first = operands.iter().find_map(Arg::tensor);
    let first = first.ok_or_else(|| error(format!("{name} of numbers only")))?;
    let (shape, dtype) = (*first.shape(), first.dtype());
    let tensors = operands.iter().map(|x| match x {
        Arg::Ref(x) => Ok((*x).clone()),
        Arg::Owned(x) => Ok(x.clone()),
        Arg::Scalar(x) => Trace::full(shape, *x, dtype),
    });
    let tensors = tensors.collect::<Result<Vec<_>>>()?;
    let numbers = operands.iter().map(|x| match x {
        Arg::Scalar(x) => Some(x.to_f64()),
        _ => None,
    });
    let recipe = match (is_recorded(&tensors)?, recipe) {
        (false, _) => None,
        (true, None) => Some(recipes::find(name, dtype, &numbers.collect::<Vec<_>>())?),
        (true, recipe) => recipe,
    };
    if let Some(Recipe::Steps(steps)) = recipe {
        // As the CPU does, 16-bit floats are computed in `F32` and rounded once.
        let is_half = matches!(dtype, DType::F16 | DType::BF16);
        let widened = |x: &TraceTensor| match is_half && x.dtype() == dtype {
            true => tensor(x).to_dtype(DType::F32),
            false => Ok(tensor(x)),
        };
        let y = steps(&tensors.iter().map(widened).collect::<Result<Vec<_>>>()?)?;
        let y = if is_half && y.dtype() == DType::F32 { y.to_dtype(dtype)? } else { y };
        return Ok(y.broadcast_to(shape)?.data().clone());
    }
    let mut dims = shape.dims().to_vec();
    for (axis, dim) in dims.iter_mut().enumerate() {
        if tensors.iter().all(|x| x.strides()[axis] == 0) {
            *dim = 1.min(*dim);
        }
    }
    let once = tensors.iter().map(|x| narrowed(&x.data, &dims)).collect::<Result<Vec<_>>>()?;
    let y = CpuBackend::contiguous(&cpu(from_fn(|at| &once[at]))?)?;
    let data = CpuBackend::broadcast_to(&y, &shape)?;
    let Some(Recipe::Node(op, attributes, count)) = recipe else {
        return Ok(TraceTensor::new(data));
    };
    let inputs = tensors.iter().take(count).map(|x| operand(x, 0, 0));
    let inputs = inputs.collect::<Result<Vec<_>>>()?;
    let rank = |x: &Operand| match x {
        Operand::Value(at) => with(|recording| recording.all[*at].dims.len()),
        Operand::Constant(x) => x.shape().ndim(),
        Operand::Absent => 0,
    };
    let rank = inputs.iter().map(rank).max().unwrap_or_default();
    let own = dims[dims.len() - rank..].to_vec();
    Ok(TraceTensor::bound(data, push(name, op, inputs, attributes, vec![(own, y.dtype())])))
}

/// True if one of the tensors is no constant.
pub fn is_recorded<'x>(tensors: impl IntoIterator<Item = &'x TraceTensor>) -> Result<bool> {
    tensors.into_iter().try_fold(false, |any, x| Ok(x.value()?.is_some() || any))
}

fn tensor(x: &TraceTensor) -> T {
    T::from_data(x.clone())
}

/// The extents with another one along an axis.
fn with_extent(x: &T, axis: usize, extent: usize) -> Shape {
    let dims = x.dims().iter().enumerate();
    dims.map(|(i, &dim)| if i == axis { extent } else { dim }).collect()
}

fn on(axis: usize) -> Attributes {
    vec![int("axis", axis as i64)]
}

/// The tensor with integers and booleans as `I64`, in which they are summed up.
fn summed(x: &TraceTensor) -> Traced {
    let dtype = if x.dtype().is_float() { x.dtype() } else { DType::I64 };
    tensor(x).to_dtype(dtype).map(|x| x.data().clone())
}

impl Backend for Trace {
    type Tensor = TraceTensor;

    const NAME: Op = "trace";

    fn from_host(data: HostData, shape: Shape) -> Traced {
        CpuBackend::from_host(data, shape).map(TraceTensor::new)
    }

    fn to_host(x: &TraceTensor) -> Result<HostData> {
        match x.value()? {
            Some(at) if with(|recording| recording.all[at].depends_on_input) => {
                let reason =
                    "an operation reads values that depend on an input, which cannot be recorded";
                Err(error(reason))
            }
            _ => CpuBackend::to_host(&x.data),
        }
    }

    /// One element, repeated, so that its extents are not those of a constant.
    fn full(shape: Shape, value: Scalar, dtype: DType) -> Traced {
        let one = CpuBackend::full(Shape::scalar(), value, dtype)?;
        CpuBackend::broadcast_to(&one, &shape).map(TraceTensor::new)
    }

    fn cast(x: &TraceTensor, dtype: DType) -> Traced {
        let recipe = Recipe::Node("Cast", vec![int("to", code(dtype))], 1);
        elementwise("to_dtype", Some(recipe), [Arg::Ref(x)], |[x]| CpuBackend::cast(x, dtype))
    }

    fn view(x: &TraceTensor, layout: Layout) -> Traced {
        view::view(x, layout)
    }

    fn contiguous(x: &TraceTensor) -> Traced {
        let data = CpuBackend::contiguous(&x.data)?;
        if !x.layout().is_broadcast() {
            return Ok(x.with_data(data));
        }
        match whole(x)? {
            Operand::Value(at) => Ok(TraceTensor::bound(data, Some(at))),
            _ => Ok(TraceTensor::new(data)),
        }
    }

    fn unary<'a>(op: UnaryOp, x: impl Into<Arg<'a, TraceTensor>>) -> Traced {
        elementwise(op.name(), None, [x.into()], |[x]| CpuBackend::unary(op, x))
    }

    fn binary<'a>(
        op: BinaryOp,
        a: impl Into<Arg<'a, TraceTensor>>,
        b: impl Into<Arg<'a, TraceTensor>>,
    ) -> Traced {
        let operands = [a.into(), b.into()];
        elementwise(op.name(), None, operands, |[a, b]| CpuBackend::binary(op, a, b))
    }

    fn ternary<'a>(
        op: TernaryOp,
        a: impl Into<Arg<'a, TraceTensor>>,
        b: impl Into<Arg<'a, TraceTensor>>,
        c: impl Into<Arg<'a, TraceTensor>>,
    ) -> Traced {
        let operands = [a.into(), b.into(), c.into()];
        elementwise(op.name(), None, operands, |[a, b, c]| CpuBackend::ternary(op, a, b, c))
    }

    fn compare<'a>(
        op: CompareOp,
        a: impl Into<Arg<'a, TraceTensor>>,
        b: impl Into<Arg<'a, TraceTensor>>,
    ) -> Traced {
        let operands = [a.into(), b.into()];
        elementwise(op.name(), None, operands, |[a, b]| CpuBackend::compare(op, a, b))
    }

    fn test(op: NumberTest, x: &TraceTensor) -> Traced {
        if !x.dtype().is_float() {
            let value = Scalar::Int(i64::from(op == NumberTest::IsFinite));
            return Self::full(*x.shape(), value, DType::Bool);
        }
        elementwise(op.name(), None, [Arg::Ref(x)], |[x]| CpuBackend::test(op, x))
    }

    fn where_cond(mask: &TraceTensor, a: &TraceTensor, b: &TraceTensor) -> Traced {
        if mask.dtype() != DType::Bool {
            return Self::where_cond(tensor(mask).ne(0)?.data(), a, b);
        }
        if a.dtype() == DType::Bool {
            // ONNX Runtime selects no booleans.
            let [a, b] = [Self::cast(a, DType::U8)?, Self::cast(b, DType::U8)?];
            return Self::cast(&Self::where_cond(mask, &a, &b)?, DType::Bool);
        }
        let recipe = Some(Recipe::Node("Where", vec![], 3));
        elementwise("where_cond", recipe, [mask, a, b].map(Arg::Ref), |[mask, a, b]| {
            CpuBackend::where_cond(mask, a, b)
        })
    }

    fn reduce(op: ReduceOp, x: &TraceTensor, axes: &[usize]) -> Traced {
        let data = CpuBackend::reduce(op, &x.data, axes)?;
        if !is_recorded([x])? {
            return Ok(TraceTensor::new(data));
        }
        let t = tensor(x);
        if axes.is_empty() {
            // By ONNX's rules it would reduce over all axes, or do nothing: over one of extent 1.
            let y = Self::reduce(op, t.unsqueeze(-1)?.data(), &[t.rank()])?;
            return Ok(tensor(&y).squeeze(-1)?.data().clone());
        }
        let node = |name: Op, x: &TraceTensor| {
            one(op.name(), name, vec![whole(x)?, extents(axes)?], vec![], data.clone())
        };
        let is_max = op == ReduceOp::ArgMax;
        let all = Some(axes);
        let y = match op {
            ReduceOp::Sum => return node("ReduceSum", &summed(x)?),
            ReduceOp::Prod => return node("ReduceProd", &summed(x)?),
            ReduceOp::Mean => return node("ReduceMean", x),
            ReduceOp::LogSumExp => return node("ReduceLogSumExp", x),
            ReduceOp::Max => return node("ReduceMax", x),
            ReduceOp::Min => return node("ReduceMin", x),
            ReduceOp::Any => return node("ReduceMax", t.ne(0)?.data()),
            ReduceOp::All => return node("ReduceMin", t.ne(0)?.data()),
            ReduceOp::Norm { p: 1.0 } => return node("ReduceL1", x),
            ReduceOp::Norm { p: 2.0 } => return node("ReduceL2", x),
            ReduceOp::Norm { p: 0.0 } => t.ne(0)?.to_dtype(x.dtype())?.sum(all, true)?,
            ReduceOp::Norm { p: f64::INFINITY } => t.abs()?.max(all, true)?,
            ReduceOp::Norm { p: f64::NEG_INFINITY } => t.abs()?.min(all, true)?,
            ReduceOp::Norm { p } => t.abs()?.powf(p)?.sum(all, true)?.powf(1.0 / p)?,
            ReduceOp::Variance { ddof } => {
                let squares = t.sub(&t.mean(all, true)?)?.square()?;
                let count: usize = axes.iter().map(|&axis| x.dims()[axis]).product();
                match ddof {
                    0 => squares.mean(all, true)?,
                    _ => squares.sum(all, true)?.div(count.saturating_sub(ddof) as f64)?,
                }
            }
            ReduceOp::Std { ddof } => t.variance(all, true, ddof)?.sqrt()?,
            ReduceOp::ArgMax | ReduceOp::ArgMin if axes.len() == 1 => {
                let name = if is_max { "ArgMax" } else { "ArgMin" };
                return one(op.name(), name, vec![whole(x)?], on(axes[0]), data);
            }
            ReduceOp::ArgMax | ReduceOp::ArgMin => {
                let kept = (0..t.rank()).filter(|axis| !axes.contains(axis));
                let order: Vec<usize> = kept.chain(axes.iter().copied()).collect();
                let rows = t.permute(&order)?.flatten(t.rank() - axes.len(), -1)?;
                let at = if is_max { rows.argmax(-1, true)? } else { rows.argmin(-1, true)? };
                at.reshape(*data.shape())?
            }
            _ => return Err(error(format!("{} cannot be recorded", op.name()))),
        };
        Ok(y.data().clone())
    }

    fn scan(op: ScanOp, x: &TraceTensor, axis: usize) -> Traced {
        let (data, x) = (CpuBackend::scan(op, &x.data, axis)?, summed(x)?);
        if op == ScanOp::Sum {
            let inputs = vec![whole(&x)?, number(axis as i64, DType::I64)?];
            return one(op.name(), "CumSum", inputs, vec![], data);
        }
        if !is_recorded([&x])? {
            return Ok(TraceTensor::new(data));
        }
        // Products of 2, 4, 8 … elements.
        let (mut y, n, mut step) = (tensor(&x), x.dims()[axis], 1);
        while step < n {
            let ones = Tensor::ones(with_extent(&y, axis, step), y.dtype())?;
            let before = y.narrow(axis, 0, n - step)?;
            y = y.mul(&Tensor::cat(&[&ones, &before], axis)?)?;
            step *= 2;
        }
        Ok(y.data().clone())
    }

    fn arg_scan(op: Extremum, x: &TraceTensor, axis: usize) -> Traced {
        if !is_recorded([x])? {
            return CpuBackend::arg_scan(op, &x.data, axis).map(TraceTensor::new);
        }
        // Of 2, 4, 8 … elements. An element that has none before it is compared with itself.
        let (mut best, n, mut step) = (tensor(x), x.dims()[axis], 1);
        let column: Shape = (0..best.rank()).map(|i| if i == axis { n } else { 1 }).collect();
        let mut places = fused::positions(n)?.reshape(column)?.broadcast_to(*x.shape())?;
        while step < n {
            let shifted = |x: &T| {
                let parts = [x.narrow(axis, 0, step)?, x.narrow(axis, 0, n - step)?];
                Tensor::cat(&parts, axis)
            };
            let (before, place) = (shifted(&best)?, shifted(&places)?);
            let is_better = match op {
                Extremum::Max => before.ge(&best)?,
                Extremum::Min => before.le(&best)?,
            };
            let is_better = is_better.logical_or(&before.isnan()?)?;
            places = Tensor::where_cond(&is_better, &place, &places)?;
            best = Tensor::where_cond(&is_better, &before, &best)?;
            step *= 2;
        }
        Ok(places.data().clone())
    }

    fn order(op: OrderOp, x: &TraceTensor, axis: usize) -> Result<(TraceTensor, TraceTensor)> {
        let (values, indices) = CpuBackend::order(op, &x.data, axis)?;
        let inputs = vec![whole(x)?, extents(&[values.shape().dim(axis)])?];
        let attributes = [on(axis), vec![int("largest", i64::from(op.descending))]].concat();
        let both = results(op.name(), "TopK", inputs, attributes, [values, indices])?;
        match &both[..] {
            [values, indices] => Ok((values.clone(), indices.clone())),
            _ => Err(error("TopK has two results")),
        }
    }

    fn search_sorted(sorted: &TraceTensor, values: &TraceTensor, right: bool) -> Traced {
        let (sorted, values) = (tensor(sorted).unsqueeze(-2)?, tensor(values).unsqueeze(-1)?);
        let is_before = if right { sorted.le(&values)? } else { sorted.lt(&values)? };
        Ok(is_before.sum(Some(&[is_before.rank() - 1]), false)?.data().clone())
    }

    fn matmul(a: &TraceTensor, b: &TraceTensor) -> Traced {
        let data = CpuBackend::matmul(&a.data, &b.data)?;
        let rank = a.dims().len();
        // Where both operands repeat along a leading axis, one of them is expanded.
        let repeats = |x: &TraceTensor, axis: usize| x.dims()[axis] > 1 && x.strides()[axis] == 0;
        let is_batched = (0..rank - 2).any(|axis| repeats(a, axis) && repeats(b, axis));
        let a = operand(a, if is_batched { rank } else { 2 }, 2)?;
        one("matmul", "MatMul", vec![a, operand(b, 2, 2)?], vec![], data)
    }

    fn gather(x: &TraceTensor, axis: usize, index: &TraceTensor) -> Traced {
        let data = CpuBackend::gather(&x.data, axis, &index.data)?;
        let (unit, dims) = (unit_dims(index.layout()), index.dims());
        let selects_rows = |i: usize| i == axis || (unit[i] == 1 && x.dims()[i] == dims[i]);
        let (mut op, mut index) = ("GatherElements", tensor(index));
        if (0..dims.len()).all(selects_rows) {
            for i in (0..dims.len()).filter(|&i| i != axis) {
                index = index.narrow(i, 0, 1)?;
            }
            (op, index) = ("Gather", index.reshape(dims[axis])?);
        }
        let inputs = vec![whole(x)?, whole(index.data())?];
        one("gather", op, inputs, on(axis), data)
    }

    fn scatter_add(
        x: &TraceTensor,
        axis: usize,
        index: &TraceTensor,
        source: &TraceTensor,
    ) -> Traced {
        let data = CpuBackend::scatter_add(&x.data, axis, &index.data, &source.data)?;
        let inputs = vec![whole(x)?, whole(index)?, whole(source)?];
        let attributes = [on(axis), vec![text("reduction", "add")]].concat();
        one("scatter_add", "ScatterElements", inputs, attributes, data)
    }

    fn scatter(x: &TraceTensor, axis: usize, index: &TraceTensor, source: &TraceTensor) -> Traced {
        let data = CpuBackend::scatter(&x.data, axis, &index.data, &source.data)?;
        let inputs = vec![whole(x)?, whole(index)?, whole(source)?];
        one("scatter", "ScatterElements", inputs, on(axis), data)
    }

    fn cat(tensors: &[&TraceTensor], axis: usize) -> Traced {
        let data: Vec<_> = tensors.iter().map(|x| &x.data).collect();
        let inputs = tensors.iter().map(|x| whole(x)).collect::<Result<_>>()?;
        let data = CpuBackend::cat(&data, axis)?;
        one("cat", "Concat", inputs, on(axis), data)
    }

    fn assemble(x: &TraceTensor, axes: &[Vec<AxisPart>], fill: Scalar) -> Traced {
        use AxisPart::{Fill, From};
        let data = CpuBackend::assemble(&x.data, axes, fill)?;
        if !is_recorded([x])? {
            return Ok(TraceTensor::new(data));
        }
        // Elements added to both ends of each axis.
        let pads = axes.iter().zip(x.dims()).map(|(parts, &dim)| match parts[..] {
            [] => Some([0, 0]),
            [Fill(before), From { start, len, step: 1 }, Fill(after)] => Some([
                before as i64 - start as i64,
                after as i64 - (dim as i64 - (start + len) as i64),
            ]),
            _ => None,
        });
        if let Some(pads) = pads.collect::<Option<Vec<_>>>() {
            let pads = [0, 1].into_iter().flat_map(|end| pads.iter().map(move |pads| pads[end]));
            let inputs = vec![whole(x)?, ints(pads)?, number(fill, x.dtype())?];
            return one("pad", "Pad", inputs, vec![], data);
        }
        let mut y = tensor(x);
        for (axis, parts) in axes.iter().enumerate().filter(|(_, parts)| !parts.is_empty()) {
            let mut index = Vec::new();
            for part in parts {
                match *part {
                    From { start, len, step } => {
                        index.extend((0..len as i64).map(|i| start as i64 + i * step as i64));
                    }
                    Fill(0) => {}
                    Fill(_) => return Err(error("such a mixture of parts cannot be recorded")),
                }
            }
            y = y.index_select(axis, &Tensor::from_slice(&index, index.len())?)?;
        }
        Ok(y.data().clone())
    }

    fn fused(op: &FusedOp<'_, TraceTensor>) -> Result<Results<TraceTensor>> {
        fused::fused(op)
    }

    fn engine_batch_norm(
        x: &T,
        statistics: [&T; 2],
        parameters: [Option<&T>; 2],
        eps: f64,
    ) -> Result<T> {
        fused::batch_norm(x, statistics, parameters, eps)
    }
}
