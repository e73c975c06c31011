//! Convolutions: PyTorch's results, the bits of the CPU backend, large images, and errors.

mod specials;

use crate::testing::suite::fused::conv::{DTYPES, Draw, close, compare, reference, wide};
use swath::ops::Activation;
use swath::prelude::*;
use swath::runtime::set_threads;
use swath::{ConvOptions, ConvTransposeOptions, Padding};

use crate::support::alone;
use crate::support::vectors::Vectors;

type T = Tensor<CpuBackend>;
type R = Tensor<ReferenceBackend>;

/// Compares a function of x, a weight and a bias, and its gradients, with PyTorch.
fn check_vectors(name: &str, f: impl Fn(&T, &T, &T) -> Result<T>) {
    let vectors = Vectors::read(include_str!("../../vectors/conv.txt"));
    for (dtype, tolerance) in [(DType::F64, 1e-14), (DType::F32, 2e-6), (DType::F16, 4e-3)] {
        let get = |part: &str| vectors.input(&format!("{name}/{part}"), dtype);
        let [x, w, b] = ["x", "w", "b"].map(|part| get(part).requires_grad());
        let y = f(&x, &w, &b).unwrap();
        let grads = y.backward_with(&get("g")).unwrap();
        let what = |part: &str| format!("{name}, {dtype}, {part}");
        let expected = |part: &str| vectors.get(&format!("{name}/{part}"));
        close(&what("y"), &y, expected("y"), tolerance);
        for (part, x) in [("dx", &x), ("dw", &w), ("db", &b)] {
            close(&what(part), grads.wrt(x).unwrap(), expected(part), tolerance);
        }
    }
}

#[test]
fn pytorch_convolutions_and_their_gradients() {
    let line = ConvOptions { stride: [2], padding: Padding::Zeros([1]), ..Default::default() };
    check_vectors("line", |x, w, b| x.conv1d(w, Some(b), line));
    let same = ConvOptions { padding: Padding::Same, dilation: [2], ..Default::default() };
    check_vectors("line_same", |x, w, b| x.conv1d(w, Some(b), same));
    check_vectors("plain", |x, w, b| x.conv2d(w, Some(b), ConvOptions::default()));
    let padding = Padding::Zeros([1, 0]);
    let strides = ConvOptions { stride: [2, 3], padding, ..Default::default() };
    check_vectors("strides", |x, w, b| x.conv2d(w, Some(b), strides));
    let padding = Padding::Zeros([0, 2]);
    let dilated = ConvOptions { dilation: [2, 1], groups: 2, padding, ..Default::default() };
    check_vectors("dilated_groups", |x, w, b| x.conv2d(w, Some(b), dilated));
    let depthwise = ConvOptions { groups: 3, padding: Padding::Same, ..Default::default() };
    check_vectors("depthwise", |x, w, b| x.conv2d(w, Some(b), depthwise));
    let padding = Padding::Zeros([1, 0, 1]);
    let volume = ConvOptions { stride: [1, 2, 1], padding, ..Default::default() };
    check_vectors("volume", |x, w, b| x.conv3d(w, Some(b), volume));
}

#[test]
fn pytorch_transposed_convolutions_and_their_gradients() {
    let (stride, padding, output_padding) = ([2], [1], [1]);
    let line = ConvTransposeOptions { stride, padding, output_padding, ..Default::default() };
    check_vectors("t_line", |x, w, b| x.conv_transpose1d(w, Some(b), line));
    let plain = ConvTransposeOptions::default();
    check_vectors("t_plain", |x, w, b| x.conv_transpose2d(w, Some(b), plain));
    let (stride, padding, output_padding) = ([2, 3], [1, 2], [1, 0]);
    let groups =
        ConvTransposeOptions { stride, padding, output_padding, groups: 2, ..Default::default() };
    check_vectors("t_groups", |x, w, b| x.conv_transpose2d(w, Some(b), groups));
    let (stride, dilation, output_padding) = ([2, 2], [3, 2], [2, 1]);
    let dilated = ConvTransposeOptions { stride, dilation, output_padding, ..Default::default() };
    check_vectors("t_dilated", |x, w, b| x.conv_transpose2d(w, Some(b), dilated));
}

fn bits(x: &T) -> Vec<u32> {
    x.to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
}

#[test]
fn fused_activations_have_the_bits_of_separate_ones() -> Result<()> {
    let mut rng = Rng::seed(15);
    for (dtype, _) in DTYPES {
        let x = T::randn((2, 3, 7, 9), &mut rng)?.to_dtype(dtype)?;
        let w = T::randn((5, 3, 3, 2), &mut rng)?.to_dtype(dtype)?;
        let options = ConvOptions::default();
        for activation in Activation::ALL {
            let expected = x.conv2d(&w, None, options)?.activation(activation)?;
            for x in [x.clone(), x.requires_grad()] {
                let y = x.conv2d_activation(&w, None, options, activation)?;
                let wide = |x: &T| x.to_dtype(DType::F64)?.to_vec::<f64>();
                let tracked = x.is_tracked();
                assert!(
                    wide(&y)? == wide(&expected)?,
                    "{dtype} {activation:?}, tracked: {tracked}"
                );
            }
        }
    }
    Ok(())
}

/// An image has the same bits alone and in a batch, in any layout.
#[test]
fn batches_and_layouts_do_not_change_the_bits() -> Result<()> {
    let mut rng = Rng::seed(13);
    for (c, o, size, kernel) in [(3, 16, 40, 3), (70, 20, 9, 3), (20, 70, 7, 1), (1, 5, 30, 5)] {
        let x = T::randn((6, c, size, size), &mut rng)?;
        let w = T::randn((o, c, kernel, kernel), &mut rng)?;
        let options = ConvOptions { padding: Padding::Same, ..Default::default() };
        let all = x.conv2d(&w, None, options)?;
        for i in 0..6 {
            let alone = x.narrow(0, i, 1)?.conv2d(&w, None, options)?;
            assert_eq!(bits(&alone), bits(&all.narrow(0, i, 1)?), "image {i} of {}", x.shape());
        }
        let permuted = x.permute(&[0, 2, 3, 1])?.contiguous()?.permute(&[0, 3, 1, 2])?;
        assert_eq!(bits(&permuted.conv2d(&w, None, options)?), bits(&all), "{}", x.shape());
    }
    Ok(())
}

/// Shapes that take several bands of rows or of columns, several column blocks of packed windows, or several pieces
/// of the sums of the filters' gradient.
#[test]
fn long_and_wide_images_agree() -> Result<()> {
    let mut draw = Draw(Rng::seed(17));
    // Dtype, images [c, h, w], filters [o, kh, kw], groups, stride.
    let cases = [
        (1, [2, 1, 33_000], [3, 1, 3], 1, 1),
        (1, [2, 1, 3_000], [3, 1, 1], 1, 1),
        (2, [2, 1, 3_001], [3, 1, 1], 1, 2),
        (1, [2, 40, 60], [64, 3, 3], 1, 1),
        (2, [2, 41, 60], [64, 3, 3], 1, 2),
        (1, [64, 5, 600], [2, 3, 3], 1, 1),
        (1, [2, 1, 300], [1_100, 1, 2], 1, 1),
        (0, [1, 260, 260], [1, 3, 3], 1, 1),
        (0, [2, 1, 66_000], [2, 1, 3], 2, 1),
    ];
    for (dtype, [c, h, w], [o, kh, kw], groups, stride) in cases {
        let (dtype, tolerance) = DTYPES[dtype];
        let x: T = draw.tensor((1, c, h, w), dtype)?;
        let weight = draw.tensor((o, c / groups, kh, kw), dtype)?;
        let padding = Padding::Zeros([kh / 2, kw / 2]);
        let options =
            ConvOptions { padding, stride: [stride.min(h), stride], groups, ..Default::default() };
        let what = format!("{dtype} {} {} {options:?}", x.shape(), weight.shape());
        let tested = |[x, w]: [&T; 2]| x.conv2d(w, None, options);
        let plain = |[x, w]: [&R; 2]| x.conv2d(w, None, options);
        assert!(compare(&what, tolerance, &mut draw, [&x, &weight], tested, plain)?);
    }
    Ok(())
}

#[test]
fn threads_do_not_change_the_bits() {
    alone("fused::conv::threads_do_not_change_the_bits", || {
        let results = || -> Result<Vec<Vec<u32>>> {
            let mut rng = Rng::seed(14);
            let mut all = Vec::new();
            for (n, c, o, size, stride) in
                [(1, 16, 50, 40, 1), (9, 40, 24, 14, 2), (2, 20, 9, 41, 2), (3, 3, 8, 90, 1)]
            {
                let x = T::randn((n, c, size, size), &mut rng)?.requires_grad();
                let w = T::randn((o, c, 3, 3), &mut rng)?.requires_grad();
                let padding = Padding::Zeros([1, 1]);
                let options = ConvOptions { padding, stride: [stride; 2], ..Default::default() };
                let y = x.conv2d(&w, None, options)?;
                let grads = y.square()?.sum(None, false)?.backward()?;
                all.extend([bits(&y), bits(grads.wrt(&x)?), bits(grads.wrt(&w)?)]);
            }
            for (kernel, stride) in [(1, 1), (3, 1), (4, 3)] {
                let x = T::randn((1, 12, 9001), &mut rng)?.requires_grad();
                let w = T::randn((40, 12, kernel), &mut rng)?.requires_grad();
                let padding = Padding::Zeros([1]);
                let options = ConvOptions { padding, stride: [stride], ..Default::default() };
                let y = x.conv1d(&w, None, options)?;
                let grads = y.square()?.sum(None, false)?.backward()?;
                all.extend([bits(&y), bits(grads.wrt(&x)?), bits(grads.wrt(&w)?)]);
            }
            Ok(all)
        };
        set_threads(1).unwrap();
        let expected = results().unwrap();
        for threads in [2, 3, 7] {
            set_threads(threads).unwrap();
            assert!(results().unwrap() == expected, "{threads} threads");
        }
    });
}

#[test]
fn arguments_that_do_not_fit_are_errors_that_name_them() {
    let x = T::zeros((2, 4, 5, 6), DType::F32).unwrap();
    let w = |shape: [usize; 4]| T::zeros(shape, DType::F32).unwrap();
    let plain = ConvOptions::<2>::default();
    let error = |y: Result<T>| y.unwrap_err().to_string();
    let three = T::zeros((2, 4, 5), DType::F32).unwrap();
    assert!(
        error(three.conv2d(&w([3, 4, 3, 3]), None, plain))
            .contains("conv2d: shape [2, 4, 5]: expected 4 axes")
    );
    assert!(
        error(x.conv2d(&w([3, 5, 3, 3]), None, plain)).contains("[2, 4, 5, 6] and [3, 5, 3, 3]")
    );
    assert!(
        error(x.conv2d(&w([3, 4, 6, 3]), None, plain))
            .contains("no window of extents [6, 3] fits images of shape [2, 4, 5, 6]: stride [1, 1], dilation [1, 1], padding [0, 0]")
    );
    let line = T::zeros((1, 4, 2), DType::F32).unwrap();
    let filters = T::zeros((3, 4, 3), DType::F32).unwrap();
    assert!(
        error(line.conv1d(&filters, None, ConvOptions::default()))
            .contains("no window of extents [3] fits images of shape [1, 4, 2]: stride [1],")
    );
    let groups = ConvOptions { groups: 3, ..plain };
    assert!(
        error(x.conv2d(&w([3, 4, 3, 3]), None, groups)).contains("3 groups do not divide 4 input")
    );
    for (options, text) in [
        (ConvOptions { groups: 0, ..plain }, "expected at least 1 group, got 0"),
        (ConvOptions { stride: [0, 1], ..plain }, "stride must be at least 1, got [0, 1]"),
        (
            ConvOptions { stride: [0, 1], padding: Padding::Same, ..plain },
            "stride must be at least 1, got [0, 1]",
        ),
        (ConvOptions { dilation: [1, 0], ..plain }, "dilation must be at least 1, got [1, 0]"),
        (ConvOptions { padding: Padding::Zeros([usize::MAX, 0]), ..plain }, "too long"),
    ] {
        let error = error(x.conv2d(&w([3, 4, 3, 3]), None, options));
        assert!(error.starts_with("conv2d: ") && error.contains(text), "{options:?}: {error}");
    }
    assert!(
        error(x.conv2d(&w([3, 4, 0, 3]), None, plain))
            .contains("filter extents must be at least 1, got [0, 3]")
    );
    let bias = T::zeros(4, DType::F32).unwrap();
    assert!(error(x.conv2d(&w([3, 4, 3, 3]), Some(&bias), plain)).contains("[4]"));
    let integers = x.to_dtype(DType::I64).unwrap();
    assert!(error(integers.conv2d(&w([3, 4, 3, 3]), None, plain)).contains("not defined for i64"));
    let wide = w([3, 4, 3, 3]).to_dtype(DType::F64).unwrap();
    assert!(error(x.conv2d(&wide, None, plain)).contains("dtypes"));
    let transposed = ConvTransposeOptions::<2>::default();
    let more = ConvTransposeOptions { output_padding: [1, 0], ..transposed };
    assert!(
        error(x.conv_transpose2d(&w([4, 2, 3, 3]), None, more))
            .contains("output_padding 1 of axis 0")
    );
    let less = ConvTransposeOptions { padding: [4, 0], ..transposed };
    assert!(error(x.conv_transpose2d(&w([4, 2, 3, 3]), None, less)).ends_with(
        "conv_transpose2d: padding 4 at both ends of axis 0 leaves no pixel of the 7 without padding"
    ));
    let still = ConvTransposeOptions { stride: [1, 0], ..transposed };
    assert!(
        error(x.conv_transpose2d(&w([4, 2, 3, 3]), None, still))
            .contains("stride must be at least 1, got [1, 0]")
    );
    let none = T::zeros((2, 4, 0, 6), DType::F32).unwrap();
    assert!(
        error(none.conv_transpose2d(&w([4, 2, 3, 3]), None, transposed))
            .contains("axis 0 of images of shape [2, 4, 0, 6] has no pixel")
    );
    let halves = ConvTransposeOptions { groups: 2, ..transposed };
    let three = T::zeros((2, 3, 5, 6), DType::F32).unwrap();
    assert!(
        error(three.conv_transpose2d(&w([3, 2, 3, 3]), None, halves))
            .contains("2 groups do not divide 3 input and 4 output channels")
    );
    // An empty batch is not an error.
    let empty = T::zeros((0, 4, 5, 6), DType::F32).unwrap().requires_grad();
    let y = empty.conv2d(&w([3, 4, 3, 3]).requires_grad(), None, plain).unwrap();
    assert_eq!(y.dims(), [0, 3, 3, 4]);
    y.sum(None, false).unwrap().backward().unwrap();
}
