//! Products cut into calls, and the calls shared by the threads.

use std::slice::from_raw_parts_mut;
use std::sync::OnceLock;

use smallvec::SmallVec;

use super::call::{Call, Failure, Operand, run_batch};
use super::layout::{Stored, stored};
use super::library::Library;
use super::plan::Plan;
use swath_kernels::Float;

use crate::backend::cpu::matmul::{Finish, Matrix, Places};
use crate::runtime::parallel::{self, Cost};

/// Multiplications up to which products stay with the embedded one: a batch of 16³ takes 1.3 times as long by
/// OpenBLAS, 1.4 by MKL and 5.8 by BLIS (one thread, Zen 4), one of 32³ 1.05, 1.3 and 2.2, of 64³ 1.0 to 1.25.
const SMALL: usize = 16 * 16 * 16;

/// Picoseconds for a multiplication and an addition.
const COST_PER_TERM: usize = 11;

/// Most products in a call of a batch.
const MOST_OF_BATCH: usize = 16;

/// An operand whose elements are known to lie in its slice.
struct Checked<'a, E> {
    matrix: &'a Matrix<'a, E>,
    stored: Stored,
}

impl<'a, E> Checked<'a, E> {
    /// `None` where BLAS has no words for it.
    fn new(matrix: &'a Matrix<'a, E>) -> Option<Self> {
        matrix.view().ok()?;
        Some(Checked { matrix, stored: stored(matrix)? })
    }

    /// The part of it that begins at an element.
    fn from(&self, row: usize, col: usize) -> Operand<E> {
        let Matrix { data, offset, strides: [down, right], .. } = *self.matrix;
        // Both steps lead to an element that `view` has found in the slice.
        let shift = row as isize * down + col as isize * right;
        let data = data.as_ptr().wrapping_add(offset).wrapping_offset(shift);
        Operand { data, stored: self.stored }
    }
}

struct Out<E>(*mut E);
// SAFETY: parts write distinct tiles of an exclusive borrow, see `gemm`.
unsafe impl<E: Send> Sync for Out<E> {}
impl<E> Out<E> {
    fn at(&self, offset: usize) -> *mut E {
        self.0.wrapping_add(offset)
    }
}

/// Whether the library should compute a product.
fn is_its_work([m, k, n]: [usize; 3]) -> bool {
    m.saturating_mul(n).saturating_mul(k) > SMALL
}

/// C ← A·B, and what follows, in at most so many tiles.
///
/// False if declined. The places then hold anything, as they do where the library failed.
pub(super) fn gemm<E: Float + swath_kernels::Stored>(
    library: &Library,
    tiles: usize,
    [a, b]: [&Matrix<'_, E>; 2],
    finish: Finish<'_, E>,
    places: &mut Places<'_, E>,
) -> Result<bool, Failure> {
    let ([m, k], [k_b, n]) = (a.shape, b.shape);
    let Places { c, sums } = places;
    let keeps = !sums.is_empty();
    let fits = k == k_b && m.checked_mul(n) == Some(c.len()) && (!keeps || sums.len() == c.len());
    if !fits || c.is_empty() || k == 0 || !is_its_work([m, k, n]) {
        return Ok(false);
    }
    let (Some(a), Some(b)) = (Checked::new(a), Checked::new(b)) else { return Ok(false) };
    let plan = Plan::new([m, k, n], [a.stored, b.stored], tiles, library.max_int);
    let (out, sums) = (Out(c.as_mut_ptr()), Out(sums.as_mut_ptr()));
    let tile = |index: usize| -> Result<(), Failure> {
        let ((row, rows), (col, cols)) = plan.tile(index);
        let corner = out.at(row * n + col);
        for &(from, depth) in &plan.depths {
            let call = Call {
                shape: [rows, depth, cols],
                a: a.from(row, from),
                b: b.from(from, col),
                c: corner,
                row: n,
                add: from > 0,
            };
            // SAFETY: all elements of A and B lie in their slices, as `Checked` has found, and so do
            // those of these rows, columns and depths; C has m·n elements, rows of n, and tiles of
            // the plan do not overlap. The first block of k writes what later ones add to.
            unsafe { call.run(library)? };
        }
        if finish.is_nothing() {
            return Ok(());
        }
        for i in row..row + rows {
            let at = i * n + col;
            // SAFETY: as above: a row of the tile; sums that are kept have as many elements as C.
            let (row, sums) = unsafe {
                let kept = if keeps { cols } else { 0 };
                let sums = sums.at(if keeps { at } else { 0 });
                (from_raw_parts_mut(out.at(at), cols), from_raw_parts_mut(sums, kept))
            };
            finish.finish(col, row, sums);
        }
        Ok(())
    };
    let tiles = plan.tiles();
    let cost = Cost(COST_PER_TERM.saturating_mul(k)).times(m * n / tiles);
    if parallel::parts(tiles, cost) <= 1 {
        library.on_one_thread(|| (0..tiles).try_for_each(tile))?;
        return Ok(true);
    }
    let failure = OnceLock::new();
    parallel::for_each_index(tiles, |index| {
        if let Err(of_tile) = library.on_one_thread(|| tile(index)) {
            failure.get_or_init(|| of_tile);
        }
    });
    failure.into_inner().map_or(Ok(true), Err)
}

/// Whether products like A·B go to [`gemm_batch`]: it depends on what the cut depends on, and no product
/// that would be cut goes there.
pub(super) fn takes_batch<E: Float>(
    library: &Library,
    tiles: usize,
    a: &Matrix<'_, E>,
    b: &Matrix<'_, E>,
) -> bool {
    let ([m, k], [_, n]) = (a.shape, b.shape);
    let has_it = library.entries::<E>().is_some_and(|entries| entries.gemm_batch.is_some());
    if !has_it || m <= 1 || n <= 1 || k == 0 || !is_its_work([m, k, n]) {
        return false;
    }
    let (Some(a), Some(b)) = (stored(a), stored(b)) else { return false };
    let plan = Plan::new([m, k, n], [a, b], tiles, library.max_int);
    plan.tiles() == 1 && plan.depths.len() == 1
}

/// C ← A·B for products of one shape, on this thread: C is as many results one after the other.
pub(super) fn gemm_batch<'a, E: Float>(
    library: &Library,
    [m, k, n]: [usize; 3],
    operands: impl Iterator<Item = (Matrix<'a, E>, Matrix<'a, E>)>,
    c: &mut [E],
) -> Result<bool, Failure> {
    let Some(batch) = library.entries::<E>().and_then(|entries| entries.gemm_batch) else {
        return Ok(false);
    };
    if m == 0 || k == 0 || n == 0 {
        return Ok(false);
    }
    let mut addresses: SmallVec<[_; MOST_OF_BATCH]> = SmallVec::new();
    let mut call: Option<Call<E>> = None;
    for ((a, b), c) in operands.zip(c.chunks_exact_mut(m * n)) {
        let (Some(a), Some(b)) = (Checked::new(&a), Checked::new(&b)) else { return Ok(false) };
        if a.matrix.shape != [m, k] || b.matrix.shape != [k, n] {
            return Ok(false);
        }
        let (a, b, c) = (a.from(0, 0), b.from(0, 0), c.as_mut_ptr());
        match &call {
            Some(call) if (a.stored, b.stored) != (call.a.stored, call.b.stored) => {
                return Ok(false);
            }
            Some(_) => {}
            None => call = Some(Call { shape: [m, k, n], a, b, c, row: n, add: false }),
        }
        addresses.push((a.data, b.data, c));
    }
    let Some(call) = call else { return Ok(false) };
    for addresses in addresses.chunks(MOST_OF_BATCH) {
        // SAFETY: each matrix lies in its slice, as `Checked` has found, stored as the first one is;
        // results are disjoint parts of `c`.
        unsafe { library.on_one_thread(|| run_batch(library, batch, &call, addresses))? };
    }
    Ok(true)
}
