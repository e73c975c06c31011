//! Functions of whole rows: softmax and what goes with it, cross-entropy, layer norm, rms norm; each beside its
//! derivative, each several passes over a row that stays in the first-level cache.
//!
//! A function named `…_rows` takes a row-major matrix and enters the instruction set once for all of
//! it. Sums over a row are those of [`crate::sum`]: in `f64`, on a tree that depends on the row's
//! length alone. So a row's result depends on its values alone, on every instruction set.
//!
//! | file | what |
//! |---|---|
//! | `softmax.rs` | softmax, log-softmax, their gradients |
//! | `cross_entropy.rs` | cross-entropy from logits, its gradient |
//! | `layer_norm.rs` | layer norm, its three gradients |
//! | `rms_norm.rs` | rms norm, its two gradients |

mod cross_entropy;
mod layer_norm;
mod rms_norm;
mod softmax;

pub use cross_entropy::CrossEntropyRows;
pub(crate) use cross_entropy::{CrossEntropyGradTask, CrossEntropyTask};
pub use layer_norm::{LayerNormGradRows, LayerNormRows};
pub(crate) use layer_norm::{LayerNormGradTask, LayerNormTask};
pub use rms_norm::{RmsNormGradRows, RmsNormRows};
pub(crate) use rms_norm::{RmsNormGradTask, RmsNormTask};
pub(crate) use softmax::{SoftmaxGradTask, SoftmaxTask};

use crate::dispatch::{ElementTask, FoldTask};
use crate::fold::scan::{ScanColumns, ScanRows};
use crate::optim::{AdamStep, SgdStep};
use crate::random::DropoutTask;
use crate::reduce::Reduce;
use crate::simd::Float;

/// Element types of the functions of rows: `f32` and `f64`. Sealed.
pub trait Rows: Reduce {
    #[doc(hidden)]
    fn run(kernel: RowKernel<'_, Self>);
}

/// A checked call of a kernel, made in this crate alone. Through one function that is not generic, so
/// that the kernels are compiled with this crate.
#[doc(hidden)]
pub struct RowKernel<'a, E>(pub(crate) Kernel<'a, E>);

pub(crate) enum Kernel<'a, E> {
    Softmax(SoftmaxTask<'a, E>),
    SoftmaxGrad(SoftmaxGradTask<'a, E>),
    CrossEntropy(CrossEntropyTask<'a, E>),
    CrossEntropyGrad(CrossEntropyGradTask<'a, E>),
    LayerNorm(LayerNormTask<'a, E>),
    LayerNormGrad(LayerNormGradTask<'a, E>),
    RmsNorm(RmsNormTask<'a, E>),
    RmsNormGrad(RmsNormGradTask<'a, E>),
    ScanRows(ScanRows<'a, E>),
    ScanColumns(ScanColumns<'a, E>),
    Sgd(SgdStep<'a, E>),
    Adam(AdamStep<'a, E>),
    Dropout(DropoutTask<'a, E>),
}

#[inline(always)]
fn fold<E: Float, T: FoldTask<E>>(task: T) -> T::Output {
    E::enter_fold(task)
}

#[inline(always)]
fn map<E: Float, T: ElementTask<E>>(task: T) -> T::Output {
    E::enter(task)
}

macro_rules! impl_rows {
    ($($t:ident)*) => {$(
        impl Rows for $t {
            fn run(kernel: RowKernel<'_, Self>) {
                match kernel.0 {
                    Kernel::Softmax(task) => fold(task),
                    Kernel::SoftmaxGrad(task) => fold(task),
                    Kernel::CrossEntropy(task) => fold(task),
                    Kernel::CrossEntropyGrad(task) => fold(task),
                    Kernel::LayerNorm(task) => fold(task),
                    Kernel::LayerNormGrad(task) => fold(task),
                    Kernel::RmsNorm(task) => fold(task),
                    Kernel::RmsNormGrad(task) => fold(task),
                    Kernel::ScanRows(task) => fold(task),
                    Kernel::ScanColumns(task) => fold(task),
                    Kernel::Sgd(task) => map(task),
                    Kernel::Adam(task) => map(task),
                    Kernel::Dropout(task) => map(task),
                }
            }
        }
    )*};
}
impl_rows!(f32 f64);
