//! Layers and losses. A model is a tree of structs that implement [`Visit`], which passes each
//! tensor to a visitor by its path.
//!
//! ```
//! use swath::prelude::*;
//! use swath::nn::{self, Visit};
//!
//! struct Scale<B: Backend> {
//!     factor: Tensor<B>,
//!     axis: usize,
//! }
//! swath::module!(Scale<B> { factor; skip axis });
//!
//! let model = Scale { factor: tensor![1.0, 2.0].requires_grad(), axis: 0 };
//! let mut paths = Vec::new();
//! nn::for_each_tensor(&model, |path, tensor, _| paths.push((path.to_owned(), tensor.numel())));
//! assert_eq!(paths, [("factor".to_owned(), 2)]);
//! # let _ = model.axis;
//! # Ok::<(), Error>(())
//! ```
//!
//! | file | what |
//! |---|---|
//! | `visit.rs` | `Visit`, visitors, `Module` |
//! | `module_macro.rs` | `module!` |
//! | `locate.rs` | the path of the layer that failed, in an error |
//! | `init.rs` | how parameters begin |
//! | `linear.rs` `embedding.rs` `layer_norm.rs` `rms_norm.rs` `dropout.rs` `attention.rs` `transformer.rs` | layers |
//! | `conv.rs` `batch_norm.rs` `group_norm.rs` `pool.rs` | layers of images |
//! | `buffer.rs` | tensors that layers replace |
//! | `freeze.rs` | parameters that are not to be trained |
//! | `role.rs` | fields that layers declare parameters or counters |
//! | `sequential.rs` | layers one after the other, functions as layers |
//! | `shared.rs` | one part at several places |
//! | `loss.rs` | losses |
//! | `summary.rs` | a model's tensors as a table |
//! | `convert.rs` | a model in another dtype |

mod attention;
mod batch_norm;
mod buffer;
mod conv;
mod convert;
mod dropout;
mod embedding;
pub(crate) mod empty;
mod freeze;
mod group_norm;
pub mod init;
mod layer_norm;
mod linear;
mod locate;
pub mod loss;
mod module_macro;
mod pool;
mod rms_norm;
#[doc(hidden)]
pub mod role;
mod sequential;
mod shared;
mod summary;
mod transformer;
mod visit;

pub use crate::ops::Activation;
pub use attention::{MultiHeadAttention, MultiHeadAttentionOptions};
pub use batch_norm::{BatchNorm1d, BatchNorm2d, BatchNorm3d, BatchNormOptions};
pub use buffer::Buffer;
pub use conv::{
    Conv1d, Conv2d, Conv3d, ConvLayerOptions, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d,
};
pub use convert::to_dtype;
pub use dropout::Dropout;
pub use embedding::Embedding;
pub use empty::{Empty, empty};
pub use freeze::{freeze, unfreeze};
pub(crate) use freeze::{is_trained, not_a_leaf};
pub use group_norm::{GroupNorm, GroupNormOptions};
pub use layer_norm::{LayerNorm, LayerNormOptions};
pub use linear::{Linear, LinearOptions};
pub use locate::{PartId, locate};
pub use pool::{
    AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveMaxPool1d, AdaptiveMaxPool2d, AvgPool1d,
    AvgPool2d, AvgPool3d, Flatten, MaxPool1d, MaxPool2d, MaxPool3d,
};
pub use rms_norm::{RmsNorm, RmsNormOptions};
pub use sequential::{Func, Sequential};
pub use shared::{Shared, SharedGuard, SharedMut, SharedRef};
pub use summary::{Summary, SummaryRow, Tracking, summary};
pub use transformer::{TransformerBlock, TransformerBlockOptions};
pub use visit::{
    Kind, Module, Visit, Visitor, VisitorMut, for_each_counter, for_each_tensor,
    for_each_tensor_mut,
};
