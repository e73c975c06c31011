//! Order, counts, scans, indices.

use swath::cpu::prelude::*;
use swath::{QuantileMethod, ReduceMode};

use super::{Results, axes, flat, one, two};
use crate::sample::{Arg, Call};

fn method(c: &Call) -> QuantileMethod {
    match c.word(4, "interpolation") {
        Some("lower") => QuantileMethod::Lower,
        Some("higher") => QuantileMethod::Higher,
        Some("nearest") => QuantileMethod::Nearest,
        Some("midpoint") => QuantileMethod::Midpoint,
        _ => QuantileMethod::Linear,
    }
}

fn mode(word: &str) -> ReduceMode {
    match word {
        "sum" => ReduceMode::Sum,
        "mean" => ReduceMode::Mean,
        "prod" => ReduceMode::Prod,
        "amax" => ReduceMode::Max,
        _ => ReduceMode::Min,
    }
}

fn index_type(c: &Call) -> DType {
    if c.bool(9, "out_int32") { DType::I32 } else { DType::I64 }
}

/// Whether every row ascends, as a search and bins need.
fn is_sorted(rows: &Tensor) -> Result<bool> {
    let values = rows.to_dtype(DType::F64)?.to_vec::<f64>()?;
    let columns = rows.dims().last().copied().unwrap_or(1).max(1);
    Ok(values.chunks(columns).all(|row| row.is_sorted()))
}

pub fn call(op: &str, c: &Call) -> Results {
    let axis = |at: usize, or: i64| c.int(at, "dim").unwrap_or(or) as isize;
    let keep = |at: usize| c.bool(at, "keepdim");
    match op {
        "repeat_interleave" => {
            let (x, axis) = flat(c, 2)?;
            one(match c.get(1, "repeats") {
                Arg::Tensor(repeats) => x.repeat_interleave(repeats, axis),
                _ => x.repeat_interleave(c.int(1, "repeats").unwrap_or(1) as usize, axis),
            })
        }
        "diff" => {
            let axis = axis(2, -1);
            if c.int(1, "n") == Some(0) {
                return Ok(vec![c.x().clone()]);
            }
            let ends = [c.tensor(3, "prepend"), Some(c.x()), c.tensor(4, "append")];
            let parts: Vec<Tensor> = ends.into_iter().flatten().cloned().collect();
            one(Tensor::cat(&parts, axis)?.diff(c.int(1, "n").unwrap_or(1) as usize, axis))
        }
        "isin" => {
            let [x, set] = c.pair()?;
            let found = x.isin(&set)?;
            one(if c.bool(3, "invert") { found.logical_not() } else { Ok(found) })
        }
        "unique" | "unique_consecutive" => {
            let x = c.x();
            let unique = match (op, c.int(1, "dim")) {
                ("unique", Some(axis)) => x.unique_along(axis as isize)?,
                ("unique", None) => {
                    let (values, inverse, counts) = x.unique()?;
                    let indices = values.clone();
                    swath::Unique { values, indices, inverse, counts }
                }
                (_, axis) => x.unique_consecutive(axis.map(|axis| axis as isize))?,
            };
            let mut results = vec![unique.values];
            if c.bool(2, "return_inverse") {
                results.push(unique.inverse);
            }
            if c.bool(3, "return_counts") {
                results.push(unique.counts);
            }
            Ok(results)
        }
        "mode" => two(c.x().mode(axis(1, -1), keep(2))),
        "median" | "nanmedian" if !c.has(1, "dim") => one(match op {
            "median" => c.x().reshape(-1)?.median(0, false),
            _ => c.x().reshape(-1)?.nanmedian(0, false).map(|(values, _)| values),
        }),
        "median" => two(c.x().median_with_indices(axis(1, -1), keep(2))),
        "nanmedian" => two(c.x().nanmedian(axis(1, -1), keep(2))),
        "nanquantile" => {
            let (x, axis) = flat(c, 2)?;
            if let Arg::Tensor(_) = c.get(1, "q") {
                return Ok(vec![]);
            }
            let q = c.float(1, "q").expect("a fraction");
            let keep = keep(3) && c.has(2, "dim");
            match method(c) {
                QuantileMethod::Linear => one(x.nanquantile(q, axis, keep)),
                _ => Ok(vec![]),
            }
        }
        "nansum" => one(c.x().nansum(axes(c, 1, "dim").as_deref(), keep(2))),
        "nanmean" => one(c.x().nanmean(axes(c, 1, "dim").as_deref(), keep(2))),
        "sum" => one(c.x().sum(axes(c, 1, "dim").as_deref(), keep(2))),
        "amax" => one(c.x().max(axes(c, 1, "dim").as_deref(), keep(2))),
        "amin" => one(c.x().min(axes(c, 1, "dim").as_deref(), keep(2))),
        "count_nonzero" => one(c.x().count_nonzero(axes(c, 1, "dim").as_deref(), false)),
        "logcumsumexp" => one(c.x().logcumsumexp(axis(1, -1))),
        "topk" => {
            let (k, axis) = (c.int(1, "k").unwrap_or(1) as usize, axis(2, -1));
            two(match c.get(3, "largest") {
                Arg::Bool(false) => c.x().bottomk(k, axis),
                _ => c.x().topk(k, axis),
            })
        }
        "searchsorted" => {
            if c.has(9, "sorter") || !is_sorted(c.x())? {
                return Ok(vec![]);
            }
            let is_right = c.bool(9, "right") || c.word(9, "side") == Some("right");
            let (sorted, values) = (c.x(), c.tensor(1, "values").expect("values"));
            one(values.searchsorted_as(sorted, is_right, index_type(c)))
        }
        "bucketize" => {
            let edges = c.tensor(1, "boundaries").expect("boundaries");
            if !is_sorted(edges)? {
                return Ok(vec![]);
            }
            one(c.x().bucketize(edges, c.bool(9, "right"))?.to_dtype(index_type(c)))
        }
        "histogram" => {
            let Some(edges) = c.tensor(1, "bins") else { return Ok(vec![]) };
            if !is_sorted(edges)? {
                return Ok(vec![]);
            }
            let counts =
                c.x().histogram_edges(edges, c.tensor(9, "weight"), c.bool(9, "density"))?;
            Ok(vec![counts, edges.clone()])
        }
        "histc" => {
            let [low, high] = ["min", "max"].map(|name| c.float(9, name).unwrap_or(0.0));
            // Of small ranges PyTorch rounds elements that lie on edges to either side.
            if low >= high || high - low < 1e-4 {
                return Ok(vec![]);
            }
            one(c.x().histogram(c.int(1, "bins").unwrap_or(100) as usize, low..high))
        }
        "adaptive_max_pool1d" | "adaptive_max_pool2d" => {
            let x = c.x();
            let (spatial, unbatched) = (if op.ends_with("1d") { 1 } else { 2 }, x.rank());
            let x = if unbatched == spatial + 1 { x.unsqueeze(0)? } else { x.clone() };
            let size = match c.get(1, "output_size") {
                Arg::List(list) => list.clone(),
                number => vec![number.clone(); spatial],
            };
            let extent = |i: usize| match size[i] {
                Arg::Int(extent) => extent as usize,
                _ => x.dims()[2 + i],
            };
            let (y, positions) = match spatial {
                1 => x.adaptive_max_pool1d_with_positions(extent(0))?,
                _ => x.adaptive_max_pool2d_with_positions([extent(0), extent(1)])?,
            };
            if unbatched == spatial + 1 {
                return Ok(vec![y.squeeze(0)?, positions.squeeze(0)?]);
            }
            Ok(vec![y, positions])
        }
        _ if op.starts_with("scatter_reduce") && c.x().dtype() == DType::Bool => Ok(vec![]),
        _ if op.starts_with("scatter_reduce") || op.starts_with("index_reduce") => {
            let (index, source) = (c.tensor(2, "index"), c.tensor(3, "src"));
            let (index, source) = (index.expect("an index"), source.expect("a source"));
            let with_self = !matches!(c.get(9, "include_self"), Arg::Bool(false));
            let mode = mode(c.word(4, "reduce").expect("a word"));
            one(match op.starts_with("index") {
                true => c.x().index_reduce(axis(1, 0), index, source, mode, with_self),
                false => c.x().scatter_reduce(axis(1, 0), index, source, mode, with_self),
            })
        }
        _ => super::linear::call(op, c),
    }
}
