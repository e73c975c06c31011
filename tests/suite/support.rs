//! Helpers for several files of tests.

mod alone;
pub mod counting;
pub mod files;
#[path = "../../examples/train_gpt/model.rs"]
pub mod gpt;
pub mod vectors;

pub use crate::testing::suite::{agree, inputs, is_full, is_sampled};
pub use alone::{alone, alone_with};
