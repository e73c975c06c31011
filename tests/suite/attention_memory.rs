//! Attention over long sequences never stores all scores. The test runs in its own process because it
//! measures the memory of all threads.

use swath::prelude::*;

use crate::support::{alone, counting};

type T = Tensor<CpuBackend>;

#[test]
fn long_sequences_use_at_most_an_eighth_of_the_memory_of_their_scores() {
    alone(
        "attention_memory::long_sequences_use_at_most_an_eighth_of_the_memory_of_their_scores",
        measure_long_sequences,
    );
}

fn measure_long_sequences() {
    // Every thread has a block of scores.
    swath::runtime::set_threads(2).unwrap();
    let (t, heads, d) = (4096, 2, 32);
    let mut rng = Rng::seed(1);
    let mut x = || T::randn((1, heads, t, d), &mut rng).unwrap().requires_grad();
    let (q, k, v) = (x(), x(), x());
    let most = heads * t * t / 8 * size_of::<f32>();
    for causal in [true, false] {
        let options = || Attention { causal, ..Default::default() };
        let (y, forward) =
            counting::peak_of(|| q.scaled_dot_product_attention(&k, &v, options()).unwrap());
        let g = T::ones(*y.shape(), DType::F32).unwrap();
        let (grads, backward) = counting::peak_of(|| y.backward_with(&g).unwrap());
        assert_eq!(grads.wrt(&q).unwrap().dims(), q.dims());
        println!("{forward} and {backward} of {most} bytes");
        assert!(forward <= most && backward <= most, "{forward} and {backward} of {most} bytes");
    }
}
