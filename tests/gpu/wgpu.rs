//! The GPU by wgpu, on any Vulkan device, also on Mesa's of the CPU: `cargo test --features wgpu --test gpu wgpu::`.

use swath::nn::{LayerNorm, Module};
use swath::optim::{AdamW, AdamWOptions, Optimizer};
use swath::prelude::*;
use swath::{ConvOptions, Padding, PoolOptions, WgpuBackend};

use crate::support::gpt::{Gpt, Sizes};
use crate::support::{alone, counting};

crate::testing::backend_suite!(swath::WgpuBackend);

type T = Tensor<WgpuBackend>;

/// Within 1e-4 of PyTorch's, as those of the CPU.
#[test]
fn a_transformer_trains_to_the_losses_of_the_cpu() {
    crate::gpt::check_first_losses::<WgpuBackend>().unwrap();
}

/// First and second derivatives against finite differences, in f32, of what the device has kernels for.
#[test]
fn gradients_agree_with_finite_differences() {
    let mut rng = Rng::seed(3);
    let mut draw = |shape: &[usize]| T::randn(shape, &mut rng).unwrap();
    let [q, k, v] = [&[3, 4][..], &[5, 4], &[5, 2]].map(&mut draw);
    let [x, weight] = [&[1, 2, 5, 4][..], &[3, 2, 3, 3]].map(&mut draw);
    let targets = T::from_vec(vec![1i64, 0, 3], 3).unwrap();
    let norm = LayerNorm::<WgpuBackend>::new(4).unwrap();
    let causal = Attention { causal: true, ..Default::default() };
    let same = ConvOptions { padding: Padding::Same, ..Default::default() };
    let square = |x: T| x.square()?.sum(None, false);
    let options = |order| GradCheck { order, ..GradCheck::default() };
    let check = |f: &dyn Fn(&[T]) -> Result<T>, xs: &[&T], order| {
        check_gradients(|xs: &[T]| f(xs), xs, options(order)).unwrap();
    };
    check(
        &|xs| square(xs[0].scaled_dot_product_attention(&xs[1], &xs[2], causal)?),
        &[&q, &k, &v],
        1,
    );
    check(&|xs| square(xs[0].conv2d(&xs[1], None, same)?), &[&x, &weight], 1);
    check(&|xs| square(xs[0].avg_pool2d(PoolOptions::default())?), &[&x], 1);
    check(&|xs| square(xs[0].max_pool2d(PoolOptions::default())?), &[&x], 1);
    check(&|xs| xs[0].cross_entropy(&targets, CrossEntropy::default()), &[&q], 2);
    check(&|xs| square(norm.forward(&xs[0])?.tanh()?), &[&q], 1);
    check(&|xs| square(xs[0].matmul(&xs[1].t()?)?.gelu()?), &[&q, &k], 2);
    check(&|xs| square(xs[0].softmax(1)?.cumsum(1)?.exp()?), &[&q], 1);
}

/// A step of training of a transformer, with its model and optimizer.
fn step<B: Backend>() -> Result<()> {
    let sizes = Sizes { vocabulary: 50, width: 32, layers: 2, heads: 2, context: 64, dropout: 0.1 };
    let mut model = Gpt::<B>::new(sizes, &mut Rng::seed(2))?;
    let mut optimizer = AdamW::new(AdamWOptions::default())?;
    let tokens = |shift: i64| (0..4 * 64).map(|i| (i * i + shift) % 50).collect::<Vec<i64>>();
    let [ids, targets] = [tokens(0), tokens(1)].map(|x| Tensor::<B>::from_vec(x, (4, 64)));
    let loss = model.loss(&ids?, &targets?)?;
    let gradients = loss.backward()?;
    optimizer.step(&mut model, &gradients)?;
    loss.item::<f32>().map(|_| ())
}

#[test]
fn a_step_of_a_transformer_takes_at_most_1_3_of_the_cpus_memory() {
    alone("wgpu::a_step_of_a_transformer_takes_at_most_1_3_of_the_cpus_memory", || {
        let (done, cpu) = counting::peak_of(step::<CpuBackend>);
        done.unwrap();
        step::<WgpuBackend>().unwrap();
        let info = swath::runtime::info();
        let gpu = info.gpus.first().expect("it was used").peak;
        println!("{gpu} bytes on the device, {cpu} on the CPU");
        assert!(gpu as f64 <= 1.3 * cpu as f64, "{info}");
    });
}
