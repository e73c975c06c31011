//! swath
pub mod backend;
mod dtype;
mod error;
mod layout;
#[doc(hidden)]
pub mod macros;
pub mod ops;
mod rng;
mod shape;
pub use backend::reference::ReferenceBackend;
pub use backend::{Arg, Backend, IntoBackend, TensorData};
pub use dtype::{DType, Element, HostData, Scalar};
pub use error::{Error, Result};
pub use layout::{Layout, LoopNest, SliceItem, merge_axes};
pub use rng::{RandomFloat, Rng, RngState};
pub use shape::{Axis, MAX_RANK, Shape, Strides, broadcast_index, broadcast_shape};
