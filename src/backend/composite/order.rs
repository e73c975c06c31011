//! Order of elements by comparisons of values in host memory: the definition of the ops.

use std::cmp::Ordering;

use crate::backend::{Backend, TensorData, check_search};
use crate::dtype::{HostData, Scalar};
use crate::error::Result;
use crate::ops::{Extremum, OrderOp};
use crate::shape::Shape;

/// Positions, in row-major order, of the elements along `axis` of a shape, for each index of the other axes.
fn lines(shape: &Shape, axis: usize) -> impl Iterator<Item = impl Fn(usize) -> usize> {
    let (n, below): (usize, usize) = (shape.dim(axis), shape.dims()[axis + 1..].iter().product());
    let count = shape.with_axis(axis, Some(1)).numel();
    (0..count).map(move |line| {
        let first = line / below * n * below + line % below;
        move |i| first + i * below
    })
}

fn values<B: Backend>(x: &B::Tensor) -> Result<Vec<Scalar>> {
    let host = B::to_host(x)?;
    Ok((0..host.len()).filter_map(|i| host.get(i)).collect())
}

fn is_nan(x: Scalar) -> bool {
    matches!(x, Scalar::Float(x) if x.is_nan())
}

/// Compares two values of one dtype; NaN comes last in either direction.
fn compare(a: Scalar, b: Scalar, descending: bool) -> Ordering {
    if is_nan(a) || is_nan(b) {
        return is_nan(a).cmp(&is_nan(b));
    }
    let order = match (a, b) {
        (Scalar::Float(a), Scalar::Float(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
        _ => a.to_i128().cmp(&b.to_i128()),
    };
    if descending { order.reverse() } else { order }
}

pub(in super::super) fn order<B: Backend>(
    op: OrderOp,
    x: &B::Tensor,
    axis: usize,
) -> Result<(B::Tensor, B::Tensor)> {
    let shape = *x.shape();
    shape.check_axis(op.name(), axis)?;
    let (values, count) = (values::<B>(x)?, op.extent(shape.dim(axis)));
    let shown = shape.with_axis(axis, Some(count));
    let mut indices = vec![0; shown.numel()];
    for (from, to) in lines(&shape, axis).zip(lines(&shown, axis)) {
        let mut line: Vec<usize> = (0..shape.dim(axis)).collect();
        line.sort_by(|&i, &j| compare(values[from(i)], values[from(j)], op.descending));
        for (i, index) in line.into_iter().take(count).enumerate() {
            indices[to(i)] = index as i64;
        }
    }
    let indices = B::from_host(HostData::I64(indices), shown)?;
    Ok((B::gather(x, axis, &indices)?, indices))
}

pub(in super::super) fn search_sorted<B: Backend>(
    sorted: &B::Tensor,
    values: &B::Tensor,
    right: bool,
) -> Result<B::Tensor> {
    check_search("searchsorted", sorted, values)?;
    let (shape, n) = (*values.shape(), sorted.shape().dims().last().copied().unwrap_or(0));
    let (sorted, values) = (self::values::<B>(sorted)?, self::values::<B>(values)?);
    let per_row = match sorted.len() == n {
        true => values.len(),
        false => shape.dims().last().copied().unwrap_or(1),
    };
    let place = |(i, &value): (usize, &Scalar)| {
        let row = &sorted[i / per_row * n..][..n];
        row.partition_point(|&x| match compare(x, value, false) {
            Ordering::Less => true,
            Ordering::Equal => right,
            Ordering::Greater => false,
        }) as i64
    };
    let places = values.iter().enumerate().map(place).collect();
    B::from_host(HostData::I64(places), shape)
}

pub(in super::super) fn arg_scan<B: Backend>(
    op: Extremum,
    x: &B::Tensor,
    axis: usize,
) -> Result<B::Tensor> {
    let shape = *x.shape();
    shape.check_axis(op.name(), axis)?;
    let values = values::<B>(x)?;
    let mut indices = vec![0; values.len()];
    for at in lines(&shape, axis) {
        let mut best = 0;
        for i in 0..shape.dim(axis) {
            let (value, largest) = (values[at(i)], values[at(best)]);
            let replaces = is_nan(value) || compare(value, largest, op == Extremum::Max).is_lt();
            if replaces && !is_nan(largest) {
                best = i;
            }
            indices[at(i)] = best as i64;
        }
    }
    B::from_host(HostData::I64(indices), shape)
}
