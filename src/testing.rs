//! With the feature `testing-suite`, the tests of backends of other crates: `backend_suite!` and `Tested`; see
//! `docs/BACKENDS.md`. No part of a program.
//!
//! The rest, with the feature `testing`, is for this crate's tests of its tests: the rows of the op table as text,
//! derivative rules as they run, whether work was shared by threads, and memory that nothing has written.

mod rows;
#[cfg(feature = "testing-suite")]
#[doc(hidden)]
pub mod suite;

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

#[cfg(feature = "testing-suite")]
#[doc(inline)]
pub use crate::__backend_suite as backend_suite;
use crate::autodiff::graph::{InputGradients, Upstream};
pub use crate::autodiff::rules::row_gradient;
use crate::backend::Backend;
use crate::error::Result;
pub use crate::runtime::memory::unwritten;
use crate::runtime::on_drop::OnDrop;
pub use crate::runtime::parallel::shared_regions;
use crate::tensor::Tensor;
pub use rows::{ROWS, Row, RowRule};
#[cfg(feature = "testing-suite")]
#[doc(inline)]
pub use suite::Tested;

/// A derivative rule that has just run in a backward pass.
pub struct RuleRun<'a, B: Backend> {
    /// The op, by the name under which it is recorded.
    pub op: &'static str,
    /// The upstream gradient.
    pub g: &'a Tensor<B>,
    /// True if the pass is itself recorded.
    pub create_graph: bool,
    /// What the rule returned, for each input; a test may change it.
    pub gradients: &'a mut [Option<Tensor<B>>],
}

type Hook<B> = dyn Fn(&mut RuleRun<'_, B>) -> Result<()>;

thread_local! {
    /// An `Rc<Hook<B>>` for some `B`.
    static HOOK: RefCell<Option<Box<dyn Any>>> = const { RefCell::new(None) };
}

/// Runs `f`; in backward passes of this thread and this backend, `hook` is called after each rule.
pub fn with_rule_hook<B: Backend, R>(
    hook: impl Fn(&mut RuleRun<'_, B>) -> Result<()> + 'static,
    f: impl FnOnce() -> R,
) -> R {
    let hook: Rc<Hook<B>> = Rc::new(hook);
    let mut outer = HOOK.replace(Some(Box::new(hook)));
    let _restore = OnDrop(move || HOOK.set(outer.take()));
    f()
}

/// What the rule of `op` returned, after the hook.
pub(crate) fn after_rule<B: Backend>(
    op: &'static str,
    upstream: &Upstream<'_, B>,
    mut gradients: InputGradients<B>,
) -> Result<InputGradients<B>> {
    let hook = HOOK.with_borrow(|hook| hook.as_ref()?.downcast_ref::<Rc<Hook<B>>>().cloned());
    if let Some(hook) = hook {
        let (g, create_graph) = (upstream.g, upstream.create_graph());
        hook(&mut RuleRun { op, g, create_graph, gradients: &mut gradients })?;
    }
    Ok(gradients)
}
