//! What checkpointing saves, and how often it calls a layer. In a process of its own: it measures the memory of all threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use swath::nn::{LayerNorm, Linear, Module};
use swath::prelude::*;

use crate::support::{alone_with, counting};

type T = Tensor<CpuBackend>;

const LAYERS: usize = 64;
const WIDTH: usize = 256;
const BATCH: usize = 2048;

#[test]
fn eight_segments_of_64_layers_take_a_quarter_of_the_memory() {
    let name = "checkpoint_memory::eight_segments_of_64_layers_take_a_quarter_of_the_memory";
    alone_with(name, &[("SWATH_POOL_BYTES", "0")], || {
        swath::runtime::set_threads(2).unwrap();
        measure().unwrap();
    });
}

fn measure() -> Result<()> {
    type Layer = Arc<dyn Fn(&T) -> Result<T> + Send + Sync>;
    let rng = &mut Rng::seed(1);
    let calls = Arc::new(AtomicUsize::new(0));
    let mut layers: Vec<Layer> = Vec::new();
    let mut weights = Vec::new();
    for _ in 0..LAYERS {
        let (linear, norm) = (Linear::new(WIDTH, WIDTH, rng)?, LayerNorm::new(WIDTH)?);
        weights.push(linear.weight.clone());
        let calls = calls.clone();
        layers.push(Arc::new(move |x| {
            calls.fetch_add(1, Relaxed);
            norm.forward(&linear.forward(x)?.gelu()?)
        }));
    }
    let x = T::randn((BATCH, WIDTH), rng)?.requires_grad();
    let plain = || layers.iter().try_fold(x.clone(), |x, layer| layer(&x));
    let checkpointed = || checkpoint_sequential(&x, &layers, 8);
    let gradients = |y: T| y.square()?.mean(None, false)?.backward();

    let (expected, plain_peak) = counting::peak_of(|| gradients(plain()?));
    let expected = expected?;
    assert_eq!(calls.swap(0, Relaxed), LAYERS);
    let (found, peak) = counting::peak_of(|| gradients(checkpointed()?));
    let found = found?;
    assert_eq!(calls.load(Relaxed), 2 * LAYERS);
    for x in weights.iter().chain([&x]) {
        assert_eq!(found.wrt(x)?.to_vec::<f32>()?, expected.wrt(x)?.to_vec::<f32>()?);
    }
    println!("peak {peak} and {plain_peak} bytes");
    assert!(4 * peak <= plain_peak, "{peak} and {plain_peak} bytes");
    Ok(())
}
