//! Products of 16-bit floats that reading one factor bounds: that factor is widened block by block, where
//! the product then finds it in the cache.
//!
//! ```text
//! B stored transposed       columns, MOST_DEPTH of k   [▒▒▒▒▒▒▒▒▒▒]   f32: products of KC values of k are
//! B's rows contiguous       KC rows of columns         [▒▒▒]               added one by one, as the definition
//!                                                      [▒▒▒]               adds blocks of k
//! ```
//!
//! With more rows of A the widened factor is used so often that widening it as a whole costs nothing.

use half::{bf16, f16};
use swath_kernels::{Gemm, MatMut, MatRef, gemm, gemm::KC};

use super::super::cast::{Half, cast};
use super::super::copy;
use super::super::memory::Buffer;
use super::part::{Pieces, share};
use super::{
    After, Both, COST_PER_TERM, Finish, Matrix, Output, Places, Stack, Wide, folded, refused,
};
use super::{Cost, CpuTensor, Path, Product, parallel};
use crate::backend::TensorData;
use crate::blas::trace::{self, Traced};
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::Layout;
use crate::shape::Shape;

/// Rows of A up to which B is widened in blocks.
const FEW_ROWS: usize = 48;

/// Elements of B below which it is widened as a whole.
const LEAST_LEN: usize = 1 << 15;

/// Elements of a widened block: 256 KiB, half of a second-level cache.
const BLOCK_LEN: usize = 1 << 16;

/// Steps of k in a block of a B stored transposed: long runs, and blocks of at most 256 KiB.
const MOST_DEPTH: usize = 16 * KC;

/// Columns of a block are multiples of this: whole vectors.
const COL_UNIT: usize = 16;

/// Picoseconds for widening an element, mostly for reading it.
const COST_PER_WIDENED: usize = 60;

/// The product, in `f32`, and what follows it; nothing if it is not such a one. `bias` is `f32`.
pub(super) fn product(
    op: &'static str,
    a: &CpuTensor,
    b: &CpuTensor,
    after: &After<'_>,
) -> Result<Option<Both>> {
    match a.dtype() {
        DType::F16 => typed::<f16>(op, a, b, after),
        _ => typed::<bf16>(op, a, b, after),
    }
}

fn typed<H: Half>(
    op: &'static str,
    a: &CpuTensor,
    b: &CpuTensor,
    after: &After<'_>,
) -> Result<Option<Both>> {
    let (dims, dims_b) = (a.shape().dims(), b.shape().dims());
    let rank = dims.len();
    if rank < 2 || rank != dims_b.len() || dims[rank - 1] != dims_b[rank - 2] {
        return Ok(None);
    }
    let (lead, k, n) = (&dims[..rank - 2], dims[rank - 1], dims_b[rank - 1]);
    if lead != &dims_b[..rank - 2] || k.saturating_mul(n) == 0 {
        return Ok(None);
    }
    let batch: usize = lead.iter().product();
    let m = batch * dims[rank - 2];
    let nothing_follows = after.bias.is_none() && after.activation.is_none();
    let is_small = |len: usize| len < LEAST_LEN;
    let turned = m > FEW_ROWS && n <= FEW_ROWS && nothing_follows;
    if m == 0 || (!turned && (m > FEW_ROWS || is_small(k * n))) || (turned && is_small(m * k)) {
        return Ok(None);
    }
    let Some((rows, columns)) = folded(op, a.layout(), b.layout(), batch)? else { return Ok(None) };
    // The factor that is widened as a whole, `[few, k]`, and the other one, `[k, many]`.
    let (few, many) = match turned {
        false => (a.with_layout(rows), Stack::<H>::new(b, &columns).matrix(0)),
        true => {
            let swap = |layout: Layout| layout.permute(op, &[1, 0]);
            (b.with_layout(swap(columns)?), Stack::<H>::new(a, &swap(rows)?).matrix(0))
        }
    };
    if !many.strides.contains(&1) {
        return Ok(None);
    }
    let few = copy::contiguous(op, &cast(&few, DType::F32)?)?;
    let shape = few.shape().with_axis(1, Some(many.shape[1]));
    let mut out = Output::new(op, &shape, DType::F32)?;
    let mut sums = after.keep_sums.then(|| Output::new(op, &shape, DType::F32)).transpose()?;
    let bias = after.bias.map(|bias| copy::contiguous(op, bias)).transpose()?;
    let finish = Finish {
        op,
        bias: bias.as_ref().map(|bias| bias.run::<f32>()),
        function: after.activation.map(|activation| f32::unary(activation.op()).in_place),
        add: false,
    };
    let places = Places {
        c: out.elements::<f32>(),
        sums: sums.as_mut().map(Output::elements::<f32>).unwrap_or_default(),
    };
    blocks(few.run::<f32>(), &many, finish, places)?;
    trace::record(|| Traced {
        dtype: DType::F32,
        batch: 1,
        shape: [m, k, n],
        path: Path::Embedded,
    });
    let result: Shape = lead.iter().chain(&[dims[rank - 2], n]).copied().collect();
    let shaped = |out: Output| {
        let y = out.finish();
        let layout = match turned {
            false => *y.layout(),
            true => y.layout().permute(op, &[1, 0])?,
        };
        let layout = layout.reshape(op, &result)?;
        Ok(y.with_layout(layout.expect("leading axes come from one")))
    };
    Ok(Some((shaped(out)?, sums.map(shaped).transpose()?)))
}

/// `a [m, k] · b`, a block of b after the other.
fn blocks<H: Half>(
    a: &[f32],
    b: &Matrix<'_, H>,
    finish: Finish<'_, f32>,
    places: Places<'_, f32>,
) -> Result<()> {
    let [k, n] = b.shape;
    let m = a.len() / k;
    b.view().map_err(refused(finish.op))?;
    let depth = k.min(if b.strides[1] == 1 { KC } else { MOST_DEPTH });
    let cost = Cost((COST_PER_TERM * m + COST_PER_WIDENED).saturating_mul(k));
    let parts = parallel::parts(n, cost);
    let most = (BLOCK_LEN / depth / COL_UNIT).max(1) * COL_UNIT;
    let width = most.min(n.div_ceil(parts).next_multiple_of(COL_UNIT));
    let mut pieces = Pieces::new();
    let mut rest = MatMut::row_major(&mut *places.c, [m, n]).map_err(refused(finish.op))?;
    for left in (0..n).step_by(width) {
        let (c, right) = rest.split_cols(width.min(n - left));
        pieces.push((left, c));
        rest = right;
    }
    let run = |(left, c): (usize, MatMut<'_, f32>)| block(finish.op, a, b, left, depth, c);
    match parts {
        1 => pieces.into_iter().try_for_each(run)?,
        _ => share(pieces, run)?,
    }
    finish.rows(places.c, places.sums, n);
    Ok(())
}

/// The columns of C from `left` on.
fn block<H: Half>(
    op: &'static str,
    a: &[f32],
    b: &Matrix<'_, H>,
    left: usize,
    depth: usize,
    mut c: MatMut<'_, f32>,
) -> Result<()> {
    let ([m, width], k) = (c.shape(), b.shape[0]);
    let mut memory = Buffer::scratch(depth * width * size_of::<f32>());
    let memory = memory.as_slice_mut::<f32>();
    for from in (0..k).step_by(depth) {
        let depth = depth.min(k - from);
        let at = |p: usize, j: usize| {
            let offset = p as isize * b.strides[0] + j as isize * b.strides[1];
            b.offset.wrapping_add_signed(offset)
        };
        let wide = &mut memory[..depth * width];
        let is_transposed = b.strides[1] != 1;
        let run = if is_transposed { depth } else { width };
        if is_transposed && depth == k && b.strides[1] == k as isize {
            H::widen(&b.data[at(from, left)..][..wide.len()], wide);
        } else {
            for (i, wide) in wide.chunks_exact_mut(run).enumerate() {
                let start = if is_transposed { at(from, left + i) } else { at(from + i, left) };
                H::widen(&b.data[start..][..run], wide);
            }
        }
        let wide = match is_transposed {
            true => MatRef::row_major(wide, [width, depth]).map_err(refused(op))?.t(),
            false => MatRef::row_major(wide, [depth, width]).map_err(refused(op))?,
        };
        // A product a block of k: sums over them are added in their order, as within a product.
        for at in (0..depth).step_by(KC) {
            let steps = KC.min(depth - at);
            let a = MatRef::new(a, from + at, [m, steps], [k as isize, 1]).map_err(refused(op))?;
            let wide = wide.split_rows(at).1.split_rows(steps).0;
            let beta = if from + at == 0 { 0.0 } else { 1.0 };
            let product = Gemm { a, b: wide, alpha: 1.0, beta };
            let c = c.reborrow();
            f32::workspace()
                .with_borrow_mut(|workspace| gemm(product, c, workspace))
                .map_err(refused(op))?;
        }
    }
    Ok(())
}
