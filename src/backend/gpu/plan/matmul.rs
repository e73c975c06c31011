//! Matrix products with any strides, in tiles of 64 x 64, or 16 x 16 for small products.
//!
//! With few tiles or a long k, workgroups compute parts of the sums along k, and a reduction adds the parts.
//!
//! Convolutions share [`Tiles`] and supply their own loads.

use crate::error::{Error, Result};
use crate::layout::{Layout, merge_some_axes};
use crate::shape::Shape;

use super::super::shader::{Module, Source, Store};
use super::words::{Pack, axes_of, pack, words};
use super::{MAX_GROUPS, Plan, check_positions, step, word};

words! {
    /// The words of all products: k is `depth`, `first` the first matrix of the dispatch, `parts` the number of parts
    /// along k.
    TileWords { m: u32, n: u32, depth: u32, first: u32, parts: u32, }
}

words! {
    /// Offsets of A and B, and their steps from row to row and from column to column. The axes are the `rank` axes of
    /// the batch, with steps of A and B.
    ProductWords { from_a: u32, from_b: u32, row_a: u32, column_a: u32, row_b: u32, column_b: u32, rank: u32, }
}

/// The longest part along k.
pub const LONGEST: usize = 1 << 14;

/// The minimum length of a part along k, where parts are used because there are fewer tiles than `BUSY`.
const SHORTEST: usize = 1 << 10;

/// Workgroups that keep a device busy.
const BUSY: usize = 128;

/// The dispatches of products. If there are several parts, each is `F32`.
#[derive(Debug)]
pub struct Products<K> {
    pub plans: Vec<Plan<K>>,
    pub count: usize,
    /// Number of parts of each product.
    pub parts: usize,
}

/// The tiles of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tiles {
    Small,
    Large,
}

impl Tiles {
    /// Returns the tiles for products `[m, n]`.
    pub fn of(m: usize, n: usize) -> Tiles {
        if m.min(n) > 32 { Tiles::Large } else { Tiles::Small }
    }

    fn extent(self) -> usize {
        match self {
            Tiles::Small => 16,
            Tiles::Large => 64,
        }
    }

    /// Returns the suffix of a kernel's name.
    pub fn name(self) -> String {
        self.extent().to_string()
    }

    /// Adds the entry point. `tiles.wgsl` lists the functions that the kernel must define.
    pub fn add_main(self, source: &mut Source) {
        let (each, tile) = (self.extent() / 16, self.extent());
        let row = match self {
            Tiles::Small => "f32",
            Tiles::Large => "vec4<f32>",
        };
        let joined = |f: &dyn Fn(usize) -> String, between: &str| -> String {
            (0..each).map(f).collect::<Vec<_>>().join(between)
        };
        let columns = joined(&|z| format!("tile_b[i][x + {}u]", 16 * z), ", ");
        let add = |y| format!("sum_{y} += tile_a[i][thread.y + {}u] * b;", 16 * y);
        source.add(&format!(
            "const EACH: u32 = {each}u;\nconst TILE: u32 = {tile}u;\n\
             fn columns(i: u32, x: u32) -> {row} {{ return {row}({columns}); }}"
        ));
        let text = shader!("tiles")
            .replace("$SUMS", &joined(&|y| format!("var sum_{y} = {row}(0.0);"), " "))
            .replace("$ADD", &joined(&add, "\n            "))
            .replace("$ALL", &joined(&|y| format!("sum_{y}"), ", "))
            .replace("$AT", if each == 1 { "" } else { "[z]" })
            .replace("$ROW", row);
        source.add(&text);
    }

    /// Returns the number of parts along k for `count` products `[m, depth] × [depth, n]`.
    pub fn parts(self, [m, n, depth, count]: [usize; 4]) -> usize {
        let [across, down] = [n, m].map(|extent| extent.div_ceil(self.extent()));
        let groups = across.saturating_mul(down).saturating_mul(count);
        let idle = BUSY.checked_div(groups).unwrap_or(1);
        idle.min(depth / SHORTEST).max(depth.div_ceil(LONGEST)).max(1)
    }

    /// Returns the dispatches of `count` products `[m, depth] × [depth, n]` in parts. `words` and `axes` are those that
    /// the kernel reads besides.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a position does not fit a word, or if there are too many tiles.
    pub fn plans<K: Copy>(
        self,
        op: &'static str,
        shape: &Shape,
        kernel: K,
        [m, n, depth, count]: [usize; 4],
        parts: usize,
        (words, axes): (&dyn Pack, &[u32]),
    ) -> Result<Products<K>> {
        let all = count.saturating_mul(parts);
        let extents = TileWords {
            m: word(op, shape, m)?,
            n: word(op, shape, n)?,
            depth: word(op, shape, depth)?,
            first: 0,
            parts: word(op, shape, parts)?,
        };
        word(op, shape, all.saturating_mul(m).saturating_mul(n))?;
        let [across, down] = [n, m].map(|extent| extent.div_ceil(self.extent()));
        if across.max(down) > MAX_GROUPS {
            return Err(Error::Overflow { op, shape: *shape });
        }
        let plans = (0..all).step_by(MAX_GROUPS).map(|first| {
            let extents = TileWords { first: first as u32, ..extents };
            let words = pack(op, shape, &[&extents, words], axes)?;
            let grid = [across as u32, down as u32, (all - first).min(MAX_GROUPS) as u32];
            Ok(Plan { kernel, words, grid })
        });
        Ok(Products { plans: plans.collect::<Result<_>>()?, count, parts })
    }
}

/// A product of floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Product {
    pub store: Store,
    pub result: Store,
    pub tiles: Tiles,
}

impl Product {
    /// Returns the kernel's text.
    pub fn module(self) -> Module {
        let mut source = Source::new(&[TileWords::FIELDS, ProductWords::FIELDS], &[self.store; 2]);
        source.result("y", self.result);
        source.add(shader!("matmul"));
        self.tiles.add_main(&mut source);
        let sums = if self.result == self.store { "" } else { "_sums" };
        source.finish(format!("matmul_{}_{}{sums}", self.store.name(), self.tiles.name()))
    }

    /// Returns the dispatches of `[…, m, k] × […, k, n]`.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a position does not fit a word.
    pub fn plans(store: Store, a: &Layout, b: &Layout) -> Result<Products<Product>> {
        let op = "matmul";
        let rank = a.dims().len();
        let (row, column) = (rank - 2, rank - 1);
        let [m, k, n] = [a.dims()[row], a.dims()[column], b.dims()[column]];
        let shape = a.shape();
        for layout in [a, b] {
            check_positions(op, layout)?;
        }
        let nest = merge_some_axes(&[a, b], 0..row);
        let count: usize = nest.dims().iter().product();
        let strides = ProductWords {
            from_a: word(op, shape, a.offset())?,
            from_b: word(op, shape, b.offset())?,
            row_a: step(op, shape, a.strides()[row])?,
            column_a: step(op, shape, a.strides()[column])?,
            row_b: step(op, shape, b.strides()[row])?,
            column_b: step(op, shape, b.strides()[column])?,
            rank: nest.dims().len() as u32,
        };
        let axes = axes_of(op, shape, &nest, 2)?;
        let (tiles, sizes) = (Tiles::of(m, n), [m, n, k, count]);
        let parts = tiles.parts(sizes);
        let result = if parts > 1 { Store::F32 } else { store };
        tiles.plans(op, shape, Product { store, result, tiles }, sizes, parts, (&strides, &axes))
    }
}

pub fn shape_of(a: &Layout, b: &Layout) -> Shape {
    let last = a.dims().len() - 1;
    a.shape().with_axis(last, Some(b.dims()[last]))
}
