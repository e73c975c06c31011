//! Elements and slices by their indices, and by their order.

use swath::{Backend, DType, ReduceMode, Tensor};

use super::Rows;
use crate::error::{Error, Result};
use crate::row::Default::{Absent, Int, Text};
use crate::row::{Call, Results, Row, all, axis, extents, one, row};

/// Slices of an axis, whose place the axes of the indices take.
fn gather<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let (x, index) = (call.tensor(0)?, call.tensor(1)?);
    let axis = call.axis("axis", x.rank())?;
    let dims = [&x.dims()[..axis], index.dims(), &x.dims()[axis + 1..]].concat();
    one(x.index_select(axis, &index.reshape(index.numel())?)?.reshape(dims))
}

/// The indices of each axis, of which a tensor has tuples along its last axis.
fn by_axis<B: Backend>(index: &Tensor<B>, rank: usize) -> Result<Vec<Tensor<B>>> {
    match index.dims().last() {
        Some(&count) if (1..=rank).contains(&count) => Ok(index.unbind(-1)?),
        _ => Err(Error::operator(format!(
            "expected tuples of 1 to {rank} indices, got shape {}",
            index.shape()
        ))),
    }
}

fn gather_nd<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let (x, index) = (call.tensor(0)?, call.tensor(1)?);
    let batch_axes = usize::try_from(call.int("batch_dims")?)
        .ok()
        .filter(|&axes| axes < x.rank().min(index.rank()));
    let batch_axes = batch_axes
        .ok_or_else(|| Error::operator("batch_dims must be below the numbers of axes"))?;
    if x.dims()[..batch_axes] != index.dims()[..batch_axes] {
        let reason = format!(
            "the first {batch_axes} extents of {} and {} must be equal",
            x.shape(),
            index.shape()
        );
        return Err(Error::operator(reason));
    }
    let mut indices = Vec::new();
    for axis in 0..batch_axes {
        let mut shape = vec![1; index.rank() - 1];
        shape[axis] = x.dims()[axis];
        indices.push(Tensor::arange_as(0.0, shape[axis] as f64, 1.0, DType::I64)?.reshape(shape)?);
    }
    indices.extend(by_axis(index, x.rank() - batch_axes)?);
    one(x.index(&indices.iter().map(Some).collect::<Vec<_>>()))
}

/// How an operator reduces, `None` if the last of several updates remains. Booleans are added and multiplied as logic
/// does: their extrema, of bytes.
fn reduction<B: Backend>(call: &Call<'_, B>) -> Result<Option<ReduceMode>> {
    let is_bool = call.tensor(0)?.dtype() == DType::Bool;
    Ok(Some(match call.text("reduction")? {
        "none" => return Ok(None),
        "add" if !is_bool => ReduceMode::Sum,
        "mul" if !is_bool => ReduceMode::Prod,
        "add" | "max" => ReduceMode::Max,
        "mul" | "min" => ReduceMode::Min,
        other => {
            return Err(Error::operator(format!(
                "reduction {other:?} is none of none, add, mul, max, min"
            )));
        }
    }))
}

/// Computes with bytes for booleans, which swath does not reduce.
fn with_bytes<B: Backend>(
    [x, updates]: [&Tensor<B>; 2],
    f: impl Fn(&Tensor<B>, &Tensor<B>) -> swath::Result<Tensor<B>>,
) -> Result<Tensor<B>> {
    Ok(match x.dtype() {
        DType::Bool => {
            f(&x.to_dtype(DType::U8)?, &updates.to_dtype(DType::U8)?)?.to_dtype(DType::Bool)?
        }
        _ => f(x, updates)?,
    })
}

fn scatter_elements<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let (x, index, updates) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
    let axis = call.axis("axis", x.rank())?;
    match reduction(call)? {
        None => one(x.scatter(axis, index, updates)),
        Some(mode) => one(with_bytes([x, updates], |x, updates| {
            x.scatter_reduce(axis, index, updates, mode, true)
        })),
    }
}

fn scatter_nd<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let (x, index, updates) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
    let indices = by_axis(index, x.rank())?;
    let tuples = indices[0].dims();
    let (outer, inner) = x.dims().split_at(indices.len());
    if updates.dims() != [tuples, inner].concat() {
        let reason = format!(
            "updates must have the extents {:?}, got {}",
            [tuples, inner].concat(),
            updates.shape()
        );
        return Err(Error::operator(reason));
    }
    let indices: Vec<_> = indices.iter().map(Some).collect();
    let Some(mode) = reduction(call)? else { return one(x.index_put(&indices, updates)) };
    // The axes that tuples index as one, and its indices.
    let (count, size) = (outer.iter().product::<usize>(), inner.iter().product::<usize>());
    let number =
        Tensor::arange_as(0.0, count as f64, 1.0, DType::I64)?.reshape(outer)?.index(&indices)?;
    let number = number.reshape(number.numel())?;
    let (rows, sources) = (x.reshape((count, size))?, updates.reshape((number.numel(), size))?);
    one(with_bytes([&rows, &sources], |x, y| x.index_reduce(0, &number, y, mode, true))?
        .reshape(x.shape()))
}

/// Writes updates into a cache, at a place of its own for each sequence of the batch.
fn tensor_scatter<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let (cache, updates) = (call.tensor(0)?, call.tensor(1)?);
    let axis = call.axis("axis", cache.rank())?;
    let mut wanted = cache.dims().to_vec();
    let room = std::mem::replace(&mut wanted[axis], updates.dims().get(axis).copied().unwrap_or(0));
    let (batch, count) = (wanted[0], wanted[axis]);
    let starts = call.ints_of(2)?.unwrap_or_else(|| vec![0; batch]);
    if axis == 0 || updates.dims() != wanted || count > room || starts.len() != batch {
        let (cache, updates, starts) = (cache.shape(), updates.shape(), starts.len());
        let reason = format!(
            "updates {updates} at {starts} places do not fit into {cache} along axis {axis}"
        );
        return Err(Error::operator(reason));
    }
    if updates.numel() == 0 {
        return one(Ok::<_, Error>(cache.clone()));
    }
    let is_circular = call.text("mode")? == "circular";
    let mut index = Vec::new();
    for start in starts {
        let first = match usize::try_from(start) {
            _ if is_circular => start.rem_euclid(room as i64) as usize,
            Ok(start) if start <= room - count => start,
            _ => {
                return Err(Error::operator(format!(
                    "{count} elements at {start} do not fit into {room}"
                )));
            }
        };
        index.extend((first..first + count).map(|at| (at % room) as i64));
    }
    let mut shape = vec![1; cache.rank()];
    (shape[0], shape[axis]) = (batch, count);
    let index = Tensor::from_vec(index, shape)?.broadcast_to(updates.shape())?;
    one(cache.scatter(axis, &index, updates))
}

fn compress<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let (x, condition) = (call.tensor(0)?, call.tensor(1)?);
    let chosen = condition.nonzero()?;
    let chosen = chosen.reshape(chosen.numel())?;
    match call.find_int("axis")? {
        Some(axis) => one(x.index_select(axis, &chosen)),
        None => one(x.reshape(x.numel())?.index_select(0, &chosen)),
    }
}

fn one_hot<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let (index, values) = (call.tensor(0)?.to_dtype(DType::I64)?, call.tensor(2)?);
    let depth = call.number_of(1)?.ok_or_else(|| Error::operator("the depth is missing"))? as i64;
    let axis = axis(call.int("axis")?, index.rank() + 1)?;
    let mut shape = vec![1; index.rank() + 1];
    shape[axis] = extents(&[depth])?[0];
    if values.numel() != 2 {
        return Err(Error::operator(format!(
            "expected the two values off and on, got shape {}",
            values.shape()
        )));
    }
    let values = values.reshape(2)?;
    let [off, on] = [0, 1].map(|at| values.narrow(0, at, 1)?.reshape(()));
    let classes = Tensor::arange_as(0.0, depth as f64, 1.0, DType::I64)?.reshape(shape)?;
    let index = Tensor::where_cond(&index.lt(0)?, &index.add_scalar(depth)?, &index)?;
    one(Tensor::where_cond(&index.unsqueeze(axis)?.eq(&classes)?, &on?, &off?))
}

fn top_k<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let x = call.tensor(0)?;
    let axis = call.axis("axis", x.rank())?;
    let k = match call.find_int("k")? {
        Some(k) => k,
        None => call.number_of(1)?.ok_or_else(|| Error::operator("k is missing"))? as i64,
    };
    let k = extents(&[k])?[0];
    if !call.flag("largest")? {
        let (values, indices) = x.bottomk(k, axis)?;
        return all([values, indices]);
    }
    let is_nan = x.isnan()?;
    if !is_nan.any(None, false)?.item::<bool>()? {
        let (values, indices) = x.topk(k, axis)?;
        return all([values, indices]);
    }
    // NaN counts as the largest number, which swath sorts to the end.
    let order = x.masked_fill(&is_nan, f64::INFINITY)?.argsort(axis, true)?;
    let order = order.gather(axis, &is_nan.gather(axis, &order)?.argsort(axis, true)?)?;
    let indices = order.narrow(axis, 0, k)?;
    all([x.gather(axis, &indices)?, indices])
}

fn unique<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let x = call.tensor(0)?;
    let axis = call.find_int("axis")?;
    let found = match axis {
        Some(axis) => x.unique_along(axis)?,
        None => x.unique_with_indices()?,
    };
    let groups = found.inverse.reshape(found.inverse.numel())?;
    if call.flag("sorted")? {
        return all([found.values, found.indices, groups, found.counts]);
    }
    let order = found.indices.argsort(0, false)?;
    all([
        found.values.index_select(axis.unwrap_or(0), &order)?,
        found.indices.index_select(0, &order)?,
        order.argsort(0, false)?.index_select(0, &groups)?,
        found.counts.index_select(0, &order)?,
    ])
}

/// Elements of the last axis; of a vector, as a matrix of one row.
fn array_feature_extractor<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let (x, index) = (call.tensor(0)?, call.tensor(1)?);
    let picked = x.index_select(-1, &index.reshape(index.numel())?)?;
    one(if x.rank() == 1 { picked.unsqueeze(0) } else { Ok(picked) })
}

impl<B: Backend> Rows<B> {
    pub const GATHER: &'static [Row<B>] = &[
        row("Gather", 1, &[("axis", Int(0))], gather),
        row("GatherElements", 11, &[("axis", Int(0))], |c| {
            let x = c.tensor(0)?;
            one(x.gather(c.axis("axis", x.rank())?, c.tensor(1)?))
        }),
        row("GatherND", 11, &[("batch_dims", Int(0))], gather_nd),
        row("Scatter", 9, &[("axis", Int(0)), ("reduction", Text("none"))], scatter_elements),
        row(
            "ScatterElements",
            11,
            &[("axis", Int(0)), ("reduction", Text("none"))],
            scatter_elements,
        ),
        row("ScatterND", 11, &[("reduction", Text("none"))], scatter_nd),
        row("TensorScatter", 24, &[("axis", Int(-2)), ("mode", Text("linear"))], tensor_scatter),
        row("Compress", 9, &[("axis", Absent)], compress),
        row("NonZero", 9, &[], |c| one(c.tensor(0)?.nonzero()?.t())),
        row("OneHot", 9, &[("axis", Int(-1))], one_hot),
        row(
            "TopK",
            1,
            &[("axis", Int(-1)), ("k", Absent), ("largest", Int(1)), ("sorted", Int(1))],
            top_k,
        ),
        row("Unique", 11, &[("axis", Absent), ("sorted", Int(1))], unique),
        row("ai.onnx.ml.ArrayFeatureExtractor", 1, &[], array_feature_extractor),
    ];
}
