//! Matrices in BLAS's terms, and the grid of calls that a product is cut into. The grid depends on shapes
//! and on the number of cores available to the process, so the bits do not depend on the number of threads.

use crate::backend::cpu::matmul::Matrix;
use crate::runtime::parallel;

/// A matrix in BLAS's terms: row-major with a leading dimension, or the transpose of such a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    /// True if the transpose is stored in row-major order.
    pub transposed: bool,
    /// Leading dimension: at least 1 and the length of a stored row.
    pub leading: usize,
}

/// Converts a matrix to BLAS's terms; `None` for strides of zero, negative strides, or no stride of 1.
pub(super) fn stored<E>(matrix: &Matrix<'_, E>) -> Option<Stored> {
    let ([rows, cols], [down, right]) = (matrix.shape, matrix.strides);
    // The stride of an axis of extent 1 is never used and may be replaced.
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

/// Minimum rows and columns of a tile of C, unless C is smaller. A library packs its operands in each call,
/// so smaller tiles repeat more packing.
const TILE_ROWS: usize = 128;
const TILE_COLS: usize = 256;

/// Minimum number of multiplications of a tile, unless the product has fewer.
const TILE_TERMS: usize = 1 << 21;

/// Start and length of a part of an extent.
pub(super) type Part = (usize, usize);

/// The grid of calls: tiles of C, which are independent.
pub(super) struct Grid {
    shape: [usize; 2],
    /// Number of parts of the rows, and of the columns.
    pub parts: (usize, usize),
}

impl Grid {
    /// Cuts C of `[m, k] × [k, n]` into as many large enough tiles as possible, up to `tiles`; among equal
    /// numbers of tiles, into those that pack the fewest elements.
    pub fn new([m, k, n]: [usize; 3], tiles: usize) -> Grid {
        let terms = m.saturating_mul(k).saturating_mul(n);
        let tiles = (terms / TILE_TERMS).clamp(1, tiles.max(1));
        let (most_rows, most_cols) = ((m / TILE_ROWS).max(1), (n / TILE_COLS).max(1));
        let cuts = (1..=tiles.min(most_rows)).map(|rows| (rows, (tiles / rows).min(most_cols)));
        // B is packed once for each part of the rows, A for each part of the columns.
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
