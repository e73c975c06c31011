//! Batches of products: threads share whole small products, and a common right side is packed once.

use swath_kernels::{self as kernels, Float as _, GemmPath, MatMut, PackedB, PackedGemm};

use super::super::blas::Blas;
use super::part::Outcome;
use super::{Factor, Finish, Matrix, Places, Rounded, Stack, cost, one, refused};
use crate::blas::trace::Path;
use crate::error::Result;
use crate::runtime::parallel::{self, Band, Cost};
use crate::runtime::workspace::Packed as _;

/// Maximum bytes of a right side that is packed once for a batch, as the thread keeps the memory.
const MAX_SHARED_BYTES: usize = 4 << 20;

/// Computes the products `[m, k] × [k, n]` of a batch, without rounding them.
pub(super) fn many<T: Factor>(
    blas: Blas,
    [a, b]: [&Stack<'_, T>; 2],
    finish: Finish<'_, T::Sum>,
    places: Places<'_, T::Sum>,
    [m, k, n]: [usize; 3],
) -> Result<Path> {
    let area = m * n;
    let Places { c, sums, written } = places;
    let (batch, cost) = (c.len() / area, cost(k, finish).times(area));
    let blas = blas.for_batch(batch);
    let each = |i: usize, c, sums| {
        let (operands, places) = ([a.matrix(i), b.matrix(i)], Places { c, sums, written });
        one(blas, operands, finish, places, Rounded::none(), [m, n])
    };
    let outcome = Outcome::new();
    let nothing = Path::Embedded(GemmPath::Blocked);
    if !blas.is_uncut() && parallel::shares_each(batch, cost, usize::MAX) {
        let mut sums = sums.chunks_exact_mut(area);
        for (i, c) in c.chunks_exact_mut(area).enumerate() {
            outcome.record(i, Ok(each(i, c, sums.next().unwrap_or_default())?));
        }
        return outcome.or(nothing);
    }
    let is_shared =
        batch > 1 && b.is_one_matrix() && k * n <= MAX_SHARED_BYTES / size_of::<T::Sum>();
    let is_embedded = !T::IS_SUM || !blas.is_present();
    if is_shared && is_embedded && PackedB::<T::Sum>::pays(m, [k, n]) {
        shared_right(a, b.matrix(0), finish, Places { c, sums, written }, cost)?;
        return Ok(Path::EmbeddedPacked);
    }
    let bands = [Band::new(c, area), Band::new(sums, area)];
    parallel::for_each_band(batch, cost, bands, |range, [c, sums]| {
        let mut sums = sums.chunks_exact_mut(area);
        for (i, c) in range.zip(c.chunks_exact_mut(area)) {
            outcome.record(i, each(i, c, sums.next().unwrap_or_default()));
        }
    });
    outcome.or(nothing)
}

/// Computes a batch of products with one right side, which is packed once.
fn shared_right<T: Factor>(
    a: &Stack<'_, T>,
    b: Matrix<'_, T>,
    finish: Finish<'_, T::Sum>,
    Places { c, sums, written }: Places<'_, T::Sum>,
    cost: Cost,
) -> Result<()> {
    let refused = refused(finish.op);
    let (rows, n) = (a.shape[0], b.shape[1]);
    let (batch, area) = (c.len() / (rows * n), rows * n);
    let (alpha, beta) = (T::Sum::ONE, if finish.add { T::Sum::ONE } else { T::Sum::ZERO });
    T::Sum::with_shared_workspace(|memory| {
        let packed = PackedB::pack(b.view().map_err(refused)?, memory);
        let outcome = Outcome::new();
        let bands = [Band::new(c, area), Band::new(sums, area)];
        parallel::for_each_band(batch, cost, bands, |range, [c, sums]| {
            let mut sums = sums.chunks_exact_mut(n);
            for (i, c) in range.zip(c.chunks_exact_mut(area)) {
                let done = a.matrix(i).view().and_then(|a| {
                    let product = PackedGemm { a, b: &packed, alpha, beta };
                    let c = MatMut::row_major(&mut *c, [rows, n])?;
                    T::Sum::with_workspace(|workspace| kernels::gemm_packed(product, c, workspace))
                });
                outcome.record(i, done.map(drop).map_err(refused));
                written.add(area);
                for row in c.chunks_exact_mut(n) {
                    finish.finish(0, row, sums.next().unwrap_or_default());
                }
            }
        });
        outcome.or(())
    })
}
