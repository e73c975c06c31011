//! Padding, windows, resampling and normalized channels: against PyTorch on both backends, and what their
//! pages promise.

mod behaviour;

use swath::prelude::*;

use crate::support::vectors::Vectors;

type T = Tensor<CpuBackend>;
type R = Tensor<ReferenceBackend>;

fn wide<B: Backend>(x: &Tensor<B>) -> Vec<f64> {
    x.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap()
}

/// Fails unless the tensors agree within `tolerance`, relative to the largest magnitude or 1.
pub fn close<B: Backend>(what: &str, x: &Tensor<B>, expected: &T, tolerance: f64) {
    assert_eq!(x.shape(), expected.shape(), "{what}");
    let (x, expected) = (wide(x), wide(expected));
    let scale = expected.iter().fold(1.0f64, |scale, x| scale.max(x.abs()));
    for (i, (x, y)) in x.iter().zip(&expected).enumerate() {
        assert!((x - y).abs() <= tolerance * scale, "{what}, element {i}: {x} instead of {y}");
    }
}

/// The vectors of tests/vectors/make_images.py.
pub fn vectors() -> Vectors {
    Vectors::read(include_str!("../vectors/images.txt"))
}

/// The value of a case and the gradients of those inputs that are named, in a dtype. Sixteen bits are rounded
/// once: to within half a unit in the last place of the value.
fn check_on<B: Backend>(
    name: &str,
    count: usize,
    dtype: DType,
    differentiated: &[usize],
    f: impl Fn(&[Tensor<B>]) -> Result<Tensor<B>>,
) {
    let (tolerance, gradient_tolerance) = match dtype {
        DType::F64 => (1e-12, 1e-12),
        DType::F32 => (1e-6, 4e-6),
        DType::F16 => (2f64.powi(-11), 3e-3),
        _ => (2f64.powi(-8), 2e-2),
    };
    let vectors = vectors();
    let get = |part: &str| {
        let x = vectors.get(&format!("{name}/{part}"));
        Tensor::<B>::from_vec(wide(x), *x.shape()).unwrap().to_dtype(dtype).unwrap()
    };
    let xs: Vec<Tensor<B>> = (0..count).map(|i| get(&i.to_string()).requires_grad()).collect();
    let what = |part: &str| format!("{name}, {}, {dtype}, {part}", B::NAME);
    let y = f(&xs).unwrap_or_else(|error| panic!("{}: {error}", what("y")));
    assert_eq!(y.dtype(), dtype);
    close(&what("y"), &y, vectors.get(&format!("{name}/y")), tolerance);
    let grads = y.backward_with(&get("g")).unwrap();
    for &i in differentiated {
        let part = format!("d{i}");
        let expected = vectors.get(&format!("{name}/{part}"));
        close(&what(&part), grads.wrt(&xs[i]).unwrap(), expected, gradient_tolerance);
    }
}

/// [`check_on`] both backends in every float type, differentiated by every input.
macro_rules! check {
    ($name:expr, $count:expr, $f:expr) => {
        check!($name, $count, &(0..$count).collect::<Vec<usize>>(), $f)
    };
    ($name:expr, $count:expr, $differentiated:expr, $f:expr) => {
        for dtype in [DType::F64, DType::F32, DType::F16, DType::BF16] {
            crate::images::check_on::<CpuBackend>($name, $count, dtype, $differentiated, $f);
            crate::images::check_on::<ReferenceBackend>($name, $count, dtype, $differentiated, $f);
        }
    };
}

#[test]
fn pytorch_padding() {
    check!("pad_constant", 1, |xs| xs[0].pad(&[(1, 2), (0, 3)], PadMode::Constant(1.5)));
    check!("pad_crop", 1, |xs| xs[0].pad(&[(-1, 2), (2, -3)], PadMode::Constant(1.5)));
    check!("pad_reflect", 1, |xs| xs[0].pad(&[(3, 1), (2, 4)], PadMode::Reflect));
    check!("pad_replicate", 1, |xs| xs[0].pad(&[(5, 0), (2, 1)], PadMode::Replicate));
    check!("pad_circular", 1, |xs| xs[0].pad(&[(1, 4), (5, 2)], PadMode::Circular));
}

#[test]
fn pytorch_windows_of_an_axis() {
    check!("unfold", 1, |xs| xs[0].unfold(2, 3, 2));
    check!("unfold_apart", 1, |xs| xs[0].unfold(-2, 2, 3));
}

#[test]
fn pytorch_adaptive_poolings() {
    check!("avg_1d", 1, |xs| xs[0].adaptive_avg_pool1d(4));
    check!("max_1d", 1, |xs| xs[0].adaptive_max_pool1d(5));
    for (name, size) in [("uneven", [3, 2]), ("equal", [2, 3]), ("one", [1, 1]), ("more", [7, 5])] {
        check!(&format!("avg_{name}"), 1, |xs| xs[0].adaptive_avg_pool2d(size));
        check!(&format!("max_{name}"), 1, |xs| xs[0].adaptive_max_pool2d(size));
    }
}

#[test]
fn pytorch_interpolation() {
    let sizes = [
        ("larger", [7, 8]),
        ("smaller", [3, 2]),
        ("mixed", [8, 3]),
        ("one", [1, 5]),
        ("twice", [8, 10]),
    ];
    for (name, size) in sizes {
        let nearest = Interpolation::Nearest;
        check!(&format!("nearest_{name}"), 1, |xs| xs[0].interpolate(size, nearest));
        for (ends, align_corners) in [("centers", false), ("corners", true)] {
            let mode = Interpolation::Bilinear { align_corners };
            check!(&format!("bilinear_{name}_{ends}"), 1, |xs| xs[0].interpolate(size, mode));
            let mode = Interpolation::Bicubic { align_corners };
            check!(&format!("bicubic_{name}_{ends}"), 1, |xs| xs[0].interpolate(size, mode));
        }
    }
}

#[test]
fn pytorch_normalized_channels() {
    for name in ["rows", "lines", "images", "volumes"] {
        check!(&format!("batch_{name}"), 3, |xs| {
            Ok(xs[0].batch_norm_training(Some(&xs[1]), Some(&xs[2]), 1e-3)?.0)
        });
        // PyTorch has no gradient of given statistics.
        check!(&format!("given_{name}"), 5, &[0, 3, 4], |xs| {
            let [mean, variance] = [xs[1].detach(), xs[2].detach().abs()?];
            xs[0].batch_norm(&mean, &variance, Some(&xs[3]), Some(&xs[4]), 1e-2)
        });
    }
    check!("batch_plain", 1, |xs| Ok(xs[0].batch_norm_training(None, None, 1e-5)?.0));
    check!("group", 3, |xs| xs[0].group_norm(2, Some(&xs[1]), Some(&xs[2]), 1e-3));
    check!("instance", 3, |xs| xs[0].instance_norm(Some(&xs[1]), Some(&xs[2]), 1e-3));
}
