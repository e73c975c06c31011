//! Data-parallel training on several processes or threads, with the same bits for any number of them.
//!
//! ```text
//! optimizer, checkpoint      unchanged: every rank has the same gradients
//!    |
//! DataParallel               micro-batches, their gradients added in a fixed order
//!    |
//! World                      agreement before everything that is done together; deadlines
//!    |
//! Transport                  threads of one process, MPI (feature `mpi`), or one of your own
//! ```
//!
//! A *rank* is one of the processes or threads that train together. *Beyond one machine*
//! (`docs/BEYOND_ONE_MACHINE.md`) says how to start them, and what each error means.
//!
//! | file | what |
//! |---|---|
//! | `world.rs` | [`World`]: barrier, broadcast, gather; waiting, at most until a deadline |
//! | `agreement.rs` | the proposals of the ranks before an operation, and the decision |
//! | `data_parallel.rs` | [`DataParallel`]: means of gradients, buffers and metrics |
//! | `model.rs` | the tensors of a model, read and replaced in one order |
//! | `tree.rs` `reduce.rs` | the order of the additions; who makes which |
//! | `batch.rs` `sampler.rs` | what is cut into micro-batches; the order of a data set |
//! | `sharded.rs` | [`ShardedOptimizer`] |
//! | `transport.rs` `local.rs` `mpi.rs` | [`Transport`] and its two implementations |

mod agreement;
mod batch;
mod data_parallel;
mod local;
mod model;
#[cfg(feature = "mpi")]
mod mpi;
mod reduce;
mod sampler;
mod sharded;
mod transport;
mod tree;
mod world;

pub use batch::Batch;
pub use data_parallel::{DataParallel, Mean, MicroBatch, Outcome};
pub use sampler::DistributedSampler;
pub use sharded::ShardedOptimizer;
pub use transport::Transport;
pub use world::World;
