//! Cuts products into calls and shares the calls among the threads.

use std::slice::from_raw_parts_mut;
use std::sync::OnceLock;

use swath_kernels::Float;

use super::call::{Call, Failure, Operand};
use super::plan::{Grid, Stored, stored};
use super::provider::{Found, Provider};
use crate::backend::cpu::matmul::{COST_PER_TERM, Finish, Matrix, Places};
use crate::error::{Error, Result};
use crate::runtime::parallel::{self, Cost};

/// Products of at most this many multiplications are left to the embedded product: a batch of 16³ takes 1.3
/// times as long with OpenBLAS, 1.4 with MKL and 5.8 with BLIS (one thread, Zen 4); of 32³ 1.05, 1.3 and 2.2.
const SMALL: usize = 16 * 16 * 16;

/// The provider of products, looked up once per operation.
#[derive(Clone, Copy)]
pub(in crate::backend::cpu) struct Blas {
    provider: Option<&'static Provider>,
    /// Maximum number of tiles of a product.
    tiles: usize,
}

impl Blas {
    /// Returns the library of this process, if the build has one and it is usable.
    ///
    /// # Errors
    /// [`Error::Runtime`] if the user selected one that is not usable.
    pub fn current() -> Result<Blas> {
        let provider = match Found::get() {
            Found::Library(provider) => Some(provider),
            Found::Embedded(_) => None,
            Found::Error(reason) => return Err(Error::Runtime(reason.clone())),
        };
        Ok(Blas { provider, tiles: provider.map_or(1, |provider| provider.tiles) })
    }

    /// Returns the provider for a batch, whose products are not cut if there is at least one per core.
    pub fn for_batch(self, batch: usize) -> Blas {
        Blas { tiles: if batch >= self.tiles { 1 } else { self.tiles }, ..self }
    }

    /// True if there is a library and its products are not cut.
    pub fn is_uncut(self) -> bool {
        self.is_present() && self.tiles == 1
    }

    /// True if there is a library. It may still decline products.
    pub fn is_present(self) -> bool {
        self.provider.is_some()
    }

    /// The library, unless it has failed or the product is too small for it.
    fn library(self, [m, k, n]: [usize; 3]) -> Option<&'static Provider> {
        let is_large = m.saturating_mul(n).saturating_mul(k) > SMALL;
        self.provider.filter(|provider| is_large && provider.failure.get().is_none())
    }

    /// C ← A·B, followed by `finish`. False if declined; the content of the outputs is then unspecified.
    pub fn gemm<E: Float + swath_kernels::Stored>(
        self,
        a: &Matrix<'_, E>,
        b: &Matrix<'_, E>,
        finish: Finish<'_, E>,
        places: &mut Places<'_, E>,
    ) -> bool {
        let ([m, k], [k_b, n], Places { c, sums, .. }) = (a.shape, b.shape, &places);
        let sums_fit = sums.is_empty() || sums.len() == c.len();
        let fits = k == k_b && m.checked_mul(n) == Some(c.len()) && sums_fit;
        let Some(provider) = self.library([m, k, n]).filter(|_| fits) else { return false };
        let (Some(a), Some(b)) = (Checked::new(a), Checked::new(b)) else { return false };
        let grid = Grid::new([m, k, n], self.tiles);
        provider.is_done(compute_tiles(provider, [a, b], &grid, finish, places))
    }
}

/// An operand whose elements are known to be within its slice.
struct Checked<'a, E> {
    matrix: &'a Matrix<'a, E>,
    stored: Stored,
}

impl<'a, E> Checked<'a, E> {
    /// `None` if an element is outside the slice or BLAS cannot express the layout.
    fn new(matrix: &'a Matrix<'a, E>) -> Option<Self> {
        matrix.view().ok()?;
        Some(Checked { matrix, stored: stored(matrix)? })
    }

    /// The part of the operand that begins at element (row, col).
    fn from(&self, row: usize, col: usize) -> Operand<E> {
        let Matrix { data, offset, strides: [down, right], .. } = *self.matrix;
        // `view` has found this element within the slice.
        let shift = row as isize * down + col as isize * right;
        let data = data.as_ptr().wrapping_add(offset).wrapping_offset(shift);
        Operand { data, stored: self.stored }
    }
}

struct Out<E>(*mut E);
// SAFETY: threads write disjoint tiles of an exclusive borrow, see `compute_tiles`.
unsafe impl<E: Send> Sync for Out<E> {}
impl<E> Out<E> {
    fn at(&self, offset: usize) -> *mut E {
        self.0.wrapping_add(offset)
    }
}

/// C ← A·B, followed by `finish`, tile by tile. C, and sums if kept, have m·n elements. If the library
/// fails, their content is unspecified.
fn compute_tiles<E: Float + swath_kernels::Stored>(
    provider: &Provider,
    [a, b]: [Checked<'_, E>; 2],
    grid: &Grid,
    finish: Finish<'_, E>,
    Places { c, sums, written }: &mut Places<'_, E>,
) -> Result<(), Failure> {
    let (keeps, k, n) = (!sums.is_empty(), a.matrix.shape[1], b.matrix.shape[1]);
    let (elements, out, sums) = (c.len(), Out(c.as_mut_ptr()), Out(sums.as_mut_ptr()));
    let tile = |index: usize| -> Result<(), Failure> {
        let [(row, rows), (col, cols)] = grid.tile(index);
        let (a, b, c) = (a.from(row, 0), b.from(0, col), out.at(row * n + col));
        let call = Call { shape: [rows, k, cols], a, b, c, ldc: n };
        // SAFETY: `Checked` has found all elements of A and B within their slices; C has m·n elements in
        // rows of n, and tiles of the grid do not overlap.
        unsafe { call.run(&provider.products)? };
        if finish.is_nothing() {
            return Ok(());
        }
        for i in row..row + rows {
            let at = i * n + col;
            let (from, kept) = if keeps { (at, cols) } else { (0, 0) };
            // SAFETY: as above, for a row of the tile.
            let row = unsafe { from_raw_parts_mut(out.at(at), cols) };
            // SAFETY: as above; kept sums have as many elements as C.
            let sums = unsafe { from_raw_parts_mut(sums.at(from), kept) };
            finish.finish(col, row, sums);
        }
        Ok(())
    };
    let tiles = grid.tiles();
    let cost = Cost(COST_PER_TERM.saturating_mul(k)).times(elements / tiles);
    let failure = OnceLock::new();
    let run = |index| {
        if let Err(error) = provider.threads.on_one_thread(|| tile(index)) {
            failure.get_or_init(|| error);
        }
    };
    match parallel::parts(tiles, cost) {
        1 => (0..tiles).for_each(run),
        _ => parallel::for_each_index(tiles, run),
    }
    if let Some(error) = failure.into_inner() {
        return Err(error);
    }
    (0..tiles).map(|index| grid.tile(index)).for_each(|tile| written.add(tile[0].1 * tile[1].1));
    Ok(())
}
