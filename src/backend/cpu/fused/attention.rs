//! Attention in blocks of queries, so that only the scores of one block are in memory.
//!
//! ```text
//! for each head, for each block of ROWS queries:                      cols: the keys visible to the block
//!     S = Q·Kᵀ[.., ..cols]                                            forward
//!     P = e^(scale S + mask − m), zero where not visible; m = max
//!     Y = P·V / Σ P
//!
//!     P = e^(scale S + mask − m) / Σ P                                backward
//!     dP = dY·Vᵀ;  D = rowsum(dY ∘ Y);  dS = scale P ∘ (dP − D)
//!     dQ = dS·K;  dK += dSᵀ·Q;  dV += Pᵀ·dY
//! ```
//!
//! 1. The keys and values of a head are copied once into panels that products read without packing:
//!    transposed, KEYS at a time, or VALUES rows at a time. Queries and gradients are read by their
//!    strides. Packing keys and values for each block would take a fifth of the time of the products.
//! 2. D equals Σ P ∘ dP, but needs no further pass over the scores.
//! 3. The order of all sums depends on the shapes alone. dK and dV accumulate over blocks of queries in
//!    order, so threads share the backward pass by heads; the forward pass also by blocks, if heads are few.
//! 4. A result of rank 4 is stored as `[b, t, h, e]`, so that joining the heads needs no copy.
//! 5. 16-bit floats are computed in `f32`.

mod backward;
mod forward;
mod head;

use smallvec::smallvec;
use swath_kernels::{self as kernels, GemmError, MatMut, MatRef, Workspace};

use super::super::matmul::{COST_PER_TERM, Stack, refused, share};
use super::super::tensor::{CpuTensor, Output};
use super::super::working::Wide;
use super::super::written::Written;
use super::super::{cast, parts};
use crate::backend::{Results, TensorData};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::AttentionParameters;
use crate::runtime::parallel::Cost;
use crate::shape::Shape;

/// Queries per block.
const ROWS: usize = 64;
/// Keys per panel of Kᵀ or Vᵀ, and per product with it: `[64, 64]` of `f32` fits in L1.
const KEYS: usize = 64;
/// Rows of K or V per product with scores.
const VALUES: usize = 128;

/// Picoseconds per score, besides the products.
const COST_PER_SCORE: usize = 500;

/// An element type that attention is computed in.
trait Real: Wide + kernels::Plain + kernels::Factor<Sum = Self> {}
impl Real for f32 {}
impl Real for f64 {}

/// A mask: values added to the scores, or booleans that select visible keys.
enum Mask<'a, E> {
    Bool(Stack<'a, u8>),
    Float(Stack<'a, E>),
}

/// The operands of one call as matrices: heads of q `[t, d]`, k `[s, d]`, v `[s, e]`.
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
    /// The first axis of a tensor of rank 4, else the product of the leading axes.
    batches: usize,
    /// The second axis of a tensor of rank 4, else 1.
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

    /// Distance between rows of scores: never a power of two, whose multiples fall into one cache set.
    fn scores_stride(&self) -> usize {
        self.s.next_multiple_of(16) + 16
    }
}

impl<E> Problem<'_, E> {
    /// Number of leading keys visible to query `i`.
    fn visible(&self, i: usize) -> usize {
        let Extents { t, s, .. } = self.shape;
        match self.parameters.causal {
            true => (i + 1 + s).saturating_sub(t).min(s),
            false => s,
        }
    }

    /// Cost of a head with `terms` multiplications per score and `passes` passes over the scores.
    fn cost(&self, terms: usize, passes: usize) -> Cost {
        let Extents { t, s, .. } = self.shape;
        let scores = t.saturating_mul(s) / if self.parameters.causal { 2 } else { 1 };
        let each = COST_PER_TERM.saturating_mul(terms).saturating_add(COST_PER_SCORE * passes);
        Cost(each).times(scores)
    }
}

/// Operands that the forward and the backward pass share.
#[derive(Clone, Copy)]
pub(super) struct Operands<'a> {
    pub q: &'a CpuTensor,
    pub k: &'a CpuTensor,
    pub v: &'a CpuTensor,
    pub mask: Option<&'a CpuTensor>,
    pub parameters: AttentionParameters,
}

impl<'a> Operands<'a> {
    fn problem<E: Real>(&self) -> Problem<'a, E> {
        let stack = |x: &'a CpuTensor| Stack::new(x, x.layout());
        let Operands { q, k, v, mask, parameters } = *self;
        let mask = mask.map(|mask| match mask.dtype() {
            DType::Bool => Mask::Bool(Stack::new(mask, mask.layout())),
            _ => Mask::Float(stack(mask)),
        });
        let shape = Extents::new(q.shape(), k.shape(), v.shape());
        Problem { q: stack(q), k: stack(k), v: stack(v), mask, parameters, shape }
    }

    /// Calls `f` with the operands widened to `f32`.
    fn in_f32(
        &self,
        f: impl FnOnce(Operands<'_>) -> Result<Results<CpuTensor>>,
    ) -> Result<Results<CpuTensor>> {
        let [q, k, v] = [self.q, self.k, self.v].map(widened);
        let mask = self.mask.map(widened).transpose()?;
        f(Operands { q: &q?, k: &k?, v: &v?, mask: mask.as_ref(), parameters: self.parameters })
    }

    fn unsupported<R>(&self, op: &'static str) -> Result<R> {
        Err(Error::UnsupportedDType { op, dtype: self.q.dtype(), shape: *self.q.shape() })
    }
}

/// Converts 16-bit floats to `f32`; returns others unchanged.
fn widened(x: &CpuTensor) -> Result<CpuTensor> {
    cast::cast(x, x.dtype().at_least_f32())
}

pub(super) fn attention(op: &'static str, operands: Operands<'_>) -> Result<Results<CpuTensor>> {
    match operands.q.dtype() {
        DType::F32 => forward::run::<f32>(op, &operands),
        DType::F64 => forward::run::<f64>(op, &operands),
        dtype if dtype.is_float() => {
            let mut results = operands.in_f32(|operands| forward::run::<f32>(op, &operands))?;
            results[0] = narrowed(&results[0], dtype)?;
            Ok(results)
        }
        _ => operands.unsupported(op),
    }
}

pub(super) fn attention_grad(
    op: &'static str,
    operands: Operands<'_>,
    [g, y]: [&CpuTensor; 2],
    statistics: [&CpuTensor; 2],
) -> Result<Results<CpuTensor>> {
    match operands.q.dtype() {
        DType::F32 => backward::run::<f32>(op, &operands, [g, y], statistics),
        DType::F64 => backward::run::<f64>(op, &operands, [g, y], statistics),
        dtype if dtype.is_float() => {
            let g = widened(g)?;
            let results = operands
                .in_f32(|operands| backward::run::<f32>(op, &operands, [&g, y], statistics))?;
            results.iter().map(|x| narrowed(x, dtype)).collect()
        }
        _ => operands.unsupported(op),
    }
}

/// Output of all heads. One of rank 4 is stored as `[b, rows, h, columns]`.
struct HeadsOutput {
    out: Output,
    interleaved: bool,
}

impl HeadsOutput {
    /// Allocates a result of shape `[…, rows, columns]`, with the leading axes of `like`.
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

    /// The output's memory as heads of `[rows, columns]`.
    fn heads<E: Real>(
        &mut self,
        op: &'static str,
        shape: &Extents,
        [rows, columns]: [usize; 2],
    ) -> Result<(parts::Heads<'_, E>, &Written)> {
        let all = [shape.batches * rows, shape.heads * columns];
        let (y, written) = self.out.parts::<E>(op);
        let matrix = MatMut::row_major(y, all).map_err(refused(op))?;
        Ok((parts::Heads { matrix, rows, columns }, written))
    }

    fn finish(self) -> CpuTensor {
        let out = self.out.finish();
        if self.interleaved { interleaved(&out) } else { out }
    }
}

/// View of `[b, rows, h, columns]` as `[b, h, rows, columns]`, or the inverse.
fn interleaved(x: &CpuTensor) -> CpuTensor {
    let layout = x.layout().permute("attention", &[0, 2, 1, 3]).expect("four axes, by the callers");
    x.with_layout(layout)
}

/// Rounds to 16-bit floats and keeps the order in memory.
fn narrowed(x: &CpuTensor, dtype: DType) -> Result<CpuTensor> {
    match x.shape().ndim() {
        4 => Ok(interleaved(&cast::cast(&interleaved(x), dtype)?)),
        _ => cast::cast(x, dtype),
    }
}
