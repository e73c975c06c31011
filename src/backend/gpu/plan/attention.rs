//! Attention and its gradients. A workgroup computes one query or one key, and reads the keys or queries in blocks of
//! 256. The matrix of scores is never stored.

use crate::error::Result;
use crate::layout::{Layout, merge_some_axes};
use crate::ops::AttentionParameters;
use crate::shape::Shape;

use super::super::shader::{GROUP, Module, Source, Store};
use super::elementwise::DropoutWords;
use super::words::{GridWords, Pack, words};
use super::{Plan, check_positions, groups_of, step, word};

words! {
    /// Queries and keys of a batch have `depth` elements, values `width`; the threads for these are powers of two.
    /// `causal` is 1 if queries see no later keys. The words of the mask are its offset and its steps.
    AttentionWords {
        queries: u32, keys: u32, depth: u32, width: u32, scale: f32, causal: u32, from_mask: u32, mask_batch: u32,
        mask_query: u32, mask_key: u32, width_threads: u32, depth_threads: u32,
    }
}

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
            Part::Forward => ("attention", shader!("attention")),
            Part::Queries => ("attention_queries_grad", shader!("attention_queries_grad")),
            Part::Keys => ("attention_keys_grad", shader!("attention_keys_grad")),
        };
        // a: queries, b: keys, c: values.
        let mut source = Source::new(
            &[GridWords::FIELDS, AttentionWords::FIELDS, DropoutWords::FIELDS],
            &[store; 3],
        );
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
        source.add(shader!("rows"));
        source.add(shader!("random"));
        let masked = match mask {
            None => "x",
            Some(Store::Bool) => "select(-infinity(), x, mask(at) != 0u)",
            Some(_) => "x + mask(at)",
        };
        source.add(&format!("fn masked(x: f32, at: u32) -> f32 {{ return {masked}; }}"));
        source.add(&format!("const DROPS: bool = {drops};"));
        source.add(shader!("attention_scores"));
        source.add(text);
        source.each_group("i", "row(i, thread);");
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
        let threads = |x: usize| x.clamp(1, GROUP).next_power_of_two() as u32;
        let mut fields = AttentionWords {
            queries: word(op, shape, queries)?,
            keys: word(op, shape, keys)?,
            depth: word(op, shape, depth)?,
            width: word(op, shape, width)?,
            scale: parameters.scale as f32,
            causal: parameters.causal.into(),
            width_threads: threads(width),
            depth_threads: threads(depth),
            ..AttentionWords::default()
        };
        if let Some(mask) = mask {
            let lead = mask.dims().len() - 2;
            let nest = merge_some_axes(&[mask], 0..lead);
            if nest.dims().len() > 1 {
                return Ok(None);
            }
            check_positions(op, mask)?;
            fields.from_mask = word(op, shape, mask.offset())?;
            fields.mask_batch = nest.strides(0).first().map_or(Ok(0), |&x| step(op, shape, x))?;
            fields.mask_query = step(op, shape, mask.strides()[lead])?;
            fields.mask_key = step(op, shape, mask.strides()[lead + 1])?;
        }
        let dropout = parameters.dropout.map_or(DropoutWords::default(), DropoutWords::of);
        let fields: [&dyn Pack; 2] = [&fields, &dropout];
        Plan::new(self, (op, shape), rows, groups_of(rows), &fields, &[]).map(Some)
    }
}
