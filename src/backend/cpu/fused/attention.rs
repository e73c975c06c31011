//! Attention: a block of queries at a time, whose scores are all that is held of them.
//!
//! ```text
//! for each head, for each block of ROWS queries:                      cols: the keys they may see
//!     S = Q·Kᵀ[.., ..cols]                                            forward
//!     P = e^(scale S + mask − m), zero where not seen; m = max
//!     Y = P·V / Σ P
//!
//!     P = e^(scale S + mask − m) / Σ P                                backward
//!     dP = dY·Vᵀ;  D = rowsum(dY ∘ Y);  dS = scale P ∘ (dP − D)
//!     dQ = dS·K;  dK += dSᵀ·Q;  dV += Pᵀ·dY
//! ```
//!
//! 1. A head's keys and values are copied once into pieces that products read where they lie:
//!    transposed, KEYS at a time, or VALUES rows at a time. Queries and gradients are read by their
//!    strides. Packing them anew for each block would cost a fifth of the products.
//! 2. D is Σ P ∘ dP without another pass over the scores.
//! 3. The order of all sums depends on the shapes alone: dK and dV gather blocks of queries in their
//!    order, so the backward pass is shared by heads; the forward pass by blocks too, if heads are few.
//! 4. The result of rank 4 lies in memory as `[b, t, h, e]`: joining the heads again copies nothing.
//! 5. 16-bit floats are computed in `f32`.

mod backward;
mod forward;
mod head;
mod parts;

use smallvec::smallvec;
use swath_kernels::{self as kernels, GemmError, MatMut, MatRef, Workspace};

use super::super::matmul::{Product, Stack, refused};
use super::super::parallel::Cost;
use super::super::{CpuTensor, Output, Results, cast};
use super::{check_dtype, check_shape, operand};
use crate::backend::TensorData;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::{AttentionParameters, FusedOp};
use crate::shape::Shape;

/// Queries of a block.
const ROWS: usize = 64;
/// Keys of a piece of Kᵀ or Vᵀ, and of a product with it: `[64, 64]` of `f32` stays in L1.
const KEYS: usize = 64;
/// Rows of K or V in a product with scores.
const VALUES: usize = 128;

/// Picoseconds for a multiplication and an addition, and for all else that a score costs.
const COST_PER_TERM: usize = 11;
const COST_PER_SCORE: usize = 500;

/// An element type that attention is computed in.
trait Real: Product + kernels::Attend + kernels::Plain + kernels::Factor<Sum = Self> {}
impl Real for f32 {}
impl Real for f64 {}

/// What is added to scores, or says which count.
enum Mask<'a, E> {
    Bool(Stack<'a, u8>),
    Float(Stack<'a, E>),
}

/// The operands of one call, checked: heads of q `[t, d]`, k `[s, d]`, v `[s, e]`.
struct Problem<'a, E> {
    q: Stack<'a, E>,
    k: Stack<'a, E>,
    v: Stack<'a, E>,
    mask: Option<Mask<'a, E>>,
    parameters: AttentionParameters,
    shape: Extents,
}

/// Extents of a call.
#[derive(Clone, Copy)]
struct Extents {
    /// Of a tensor of rank 4, its first axis, else the product of the leading ones.
    batches: usize,
    /// Of a tensor of rank 4, its second axis, else 1.
    heads: usize,
    t: usize,
    s: usize,
    d: usize,
    e: usize,
}

impl Extents {
    fn new(q: &Shape, k: &Shape, v: &Shape) -> Self {
        let lead = q.ndim() - 2;
        let (batches, heads) = match q.dims()[..lead] {
            [batches, heads] => (batches, heads),
            ref lead => (lead.iter().product(), 1),
        };
        let [t, d] = [q.dim(lead), q.dim(lead + 1)];
        Extents { batches, heads, t, s: k.dim(lead), d, e: v.dim(lead + 1) }
    }

    /// From one row of scores to the next: no power of two, whose multiples share their place in a
    /// cache.
    fn scores_stride(&self) -> usize {
        self.s.next_multiple_of(16) + 16
    }
}

impl<E> Problem<'_, E> {
    /// How many keys query `i` may see: the first ones.
    fn seen(&self, i: usize) -> usize {
        let Extents { t, s, .. } = self.shape;
        match self.parameters.causal {
            true => (i + 1 + s).saturating_sub(t).min(s),
            false => s,
        }
    }

    /// Of a head with products of `terms` multiplications a score and `passes` over the scores.
    fn cost(&self, terms: usize, passes: usize) -> Cost {
        let Extents { t, s, .. } = self.shape;
        let scores = t.saturating_mul(s) / if self.parameters.causal { 2 } else { 1 };
        let each = COST_PER_TERM.saturating_mul(terms).saturating_add(COST_PER_SCORE * passes);
        Cost(each).times(scores)
    }
}

/// What every call is given, of fitting shapes and dtypes.
struct Operands<'a> {
    q: &'a CpuTensor,
    k: &'a CpuTensor,
    v: &'a CpuTensor,
    mask: Option<&'a CpuTensor>,
}

impl<'a> Operands<'a> {
    /// The operands from `first` on.
    fn new(op: &'static str, operands: &[Option<&'a CpuTensor>], first: usize) -> Result<Self> {
        let of = |i| operand(op, operands, first + i);
        let (q, k, v) = (of(0)?, of(1)?, of(2)?);
        let mask = operands.get(first + 3).copied().flatten();
        let mismatch = |a: &CpuTensor, b: &CpuTensor| {
            Err(Error::ShapeMismatch { op, lhs: *a.shape(), rhs: *b.shape() })
        };
        let rank = q.shape().ndim();
        if rank < 2 || k.shape().ndim() != rank || v.shape().ndim() != rank {
            return mismatch(q, k);
        }
        let (q_dims, k_dims, v_dims) = (q.shape().dims(), k.shape().dims(), v.shape().dims());
        if q_dims[..rank - 2] != k_dims[..rank - 2] || q_dims[rank - 1] != k_dims[rank - 1] {
            return mismatch(q, k);
        }
        if k_dims[..rank - 1] != v_dims[..rank - 1] {
            return mismatch(k, v);
        }
        let scores = q.shape().with_axis(rank - 1, Some(k_dims[rank - 2]));
        if let Some(mask) = mask.filter(|mask| *mask.shape() != scores) {
            return Err(Error::ShapeMismatch { op, lhs: *mask.shape(), rhs: scores });
        }
        check_dtype(op, k, q.dtype())?;
        check_dtype(op, v, q.dtype())?;
        if let Some(mask) = mask.filter(|mask| mask.dtype() != DType::Bool) {
            check_dtype(op, mask, q.dtype())?;
        }
        if !q.dtype().is_float() {
            return Err(Error::UnsupportedDType { op, dtype: q.dtype(), shape: *q.shape() });
        }
        Ok(Operands { q, k, v, mask })
    }

    fn problem<E: Real>(&self, parameters: &AttentionParameters) -> Problem<'a, E> {
        let stack = |x: &'a CpuTensor| Stack::new(x, x.layout());
        let mask = self.mask.map(|mask| match mask.dtype() {
            DType::Bool => Mask::Bool(Stack::new(mask, mask.layout())),
            _ => Mask::Float(stack(mask)),
        });
        let Operands { q, k, v, .. } = *self;
        let shape = Extents::new(q.shape(), k.shape(), v.shape());
        let (q, k, v) = (stack(q), stack(k), stack(v));
        Problem { q, k, v, mask, parameters: *parameters, shape }
    }
}

/// An operand that is `shape`, of `dtype`.
fn fitting<'a>(
    op: &'static str,
    operands: &[Option<&'a CpuTensor>],
    i: usize,
    shape: Shape,
    dtype: DType,
) -> Result<&'a CpuTensor> {
    let x = operand(op, operands, i)?;
    check_dtype(op, x, dtype)?;
    check_shape(op, x, &shape)?;
    Ok(x)
}

/// Wide copies of 16-bit operands.
fn widened(operands: &[Option<&CpuTensor>]) -> Result<smallvec::SmallVec<[Option<CpuTensor>; 8]>> {
    let widen = |x: &CpuTensor| match x.dtype() {
        DType::F16 | DType::BF16 => cast::cast(x, DType::F32),
        _ => Ok(x.clone()),
    };
    operands.iter().map(|x| x.map(widen).transpose()).collect()
}

pub(super) fn attention(
    parameters: &AttentionParameters,
    operands: &[Option<&CpuTensor>],
) -> Result<Results<CpuTensor>> {
    let op = FusedOp::Attention(*parameters).name();
    let checked = Operands::new(op, operands, 0)?;
    match checked.q.dtype() {
        DType::F32 => forward::run::<f32>(op, parameters, &checked),
        DType::F64 => forward::run::<f64>(op, parameters, &checked),
        dtype => {
            let wide = widened(operands)?;
            let wide: smallvec::SmallVec<[Option<&CpuTensor>; 8]> =
                wide.iter().map(Option::as_ref).collect();
            let mut results = forward::run::<f32>(op, parameters, &Operands::new(op, &wide, 0)?)?;
            results[0] = narrowed(&results[0], dtype)?;
            Ok(results)
        }
    }
}

pub(super) fn attention_grad(
    parameters: &AttentionParameters,
    operands: &[Option<&CpuTensor>],
) -> Result<Results<CpuTensor>> {
    let op = FusedOp::AttentionGrad(*parameters).name();
    let checked = Operands::new(op, operands, 1)?;
    let dtype = checked.q.dtype();
    let rank = checked.q.shape().ndim();
    let y_shape = checked.q.shape().with_axis(rank - 1, Some(checked.v.shape().dim(rank - 1)));
    let of_rows = checked.q.shape().with_axis(rank - 1, None);
    let statistics = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let g = fitting(op, operands, 0, y_shape, dtype)?;
    let saved = |i, shape| fitting(op, operands, i, shape, statistics);
    let (y, largest, inverse) = (saved(5, y_shape)?, saved(6, of_rows)?, saved(7, of_rows)?);
    match dtype {
        DType::F32 => backward::run::<f32>(op, parameters, &checked, [g, y, largest, inverse]),
        DType::F64 => backward::run::<f64>(op, parameters, &checked, [g, y, largest, inverse]),
        dtype => {
            let wide = widened(operands)?;
            let wide: smallvec::SmallVec<[Option<&CpuTensor>; 8]> =
                wide.iter().map(Option::as_ref).collect();
            let g = operand(op, &wide, 0)?;
            let checked = Operands::new(op, &wide, 1)?;
            let results = backward::run::<f32>(op, parameters, &checked, [g, y, largest, inverse])?;
            results.iter().map(|x| narrowed(x, dtype)).collect()
        }
    }
}

/// A result of all heads in the making; of rank 4, it lies in memory as `[b, rows, h, columns]`.
struct HeadsOutput {
    out: Output,
    interleaved: bool,
}

impl HeadsOutput {
    /// Of shape `[…, rows, columns]`, with the leading axes of `like`.
    fn new<E: Real>(
        op: &'static str,
        like: &CpuTensor,
        [rows, columns]: [usize; 2],
    ) -> Result<Self> {
        let lead = &like.shape().dims()[..like.shape().ndim() - 2];
        let interleaved = lead.len() == 2;
        let shape: Shape = match *lead {
            [batches, heads] => [batches, rows, heads, columns].into(),
            _ => lead.iter().copied().chain([rows, columns]).collect(),
        };
        Ok(HeadsOutput { out: Output::new(op, &shape, E::DTYPE)?, interleaved })
    }

    /// Its memory as heads of `[rows, columns]`.
    fn heads<E: Real>(
        &mut self,
        op: &'static str,
        shape: &Extents,
        [rows, columns]: [usize; 2],
    ) -> Result<parts::Heads<'_, E>> {
        let all = [shape.batches * rows, shape.heads * columns];
        let matrix = MatMut::row_major(self.out.elements::<E>(), all).map_err(refused(op))?;
        Ok(parts::Heads { matrix, rows, columns })
    }

    fn finish(self) -> CpuTensor {
        let out = self.out.finish();
        if self.interleaved { interleaved(&out) } else { out }
    }
}

/// `[b, rows, h, columns]` seen as `[b, h, rows, columns]`, or the other way.
fn interleaved(x: &CpuTensor) -> CpuTensor {
    let layout = x.layout().permute("attention", &[0, 2, 1, 3]).expect("four axes, by the callers");
    x.with_layout(layout)
}

/// As 16-bit floats in the order in memory.
fn narrowed(x: &CpuTensor, dtype: DType) -> Result<CpuTensor> {
    match x.shape().ndim() {
        4 => Ok(interleaved(&cast::cast(&interleaved(x), dtype)?)),
        _ => cast::cast(x, dtype),
    }
}
