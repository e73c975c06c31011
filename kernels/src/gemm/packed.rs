//! All of B, packed into the tiles that the micro-kernel reads.

use core::marker::PhantomData;

use super::cache::panel_columns;
use super::factor::Factor;
use super::is_small;
use super::matrix::{GemmError, MatRef};
use super::pack::Pack;
use super::workspace::Workspace;
use crate::dispatch::isa;
use crate::simd::{Float, Isa, MAX_LANES};

/// The fewest rows of A for which a packed B is faster than one read in place.
const LEAST_ROWS: usize = 8;

/// All of B, packed once, for many products or many threads.
#[derive(Debug)]
pub struct PackedB<'w, E> {
    /// Panels, in each the blocks of k, in each the tiles.
    pub(super) data: *const E,
    pub(super) shape: [usize; 2],
    /// The most columns of a panel.
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
    /// If the memory cannot be allocated.
    pub fn pack<T: Factor<Sum = E>>(b: MatRef<'_, T>, buffer: &'w mut Workspace<E>) -> Self {
        PackedB::in_panels(b, panel_columns::<E>(), buffer)
    }

    /// True if products with this many rows of A each are faster with a packed B of shape `[k, n]`,
    /// without the time of packing. 8 to 24 rows take .5 to .7 of the time if B is in L2, 64 to 128
    /// rows .8 to .95; fewer rows, or a small B, gain nothing.
    pub fn pays(rows: usize, b: [usize; 2]) -> bool {
        rows >= LEAST_ROWS && !is_small::<E>(b)
    }

    /// [`PackedB::pack`] into panels of at most `nc` columns, a multiple of whole vectors.
    pub(super) fn in_panels<T: Factor<Sum = E>>(
        b: MatRef<'_, T>,
        nc: usize,
        buffer: &'w mut Workspace<E>,
    ) -> Self {
        let [k, n] = b.shape;
        let columns = n.checked_next_multiple_of(MAX_LANES).unwrap_or(usize::MAX);
        let data = buffer.elements(k.saturating_mul(columns)).cast::<E>();
        // SAFETY: the buffer has just grown to k rows of whole vectors on every instruction set.
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
