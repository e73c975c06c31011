//! Arithmetic functions against values of PyTorch 2 (`torch.float64`), at infinities and NaN, and their
//! gradients by central differences.

mod attention;
mod losses;

use std::f64::consts::LN_2;

use swath::ReferenceBackend;
use swath::prelude::*;

type T = Tensor<CpuBackend>;

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

fn of(values: &[f64]) -> T {
    T::from_slice(values, values.len()).unwrap()
}

fn values(x: &T) -> Vec<f64> {
    x.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap()
}

/// Fails unless every value is within 1e-12 of the wanted one, or both are NaN, or equal infinities or zeros of
/// one sign.
#[track_caller]
fn assert_close(got: &T, want: &[f64]) {
    let got = values(got);
    assert_eq!(got.len(), want.len(), "{got:?} {want:?}");
    for (&x, &y) in got.iter().zip(want) {
        let equal = x == y && (x != 0.0 || x.is_sign_negative() == y.is_sign_negative());
        let near = (x - y).abs() <= 1e-12 * (1.0 + y.abs()) && y != 0.0;
        assert!(equal || near || (x.is_nan() && y.is_nan()), "{got:?} {want:?}");
    }
}

/// The gradients of the sum of `f` at these inputs.
fn gradients(inputs: &[&T], f: impl Fn(&[T]) -> Result<T>) -> Vec<T> {
    let leaves: Vec<T> = inputs.iter().map(|x| x.requires_grad()).collect();
    let loss = f(&leaves).unwrap().sum(None, false).unwrap();
    grad(&loss, &leaves.iter().collect::<Vec<_>>(), false).unwrap()
}

fn check(inputs: &[&T], f: impl Fn(&[T]) -> Result<T> + Send + Sync) {
    check_gradients(f, inputs, GradCheck { order: 2, ..Default::default() }).unwrap();
}

/// The same vector as every second element of a reversed one.
fn strided(x: &T) -> T {
    let columns = [x.flip(0).unwrap(), x.zeros_like().unwrap()].map(|x| x.unsqueeze(1).unwrap());
    T::cat(&[&columns[0], &columns[1]], 1).unwrap().slice(s![..;-1, 0]).unwrap()
}

#[test]
fn floor_divide_matches_torch() {
    let a = of(&[7., -7., 7., -7., 1., -1., 5.5, 0., -0., 3., -3.]);
    let b = of(&[2., 2., -2., -2., 0.1, 0.1, 0.25, -1., 1., INF, INF]);
    let want = [3., -4., -4., 3., 9., -10., 22., -0., -0., 0., -1.];
    assert_close(&a.floor_divide(&b).unwrap(), &want);
    assert_close(&strided(&a).floor_divide(strided(&b)).unwrap(), &want);
    let edges = of(&[1., -1., 0., INF, NAN, 2.]);
    let divisors = of(&[0., 0., 0., 2., 1., NAN]);
    assert_close(&edges.floor_divide(&divisors).unwrap(), &[INF, -INF, NAN, NAN, NAN, NAN]);
    for dtype in [DType::F16, DType::BF16, DType::F32] {
        let (a, b) = (of(&[7., -7., 5.5]), of(&[2., 2., 0.25]));
        let y = a.to_dtype(dtype).unwrap().floor_divide(b.to_dtype(dtype).unwrap()).unwrap();
        assert_eq!((y.dtype(), values(&y)), (dtype, vec![3., -4., 22.]));
    }
    let zeros = gradients(&[&a, &b], |xs| xs[0].floor_divide(&xs[1]));
    assert!(zeros.iter().all(|g| values(g).iter().all(|&x| x == 0.0)));
}

#[test]
fn floor_divide_of_integers_rounds_down() {
    for dtype in [DType::I64, DType::I32] {
        let a = tensor![i64; -7, 7, -8, 8, -9].to_dtype(dtype).unwrap();
        let quotients = |b: i64| {
            a.floor_divide(b).unwrap().to_dtype(DType::I64).unwrap().to_vec::<i64>().unwrap()
        };
        assert_eq!(quotients(3), [-3, 2, -3, 2, -3], "{dtype}");
        assert_eq!(quotients(-3), [2, -3, 2, -3, 3], "{dtype}");
        let floored = &a - &(a.floor_divide(4).unwrap() * 4);
        assert_eq!(values(&floored), [1., 3., 0., 0., 3.], "{dtype}");
        for result in [a.floor_divide(0), T::full(3, i64::MIN).unwrap().floor_divide(-1)] {
            assert!(matches!(result, Err(Error::IntegerDivision { op: "floor_divide", .. })));
        }
    }
    let bytes = tensor![u8; 200, 7].floor_divide(&tensor![u8; 7, 200]).unwrap();
    assert_eq!(bytes.to_vec::<u8>().unwrap(), [28, 0]);
    let unsigned = T::from_vec(vec![u32::MAX, 5], 2).unwrap().floor_divide(2).unwrap();
    assert_eq!(unsigned.to_vec::<u32>().unwrap(), [u32::MAX / 2, 2]);
}

/// The integer below the exact quotient, whatever the rounding of `a / b`.
#[test]
fn floor_divide_is_below_the_exact_quotient() {
    let mut state = 7u64;
    let mut draw = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 40) as i64 - (1 << 23)
    };
    let pairs: Vec<(i64, i64)> = (0..20_000).map(|_| (draw(), draw() >> (draw() & 15))).collect();
    let pairs: Vec<(i64, i64)> = pairs.into_iter().filter(|&(_, b)| b != 0).collect();
    let column = |f: fn(&(i64, i64)) -> i64| {
        T::from_vec(pairs.iter().map(|p| f(p) as f32 * 0.125).collect(), pairs.len()).unwrap()
    };
    let got = column(|p| p.0).floor_divide(column(|p| p.1)).unwrap().to_vec::<f32>().unwrap();
    for (&(a, b), y) in pairs.iter().zip(got) {
        let want = a.div_euclid(b) - i64::from(b < 0 && a.rem_euclid(b) != 0);
        // Beyond 2^22 the quotient is rounded.
        assert!((y as i64 - want).abs() <= want.abs() >> 22, "{a} {b}: {y}, not {want}");
    }
}

#[test]
fn xlogy_matches_torch_and_is_right_at_zero() {
    let (a, b) = (of(&[0., 0., 2., 0., 1.5]), of(&[0., -1., 0.5, INF, 0.]));
    let want = [0., 0., -1.3862943611198906, 0., -INF];
    assert_close(&a.xlogy(&b).unwrap(), &want);
    assert_close(&of(&[0., NAN, -1.]).xlogy(of(&[NAN, 1., -1.])).unwrap(), &[NAN, NAN, NAN]);
    let (a, b) = (of(&[0., 2., -1.5]), of(&[2., 0.5, 3.]));
    let g = gradients(&[&a, &b], |xs| xs[0].xlogy(&xs[1]));
    assert_close(&g[0], &[LN_2, -LN_2, 1.0986122886681098]);
    assert_close(&g[1], &[0., 4., -0.5]);
    // Where both are 0 gradients of every order are finite.
    let (a, b) = (of(&[0., 0.]), of(&[0., -2.]));
    for g in gradients(&[&a, &b], |xs| xs[0].xlogy(&xs[1])) {
        assert!(values(&g).iter().all(|&x| x == 0.0));
    }
    let p = of(&[0.0, 0.25, 0.75]);
    let entropy = p.xlogy(&p).unwrap().sum(None, false).unwrap().neg().unwrap();
    assert_close(&entropy, &[-(0.25f64.ln() * 0.25 + 0.75f64.ln() * 0.75)]);
    check(&[&of(&[0.0, 1.0, -2.0]), &of(&[2.0, 0.5, 3.0])], |xs| xs[0].xlogy(&xs[1]));
    assert!(matches!(tensor![i64; 1].xlogy(1), Err(Error::UnsupportedDType { op: "xlogy", .. })));
}

#[test]
fn logaddexp_matches_torch_and_is_stable_at_infinities() {
    let (a, b) = (of(&[0.5, -3.0, 700., 2.0]), of(&[1.5, 2.0, -700., 2.0]));
    let want = [1.8132616875182228, 2.0067153484891183, 700.0, 2.6931471805599454];
    assert_close(&a.logaddexp(&b).unwrap(), &want);
    assert_close(&strided(&a).logaddexp(strided(&b)).unwrap(), &want);
    let g = gradients(&[&a, &b], |xs| xs[0].logaddexp(&xs[1]));
    assert_close(&g[0], &[0.2689414213699951, 0.0066928509242848554, 1.0, 0.5]);
    let of_b = [0.7310585786300049, 0.9933071490757153, 0.0, 0.5];
    assert!(values(&g[1]).iter().zip(of_b).all(|(x, y)| (x - y).abs() < 1e-14));
    let (a, b) = (of(&[INF, -INF, INF, -INF, NAN, 1.0]), of(&[INF, -INF, -INF, 1.0, INF, NAN]));
    assert_close(&a.logaddexp(&b).unwrap(), &[INF, -INF, INF, 1.0, NAN, NAN]);
    let g = gradients(&[&a, &b], |xs| xs[0].logaddexp(&xs[1]));
    assert_close(&g[0], &[NAN, NAN, 1.0, 0.0, NAN, NAN]);
    assert_close(&g[1], &[NAN, NAN, 0.0, 1.0, NAN, NAN]);
    // Ties, whose second derivative is 1/4.
    check(&[&of(&[0.5, 1.0]), &of(&[0.5, -2.0])], |xs| xs[0].logaddexp(&xs[1]));
    assert_close(&of(&[0.0]).logaddexp(0.0).unwrap(), &[2f64.ln()]);
    let half = tensor![60000.0, 1.0].to_dtype(DType::F16).unwrap();
    let sum = half.logaddexp(half.neg().unwrap()).unwrap();
    assert_eq!((sum.dtype(), values(&sum)[0]), (DType::F16, 60000.0));
    let error = of(&[1., 2.]).logaddexp(of(&[1., 2., 3.])).unwrap_err();
    assert!(matches!(error, Error::ShapeMismatch { op: "logaddexp", .. }), "{error}");
    assert_eq!(of(&[]).logaddexp(of(&[])).unwrap().numel(), 0);
}

#[test]
fn softplus_with_matches_torch() {
    let x = of(&[-1., 0., 2., 2.6, 3.]);
    let want = [0.06346400552148625, 0.34657359027997264, 2.0090749639589047, 2.6, 3.0];
    assert_close(&x.softplus_with(2.0, 5.0).unwrap(), &want);
    let g = gradients(&[&x], |xs| xs[0].softplus_with(2.0, 5.0));
    assert_close(&g[0], &[0.11920292202211755, 0.5, 0.9820137900379085, 1.0, 1.0]);
    check(&[&x], |xs| xs[0].softplus_with(0.5, 20.0));
    for beta in [0.0, -1.0, NAN, INF] {
        assert!(matches!(x.softplus_with(beta, 20.0), Err(Error::InvalidArgument { .. })));
    }
}

#[test]
fn nan_to_num_replaces_what_is_not_finite() {
    let x = of(&[1., NAN, INF, -INF, -0.0]);
    assert_close(&x.nan_to_num(0.5, 7.0, -7.0).unwrap(), &[1., 0.5, 7., -7., -0.0]);
    assert_close(&x.nan_to_num(0.0, None, None).unwrap(), &[1., 0., f64::MAX, f64::MIN, -0.0]);
    let half = x.to_dtype(DType::F16).unwrap().nan_to_num(0.0, None, None).unwrap();
    assert_eq!(values(&half)[2..4], [65504.0, -65504.0]);
    let g = gradients(&[&x], |xs| xs[0].nan_to_num(0.0, None, None)?.mul(3.0));
    assert_close(&g[0], &[3., 0., 0., 0., 3.]);
    let integers = tensor![i64; i64::MAX, 0];
    assert_eq!(integers.nan_to_num(0.0, None, None).unwrap().to_vec::<i64>().unwrap()[0], i64::MAX);
}

#[test]
fn isclose_and_allclose() {
    let x = of(&[1.0, 1.0, INF, INF, INF, NAN, 0.0, -0.0]);
    let y = of(&[1.01, 1.03, INF, -INF, 1.0, NAN, 1e-9, 0.0]);
    let close = |rtol, atol, equal_nan| {
        x.isclose(&y, rtol, atol, equal_nan).unwrap().to_vec::<bool>().unwrap()
    };
    let t = true;
    assert_eq!(close(0.02, 0.0, false), [t, false, t, false, false, false, false, t]);
    assert_eq!(close(0.0, 0.0, true), [false, false, t, false, false, t, false, t]);
    assert_eq!(close(0.0, INF, false), [t, t, t, false, false, false, t, t]);
    // The tolerance is relative to the second operand.
    assert!(!of(&[1.0]).allclose(&of(&[1.1]), 0.0909, 0.0).unwrap());
    assert!(of(&[1.0]).allclose(&of(&[1.1]), 0.0910, 0.0).unwrap());
    assert!(!x.allclose(&x, 1e-5, 1e-8).unwrap());
    assert!(of(&[]).allclose(&of(&[]), 0., 0.).unwrap());
    let large = tensor![i64; 1 << 60, 5];
    assert!(!large.allclose(&large.add(1).unwrap(), 0.0, 0.5).unwrap());
    assert!(large.allclose(&large, 0.0, 0.0).unwrap());
    assert!(tensor![bool; true].allclose(&tensor![bool; true], 0.0, 0.0).unwrap());
    assert_eq!(x.reshape((8, 1)).unwrap().isclose(&y, 0., 0., false).unwrap().dims(), [8, 8]);
    for tolerances in [[-1.0, 0.0], [0.0, NAN]] {
        let result = x.isclose(&y, tolerances[0], tolerances[1], false);
        assert!(matches!(result, Err(Error::InvalidArgument { op: "isclose", .. })));
    }
    let mixed = x.allclose(&tensor![1.0f32], 0., 0.);
    assert!(matches!(mixed, Err(Error::DTypeMismatch { op: "allclose", .. })));
}

#[test]
fn logical_xor_is_true_for_one_of_two() {
    let (a, b) = (tensor![0.0, f32::NAN, 2.0, 0.0], tensor![i64; 1, 1, 0, 0]);
    let want = [true, false, true, false];
    assert_eq!(a.logical_xor(&b).unwrap().to_vec::<bool>().unwrap(), want);
    let error = a.logical_xor(&tensor![1.0, 2.0]).unwrap_err();
    assert!(matches!(error, Error::ShapeMismatch { op: "logical_xor", .. }), "{error}");
}

#[test]
fn clamps_with_one_bound_have_the_derivative_of_clamp() {
    let x = of(&[-2., 0., 1., 3., NAN]);
    assert_close(&x.clamp_min(0.0).unwrap(), &[0., 0., 1., 3., NAN]);
    assert_close(&x.clamp_max(1.0).unwrap(), &[-2., 0., 1., 1., NAN]);
    let g = gradients(&[&x], |xs| xs[0].clamp_min(0.0));
    assert_close(&g[0], &[0., 0., 1., 1., 1.]);
    let g = gradients(&[&x], |xs| xs[0].clamp_max(1.0));
    assert_close(&g[0], &[1., 1., 0., 0., 1.]);
    let (infinite, ones) = (of(&[INF, -INF]), [1., 1.]);
    let g = gradients(&[&infinite], |xs| xs[0].clamp_min(-INF)?.clamp_max(INF));
    assert_close(&g[0], &[0., 0.]);
    assert_close(&gradients(&[&infinite], |xs| xs[0].clamp_min(0.0))[0], &[1., 0.]);
    assert_close(&gradients(&[&infinite], |xs| xs[0].clamp_max(0.0))[0], &[0., 1.]);
    assert_close(&gradients(&[&of(&ones), &infinite], |xs| xs[0].clamp_min(&xs[1]))[1], &[1., 0.]);
    let bound = of(&[0.5, 1.5, -1.0, 1.0]);
    let y = of(&[0.0, 2.0, 1.0, -4.0]);
    check(&[&y, &bound], |xs| xs[0].clamp_min(&xs[1])?.square());
    check(&[&y, &bound], |xs| xs[0].clamp_max(&xs[1])?.square());
}

/// The backends agree on what is composed.
#[test]
fn the_reference_backend_agrees() {
    type R = Tensor<ReferenceBackend>;
    let (a, b) = ([0.5, -2.0, INF, -INF, 7.5, 0.0], [1.5, -2.0, INF, 3.0, -2.0, 0.0]);
    let (x, y) = (of(&a), of(&b));
    let (u, v) = (R::from_slice(&a, 6).unwrap(), R::from_slice(&b, 6).unwrap());
    let pairs = [
        (x.logaddexp(&y).unwrap(), u.logaddexp(&v).unwrap()),
        (x.floor_divide(&y).unwrap(), u.floor_divide(&v).unwrap()),
        (x.xlogy(y.abs().unwrap()).unwrap(), u.xlogy(v.abs().unwrap()).unwrap()),
        (x.nan_to_num(0.0, 1.0, None).unwrap(), u.nan_to_num(0.0, 1.0, None).unwrap()),
        (x.softplus_with(2.0, 3.0).unwrap(), u.softplus_with(2.0, 3.0).unwrap()),
    ];
    for (ours, theirs) in pairs {
        assert_close(&ours, &theirs.to_vec::<f64>().unwrap());
    }
}
