//! Attention and its gradients. A workgroup computes one query or one key, and reads the keys or queries in blocks of
//! 256. The matrix of scores is never stored.
//!
//! ```text
//! words   0  workgroups: queries or keys of all batches     1  workgroups in a row of the grid
//!         2, 3  queries, keys of a batch                    4..8   seed and stream of the dropout
//!         8  elements of a query and of a key               9, 10  threshold and scale of the dropout
//!         11 elements of a value      12 bits of the scale  13     1 if queries see no later keys
//!         14..18  offset of the mask, steps along batches, queries, keys
//!         18, 19  threads for the elements of a value and of a query: powers of two
//! ```

use crate::error::Result;
use crate::layout::{Layout, merge_some_axes};
use crate::ops::AttentionParameters;
use crate::shape::Shape;

use super::super::shader::{GROUP, Module, Source, Store, WORDS};
use super::elementwise::put_mask;
use super::{Plan, Words, groups_of, step, word};

/// Maximum number of elements of a query or a value.
pub const MOST: usize = 1024;

/// The results of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// The result, and the statistics of its rows.
    Forward,
    Queries,
    Keys,
}

/// A kernel of attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Attention {
    pub part: Part,
    /// Store of queries, keys and values.
    pub store: Store,
    pub mask: Option<Store>,
    pub drops: bool,
}

/// Extents of an attention.
#[derive(Clone, Copy, Debug)]
pub struct Extents {
    pub batches: usize,
    pub queries: usize,
    pub keys: usize,
    /// Elements of a query and of a key.
    pub depth: usize,
    /// Elements of a value.
    pub width: usize,
}

impl Attention {
    /// Returns the kernel's text.
    pub fn module(self) -> Module {
        let Attention { part, store, mask, drops } = self;
        let (name, text) = match part {
            Part::Forward => ("attention", include_str!("../shaders/attention.wgsl")),
            Part::Queries => {
                ("attention_queries_grad", include_str!("../shaders/attention_queries_grad.wgsl"))
            }
            Part::Keys => {
                ("attention_keys_grad", include_str!("../shaders/attention_keys_grad.wgsl"))
            }
        };
        // a: queries, b: keys, c: values.
        let mut source = Source::new(&[store; 3]);
        if part != Part::Forward {
            source.operand("g", store);
            source.operand("statistic", Store::F32);
        }
        if let Some(mask) = mask {
            source.operand("mask", mask);
        }
        match part {
            Part::Forward => {
                for result in ["y", "largest", "inverse"] {
                    source.result(result, Store::F32);
                }
            }
            Part::Queries => source.result("y", store),
            Part::Keys => {
                source.result("y", store);
                source.result("z", store);
            }
        }
        source.math();
        source.add(include_str!("../shaders/rows.wgsl"));
        source.add(include_str!("../shaders/random.wgsl"));
        let masked = match mask {
            None => "x",
            Some(Store::Bool) => "select(-infinity(), x, mask(at) != 0u)",
            Some(_) => "x + mask(at)",
        };
        source.add(&format!("fn masked(x: f32, at: u32) -> f32 {{ return {masked}; }}"));
        source.add(&format!("const DROPS: bool = {drops};"));
        source.add(include_str!("../shaders/attention_scores.wgsl"));
        source.add(text);
        source.each_group([0, 1], "i", "row(i, thread);");
        let mask = mask.map_or("unmasked", Store::name);
        let drops = if drops { "_dropout" } else { "" };
        source.finish(format!("{name}_{}_{mask}{drops}", store.name()))
    }

    /// Returns the dispatch for contiguous operands and a mask `[…, t, s]` of any layout; `None` if the batch axes of
    /// the mask cannot be merged into one.
    ///
    /// # Errors
    /// [`Error::Overflow`](crate::Error::Overflow) if a position does not fit a word.
    pub fn plan(
        self,
        op: &'static str,
        shape: &Shape,
        extents: Extents,
        mask: Option<&Layout>,
        parameters: &AttentionParameters,
    ) -> Result<Option<Plan<Attention>>> {
        let Extents { batches, queries, keys, depth, width } = extents;
        let rows = batches.saturating_mul(if self.part == Part::Keys { keys } else { queries });
        // The largest positions, and the largest index of a weight for the dropout.
        let longest = queries.max(keys).saturating_mul(depth.max(width).max(1));
        word(op, shape, batches.saturating_mul(longest))?;
        word(op, shape, batches.saturating_mul(queries).saturating_mul(keys))?;
        let (grid, across) = groups_of(rows);
        let mut words = Words::from_elem(0, WORDS);
        (words[0], words[1]) = (word(op, shape, rows)?, across);
        if let Some(dropout) = parameters.dropout {
            put_mask(&mut words, dropout);
        }
        for (at, x) in [(2, queries), (3, keys), (8, depth), (11, width)] {
            words[at] = word(op, shape, x)?;
        }
        words[12] = (parameters.scale as f32).to_bits();
        words[13] = parameters.causal.into();
        if let Some(mask) = mask {
            let lead = mask.dims().len() - 2;
            let nest = merge_some_axes(&[mask], 0..lead);
            if nest.dims().len() > 1 {
                return Ok(None);
            }
            word(op, shape, mask.extent(op)?.map_or(0, |(_, last)| last))?;
            words[14] = word(op, shape, mask.offset())?;
            words[15] = nest.strides(0).first().map_or(Ok(0), |&x| step(op, shape, x))?;
            words[16] = step(op, shape, mask.strides()[lead])?;
            words[17] = step(op, shape, mask.strides()[lead + 1])?;
        }
        for (at, x) in [(18, width), (19, depth)] {
            words[at] = x.clamp(1, GROUP).next_power_of_two() as u32;
        }
        Ok(Some(Plan { kernel: self, words, grid }))
    }
}
