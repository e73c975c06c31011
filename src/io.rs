//! Tensors in files.
//!
//! | file | what |
//! |---|---|
//! | `safetensors.rs` | reading and writing the safetensors format; modules by path |
//! | `safetensors/header.rs` | what a file says it holds, checked before anything is believed |
//! | `atomic.rs` | files replaced whole |

pub(crate) mod atomic;
pub mod safetensors;
