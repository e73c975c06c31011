//! How a product is cut into calls. It depends on shapes and strides alone, so that the bits do not
//! depend on the threads.

use smallvec::SmallVec;

use super::layout::Stored;
use crate::backend::cpu::parallel;

/// Rows and columns of a tile of C: large enough that packing is paid back (4 % at 256 x 512),
/// small enough that a product of 512 x 512 feeds two threads.
const TILE_ROWS: usize = 256;
const TILE_COLS: usize = 512;

/// A part of an extent: start and length.
pub(super) type Part = (usize, usize);

/// The grid of calls. Blocks of k follow one another, each adding to C after the first; tiles of C
/// are independent.
pub(super) struct Plan {
    pub rows: SmallVec<[Part; 16]>,
    pub cols: SmallVec<[Part; 16]>,
    pub depths: SmallVec<[Part; 2]>,
}

impl Plan {
    /// Of `[m, k] × [k, n]` into a row-major C, for a library whose integers hold at most `most`.
    ///
    /// Where a leading dimension is larger than that, parts have one stored row, which needs none.
    pub fn new([m, k, n]: [usize; 3], a: Stored, b: Stored, most: usize) -> Plan {
        let (a_large, b_large) = (a.leading > most, b.leading > most);
        let limit = |one: bool, usual: usize| if one { 1 } else { usual.min(most) };
        Plan {
            rows: even(m, limit(a_large && !a.transposed || n > most, TILE_ROWS)),
            cols: even(n, limit(b_large && b.transposed, TILE_COLS)),
            depths: even(k, limit(a_large && a.transposed || b_large && !b.transposed, most)),
        }
    }

    /// Tiles of C.
    pub fn tiles(&self) -> usize {
        self.rows.len() * self.cols.len()
    }

    /// Rows and columns of a tile.
    pub fn tile(&self, index: usize) -> (Part, Part) {
        (self.rows[index / self.cols.len()], self.cols[index % self.cols.len()])
    }
}

/// As few parts of at most `most` as can be, as even as can be.
fn even<const N: usize>(extent: usize, most: usize) -> SmallVec<[Part; N]>
where
    [Part; N]: smallvec::Array<Item = Part>,
{
    let parts = extent.div_ceil(most);
    let start = |i| parallel::even_start(extent, parts, i);
    (0..parts).map(|i| (start(i), start(i + 1) - start(i))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(parts: &[Part], extent: usize, most: usize) {
        let mut next = 0;
        for &(start, len) in parts {
            assert_eq!(start, next);
            assert!((1..=most).contains(&len), "{parts:?}");
            next += len;
        }
        assert_eq!(next, extent);
    }

    #[test]
    fn the_grid_covers_every_index_once() {
        let row_major = |leading| Stored { transposed: false, leading };
        for (m, k, n) in [(1, 1, 1), (255, 300, 513), (1000, 7, 5000), (3, 99, 1)] {
            for most in [7, 100, i32::MAX as usize] {
                let plan = Plan::new([m, k, n], row_major(k), row_major(n), most);
                covers(&plan.rows, m, TILE_ROWS.min(most));
                covers(&plan.cols, n, TILE_COLS.min(most));
                covers(&plan.depths, k, most);
                assert_eq!(plan.tiles(), plan.rows.len() * plan.cols.len());
            }
        }
    }

    #[test]
    fn leading_dimensions_that_the_library_cannot_hold_are_never_stepped_along() {
        for (a_transposed, b_transposed) in
            [(false, false), (false, true), (true, false), (true, true)]
        {
            let a = Stored { transposed: a_transposed, leading: 1000 };
            let b = Stored { transposed: b_transposed, leading: 1000 };
            let plan = Plan::new([20, 30, 40], a, b, 100);
            let longest = |parts: &[Part]| parts.iter().map(|part| part.1).max();
            let stepped = |is_one: bool, extent: usize| Some(if is_one { 1 } else { extent });
            assert_eq!(longest(&plan.rows), stepped(!a_transposed, 20));
            assert_eq!(longest(&plan.cols), stepped(b_transposed, 40));
            assert_eq!(longest(&plan.depths), stepped(a_transposed || !b_transposed, 30));
        }
    }
}
