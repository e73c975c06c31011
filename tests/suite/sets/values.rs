//! Values and gradients as computed by NumPy and PyTorch.

use swath::prelude::*;

type T = Tensor<CpuBackend>;

const NAN: f32 = f32::NAN;
const INF: f32 = f32::INFINITY;

fn x() -> T {
    tensor![[3.0, -1.0, 2.0, 2.0, 0.5], [7.0, 7.0, -4.0, 1.0, 6.0], [0.0, -2.5, 9.0, 4.0, 4.0]]
}

fn with_nan() -> T {
    tensor![[NAN, -1.0, 2.0, 2.0, 0.5], [7.0, 7.0, -4.0, 1.0, 6.0], [NAN, NAN, NAN, NAN, NAN]]
}

fn f32s(x: &T) -> Vec<f32> {
    x.to_dtype(DType::F32).unwrap().to_vec().unwrap()
}

fn i64s(x: &T) -> Vec<i64> {
    x.to_vec().unwrap()
}

#[track_caller]
fn assert_near(found: &T, want: &[f32]) {
    let found = f32s(found);
    let near = |(a, b): (&f32, &f32)| {
        a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-6 * b.abs().max(1.0)
    };
    assert!(found.len() == want.len() && found.iter().zip(want).all(near), "{found:?}\n{want:?}");
}

/// Gradients of the sum of `f(xs)` times 1, 2, 3, ….
fn slopes(f: impl Fn(&[T]) -> Result<T>, xs: &[T]) -> Vec<T> {
    let leaves: Vec<T> = xs.iter().map(T::requires_grad).collect();
    let y = f(&leaves).unwrap();
    let weights = T::arange(1.0, y.numel() as f64 + 1.0, 1.0).unwrap();
    let loss = y.mul(weights.reshape(*y.shape()).unwrap()).unwrap().sum(None, false).unwrap();
    let grads = loss.backward().unwrap();
    leaves.iter().map(|x| grads.wrt(x).unwrap().clone()).collect()
}

#[test]
fn the_most_frequent_elements_match_pytorch() {
    let (values, indices) = x().mode(1, false).unwrap();
    assert_eq!((f32s(&values), i64s(&indices)), (vec![2.0, 7.0, 4.0], vec![3, 1, 4]));
    let (values, indices) = x().mode(0, true).unwrap();
    assert_eq!(values.dims(), [1, 5]);
    assert_eq!(f32s(&values), [0.0, -2.5, -4.0, 1.0, 0.5]);
    assert_eq!(i64s(&indices), [2, 2, 1, 1, 0]);
    let slopes = slopes(|xs| Ok(xs[0].mode(1, false)?.0), &[x()]);
    let mut want = [0.0; 15];
    (want[3], want[6], want[14]) = (1.0, 2.0, 3.0);
    assert_eq!(f32s(&slopes[0]), want);
    let booleans = tensor![bool; [true, false, false], [true, true, false]];
    assert_eq!(booleans.mode(1, false).unwrap().0.to_vec::<bool>().unwrap(), [false, true]);
}

#[test]
fn medians_and_their_indices_match_pytorch() {
    let (values, indices) = with_nan().median_with_indices(1, false).unwrap();
    assert_near(&values, &[NAN, 6.0, NAN]);
    assert_eq!(i64s(&indices), [0, 4, 0]);
    assert_near(&with_nan().median(1, false).unwrap(), &[NAN, 6.0, NAN]);
    let (values, indices) = with_nan().nanmedian(1, true).unwrap();
    assert_near(&values, &[0.5, 6.0, NAN]);
    assert_eq!((values.dims(), &i64s(&indices)[..2]), (&[3, 1][..], &[4, 4][..]));
    let (values, indices) = with_nan().nanmedian(0, false).unwrap();
    assert_near(&values, &[7.0, -1.0, -4.0, 1.0, 0.5]);
    assert_eq!(i64s(&indices), [1, 0, 1, 1, 0]);
    let whole = tensor![i64; 4, 1, 3, 2].nanmedian(0, false).unwrap();
    assert_eq!((i64s(&whole.0), i64s(&whole.1)), (vec![2], vec![3]));
}

#[test]
fn quantiles_without_nan_match_numpy() {
    let y = with_nan().nanquantiles(&[0.25, 0.6], 0, false, QuantileMethod::Linear).unwrap();
    assert_eq!(y.dims(), [2, 5]);
    assert_near(&y, &[7.0, 1.0, -2.5, 1.25, 1.875, 7.0, 3.8, -0.4, 1.6, 3.8]);
    let y = with_nan().nanquantiles(&[0.25, 0.6], 1, true, QuantileMethod::Linear).unwrap();
    assert_eq!(y.dims(), [2, 3, 1]);
    assert_near(&y, &[0.125, 1.0, NAN, 1.7, 6.4, NAN]);
    let slopes = slopes(|xs| xs[0].nanquantile(0.4, 0, false), &[with_nan()]);
    let want = [0.0, 1.2, 1.2, 1.6, 3.0, 1.0, 0.8, 1.8, 2.4, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    assert_near(&slopes[0], &want);
}

#[test]
fn reductions_at_indices_match_pytorch() {
    use ReduceMode::*;
    let x: T = tensor![1.0, 1.0, 1.0, 2.0];
    let (index, source) = (tensor![i64; 0, 0, 1, -4, 3], tensor![2.0, 3.0, 0.0, 4.0, 2.0]);
    let third = 1.0 / 3.0;
    // Without the tensor's own element, PyTorch loses the half of a gradient that an equal one would get.
    #[rustfmt::skip]
    type Row = (ReduceMode, bool, [f32; 4], [f32; 4], [f32; 5]);
    let rows: [Row; 10] = [
        (Sum, true, [10.0, 1.0, 1.0, 4.0], [1.0, 2.0, 3.0, 4.0], [1.0, 1.0, 2.0, 1.0, 4.0]),
        (Sum, false, [9.0, 0.0, 1.0, 2.0], [0.0, 0.0, 3.0, 0.0], [1.0, 1.0, 2.0, 1.0, 4.0]),
        (Mean, true, [2.5, 0.5, 1.0, 2.0], [0.25, 1.0, 3.0, 2.0], [0.25, 0.25, 1.0, 0.25, 2.0]),
        (Mean, false, [3.0, 0.0, 1.0, 2.0], [0.0, 0.0, 3.0, 0.0], [third, third, 2.0, third, 4.0]),
        (Prod, true, [24.0, 0.0, 1.0, 4.0], [24.0, 0.0, 3.0, 8.0], [12.0, 8.0, 2.0, 6.0, 8.0]),
        (Prod, false, [24.0, 0.0, 1.0, 2.0], [0.0, 0.0, 3.0, 0.0], [12.0, 8.0, 2.0, 6.0, 4.0]),
        (Max, true, [4.0, 1.0, 1.0, 2.0], [0.0, 2.0, 3.0, 2.0], [0.0, 0.0, 0.0, 1.0, 2.0]),
        (Max, false, [4.0, 0.0, 1.0, 2.0], [0.0, 0.0, 3.0, 0.0], [0.0, 0.0, 2.0, 1.0, 4.0]),
        (Min, true, [1.0, 0.0, 1.0, 2.0], [1.0, 0.0, 3.0, 2.0], [0.0, 0.0, 2.0, 0.0, 2.0]),
        (Min, false, [2.0, 0.0, 1.0, 2.0], [0.0, 0.0, 3.0, 0.0], [1.0, 0.0, 2.0, 0.0, 4.0]),
    ];
    for (mode, include_self, y, by_x, by_source) in rows {
        let f = |xs: &[T]| xs[0].scatter_reduce(0, &index, &xs[1], mode, include_self);
        let xs = [x.clone(), source.clone()];
        assert_near(&f(&xs).unwrap(), &y);
        let slopes = slopes(f, &xs);
        assert_near(&slopes[0], &by_x);
        assert_near(&slopes[1], &by_source);
        let column = |x: &T| x.unsqueeze(1).unwrap().broadcast_to((x.numel(), 2)).unwrap();
        let (x, source) = (column(&x), column(&source));
        let rows = x.index_reduce(0, &index, &source, mode, include_self).unwrap();
        assert_near(&rows.narrow(1, 1, 1).unwrap(), &y);
    }
}

#[test]
fn reductions_of_ties_and_nan_match_pytorch() {
    let (x, index) = (tensor![0.0, 2.0, NAN], tensor![i64; 0, 0, 1, 1, 2]);
    let source = tensor![0.0, 0.0, 3.0, NAN, 1.0];
    for mode in [ReduceMode::Prod, ReduceMode::Max, ReduceMode::Min, ReduceMode::Mean] {
        let y = x.scatter_reduce(0, &index, &source, mode, true).unwrap();
        assert_near(&y, &[0.0, NAN, NAN]);
    }
    // Three equal elements, one of them the tensor's own.
    let xs = [tensor![2.0, 5.0], tensor![2.0, 2.0, 1.0]];
    let f =
        |xs: &[T]| xs[0].scatter_reduce(0, &tensor![i64; 0, 0, 0], &xs[1], ReduceMode::Max, true);
    let slopes = slopes(f, &xs);
    let third = 1.0 / 3.0;
    assert_near(&slopes[0], &[third, 2.0]);
    assert_near(&slopes[1], &[third, third, 0.0]);
}

#[test]
fn reductions_of_integers_match_pytorch() {
    let (x, index) = (tensor![i64; 5, -7, 1], tensor![i64; 0, 0, 1]);
    let mean = |include_self| {
        let y = x.scatter_reduce(0, &index, &tensor![i64; 2, 1, 2], ReduceMode::Mean, include_self);
        i64s(&y.unwrap())
    };
    assert_eq!((mean(true), mean(false)), (vec![2, -3, 1], vec![1, 2, 1]));
    let (x, source) = (tensor![u8; 250, 3], tensor![u8; 10, 3]);
    let y = x.scatter_reduce(0, &tensor![i64; 0, 1], &source, ReduceMode::Prod, true).unwrap();
    assert_eq!(y.to_vec::<u8>().unwrap(), [196, 9]);
}

#[test]
fn cumulative_logarithms_match_pytorch() {
    let y = x().narrow(0, 0, 1).unwrap().logcumsumexp(1).unwrap();
    assert_near(&y, &[3.0, 3.018_149_9, 3.326_562_6, 3.561_941_4, 3.607_676_3]);
    let slopes_at = |x: T| slopes(|xs| xs[0].logcumsumexp(-1), &[x]).swap_remove(0);
    let want = [10.131_704, 0.167_253, 2.636_841, 1.840_677_4, 0.223_523_6];
    assert_near(&slopes_at(x().narrow(0, 0, 1).unwrap()), &want);
    let specials = tensor![-INF, -INF, 0.0, INF, 1.0];
    assert_near(&specials.logcumsumexp(0).unwrap(), &[-INF, -INF, 0.0, INF, INF]);
    assert_near(&slopes_at(specials), &[NAN, NAN, 3.0, NAN, 0.0]);
    assert_near(&tensor![0.0, NAN, 1.0].logcumsumexp(0).unwrap(), &[0.0, NAN, NAN]);
    // Far beyond the range of an exponential.
    let far = tensor![0.0, 1e30, 1e30, -1e38, 3e38];
    assert_near(&far.logcumsumexp(0).unwrap(), &[0.0, 1e30, 1e30, 1e30, 3e38]);
}

#[test]
fn distinct_slices_match_numpy() {
    let x = tensor![
        [2.0, 1.0, NAN],
        [0.0, 5.0, 1.0],
        [2.0, 1.0, NAN],
        [0.0, 5.0, 1.5],
        [-0.0, 5.0, 1.0]
    ];
    let rows = x.unique_along(0).unwrap();
    assert_near(&rows.values, &[0.0, 5.0, 1.0, 0.0, 5.0, 1.5, 2.0, 1.0, NAN]);
    assert_eq!(i64s(&rows.indices), [1, 3, 0]);
    assert_eq!(i64s(&rows.inverse), [2, 0, 2, 1, 0]);
    assert_eq!(i64s(&rows.counts), [2, 1, 2]);
    let columns = tensor![i64; [1, 2, 1], [0, 3, 0]].unique_along(-1).unwrap();
    assert_eq!((columns.values.dims(), i64s(&columns.values)), (&[2, 2][..], vec![1, 2, 0, 3]));
    assert_eq!((i64s(&columns.inverse), i64s(&columns.counts)), (vec![0, 1, 0], vec![2, 1]));
    let x = tensor![[1.0, 1.0], [1.0, 1.0], [2.0, 1.0], [1.0, 1.0]];
    let runs = x.unique_consecutive(Some(0)).unwrap();
    assert_eq!(f32s(&runs.values), [1.0, 1.0, 2.0, 1.0, 1.0, 1.0]);
    assert_eq!(i64s(&runs.indices), [0, 2, 3]);
    assert_eq!((i64s(&runs.inverse), i64s(&runs.counts)), (vec![0, 0, 1, 2], vec![2, 1, 1]));
    let flat = x.unique_consecutive(None).unwrap();
    assert_eq!((i64s(&flat.counts), flat.inverse.dims()), (vec![4, 1, 3], &[4, 2][..]));
}

#[test]
fn histograms_match_numpy() {
    let x = tensor![0.5, 1.0, 1.0, 2.5, 4.0, 4.5, -1.0, NAN];
    let edges = tensor![0.0, 1.0, 2.5, 4.0];
    let weights = tensor![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
    let histogram = |weights, density| x.histogram_edges(&edges, weights, density).unwrap();
    assert_eq!(i64s(&histogram(None, false)), [1, 2, 2]);
    assert_eq!(f32s(&histogram(Some(&weights), false)), [1.0, 5.0, 9.0]);
    assert_near(&histogram(None, true), &[0.2, 0.266_666_68, 0.266_666_68]);
    assert_near(&histogram(Some(&weights), true), &[0.066_666_67, 0.222_222_22, 0.4]);
    let infinite = tensor![1.0, INF].histogram_edges(&tensor![0.0, 1.0, INF], None, false);
    assert_eq!(i64s(&infinite.unwrap()), [0, 2]);
    let repeated =
        tensor![1.0, 1.0, 2.0].histogram_edges(&tensor![0.0, 1.0, 1.0, 2.0], None, false);
    assert_eq!(i64s(&repeated.unwrap()), [0, 0, 3]);
    let (x, y) = (tensor![0.1, 0.9, 1.0, 0.5, 2.0], tensor![0.0, 3.0, 2.5, 1.0, 1.0]);
    let counts = x.histogram2d(&y, [2, 3], [0.0..1.0, 0.0..3.0]).unwrap();
    assert_eq!((counts.dims(), i64s(&counts)), (&[2, 3][..], vec![1, 0, 0, 0, 1, 2]));
}

#[test]
fn positions_of_adaptive_pooling_match_pytorch() {
    let image =
        tensor![[3.0, 1.0, 4.0, 1.0, 5.0], [9.0, 2.0, 6.0, 5.0, 3.0], [5.0, 8.0, 9.0, 7.0, 9.0]];
    let image = image.reshape((1, 1, 3, 5)).unwrap();
    let pool = |size| {
        let (y, at) = image.adaptive_max_pool2d_with_positions(size).unwrap();
        assert_eq!(f32s(&y), f32s(&image.adaptive_max_pool2d(size).unwrap()));
        assert_eq!(y.dims(), at.dims());
        (f32s(&y), i64s(&at))
    };
    assert_eq!(pool([2, 3]), (vec![9.0, 6.0, 5.0, 9.0, 9.0, 9.0], vec![5, 7, 4, 5, 12, 14]));
    assert_eq!(pool([1, 1]), (vec![9.0], vec![5]));
    assert_eq!(pool([3, 1]), (vec![5.0, 9.0, 9.0], vec![4, 5, 12]));
    assert_eq!(pool([3, 5]).1, (0..15).collect::<Vec<i64>>());
    let signal = image.reshape((3, 1, 5)).unwrap();
    let (y, at) = signal.adaptive_max_pool1d_with_positions(2).unwrap();
    assert_eq!((f32s(&y), i64s(&at)), (vec![4.0, 5.0, 9.0, 6.0, 9.0, 9.0], vec![2, 4, 0, 2, 2, 2]));
    let slopes = slopes(|xs| Ok(xs[0].adaptive_max_pool1d_with_positions(2)?.0), &[signal]);
    assert_eq!(f32s(&slopes[0])[5..10], [3.0, 0.0, 4.0, 0.0, 0.0]);
}

#[test]
fn differences_match_numpy_and_pytorch() {
    let flags = tensor![bool; true, false, false, true].diff(1, 0).unwrap();
    assert_eq!(flags.to_vec::<bool>().unwrap(), [true, false, true]);
    let wrapped = tensor![u8; 1, 5, 2].diff(1, -1).unwrap();
    assert_eq!(wrapped.to_vec::<u8>().unwrap(), [4, 253]);
    let x = tensor![[1.0, 4.0, 9.0], [2.0, 2.0, 8.0]];
    assert_eq!(f32s(&x.diff(2, 1).unwrap()), [2.0, 6.0]);
    assert_eq!(f32s(&x.diff(1, 0).unwrap()), [1.0, -2.0, -1.0]);
}

#[test]
fn reductions_without_nan_match_pytorch() {
    assert_eq!(f32s(&with_nan().nansum(Some(&[1]), false).unwrap()), [3.5, 17.0, 0.0]);
    assert_near(&with_nan().nanmean_axis(-1, false).unwrap(), &[0.875, 3.4, NAN]);
    assert_eq!(i64s(&with_nan().count_nonzero(Some(&[0]), false).unwrap()), [3; 5]);
    assert_eq!(i64s(&x().count_nonzero(None, false).unwrap()), [14]);
    let slopes = slopes(|xs| xs[0].nanmean(Some(&[0]), false), &[with_nan()]);
    let want = [0.0, 1.0, 1.5, 2.0, 2.5, 1.0, 1.0, 1.5, 2.0, 2.5, 0.0, 0.0, 0.0, 0.0, 0.0];
    assert_eq!(f32s(&slopes[0]), want);
    assert_eq!(i64s(&tensor![i64; 1, 2].nansum(None, false).unwrap()), [3]);
    let many = T::full(5000, 0.1f32).unwrap().to_dtype(DType::F16).unwrap();
    assert_eq!(f32s(&many.nanmean(None, false).unwrap()), [0.099_975_586]);
}

#[test]
fn initial_values_match_numpy() {
    let none = T::zeros((0, 2), DType::I64).unwrap();
    assert_eq!(i64s(&none.max_with_initial(-3, Some(&[0]), false).unwrap()), [-3, -3]);
    assert_eq!(none.min_with_initial(7, Some(&[0]), true).unwrap().dims(), [1, 2]);
    let y = tensor![[1.0, 2.0], [5.0, 0.0]].max_with_initial(3.0, Some(&[0]), false).unwrap();
    assert_eq!(f32s(&y), [5.0, 3.0]);
    assert_near(&tensor![1.0, NAN].min_with_initial(0.0, None, false).unwrap(), &[NAN]);
}
