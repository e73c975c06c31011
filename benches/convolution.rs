//! Convolutions of `f32`, alone and followed by the gradients of images and filters ("backward"), and a max
//! pooling. Names are the shapes of images and filters; results have the extents of the images.
//!
//! The limit is the peak of fused multiply-adds; each of the two gradients takes as many operations as the
//! result. Depthwise convolutions and poolings are limited by memory: the limit is copying the images, with
//! gradients also the upstream gradient, and for the pooling reading the images.
//! `benches/peers/convolution.py` runs the same cases and PyTorch in turn.

#[allow(dead_code, reason = "each benchmark uses only a part of the module")]
mod support;

use support::cases::{CONVOLUTIONS, Convolution, POOLED, name_of};
use support::{Group, Limit, Suite};
use swath::prelude::*;
use swath::{ConvOptions, Padding, PoolOptions};

type T = Tensor<CpuBackend>;

fn main() -> Result<()> {
    let mut suite = Suite::from_args();
    let images = T::randn(POOLED, &mut Rng::seed(1))?;
    for threads in [1, 2] {
        let mut group = suite.group_on(threads, "convolution")?;
        for case in CONVOLUTIONS {
            convolution(&mut group, threads, &case)?;
        }
        let read = Limit::read(threads, POOLED.iter().product());
        let name = format!("max_pool2d {}", name_of(POOLED));
        group.tensor(&name, read, || images.max_pool2d(PoolOptions::default()));
    }
    suite.finish();
    Ok(())
}

/// Times a convolution, alone and with its gradients.
fn convolution(group: &mut Group, threads: usize, case: &Convolution) -> Result<()> {
    let rng = &mut Rng::seed(1);
    let (x, w) = (T::randn(case.images, rng)?, T::randn(case.filters, rng)?);
    let padding = Padding::Zeros([case.padding(); 2]);
    let options = ConvOptions { padding, groups: case.groups(), ..Default::default() };
    let elements = case.images.iter().product();
    // Of all windows, those that reach into the padding included.
    let operations = 2 * case.windows() * case.filters.iter().product::<usize>();
    let limit = |copies, products| match case.filters[1] {
        1 => Limit::copy(threads, copies * elements).measured_on(elements),
        _ => Limit::fma_f32(threads, products * operations),
    };
    group.tensor(&case.to_string(), limit(1, 1), || x.conv2d(&w, None, options));

    let upstream = x.conv2d(&w, None, options)?;
    let (x, w) = (x.requires_grad(), w.requires_grad());
    group.case(&format!("{case} backward"), limit(2, 3), || {
        let run = move || x.conv2d(&w, None, options)?.backward_with(&upstream);
        move || run().expect("shapes and dtypes match")
    });
    Ok(())
}
