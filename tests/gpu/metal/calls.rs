//! The order of Metal's calls, and what they are given.

use swath::backend::gpu::testing::WORDS;
use swath::{Result, Shape};

use super::fake::{
    Call, FakeTensor, Script, calls, check_all_were_looked_at, committed, on_a_device,
};

fn of(values: &[f32]) -> FakeTensor {
    FakeTensor::from_vec(values.to_vec(), values.len()).unwrap()
}

/// The buffers that were set for each dispatch, by their indices, with the command buffer.
pub fn bound() -> Vec<(usize, Vec<usize>)> {
    let mut all = Vec::new();
    let mut set = Vec::new();
    for call in calls() {
        match call {
            Call::SetBuffer { index, buffer, .. } => {
                assert_eq!(index, set.len(), "indices in order");
                set.push(buffer);
            }
            Call::Dispatch { commands, .. } => all.push((commands, std::mem::take(&mut set))),
            _ => {}
        }
    }
    all
}

#[test]
fn two_operations_and_a_read_make_these_calls() {
    on_a_device(Script::default(), || {
        let x = of(&[1.0; 5]);
        x.exp().unwrap().add(&x).unwrap().to_vec::<f32>().unwrap();
        // Elements, threads in a row of the grid, no axes, no numbers.
        let mut words = vec![0; WORDS];
        (words[0], words[1]) = (5, 256);
        let name = |name: &str| name.to_owned();
        let (threads, groups) = ([256, 1, 1], [1, 1, 1]);
        let expected = [
            Call::NewBuffer { buffer: 0, bytes: 256 },
            Call::Write { buffer: 0, bytes: 20 },
            Call::NewBuffer { buffer: 1, bytes: 256 },
            Call::Compile(name("exp_f32")),
            Call::Begin(0),
            Call::SetPipeline(0, name("exp_f32")),
            Call::SetBuffer { commands: 0, index: 0, buffer: 0 },
            Call::SetBuffer { commands: 0, index: 1, buffer: 1 },
            Call::SetWords { commands: 0, index: 2, words: words.clone() },
            Call::SetWords { commands: 0, index: 3, words: vec![256, 256] },
            Call::Dispatch { commands: 0, groups, threads },
            Call::NewBuffer { buffer: 2, bytes: 256 },
            Call::Compile(name("add_f32")),
            Call::SetPipeline(0, name("add_f32")),
            Call::SetBuffer { commands: 0, index: 0, buffer: 1 },
            Call::SetBuffer { commands: 0, index: 1, buffer: 0 },
            Call::SetBuffer { commands: 0, index: 2, buffer: 2 },
            Call::SetWords { commands: 0, index: 3, words },
            Call::SetWords { commands: 0, index: 4, words: vec![256, 256, 256] },
            Call::Dispatch { commands: 0, groups, threads },
            Call::Commit(0),
            Call::Wait(0),
            Call::Status(0),
            Call::Error(0),
            Call::Read { buffer: 2, bytes: 20 },
        ];
        for (i, (call, expected)) in calls().iter().zip(&expected).enumerate() {
            assert_eq!(call, expected, "call {i}");
        }
        assert_eq!(calls().len(), expected.len());
    });
}

#[test]
fn kernels_are_given_the_sizes_of_their_buffers_in_order() {
    on_a_device(Script::default(), || {
        let (x, y) = (of(&[1.0; 1000]), of(&[1.0; 400]).narrow(0, 0, 1).unwrap());
        x.lt(y.broadcast_to(1000).unwrap()).unwrap();
        let last = calls().into_iter().rev().find_map(|call| match call {
            Call::SetWords { index: 4, words, .. } => Some(words),
            _ => None,
        });
        // A boolean is a byte.
        assert_eq!(last.unwrap(), [4096, 1792, 1024]);
    });
}

#[test]
fn results_are_read_by_later_dispatches_of_the_same_encoder() {
    on_a_device(Script::default(), || {
        let x = of(&[1.0; 1000]);
        let chain = || -> Result<FakeTensor> {
            x.exp()?.sum(None, false)?.sqrt()?.broadcast_to(1000)?.mul(&x)?.softmax(0)
        };
        chain().unwrap().to_vec::<f32>().unwrap();
        let bound = bound();
        assert_eq!(committed(), [0]);
        assert!(bound.len() >= 5, "{bound:?}");
        for pair in bound.windows(2) {
            let ((first, written), (second, read)) = (&pair[0], &pair[1]);
            assert_eq!(first, second);
            let result = written.last().unwrap();
            assert!(read[..read.len() - 1].contains(result), "{bound:?}");
        }
    });
}

#[test]
fn the_grid_has_a_thread_for_every_element() {
    on_a_device(Script::default(), || {
        for n in [1, 255, 256, 257, 100_000] {
            of(&vec![1.0; n]).exp().unwrap();
            let last = calls().into_iter().rev().find_map(|call| match call {
                Call::Dispatch { groups, threads, .. } => Some((groups, threads)),
                _ => None,
            });
            let (groups, threads) = last.unwrap();
            assert_eq!(groups, [n.div_ceil(256) as u32, 1, 1]);
            assert_eq!(threads, [256, 1, 1]);
        }
        let x = FakeTensor::ones((100, 30), swath::DType::F32).unwrap();
        x.matmul(&x.t().unwrap()).unwrap().to_vec::<f32>().unwrap();
        let product = Call::Dispatch { commands: 0, groups: [2, 2, 1], threads: [16, 16, 1] };
        assert!(calls().contains(&product));
    });
}

#[test]
fn many_dispatches_are_committed_in_batches_that_are_all_looked_at() {
    for is_slow in [false, true] {
        on_a_device(Script { is_slow, ..Script::default() }, || {
            let mut x = of(&[1.0; 8]);
            for _ in 0..2400 {
                x = x.exp().unwrap();
            }
            assert_eq!(committed(), [0, 1]);
            x.to_vec::<f32>().unwrap();
            assert_eq!(committed(), [0, 1, 2]);
            check_all_were_looked_at();
            let waits = calls().iter().filter(|call| matches!(call, Call::Wait(_))).count();
            // Those that are known to be complete need no wait.
            assert_eq!(waits, if is_slow { 3 } else { 1 });
        });
    }
}

#[test]
fn a_read_of_values_from_the_host_waits_for_nothing() {
    on_a_device(Script::default(), || {
        of(&[1.0, 2.0]).to_vec::<f32>().unwrap();
        assert!(committed().is_empty());
    });
}

#[test]
fn unused_buffers_stay_within_the_working_set() {
    let script = Script { working_set: 4 << 20, ..Script::default() };
    on_a_device(script, || {
        let device = swath::backend::gpu::Gpu::<super::fake::Metal>::device().unwrap();
        let ones = |n: usize| FakeTensor::ones(n, swath::DType::F32).unwrap();
        let kept = || device.statistics().kept;
        drop([ones(1 << 18), ones(1 << 18)]);
        assert_eq!(kept(), 2 << 20);
        // 3 MiB are used, and 2 MiB are kept: too much.
        let large = ones(3 << 18);
        assert_eq!(kept(), 0);
        drop([ones(1 << 18), ones(1 << 18)]);
        assert_eq!(kept(), 1 << 20);
        drop(large);
        assert_eq!(kept(), 4 << 20);
    });
}

#[test]
fn capabilities_are_those_of_the_device() {
    let odd = Script { i64: false, max_buffer: 1001, working_set: 0, ..Script::default() };
    on_a_device(odd, || {
        let device = swath::backend::gpu::Gpu::<super::fake::Metal>::device().unwrap();
        let capabilities = device.capabilities();
        assert_eq!((capabilities.name.as_str(), capabilities.max_buffer), ("fake", 1000));
        assert!(capabilities.f16 && !capabilities.i64);
        assert_eq!(capabilities.working_set, usize::MAX);
        let indices = FakeTensor::from_vec(vec![1i64, 2], 2).unwrap();
        let error = indices.add(&indices).unwrap_err().to_string();
        assert_eq!(error, "add: not supported by backend metal");
        let error = FakeTensor::zeros(Shape::from(251), swath::DType::F32).unwrap_err().to_string();
        assert!(error.contains("a tensor of 1004 bytes is larger than the 1000"), "{error}");
    });
    // Sizes are given to kernels in 32 bits.
    on_a_device(Script { max_buffer: 1 << 40, ..Script::default() }, || {
        let device = swath::backend::gpu::Gpu::<super::fake::Metal>::device().unwrap();
        assert_eq!(device.capabilities().max_buffer, (1 << 32) - 4);
    });
}
