//! Softmax, log-softmax, cross-entropy, layer norm and RMS norm of each row of a matrix, and their
//! gradients.
//!
//! Each function makes several passes over a row, which stays in the L1 cache meanwhile. A function
//! named `…_rows` takes a row-major matrix and enters the instruction set once for all its rows.
//! Rows are summed like [`crate::sum`]: in `f64`, on a tree that depends on the length of the row
//! alone. So the result of a row depends only on the values of that row, and has the same bits on
//! every instruction set.
//!
//! | file | contents |
//! |---|---|
//! | `softmax.rs` | softmax, log-softmax, their gradients |
//! | `cross_entropy.rs` | cross-entropy from logits, its gradient |
//! | `layer_norm.rs` | layer norm, its three gradients |
//! | `rms_norm.rs` | RMS norm, its two gradients |
//! | `columns.rs`, `cross_entropy_columns.rs` | the first two along columns |

mod columns;
mod cross_entropy;
mod cross_entropy_columns;
mod layer_norm;
mod rms_norm;
mod softmax;

pub(crate) use columns::{SoftmaxColumns, SoftmaxGradColumns};
pub use cross_entropy::CrossEntropyRows;
pub(crate) use cross_entropy::{CrossEntropyGradTask, CrossEntropyTask};
pub use cross_entropy_columns::CrossEntropyColumns;
pub(crate) use cross_entropy_columns::{CrossEntropyColumnsTask, CrossEntropyGradColumnsTask};
pub use layer_norm::{LayerNormGradRows, LayerNormRows};
pub(crate) use layer_norm::{LayerNormGradTask, LayerNormTask};
pub use rms_norm::{RmsNormGradRows, RmsNormRows};
pub(crate) use rms_norm::{RmsNormGradTask, RmsNormTask};
pub(crate) use softmax::{SoftmaxGradTask, SoftmaxTask};
