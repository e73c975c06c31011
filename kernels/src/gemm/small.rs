//! Small products: one block of k, C written once, A and B read in place and near.
//!
//! These are the driver's tiles without its loops. A 4³ product takes a third of the driver's
//! instructions. The sums are those of one block, so the bits are the same. A B stored transposed
//! is transposed in registers, square by square, into the workspace; 16-bit operands are widened
//! into it.

use super::factor::Factor;
use super::matrix::{MatMut, MatRef, step};
use super::pack::{Copied, copied_len, copied_row};
use super::split::Split;
use super::tile::{MR, Tile, max_vectors, row_offsets};
use super::workspace::Workspace;
use super::{KC, is_small};
use crate::simd::sealed::Sealed as _;
use crate::simd::{Float, Lanes, Simd, Task, Vector};

/// C ← A·B (+ bias, of n elements) of small operands.
///
/// The operands and the task are passed by reference: a copy would load them in wider pieces than
/// they were just stored in, which takes longer than the smallest products.
pub struct Small<'a, T: Factor> {
    a: &'a MatRef<'a, T>,
    b: &'a MatRef<'a, T>,
    bias: Option<&'a [T::Sum]>,
    /// Borrowed exclusively by [`Small::new`].
    c: &'a MatMut<'a, T::Sum>,
    /// Memory for a copy of B, if it is copied, followed by A for 16-bit floats.
    copy: Option<*mut T::Sum>,
}

impl<'a, T: Factor> Small<'a, T> {
    /// True if the product is small: A and B are contiguous along one of their axes, rows of C are
    /// contiguous and C is not a column, k is one block, and all of B fits the near caches, as does
    /// an A that is widened.
    #[inline]
    pub(super) fn fits(a: &MatRef<'_, T>, b: &MatRef<'_, T>, c: &MatMut<'_, T::Sum>) -> bool {
        let has_runs = |strides: [isize; 2]| strides[0] == 1 || strides[1] == 1;
        let is_column = c.shape[1] == 1 && c.shape[0] > 1;
        has_runs(a.strides)
            && has_runs(b.strides)
            && c.strides[1] == 1
            && !is_column
            && (1..=KC).contains(&a.shape[1])
            && is_small::<T::Sum>(b.shape)
            && (T::IS_SUM || is_small::<T::Sum>([a.shape[0], copied_row(a.shape[1])]))
    }

    #[inline]
    pub(super) fn new(
        a: &'a MatRef<'a, T>,
        b: &'a MatRef<'a, T>,
        bias: Option<&'a [T::Sum]>,
        c: &'a mut MatMut<'_, T::Sum>,
        workspace: &mut Workspace<T::Sum>,
    ) -> Self {
        let copy = (!T::IS_SUM || b.strides[1] != 1).then(|| {
            let of_a = if T::IS_SUM { 0 } else { copied_len(a.shape) };
            workspace.elements(copied_len(b.shape) + of_a).cast()
        });
        Small { a, b, bias, c, copy }
    }
}

impl<'a, T: Factor> Task<T::Sum> for &Small<'a, T> {
    const ALIGNS_FRAME: bool = false;
    type Home = Small<'a, T>;
    type Output = ();

    #[inline(always)]
    fn run<S: Simd + Lanes<T::Sum>>(self, simd: S) {
        let Small { a, b, bias, c, .. } = *self;
        if const { !T::IS_SUM || <S as Lanes<T::Sum>>::LANES != 16 } {
            return Tiles(self).run(simd);
        }
        // Not compared as arrays: extents and strides would be loaded two at a time, which waits
        // until both stores have reached the cache.
        let ([m, n], depth) = (c.shape, a.shape[1]);
        let is_four = m * n == 16 && m == depth && depth == 4;
        let is_dense = |s: [isize; 2]| s[0] * s[1] == 4 && (s[0] == 1 || s[1] == 1);
        if is_four
            && bias.is_none()
            && is_dense(a.strides)
            && is_dense(b.strides)
            && c.strides[0] == 4
        {
            // SAFETY: a dense [4, 4] matrix is 16 elements from its first one on.
            unsafe {
                multiply_4x4(simd, (a.data.cast(), a.strides), (b.data.cast(), b.strides), c.data)
            };
            return;
        }
        T::Sum::call(simd, Tiles(self));
    }
}

/// The tiles, as a separate function: setting up its frame takes as long as a four by four product.
struct Tiles<'s, 'a, T: Factor>(&'s Small<'a, T>);

impl<'s, 'a, T: Factor> Task<T::Sum> for Tiles<'s, 'a, T> {
    const ALIGNS_FRAME: bool = false;
    type Home = Small<'a, T>;
    type Output = ();

    #[inline(always)]
    fn run<S: Simd + Lanes<T::Sum>>(self, simd: S) {
        let Small { a, b, bias, c, copy } = *self.0;
        let lanes = <S as Lanes<T::Sum>>::LANES;
        let ([m, n], depth) = (c.shape, a.shape[1]);
        let (mut a_data, mut a_strides) = (a.data.cast(), a.strides);
        let (mut b_data, mut b_step) = (b.data.cast(), b.strides[0]);
        if let Some(dst) = copy {
            let row = copied_row(n);
            // SAFETY: the copy has room for all of B in such rows, see `Small::new`.
            (&unsafe { Copied::new(b, dst, row) }).run(simd);
            (b_data, b_step) = (dst.cast_const(), row as isize);
            if !T::IS_SUM {
                let (dst, row) = (dst.wrapping_add(copied_len(b.shape)), copied_row(depth));
                // SAFETY: the copy has room for all of A behind B, see `Small::new`.
                (&unsafe { Copied::new(a, dst, row) }).run(simd);
                (a_data, a_strides) = (dst.cast_const(), [row as isize, 1]);
            }
        }
        let tiles = Split::new(n.div_ceil(lanes), const { max_vectors(S::ISA) });
        let rows = Split::new(m, MR);
        for tile in 0..tiles.parts() {
            let (start, vectors) = (tiles.start(tile) * lanes, tiles.len(tile));
            let last = lanes.min(n - start - (vectors - 1) * lanes);
            for row in 0..rows.parts() {
                let (top, height) = (rows.start(row), rows.len(row));
                // SAFETY: rows and vectors come from splits by MR and max_vectors. Rows
                // `top..top + height` are in A and C; columns `start..` up to n are in B (or whole
                // vectors in its copy), C and the bias.
                unsafe {
                    Tile {
                        rows: height,
                        vectors,
                        depth,
                        resume: false,
                        a: step::<T::Sum>(a_data.cast_mut(), top, a_strides[0]).cast_const(),
                        a_rows: row_offsets(a_strides[0]),
                        a_step: a_strides[1],
                        b: b_data.wrapping_add(start),
                        b_step,
                        b_rows: None,
                        out: step(c.data, top, c.strides[0]).wrapping_add(start),
                        out_row: c.strides[0],
                        last,
                        add: false,
                        bias: bias.map(|bias| bias.as_ptr().wrapping_add(start)),
                    }
                    .run(simd);
                }
            }
        }
    }
}

/// Lane indices as the bits of floats.
const fn index(rows: usize, columns: usize) -> [f32; 16] {
    let mut lanes = [0.0; 16];
    let mut i = 0;
    while i < 16 {
        lanes[i] = f32::from_bits((i / 4 * rows + i % 4 * columns) as u32);
        i += 1;
    }
    lanes
}

/// Lane indices by the stride along which lanes differ, 1 or 4: the first element of A for each
/// lane of C, the first element of B, and the step to the next one of either.
static INDICES: [[[f32; 16]; 3]; 2] =
    [[index(1, 0), index(0, 1), steps(1)], [index(4, 0), index(0, 4), steps(4)]];

const fn steps(step: u32) -> [f32; 16] {
    [f32::from_bits(step); 16]
}

/// Row `which` of [`INDICES`] for a stride.
///
/// # Safety
/// A vector has 16 lanes, so that `E` is `f32`.
#[inline(always)]
unsafe fn indices<E: Float, S: Lanes<E>>(simd: S, which: usize, stride: isize) -> S::I {
    let table = &INDICES[usize::from(stride == 4)][which];
    // SAFETY: the table has 16 `f32`, and the caller promises that 16 lanes of `E` are that.
    unsafe { simd.load(table.as_ptr().cast::<E>()).to_bits() }
}

/// C ← A·B of dense [4, 4] matrices, each one vector of 16 lanes: each value of k is one fused
/// multiply-add of all of C, with elements looked up in A and B.
///
/// ```text
/// lane 4 i + j:  C[i, j] = fma(A[i, p], B[p, j], C[i, j])   for p = 0 to 3
/// ```
///
/// # Safety
/// `a` and `b` are valid for reads and `c` for writes of 16 elements; the strides of `a` and `b`
/// are 1 and 4 in either order; vectors have 16 lanes.
#[inline(always)]
unsafe fn multiply_4x4<E: Float, S: Lanes<E>>(
    simd: S,
    (a, a_strides): (*const E, [isize; 2]),
    (b, b_strides): (*const E, [isize; 2]),
    c: *mut E,
) {
    // SAFETY: the caller promises the elements and the lanes.
    unsafe {
        let in_c = [indices(simd, 0, a_strides[0]), indices(simd, 1, b_strides[1])];
        let steps = [indices(simd, 2, a_strides[1]), indices(simd, 2, b_strides[0])];
        let [mut in_a, mut in_b] = in_c;
        let (a, b) = (&*a.cast::<[E; 16]>(), &*b.cast::<[E; 16]>());
        let mut acc = simd.splat(E::ZERO);
        for _ in 0..4 {
            let x = S::V::lookup16(a, in_a, acc);
            acc = x.mul_add(S::V::lookup16(b, in_b, acc), acc);
            (in_a, in_b) = (in_a + steps[0], in_b + steps[1]);
        }
        simd.store(c, acc);
    }
}
