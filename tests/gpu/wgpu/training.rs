//! Training on a device, and what else the tests of all backends do not have.

use swath::nn::{LayerNorm, Module};
use swath::optim::{AdamW, AdamWOptions, Optimizer, clip_grad_norm};
use swath::prelude::*;
use swath::{AnyBackend, ConvOptions, Device, Padding, PoolOptions, WgpuBackend};

use crate::support::gpt::{Gpt, Sizes};
use crate::support::{alone, counting};

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
    let mut gradients = loss.backward()?;
    clip_grad_norm(&model, &mut gradients, 1.0)?;
    optimizer.step(&mut model, &gradients)?;
    loss.item::<f32>().map(|_| ())
}

#[test]
fn a_device_chosen_at_run_time_takes_a_step() {
    let train = || {
        step::<AnyBackend>()?;
        // In the widest float of the device.
        let x = Tensor::<AnyBackend>::ones((2, 3), DType::F32)?.requires_grad();
        let y =
            x.prod(Some(&[1]), false)?.sum(None, false)?.add(&x.cumprod(1)?.sum(None, false)?)?;
        y.backward()?.wrt(&x)?.to_vec::<f32>()
    };
    let there = AnyBackend::with_device(Device::Wgpu, train).unwrap();
    assert_eq!(there, [4.0, 3.0, 2.0, 4.0, 3.0, 2.0]);
}

#[test]
fn a_value_that_is_not_finite_reaches_the_queries_that_may_not_see_it() {
    fn run<B: Backend>() -> Vec<f32> {
        let q = Tensor::<B>::from_vec(vec![0.5f32, -0.25], (2, 1)).unwrap();
        let v = Tensor::from_vec(vec![1.0f32, 2.0, f32::NAN], (3, 1)).unwrap();
        let mask = Tensor::from_vec(vec![true, true, false], 3).unwrap();
        let options = Attention { mask: Some(&mask), ..Default::default() };
        q.scaled_dot_product_attention(&v, &v, options).unwrap().to_vec::<f32>().unwrap()
    }
    let is_nan = |x: Vec<f32>| x.into_iter().map(f32::is_nan).collect::<Vec<_>>();
    assert_eq!(is_nan(run::<WgpuBackend>()), is_nan(run::<CpuBackend>()));
}

#[test]
fn gather_and_far_views_of_eight_axes() {
    fn run<B: Backend>() -> Vec<f32> {
        let x = Tensor::<B>::arange(0.0, 512.0, 1.0).unwrap();
        let x = x.reshape([2, 2, 2, 2, 2, 2, 4, 2]).unwrap();
        let x = x.permute(&[7, 6, 5, 4, 3, 2, 1, 0]).unwrap();
        let index = Tensor::zeros(*x.shape(), DType::I64).unwrap();
        let y = x.gather(3, &index).unwrap();
        y.slice(s![1, 3, .., 1]).unwrap().to_vec::<f32>().unwrap()
    }
    assert_eq!(run::<WgpuBackend>(), run::<CpuBackend>());
}

#[test]
fn a_step_of_a_transformer_takes_at_most_1_3_of_the_cpus_memory() {
    alone("wgpu::training::a_step_of_a_transformer_takes_at_most_1_3_of_the_cpus_memory", || {
        let (done, cpu) = counting::peak_of(step::<CpuBackend>);
        done.unwrap();
        step::<WgpuBackend>().unwrap();
        let info = swath::runtime::info();
        let gpu = info.gpus.first().expect("it was used").peak;
        println!("{gpu} bytes on the device, {cpu} on the CPU");
        assert!(gpu as f64 <= 1.3 * cpu as f64, "{info}");
    });
}

/// More of them than one look at the device is for.
#[test]
fn each_of_many_tensors_has_the_first_fault_that_it_depends_on() {
    let x = T::arange(0.0, 4.0, 1.0).unwrap();
    let taken: Vec<T> = (0i64..600)
        .map(|i| {
            // Those of 10, 300 and 590 are out of range.
            let entry = if [10, 300, 590].contains(&i) { 100 + i } else { i % 4 };
            x.index_select(0, &T::from_vec(vec![entry], 1).unwrap()).unwrap()
        })
        .collect();
    let sum = |range: std::ops::Range<usize>| {
        let mut sum = T::zeros(1, DType::F32)?;
        for x in &taken[range] {
            sum = sum.add(x)?;
        }
        sum.to_vec::<f32>()
    };
    let found = |range| match sum(range) {
        Err(Error::IndexOutOfRange { index, .. }) => Err(index),
        values => Ok(values.unwrap()[0]),
    };
    assert_eq!(found(0..10), Ok(13.0));
    assert_eq!(found(5..600), Err(110));
    assert_eq!(found(11..600), Err(400));
    assert_eq!(found(301..600), Err(690));
    assert_eq!(found(591..600), Ok(15.0));
    WgpuBackend::device().unwrap().synchronize().unwrap();
    assert_eq!(found(299..301), Err(400));
}
