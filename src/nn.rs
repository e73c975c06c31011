//! Layers and losses. A model is a tree of structs that [`Visit`]s its tensors by path.
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

mod visit;

pub use visit::{Kind, Module, Visit, Visitor, VisitorMut, for_each_tensor, for_each_tensor_mut};
