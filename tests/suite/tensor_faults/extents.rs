//! Numbers at the ends of their types as arguments: an error or the right extents, on backends with kernels and on
//! those with the definitions. Run with overflow checks, as tests are by default.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use super::{T, text};
use swath::prelude::*;
use swath::{ConvOptions, ConvTransposeOptions, PadMode, Padding, PoolOptions};

const HALF: usize = 1 << 63;
const SIZES: [usize; 12] =
    [0, 1, 2, 3, 1 << 32, 1 << 60, 1 << 62, HALF - 1, HALF, HALF + 1, usize::MAX - 1, usize::MAX];
const ENDS: [isize; 10] =
    [0, 1, -1, 2, -2, 1 << 32, isize::MAX, isize::MAX - 1, isize::MIN, isize::MIN + 1];

/// Results of at most so many elements must be given; larger ones may be refused.
const SMALL: i128 = 1 << 16;

/// The extents of a result in numbers that do not overflow; `None` for an error.
type Extents = Option<Vec<i128>>;

fn check<B: Backend>(
    name: &str,
    argument: i128,
    call: impl Fn() -> Result<Tensor<B>>,
    extents: Extents,
) {
    let context = format!("{name} of {argument} on {}", B::NAME);
    let begin = Instant::now();
    let result = catch_unwind(AssertUnwindSafe(|| -> Result<Tensor<B>> {
        let y = call()?;
        if y.is_tracked() && (y.numel() as i128) <= SMALL {
            y.sum_all()?.backward()?;
        }
        Ok(y)
    }));
    let result = result.unwrap_or_else(|_| panic!("{context} panics"));
    assert!(begin.elapsed() < Duration::from_secs(20), "{context}: {:?}", begin.elapsed());
    match (result, extents) {
        (Ok(y), Some(extents)) => {
            let dims: Vec<i128> = y.dims().iter().map(|&dim| dim as i128).collect();
            assert_eq!(dims, extents, "{context}");
        }
        (Ok(y), None) => panic!("{context}: {:?}", y.dims()),
        (Err(error), Some(extents)) => {
            let product = extents.iter().try_fold(1, |n: i128, &dim| n.checked_mul(dim));
            let rest = extents.iter().filter(|&&dim| dim > 0);
            let is_large = rest.fold(1.0, |n, &dim| n * dim as f64) > (1u64 << 59) as f64;
            let may_fail = is_large || product.is_none_or(|n| n > SMALL);
            assert!(may_fail, "{context}: {error}, not {extents:?}");
        }
        (Err(error), None) => assert!(!error.to_string().is_empty()),
    }
}

/// No images where the number is that of elements which could be allocated.
fn images(n: usize) -> usize {
    usize::from(n != 1 << 32)
}

fn leaf<B: Backend>(shape: impl Into<Shape>) -> Tensor<B> {
    Tensor::ones(shape, DType::F32).unwrap().requires_grad()
}

/// Windows along an axis.
fn windows(
    extent: i128,
    padding: i128,
    kernel: i128,
    dilation: i128,
    stride: i128,
) -> Option<i128> {
    let window = (kernel - 1) * dilation + 1;
    let padded = extent + 2 * padding;
    let fits = kernel > 0 && dilation > 0 && stride > 0 && window <= padded;
    fits.then(|| (padded - window) / stride + 1)
}

fn sizes<B: Backend>() {
    for size in SIZES {
        let (n, i) = (images(size), size as i128);
        let count = n as i128;
        let row = |len: i128| Some(vec![len]);
        let at_most = |most: i128| (i <= most).then_some(());
        let x = leaf::<B>(4);
        let run = |name: &str, call: &dyn Fn() -> Result<Tensor<B>>, extents: Extents| {
            check(name, i, call, extents);
        };
        run("narrow from", &|| x.narrow(0, size, 1), at_most(3).and_then(|()| row(1)));
        run("narrow of", &|| x.narrow(0, 1, size), at_most(3).and_then(|()| row(i)));
        let fits = |size: i128, step: i128| (size <= 4 && step > 0).then(|| (4 - size) / step + 1);
        run("unfold of", &|| x.unfold(0, size, 1), fits(i, 1).map(|n| vec![n, i]));
        run("unfold every", &|| x.unfold(0, 2, size), fits(2, i).map(|n| vec![n, 2]));
        let empty = leaf::<B>((0, 2));
        run("repeat", &|| empty.repeat((1, size)), Some(vec![0, 2 * i]));
        run("tile", &|| empty.tile((size, 1)), (i < 1 << 59).then(|| vec![0, 2]));
        run("broadcast_to", &|| x.narrow(0, 0, 1)?.broadcast_to(size), row(i));
        run("reshape", &|| empty.reshape((0, size)), Some(vec![0, i]));
        let cut = |parts: Result<Vec<Tensor<B>>>| Ok(parts?.swap_remove(0));
        run("split", &|| cut(x.split(size, 0)), (i > 0).then(|| vec![i.min(4)]));
        run("split each", &|| cut(x.split([size, size], 0)), (i == 2).then(|| vec![2]));
        let chunk = |i: i128| vec![4i128.div_euclid(i) + i128::from(4 % i > 0)];
        run("chunk", &|| cut(x.chunk(size, 0)), (i > 0).then(|| chunk(i)));
        let ids = Tensor::<B>::zeros(n, DType::I64).unwrap();
        run("one_hot", &|| ids.one_hot(size), (i > 0 || n == 0).then(|| vec![count, i]));
        let few = Tensor::<B>::zeros(2, DType::I64).unwrap();
        if n == 1 {
            run("bincount", &|| few.bincount(size), row(i.max(1)));
            run("histogram", &|| x.histogram(size, 0.0..2.0), (i > 0).then(|| vec![i]));
            run("eye", &|| Tensor::eye(size, DType::F32), Some(vec![i, i]));
            run("eye of rows", &|| Tensor::eye((size, 2), DType::F32), Some(vec![i, 2]));
            run("linspace", &|| Tensor::linspace(0.0, 1.0, size), row(i));
            run("linspace i64", &|| Tensor::linspace_as(0.0, 0.0, size, DType::I64), row(i));
            run("zeros", &|| Tensor::zeros((size, 2), DType::F32), Some(vec![i, 2]));
            let rng = || Rng::seed(1);
            run("rand", &|| Tensor::rand(size, 0.0..1.0, &mut rng()), row(i));
            run("randn", &|| Tensor::randn(size, &mut rng()), row(i));
            run("randint", &|| Tensor::randint(size, 0..2, &mut rng()), row(i));
            run("multinomial", &|| x.multinomial(size, &mut rng()), row(i));
            let distinct = || x.multinomial_distinct(size, &mut rng());
            run("multinomial_distinct", &distinct, at_most(4).and_then(|()| row(i)));
            let order = || Tensor::from_vec(rng().permutation(size)?, size);
            run("permutation", &order, row(i));
        }
        let top = |pair: Result<(Tensor<B>, Tensor<B>)>| pair.map(|pair| pair.0);
        run("topk", &|| top(x.topk(size, 0)), at_most(4).and_then(|()| row(i)));
        run("bottomk", &|| top(x.bottomk(size, 0)), at_most(4).and_then(|()| row(i)));
        run("variance", &|| x.variance(None, false, size), Some(vec![]));
        run("std", &|| x.std(None, true, size), Some(vec![1]));
        run(
            "group_norm",
            &|| leaf::<B>((2, 4, 3)).group_norm(size, None, None, 0.1),
            [1, 2, 4].contains(&i).then(|| vec![2, 4, 3]),
        );
        let none = || leaf::<B>((2, 0, 3)).group_norm(size, None, None, 0.1);
        run("group_norm of no channels", &none, (i > 0 && i < 1 << 59).then(|| vec![2, 0, 3]));

        let signals = leaf::<B>((n, 2, 5));
        let adaptive = [count, 2, i];
        run(
            "adaptive_avg",
            &|| signals.adaptive_avg_pool1d(size),
            (i > 0).then(|| adaptive.to_vec()),
        );
        run(
            "adaptive_max",
            &|| signals.adaptive_max_pool1d(size),
            (i > 0).then(|| adaptive.to_vec()),
        );
        let pictures = leaf::<B>((n, 1, 2, 3));
        for mode in [
            Interpolation::Nearest,
            Interpolation::Bilinear { align_corners: true },
            Interpolation::Bicubic { align_corners: false },
        ] {
            run(
                "interpolate",
                &|| pictures.interpolate([2, size], mode),
                (i > 0).then(|| vec![count, 1, 2, i]),
            );
        }
    }
}

fn window_options<B: Backend>() {
    for size in SIZES {
        let (n, i) = (images(size), size as i128);
        let count = n as i128;
        let signals = leaf::<B>((n, 2, 5));
        let run = |name: &str, call: &dyn Fn() -> Result<Tensor<B>>, windows: Option<i128>| {
            check(name, i, call, windows.map(|windows| vec![count, 2, windows]));
        };
        let plain = PoolOptions::new([2]);
        let pools = [
            ("kernel", PoolOptions::new([size])),
            ("stride", PoolOptions { stride: Some([size]), ..plain }),
            ("padding", PoolOptions { padding: [size], ..plain }),
            ("dilation", PoolOptions { dilation: [size], ..plain }),
            ("kernel and padding", PoolOptions { padding: [size / 2], ..PoolOptions::new([size]) }),
            ("ceil", PoolOptions { stride: Some([size]), ceil_mode: true, ..plain }),
        ];
        let expected = [
            windows(5, 0, i, 1, i),
            windows(5, 0, 2, 1, i),
            (i <= 1).then(|| windows(5, i, 2, 1, 2)).flatten(),
            windows(5, 0, 2, i, 2),
            windows(5, i / 2, i, 1, i).filter(|_| i < 1 << 59),
            // The last window begins in the image.
            [None, Some(4), Some(3)].get(size).copied().unwrap_or(Some(if i == 3 { 2 } else { 1 })),
        ];
        for ((name, options), expected) in pools.into_iter().zip(expected) {
            let max = || signals.max_pool1d(options);
            if name == "ceil" && i >= 1 << 60 {
                // One window; beyond what can be addressed, an error too.
                let _ = catch_unwind(AssertUnwindSafe(max)).expect("max_pool1d panics");
                continue;
            }
            run(&format!("max_pool1d {name}"), &max, expected);
            if name != "dilation" {
                run(&format!("avg_pool1d {name}"), &|| signals.avg_pool1d(options), expected);
            }
        }
        let filters = leaf::<B>((2, 2, 2));
        let plain = ConvOptions::default();
        let convolutions = [
            ("stride", ConvOptions { stride: [size], ..plain }, windows(5, 0, 2, 1, i)),
            ("dilation", ConvOptions { dilation: [size], ..plain }, windows(5, 0, 2, i, 1)),
            (
                "padding",
                ConvOptions { padding: Padding::Zeros([size]), ..plain },
                windows(5, i, 2, 1, 1),
            ),
            (
                "padding and stride",
                ConvOptions { padding: Padding::Zeros([size]), stride: [size], ..plain },
                windows(5, i, 2, 1, i).filter(|_| i < 1 << 58),
            ),
            (
                "same stride",
                ConvOptions { padding: Padding::Same, stride: [size], ..plain },
                (i > 0).then(|| (5 + i - 1) / i),
            ),
            (
                "same dilation",
                ConvOptions { padding: Padding::Same, dilation: [size], ..plain },
                (i > 0 && i < 1 << 59).then_some(5),
            ),
        ];
        for (name, options, expected) in convolutions {
            let conv = || signals.conv1d(&filters, None, options);
            if name == "same dilation" && i == 1 << 60 {
                // At the limit of what can be addressed.
                catch_unwind(AssertUnwindSafe(conv)).expect("conv1d panics").ok();
                continue;
            }
            run(&format!("conv1d {name}"), &conv, expected);
        }
        let point = leaf::<B>((2, 2, 1));
        let options = ConvOptions { dilation: [size], ..plain };
        run("conv1d of points", &|| signals.conv1d(&point, None, options), (i > 0).then_some(5));
        let options = ConvOptions { groups: size, ..plain };
        run("conv1d groups", &|| signals.conv1d(&filters, None, options), (i == 1).then_some(4));
        let plain = ConvTransposeOptions::default();
        let transposed = |stride: i128, padding: i128, more: i128, dilation: i128| {
            let extent = 4 * stride - 2 * padding + dilation + more + 1;
            (stride > 0 && dilation > 0 && extent > 0).then_some(extent)
        };
        for (name, options, expected) in [
            ("stride", ConvTransposeOptions { stride: [size], ..plain }, transposed(i, 0, 0, 1)),
            ("padding", ConvTransposeOptions { padding: [size], ..plain }, transposed(1, i, 0, 1)),
            (
                "output_padding",
                ConvTransposeOptions { output_padding: [size], ..plain },
                transposed(1, 0, i, 1).filter(|_| i == 0),
            ),
            (
                "dilation",
                ConvTransposeOptions { dilation: [size], ..plain },
                transposed(1, 0, 0, i),
            ),
        ] {
            let name = format!("conv_transpose1d {name}");
            run(&name, &|| signals.conv_transpose1d(&filters, None, options), expected);
        }
        let options = ConvTransposeOptions { groups: size, ..plain };
        let conv = || signals.conv_transpose1d(&filters, None, options);
        check(
            "conv_transpose1d groups",
            i,
            conv,
            match i {
                1 | 2 => Some(vec![count, 2 * i, 6]),
                _ => None,
            },
        );
        let pictures = leaf::<B>((n, 1, 1, 5));
        let (plain, pair) = (ConvOptions::new(), [1, 2]);
        for (name, kernel, options, expected) in [
            ("kernel", [1, size], plain, windows(5, 0, i, 1, 1)),
            ("stride", pair, plain.stride([1, size]), windows(5, 0, 2, 1, i)),
            ("padding", pair, plain.padding([0, size]), windows(5, i, 2, 1, 1)),
            ("dilation", pair, plain.dilation([1, size]), windows(5, 0, 2, i, 1)),
        ] {
            let rows = if name == "kernel" { i } else { 2 };
            let extents = expected.map(|columns| vec![count, rows, columns]);
            check(&format!("im2col {name}"), i, || pictures.im2col(kernel, options), extents);
            let columns = leaf::<B>((n, 2, 4));
            let fold = || columns.col2im([1, size], pair, plain);
            check("col2im", i, fold, (i == 5).then(|| vec![count, 1, 1, 5]));
        }
    }
}

fn ends<B: Backend>() {
    let x = leaf::<B>((3, 4));
    let whole = || Some(vec![3, 4]);
    for end in ENDS {
        let i = end as i128;
        let run = |name: &str, call: &dyn Fn() -> Result<Tensor<B>>, extents: Extents| {
            check(name, i, call, extents);
        };
        run("tril", &|| x.tril(end), whole());
        run("triu", &|| x.triu(end), whole());
        run("roll", &|| x.roll(end, 1), whole());
        run("roll both", &|| x.roll([end as i64, end as i64], [0, 1]), whole());
        let away = i.abs();
        if end != 1 << 32 {
            let square = vec![4 + away; 2];
            run("diag of a vector", &|| leaf::<B>(4).diag(end), Some(square));
        }
        let len = if i > 0 { (4 - i).min(3) } else { (3 + i).min(4) };
        run("diag of a matrix", &|| x.diag(end), Some(vec![len.max(0)]));
        let empty = leaf::<B>((0, 4));
        for (mode, least) in [
            (PadMode::Constant(0.0), i128::MIN),
            (PadMode::Replicate, 1),
            (PadMode::Circular, i),
            (PadMode::Reflect, i + 1),
        ] {
            let padded = |more: i128| (more > 0 || 4 + more >= 0).then_some(4 + more);
            let fits = i <= 0 || least <= 4;
            let extents = padded(i).filter(|_| fits).map(|len| vec![0, len]);
            run("pad before", &|| empty.pad(&[(end, 0)], mode), extents.clone());
            run("pad after", &|| empty.pad(&[(0, end)], mode), extents);
        }
        let from = if i < 0 { (4 + i).max(0) } else { i.min(4) };
        run("slice from", &|| x.slice(s![.., end..]), Some(vec![3, 4 - from]));
        run("slice to", &|| x.slice(s![.., ..end]), Some(vec![3, from]));
        let len = (i != 0).then(|| (4 + i.abs() - 1) / i.abs());
        run("slice by", &|| x.slice(s![.., ..;end]), len.map(|len| vec![3, len]));
        let is_index = (-3..3).contains(&i);
        run("slice at", &|| x.slice(s![end]), is_index.then(|| vec![4]));
        let is_axis = (-2..2).contains(&i);
        let kept = if i % 2 == 0 { vec![1, 4] } else { vec![3, 1] };
        run("sum_axis", &|| x.sum_axis(end, true), is_axis.then_some(kept));
        let index = Tensor::<B>::from_vec(vec![end as i64], 1).unwrap();
        run("index_select", &|| x.index_select(0, &index), is_index.then(|| vec![1, 4]));
        run(
            "index_add",
            &|| x.index_add(0, &index, &x.narrow(0, 0, 1)?),
            is_index.then_some(vec![3, 4]),
        );
        run("index", &|| x.index(&[Some(&index)]), is_index.then(|| vec![1, 4]));
        let (at, to) = (end as f64, (1u64 << 53) as f64);
        let count = ((to - at) / 2f64.powi(53)).ceil().max(0.0) as i128;
        run("arange", &|| Tensor::arange(at, to, to), Some(vec![count]));
        run("arange i64", &|| Tensor::arange_as(at, at, 1.0, DType::I64), Some(vec![0]));
        for (start, end) in [(-1e300, 0.0), (0.0, 1e300), (at, 1e300)] {
            let line = || Tensor::<B>::linspace_as(start, end, 3, DType::I64);
            check("linspace i64", i, line, None);
        }
        let one = || Tensor::arange_as(0.0, at, at, DType::U8);
        run("arange of u8", &one, (i != 0).then(|| vec![1]));
    }
}

#[test]
fn sizes_at_the_end_of_their_type() {
    sizes::<CpuBackend>();
    sizes::<ReferenceBackend>();
}

#[test]
fn windows_at_the_end_of_their_type() {
    window_options::<CpuBackend>();
    window_options::<ReferenceBackend>();
}

#[test]
fn offsets_at_the_end_of_their_type() {
    ends::<CpuBackend>();
    ends::<ReferenceBackend>();
}

#[test]
fn long_paddings_and_dilations_are_errors_that_say_so() {
    let x = T::ones((1, 1, 5), DType::F32).unwrap();
    for padding in [Padding::Same, Padding::Valid, Padding::Zeros([3])] {
        let options = ConvOptions { dilation: [HALF], padding, ..Default::default() };
        let text = text(x.conv1d(&x.narrow(2, 0, 3).unwrap(), None, options));
        assert!(text.starts_with("conv1d: ") && text.contains("axis 0"), "{text}");
    }
}

/// Places of a window in its padding are not visited one by one.
#[test]
fn windows_much_longer_than_their_images_have_the_right_values() -> Result<()> {
    fn run<B: Backend>() -> Result<()> {
        let x = Tensor::<B>::from_vec(vec![3.0f32, 7.0, 5.0], (1, 1, 3))?.requires_grad();
        for (kernel, stride) in [(1 << 41, 1 << 41), ((1 << 41) + 1, 1), (1 << 41, 1)] {
            let kernels = PoolOptions::new([kernel]);
            let options = PoolOptions { padding: [1 << 40], stride: Some([stride]), ..kernels };
            let count = windows(3, 1 << 40, kernel as i128, 1, stride as i128).unwrap() as usize;
            let largest = x.max_pool1d(options)?;
            assert_eq!(largest.to_vec::<f32>()?, [7.0, 7.0, 7.0, 7.0][..count]);
            let grads = largest.sum_all()?.backward()?;
            assert_eq!(grads.wrt(&x)?.to_vec::<f32>()?, [0.0, count as f32, 0.0]);
            let mean = x.avg_pool1d(options)?;
            assert_eq!(mean.to_vec::<f32>()?, [5.0; 4][..count]);
            let counted = PoolOptions { count_include_pad: true, ..options };
            assert!(text(x.avg_pool1d(counted)).contains("too long"));
        }
        Ok(())
    }
    run::<CpuBackend>()?;
    run::<ReferenceBackend>()
}

/// A common divisor of stride and dilation is not found by trying.
#[test]
fn convolutions_with_long_strides_and_dilations_end() -> Result<()> {
    let (x, weight) = (T::ones((1, 1, 2), DType::F32)?, T::ones((1, 1, 1), DType::F32)?);
    let (stride, padding, dilation) = ([usize::MAX - 1], [HALF - 14], [1 << 62]);
    let options = ConvTransposeOptions { stride, padding, dilation, ..Default::default() };
    assert!(text(x.conv_transpose1d(&weight, None, options)).starts_with("conv_transpose1d: "));

    let x = T::ones((1, 1, 3, 7), DType::F32)?.requires_grad();
    let weight = T::ones((1, 1, 3, 3), DType::F32)?.requires_grad();
    let (stride, dilation) = ([4294967332, 5], [4294967318, 5]);
    let options = ConvOptions { stride, dilation, padding: Padding::Same, ..Default::default() };
    let grads = x.conv2d(&weight, None, options)?.sum_all()?.backward()?;
    // Down, the taps in the middle see the second row. Across, windows see pixels 1 and 6 at taps 1, 2 and 0, 1.
    let middle = |row: &[f32]| [&vec![0.0; row.len()], row, &vec![0.0; row.len()]].concat();
    assert_eq!(grads.wrt(&x)?.to_vec::<f32>()?, middle(&[0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 2.0]));
    assert_eq!(grads.wrt(&weight)?.to_vec::<f32>()?, middle(&[1.0, 2.0, 1.0]));
    Ok(())
}
