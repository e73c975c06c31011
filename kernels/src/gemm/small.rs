//! Products that fit a level of the cache whole: B in place, one block of k, C written at once.
//!
//! The loops of the driver with nothing around them. Of 4³ they take a third of the driver's
//! instructions; the sums are those of one block, so the bits are the same.

use super::matrix::{MatMut, MatRef, step};
use super::split::Split;
use super::tile::{LayoutOfA, MR, Tile, max_vectors};
use super::{KC, is_small};
use crate::dispatch::ElementTask;
use crate::simd::{Float, Lanes};

/// C ← A·B (+ bias, of n elements) of operands that fit.
pub struct Small<'a, E> {
    pub(super) a: MatRef<'a, E>,
    pub(super) b: MatRef<'a, E>,
    pub(super) bias: Option<&'a [E]>,
    pub(super) c: MatMut<'a, E>,
}

impl<E: Float> Small<'_, E> {
    /// Whether a product is such a one: rows are contiguous, C is no column, k is one block, all of B
    /// stays near.
    #[inline]
    pub(super) fn fits(a: &MatRef<'_, E>, b: &MatRef<'_, E>, c: &MatMut<'_, E>) -> bool {
        let rows_are_contiguous = a.strides[1] == 1 && b.strides[1] == 1 && c.strides[1] == 1;
        let is_column = c.shape[1] == 1 && c.shape[0] > 1;
        rows_are_contiguous
            && !is_column
            && (1..=KC).contains(&a.shape[1])
            && is_small::<E>(b.shape)
    }
}

impl<E: Float> ElementTask<E> for Small<'_, E> {
    type Home = Self;
    type Output = ();

    #[inline(always)]
    fn run<S: Lanes<E>>(self, simd: S) {
        let Small { a, b, bias, c } = self;
        let ([m, n], depth) = (c.shape, a.shape[1]);
        let tiles = Split::new(n.div_ceil(S::LANES), const { max_vectors(S::ISA) });
        let rows = Split::new(m, MR);
        for tile in 0..tiles.parts() {
            let (start, vectors) = (tiles.start(tile) * S::LANES, tiles.len(tile));
            let last = S::LANES.min(n - start - (vectors - 1) * S::LANES);
            for row in 0..rows.parts() {
                let (top, height) = (rows.start(row), rows.len(row));
                // SAFETY: rows and vectors come from splits by MR and max_vectors; rows
                // `top..top + height` are in A and C, columns `start..` up to n in B, C and the bias,
                // all contiguous.
                unsafe {
                    Tile {
                        rows: height,
                        vectors,
                        depth,
                        resume: false,
                        a: step(a.data.cast_mut(), top, a.strides[0]).cast_const(),
                        a_layout: LayoutOfA::Rows(a.strides[0]),
                        b: b.data.wrapping_add(start),
                        b_step: b.strides[0],
                        b_last: last,
                        out: step(c.data, top, c.strides[0]).wrapping_add(start),
                        out_row: c.strides[0],
                        out_last: last,
                        add: false,
                        bias: bias.map(|bias| bias.as_ptr().wrapping_add(start)),
                    }
                    .run(simd);
                }
            }
        }
    }
}
