//! Helpers for several files of tests.

mod alone;
pub mod counting;
pub mod files;
#[path = "../../examples/train_gpt/model.rs"]
pub mod gpt;
pub mod vectors;

pub use alone::{alone, alone_with};
pub use swath::testing::{agree, inputs, is_full, is_sampled};
