//! Views: a layout, in terms of the one that it was made from, as operators of ONNX.

use std::collections::HashMap;

use swath::backend::cpu::CpuTensor;
use swath::{Backend, CpuBackend, DType, HostData, Layout, Result, Shape, TensorData};

use super::record::*;

/// True if the layouts are equal, except for strides that are never taken.
fn same(a: &Layout, b: &Layout) -> bool {
    let mut axes = a.dims().iter().zip(a.strides().iter().zip(b.strides()));
    let is_same = axes.all(|(&dim, (a, b))| dim <= 1 || a == b);
    is_same && a.dims() == b.dims() && a.offset() == b.offset()
}

pub fn view(x: &TraceTensor, new: Layout) -> Result<TraceTensor> {
    let (old, data) = (*x.layout(), CpuBackend::view(&x.data, new)?);
    if x.value()?.is_none() || new.numel() == 0 {
        return Ok(TraceTensor::new(data));
    }
    if old.broadcast_to("view", new.shape()).is_ok_and(|layout| same(&layout, &new)) {
        return Ok(x.with_data(data));
    }
    let (rank, unit) = (old.dims().len(), unit_dims(&new));
    let shape = |dims: &[usize]| vec![(dims.to_vec(), x.dtype())];
    if matches!(old.reshape("view", new.shape()), Ok(Some(layout)) if same(&layout, &new)) {
        // Without the repetition, if that leaves as many elements.
        let count = |dims: &[usize]| dims.iter().product::<usize>();
        if count(&unit) == count(&unit_dims(&old)) {
            let at = reshape(operand(x, 0, 0)?, unit, x.dtype())?;
            return Ok(TraceTensor::bound(data, at));
        }
        return full(data, reshape(whole(x)?, new.dims().to_vec(), x.dtype())?);
    }
    if let Some(order) = permutation(&old, &new) {
        let order = list("perm", order.iter().map(|&axis| axis as i64));
        let at =
            push("permute", "Transpose", vec![operand(x, 0, rank)?], vec![order], shape(&unit));
        return Ok(TraceTensor::bound(data, at));
    }
    if let Some(ranges) = ranges(&old, &new) {
        let (mut input, mut at, mut dims) = (operand(x, 0, rank)?, None, unit_dims(&old));
        let is_cut = |&i: &usize| {
            dims[i] > 1 && (ranges[i].start, ranges[i].step, ranges[i].len) != (0, 1, dims[i])
        };
        let cut: Vec<usize> = (0..rank).filter(is_cut).collect();
        if !cut.is_empty() {
            let (starts, ends): (Vec<i64>, Vec<i64>) =
                cut.iter().map(|&i| ranges[i].bounds(dims[i] as i64)).unzip();
            let steps = cut.iter().map(|&i| ranges[i].step);
            let inputs = vec![input, ints(starts)?, ints(ends)?, extents(&cut)?, ints(steps)?];
            cut.iter().for_each(|&i| dims[i] = ranges[i].len);
            at = push("slice", "Slice", inputs, vec![], shape(&dims));
            input = at.map_or(Operand::Absent, Operand::Value);
        }
        let dropped: Vec<usize> = (0..rank).filter(|&i| ranges[i].is_dropped).collect();
        if !dropped.is_empty() {
            at = push("slice", "Squeeze", vec![input, extents(&dropped)?], vec![], shape(&unit));
        } else if let Operand::Value(value) = input {
            at = Some(value);
        }
        return Ok(TraceTensor::bound(data, at));
    }
    // Elements by number, along the axes after those that both layouts have.
    let is_common = |&i: &usize| {
        old.strides()[i] != 0
            && (old.dims()[i], old.strides()[i]) == (new.dims()[i], new.strides()[i])
    };
    let common = (0..rank.min(new.dims().len())).take_while(is_common).count();
    for lead in [common, 0] {
        let rest = |layout: &Layout| {
            let strides = layout.strides()[lead..].iter().copied().collect();
            Layout::new(Shape::new(&layout.dims()[lead..]), strides, layout.offset())
        };
        let (Some(from), Some(to)) = (rest(&old), rest(&new)) else { continue };
        let numbers: HashMap<usize, i64> = from.positions().zip(0..).collect();
        let index = to.positions().map(|at| numbers.get(&at).copied()).collect::<Option<Vec<_>>>();
        let Some(index) = index else { continue };
        let index = CpuBackend::from_host(HostData::I64(index), *to.shape())?;
        let flat = [&old.dims()[..lead], &[from.numel()]].concat();
        let flat = reshape(whole(x)?, flat, x.dtype())?.map_or(Operand::Absent, Operand::Value);
        let (inputs, axis) = (vec![flat, Operand::Constant(index)], int("axis", lead as i64));
        return full(data, push("view", "Gather", inputs, vec![axis], shape(new.dims())));
    }
    Err(error("a view that has elements beyond those of its tensor"))
}

/// A result that no axis repeats.
fn full(data: CpuTensor, at: Option<usize>) -> Result<TraceTensor> {
    Ok(TraceTensor::bound(CpuBackend::contiguous(&data)?, at))
}

/// Records a change of shape, which replaces one before it.
fn reshape(mut x: Operand, dims: Vec<usize>, dtype: DType) -> Result<Option<usize>> {
    if let Operand::Value(at) = x {
        let source = with(|recording| {
            let node = recording.nodes.iter().rev().find(|node| node.outputs.start == at);
            node.filter(|node| node.op == "Reshape").map(|node| node.inputs[0].clone())
        });
        x = source.unwrap_or(x);
    }
    Ok(push("reshape", "Reshape", vec![x, extents(&dims)?], vec![], vec![(dims, dtype)]))
}

/// The order of the axes of `old` in `new`.
fn permutation(old: &Layout, new: &Layout) -> Option<Vec<usize>> {
    let axis = |layout: &Layout, i: usize| (layout.dims()[i], layout.strides()[i]);
    let rank = old.dims().len();
    let mut order = Vec::new();
    for i in 0..new.dims().len() {
        let found = (0..rank).find(|j| !order.contains(j) && axis(old, *j) == axis(new, i));
        order.push(found?);
    }
    (order.len() == rank && old.offset() == new.offset()).then_some(order)
}

/// Elements along an axis, which is dropped if there is one of them and an index chose it.
#[derive(Clone, Copy)]
struct Range {
    is_dropped: bool,
    start: i64,
    step: i64,
    len: usize,
}

impl Range {
    /// Start and end as `Slice` takes them. Those at an end of the axis are so for any extent.
    fn bounds(self, dim: i64) -> (i64, i64) {
        let last = self.start + (self.len as i64 - 1) * self.step;
        match self.step > 0 {
            true => (self.start, if last + self.step >= dim { i64::MAX } else { last + 1 }),
            false => (
                if self.start == dim - 1 { i64::MAX } else { self.start },
                if last + self.step < 0 { i64::MIN } else { last - 1 },
            ),
        }
    }
}

/// The elements of `new` along each axis of `old`.
fn ranges(old: &Layout, new: &Layout) -> Option<Vec<Range>> {
    let (rank, dims, strides) = (old.dims().len(), old.dims(), old.strides());
    // Counted from the element at the lowest position, along axes with large strides first.
    let last = |i: usize| dims[i] as isize - 1;
    let is_backwards = |i: usize| strides[i] < 0 && dims[i] > 1;
    let below: isize = (0..rank).filter(|&i| is_backwards(i)).map(|i| last(i) * strides[i]).sum();
    let mut left = new.offset() as isize - old.offset() as isize - below;
    let mut order: Vec<usize> = (0..rank).filter(|&i| strides[i] != 0 && dims[i] > 1).collect();
    order.sort_by_key(|&i| -strides[i].abs());
    let mut starts = vec![0; rank];
    for i in order {
        let start = (left / strides[i].abs()).clamp(0, last(i));
        left -= start * strides[i].abs();
        starts[i] = if is_backwards(i) { last(i) - start } else { start };
    }
    // Of every choice of axes that are kept, one whose layout is the new one.
    let of = |kept: usize| {
        let mut places = 0..new.dims().len();
        let range = |i: usize| {
            let whole = Range { is_dropped: false, start: starts[i] as i64, step: 1, len: 1 };
            if kept & 1 << i == 0 {
                return Some(Range { is_dropped: true, ..whole });
            }
            let at = places.next()?;
            let len = new.dims()[at];
            let step = match (len, new.strides()[at]) {
                (1, _) => 1,
                (_, 0) if strides[i] == 0 || dims[i] == 1 => return Some(Range { len, ..whole }),
                // One element, repeated.
                (_, 0) => return Some(whole),
                (_, stride) if strides[i] != 0 && stride % strides[i] == 0 => stride / strides[i],
                _ => return None,
            };
            let is_inside = (0..=last(i)).contains(&(starts[i] + (len as isize - 1) * step));
            is_inside.then_some(Range { step: step as i64, len, ..whole })
        };
        (0..rank).map(range).collect()
    };
    let count = new.dims().len() as u32;
    let mut choices = (0..1usize << rank).rev().filter(|kept| kept.count_ones() == count);
    choices.find_map(of).filter(|_| left == 0)
}
