//! Cuts products into calls and shares the calls among the threads.

use std::sync::OnceLock;

use super::call::{Call, Failure, Operand};
use super::plan::{Stored, grid, stored};
use super::provider::{Found, Provider};
use crate::backend::cpu::matmul::{COST_PER_TERM, Factor, Part, Pieces};
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

    /// Computes a product with its epilogue. False if declined; the content of the outputs is then unspecified.
    pub fn gemm<T: Factor>(self, part: &mut Part<'_, T>) -> bool {
        let shape = part.shape();
        let Some(provider) = self.library(shape).filter(|_| T::IS_SUM) else { return false };
        let [a, b] = [part.a, part.b].map(|matrix| stored(matrix.shape(), matrix.strides()));
        let (Some(a), Some(b)) = (a, b) else { return false };
        let is_done = provider.is_done(compute_tiles(provider, [a, b], self.tiles, part));
        if is_done {
            part.task.written.add(shape[0] * shape[2]);
        }
        is_done
    }
}

/// Computes a product with its epilogue, tile by tile, from operands that are stored like this.
fn compute_tiles<T: Factor>(
    provider: &Provider,
    [a_stored, b_stored]: [Stored; 2],
    most: usize,
    part: &mut Part<'_, T>,
) -> Result<(), Failure> {
    let tile = |mut tile: Part<'_, T>| -> Result<(), Failure> {
        let call = Call {
            shape: tile.shape(),
            a: Operand { data: tile.a.as_ptr().cast::<T::Sum>(), stored: a_stored },
            b: Operand { data: tile.b.as_ptr().cast(), stored: b_stored },
            ldc: tile.c.strides()[0].unsigned_abs(),
            c: tile.c.as_mut_ptr(),
        };
        // SAFETY: the factors have the type of the sums. Views hold all elements of A, B and C; those of C are
        // row-major, and borrowed exclusively.
        unsafe { call.run(&provider.products)? };
        tile.epilogue.apply(tile.c).map_err(|_| Failure::Arguments)
    };
    let shape = part.shape();
    let grid = grid(shape, most);
    let cost = Cost(COST_PER_TERM.saturating_mul(shape[1]));
    let cost = cost.times(shape[0] * shape[2] / (grid.0 * grid.1));
    let failure = OnceLock::new();
    let run = |tile_of_c| {
        if let Err(error) = provider.threads.on_one_thread(|| tile(tile_of_c)) {
            failure.get_or_init(|| error);
        }
    };
    let tiles = tiles(part, grid);
    match parallel::parts(tiles.len(), cost) {
        1 => tiles.into_iter().for_each(run),
        _ => parallel::for_each_item(tiles, |_, tile| run(tile)),
    }
    failure.into_inner().map_or(Ok(()), Err)
}

/// Cuts C into a grid of this number of rows and of columns, of about the same size.
fn tiles<'a, T: Factor>(
    part: &'a mut Part<'_, T>,
    (rows, cols): (usize, usize),
) -> Pieces<Part<'a, T>> {
    let ([m, _, n], start) = (part.shape(), parallel::even_start);
    let Part { task, a, b, ref mut c, ref mut epilogue, .. } = *part;
    let (c, epilogue) = (c.reborrow(), epilogue.reborrow());
    let mut above = Part { task, a, b, c, epilogue, rounded: [None, None] };
    let mut tiles = Pieces::new();
    for row in (0..rows).rev() {
        let (rest, mut left) = above.split_rows(start(m, rows, row));
        above = rest;
        for col in (0..cols).rev() {
            let (rest, tile) = left.split_cols(start(n, cols, col));
            left = rest;
            tiles.push(tile);
        }
    }
    tiles
}
