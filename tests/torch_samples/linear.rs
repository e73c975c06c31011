//! Products, distances, and forms.

use swath::cpu::prelude::*;

use swath::{ConvSlices, CrossEntropy, Reduction};

use super::{Results, one};
use crate::sample::{Arg, Call};

pub fn call(op: &str, c: &Call) -> Results {
    let axis = |at: usize, or: i64| c.int(at, "dim").unwrap_or(or) as isize;
    let usize_at = |at: usize| c.int(at, "").unwrap_or(0) as usize;
    match op {
        "cosine_similarity" | "pairwise_distance" | "cdist" | "linalg.cross" | "cross" | "kron" => {
            let [a, b] = match op {
                // Differences wrap around.
                "pairwise_distance" if c.x().dtype() == DType::U8 => return Ok(vec![]),
                "cosine_similarity" | "pairwise_distance" | "cdist" => c.float_pair()?,
                _ => c.pair()?,
            };
            let number = |at: usize, name: &str, or: f64| c.float(at, name).unwrap_or(or);
            one(match op {
                "cosine_similarity" => a.cosine_similarity(&b, axis(2, 1), number(3, "eps", 1e-8)),
                "pairwise_distance" => a.pairwise_distance(
                    &b,
                    number(2, "p", 2.0),
                    number(3, "eps", 1e-6),
                    c.bool(4, "keepdim"),
                ),
                "cdist" => a.cdist(&b, number(2, "p", 2.0)),
                "kron" if a.dtype() == DType::Bool => return Ok(vec![]),
                "kron" => a.kron(&b),
                // Without an axis it is the first one of three elements.
                "cross" if !c.has(2, "dim") => {
                    let axis = a.dims().iter().position(|&extent| extent == 3).unwrap_or(0);
                    a.cross(&b, axis)
                }
                _ => a.cross(&b, axis(2, -1)),
            })
        }
        "cov" => {
            let ddof = c.int(9, "correction").unwrap_or(1) as usize;
            let x = c.float_x()?;
            let weights = |name| c.tensor(9, name).map(|w| w.to_dtype(x.dtype())).transpose();
            let frequencies =
                c.tensor(9, "fweights").map(|w| w.to_dtype(DType::I64)).transpose()?;
            let reliabilities = weights("aweights")?;
            one(x.cov(ddof, frequencies.as_ref(), reliabilities.as_ref()))
        }
        "corrcoef" => one(c.float_x()?.corrcoef()),
        "trapezoid" | "cumulative_trapezoid" => {
            let (y, axis) = (c.float_x()?, axis(9, -1));
            if c.x().dtype() == DType::U8 {
                // Differences of points wrap around.
                return Ok(vec![]);
            }
            let points = c.tensor(1, "x").map(|x| x.to_dtype(y.dtype())).transpose()?;
            let distance = c.float(9, "dx").unwrap_or(1.0);
            one(match (op, points) {
                ("trapezoid", Some(points)) => y.trapezoid(&points, axis),
                ("trapezoid", None) => y.trapezoid(distance, axis),
                (_, Some(points)) => y.cumulative_trapezoid(&points, axis),
                _ => y.cumulative_trapezoid(distance, axis),
            })
        }
        "linalg.matrix_power" => match c.int(1, "n") {
            Some(n) if n >= 0 => one(c.x().matrix_power(n)),
            _ => Ok(vec![]),
        },
        "diag_embed" => {
            let at = |name: &str, or: i64| c.int(9, name).unwrap_or(or) as isize;
            one(c.x().diag_embed(at("offset", 0), at("dim1", -2), at("dim2", -1)))
        }
        "tril_indices" => {
            one(Tensor::tril_indices(usize_at(0), usize_at(1), c.int(2, "").unwrap_or(0) as isize))
        }
        "triu_indices" => {
            one(Tensor::triu_indices(usize_at(0), usize_at(1), c.int(2, "").unwrap_or(0) as isize))
        }
        "block_diag" => one(Tensor::block_diag(&c.rest(0))),
        "cartesian_prod" => one(Tensor::cartesian_prod(&c.rest(0))),
        "logspace" => {
            let [start, end] = [0, 1].map(|at| c.float(at, "").unwrap_or(0.0));
            let base = c.float(3, "base").unwrap_or(10.0);
            let dtype = match c.get(9, "dtype") {
                Arg::DType(dtype) => *dtype,
                _ => DType::F32,
            };
            match Tensor::logspace_as(start, end, usize_at(2), base, dtype) {
                // Numbers that are no integers are an error, where PyTorch cuts them off.
                Err(_) if !dtype.is_float() => Ok(vec![]),
                numbers => one(numbers),
            }
        }
        "linalg.vander" => {
            let columns =
                c.int(1, "N").map_or(c.x().dims().last().copied().unwrap_or(1), |n| n as usize);
            one(c.x().vander(columns, true))
        }
        "full" => {
            let dtype = match c.get(9, "dtype") {
                Arg::DType(dtype) => *dtype,
                _ => return Ok(vec![]),
            };
            let shape: Vec<usize> =
                c.ints(0, "size").unwrap_or_default().iter().map(|&n| n as usize).collect();
            one(match c.get(1, "fill_value") {
                Arg::Bool(value) => Tensor::full_as(shape, i64::from(*value), dtype),
                Arg::Int(value) if dtype == DType::Bool => {
                    Tensor::full_as(shape, i64::from(*value != 0), dtype)
                }
                Arg::Int(value) => Tensor::full_as(shape, *value, dtype),
                _ => Tensor::full_as(shape, c.float(1, "fill_value").unwrap_or(0.0), dtype),
            })
        }
        "eye" => {
            let dtype = match c.get(9, "dtype") {
                Arg::DType(dtype) => *dtype,
                _ => DType::F32,
            };
            let rows = usize_at(0);
            one(Tensor::eye((rows, c.int(1, "m").map_or(rows, |m| m as usize)), dtype))
        }
        "one_hot" => match c.int(1, "num_classes") {
            Some(classes) if classes >= 0 => one(c.x().one_hot(classes as usize)),
            _ => {
                let classes = c.x().max_all()?.item::<i64>()? + 1;
                one(c.x().one_hot(classes as usize))
            }
        },
        "squeeze" | "squeeze-multiple" => {
            let x = c.x();
            let axes = match (op, c.ints(1, "dim")) {
                ("squeeze", None) => (0..x.rank() as i64).collect(),
                (_, axes) => axes.unwrap_or_default(),
            };
            let extent = |axis: i64| x.dims()[axis.rem_euclid(x.rank() as i64) as usize];
            let axes: Vec<isize> = match x.rank() {
                0 => vec![],
                _ => axes
                    .into_iter()
                    .filter(|&axis| extent(axis) == 1)
                    .map(|axis| axis as isize)
                    .collect(),
            };
            one(x.squeeze(&axes[..]))
        }
        "unsqueeze" => one(c.x().unsqueeze(axis(1, 0))),
        "native_layer_norm" | "layer_norm" => {
            let x = c.x();
            let shape = c.ints(1, "normalized_shape").unwrap_or_default();
            if shape.len() != 1 {
                return Ok(vec![]);
            }
            let (weight, bias) = (c.tensor(2, "weight"), c.tensor(3, "bias"));
            let eps = c.float(4, "eps").unwrap_or(1e-5);
            if op == "layer_norm" {
                return one(x.layer_norm(weight, bias, eps));
            }
            let (y, mean, deviation) = x.layer_norm_with_statistics(weight, bias, eps)?;
            Ok(vec![y, mean, deviation])
        }
        "embedding" => {
            let (table, ids) = (c.x(), c.tensor(1, "indices").expect("ids"));
            if c.has(9, "max_norm") || c.bool(9, "scale_grad_by_freq") {
                return Ok(vec![]);
            }
            one(match c.int(9, "padding_idx") {
                Some(padding) => table.embedding_with_padding(ids, padding),
                None => table.embedding(ids),
            })
        }
        "index_put" => {
            let Arg::List(indices) = c.get(1, "indices") else { return Ok(vec![]) };
            let indices: Vec<Option<&Tensor>> = indices
                .iter()
                .map(|index| match index {
                    Arg::Tensor(index) => Some(index),
                    _ => None,
                })
                .collect();
            if c.bool(3, "accumulate") {
                return Ok(vec![]);
            }
            one(c.x().index_put(&indices, c.tensor(2, "values").expect("values")))
        }
        "conv1d" | "conv2d" | "conv3d" => conv(c),
        "cross_entropy" => cross_entropy(c),
        _ => super::images::call(op, c),
    }
}

fn conv(c: &Call) -> Results {
    let (x, weight) = (c.x(), c.tensor(1, "weight").expect("filters"));
    let axes = weight.rank() - 2;
    if !x.dtype().is_float() {
        return Ok(vec![]);
    }
    let per_axis = |at: usize, name: &str, or: usize| match c.ints(at, name) {
        Some(list) if list.len() == axes => list.iter().map(|&n| n as usize).collect(),
        Some(list) => vec![list[0] as usize; axes],
        None => vec![or; axes],
    };
    let dilation = per_axis(5, "dilation", 1);
    let stride = per_axis(3, "stride", 1);
    let mut x = x.clone();
    let padding = match c.word(4, "padding") {
        Some("valid") => vec![0; axes],
        Some(_) => {
            // The same size: one more after than before where the number is odd.
            let total = |i: usize| dilation[i] * (weight.dims()[2 + i] - 1);
            let pads: Vec<(isize, isize)> = (0..x.rank())
                .map(|axis| match axis.checked_sub(x.rank() - axes) {
                    Some(i) => ((total(i) / 2) as isize, (total(i) - total(i) / 2) as isize),
                    None => (0, 0),
                })
                .collect();
            x = x.pad(&pads, PadMode::Constant(0.0))?;
            vec![0; axes]
        }
        None => per_axis(4, "padding", 0),
    };
    let groups = c.int(6, "groups").unwrap_or(1) as usize;
    let options = ConvSlices {
        stride: &stride,
        padding: &padding,
        dilation: &dilation,
        groups: Some(groups),
        ..ConvSlices::default()
    };
    let batched = x.rank() == axes + 2;
    let x = if batched { x } else { x.unsqueeze(0)? };
    let y = x.conv(weight, c.tensor(2, "bias"), options)?;
    one(if batched { Ok(y) } else { y.squeeze(0) })
}

fn cross_entropy(c: &Call) -> Results {
    let (x, target) = (c.x(), c.tensor(1, "target").expect("targets"));
    let reduction = match c.word(9, "reduction") {
        Some("sum") => Reduction::Sum,
        Some("none") => Reduction::None,
        _ => Reduction::Mean,
    };
    let options = CrossEntropy {
        weight: c.tensor(9, "weight"),
        reduction,
        ignore_index: (!target.dtype().is_float())
            .then(|| c.int(9, "ignore_index").unwrap_or(-100)),
        // Of probabilities the classes are in front, where there is more than one axis.
        axis: (target.dtype().is_float() && x.rank() > 1).then_some(1isize.into()),
        label_smoothing: c.float(9, "label_smoothing").unwrap_or(0.0),
    };
    one(x.cross_entropy(target, options))
}
