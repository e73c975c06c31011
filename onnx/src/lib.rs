//! ONNX models as modules of swath.
//!
//! ```no_run
//! use swath::cpu::prelude::*;
//! let model = swath_onnx::Model::open("det.onnx")?;
//! let outputs = model.run([("x", Tensor::zeros((1, 3, 640, 640), DType::F32)?)])?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | file | what |
//! |---|---|
//! | `model.rs` | `Model`, a file that is parsed and checked; `Outputs` |
//! | `graph.rs` | `Graph`, a model as a module |
//! | `proto.rs` | the messages of a file |
//! | `weights.rs` | tensors in a file's memory |
//! | `program.rs` | the graph as it is computed |
//! | `run.rs` | computing it |
//! | `prepare.rs` | rewriting it for inference; `prepare/` has the rules |
//! | `row.rs` | what an operator is |
//! | `export.rs` | models of swath as files; `export/` has the backend that records them |
//! | `ops/` | the operators, one file for each family |

#[doc(hidden)]
pub mod cases;
mod error;
mod export;
mod graph;
mod model;
mod ops;
mod prepare;
mod program;
mod proto;
mod row;
mod run;
mod weights;

pub use error::{Error, Result};
pub use export::{Export, Exported, Trace, copy_values, export};
pub use graph::Graph;
pub use model::{Model, Outputs, Plan, Summary};
pub use prepare::{Prepare, RULES, Rule};
pub use program::{Extent, Kind, Port};
pub use run::Value;
