//! Helpers for several files of tests.

pub mod agree;
mod alone;
pub mod counting;
mod effort;
pub mod files;
#[path = "../../examples/train_gpt/model.rs"]
pub mod gpt;
pub mod inputs;
pub mod oracle;
pub mod ulp;
pub mod vectors;

pub use alone::{alone, alone_with};
pub use effort::{is_full, is_sampled};
