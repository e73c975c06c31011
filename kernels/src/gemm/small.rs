//! Products that fit a level of the cache whole: one block of k, C written at once, A and B in place.
//!
//! The loops of the driver with nothing around them. Of 4³ they take a third of the driver's
//! instructions; the sums are those of one block, so the bits are the same. A B stored transposed is
//! transposed in registers, square by square, into the workspace.

use super::matrix::{MatMut, MatRef, step};
use super::pack::{MAX_LANES, Squares};
use super::split::Split;
use super::tile::{LayoutOfA, MR, Tile, max_vectors};
use super::workspace::Workspace;
use super::{KC, is_small};
use crate::dispatch::ElementTask;
use crate::simd::{Float, Lanes};

/// C ← A·B (+ bias, of n elements) of operands that fit.
pub struct Small<'a, E> {
    a: MatRef<'a, E>,
    b: MatRef<'a, E>,
    bias: Option<&'a [E]>,
    c: MatMut<'a, E>,
    /// Where B is transposed to, if it is.
    transposed: Option<*mut E>,
}

impl<'a, E: Float> Small<'a, E> {
    /// Whether a product is such a one: A and B have no gaps along one of their axes, rows of C are
    /// contiguous and C is no column, k is one block, all of B stays near.
    #[inline]
    pub(super) fn fits(a: &MatRef<'_, E>, b: &MatRef<'_, E>, c: &MatMut<'_, E>) -> bool {
        let has_runs = |strides: [isize; 2]| strides[0] == 1 || strides[1] == 1;
        let is_column = c.shape[1] == 1 && c.shape[0] > 1;
        has_runs(a.strides)
            && has_runs(b.strides)
            && c.strides[1] == 1
            && !is_column
            && (1..=KC).contains(&a.shape[1])
            && is_small::<E>(b.shape)
    }

    #[inline]
    pub(super) fn new(
        a: MatRef<'a, E>,
        b: MatRef<'a, E>,
        bias: Option<&'a [E]>,
        c: MatMut<'a, E>,
        workspace: &mut Workspace<E>,
    ) -> Self {
        let transposed = (b.strides[1] != 1).then(|| {
            let [k, n] = b.shape;
            workspace.elements(k * n.next_multiple_of(MAX_LANES)).cast()
        });
        Small { a, b, bias, c, transposed }
    }
}

impl<E: Float> ElementTask<E> for Small<'_, E> {
    type Home = Self;
    type Output = ();

    #[inline(always)]
    fn run<S: Lanes<E>>(self, simd: S) {
        let Small { a, b, bias, c, transposed } = self;
        let ([m, n], depth) = (c.shape, a.shape[1]);
        let (b, b_step) = match transposed {
            None => (b.data, b.strides[0]),
            Some(dst) => {
                let dst_row = n.next_multiple_of(S::LANES);
                let (src_row, shape) = (b.strides[1], [n, depth]);
                let squares = Squares { src: b.data, src_row, shape, dst, dst_row };
                // SAFETY: B has n columns, k contiguous; the memory holds k rows of whole vectors.
                unsafe { squares.transpose(simd) };
                (dst.cast_const(), dst_row as isize)
            }
        };
        let a_layout = match a.strides {
            [stride, 1] => LayoutOfA::Rows(stride),
            [_, stride] => LayoutOfA::Columns(stride),
        };
        let tiles = Split::new(n.div_ceil(S::LANES), const { max_vectors(S::ISA) });
        let rows = Split::new(m, MR);
        for tile in 0..tiles.parts() {
            let (start, vectors) = (tiles.start(tile) * S::LANES, tiles.len(tile));
            let last = S::LANES.min(n - start - (vectors - 1) * S::LANES);
            let b_last = if transposed.is_some() { S::LANES } else { last };
            for row in 0..rows.parts() {
                let (top, height) = (rows.start(row), rows.len(row));
                // SAFETY: rows and vectors come from splits by MR and max_vectors; rows
                // `top..top + height` are in A and C, columns `start..` up to n in B (or whole vectors in
                // its transpose), C and the bias.
                unsafe {
                    Tile {
                        rows: height,
                        vectors,
                        depth,
                        resume: false,
                        a: step(a.data.cast_mut(), top, a.strides[0]).cast_const(),
                        a_layout,
                        b: b.wrapping_add(start),
                        b_step,
                        b_last,
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
