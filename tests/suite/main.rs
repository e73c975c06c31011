//! Tests of the public interface, in one program, so that generic code is compiled once.
//!
//! `cargo test --test suite gradcheck::` runs the tests of one file. Tests run concurrently, so none may
//! change global state (threads, environment, current folder); a test that must, or that measures the memory
//! of the process, runs in its own process: [`support::alone`].

mod accumulate;
mod along_k;
mod anomaly;
mod any;
mod arithmetic;
mod attention;
mod attention_memory;
mod autodiff;
mod backends;
mod checkpoint;
mod checkpoint_memory;
mod custom;
mod derivatives;
mod destructors;
mod distances;
mod distributed;
mod drawn_convolutions;
mod drawn_operands;
mod drawn_programs;
mod draws;
mod edges;
mod einsum;
mod elementwise;
mod errors;
mod exchange;
mod faults;
mod few_rows;
mod files;
mod fixed_order;
mod forms;
mod fused;
mod gpt;
mod gradcheck;
mod gradient_range;
mod graph;
mod images;
mod integers;
mod isa;
mod jvp;
mod layer_manners;
mod layout;
mod linear;
mod linear_activation;
mod manners;
mod memory;
mod minimal;
mod movement;
mod mutation;
mod nn;
mod ops_page;
mod optim;
mod optim_memory;
mod order;
mod page;
mod poison;
mod products_bits;
mod products_memory;
mod products_specials;
mod profiler;
mod programs;
mod pulp_door;
mod safetensors;
mod safetensors_memory;
mod series;
mod sets;
mod short_axes;
mod spectra;
mod stored_integers;
mod strides;
mod support;
mod tensor;
mod tensor_faults;
mod testing;
mod trace;
mod training_faults;
mod vision;
mod walks;

#[global_allocator]
static ALLOCATOR: support::counting::Counting = support::counting::Counting;
