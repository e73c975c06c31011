//! Kernels that are made wrong on purpose, which the shim must notice: otherwise its tests would prove nothing.

use swath::backend::gpu::Module;
use swath::backend::gpu::testing::{
    Api, CommandError, Status, Translation, WORDS, kernels, translate,
};

use super::build;
use super::shim::Shim;

fn kernel(name: &str) -> Translation {
    let module = kernels().into_iter().find(|x| x.name == name).expect("a kernel of this name");
    translate(&module).unwrap()
}

fn changed(kernel: &Translation, from: &str, to: &str) -> Translation {
    assert!(kernel.text.contains(from));
    Translation { text: kernel.text.replace(from, to), ..kernel.clone() }
}

/// Runs one group, and returns the last buffer.
fn run(kernel: &Translation, buffers: &[&[f32]], words: &[u32]) -> Result<Vec<f32>, CommandError> {
    let shim = &mut Shim;
    let pipeline = shim.pipeline(kernel).unwrap();
    let memory = buffers.iter().map(|values| {
        let memory = shim.buffer(size_of_val(*values)).unwrap();
        shim.write(&memory, bytemuck::cast_slice(values));
        memory
    });
    let memory: Vec<_> = memory.collect();
    let mut commands = shim.begin().unwrap();
    shim.set_pipeline(&mut commands, &pipeline);
    for (index, memory) in memory.iter().enumerate() {
        shim.set_buffer(&mut commands, index, memory);
    }
    let mut words = words.to_vec();
    words.resize(WORDS, 0);
    shim.set_words(&mut commands, kernel.words_at(), &words);
    shim.set_words(&mut commands, kernel.sizes_at(), &[1024; 8]);
    shim.dispatch(&mut commands, [1, 1, 1], kernel.threads);
    shim.commit(&mut commands);
    match shim.status(&commands) {
        Status::Completed => {
            let mut result = buffers[buffers.len() - 1].to_vec();
            shim.read(&memory[memory.len() - 1], bytemuck::cast_slice_mut(&mut result));
            Ok(result)
        }
        _ => Err(shim.error(&commands).expect("a failure has an error")),
    }
}

fn is_here() -> bool {
    let is_here = build::compiler().is_some();
    if !is_here {
        eprintln!("skipped: there is no g++");
    }
    is_here
}

const N: usize = 16;

/// `A B` of 16 by 16.
fn product(kernel: &Translation) -> Result<Vec<f32>, CommandError> {
    let a: Vec<f32> = (0..N * N).map(|i| (i % 7) as f32).collect();
    let b: Vec<f32> = (0..N * N).map(|i| (i % 5) as f32 - 2.0).collect();
    let n = N as u32;
    // Extents, the first matrix, one part along k, offsets, and steps of both matrices.
    let words = [n, n, n, 0, 1, 0, 0, n, 1, n, 1];
    run(kernel, &[&a, &b, &vec![0.0; N * N]], &words)
}

fn expected_product() -> Vec<f32> {
    let (a, b) = (|i: usize| (i % 7) as f32, |i: usize| (i % 5) as f32 - 2.0);
    let entry = |at: usize| (0..N).map(|k| a(at / N * N + k) * b(k * N + at % N)).sum();
    (0..N * N).map(entry).collect()
}

#[test]
fn a_product_without_barriers_is_wrong() {
    if !is_here() {
        return;
    }
    let kernel = kernel("matmul_f32_16");
    assert_eq!(product(&kernel).unwrap(), expected_product());
    let barrier = "metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);";
    assert_ne!(product(&changed(&kernel, barrier, "")).unwrap(), expected_product());
}

#[test]
fn swapped_bindings_are_wrong() {
    if !is_here() {
        return;
    }
    let kernel = kernel("sub_f32");
    let differences = |kernel: &Translation| {
        let result = run(kernel, &[&[5.0, 7.0], &[1.0, 2.0], &[0.0; 2]], &[2, 256]);
        result.unwrap()
    };
    assert_eq!(differences(&kernel), [4.0, 5.0]);
    let swapped = changed(&kernel, "a_data [[buffer(0)]]", "a_data [[buffer(9)]]");
    let swapped = changed(&swapped, "b_data [[buffer(1)]]", "b_data [[buffer(0)]]");
    let swapped = changed(&swapped, "a_data [[buffer(9)]]", "a_data [[buffer(1)]]");
    assert_eq!(differences(&swapped), [-4.0, -5.0]);
}

#[test]
fn a_barrier_that_some_threads_miss_is_an_error() {
    if !is_here() {
        return;
    }
    let barrier = "metal::threadgroup_barrier(";
    let kernel = changed(
        &kernel("matmul_f32_16"),
        barrier,
        "if (thread_.y > 3u) metal::threadgroup_barrier(",
    );
    let error = product(&kernel).unwrap_err();
    assert_eq!(error.description, "matmul_f32_16: some threads did not reach a barrier");
}

#[test]
fn a_write_outside_of_a_buffer_is_an_error() {
    if !is_here() {
        return;
    }
    let text = "struct P { words: array<u32, 32> }\nvar<immediate> p: P;\n\
                @group(0) @binding(0) var<storage, read_write> y_data: array<f32>;\n\
                @compute @workgroup_size(256) fn main(@builtin(global_invocation_id) thread: vec3<u32>) {\n\
                if thread.x < p.words[0] { y_data[thread.x] = 1.0; }\n}";
    let module = Module { name: "ones".to_owned(), text: text.to_owned(), writes: vec![true] };
    let kernel = translate(&module).unwrap();
    assert_eq!(run(&kernel, &[&[0.0; 8]], &[8]).unwrap(), [1.0; 8]);
    let error = run(&kernel, &[&[0.0; 8]], &[9]).unwrap_err();
    assert_eq!(error.description, "ones: wrote outside of buffer 0");
}
