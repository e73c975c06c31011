//! Fused ops of contiguous rows. A workgroup computes one row.

use crate::error::Result;
use crate::shape::Shape;

use super::super::shader::{Module, Source, Store};
use super::words::{GridWords, words};
use super::{Plan, groups_of, word};

words! {
    /// A row has `n` elements. `epsilon` is ε or the label smoothing; the other words are flags and the ignored index.
    RowWords {
        n: u32, epsilon: f32, has_weight: u32, has_bias: u32, has_ignored: u32, ignored_low: u32, ignored_high: u32,
    }
}

/// A fused op, with the store of its floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "those of `FusedOp`")]
pub enum Rows {
    Softmax { store: Store, log: bool },
    SoftmaxGrad { store: Store, log: bool },
    Norm { store: Store, is_centered: bool },
    NormGrad { store: Store, is_centered: bool },
    CrossEntropy { store: Store },
    CrossEntropyGrad { store: Store },
    Dot { store: Store },
}

impl RowWords {
    /// Sets the target that is ignored.
    pub fn ignore(&mut self, target: Option<i64>) {
        let ignored = target.unwrap_or(0);
        self.has_ignored = target.is_some().into();
        (self.ignored_low, self.ignored_high) = (ignored as u32, (ignored >> 32) as u32);
    }
}

impl Rows {
    /// True if the kernel can report faults.
    pub fn has_faults(self) -> bool {
        matches!(self, Rows::CrossEntropy { .. })
    }

    /// Returns the kernel's text.
    pub fn module(self) -> Module {
        let (name, store, text) = self.operation();
        let mut source = Source::new(&[GridWords::FIELDS, RowWords::FIELDS], &[store]);
        self.bind(&mut source, store);
        source.math();
        source.add(shader!("logarithm_pair"));
        source.add(shader!("rows"));
        let flag = match self {
            Rows::Softmax { log, .. } | Rows::SoftmaxGrad { log, .. } => Some(("LOG", log)),
            Rows::Norm { is_centered, .. } | Rows::NormGrad { is_centered, .. } => {
                Some(("CENTERED", is_centered))
            }
            _ => None,
        };
        if let Some((flag, value)) = flag {
            source.add(&format!("const {flag}: bool = {value};"));
        }
        // The branch that calls it is dead, but must compile.
        if matches!(self, Rows::Norm { is_centered: false, .. }) {
            source.add("fn write_mean(i: u32, x: f32) {}");
        }
        source.add(text);
        source.each_group("i", "row(i, thread);");
        let (flag, value) = flag.unwrap_or(("", false));
        source.finish(format!("{name}_{}_{flag}{value}", store.name()).to_lowercase())
    }

    /// Name, store and text of the op.
    fn operation(self) -> (&'static str, Store, &'static str) {
        match self {
            Rows::Softmax { store, .. } => ("softmax", store, shader!("softmax")),
            Rows::SoftmaxGrad { store, .. } => ("softmax_grad", store, shader!("softmax_grad")),
            Rows::Norm { store, .. } => ("norm", store, shader!("norm")),
            Rows::NormGrad { store, .. } => ("norm_grad", store, shader!("norm_grad")),
            Rows::CrossEntropy { store } => ("cross_entropy", store, shader!("cross_entropy")),
            Rows::CrossEntropyGrad { store } => {
                ("cross_entropy_grad", store, shader!("cross_entropy_grad"))
            }
            Rows::Dot { store } => ("dot", store, shader!("dot")),
        }
    }

    /// Binds the operands after the first, the results, and the faults.
    fn bind(self, source: &mut Source, store: Store) {
        let statistics = Store::F32;
        match self {
            Rows::Softmax { .. } => {}
            Rows::SoftmaxGrad { .. } | Rows::Dot { .. } => source.operand("b", store),
            Rows::Norm { .. } => {
                source.operand("b", store);
                source.operand("c", store);
            }
            Rows::NormGrad { .. } => {
                source.operand("b", store);
                source.operand("c", store);
                source.operand("d", statistics);
            }
            Rows::CrossEntropy { .. } => source.indices("target_of"),
            Rows::CrossEntropyGrad { .. } => {
                source.operand("b", store);
                source.operand("c", statistics);
                source.operand("d", statistics);
                source.indices("target_of");
            }
        }
        if matches!(self, Rows::CrossEntropy { .. } | Rows::CrossEntropyGrad { .. }) {
            source.add(
                "fn ignored(i: u32) -> bool {\n    let x = target_of_data[i];\n    \
                 return p.has_ignored != 0u && x.x == p.ignored_low && x.y == p.ignored_high;\n}",
            );
        }
        source.result("y", store);
        match self {
            Rows::Norm { is_centered: true, .. } => {
                source.result("mean", statistics);
                source.result("reciprocal", statistics);
            }
            Rows::Norm { .. } => source.result("reciprocal", statistics),
            Rows::NormGrad { .. } => source.result("z", statistics),
            Rows::CrossEntropy { .. } => {
                source.result("largest", statistics);
                source.result("rest", statistics);
            }
            _ => {}
        }
        if self.has_faults() {
            source.faults();
        }
    }

    /// Returns the dispatch for `rows` rows of `n` elements, with the other words in `words`.
    ///
    /// # Errors
    /// [`Error::Overflow`](crate::Error::Overflow) if a position does not fit a word.
    pub fn plan(
        self,
        op: &'static str,
        shape: &Shape,
        [rows, n]: [usize; 2],
        words: RowWords,
    ) -> Result<Plan<Rows>> {
        word(op, shape, rows.saturating_mul(n))?;
        let words = RowWords { n: word(op, shape, n)?, ..words };
        Plan::new(self, (op, shape), rows, groups_of(rows), &[&words], &[])
    }
}
