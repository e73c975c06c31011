//! Draws of indices with given weights.
//!
//! ```text
//! tree     node i is the sum of nodes 2i and 2i + 1; the leaves c..2c are the weights
//! draw     u = uniform · root; from the root: to the left if u is less than the left sum, else to the right with
//!          u - left, until a leaf
//! remove   set the leaf to 0, and add up its ancestors again
//! ```
//!
//! Sums of zeros are exactly 0, so that a weight of 0 is never drawn, whatever the rounding of other sums.

use super::{Rng, RngState};
use crate::runtime::memory::Buffer;
use crate::runtime::parallel::{Cost, for_each_chunk_mut};

/// Picoseconds per weight of making a tree, and per draw.
const WEIGHT_COST: usize = 1_500;
const DRAW_COST: usize = 60_000;

impl Rng {
    /// Draws `count` indices from each row of `columns` weights into `indices`, an empty vector; if `distinct`, without
    /// replacement. Each draw takes two words, so that threads may share the rows.
    ///
    /// # Errors
    /// The number of the first row with a weight that is negative, infinite or NaN, or with too few positive ones.
    pub(crate) fn weighted_indices(
        &mut self,
        weights: &[f64],
        columns: usize,
        [rows, count]: [usize; 2],
        distinct: bool,
        mut indices: Vec<i64>,
    ) -> Result<Vec<i64>, usize> {
        indices.resize(rows * count, INVALID);
        let (state, words) = (self.state, 2 * count as u64);
        let after = |row: usize| {
            let position = state.position.wrapping_add(row as u64 * words);
            Rng::from_state(RngState { position, ..state })
        };
        let cost = Cost(WEIGHT_COST * columns / count.max(1) + DRAW_COST);
        for_each_chunk_mut(&mut indices, count, cost, &|first, indices| {
            let mut tree = Buffer::scratch(2 * columns * size_of::<f64>());
            let tree = &mut tree.as_slice_mut::<f64>()[..2 * columns];
            for (row, indices) in (first..).zip(indices.chunks_exact_mut(count)) {
                let weights = &weights[row * columns..][..columns];
                draw(weights, tree, distinct, &mut after(row), indices);
            }
        });
        match indices.iter().position(|&index| index == INVALID) {
            Some(first) => Err(first / count),
            None => {
                *self = after(rows);
                Ok(indices)
            }
        }
    }
}

/// An index that was not drawn.
const INVALID: i64 = -1;

/// Draws indices while there are weights; none if a weight or the sum is invalid. `tree` has two elements per weight.
fn draw(weights: &[f64], tree: &mut [f64], distinct: bool, rng: &mut Rng, indices: &mut [i64]) {
    let leaves = weights.len();
    if leaves == 0 || !weights.iter().all(|&x| x >= 0.0) {
        return;
    }
    tree[leaves..].copy_from_slice(weights);
    for i in (1..leaves).rev() {
        tree[i] = tree[2 * i] + tree[2 * i + 1];
    }
    if tree[1].is_infinite() {
        return;
    }
    for index in indices {
        if tree[1] == 0.0 {
            return;
        }
        let (mut u, mut i) = (rng.uniform::<f64>() * tree[1], 1);
        while i < leaves {
            let [left, right] = [tree[2 * i], tree[2 * i + 1]];
            let is_left = u < left || right == 0.0;
            i = 2 * i + usize::from(!is_left);
            u -= if is_left { 0.0 } else { left };
        }
        *index = (i - leaves) as i64;
        if distinct {
            tree[i] = 0.0;
            while i > 1 {
                i /= 2;
                tree[i] = tree[2 * i] + tree[2 * i + 1];
            }
        }
    }
}
