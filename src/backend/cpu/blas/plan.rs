//! Matrices in BLAS's terms, and the grid of calls that a product is cut into. It depends on shapes, strides
//! and the cores that the process may use, so that the bits do not depend on the threads.

use crate::backend::cpu::matmul::Matrix;
use crate::runtime::parallel;

/// A matrix in BLAS's terms: row-major with a leading dimension, or the transpose of such a one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    /// Row after row the transpose is stored.
    pub transposed: bool,
    /// Elements from one stored row to the next: at least the length of a stored row, and 1.
    pub leading: usize,
}

/// A matrix in BLAS's terms; `None` where it has none: strides of zero, negative ones, or none of 1.
pub(super) fn stored<E>(matrix: &Matrix<'_, E>) -> Option<Stored> {
    let ([rows, cols], [down, right]) = (matrix.shape, matrix.strides);
    // An axis of extent 1 is never stepped along: its stride may be whatever suits.
    let leading = |stride: isize, row_len: usize, stored_rows: usize| {
        let least = row_len.max(1);
        let leading = if stored_rows <= 1 { least } else { usize::try_from(stride).ok()? };
        (leading >= least).then_some(leading)
    };
    let plain = (right == 1 || cols == 1).then(|| leading(down, cols, rows)).flatten();
    let transposed = || (down == 1 || rows == 1).then(|| leading(right, rows, cols)).flatten();
    let plain = plain.map(|leading| Stored { transposed: false, leading });
    plain.or_else(|| transposed().map(|leading| Stored { transposed: true, leading }))
}

/// Rows and columns that a tile of C has at least, where C has them: a library packs its operands
/// anew in each call.
const TILE_ROWS: usize = 128;
const TILE_COLS: usize = 256;

/// Multiplications that a tile has at least.
const TILE_TERMS: usize = 1 << 21;

/// A part of an extent: start and length.
pub(super) type Part = (usize, usize);

/// The grid of calls: tiles of C, which are independent.
pub(super) struct Grid {
    shape: [usize; 2],
    /// Parts of the rows, and of the columns.
    pub parts: (usize, usize),
}

impl Grid {
    /// As many tiles of the C of `[m, k] × [k, n]`, up to `tiles`, as are large enough, and of these the cut
    /// that packs least.
    pub fn new([m, k, n]: [usize; 3], tiles: usize) -> Grid {
        let terms = m.saturating_mul(k).saturating_mul(n);
        let tiles = (terms / TILE_TERMS).clamp(1, tiles.max(1));
        let (most_rows, most_cols) = ((m / TILE_ROWS).max(1), (n / TILE_COLS).max(1));
        let cuts = (1..=tiles.min(most_rows)).map(|rows| (rows, (tiles / rows).min(most_cols)));
        // Each part of the rows has B packed, each part of the columns A.
        let packed = |(rows, cols): (usize, usize)| (rows * n).saturating_add(cols * m);
        let best = cuts.max_by_key(|&cut| (cut.0 * cut.1, std::cmp::Reverse(packed(cut))));
        Grid { shape: [m, n], parts: best.unwrap_or((1, 1)) }
    }

    pub fn tiles(&self) -> usize {
        self.parts.0 * self.parts.1
    }

    /// Rows and columns of a tile.
    pub fn tile(&self, index: usize) -> [Part; 2] {
        let (Grid { shape: [m, n], parts: (rows, cols) }, start) = (self, parallel::even_start);
        [(*m, *rows, index / cols), (*n, *cols, index % cols)].map(|(extent, parts, part)| {
            let from = start(extent, parts, part);
            (from, start(extent, parts, part + 1) - from)
        })
    }
}
