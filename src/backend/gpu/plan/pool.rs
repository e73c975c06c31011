//! Pooling. A thread computes one window, or one pixel of a gradient.

use crate::error::Result;
use crate::ops::Geometry;
use crate::shape::Shape;

use super::super::shader::{Module, Source, Store};
use super::windows;
use super::words::{GridWords, words};
use super::{Plan, grid_of, word};

words! {
    /// The padding that a mean counts: before (`front`, `top`, `left`) and after the image. The axes are those of the windows.
    PoolWords { front: u32, top: u32, left: u32, back: u32, bottom: u32, right: u32, }
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
            Pool::Max { store, .. } => ("max_pool", store, shader!("max_pool")),
            Pool::Avg(store) => ("avg_pool", store, shader!("avg_pool")),
            Pool::AvgGrad(store) => ("avg_pool_grad", store, shader!("avg_pool_grad")),
        };
        let mut source = Source::new(&[GridWords::FIELDS, PoolWords::FIELDS], &[store]);
        source.result("y", store);
        source.add(shader!("windows"));
        let mut suffix = "";
        match self {
            Pool::Max { with_positions: true, .. } => {
                source.index_result("position");
                suffix = "_with_positions";
            }
            Pool::Max { .. } => source.add("fn write_position(i: u32, x: u32) {}"),
            Pool::Avg(_) | Pool::AvgGrad(_) => source.add(shader!("divisor")),
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
        let counted = |side: usize| {
            let padding = |axis: usize| geometry.axis(axis).padding[side].max(0).unsigned_abs();
            let words = [0, 1, 2].map(|axis| if counts_padding { padding(axis) } else { 0 });
            Ok([word(op, shape, words[0])?, word(op, shape, words[1])?, word(op, shape, words[2])?])
        };
        let ([front, top, left], [back, bottom, right]) = (counted(0)?, counted(1)?);
        let fields = PoolWords { front, top, left, back, bottom, right };
        let axes = windows::axes_of(op, shape, geometry)?;
        Plan::new(self, (op, shape), numel, grid_of(numel), &[&fields], &axes)
    }
}
