//! Matrices in BLAS's terms, and the grid of calls that a product is cut into. The grid depends on shapes
//! and on the number of cores available to the process, so the bits do not depend on the number of threads.

/// A matrix in BLAS's terms: row-major with a leading dimension, or the transpose of such a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    /// True if the transpose is stored in row-major order.
    pub transposed: bool,
    /// Leading dimension: at least 1 and the length of a stored row.
    pub leading: usize,
}

/// Converts a matrix to BLAS's terms; `None` for strides of zero, negative strides, or no stride of 1.
pub(super) fn stored([rows, cols]: [usize; 2], [down, right]: [isize; 2]) -> Option<Stored> {
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

/// Number of parts of the rows and of the columns of C, for `[m, k] × [k, n]`: as many large enough tiles as possible, up
/// to `tiles`; among equal numbers of tiles, those that pack the fewest elements.
pub(super) fn grid([m, k, n]: [usize; 3], tiles: usize) -> (usize, usize) {
    let terms = m.saturating_mul(k).saturating_mul(n);
    let tiles = (terms / TILE_TERMS).clamp(1, tiles.max(1));
    let (most_rows, most_cols) = ((m / TILE_ROWS).max(1), (n / TILE_COLS).max(1));
    let cuts = (1..=tiles.min(most_rows)).map(|rows| (rows, (tiles / rows).min(most_cols)));
    // B is packed once for each part of the rows, A for each part of the columns.
    let packed = |(rows, cols): (usize, usize)| (rows * n).saturating_add(cols * m);
    let best = cuts.max_by_key(|&cut| (cut.0 * cut.1, std::cmp::Reverse(packed(cut))));
    best.unwrap_or((1, 1))
}
