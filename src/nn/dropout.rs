//! [`Dropout`].

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{Module, PartId, Visit, Visitor, VisitorMut, locate};
use crate::autodiff::replayed;
use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::ops::DropoutMask;
use crate::rng::Rng;
use crate::runtime::recording::micro_batch;
use crate::shape::Shape;
use crate::tensor::Tensor;

/// Dropout: in training, zeroes each element with probability `p` and divides the others by
/// `1 - p`; in evaluation, or if `p` is 0, returns its input. A new layer is in training mode.
///
/// The zeros of the n-th call depend only on the layer's seed, on n and on the element's row-major
/// index. Seed and n are counters named `seed` and `step`, so that a model loaded from a file that has
/// them continues with the same zeros. Of micro-batches of [`DataParallel`](crate::distributed::DataParallel),
/// each has zeros of its own.
///
/// ```
/// use swath::nn::{Dropout, Module};
/// use swath::prelude::*;
///
/// let mut dropout = Dropout::new(0.5, &mut Rng::seed(1))?;
/// let x = Tensor::<CpuBackend>::ones(100, DType::F32)?;
/// let (a, b) = (dropout.forward(&x)?, dropout.forward(&x)?);
/// assert_ne!(a.to_vec::<f32>()?, b.to_vec::<f32>()?);
/// Module::<CpuBackend>::set_training(&mut dropout, false);
/// assert_eq!(dropout.forward(&x)?.to_vec::<f32>()?, [1.0; 100]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct Dropout {
    p: f64,
    training: AtomicBool,
    seed: AtomicU64,
    step: AtomicU64,
}

impl Dropout {
    /// Creates a layer with a seed drawn from `rng`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] unless `0 <= p < 1`.
    pub fn new(p: f64, rng: &mut Rng) -> Result<Self> {
        if !(0.0..1.0).contains(&p) {
            let reason = format!("p must be in [0, 1), got {p}");
            return Err(Error::InvalidArgument { op: "dropout", reason });
        }
        let seed = AtomicU64::new(rng.next_u64());
        Ok(Dropout { p, training: AtomicBool::new(true), seed, step: AtomicU64::new(0) })
    }

    /// The probability of a zero.
    pub fn p(&self) -> f64 {
        self.p
    }

    /// True in training mode.
    pub fn is_training(&self) -> bool {
        self.training.load(Ordering::Relaxed)
    }

    /// Returns the mask of the next call, and counts it as a call; `None` if nothing is to be
    /// zeroed. In the replay of a checkpointed function, returns that of its first run.
    pub fn next_mask(&self) -> Option<DropoutMask> {
        let draw = || DropoutMask {
            p: self.p,
            seed: self.seed.load(Ordering::Relaxed),
            stream: self.step.fetch_add(1, Ordering::Relaxed).wrapping_add(micro_batch() << 40),
        };
        replayed(|| (self.is_training() && self.p > 0.0).then(draw))
    }

    fn buffers(&self) -> [(&'static str, &AtomicU64); 2] {
        [("seed", &self.seed), ("step", &self.step)]
    }
}

/// The bits of a counter, as an `I64` tensor without axes.
fn as_tensor<B: Backend>(counter: &AtomicU64) -> Tensor<B> {
    let value = counter.load(Ordering::Relaxed).cast_signed();
    Tensor::full(Shape::scalar(), value).expect("room for eight bytes")
}

impl<B: Backend> Visit<B> for Dropout {
    fn visit(&self, visitor: &mut dyn Visitor<B>) {
        visitor.part(PartId::of(self));
        visitor.training(&self.training);
        for (name, counter) in self.buffers() {
            visitor.enter(name);
            visitor.counter(&as_tensor(counter));
            visitor.leave();
        }
    }

    /// A buffer whose new value has another shape or dtype keeps its old value.
    fn visit_mut(&mut self, visitor: &mut dyn VisitorMut<B>) {
        for (name, counter) in self.buffers() {
            let mut tensor = as_tensor(counter);
            visitor.enter(name);
            visitor.counter(&mut tensor);
            visitor.leave();
            if let Ok(value) = tensor.item::<i64>() {
                counter.store(value.cast_unsigned(), Ordering::Relaxed);
            }
        }
    }
}

impl<B: Backend> Module<B> for Dropout {
    fn forward(&self, x: &Tensor<B>) -> Result<Tensor<B>> {
        match self.next_mask() {
            Some(mask) => x.dropout(mask).map_err(|error| locate::<B>(self, error)),
            None => Ok(x.clone()),
        }
    }
}
