//! Batches of products: threads share whole small products, and a common right side is packed once.

use swath_kernels::{GemmPath, PackedB};

use super::super::blas::Blas;
use super::{Factor, Outcome, Part, Stack, Task, cost, one, refused};
use crate::blas::trace::Path;
use crate::error::Result;
use crate::runtime::parallel::{self, Band};
use crate::runtime::workspace::Packed as _;

/// Maximum bytes of a right side that is packed once for a batch, as the thread keeps the memory.
const MAX_SHARED_BYTES: usize = 4 << 20;

/// Computes the products of a batch, without rounding them; `sums` is empty if they are not kept.
pub(super) fn many<T: Factor>(
    blas: Blas,
    task: &Task<'_, T::Sum>,
    [a, b]: [&Stack<'_, T>; 2],
    [c, sums]: [&mut [T::Sum]; 2],
) -> Result<Path> {
    let ([m, k], [_, n]) = (a.shape, b.shape);
    let area = m * n;
    let (batch, cost) = (c.len() / area, cost(k, &task.epilogue).times(area));
    let blas = blas.for_batch(batch);
    let part = |i: usize, c, sums| {
        let operands = [a.matrix(i).view()?, b.matrix(i).view()?];
        Part::new(task, operands, c, sums)
    };
    let each = |i, c, sums| one(blas, &mut part(i, c, sums).map_err(refused(task.op))?);
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
    let bands = [Band::new(c, area), Band::new(sums, area)];
    if is_shared && is_embedded && PackedB::<T::Sum>::pays(m, [k, n]) {
        T::Sum::with_shared_workspace(|memory| {
            let b = b.matrix(0).view().map_err(refused(task.op))?;
            let packed = &PackedB::pack(b, memory);
            parallel::for_each_band(batch, cost, bands, |range, [c, sums]| {
                let mut sums = sums.chunks_exact_mut(area);
                for (i, c) in range.zip(c.chunks_exact_mut(area)) {
                    let part = part(i, c, sums.next().unwrap_or_default());
                    let done =
                        part.map_err(refused(task.op)).and_then(|mut part| part.run_by(packed));
                    outcome.record(i, done.map(|_| Path::EmbeddedPacked));
                }
            });
            Ok(())
        })?;
        return outcome.or(Path::EmbeddedPacked);
    }
    parallel::for_each_band(batch, cost, bands, |range, [c, sums]| {
        let mut sums = sums.chunks_exact_mut(area);
        for (i, c) in range.zip(c.chunks_exact_mut(area)) {
            outcome.record(i, each(i, c, sums.next().unwrap_or_default()));
        }
    });
    outcome.or(nothing)
}
