//! Reverse-mode automatic differentiation over any backend.
//!
//! ```text
//! forward    tensor method ─ computes on the backend, then record(): GraphNode { inputs, rule }
//! backward   run(): nodes by decreasing id ─ rule.backward(g) ─ sum_to the input's shape ─ add up
//! ```
//!
//! - A [`Tensor`](crate::Tensor) holds its values and, if tracked, a shared `GraphNode`. A node
//!   holds the nodes of its inputs and a *rule*: the derivative with only those values that it
//!   needs. Values that no rule needs are freed as soon as the program drops them.
//! - Node ids increase in the order of creation, so the id of an input is smaller than those of its
//!   consumers: descending ids are a topological order, found without recursion.
//! - A backward pass takes each node's rule and inputs out as it visits it, so that memory is freed
//!   while it runs. A second pass finds the node released and returns an error.
//! - Rules are written with tensor methods. They run unrecorded, or recorded if the gradients will
//!   be differentiated (`create_graph`).
//!
//! | file | what |
//! |---|---|
//! | `graph.rs` | nodes, recording, dropping a deep graph without recursion |
//! | `rules.rs` | the op table's derivatives, expanded |
//! | `ops/*.rs` | derivatives of ops with parameters, whose forward side is in `tensor/` |
//! | `backward.rs` | the pass, its options |
//! | `visited.rs` | the nodes that it visits, in order |
//! | `pending.rs` | gradients while they are added up, those of ranges of a tensor |
//! | `gradients.rs` | what it returns |
//! | `ids.rs` | maps and sets of node ids |
//! | `mode.rs` | `no_grad` |
//! | `checkpoint.rs` | functions that are run again instead of keeping their values |
//! | `tape.rs` | what their first run leaves for the replay |
//! | `anomaly.rs` | finding the op that makes NaN |
//! | `dot.rs` | the graph as text |
//! | `custom.rs` | ops with a gradient that the program defines |
//! | `functional.rs` | derivatives of functions: `jacobian`, `jvp`, `hessian_vector_product` |
//! | `check.rs` | finite differences |
//! | `scratch.rs` | collections kept from pass to pass |

pub(crate) mod anomaly;
pub(crate) mod backward;
pub(crate) mod check;
pub(crate) mod checkpoint;
pub(crate) mod custom;
mod dot;
pub(crate) mod functional;
pub(crate) mod gradients;
pub(crate) mod graph;
pub(crate) mod ids;
pub(crate) mod mode;
pub(crate) mod ops;
pub(crate) mod pending;
pub(crate) mod rules;
pub(crate) mod scratch;
pub(crate) mod tape;
mod visited;

pub use anomaly::detect_anomaly;
pub use backward::{Backward, Keep, grad};
pub use check::{GradCheck, check_gradients, numerical_gradient};
pub use checkpoint::{
    CheckpointLayer, CheckpointOutput, checkpoint, checkpoint_sequential, checkpoint_with,
    is_checkpointing, is_recomputing, with_checkpoint_mode,
};
pub use custom::CustomOp;
pub use functional::{hessian, hessian_vector_product, jacobian, jvp, vjp};
pub use gradients::Gradients;
pub use mode::{is_grad_enabled, no_grad};
pub use tape::replayed;
