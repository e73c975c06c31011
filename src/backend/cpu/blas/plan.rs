//! How a product is cut into calls. It depends on shapes, strides and the cores that the process may
//! use, so that the bits do not depend on the threads.

use smallvec::SmallVec;

use super::layout::Stored;
use crate::runtime::parallel;

/// Rows and columns that a tile of C has at least, where C has them: a library packs its operands
/// anew in each call.
const TILE_ROWS: usize = 128;
const TILE_COLS: usize = 256;

/// Multiplications that a tile has at least.
const TILE_TERMS: usize = 1 << 21;

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
    /// Of `[m, k] × [k, n]` into a row-major C in at most so many tiles, for a library whose integers
    /// hold at most `most`.
    ///
    /// Where a number is larger than that there are more tiles. Where a leading dimension is, parts have
    /// one stored row, which needs none.
    pub fn new(shape: [usize; 3], [a, b]: [Stored; 2], tiles: usize, most: usize) -> Plan {
        let [m, k, n] = shape;
        let (a_large, b_large) = (a.leading > most, b.leading > most);
        let limit = |one: bool, usual: usize| if one { 1 } else { usual.min(most) };
        let (rows, cols) = grid(shape, tiles);
        Plan {
            rows: even(m, limit(a_large && !a.transposed || n > most, m.div_ceil(rows))),
            cols: even(n, limit(b_large && b.transposed, n.div_ceil(cols))),
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

/// Parts of the rows and of the columns: as many tiles up to `tiles` as are large enough, and of
/// these the cut that packs least.
fn grid([m, k, n]: [usize; 3], tiles: usize) -> (usize, usize) {
    let terms = m.saturating_mul(k).saturating_mul(n);
    let tiles = (terms / TILE_TERMS).clamp(1, tiles.max(1));
    let (most_rows, most_cols) = ((m / TILE_ROWS).max(1), (n / TILE_COLS).max(1));
    let cuts = (1..=tiles.min(most_rows)).map(|rows| (rows, (tiles / rows).min(most_cols)));
    // Each part of the rows has B packed, each part of the columns A.
    let packed = |(rows, cols): (usize, usize)| (rows * n).saturating_add(cols * m);
    cuts.max_by_key(|&cut| (cut.0 * cut.1, std::cmp::Reverse(packed(cut)))).unwrap_or((1, 1))
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

    const ROW_MAJOR: Stored = Stored { transposed: false, leading: 1 };

    #[test]
    fn the_grid_covers_every_index_once() {
        for (m, k, n) in [(1, 1, 1), (255, 300, 513), (1000, 7, 5000), (3, 99, 1), (700, 700, 900)]
        {
            for (most, tiles) in [(7, 1), (100, 5), (1 << 31, 1), (1 << 31, 6)] {
                let plan = Plan::new([m, k, n], [ROW_MAJOR; 2], tiles, most);
                covers(&plan.rows, m, most);
                covers(&plan.cols, n, most);
                covers(&plan.depths, k, most);
                assert_eq!(plan.tiles(), plan.rows.len() * plan.cols.len());
                assert!(plan.tiles() <= tiles || most < 1000);
            }
        }
    }

    #[test]
    fn products_are_cut_for_every_core_while_tiles_are_large() {
        let grids = [
            ([1024, 1024, 1024], 1, (1, 1)),
            ([1024, 1024, 1024], 2, (2, 1)),
            ([1024, 1024, 1024], 4, (2, 2)),
            ([1024, 1024, 1024], 6, (3, 2)),
            ([1024, 1024, 1024], 64, (8, 4)),
            ([4096, 1024, 1024], 4, (4, 1)),
            ([1024, 1024, 4096], 4, (1, 4)),
            // A vector; a product too small for two tiles; one with few terms.
            ([1, 4096, 4096], 2, (1, 2)),
            ([128, 128, 128], 8, (1, 1)),
            ([1024, 2, 1024], 8, (1, 1)),
        ];
        for (shape, tiles, expected) in grids {
            assert_eq!(grid(shape, tiles), expected, "{shape:?} {tiles}");
        }
    }

    #[test]
    fn leading_dimensions_that_the_library_cannot_hold_are_never_stepped_along() {
        for (a_transposed, b_transposed) in
            [(false, false), (false, true), (true, false), (true, true)]
        {
            let a = Stored { transposed: a_transposed, leading: 1000 };
            let b = Stored { transposed: b_transposed, leading: 1000 };
            let plan = Plan::new([20, 30, 40], [a, b], 8, 100);
            let longest = |parts: &[Part]| parts.iter().map(|part| part.1).max();
            let stepped = |is_one: bool, extent: usize| Some(if is_one { 1 } else { extent });
            assert_eq!(longest(&plan.rows), stepped(!a_transposed, 20));
            assert_eq!(longest(&plan.cols), stepped(b_transposed, 40));
            assert_eq!(longest(&plan.depths), stepped(a_transposed || !b_transposed, 30));
        }
    }
}
