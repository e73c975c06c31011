//! Products with a long k and a C too small to be cut: threads compute blocks of k, whose sums are added in
//! order.
//!
//! The result is defined as a sum over blocks of KC values of k, so the bits do not depend on which thread
//! computes a block.

use swath_kernels::{Gemm, GemmPath, MatMut, gemm, gemm::KC};

use super::{Factor, Part, Pieces, refused, share};
use crate::dtype::Element as _;
use crate::error::Result;
use crate::runtime::memory::Buffer;
use crate::runtime::parallel::{Cost, for_each_chunk_mut};
use crate::runtime::workspace::Packed as _;
use crate::shape::Shape;

/// Minimum elements of C per thread for C to be cut: smaller parts would mostly be edges of tiles.
const MIN_AREA: usize = 1024;

/// Maximum number of elements of the blocks' sums in memory.
const SUMS_LEN: usize = 1 << 18;

/// Elements of a block's sum per unit of work, and picoseconds per element.
const ADD_UNIT: usize = 1024;
const ADD_COST: usize = 200;

/// True if up to `threads` threads should share the blocks of k, at least two blocks each.
pub(super) fn fits([m, n]: [usize; 2], k: usize, threads: usize) -> bool {
    let area = m * n;
    let threads = threads.min(SUMS_LEN / area).min(k / KC / 2);
    threads > 1 && area < threads * MIN_AREA
}

/// Computes the sums of a product, or adds them to its output; returns the loops of the first block.
pub(super) fn sums<T: Factor>(part: &mut Part<'_, T>) -> Result<GemmPath> {
    let (op, [m, _, n], mut a, mut b) = (part.task.op, part.shape(), part.a, part.b);
    let (area, blocks) = (m * n, a.shape()[1].div_ceil(KC));
    let at_once = (SUMS_LEN / area).clamp(1, blocks);
    let mut memory = Buffer::new(op, &Shape::from([1 + at_once, m, n]), T::Sum::DTYPE)?;
    let (total, memory) = memory.as_slice_mut::<T::Sum>().split_at_mut(area);
    let mut path = GemmPath::Blocked;
    for from in (0..blocks).step_by(at_once) {
        let mut pieces = Pieces::new();
        for sums in memory.chunks_exact_mut(area).take(at_once.min(blocks - from)) {
            let (a_block, a_rest) = a.split_cols(KC.min(a.shape()[1]));
            let (b_block, b_rest) = b.split_rows(KC.min(b.shape()[0]));
            pieces.push((a_block, b_block, sums));
            (a, b) = (a_rest, b_rest);
        }
        let count = pieces.len();
        let first_path = share(pieces, GemmPath::Blocked, |(a, b, sums)| {
            let sums = MatMut::row_major(sums, [m, n]).map_err(refused(op))?;
            T::Sum::with_workspace(|memory| gemm(Gemm::new(a, b), sums, memory))
                .map_err(refused(op))
        })?;
        if from == 0 {
            path = first_path;
        }
        let memory = &*memory;
        for_each_chunk_mut(total, ADD_UNIT, Cost(ADD_COST).times(count), &|first, total| {
            for (i, sums) in memory.chunks_exact(area).take(count).enumerate() {
                let sums = &sums[first * ADD_UNIT..][..total.len()];
                match from + i {
                    0 => total.copy_from_slice(sums),
                    _ => total.iter_mut().zip(sums).for_each(|(y, &x)| *y = *y + x),
                }
            }
        });
    }
    let c = part.c.list_mut().expect("the output of a whole product");
    if part.task.add {
        c.iter_mut().zip(&*total).for_each(|(y, &x)| *y = *y + x);
    } else {
        c.copy_from_slice(total);
    }
    Ok(path)
}
