//! The cases of ops on images: im2col, convolutions, poolings, resampling, normalized channels.

use swath::ops::Activation;
use swath::prelude::*;
use swath::{ConvOptions, ConvTransposeOptions, Padding, PoolOptions};

use super::cases::{ALL, DENSE, Suite, T};
use super::vision::vision;

/// Extents and options of windows of images `[3, 4]`, and their number along each axis.
fn windows() -> [([usize; 2], ConvOptions<2>, [usize; 2]); 3] {
    let plain = ConvOptions::new();
    [
        ([2, 3], plain, [2, 2]),
        ([3, 2], plain.padding([1, 2]).stride([2, 1]), [2, 7]),
        ([2, 2], plain.padding([0, 1]).stride([1, 3]).dilation([2, 3]), [1, 1]),
    ]
}

/// Adds the cases of `op` if it is an op on images, or one that moves elements.
pub fn images(op: &str, s: &mut Suite) {
    match op {
        "im2col" => {
            for (i, (kernel, options, _)) in windows().into_iter().enumerate() {
                let f = move |xs: &[T]| xs[0].im2col(kernel, options);
                s.add(&format!("windows {i}"), &[&[2, 2, 3, 4]], &ALL, f);
            }
        }
        "col2im" => {
            for (i, (kernel, options, output)) in windows().into_iter().enumerate() {
                let shape = [2, 2 * kernel[0] * kernel[1], output[0] * output[1]];
                let f = move |xs: &[T]| xs[0].col2im([3, 4], kernel, options);
                s.add(&format!("windows {i}"), &[&shape], &ALL, f);
            }
        }
        "max_pool" => {
            let options =
                PoolOptions { stride: Some([1, 2]), padding: [1, 0], ..PoolOptions::new([2, 3]) };
            s.add("overlapping", &[&[2, 2, 3, 5]], &DENSE, move |xs| xs[0].max_pool2d(options));
            let line = PoolOptions { ceil_mode: true, dilation: [2], ..PoolOptions::new([2]) };
            s.add("line", &[&[1, 2, 6]], &DENSE, move |xs| xs[0].max_pool1d(line));
        }
        "avg_pool" => {
            let options =
                PoolOptions { stride: Some([1, 2]), padding: [1, 1], ..PoolOptions::new([2, 3]) };
            s.add("overlapping", &[&[2, 2, 3, 5]], &ALL, move |xs| xs[0].avg_pool2d(options));
            let counted = PoolOptions { count_include_pad: true, ..options };
            s.add("padding counted", &[&[1, 2, 3, 4]], &ALL, move |xs| xs[0].avg_pool2d(counted));
            let line = PoolOptions { ceil_mode: true, ..PoolOptions::new([2]) };
            s.add("line", &[&[1, 2, 5]], &ALL, move |xs| xs[0].avg_pool1d(line));
        }
        "conv" => {
            let (stride, padding) = ([2, 1], Padding::Zeros([1, 0]));
            let options = ConvOptions { stride, padding, dilation: [1, 2], groups: 2 };
            let f = move |xs: &[T]| xs[0].conv2d(&xs[1], Some(&xs[2]), options);
            s.add("groups", &[&[2, 2, 4, 3], &[4, 1, 2, 2], &[4]], &ALL, f);
            let same = ConvOptions { padding: Padding::Same, ..Default::default() };
            let f = move |xs: &[T]| xs[0].conv1d(&xs[1], None, same);
            s.add("same", &[&[2, 2, 4], &[3, 2, 3]], &ALL, f);
            let f = move |xs: &[T]| {
                xs[0].conv2d_activation(&xs[1], Some(&xs[2]), options, Activation::Tanh)
            };
            s.add("tanh", &[&[1, 2, 4, 3], &[2, 1, 2, 2], &[2]], &ALL, f);
            let (stride, padding) = ([1, 2, 1], Padding::Zeros([1, 0, 0]));
            let volumes = ConvOptions { stride, padding, ..Default::default() };
            let f = move |xs: &[T]| xs[0].conv3d(&xs[1], Some(&xs[2]), volumes);
            s.add("volumes", &[&[1, 2, 2, 3, 2], &[2, 2, 2, 2, 1], &[2]], &ALL, f);
        }
        "conv_transpose" => {
            let (stride, padding, output_padding) = ([2, 1], [1, 0], [1, 0]);
            let options = ConvTransposeOptions {
                stride,
                padding,
                output_padding,
                dilation: [1, 2],
                groups: 2,
            };
            let f = move |xs: &[T]| xs[0].conv_transpose2d(&xs[1], None, options);
            s.add("groups", &[&[2, 2, 2, 3], &[2, 1, 3, 2]], &ALL, f);
            let f =
                |xs: &[T]| xs[0].conv_transpose1d(&xs[1], None, ConvTransposeOptions::default());
            s.add("line", &[&[1, 2, 3], &[2, 2, 2]], &ALL, f);
        }
        "batch_norm" => {
            let shapes: &[&[usize]] = &[&[3, 2, 4], &[2], &[2]];
            let training = |xs: &[T], weight: Option<&T>, bias: Option<&T>| {
                Ok(xs[0].batch_norm_training(weight, bias, 1e-2)?.0)
            };
            s.add("all", shapes, &ALL, move |xs| training(xs, Some(&xs[1]), Some(&xs[2])));
            s.add("vectors", &[&[4, 2], &[2]], &ALL, move |xs| training(xs, None, Some(&xs[1])));
            s.add("images", &[&[2, 2, 2, 2]], &ALL, move |xs| training(xs, None, None));
            let shapes: &[&[usize]] = &[&[3, 2, 2], &[2], &[2], &[2], &[2]];
            s.add("given statistics", shapes, &ALL, |xs| {
                let variance = xs[2].square()?.add_scalar(0.5)?;
                xs[0].batch_norm(&xs[1], &variance, Some(&xs[3]), Some(&xs[4]), 1e-2)
            });
        }
        "group_norm" => {
            let shapes: &[&[usize]] = &[&[2, 4, 3], &[4], &[4]];
            s.add("all", shapes, &ALL, |xs| xs[0].group_norm(2, Some(&xs[1]), Some(&xs[2]), 1e-2));
            s.one("x alone", |x| x.group_norm(1, None, None, 1e-2));
        }
        "instance_norm" => {
            let shapes: &[&[usize]] = &[&[2, 2, 2, 2], &[2], &[2]];
            s.add("all", shapes, &ALL, |xs| xs[0].instance_norm(Some(&xs[1]), Some(&xs[2]), 1e-2));
            s.add("scaled", &shapes[..2], &ALL, |xs| xs[0].instance_norm(Some(&xs[1]), None, 1e-2));
            let shifted = |xs: &[T]| xs[0].instance_norm(None, Some(&xs[1]), 1e-2);
            s.add("shifted", &shapes[..2], &ALL, shifted);
        }
        "unfold" => {
            s.one("overlapping", |x| x.unfold(2, 3, 1));
            s.one("apart", |x| x.unfold(1, 1, 2));
            s.one("twice", |x| x.unfold(2, 2, 2)?.unfold(1, 2, 1));
        }
        "pad" => {
            s.one("constant", |x| x.pad(&[(1, 0), (-1, 2)], PadMode::Constant(0.5)));
            s.one("reflect", |x| x.pad(&[(2, 1), (2, -1)], PadMode::Reflect));
            s.one("replicate", |x| x.pad(&[(1, 2), (0, 3)], PadMode::Replicate));
            s.one("circular", |x| x.pad(&[(3, 1), (-1, 2)], PadMode::Circular));
        }
        "interpolate" => {
            for align_corners in [false, true] {
                let modes = [
                    Interpolation::Bilinear { align_corners },
                    Interpolation::Bicubic { align_corners },
                    Interpolation::Nearest,
                ];
                for mode in modes {
                    let f = move |xs: &[T]| xs[0].interpolate([5, 3], mode);
                    s.add(&format!("{mode:?}"), &[&[2, 1, 3, 4]], &ALL, f);
                }
            }
            let doubled = |xs: &[T]| xs[0].interpolate([4, 9], Interpolation::Nearest);
            s.add("repeated", &[&[1, 2, 2, 3]], &ALL, doubled);
        }
        "adaptive_avg_pool" => {
            let shape: &[&[usize]] = &[&[2, 2, 3, 4]];
            for size in [[2, 3], [3, 2], [1, 1], [5, 3]] {
                let f = move |xs: &[T]| xs[0].adaptive_avg_pool2d(size);
                s.add(&format!("{size:?}"), shape, &ALL, f);
            }
            s.one("line", |x| x.adaptive_avg_pool1d(3));
        }
        "adaptive_max_pool" => {
            let shape: &[&[usize]] = &[&[2, 2, 3, 4]];
            for size in [[2, 3], [3, 2], [1, 1], [5, 3]] {
                let f = move |xs: &[T]| xs[0].adaptive_max_pool2d(size);
                s.add(&format!("{size:?}"), shape, &DENSE, f);
            }
            s.add("line", &[&[2, 3, 4]], &DENSE, |xs| xs[0].adaptive_max_pool1d(3));
        }
        // It is recorded in the gradient of a convolution.
        "conv_weight_grad" => {
            let f = |xs: &[T]| {
                let w = T::zeros((2, 2, 2), xs[0].dtype())?;
                vjp(|w| xs[0].conv1d(w, None, ConvOptions::default()), &w, &xs[1])
            };
            s.add("of a convolution", &[&[2, 2, 4], &[2, 2, 3]], &ALL, f);
        }
        _ => vision(op, s),
    }
}
