//! The tests of the public interface, one program: what they compile of generic code they share.
//!
//! `cargo test --test suite gradcheck::` runs those of one file. They run side by side, so none may
//! change what belongs to the process (threads, environment, current folder); a test that must, or that
//! measures the process's memory, runs in a process of its own: [`support::alone`].

mod accumulate;
mod along_k;
mod anomaly;
mod attention;
mod attention_memory;
mod autodiff;
mod backends;
mod checkpoint;
mod checkpoint_memory;
mod custom;
mod derivatives;
mod edges;
mod einsum;
mod errors;
mod fixed_order;
mod fused;
mod gpt;
mod gradcheck;
mod gradient_range;
mod graph;
mod isa;
mod jvp;
mod layout;
mod linear;
mod linear_activation;
mod memory;
mod minimal;
mod mutation;
mod nn;
mod ops_page;
mod optim;
mod optim_memory;
mod products_bits;
mod products_memory;
mod products_specials;
mod programs;
mod safetensors;
mod safetensors_memory;
mod series;
mod strides;
mod support;
mod tensor;
mod trace;
mod walks;

#[global_allocator]
static ALLOCATOR: support::counting::Counting = support::counting::Counting;
