//! Pooling. A thread computes one window, or one pixel of a gradient.

use crate::error::Result;
use crate::ops::Geometry;
use crate::shape::Shape;

use super::super::shader::{Module, Source, Store};
use super::windows;
use super::words::{GridWords, pack, words};
use super::{Plan, grid_of, word};

words! {
    /// The flag is 1 if divisors count padding. The axes are those of the windows.
    PoolWords { counts_padding: u32, }
}

/// A pooling, or a gradient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "those of `FusedOp`")]
pub enum Pool {
    Max { store: Store, with_positions: bool },
    Avg(Store),
    AvgGrad(Store),
}

impl Pool {
    /// Returns the kernel's text.
    pub fn module(self) -> Module {
        let (name, store, text) = match self {
            Pool::Max { store, .. } => {
                ("max_pool", store, include_str!("../shaders/max_pool.wgsl"))
            }
            Pool::Avg(store) => ("avg_pool", store, include_str!("../shaders/avg_pool.wgsl")),
            Pool::AvgGrad(store) => {
                ("avg_pool_grad", store, include_str!("../shaders/avg_pool_grad.wgsl"))
            }
        };
        let mut source = Source::new(&[GridWords::FIELDS, PoolWords::FIELDS], &[store]);
        source.result("y", store);
        source.add(include_str!("../shaders/windows.wgsl"));
        let mut suffix = "";
        match self {
            Pool::Max { with_positions: true, .. } => {
                source.index_result("position");
                suffix = "_with_positions";
            }
            Pool::Max { .. } => source.add("fn write_position(i: u32, x: u32) {}"),
            Pool::Avg(_) | Pool::AvgGrad(_) => source.add(include_str!("../shaders/divisor.wgsl")),
        }
        source.math();
        source.add(text);
        source.each_thread("i", "element(i);");
        source.finish(format!("{name}_{}{suffix}", store.name()))
    }

    /// Returns the dispatch for a contiguous operand and a result of `numel` elements.
    ///
    /// # Errors
    /// [`Error::Overflow`](crate::Error::Overflow) if a position does not fit a word.
    pub fn plan(
        self,
        op: &'static str,
        shape: &Shape,
        numel: usize,
        geometry: &Geometry,
        counts_padding: bool,
    ) -> Result<Plan<Pool>> {
        word(op, shape, shape.numel())?;
        let (grid, across) = grid_of(numel);
        let count = GridWords { count: word(op, shape, numel)?, across };
        let fields = PoolWords { counts_padding: counts_padding.into() };
        let words = pack(op, shape, &[&count, &fields], &windows::axes_of(op, shape, geometry)?)?;
        Ok(Plan { kernel: self, words, grid })
    }
}
