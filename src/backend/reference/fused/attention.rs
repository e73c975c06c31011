//! Attention: for each query its row of weights, in `f64`.

use smallvec::smallvec;

use super::super::{ReferenceTensor, build, check_dtype, exact};
use super::operand;
use crate::backend::{Results, TensorData};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::ops::{AttentionParameters, FusedOp};
use crate::rng::{Rng, RngState};
use crate::shape::{AxisSet, Shape};

struct Operands<'a> {
    parameters: AttentionParameters,
    q: &'a ReferenceTensor,
    k: &'a ReferenceTensor,
    v: &'a ReferenceTensor,
    mask: Option<&'a ReferenceTensor>,
}

/// A query's view of the keys.
struct Row {
    /// Softmax of the scores; zeros where nothing is seen.
    weights: Vec<f64>,
    /// What dropout multiplies each weight by.
    factors: Vec<f64>,
    /// The largest score and the reciprocal of `Σ e^(score − it)`.
    statistics: [f64; 2],
}

/// `index` with other last two entries.
fn at(x: &ReferenceTensor, index: &[usize], lead: usize, last: [usize; 2]) -> f64 {
    let index: AxisSet = index[..lead].iter().copied().chain(last).collect();
    x.at(&index).to_f64()
}

impl<'a> Operands<'a> {
    fn new(
        op: &'static str,
        parameters: &AttentionParameters,
        operands: &[Option<&'a ReferenceTensor>],
        first: usize,
    ) -> Result<Self> {
        let of = |i| operand(op, operands, first + i);
        let (q, k, v) = (of(0)?, of(1)?, of(2)?);
        let mask = operands.get(first + 3).copied().flatten();
        let rank = q.shape().ndim();
        let (qs, ks, vs) = (q.shape().dims(), k.shape().dims(), v.shape().dims());
        let ranks_fit = rank >= 2 && ks.len() == rank && vs.len() == rank;
        if !ranks_fit || qs[..rank - 2] != ks[..rank - 2] || qs[rank - 1] != ks[rank - 1] {
            return Err(Error::ShapeMismatch { op, lhs: *q.shape(), rhs: *k.shape() });
        }
        if ks[..rank - 1] != vs[..rank - 1] {
            return Err(Error::ShapeMismatch { op, lhs: *k.shape(), rhs: *v.shape() });
        }
        let scores = q.shape().with_axis(rank - 1, Some(ks[rank - 2]));
        check_dtype(op, k, q.dtype)?;
        check_dtype(op, v, q.dtype)?;
        if let Some(mask) = mask {
            if *mask.shape() != scores {
                return Err(Error::ShapeMismatch { op, lhs: *mask.shape(), rhs: scores });
            }
            if mask.dtype != DType::Bool {
                check_dtype(op, mask, q.dtype)?;
            }
        }
        if !q.dtype.is_float() {
            return Err(Error::UnsupportedDType { op, dtype: q.dtype, shape: *q.shape() });
        }
        Ok(Operands { parameters: *parameters, q, k, v, mask })
    }

    fn lead(&self) -> usize {
        self.q.shape().ndim() - 2
    }

    /// Extents t, s, d and e.
    fn extents(&self) -> [usize; 4] {
        let lead = self.lead();
        let (q, k, v) = (self.q.shape(), self.k.shape(), self.v.shape());
        [q.dim(lead), k.dim(lead), q.dim(lead + 1), v.dim(lead + 1)]
    }

    fn statistics(&self) -> DType {
        if self.q.dtype == DType::F64 { DType::F64 } else { DType::F32 }
    }

    fn score(&self, index: &[usize], i: usize, j: usize) -> f64 {
        let (lead, [t, s, d, _]) = (self.lead(), self.extents());
        if self.parameters.causal && j + t > i + s {
            return f64::NEG_INFINITY;
        }
        let (q, k) = (self.q, self.k);
        let pairs = (0..d).map(|c| (at(q, index, lead, [i, c]), at(k, index, lead, [j, c])));
        let score = exact::dot(pairs) * self.parameters.scale;
        match self.mask {
            None => score,
            Some(mask) if mask.dtype != DType::Bool => score + at(mask, index, lead, [i, j]),
            Some(mask) if at(mask, index, lead, [i, j]) != 0.0 => score,
            Some(_) => f64::NEG_INFINITY,
        }
    }

    /// Query `i` of the head that the leading entries of `index` name.
    fn row(&self, index: &[usize], i: usize) -> Row {
        let [t, s, ..] = self.extents();
        let scores: Vec<f64> = (0..s).map(|j| self.score(index, i, j)).collect();
        let factors = vec![1.0; s];
        let top = scores.iter().copied().fold(f64::NEG_INFINITY, |a, b| {
            if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
        });
        if top == f64::NEG_INFINITY {
            return Row { weights: vec![0.0; s], factors, statistics: [top, 1.0] };
        }
        let e: Vec<f64> = scores.iter().map(|score| (score - top).exp()).collect();
        let total = exact::sum(e.iter().copied());
        let mut row = Row {
            weights: e.into_iter().map(|e| e / total).collect(),
            factors,
            statistics: [top, 1.0 / total],
        };
        if let Some(dropout) = self.parameters.dropout {
            let dims = self.q.shape().dims();
            let lead = self.lead();
            let head = index[..lead].iter().zip(dims).fold(0, |head, (&i, &dim)| head * dim + i);
            let position = ((head * t + i) * s) as u64;
            let (seed, stream) = (dropout.seed, dropout.stream);
            let mut rng = Rng::from_state(RngState { seed, stream, position });
            for factor in &mut row.factors {
                let dropped = f64::from(rng.next_u32()) < dropout.p * 2f64.powi(32);
                *factor = if dropped { 0.0 } else { 1.0 / (1.0 - dropout.p) };
            }
        }
        row
    }

    /// Every query's row, in row-major order of the leading axes and the query.
    fn rows(&self) -> Vec<Row> {
        let [t, ..] = self.extents();
        let heads: Shape = self.q.shape().dims()[..self.lead()].into();
        let indices = (0..heads.numel()).map(|head| super::super::unravel(head, &heads));
        indices
            .flat_map(|index| (0..t).map(move |i| (index.clone(), i)))
            .map(|(index, i)| self.row(&index, i))
            .collect()
    }

    /// Number of a query's row.
    fn number(&self, index: &[usize], i: usize) -> usize {
        let (lead, [t, ..]) = (self.lead(), self.extents());
        let dims = self.q.shape().dims();
        index[..lead].iter().zip(dims).fold(0, |head, (&i, &dim)| head * dim + i) * t + i
    }
}

pub(super) fn attention(
    parameters: &AttentionParameters,
    operands: &[Option<&ReferenceTensor>],
) -> Result<Results<ReferenceTensor>> {
    let op = FusedOp::Attention(*parameters).name();
    let all = Operands::new(op, parameters, operands, 0)?;
    let (lead, [_, s, _, e], rows) = (all.lead(), all.extents(), all.rows());
    let shape = all.q.shape().with_axis(lead + 1, Some(e));
    let y = |dtype| {
        build(op, shape, dtype, |index| {
            let row = &rows[all.number(index, index[lead])];
            let weight = |j: usize| row.weights[j] * row.factors[j];
            let values = |j| at(all.v, index, lead, [j, index[lead + 1]]);
            Ok(Scalar::Float(exact::dot((0..s).map(|j| (weight(j), values(j))))))
        })
    };
    let statistic = |i: usize| {
        build(op, all.q.shape().with_axis(lead + 1, None), all.statistics(), |index| {
            Ok(Scalar::Float(rows[all.number(index, index[lead])].statistics[i]))
        })
    };
    Ok(smallvec![y(all.q.dtype)?, statistic(0)?, statistic(1)?, y(all.statistics())?])
}

/// By the chain rule through each row; what the forward pass saved is not looked at.
pub(super) fn attention_grad(
    parameters: &AttentionParameters,
    operands: &[Option<&ReferenceTensor>],
) -> Result<Results<ReferenceTensor>> {
    let op = FusedOp::AttentionGrad(*parameters).name();
    let all = Operands::new(op, parameters, operands, 1)?;
    let (lead, [t, s, _, e], rows) = (all.lead(), all.extents(), all.rows());
    let (g, y) = (operand(op, operands, 0)?, operand(op, operands, 5)?);
    let (largest, inverse) = (operand(op, operands, 6)?, operand(op, operands, 7)?);
    let y_shape = all.q.shape().with_axis(lead + 1, Some(e));
    let (of_rows, statistics) = (all.q.shape().with_axis(lead + 1, None), all.statistics());
    for (x, shape, dtype) in [
        (g, y_shape, all.q.dtype),
        (y, y_shape, statistics),
        (largest, of_rows, statistics),
        (inverse, of_rows, statistics),
    ] {
        check_dtype(op, x, dtype)?;
        if *x.shape() != shape {
            return Err(Error::ShapeMismatch { op, lhs: *x.shape(), rhs: shape });
        }
    }
    // The gradient of each row of scores before scaling.
    let heads: Shape = all.q.shape().dims()[..lead].into();
    let slopes: Vec<Vec<f64>> = (0..rows.len())
        .map(|number| {
            let (head, i, row) = (number / t, number % t, &rows[number]);
            let index = super::super::unravel(head, &heads);
            let of_weight = |j: usize| {
                let pairs =
                    (0..e).map(|c| (at(g, &index, lead, [i, c]), at(all.v, &index, lead, [j, c])));
                exact::dot(pairs) * row.factors[j]
            };
            let of_weights: Vec<f64> = (0..s).map(of_weight).collect();
            let mean = exact::dot(row.weights.iter().copied().zip(of_weights.iter().copied()));
            let each = row.weights.iter().zip(&of_weights);
            each.map(|(&p, &slope)| if p == 0.0 { 0.0 } else { p * (slope - mean) }).collect()
        })
        .collect();
    let scale = parameters.scale;
    let dq = build(op, *all.q.shape(), all.q.dtype, |index| {
        let (i, c) = (index[lead], index[lead + 1]);
        let slopes = &slopes[all.number(index, i)];
        let pairs = (0..s).map(|j| (slopes[j], at(all.k, index, lead, [j, c])));
        Ok(Scalar::Float(exact::dot(pairs) * scale))
    })?;
    let dk = build(op, *all.k.shape(), all.q.dtype, |index| {
        let (j, c) = (index[lead], index[lead + 1]);
        let pairs =
            (0..t).map(|i| (slopes[all.number(index, i)][j], at(all.q, index, lead, [i, c])));
        Ok(Scalar::Float(exact::dot(pairs) * scale))
    })?;
    let dv = build(op, *all.v.shape(), all.q.dtype, |index| {
        let (j, c) = (index[lead], index[lead + 1]);
        let pairs = (0..t).map(|i| {
            let row = &rows[all.number(index, i)];
            (row.weights[j] * row.factors[j], at(g, index, lead, [i, c]))
        });
        Ok(Scalar::Float(exact::dot(pairs)))
    })?;
    Ok(smallvec![dq, dk, dv])
}
