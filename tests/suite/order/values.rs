//! Values and gradients as computed by NumPy and PyTorch, and edges as documented.

use swath::prelude::*;

type T = Tensor<CpuBackend>;

const NAN: f32 = f32::NAN;
const INF: f32 = f32::INFINITY;

fn x() -> T {
    tensor![[3.0, -1.0, 2.0, 2.0, 0.5], [7.0, 7.0, -4.0, 1.0, 6.0], [0.0, -2.5, 9.0, 4.0, 4.0]]
}

fn f32s(x: &T) -> Vec<f32> {
    x.to_dtype(DType::F32).unwrap().to_vec().unwrap()
}

fn i64s(x: &T) -> Vec<i64> {
    x.to_vec().unwrap()
}

/// Gradient at `x` of the sum of `f(x)` times 1, 2, 3, ….
fn slopes(f: impl Fn(&T) -> Result<T>, x: &T) -> Vec<f32> {
    let x = x.requires_grad();
    let y = f(&x).unwrap();
    let weights = T::arange(1.0, y.numel() as f64 + 1.0, 1.0).unwrap();
    let loss = y.mul(weights.reshape(*y.shape()).unwrap()).unwrap().sum(None, false).unwrap();
    f32s(loss.backward().unwrap().wrt(&x).unwrap())
}

#[test]
fn sorts_match_pytorch() {
    let (values, indices) = x().sort(1, false).unwrap();
    let want = [-1.0, 0.5, 2.0, 2.0, 3.0, -4.0, 1.0, 6.0, 7.0, 7.0, -2.5, 0.0, 4.0, 4.0, 9.0];
    assert_eq!(f32s(&values), want);
    assert_eq!(i64s(&indices), [1, 4, 2, 3, 0, 2, 3, 4, 0, 1, 1, 0, 3, 4, 2]);
    assert_eq!(i64s(&x().argsort(-1, false).unwrap()), i64s(&indices));
    let (values, indices) = x().sort(0, true).unwrap();
    let want = [7.0, 7.0, 9.0, 4.0, 6.0, 3.0, -1.0, 2.0, 2.0, 4.0, 0.0, -2.5, -4.0, 1.0, 0.5];
    assert_eq!(f32s(&values), want);
    assert_eq!(i64s(&indices), [1, 1, 2, 2, 1, 0, 0, 0, 0, 2, 2, 2, 1, 1, 0]);
    let slopes = slopes(|x| Ok(x.sort(1, false)?.0), &x());
    let want = [5.0, 1.0, 3.0, 4.0, 2.0, 9.0, 10.0, 6.0, 7.0, 8.0, 12.0, 11.0, 15.0, 13.0, 14.0];
    assert_eq!(slopes, want);
}

#[test]
fn the_largest_and_smallest_elements_match_pytorch() {
    let (values, indices) = x().topk(2, 1).unwrap();
    assert_eq!(f32s(&values), [3.0, 2.0, 7.0, 7.0, 9.0, 4.0]);
    // PyTorch leaves open which of equal elements it returns.
    assert_eq!(i64s(&indices), [0, 2, 0, 1, 2, 3]);
    let (values, indices) = x().bottomk(2, 0).unwrap();
    assert_eq!(values.dims(), [2, 5]);
    assert_eq!(f32s(&values), [0.0, -2.5, -4.0, 1.0, 0.5, 3.0, -1.0, 2.0, 2.0, 4.0]);
    assert_eq!(i64s(&indices), [2, 2, 1, 1, 0, 0, 0, 0, 0, 2]);
    let slopes = slopes(|x| Ok(x.topk(2, 1)?.0), &x());
    let want = [1.0, 0.0, 2.0, 0.0, 0.0, 3.0, 4.0, 0.0, 0.0, 0.0, 0.0, 0.0, 5.0, 6.0, 0.0];
    assert_eq!(slopes, want);
}

#[test]
fn medians_match_pytorch() {
    assert_eq!(f32s(&x().median(1, false).unwrap()), [2.0, 6.0, 4.0]);
    let even = x().narrow(1, 0, 4).unwrap();
    assert_eq!(f32s(&even.median(-1, true).unwrap()), [2.0, 1.0, 0.0]);
    let with_nan = tensor![1.0, NAN, 3.0];
    assert!(with_nan.median(0, false).unwrap().item::<f32>().unwrap().is_nan());
    assert_eq!(slopes(|x| x.median(0, false), &with_nan), [0.0, 1.0, 0.0]);
    let slopes = slopes(|x| x.median(1, false), &x());
    let want = [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 3.0, 0.0];
    assert_eq!(slopes, want);
    let integers = tensor![i64; [i64::MAX, 3, i64::MIN], [1, 1, 0]];
    assert_eq!(i64s(&integers.median(1, false).unwrap()), [3, 1]);
}

#[test]
fn quantiles_match_numpy() {
    use QuantileMethod::*;
    let x = x().to_dtype(DType::F64).unwrap();
    // `numpy.quantile(x, q, axis=1, method=…)`.
    let rows: [(f64, QuantileMethod, [f64; 3]); 14] = [
        (0.1, Linear, [-0.3999999999999999, -2.0, -1.5]),
        (0.1, Lower, [-1.0, -4.0, -2.5]),
        (0.1, Higher, [0.5, 1.0, 0.0]),
        (0.1, Nearest, [-1.0, -4.0, -2.5]),
        (0.1, Midpoint, [-0.25, -1.5, -1.25]),
        (0.3, Linear, [0.8, 2.0, 0.8]),
        (0.3, Nearest, [0.5, 1.0, 0.0]),
        (0.3, Midpoint, [1.25, 3.5, 2.0]),
        (0.5, Midpoint, [2.0, 6.0, 4.0]),
        (0.77, Linear, [2.08, 7.0, 4.4]),
        (0.77, Higher, [3.0, 7.0, 9.0]),
        (0.77, Midpoint, [2.5, 7.0, 6.5]),
        (0.0, Linear, [-1.0, -4.0, -2.5]),
        (1.0, Linear, [3.0, 7.0, 9.0]),
    ];
    for (q, method, want) in rows {
        let found = x.quantiles(&[q], 1, false, method).unwrap().to_vec::<f64>().unwrap();
        let near = found.iter().zip(want).all(|(y, want)| (y - want).abs() < 1e-15 * 8.0);
        assert!(near && found.len() == 3, "{q} {method:?}: {found:?}");
    }
    let ties = tensor![0.0, 1.0, 2.0, 3.0];
    let nearest = ties.quantiles(&[0.5, 1.0 / 6.0, 5.0 / 6.0], 0, false, Nearest).unwrap();
    assert_eq!(f32s(&nearest), [2.0, 0.0, 2.0], "positions 1.5, 0.5 and 2.5");
}

#[test]
fn several_quantiles_and_their_gradients_match_pytorch() {
    let quantiles = x().quantiles(&[0.25, 0.6], 0, true, QuantileMethod::Linear).unwrap();
    assert_eq!(quantiles.dims(), [2, 1, 5]);
    assert_eq!(f32s(&quantiles), [1.5, -1.75, -1.0, 1.5, 2.25, 3.8, 0.6, 3.4, 2.4, 4.4]);
    assert_eq!(x().quantiles(&[], 1, false, QuantileMethod::Lower).unwrap().dims(), [0, 3]);
    let slopes = slopes(|x| x.quantiles(&[0.1, 0.6], 1, false, QuantileMethod::Linear), &x());
    let want = [0.0, 0.6, 2.4, 1.6, 0.4, 2.0, 0.0, 1.2, 0.8, 3.0, 1.2, 1.8, 0.0, 3.6, 2.4];
    assert!(slopes.iter().zip(want).all(|(y, want)| (y - want).abs() < 1e-6), "{slopes:?}");
}

#[test]
fn quantiles_of_infinities_and_nan() {
    let at = |x: T, q: f64| x.quantile(q, 0, false).unwrap().item::<f32>().unwrap();
    for q in [0.0, 0.25, 0.5, 0.9, 1.0] {
        assert_eq!(at(tensor![INF, INF, INF, INF], q), INF, "{q}");
        assert_eq!(at(tensor![-INF, -INF], q), -INF, "{q}");
        assert!(at(tensor![1.0, NAN, INF], q).is_nan(), "{q}");
        assert_eq!(at(tensor![0.1, 0.1, 0.1], q), 0.1, "{q}");
    }
    assert_eq!(at(tensor![1.0, INF], 0.25), INF);
    assert_eq!(at(tensor![1.0, INF], 0.75), INF);
    assert_eq!(at(tensor![-INF, 1.0], 0.75), -INF);
    assert_eq!(at(tensor![-INF, 1.0, INF], 0.5), 1.0);
    assert!(at(tensor![-INF, INF], 0.5).is_nan());
    let huge = tensor![f64; -1.7e308, 1.7e308].quantile(0.75, 0, false).unwrap();
    assert_eq!(huge.item::<f64>().unwrap(), 8.5e307);
    let constant = T::full(7, 0.1f64).unwrap().quantile(0.3, 0, false).unwrap();
    assert_eq!(constant.item::<f64>().unwrap(), 0.1);
    let slopes = slopes(|x| x.quantile(0.75, 0, false), &tensor![1.0, INF]);
    assert_eq!(slopes, [0.25, 0.75]);
}

#[test]
fn distinct_elements_match_pytorch() {
    let (values, inverse, counts) = tensor![i64; [3, 1, 2], [1, 3, 3]].unique().unwrap();
    assert_eq!(i64s(&values), [1, 2, 3]);
    assert_eq!((i64s(&inverse), inverse.dims()), (vec![2, 0, 1, 0, 2, 2], &[2, 3][..]));
    assert_eq!(i64s(&counts), [2, 1, 3]);
    let (values, inverse, counts) = tensor![0.0, NAN, -0.0, 1.0, -NAN].unique().unwrap();
    assert_eq!(f32s(&values)[..2], [0.0, 1.0]);
    assert_eq!((i64s(&inverse), i64s(&counts)), (vec![0, 2, 0, 1, 2], vec![2, 1, 2]));
    let slopes = slopes(|x| Ok(x.unique()?.0), &tensor![5.0, 2.0, 5.0, 2.0, 1.0]);
    assert_eq!(slopes, [3.0, 2.0, 0.0, 0.0, 1.0]);
    for x in [T::zeros(0, DType::F32), T::zeros((2, 0), DType::Bool)] {
        let x = x.unwrap();
        let (values, inverse, counts) = x.unique().unwrap();
        assert_eq!((values.dims(), inverse.dims(), counts.dims()), (&[0][..], x.dims(), &[0][..]));
    }
    let (values, inverse, _) = T::full((), 4u8).unwrap().unique().unwrap();
    assert_eq!((values.to_vec::<u8>().unwrap(), inverse.dims()), (vec![4], &[][..]));
}

#[test]
fn counts_match_pytorch_and_numpy() {
    let numbers = tensor![i64; 1, 3, 1, 0, 7];
    assert_eq!(i64s(&numbers.bincount(4).unwrap()), [1, 2, 0, 1, 0, 0, 0, 1]);
    let weights = tensor![0.5, 2.0, 0.25, -1.0];
    let sums = numbers.narrow(0, 0, 4).unwrap().bincount_weighted(&weights, 6).unwrap();
    assert_eq!(f32s(&sums), [-1.0, 0.75, 0.0, 2.0, 0.0, 0.0]);
    let numbers = tensor![i64; 1, 0, 1];
    assert_eq!(
        slopes(|w| numbers.bincount_weighted(w, 2), &tensor![1.0, 1.0, 1.0]),
        [2.0, 1.0, 2.0]
    );
    for dtype in [DType::U8, DType::I32, DType::U32] {
        assert_eq!(i64s(&numbers.to_dtype(dtype).unwrap().bincount(0).unwrap()), [1, 2]);
    }
    assert_eq!(i64s(&tensor![bool; true, false, true].bincount(0).unwrap()), [1, 2]);
    assert_eq!(i64s(&T::zeros((0, 3), DType::I64).unwrap().bincount(2).unwrap()), [0, 0]);
    let x = tensor![-1.0, 0.0, 0.1, 0.25, 0.5, 0.74, 0.75, 1.0, 1.5, NAN, INF, -INF];
    assert_eq!(i64s(&x.histogram(4, 0.0..1.0).unwrap()), [2, 1, 2, 2]);
    assert_eq!(i64s(&x.flip(0).unwrap().histogram(1, 0.0..1.0).unwrap()), [7]);
    assert_eq!(i64s(&T::zeros(0, DType::F16).unwrap().histogram(2, 0.0..1.0).unwrap()), [0, 0]);
    assert_eq!(i64s(&tensor![i64; 1, 2, 2, 9].histogram(2, 1.0..3.0).unwrap()), [1, 2]);
}

#[test]
fn searches_match_pytorch() {
    let sorted = tensor![[1.0, 3.0, 3.0, 5.0], [2.0, 4.0, 6.0, 8.0]];
    let x = tensor![[3.0, 0.0, 9.0], [4.0, 5.0, 8.0]];
    assert_eq!(i64s(&x.searchsorted(&sorted).unwrap()), [1, 0, 4, 1, 2, 3]);
    assert_eq!(i64s(&x.searchsorted_right(&sorted).unwrap()), [3, 0, 4, 2, 2, 4]);
    let line = tensor![-INF, -0.0, 0.0, 1.0, NAN, NAN];
    let x = tensor![[0.0, -INF], [NAN, INF]];
    assert_eq!(i64s(&x.searchsorted(&line).unwrap()), [1, 0, 4, 4]);
    assert_eq!(i64s(&x.searchsorted_right(&line).unwrap()), [3, 1, 6, 4]);
    let nothing = T::zeros(0, DType::F32).unwrap();
    assert_eq!(i64s(&x.searchsorted(&nothing).unwrap()), [0; 4]);
    assert!(i64s(&nothing.searchsorted(&line).unwrap()).is_empty());
    assert_eq!(T::full((), 2.0f32).unwrap().searchsorted(&line).unwrap().item::<i64>().unwrap(), 4);
    let (rows, none) =
        (T::zeros((2, 0), DType::F32).unwrap(), T::zeros((2, 3), DType::F32).unwrap());
    assert_eq!(i64s(&none.searchsorted(&rows).unwrap()), [0; 6]);
    assert!(i64s(&rows.searchsorted(&none).unwrap()).is_empty());
}

#[test]
fn running_extrema_match_pytorch() {
    let x = tensor![[1.0, 4.0, 2.0, 5.0, 3.0], [-1.0, -3.0, 0.0, -2.0, NAN]];
    let (values, indices) = x.cummax(1).unwrap();
    assert_eq!(f32s(&values)[..9], [1.0, 4.0, 4.0, 5.0, 5.0, -1.0, -1.0, 0.0, 0.0]);
    assert_eq!(i64s(&indices), [0, 1, 1, 3, 3, 0, 0, 2, 2, 4]);
    let x = tensor![[5.0, 4.0, 6.0, 1.0, 3.0], [0.0, -3.0, 2.0, -4.0, 7.0]];
    let (values, indices) = x.cummin(-1).unwrap();
    assert_eq!(f32s(&values), [5.0, 4.0, 4.0, 1.0, 1.0, 0.0, -3.0, -3.0, -4.0, -4.0]);
    assert_eq!(i64s(&indices), [0, 1, 1, 3, 3, 0, 1, 1, 3, 3]);
    let (values, indices) = x.cummin(0).unwrap();
    assert_eq!(f32s(&values)[5..], [0.0, -3.0, 2.0, -4.0, 3.0]);
    assert_eq!(i64s(&indices), [0, 0, 0, 0, 0, 1, 1, 1, 1, 0]);
    for (ours, want) in [
        (tensor![1.0, NAN, 9.0, NAN].cummax(0), [0, 1, 1, 1]),
        (tensor![1.0, NAN, -9.0, NAN].cummin(0), [0, 1, 1, 1]),
        (tensor![-0.0, 0.0, -INF, INF].cummax(0), [0, 0, 0, 3]),
        (tensor![i64; 3, i64::MIN, 3, i64::MIN].cummin(0), [0, 1, 1, 1]),
        (tensor![bool; false, true, false, true].cummax(0), [0, 1, 1, 1]),
    ] {
        assert_eq!(i64s(&ours.unwrap().1), want);
    }
    let slopes =
        slopes(|x| Ok(x.cummax(1)?.0), &tensor![[2.0, 1.0, 2.0, 3.0], [5.0, 6.0, 0.0, 6.0]]);
    assert_eq!(slopes, [6.0, 0.0, 0.0, 4.0, 5.0, 21.0, 0.0, 0.0]);
}

#[test]
fn nan_comes_last_and_zeros_are_equal() {
    let x = tensor![NAN, 0.0, -INF, -0.0, -NAN, INF];
    assert_eq!(i64s(&x.argsort(0, false).unwrap()), [2, 1, 3, 5, 0, 4]);
    assert_eq!(i64s(&x.argsort(0, true).unwrap()), [5, 1, 3, 2, 0, 4]);
    assert_eq!(i64s(&x.topk(5, 0).unwrap().1), [5, 1, 3, 2, 0]);
    assert_eq!(i64s(&x.bottomk(2, 0).unwrap().1), [2, 1]);
    // Values are copies: the sign of zero stays.
    let zeros = f32s(&x.sort(0, false).unwrap().0)[1..3].to_vec();
    assert_eq!(zeros.map_bits(), [0, 1 << 31]);
}

trait MapBits {
    fn map_bits(self) -> Vec<u32>;
}

impl MapBits for Vec<f32> {
    fn map_bits(self) -> Vec<u32> {
        self.into_iter().map(f32::to_bits).collect()
    }
}

#[test]
fn empty_axes_and_axes_of_one_element() {
    for shape in [vec![0], vec![2, 0], vec![0, 3]] {
        let x = T::zeros(&shape, DType::F32).unwrap();
        let axis = shape.len() - 1;
        for (values, indices) in [x.sort(axis, true), x.cummax(axis)].map(Result::unwrap) {
            assert_eq!((values.shape(), indices.shape()), (x.shape(), x.shape()));
        }
        assert_eq!(x.topk(0, axis).unwrap().0.dims()[axis], 0);
    }
    let none = T::zeros((3, 0), DType::F32).unwrap();
    assert!(matches!(none.median(1, false), Err(Error::EmptyReduction { op: "median", .. })));
    assert_eq!(none.quantile(0.5, 0, false).unwrap().dims(), [0]);
    assert_eq!(T::zeros((0, 0), DType::F32).unwrap().median(1, true).unwrap().dims(), [0, 1]);
    let one = tensor![[2.0], [NAN]];
    assert_eq!(i64s(&one.argsort(1, true).unwrap()), [0, 0]);
    assert_eq!(x().topk(0, 1).unwrap().1.dims(), [3, 0]);
    let deep = T::zeros([1; 8], DType::F32).unwrap();
    assert_eq!(deep.median(7, true).unwrap().rank(), 8);
}

#[test]
fn wrong_arguments_are_errors_that_name_the_operation() {
    let (x, mut rng) = (x(), Rng::seed(1));
    let pair = |result: Result<(T, T)>| result.map(|(values, _)| values);
    let linear = QuantileMethod::Linear;
    let integers = tensor![i64; 1, -2];
    let cases = [
        (pair(x.sort(2, false)), "sort: axis 2"),
        (x.argsort(-3, false), "argsort: axis -3"),
        (pair(x.topk(6, 1)), "topk: k = 6 exceeds the extent of axis 1 of shape [3, 5]"),
        (pair(x.bottomk(4, 0)), "bottomk: k = 4"),
        (pair(T::zeros((), DType::F32).unwrap().cummax(0)), "cummax: axis 0"),
        (x.quantile(1.5, 0, false), "quantile: expected a quantile in 0..=1, got 1.5"),
        (
            x.quantiles(&[0.5, f64::NAN], 0, false, linear),
            "quantiles: expected a quantile in 0..=1, got NaN",
        ),
        (integers.quantile(0.5, 0, false), "quantile: not defined for i64"),
        (x.searchsorted(&integers), "searchsorted: dtypes f32 (of shape [3, 5]) and i64"),
        (x.searchsorted(&x.narrow(0, 0, 2).unwrap()), "searchsorted: shapes [2, 5] and [3, 5]"),
        (x.searchsorted(&T::zeros((), DType::F32).unwrap()), "searchsorted: shape []"),
        (x.bincount(3), "bincount: not defined for f32"),
        (integers.bincount(3), "bincount: expected integers from 0, got -2 to 1"),
        (tensor![i64; i64::MAX].bincount(0), "bincount: "),
        (integers.bincount_weighted(&x, 3), "bincount_weighted: shapes [2] and [3, 5]"),
        (x.histogram(0, 0.0..1.0), "histogram: expected bins"),
        (x.histogram(2, 1.0..1.0), "histogram: expected bins"),
        (x.histogram(2, f64::NAN..1.0), "histogram: expected bins"),
        (x.histogram(usize::MAX, 0.0..1.0), "histogram: "),
        (x.multinomial(1, &mut rng), "multinomial: cannot draw 1"),
        (tensor![0.0, 0.0].multinomial(1, &mut rng), "multinomial: cannot draw 1"),
        (tensor![1.0, NAN].multinomial(1, &mut rng), "multinomial: cannot draw 1"),
        (tensor![1.0, INF].multinomial(1, &mut rng), "multinomial: cannot draw 1"),
        (
            tensor![1.0, 0.0].multinomial_distinct(2, &mut rng),
            "multinomial_distinct: cannot draw 2",
        ),
        (T::zeros((2, 0), DType::F32).unwrap().multinomial(1, &mut rng), "multinomial: cannot"),
        (T::ones((), DType::F32).unwrap().multinomial(1, &mut rng), "multinomial: shape []"),
        (tensor![1.0].multinomial(1 << 50, &mut rng), "multinomial: cannot allocate"),
        (tensor![1.0].multinomial_distinct(1 << 50, &mut rng), "multinomial_distinct: cannot draw"),
        (x.histogram(1 << 45, 0.0..1.0), "histogram: cannot allocate"),
        (T::randint(2, 3..3, &mut rng), "randint: the range 3..3 is empty"),
        (T::randint_as(2, 0..257, DType::U8, &mut rng), "randint: scalar 256"),
        (T::randint([usize::MAX, 2], 0..2, &mut rng), "randint: "),
    ];
    for (result, want) in cases {
        let message = result.unwrap_err().to_string();
        assert!(message.starts_with(want), "{message}, not {want}");
    }
}
