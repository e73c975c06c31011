//! Pooling: PyTorch's results, and errors.

use crate::testing::suite::fused::pool::{close, numbers};
use swath::PoolOptions;
use swath::prelude::*;

use crate::support::vectors::Vectors;

type T = Tensor<CpuBackend>;

/// Compares the values and gradients of a pooling with PyTorch, in two types.
fn check(name: &str, f: impl Fn(&T) -> Result<(T, Option<T>)>) {
    let vectors = Vectors::read(include_str!("../../vectors/conv.txt"));
    for (dtype, tolerance) in [(DType::F64, 1e-15), (DType::F32, 5e-7)] {
        let get = |part: &str| vectors.input(&format!("{name}/{part}"), dtype);
        let x = get("x").requires_grad();
        let (y, positions) = f(&x).unwrap();
        assert_eq!(y.shape(), get("y").shape(), "{name}");
        close(&format!("{name}, {dtype}, y"), &numbers(&y), &numbers(&get("y")), tolerance);
        if let Some(positions) = positions {
            assert_eq!(numbers(&positions), numbers(&get("positions")), "{name}");
        }
        let grads = y.backward_with(&get("g")).unwrap();
        let dx = numbers(grads.wrt(&x).unwrap());
        close(&format!("{name}, {dtype}, dx"), &dx, &numbers(&get("dx")), 4.0 * tolerance);
    }
}

#[test]
fn pytorch_poolings_and_their_gradients() {
    let options = PoolOptions { stride: Some([2, 1]), padding: [1, 1], ..PoolOptions::new([3, 2]) };
    let max = |options| {
        move |x: &T| x.max_pool2d_with_positions(options).map(|(y, positions)| (y, Some(positions)))
    };
    check("max", max(options));
    check("max_ceil", max(PoolOptions { ceil_mode: true, ..PoolOptions::default() }));
    let dilated = PoolOptions { stride: Some([1]), dilation: [2], ..PoolOptions::new([3]) };
    check("max_dilated", |x| {
        x.max_pool1d_with_positions(dilated).map(|(y, positions)| (y, Some(positions)))
    });
    let counted = PoolOptions { count_include_pad: true, ..options };
    check("avg", |x| Ok((x.avg_pool2d(counted)?, None)));
    let inside = PoolOptions { stride: Some([2, 2]), padding: [1, 1], ..PoolOptions::new([3, 3]) };
    check("avg_inside", |x| Ok((x.avg_pool2d(inside)?, None)));
    let ceil = PoolOptions { ceil_mode: true, ..PoolOptions::new([3]) };
    check("avg_ceil", |x| Ok((x.avg_pool1d(ceil)?, None)));
    let counted = PoolOptions {
        stride: Some([2, 3]),
        padding: [1, 2],
        ceil_mode: true,
        count_include_pad: true,
        ..PoolOptions::new([3, 4])
    };
    check("avg_ceil_padding", |x| Ok((x.avg_pool2d(counted)?, None)));
    let short = PoolOptions { stride: Some([2]), ceil_mode: true, ..PoolOptions::new([3]) };
    check("max_short", |x| {
        x.max_pool1d_with_positions(short).map(|(y, positions)| (y, Some(positions)))
    });
}

#[test]
fn poolings_that_do_not_fit_are_errors() {
    let x = T::zeros((1, 2, 3, 4), DType::F32).unwrap();
    let error = |y: Result<T>| y.unwrap_err().to_string();
    let large = PoolOptions::new([4, 1]);
    assert!(error(x.max_pool2d(large)).starts_with(
        "max_pool2d: axis 0 of images of shape [1, 2, 3, 4]: the window is larger than the padded image; got kernel 4"
    ));
    for (options, text) in [
        (
            PoolOptions { padding: [2, 0], ..PoolOptions::new([3, 3]) },
            "the padding must be at most half the kernel; got kernel 3",
        ),
        (
            PoolOptions { stride: Some([0, 1]), ..PoolOptions::default() },
            "the stride must be at least 1",
        ),
        (
            PoolOptions { dilation: [0, 1], ..PoolOptions::default() },
            "the dilation must be at least 1",
        ),
        (PoolOptions::new([0, 1]), "the kernel must be at least 1"),
        // The dilation makes both taps of a window fall into the padding.
        (
            PoolOptions { dilation: [4, 1], padding: [1, 0], ..PoolOptions::new([2, 1]) },
            "expected a pixel in every window",
        ),
    ] {
        let error = error(x.max_pool2d(options));
        assert!(error.contains(text), "{options:?}: {error}");
    }
    let dilated = PoolOptions { dilation: [2, 1], ..PoolOptions::default() };
    assert_eq!(x.avg_pool2d(dilated).unwrap().dims(), [1, 2, 1, 2]);
    assert!(
        error(x.to_dtype(DType::I64).unwrap().max_pool2d(PoolOptions::default())).contains("i64")
    );
    assert!(error(x.max_pool1d(PoolOptions::default())).contains("expected 3 axes"));
    let empty = T::zeros((0, 2, 3, 4), DType::F32).unwrap();
    assert_eq!(empty.max_pool2d(PoolOptions::default()).unwrap().dims(), [0, 2, 1, 2]);
}
