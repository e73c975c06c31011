//! All of B in the tiles that the micro-kernel reads.

use core::marker::PhantomData;

use super::cache::panel_columns;
use super::factor::Factor;
use super::is_small;
use super::matrix::{GemmError, MatRef};
use super::pack::Pack;
use super::workspace::Workspace;
use crate::dispatch::isa;
use crate::simd::{Float, Isa, MAX_LANES};

/// Rows of A from which a B that is packed already is faster than one that is read in place.
const LEAST_ROWS: usize = 8;

/// All of B, packed once, to be multiplied many times or by many threads.
#[derive(Debug)]
pub struct PackedB<'w, E> {
    /// Panel after panel, each block of k after block, each tile after tile.
    pub(super) data: *const E,
    pub(super) shape: [usize; 2],
    /// Columns of a panel, in the last one at most.
    pub(super) nc: usize,
    isa: Isa,
    borrow: PhantomData<&'w [E]>,
}

// SAFETY: a PackedB is a shared borrow of elements, as `&[E]` is.
unsafe impl<E: Sync> Send for PackedB<'_, E> {}
// SAFETY: as above.
unsafe impl<E: Sync> Sync for PackedB<'_, E> {}

impl<'w, E: Float> PackedB<'w, E> {
    /// Packs `b`, `[k, n]`, into `buffer`, which grows to `k * n` elements and some padding.
    ///
    /// # Panics
    /// If that is more than memory can hold.
    pub fn pack<T: Factor<Sum = E>>(b: MatRef<'_, T>, buffer: &'w mut Workspace<E>) -> Self {
        PackedB::in_panels(b, panel_columns::<E>(), buffer)
    }

    /// Whether products with so many rows of A each gain by a B of shape `[k, n]` packed before, packing
    /// it not counted. It gains .5 to .7 of the time of 8 to 24 rows where B lies in the second-level
    /// cache, and .8 to .95 of that of 64 to 128; nothing with fewer rows, or where B is small.
    pub fn pays(rows: usize, b: [usize; 2]) -> bool {
        rows >= LEAST_ROWS && !is_small::<E>(b)
    }

    /// As [`PackedB::pack`], in panels of at most `nc` columns, whole vectors.
    pub(super) fn in_panels<T: Factor<Sum = E>>(
        b: MatRef<'_, T>,
        nc: usize,
        buffer: &'w mut Workspace<E>,
    ) -> Self {
        let [k, n] = b.shape;
        let columns = n.checked_next_multiple_of(MAX_LANES).unwrap_or(usize::MAX);
        let data = buffer.elements(k.saturating_mul(columns)).cast::<E>();
        // SAFETY: the buffer has just grown to k rows of whole vectors of every instruction set.
        let pack = unsafe { Pack::new(&b, nc, data) };
        let isa = if k > 0 && n > 0 { T::pack(&pack) } else { isa() };
        PackedB { data, shape: b.shape, nc, isa, borrow: PhantomData }
    }

    pub(super) fn check_isa(&self) -> Result<(), GemmError> {
        let running = isa();
        if self.isa == running {
            return Ok(());
        }
        Err(GemmError::PackedForOtherIsa { packed: self.isa, running })
    }
}

impl<E> PackedB<'_, E> {
    /// `[k, n]`.
    pub fn shape(&self) -> [usize; 2] {
        self.shape
    }
}
