//! Steps that the forward and the backward pass of one head share: panels for products, masks, dropout.

use swath_kernels::math::Mul;
use swath_kernels::{
    self as kernels, Arg, Function, Gemm, GemmError, MatMut, MatRef, Transpose, Workspace,
};

use super::super::super::matmul::Matrix;
use super::{CpuTensor, KEYS, Mask, Problem, Real};
use crate::backend::TensorData;
use crate::dtype::Element;
use crate::error::Error;
use crate::ops::DropoutMask;

/// Each slice of an [`Arena`] takes a multiple of this many elements, so that the next begins at a cache line.
const LINE: usize = 16;

/// Scratch memory, handed out from its start.
pub(super) struct Arena<'m, E>(pub &'m mut [E]);

impl<'m, E> Arena<'m, E> {
    /// Returns the bytes of an arena for slices of `[rows, columns]` elements.
    ///
    /// # Errors
    /// [`Error::Overflow`] if they cannot be counted: the keys `k` may be one that was broadcast.
    pub fn bytes(op: &'static str, k: &CpuTensor, slices: &[[usize; 2]]) -> Result<usize, Error> {
        let len = slices.iter().try_fold(0usize, |sum, &[rows, columns]| {
            let len = rows.checked_mul(columns)?.checked_next_multiple_of(LINE)?;
            sum.checked_add(len)
        });
        let bytes = len.and_then(|len| len.checked_mul(size_of::<E>()));
        let fits = |&bytes: &usize| isize::try_from(bytes).is_ok();
        bytes.filter(fits).ok_or(Error::Overflow { op, shape: *k.shape() })
    }

    pub fn take(&mut self, len: usize) -> &'m mut [E] {
        let (piece, rest) = std::mem::take(&mut self.0).split_at_mut(len.next_multiple_of(LINE));
        self.0 = rest;
        &mut piece[..len]
    }
}

/// C ← A·B, or C += A·B.
pub(super) fn product<E: Real>(
    a: MatRef<'_, E>,
    b: MatRef<'_, E>,
    c: MatMut<'_, E>,
    add: bool,
    workspace: &mut Workspace<E>,
) -> Result<(), GemmError> {
    let beta = if add { E::ONE } else { E::ZERO };
    kernels::gemm(Gemm { beta, ..Gemm::new(a, b) }, c, workspace).map(drop)
}

/// Position of an element of the matrix.
fn position<E>(x: &Matrix<'_, E>, row: usize, column: usize) -> usize {
    let shift = row as isize * x.strides[0] + column as isize * x.strides[1];
    x.offset.wrapping_add_signed(shift)
}

/// Rows `first..first + rows` as an operand of products, without a copy.
pub(super) fn rows_of<'a, E>(
    x: &Matrix<'a, E>,
    first: usize,
    rows: usize,
) -> Result<MatRef<'a, E>, GemmError> {
    MatRef::new(x.data, position(x, first, 0), [rows, x.shape[1]], x.strides)
}

/// Copies rows from `first` on into `out`, as many as fit.
pub(super) fn copy_rows<E: Real>(x: &Matrix<'_, E>, first: usize, out: &mut [E]) {
    let width = x.shape[1];
    if width == 0 {
        return;
    }
    for (i, row) in out.chunks_exact_mut(width).enumerate() {
        let start = position(x, first + i, 0);
        match x.strides[1] {
            1 => row.copy_from_slice(&x.data[start..][..width]),
            stride => kernels::copy_strided(x.data, start, stride, row),
        }
    }
}

/// Rows `first..first + rows` with contiguous elements, and the distance between rows: in place, or copied.
pub(super) fn contiguous_rows<'a, E: Real>(
    x: &Matrix<'a, E>,
    first: usize,
    rows: usize,
    copy: &'a mut [E],
) -> (&'a [E], usize) {
    match (x.strides, usize::try_from(x.strides[0])) {
        ([_, 1], Ok(stride)) if x.shape[1] > 0 => (&x.data[position(x, first, 0)..], stride),
        _ => {
            let copy = &mut copy[..rows * x.shape[1]];
            copy_rows(x, first, copy);
            (copy, x.shape[1])
        }
    }
}

/// Copies the first `count` rows into transposed panels `[width, KEYS]`. Only as many columns of the last
/// panel are written as there are rows.
pub(super) fn transposed_panels<E: Real>(x: &Matrix<'_, E>, count: usize, out: &mut [E]) {
    let width = x.shape[1];
    if width == 0 {
        return;
    }
    for (i, panel) in out.chunks_exact_mut(width * KEYS).enumerate() {
        let first = i * KEYS;
        if first >= count {
            break;
        }
        let rows = KEYS.min(count - first);
        match (x.strides, usize::try_from(x.strides[0])) {
            ([_, 1], Ok(src_row_stride)) => {
                let src_offset = position(x, first, 0);
                let (cols, dst_row_stride) = (width, KEYS);
                let shape = Transpose { rows, cols, src_offset, src_row_stride, dst_row_stride };
                kernels::transpose(x.data, panel, shape);
            }
            ([down, _], _) => {
                for (column, out) in panel.chunks_exact_mut(KEYS).enumerate() {
                    let start = position(x, first, column);
                    kernels::copy_strided(x.data, start, down, &mut out[..rows]);
                }
            }
        }
    }
}

/// Number of rows of the panels of `count` rows.
pub(super) fn panel_rows(count: usize) -> usize {
    count.next_multiple_of(KEYS)
}

/// Number of elements of the panels of `count` rows.
pub(super) fn panels_len(count: usize, width: usize) -> usize {
    panel_rows(count) * width
}

/// `C[.., ..columns] = A·Xᵀ` from the panels of X; rows of C are `stride` apart.
pub(super) fn product_with_panels<E: Real>(
    a: MatRef<'_, E>,
    panels: &[E],
    columns: usize,
    c: &mut [E],
    stride: usize,
    workspace: &mut Workspace<E>,
) -> Result<(), GemmError> {
    let [rows, width] = a.shape();
    for first in (0..columns).step_by(KEYS) {
        let count = KEYS.min(columns - first);
        let b = MatRef::new(panels, first * width, [width, count], [KEYS as isize, 1])?;
        let c = MatMut::new(c, first, [rows, count], [stride as isize, 1])?;
        product(a, b, c, false, workspace)?;
    }
    Ok(())
}

impl<E: Real> Problem<'_, E> {
    /// Scales and masks the scores of queries from `first` on and returns true, or returns false if there is
    /// no mask.
    pub(super) fn mask_scores(
        &self,
        head: usize,
        first: usize,
        columns: usize,
        stride: usize,
        scores: &mut [E],
    ) -> bool {
        let Some(mask) = &self.mask else { return false };
        let (scale, lowest) = (<E as Element>::from_f64(self.parameters.scale), -E::INFINITY);
        for (i, row) in scores.chunks_mut(stride).enumerate() {
            let row = &mut row[..columns];
            match mask {
                Mask::Bool(mask) => {
                    let select = |x: E, mask: u8| if mask != 0 { x * scale } else { lowest };
                    zip_row(row, &mask.matrix(head), first + i, select);
                }
                Mask::Float(mask) => {
                    zip_row(row, &mask.matrix(head), first + i, |x, mask| x * scale + mask);
                }
            }
        }
        true
    }

    /// Writes the dropout factors, 0 or `1 / (1 - p)`, of a query's weights.
    pub(super) fn dropout_factors(
        &self,
        dropout: &DropoutMask,
        head: usize,
        row: usize,
        factors: &mut [E],
    ) {
        let &DropoutMask { p, seed, stream } = dropout;
        let place = (head * self.shape.t + row) as u64;
        let first = place.wrapping_mul(self.shape.s as u64);
        kernels::dropout_factors(kernels::Dropout { p, seed, stream, first }, factors);
    }
}

/// `x[j] = f(x[j], matrix[i, j])`.
fn zip_row<E: Copy, M: Copy>(x: &mut [E], matrix: &Matrix<'_, M>, i: usize, f: impl Fn(E, M) -> E) {
    let start = position(matrix, i, 0);
    match matrix.strides[1] {
        _ if x.is_empty() => {}
        1 => {
            let row = &matrix.data[start..][..x.len()];
            x.iter_mut().zip(row).for_each(|(x, &mask)| *x = f(*x, mask));
        }
        stride => {
            for (j, x) in x.iter_mut().enumerate() {
                *x = f(*x, matrix.data[start.wrapping_add_signed(j as isize * stride)]);
            }
        }
    }
}

/// `x[j] *= factors[j]`.
pub(super) fn multiply<E: Real>(x: &mut [E], factors: &[E]) {
    Mul::KERNEL.run_in_place([None, Some(Arg::Slice(factors))], x);
}
