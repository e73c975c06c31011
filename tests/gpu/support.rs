//! Helpers, those of the suite.

#[path = "../suite/support/alone.rs"]
mod alone;
#[path = "../suite/support/counting.rs"]
pub mod counting;
#[path = "../../examples/train_gpt/model.rs"]
pub mod gpt;

pub use alone::alone;
