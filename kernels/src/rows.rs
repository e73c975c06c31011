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
