//! Matrix products of any strides, in tiles of 64 x 64 (16 x 16 where they are small).
//!
//! ```text
//! words   0..3  m, n, k          3     first matrix
//!         4, 5  offsets          6, 7  steps of A's rows, columns      8, 9  of B's
//!         10    batch axes       11..  for each, the innermost first: extent, step of A, of B
//! ```
//!
//! [`Tiles`] is the part that convolutions share: their factors are read from other places.

use crate::error::{Error, Result};
use crate::layout::{Layout, merge_some_axes};
use crate::shape::Shape;

use super::super::shader::{Module, Source, Store, WORDS};
use super::{MAX_GROUPS, Plan, Words, step, word};

/// First word of the batch axes.
const AXES: usize = 11;

/// The tiles of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tiles {
    /// 16 x 16.
    Small,
    /// 64 x 64.
    Large,
}

impl Tiles {
    /// The tiles for products `[m, n]`.
    pub fn of(m: usize, n: usize) -> Tiles {
        if m.min(n) > 32 { Tiles::Large } else { Tiles::Small }
    }

    fn extent(self) -> usize {
        match self {
            Tiles::Small => 16,
            Tiles::Large => 64,
        }
    }

    /// The end of a kernel's name.
    pub fn name(self) -> String {
        self.extent().to_string()
    }

    /// Adds the entry point. See `tiles.wgsl` for what the kernel must have.
    pub fn add_main(self, source: &mut Source) {
        let (each, tile) = (self.extent() / 16, self.extent());
        source.add(&format!("const EACH: u32 = {each}u;\nconst TILE: u32 = {tile}u;"));
        source.add(include_str!("../shaders/tiles.wgsl"));
    }

    /// The dispatches of `count` products `[m, depth] × [depth, n]`. `words` hold what else the kernel reads.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a position does not fit a word, or if there are too many tiles.
    pub fn plans<K: Copy>(
        self,
        op: &'static str,
        shape: &Shape,
        kernel: K,
        [m, n, depth, count]: [usize; 4],
        mut words: Words,
    ) -> Result<Vec<Plan<K>>> {
        for (at, x) in [m, n, depth].into_iter().enumerate() {
            words[at] = word(op, shape, x)?;
        }
        word(op, shape, count.saturating_mul(m).saturating_mul(n))?;
        let [across, down] = [n, m].map(|extent| extent.div_ceil(self.extent()));
        if across.max(down) > MAX_GROUPS {
            return Err(Error::Overflow { op, shape: *shape });
        }
        let parts = (0..count).step_by(MAX_GROUPS).map(|first| {
            let mut words = words.clone();
            words[3] = first as u32;
            let grid = [across as u32, down as u32, (count - first).min(MAX_GROUPS) as u32];
            Plan { kernel, words, grid }
        });
        Ok(parts.collect())
    }
}

/// A product of floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Product {
    /// Store of A, B and C.
    pub store: Store,
    /// Its tiles.
    pub tiles: Tiles,
}

impl Product {
    /// The module.
    pub fn module(self) -> Module {
        let mut source = Source::new(&[self.store; 2]);
        source.result("y", self.store);
        source.add(include_str!("../shaders/matmul.wgsl"));
        self.tiles.add_main(&mut source);
        source.finish(format!("matmul_{}_{}", self.store.name(), self.tiles.name()))
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
        let mut words = Words::from_elem(0, WORDS);
        let shape = a.shape();
        for (at, layout) in [(4, a), (5, b)] {
            words[at] = word(op, shape, layout.offset())?;
            word(op, shape, layout.extent().map_or(0, |(_, last)| last))?;
        }
        for (at, layout) in [(6, a), (8, b)] {
            words[at] = step(op, shape, layout.strides()[row])?;
            words[at + 1] = step(op, shape, layout.strides()[column])?;
        }
        let nest = merge_some_axes(&[a, b], 0..row);
        let count: usize = nest.dims().iter().product();
        words[10] = nest.dims().len() as u32;
        for (i, axis) in (0..nest.dims().len()).rev().enumerate() {
            let at = AXES + 3 * i;
            words[at] = word(op, shape, nest.dims()[axis])?;
            words[at + 1] = step(op, shape, nest.strides(0)[axis])?;
            words[at + 2] = step(op, shape, nest.strides(1)[axis])?;
        }
        let tiles = Tiles::of(m, n);
        tiles.plans(op, shape, Product { store, tiles }, [m, n, k, count], words)
    }
}

/// Shape of a product.
pub fn shape_of(a: &Layout, b: &Layout) -> Shape {
    let last = a.dims().len() - 1;
    a.shape().with_axis(last, Some(b.dims()[last]))
}
