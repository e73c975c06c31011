//! Invalid input gives an error that names the operation and the shapes, or the documented value; no
//! method panics.

use proptest::prelude::*;
use swath::ops::{BinaryOp, CompareOp, ReduceOp, UnaryOp};
use swath::prelude::*;
use swath::{ConvOptions, Rng};

type T = Tensor<CpuBackend>;

fn message(result: Result<T>) -> String {
    result.expect_err("should be an error").to_string()
}

fn zeros(shape: impl Into<Shape>) -> T {
    T::zeros(shape, DType::F32).unwrap()
}

#[test]
fn errors_name_the_operation_and_the_shapes() {
    let (a, b) = (zeros((2, 3)), zeros((4, 5)));
    let integers = tensor![i64; [1, 2, 3], [4, 5, 6]];
    let bits = tensor![bool; true, false];
    let cases: Vec<(Result<T>, &[&str])> = vec![
        (a.add(&b), &["add", "[2, 3]", "[4, 5]"]),
        (a.matmul(&b), &["matmul", "[2, 3]", "[4, 5]"]),
        (a.matmul(&zeros(())), &["matmul", "[2, 3]", "[]"]),
        (zeros(3).matmul(&a), &["matmul", "[3]", "[2, 3]"]),
        (a.add(&integers), &["add", "f32", "i64", "[2, 3]"]),
        (a.eq(&integers), &["eq", "f32", "i64", "[2, 3]"]),
        (a.sum(Some(&[2]), false), &["sum", "axis 2", "[2, 3]"]),
        (a.sum(Some(&[1, 1]), false), &["sum", "axis 1", "twice"]),
        (a.softmax(2), &["softmax", "axis 2", "[2, 3]"]),
        (a.sum_axis(-3, false), &["sum", "axis -3", "[2, 3]"]),
        (a.reshape((4, 2)), &["reshape", "[2, 3]", "[4, 2]"]),
        (a.reshape([usize::MAX, 2]), &["reshape", "more elements"]),
        (a.permute(&[0, 0]), &["permute", "axis 0", "twice"]),
        (a.permute(&[0]), &["permute", "[2, 3]", "[0]"]),
        (zeros(3).transpose(None), &["transpose", "[3]"]),
        (a.narrow(1, 2, 2), &["narrow", "axis 1", "[2, 3]"]),
        (a.narrow(1, usize::MAX, 2), &["narrow", "axis 1", "[2, 3]"]),
        (a.slice(s![2]), &["slice", "index 2", "axis 0", "[2, 3]"]),
        (a.slice(s![0, 0, 0]), &["slice", "axis 2", "[2, 3]"]),
        (a.slice(s![..;0]), &["slice", "step"]),
        (a.squeeze(0), &["squeeze", "[2, 3]"]),
        (a.unsqueeze(4), &["unsqueeze", "axis 4", "[2, 3]"]),
        (zeros([1; 8]).unsqueeze(0), &["unsqueeze", "9 axes"]),
        (a.broadcast_to((2, 4)), &["broadcast_to", "[2, 3]", "[2, 4]"]),
        (a.expand(3), &["expand", "[2, 3]", "[3]"]),
        (a.sum_to((2, 2)), &["sum_to", "[2, 3]", "[2, 2]"]),
        (T::cat(&[&a, &b], 0), &["cat", "[2, 3]", "[4, 5]"]),
        (T::cat(&[] as &[T], 0), &["cat"]),
        (a.gather(0, &integers), &["gather", "axis 0", "[2, 3]"]),
        (a.gather(0, &a), &["gather", "f32", "i64", "[2, 3]"]),
        (a.index_select(1, &tensor![i64; 3]), &["index_select", "3", "[2, 3]"]),
        (a.index_select(1, &tensor![i64; -4]), &["index_select", "-4", "[2, 3]"]),
        (a.index_select(1, &integers), &["index_select", "[2, 3]"]),
        (a.scatter_add(0, &integers, &b), &["scatter_add", "[2, 3]", "[4, 5]"]),
        (zeros((4, 0)).index_select(0, &tensor![i64; 9]), &["index_select", "9", "[4, 0]"]),
        (zeros((0, 0)).index_select(1, &tensor![i64; 0]), &["index_select", "0", "[0, 0]"]),
        (zeros((4, 0)).embedding(&tensor![i64; [-1]]), &["embedding", "-1", "[4, 0]"]),
        (
            zeros((4, 0)).index_add(0, &tensor![i64; 9], &zeros((1, 0))),
            &["index_add", "9", "[4, 0]"],
        ),
        (
            zeros((4, 2)).index_add(0, &tensor![i64; 0, 1, 2], &zeros((2, 2))),
            &["index_add", "[3]", "[2, 2]"],
        ),
        (
            zeros((4, 2)).index_add(0, &tensor![i64; 0, 1, 2], &zeros((3, 5))),
            &["index_add", "[4, 2]", "[3, 5]"],
        ),
        (zeros((4, 2)).index_add(1, &tensor![i64; 0], &zeros(4)), &["index_add", "[4, 2]", "[4]"]),
        (T::where_cond(&a, &a, &b), &["where_cond", "[2, 3]", "[4, 5]"]),
        (T::where_cond(&a, &a, &integers), &["where_cond", "f32", "i64"]),
        (a.masked_fill(&b, 1.0), &["masked_fill", "[2, 3]", "[4, 5]"]),
        (a.logical_and(&b), &["logical_and", "[2, 3]", "[4, 5]"]),
        (a.logical_or(&b), &["logical_or", "[2, 3]", "[4, 5]"]),
        (a.select(&a, &b), &["select", "[2, 3]", "[4, 5]"]),
        (b.select(&zeros((2, 1)), &zeros((1, 3))), &["select", "[4, 5]", "[2, 1]"]),
        (a.mul_add(zeros((2, 1)), &b), &["mul_add", "[2, 3]", "[4, 5]"]),
        (zeros((2, 1)).mul_add(zeros((1, 3)), zeros((2, 5))), &["mul_add", "[1, 3]", "[2, 5]"]),
        (a.select(&a, &integers), &["select", "f32", "i64"]),
        (T::full((), 1.0f32).unwrap().t(), &["t: ", "[]"]),
        (integers.powf(2.0), &["powf", "i64", "[2, 3]"]),
        (integers.add_scalar(2.5), &["add_scalar", "2.5", "i64"]),
        (integers.mul_scalar(2.5), &["mul_scalar", "2.5", "i64"]),
        (integers.affine(2.5, 1.0), &["affine", "2.5", "i64"]),
        (integers.affine(2.0, 1.5), &["affine", "1.5", "i64"]),
        (zeros((0, 3)).argmax_all(), &["argmax_all", "[0, 3]"]),
        (zeros((0, 3)).argmin_all(), &["argmin_all", "[0, 3]"]),
        (bits.dot(&bits), &["dot", "bool", "[2]"]),
        (bits.clamp(0.0, 1.0), &["clamp", "bool", "[2]"]),
        (bits.clamp(0.0, 1.0), &["clamp", "bool", "[2]"]),
        (a.layer_norm(None, None, -1.0), &["layer_norm", "-1", "[2, 3]"]),
        (a.layer_norm(None, None, f64::NAN), &["layer_norm", "NaN", "[2, 3]"]),
        (a.rms_norm(None, -1e-320), &["rms_norm", "-1e-320", "[2, 3]"]),
        (a.rms_norm(None, f64::NAN), &["rms_norm", "NaN", "[2, 3]"]),
        (integers.exp(), &["exp", "i64", "[2, 3]"]),
        (integers.mean(None, false), &["mean", "i64", "[2, 3]"]),
        (integers.softmax(0), &["softmax", "i64", "[2, 3]"]),
        (bits.matmul(&bits), &["matmul", "bool", "[2]"]),
        (bits.neg(), &["neg", "bool", "[2]"]),
        (bits.add(&bits), &["add", "bool"]),
        (integers.div(zeros(3).to_dtype(DType::I64).unwrap()), &["div", "[2, 3]"]),
        (tensor![i64; i64::MIN].div(&tensor![i64; -1]), &["div", "[1]"]),
        (tensor![u8; 7].div(&tensor![u8; 0]), &["div", "[1]"]),
        (integers.add(2.5), &["add", "2.5", "i64"]),
        (zeros((0, 3)).max(None, false), &["max", "[0, 3]"]),
        (zeros((0, 3)).min(Some(&[0]), false), &["min", "[0, 3]"]),
        (T::zeros([usize::MAX, 2], DType::F32), &["zeros", "more elements"]),
        (T::zeros([1 << 60], DType::F64), &["zeros"]),
        (T::zeros([1; 9], DType::F32), &["zeros", "9 axes"]),
        (T::from_vec(vec![1f32; 5], (2, 3)), &["from_vec", "5", "[2, 3]"]),
        (T::arange(0., 1., 0.), &["arange"]),
        (T::arange(0., f64::NAN, 1.), &["arange"]),
        (T::arange(0., 1e300, 1.), &["arange"]),
        (T::eye(usize::MAX, DType::F32), &["eye"]),
        (bits.add(1.0), &["add", "bool"]),
        (a.to_dtype(DType::U8).unwrap().add(300), &["add", "300", "u8"]),
    ];
    for (result, parts) in cases {
        let text = message(result);
        for part in parts {
            assert!(text.contains(part), "\"{text}\" should contain \"{part}\"");
        }
        // Shapes in the order of the operands.
        let mut rest = text.as_str();
        for shape in parts.iter().filter(|part| part.starts_with('[')) {
            assert!(rest.contains(shape), "\"{text}\" should contain \"{shape}\" later");
            rest = &rest[rest.find(shape).unwrap()..];
        }
    }
    let text = a.item::<f32>().unwrap_err().to_string();
    assert!(text.contains("item") && text.contains("[2, 3]"), "{text}");
    let text = a.to_vec::<f64>().unwrap_err().to_string();
    assert!(text.contains("to_vec") && text.contains("f64"), "{text}");
}

#[test]
fn edge_cases_have_their_documented_values() {
    let empty = zeros((0, 3));
    assert_eq!(empty.sum(None, false).unwrap().item::<f32>().unwrap(), 0.0);
    assert!(empty.mean(None, false).unwrap().item::<f32>().unwrap().is_nan());
    assert_eq!(empty.max(Some(&[1]), false).unwrap().shape(), &Shape::new([0]));
    assert_eq!(empty.matmul(&zeros((3, 2))).unwrap().shape(), &Shape::new([0, 2]));
    assert_eq!(zeros((2, 0)).matmul(&zeros((0, 2))).unwrap().to_vec::<f32>().unwrap(), [0.0; 4]);
    assert_eq!(empty.exp().unwrap().numel(), 0);
    assert_eq!(empty.softmax(0).unwrap().shape(), &Shape::new([0, 3]));
    let nan = tensor![1.0, f32::NAN, 3.0];
    assert!(nan.max(None, false).unwrap().item::<f32>().unwrap().is_nan());
    assert!(nan.min(None, false).unwrap().item::<f32>().unwrap().is_nan());
    assert!(nan.maximum(2.0).unwrap().to_vec::<f32>().unwrap()[1].is_nan());
    assert!(nan.relu().unwrap().to_vec::<f32>().unwrap()[1].is_nan());
    let zero = tensor![0.0, -0.0].max(None, false).unwrap().item::<f32>().unwrap();
    assert!(zero == 0.0 && zero.is_sign_positive());
    let wrapped = tensor![i64; i64::MAX].add(1.0).unwrap();
    assert_eq!(wrapped.item::<i64>().unwrap(), i64::MIN);
    let product = tensor![2.0, 3.0].mul(&tensor![bool; true, false]).unwrap();
    assert_eq!(product.to_vec::<f32>().unwrap(), [2.0, 0.0]);
    assert_eq!(tensor![bool; true, true].sum(None, false).unwrap().item::<i64>().unwrap(), 2);
    assert_eq!(tensor![u8; 255, 1].sum(None, false).unwrap().item::<i64>().unwrap(), 256);
}

#[test]
#[should_panic(expected = "add: shapes [2] and [3] do not fit")]
fn operators_panic_with_the_message_of_the_error() {
    let _ = zeros(2) + zeros(3);
}

fn any_shape() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(
        prop_oneof![4 => 0usize..4, 1 => Just(usize::MAX), 1 => Just(1 << 33)],
        0..10,
    )
}

fn small_shape() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0usize..4, 0..5)
}

fn any_dtype() -> impl Strategy<Value = DType> {
    prop::sample::select(DType::ALL.to_vec())
}

fn tensor_of(shape: &[usize], dtype: DType, seed: u64) -> T {
    let count: usize = shape.iter().product();
    let values: Vec<f64> = Rng::seed(seed).uniform_vec(count, -3.0..3.0).unwrap();
    T::from_vec(values, shape).unwrap().to_dtype(dtype).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..Default::default() })]

    #[test]
    fn creation_never_panics(shape in any_shape(), dtype in any_dtype()) {
        // Skips valid sizes that are too large for this test.
        let numel = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
        prop_assume!(numel.is_none_or(|n| !(1 << 20..=1 << 50).contains(&n)));
        if let Ok(x) = T::zeros(shape.as_slice(), dtype) {
            prop_assert_eq!(x.dims(), shape.as_slice());
        }
        let _ = T::from_vec(vec![1f32; 3], shape.as_slice());
        let _ = zeros(1).reshape(shape.as_slice());
        let _ = zeros(()).broadcast_to(shape.as_slice());
        let _ = zeros((2, 3)).sum_to(shape.as_slice());
    }

    #[test]
    fn methods_never_panic(
        a_shape in small_shape(),
        b_shape in small_shape(),
        a_dtype in any_dtype(),
        b_dtype in any_dtype(),
        axis in -6isize..6,
        axes in prop::collection::vec(0usize..6, 0..4),
        (start, len, step) in (-5isize..5, 0usize..5, -3isize..4),
        track in any::<bool>(),
    ) {
        let mut a = tensor_of(&a_shape, a_dtype, 1);
        let b = tensor_of(&b_shape, b_dtype, 2);
        if track {
            a = a.requires_grad();
        }
        let mut results: Vec<Result<T>> = Vec::new();
        results.extend(UnaryOp::ALL.iter().map(|&op| a.unary(op)));
        results.extend(BinaryOp::ALL.iter().map(|&op| a.binary(op, &b)));
        results.extend(BinaryOp::ALL.iter().map(|&op| a.binary(op, 1.5)));
        results.extend(CompareOp::ALL.iter().map(|&op| a.compare(op, &b)));
        results.extend(ReduceOp::ALL.iter().map(|&op| a.reduce(op, Some(&axes), track)));
        results.push(a.matmul(&b));
        results.push(T::where_cond(&b, &a, &a));
        results.push(T::where_cond(&a, &b, &b));
        results.push(T::cat(&[&a, &b], axis));
        results.push(a.gather(axis, &b));
        results.push(a.scatter_add(axis, &b, &a));
        results.push(a.index_select(axis, &b));
        results.push(a.index_add(axis, &b, &a));
        results.push(a.permute(&axes));
        results.push(a.transpose(Some(&axes)));
        results.push(a.t());
        results.push(a.swap_axes(axis, 0));
        results.push(a.narrow(axis, start.unsigned_abs(), len));
        results.push(a.slice(s![start..;step]));
        results.push(a.slice(s![start, ..start]));
        results.push(a.flip(axis));
        results.push(a.unsqueeze(axis));
        results.push(a.squeeze(axis));
        results.push(a.flatten(axis, axis + 1));
        results.push(a.reshape(b.shape()));
        results.push(a.broadcast_to(b.shape()));
        results.push(a.sum_to(b.shape()));
        results.push(a.softmax(axis));
        results.push(a.log_softmax(axis));
        results.push(a.dot(&b));
        results.push(a.sincos().map(|(sine, _)| sine));
        results.push(a.sincos().map(|(_, cosine)| cosine));
        let [kernel, reach] = [len, start.unsigned_abs()];
        for padding in [[0, reach], [reach, kernel], [usize::MAX, 0]] {
            let [stride, dilation] = [[step.unsigned_abs(), 1], [1, reach]];
            let options = ConvOptions::new().stride(stride).padding(padding).dilation(dilation);
            let (image, kernel) = ([reach, kernel], [kernel, 1]);
            results.push(a.im2col(kernel, options));
            results.push(a.im2col(kernel, options).and_then(|y| y.col2im(image, kernel, options)));
            results.push(a.col2im(image, kernel, options));
        }
        let pads = [(start, step), (step, start)];
        let size = [len, reach];
        for mode in [PadMode::Constant(0.5), PadMode::Reflect, PadMode::Replicate, PadMode::Circular] {
            results.push(a.pad(&pads, mode));
            results.push(a.pad(&pads[..1], mode));
        }
        for align_corners in [false, true] {
            results.push(a.interpolate(size, Interpolation::Bilinear { align_corners }));
            results.push(a.interpolate(size, Interpolation::Bicubic { align_corners }));
        }
        results.push(a.interpolate(size, Interpolation::Nearest));
        results.push(a.unfold(axis, len, reach));
        results.push(a.adaptive_avg_pool1d(len));
        results.push(a.adaptive_max_pool1d(len));
        results.push(a.adaptive_avg_pool2d(size));
        results.push(a.adaptive_max_pool2d(size));
        results.push(a.group_norm(len, None, Some(&b), 1e-5));
        results.push(a.instance_norm(None, None, 1e-5));
        results.push(a.batch_norm(&b, &b, None, None, 1e-5));
        results.push(a.batch_norm_training(None, None, 1e-5).map(|(y, ..)| y));
        results.push(a.contiguous());
        results.push(T::stack(&[&a, &b], axis));
        results.push(a.repeat(axes.as_slice()));
        results.push(a.tile(axes.as_slice()));
        results.push(a.roll([start, step], [axis, 0]));
        results.push(a.roll(start, axis));
        results.push(a.movedim(axis, start));
        results.push(a.flip(axes.as_slice()));
        results.push(a.tril(start));
        results.push(a.triu(step));
        results.push(a.diag(start));
        results.push(a.scatter(axis, &b, &a));
        results.push(a.slice_assign(s![start..;step], &b));
        results.push(a.slice_assign(s![start, ..;step], &b));
        results.push(a.index(&[Some(&b)]));
        results.push(a.index(&[None, Some(&b), Some(&a)]));
        results.push(a.index_put(&[Some(&b)], &a));
        results.push(a.index_put(&[None, Some(&b)], &a));
        results.push(a.masked_select(&b));
        results.push(a.masked_scatter(&b, &a));
        results.push(b.masked_scatter(&b, &a));
        results.push(a.nonzero());
        results.push(a.one_hot(len));
        results.push(a.full_like(start as f64));
        let lists = [a.split(len, axis), a.split(axes.as_slice(), axis), a.chunk(len, axis),
            a.unbind(axis), T::meshgrid(&[&a, &b]), T::meshgrid_xy(&[&a, &b, &a])];
        results.extend(lists.into_iter().flatten().flatten().map(Ok));
        results.extend(DType::ALL.map(|dtype| a.to_dtype(dtype)));
        for descending in [false, true] {
            results.push(a.sort(axis, descending).map(|(values, _)| values));
            results.push(a.argsort(axis, descending));
        }
        results.push(a.topk(len, axis).map(|(values, _)| values));
        results.push(a.bottomk(len, axis).map(|(values, _)| values));
        results.push(a.cummax(axis).map(|(values, _)| values));
        results.push(a.cummin(axis).map(|(values, _)| values));
        results.push(a.median(axis, track));
        let q = start as f64 / 4.0;
        results.push(a.quantile(q, axis, track));
        results.push(a.quantiles(&[q, 0.5], axis, track, QuantileMethod::Nearest));
        results.push(a.searchsorted(&b));
        results.push(a.searchsorted_right(&b));
        results.push(a.unique().map(|(values, ..)| values));
        results.push(a.bincount(len));
        results.push(a.bincount_weighted(&b, len));
        results.push(a.histogram(len, q..2.0));
        results.push(a.multinomial(len, &mut Rng::seed(1)));
        results.push(a.multinomial_distinct(len, &mut Rng::seed(1)));
        results.push(T::randint_as(len, -2..start as i64, b_dtype, &mut Rng::seed(1)));
        for y in results.into_iter().flatten() {
            prop_assert!(y.dims().iter().product::<usize>() == y.numel());
            let _ = format!("{y}");
            let upstream = y.ones_like();
            if let (true, Ok(upstream)) = (y.is_tracked(), upstream) {
                let gradients = y.backward_with(&upstream);
                prop_assert!(gradients.is_ok(), "{:?}: {:?}", y, gradients.err());
                if let Ok(g) = gradients.expect("just checked").wrt(&a) {
                    prop_assert_eq!(g.shape(), a.shape());
                    prop_assert_eq!(g.dtype(), a.dtype());
                }
            }
        }
    }
}
