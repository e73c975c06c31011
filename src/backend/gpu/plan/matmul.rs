//! Matrix products of any strides, in tiles of 64 x 64 (16 x 16 where they are small).
//!
//! ```text
//! words   0..3  m, n, k          4, 5  offsets      6, 7  steps of A's rows, columns      8, 9  of B's
//!         10    first matrix     11    batch axes   12..  for each, the innermost first: extent, step of A, of B
//! ```

use crate::error::{Error, Result};
use crate::layout::{Layout, merge_some_axes};
use crate::shape::Shape;

use super::super::shader::{Module, Source, Store, WORDS};
use super::{MAX_GROUPS, Plan, Words, step, word};

/// First word of the batch axes.
const AXES: usize = 12;

/// A product of floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Product {
    /// Store of A, B and C.
    pub store: Store,
    /// True for tiles of 64 x 64.
    pub is_large: bool,
}

impl Product {
    fn tile(self) -> usize {
        if self.is_large { 64 } else { 16 }
    }

    /// The module.
    pub fn module(self) -> Module {
        let mut source = Source::new(&[self.store; 2]);
        source.result("y", self.store);
        let (each, tile) = (self.tile() / 16, self.tile());
        source.add(&format!("const EACH: u32 = {each}u;\nconst TILE: u32 = {tile}u;"));
        source.add(include_str!("../shaders/matmul.wgsl"));
        source.finish(format!("matmul_{}_{tile}", self.store.name()))
    }

    /// The dispatches of `[…, m, k] × […, k, n]`.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a position does not fit a word.
    pub fn plans(store: Store, a: &Layout, b: &Layout) -> Result<Vec<Plan<Product>>> {
        let op = "matmul";
        let rank = a.dims().len();
        let (row, column) = (rank - 2, rank - 1);
        let [m, k, n] = [a.dims()[row], a.dims()[column], b.dims()[column]];
        let kernel = Product { store, is_large: m.min(n) > 32 };
        let mut words = Words::from_elem(0, WORDS);
        let shape = a.shape();
        for (at, x) in [(0, m), (1, n), (2, k), (4, a.offset()), (5, b.offset())] {
            words[at] = word(op, shape, x)?;
        }
        for layout in [a, b] {
            word(op, shape, layout.extent().map_or(0, |(_, last)| last))?;
        }
        for (at, layout) in [(6, a), (8, b)] {
            words[at] = step(op, shape, layout.strides()[row])?;
            words[at + 1] = step(op, shape, layout.strides()[column])?;
        }
        let nest = merge_some_axes(&[a, b], 0..row);
        let count: usize = nest.dims().iter().product();
        word(op, shape, count.saturating_mul(m).saturating_mul(n))?;
        words[11] = nest.dims().len() as u32;
        for (i, axis) in (0..nest.dims().len()).rev().enumerate() {
            let at = AXES + 3 * i;
            words[at] = word(op, shape, nest.dims()[axis])?;
            words[at + 1] = step(op, shape, nest.strides(0)[axis])?;
            words[at + 2] = step(op, shape, nest.strides(1)[axis])?;
        }
        let tile = kernel.tile();
        let [across, down] = [n.div_ceil(tile), m.div_ceil(tile)];
        if across.max(down) > MAX_GROUPS {
            return Err(Error::Overflow { op, shape: *shape });
        }
        let parts = (0..count).step_by(MAX_GROUPS).map(|first| {
            let mut words = words.clone();
            words[10] = first as u32;
            let grid = [across as u32, down as u32, (count - first).min(MAX_GROUPS) as u32];
            Plan { kernel, words, grid }
        });
        Ok(parts.collect())
    }
}

/// Shape of a product.
pub fn shape_of(a: &Layout, b: &Layout) -> Shape {
    let last = a.dims().len() - 1;
    a.shape().with_axis(last, Some(b.dims()[last]))
}
