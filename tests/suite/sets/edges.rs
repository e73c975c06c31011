//! Empty tensors, extents of 1, and errors.

use swath::prelude::*;

type T = Tensor<CpuBackend>;

#[track_caller]
fn fails(result: Result<T>, words: &[&str]) {
    let text = result.unwrap_err().to_string();
    assert!(words.iter().all(|word| text.contains(word)), "{text}");
}

fn zeros(shape: impl Into<Shape>) -> T {
    T::zeros(shape, DType::F32).unwrap()
}

#[test]
fn empty_inputs_give_empty_outputs() {
    let none = zeros((0, 3));
    assert_eq!(none.diff(1, 0).unwrap().dims(), [0, 3]);
    assert_eq!(zeros((2, 3)).diff(3, 1).unwrap().dims(), [2, 0]);
    assert_eq!(zeros((2, 3)).diff(usize::MAX, 1).unwrap().dims(), [2, 0]);
    assert_eq!(zeros((usize::MAX / 16, 0)).diff(9, 0).unwrap().dims(), [usize::MAX / 16 - 9, 0]);
    assert_eq!(none.isin(&zeros(4)).unwrap().dims(), [0, 3]);
    assert_eq!(none.isin(&zeros(40)).unwrap().dims(), [0, 3]);
    assert_eq!(none.repeat_interleave(3, 1).unwrap().dims(), [0, 9]);
    assert_eq!(none.repeat_interleave(3, 0).unwrap().dims(), [0, 3]);
    assert_eq!(zeros(3).repeat_interleave(0, 0).unwrap().dims(), [0]);
    let nothing = T::zeros(0, DType::I64).unwrap();
    assert_eq!(none.repeat_interleave(&nothing, 0).unwrap().dims(), [0, 3]);
    for unique in [none.unique_along(0), none.unique_consecutive(Some(0))].map(Result::unwrap) {
        assert_eq!((unique.values.dims(), unique.counts.dims()), (&[0, 3][..], &[0][..]));
    }
    let unique = none.unique_along(1).unwrap();
    assert_eq!(
        (unique.values.dims(), unique.counts.to_vec::<i64>().unwrap()),
        (&[0, 1][..], vec![3])
    );
    assert_eq!(none.unique_with_indices().unwrap().inverse.dims(), [0, 3]);
    assert_eq!(none.mode(1, false).unwrap().0.dims(), [0]);
    assert_eq!(zeros((3, 0, 0)).mode(1, false).unwrap().1.dims(), [3, 0]);
    assert_eq!(none.nanmedian(1, true).unwrap().0.dims(), [0, 1]);
    assert_eq!(none.nanquantile(0.5, 1, false).unwrap().dims(), [0]);
    assert_eq!(none.logcumsumexp(0).unwrap().dims(), [0, 3]);
    assert_eq!(none.nansum(Some(&[0]), false).unwrap().to_vec::<f32>().unwrap(), [0.0; 3]);
    assert!(none.nanmean(None, false).unwrap().item::<f32>().unwrap().is_nan());
    assert_eq!(none.count_nonzero(None, false).unwrap().item::<i64>().unwrap(), 0);
    assert_eq!(none.bucketize(&zeros(2), false).unwrap().dims(), [0, 3]);
    let index = T::zeros((0, 3), DType::I64).unwrap();
    for mode in [ReduceMode::Mean, ReduceMode::Prod, ReduceMode::Max] {
        let y = zeros((2, 3)).scatter_reduce(0, &index, &none, mode, false).unwrap();
        assert_eq!(y.to_vec::<f32>().unwrap(), [0.0; 6]);
    }
    let edges = tensor![0.0, 1.0, 2.0];
    let counts = none.histogram_edges(&edges, None, false).unwrap();
    assert_eq!(counts.to_vec::<i64>().unwrap(), [0, 0]);
    let pooled = zeros((0, 1, 4)).adaptive_max_pool1d_with_positions(2).unwrap();
    assert_eq!((pooled.0.dims(), pooled.1.dims()), (&[0, 1, 2][..], &[0, 1, 2][..]));
}

#[test]
fn one_element() {
    let x = tensor![[2.5]];
    assert_eq!(x.mode(0, true).unwrap().0.dims(), [1, 1]);
    assert_eq!(x.median_with_indices(1, false).unwrap().1.to_vec::<i64>().unwrap(), [0]);
    assert_eq!(x.logcumsumexp(1).unwrap().item::<f32>().unwrap(), 2.5);
    let scalar = T::full((), 2.5f32).unwrap();
    assert!(scalar.isin(&x).unwrap().item::<bool>().unwrap());
    assert_eq!(scalar.unique_consecutive(None).unwrap().values.dims(), [1]);
    assert_eq!(scalar.nansum(None, false).unwrap().item::<f32>().unwrap(), 2.5);
    // Beyond the number of axes that an added one could have.
    let eight = zeros([2, 1, 1, 1, 1, 1, 1, 2]);
    assert_eq!(eight.repeat_interleave(2, 7).unwrap().dims(), [2, 1, 1, 1, 1, 1, 1, 4]);
}

#[test]
fn elements_that_are_nan_alone() {
    let x = tensor![[f32::NAN, f32::NAN], [f32::NAN, 1.0]];
    assert!(x.nanquantile(0.5, 1, false).unwrap().to_vec::<f32>().unwrap()[0].is_nan());
    let (values, indices) = x.mode(1, false).unwrap();
    assert!(values.to_vec::<f32>().unwrap()[0].is_nan());
    assert_eq!(indices.to_vec::<i64>().unwrap(), [0, 1]);
    assert_eq!(x.nanmedian(1, false).unwrap().1.to_vec::<i64>().unwrap(), [0, 1]);
    assert_eq!(x.unique_with_indices().unwrap().counts.to_vec::<i64>().unwrap(), [1, 3]);
    assert_eq!(x.unique_consecutive(None).unwrap().counts.to_vec::<i64>().unwrap(), [3, 1]);
}

#[test]
fn errors_name_the_operation_and_the_shapes() {
    let (x, ids) = (zeros((2, 3)), tensor![i64; 0, 5]);
    fails(x.diff(1, 2), &["diff", "[2, 3]"]);
    fails(x.isin(&ids), &["isin", "f32", "i64"]);
    fails(x.repeat_interleave(-1, 0), &["repeat_interleave", "[2, 3]", "-1"]);
    fails(x.repeat_interleave(&tensor![i64; 1, 2, 3], 0), &["repeat_interleave", "got 3"]);
    fails(x.repeat_interleave(&tensor![i64; [1, 2]], 0), &["repeat_interleave", "[2, 3]"]);
    fails(x.repeat_interleave(1.5, 0), &["repeat_interleave", "1.5"]);
    fails(x.repeat_interleave(&x, 0), &["repeat_interleave", "f32"]);
    fails(x.repeat_interleave(usize::MAX / 16, 0), &["repeat_interleave"]);
    fails(x.repeat_interleave(tensor![i64; 1, i64::MAX], 0), &["repeat_interleave"]);
    fails(x.unique_along(-3).map(|u| u.values), &["unique_along", "[2, 3]"]);
    fails(x.unique_consecutive(Some(2)).map(|u| u.values), &["unique_consecutive", "[2, 3]"]);
    let none = zeros((2, 0));
    fails(none.mode(1, false).map(|y| y.0), &["mode", "[2, 0]"]);
    fails(none.nanmedian(1, false).map(|y| y.0), &["nanmedian", "[2, 0]"]);
    fails(none.nanquantile(0.5, 1, false), &["nanquantile", "[2, 0]"]);
    fails(x.nanquantile(1.5, 1, false), &["nanquantile", "1.5"]);
    fails(x.nansum(Some(&[2]), false), &["nansum", "[2, 3]"]);
    fails(ids.nanmean(None, false), &["nanmean", "i64"]);
    fails(x.count_nonzero_axis((0, 0), false), &["count_nonzero"]);
    fails(ids.max_with_initial(0.5, None, false), &["max_with_initial", "0.5"]);
    fails(ids.logcumsumexp(0), &["logcumsumexp", "i64"]);
    fails(x.searchsorted_as(&zeros(2), true, DType::U8), &["searchsorted_as", "u8"]);
    fails(x.bucketize(&x, true), &["bucketize", "[2, 3]"]);
    fails(x.bucketize(&ids, true), &["bucketize", "i64"]);
    let (index, source) = (tensor![i64; [0, 1, 0]], zeros((1, 3)));
    let max = ReduceMode::Max;
    fails(x.scatter_reduce(0, &index, &x, max, true), &["scatter_reduce", "[1, 3]", "[2, 3]"]);
    let outside = tensor![i64; [0, 2, 0]];
    for mode in [ReduceMode::Sum, ReduceMode::Mean, ReduceMode::Prod, max] {
        fails(x.scatter_reduce(0, &outside, &source, mode, true), &["scatter_reduce", "2"]);
    }
    let flags = tensor![bool; true];
    fails(
        flags.scatter_reduce(0, &tensor![i64; 0], &flags, max, true),
        &["scatter_reduce", "bool"],
    );
    fails(x.index_reduce(0, &index, &source, max, true), &["index_reduce"]);
    fails(x.index_reduce(0, &ids, &source, max, true), &["index_reduce", "[2]", "[1, 3]"]);
    fails(x.histogram_edges(&tensor![1.0, 0.0], None, false), &["histogram_edges", "ascending"]);
    fails(x.histogram_edges(&tensor![f32::NAN, 0.0], None, false), &["histogram_edges"]);
    fails(x.histogram_edges(&tensor![1.0], None, false), &["histogram_edges", "[1]"]);
    fails(x.histogram_edges(&tensor![0.0, 1.0], Some(&zeros(2)), false), &["[2, 3]", "[2]"]);
    fails(ids.histogram_edges(&ids, None, true), &["histogram_edges", "i64"]);
    let ranges = || [0.0..1.0, 0.0..1.0];
    fails(x.histogram2d(&zeros(3), [1, 1], ranges()), &["histogram2d", "[3]"]);
    fails(x.histogram2d(&x, [1, 0], ranges()), &["histogram2d", "0 bins"]);
    fails(x.histogram2d(&x, [usize::MAX, 2], ranges()), &["histogram2d"]);
    fails(zeros((1, 1, 0)).adaptive_max_pool1d_with_positions(2).map(|y| y.0), &["positions"]);
}
