//! Gradients that are representable are accurate although some order of operations would overflow,
//! underflow or cancel. Expected values are derived by hand.

use swath::ops::Activation;
use swath::prelude::*;
use swath::{Attention, CrossEntropy, Reduction};

type T = Tensor<CpuBackend>;

fn tensor(values: &[f64], dtype: DType) -> T {
    T::from_slice(values, values.len()).unwrap().to_dtype(dtype).unwrap()
}

fn wide(x: &T) -> Vec<f64> {
    x.to_dtype(DType::F64).unwrap().to_vec().unwrap()
}

/// Gradient of `f` at `x` for the upstream gradient `g` in every element.
fn gradient(dtype: DType, f: impl Fn(&T) -> Result<T>, x: &[f64], g: f64) -> Vec<f64> {
    let x = tensor(x, dtype).requires_grad();
    let y = f(&x).unwrap();
    let upstream = T::full((), g).unwrap().to_dtype(dtype).unwrap();
    let grads = y.mul(&upstream).unwrap().sum(None, false).unwrap().backward().unwrap();
    wide(grads.wrt(&x).unwrap())
}

/// Checks that values agree within `units` of the type's spacing at 1, relative to the expected value.
#[track_caller]
fn assert_near(dtype: DType, found: &[f64], expected: &[f64], units: f64) {
    let unit = match dtype {
        DType::F16 => 2f64.powi(-10),
        DType::BF16 => 2f64.powi(-7),
        DType::F32 => 2f64.powi(-23),
        _ => 2f64.powi(-52),
    };
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        let allowed = units * unit * expected.abs();
        let near = found == expected || (found - expected).abs() <= allowed;
        assert!(near, "{dtype}: {found:e}, not {expected:e}");
    }
}

#[test]
fn gradients_of_products_stay_in_range() {
    let prod = |x: &T| x.prod(None, false);
    let at = |x: &[f64]| gradient(DType::F32, prod, x, 1.0);
    let expected = [1e-30, 1e-30, 1e30, 1e30];
    assert_near(DType::F32, &at(&[1e30, 1e30, 1e-30, 1e-30]), &expected, 2.0);
    assert_eq!(at(&[1e30, 1e30, 0.0, 0.0]), [0.0; 4]);
    let one_zero = at(&[1e30, 1e30, 0.0, 1.0]);
    assert_eq!(one_zero, [0.0, 0.0, f64::INFINITY, 0.0]);
    let x = [60000.0, 60000.0, 2f64.powi(-14), 2f64.powi(-14)];
    let half = gradient(DType::F16, prod, &x, 1.0);
    assert_near(DType::F16, &half[..2], &[60000.0 * 2f64.powi(-28); 2], 1.0);
    // 219,726 overflows the type.
    assert_eq!(half[2..], [f64::INFINITY; 2]);
}

#[test]
fn gradients_of_running_products_stay_in_range() {
    let cumprod = |x: &T| x.cumprod(0);
    let at = |dtype, x: &[f64]| gradient(dtype, cumprod, x, 1.0);
    let single = at(DType::F32, &[1e-30, 1e20, 1e20, 1e20]);
    // dx1 = x0 (1 + x2 + x2 x3), dx2 = x0 x1 (1 + x3), dx3 = x0 x1 x2.
    assert_near(DType::F32, &single, &[f64::INFINITY, 1e10, 1e10, 1e10], 4.0);
    let zero_first = at(DType::F32, &[0.0, 1e30, 1e30, 1e30, 1.0]);
    assert_eq!(zero_first, [f64::INFINITY, 0.0, 0.0, 0.0, 0.0]);
    for dtype in [DType::F32, DType::F64] {
        let last = at(dtype, &[1.0, 1.0, 1.0, 1.0, f64::INFINITY]);
        let infinity = f64::INFINITY;
        assert_eq!(last, [infinity, infinity, infinity, infinity, 1.0], "{dtype}");
    }
}

#[test]
fn gradients_of_norms_and_deviations_of_tiny_numbers_are_accurate() {
    let norm = |x: &T| x.norm(2.0, None, false);
    for (dtype, tiny) in [(DType::F32, 1e-40), (DType::F64, 1e-310)] {
        let slopes = gradient(dtype, norm, &[3.0 * tiny, 4.0 * tiny], 1.0);
        // The norm is itself subnormal.
        slopes.iter().zip([0.6, 0.8]).for_each(|(s, e)| assert!((s - e).abs() < 1e-4, "{s}"));
        assert_eq!(gradient(dtype, norm, &[0.0, tiny], 1.0), [0.0, 1.0]);
        assert_eq!(gradient(dtype, norm, &[0.0, 0.0], f64::INFINITY), [0.0, 0.0]);
    }
    let std_slopes = gradient(DType::F32, |x| x.std(None, false, 0), &[1e-40, -1e-40], 1.0);
    std_slopes.iter().zip([0.5, -0.5]).for_each(|(s, e)| assert!((s - e).abs() < 1e-4, "{s}"));
}

#[test]
fn gradients_of_variances_far_from_zero_are_accurate() {
    let x: Vec<f64> = [0.25, -1.75, 1.5, -0.5, 0.875, 1.125, -1.0].map(|d| 1e4 + d).to_vec();
    let mean = x.iter().sum::<f64>() / 7.0;
    let slopes: Vec<f64> = x.iter().map(|x| 2.0 * (x - mean) / 7.0).collect();
    let found = gradient(DType::F32, |x| x.variance(None, false, 0), &x, 1.0);
    assert_near(DType::F32, &found, &slopes, 8.0);
    let std = (x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 7.0).sqrt();
    let slopes: Vec<f64> = x.iter().map(|x| (x - mean) / (7.0 * std)).collect();
    let found = gradient(DType::F32, |x| x.std(None, false, 0), &x, 1.0);
    assert_near(DType::F32, &found, &slopes, 8.0);
}

#[test]
fn gradients_of_16_bit_powers_are_accurate() {
    let slope = 346.0 * 0.875f64.powf(345.0);
    let found = gradient(DType::BF16, |x| x.powf(346.0), &[0.875], 1.0);
    assert_near(DType::BF16, &found, &[slope], 1.0);
    // The exponent 2049 is not representable in f16.
    let x = 1.0 - 2f64.powi(-9);
    let found = gradient(DType::F16, |x| x.powf(2050.0), &[x], 1.0);
    assert_near(DType::F16, &found, &[2050.0 * x.powf(2049.0)], 1.0);
}

#[test]
fn intermediate_values_do_not_overflow_or_underflow() {
    let largest = 65504.0;
    let selu = gradient(DType::F16, |x| x.selu(), &[-4.0, -1.0], largest);
    let expected = [-4f64, -1.0].map(|x| largest * 1.7580993408473768 * x.exp());
    assert_near(DType::F16, &selu, &expected, 2.0);
    let rsqrt = gradient(DType::F32, |x| x.rsqrt(), &[2e-26], 1.0);
    assert_near(DType::F32, &rsqrt, &[-0.5 * 2e-26f64.powf(-1.5)], 4.0);
    let exp2 = gradient(DType::F16, |x| x.exp2(), &[15.375], 1.875);
    assert_near(DType::F16, &exp2, &[15.375f64.exp2() * 1.875 * std::f64::consts::LN_2], 2.0);
    let x = 2f64.powi(-16);
    let log10 = gradient(DType::F16, |x| x.log10(), &[x], 2.0);
    assert_near(DType::F16, &log10, &[2.0 / x / std::f64::consts::LN_10], 2.0);
    // Intermediate values must not be rounded as subnormals if the result is normal.
    let least = 2f64.powi(-24);
    let log10 = gradient(DType::F16, |x| x.log10(), &[2f64.powi(-14)], least);
    assert_near(DType::F16, &log10, &[2f64.powi(-10) / std::f64::consts::LN_10], 1.0);
    let exp2 = gradient(DType::F16, |x| x.exp2(), &[-23.0], 1024.0);
    assert_near(DType::F16, &exp2, &[2f64.powi(-13) * std::f64::consts::LN_2], 1.0);
    let rsqrt = gradient(DType::F16, |x| x.rsqrt(), &[2f64.powi(-8)], least);
    assert_near(DType::F16, &rsqrt, &[-0.5 * least * 2f64.powi(12)], 1.0);
}

#[test]
fn an_infinite_upstream_gradient_times_a_zero_slope_is_zero() {
    let infinity = f64::INFINITY;
    let x = [-2.0, 0.0, 2.0];
    let at = |f: fn(&T) -> Result<T>| gradient(DType::F32, f, &x, infinity);
    assert_eq!(at(|x| x.abs()), [-infinity, 0.0, infinity]);
    let of_norm = gradient(DType::F32, |x| x.norm(1.0, None, false), &x, infinity);
    assert_eq!(of_norm, [-infinity, 0.0, infinity]);
    let smallest = |x: &T| x.norm(f64::NEG_INFINITY, None, false);
    assert_eq!(gradient(DType::F32, smallest, &x, infinity), [0.0; 3]);
    for f in [
        |b: &T| tensor(&[2.0; 3], DType::F32).leaky_relu(b),
        |b: &T| tensor(&[2.0; 3], DType::F32).elu(b),
    ] {
        assert_eq!(at(f), [0.0; 3]);
    }
}

/// The first gradient of `f`, not recorded and recorded, for upstream gradients that differ by element.
fn both_ways(dtype: DType, f: impl Fn(&T) -> Result<T>, x: &[f64]) -> [Vec<f64>; 2] {
    [false, true].map(|create_graph| {
        let x = tensor(x, dtype).requires_grad();
        let y = f(&x).unwrap();
        let upstream = T::arange(1.0, y.numel() as f64 + 1.0, 1.0).unwrap();
        let upstream = upstream.reshape(*y.shape()).unwrap().to_dtype(dtype).unwrap();
        let loss = y.mul(&upstream).unwrap().sum(None, false).unwrap();
        let options = Backward { create_graph, ..Backward::default() };
        wide(loss.backward_opts(options).unwrap().wrt(&x).unwrap())
    })
}

#[test]
fn recorded_gradients_of_norms_do_not_overflow_or_underflow() {
    let (large, small) = ([300.0, -150.0, 600.0, 300.0], [1e-4, -2e-4, 3e-4, 5e-5]);
    let scaled = |x: [f64; 4], by: f64| x.map(|x| x * by);
    for (dtype, x, eps) in [
        (DType::F16, large, 1e-5),
        (DType::F16, small, 0.0),
        (DType::F32, scaled(large, 1e18), 1e-5),
        (DType::F32, scaled(small, 1e-20), 0.0),
        (DType::F32, scaled(small, 1e-30), 1e-12),
        (DType::F32, large, 1e70),
    ] {
        let of_rms = |weight: Option<&T>| both_ways(dtype, |x| x.rms_norm(weight, eps), &x);
        let of_layer =
            |weight: Option<&T>| both_ways(dtype, |x| x.layer_norm(weight, weight, eps), &x);
        let weight = tensor(&[0.5, -2.0, 1.75, 1.0], dtype);
        let weight = Some(&weight);
        for [plain, recorded] in [of_rms(None), of_layer(None), of_rms(weight), of_layer(weight)] {
            let largest = plain.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
            assert!(largest > 0.0 && largest.is_finite(), "{dtype} {x:?}: {plain:?}");
            let units = if dtype == DType::F16 { 2f64.powi(-10) } else { 2f64.powi(-20) };
            for (plain, recorded) in plain.iter().zip(&recorded) {
                let near = (plain - recorded).abs() <= units * largest;
                assert!(near, "{dtype} {x:?}, {eps}: {plain:e} and, recorded, {recorded:e}");
            }
        }
    }
    // The gradients are subnormal; the recorded ones may be zeros.
    let weight = Some(&tensor(&[0.5, -2.0, 1.75, 1.0], DType::F32));
    for [plain, recorded] in [None, weight].into_iter().flat_map(|weight| {
        [
            both_ways(DType::F32, |x| x.rms_norm(weight, 1e80), &large),
            both_ways(DType::F32, |x| x.layer_norm(weight, weight, 1e80), &large),
        ]
    }) {
        let is_tiny = |x: &f64| x.abs() < f64::from(f32::MIN_POSITIVE);
        assert!(plain.iter().all(|x| *x != 0.0 && is_tiny(x)), "{plain:?}");
        assert!(recorded.iter().all(is_tiny), "{recorded:?}");
    }
}

#[test]
fn recorded_gradients_of_softmax_sum_beyond_sixteen_bits() {
    let n = 70_000;
    let class = T::zeros(1, DType::I64).unwrap();
    let loss = |x: &T| x.reshape((1, n))?.cross_entropy(&class, Default::default());
    for found in both_ways(DType::F16, loss, &vec![0.0; n]) {
        // 1/70,000 - 1, and 1/70,000.
        assert_near(DType::F16, &found[..2], &[-1.0, 1.0 / n as f64], 8.0);
    }
    // Upstream gradients of 40,000, with the sum 80,000; and of 60,000 and -60,000, which differ by 120,000.
    let times = |y: T, by: &[f64]| y.mul(tensor(by, DType::F16));
    for ([plain, recorded], allowed) in [
        (both_ways(DType::F16, |x| times(x.log_softmax(0)?, &[4e4, 2e4]), &[0.0; 2]), 32.0),
        (both_ways(DType::F16, |x| times(x.softmax(0)?, &[6e4, -3e4]), &[8.0, 0.0]), 0.1),
    ] {
        for (plain, recorded) in plain.iter().zip(&recorded) {
            assert!((plain - recorded).abs() <= allowed, "{plain} and, recorded, {recorded}");
        }
    }
}

/// With large, nearly equal keys, g·vᵀ and the row sums of g y almost cancel. The gradient of the queries
/// cancels too, to less than its rounding error, so it is compared within the bound for the keys.
#[test]
fn gradients_of_attention_with_scores_beyond_16_bits_are_accurate() {
    for (dtype, step) in [(DType::F16, 2f64.powi(-5)), (DType::BF16, 2f64.powi(-2))] {
        let x: Vec<f64> = (0..256).map(|i| 40.0 + f64::from(i / 64 % 3) * step).collect();
        // Scores of 64 · 40², scaled by 2^-7, in two heads.
        let of = |operand: usize| {
            let attention = move |x: &T| {
                let x = x.reshape((1, 2, 2, 64))?;
                let mut operands = [(); 3].map(|()| x.detach());
                operands[operand] = x;
                let [q, k, v] = operands;
                let options = Attention { scale: Some(2f64.powi(-7)), ..Default::default() };
                q.scaled_dot_product_attention(&k, &v, options)
            };
            (both_ways(dtype, attention, &x), both_ways(DType::F64, attention, &x))
        };
        let unit = if dtype == DType::F16 { 2f64.powi(-10) } else { 2f64.powi(-7) };
        let largest = |x: &[f64]| x.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        let [q, k, v] = [0, 1, 2].map(of);
        for (name, (found, [expected, _]), reference) in
            [("q", &q, &k.1[0]), ("k", &k, &k.1[0]), ("v", &v, &v.1[0])]
        {
            let allowed = unit * largest(reference);
            for (found, expected) in found.iter().flat_map(|found| found.iter().zip(expected)) {
                let near = (found - expected).abs() <= allowed;
                assert!(near, "{dtype}, {name}: {found}, not {expected}");
            }
        }
    }
}

#[test]
fn recorded_gradients_of_bias_activation_match_unrecorded_ones() {
    let bias = [0.3, -1.7];
    let x: Vec<f64> = (0..256).map(|i| f64::from(i) / 32.0 - 4.0).collect();
    for dtype in [DType::F16, DType::BF16] {
        for activation in [Activation::Gelu, Activation::Silu, Activation::Tanh] {
            let of_x =
                |x: &T| x.reshape((128, 2))?.bias_activation(&tensor(&bias, dtype), activation);
            let of_bias =
                |bias: &T| tensor(&x, dtype).reshape((128, 2))?.bias_activation(bias, activation);
            let [plain, recorded] = both_ways(dtype, of_x, &x);
            assert_eq!(plain, recorded, "{dtype} {activation:?}");
            let [plain, recorded] = both_ways(dtype, of_bias, &bias);
            assert_near(dtype, &recorded, &plain, 1.0);
        }
    }
}

#[test]
fn ignored_rows_have_zero_gradients_whatever_their_values() {
    for reduction in [Reduction::None, Reduction::Sum, Reduction::Mean] {
        let none = T::from_slice(&[-100i64, -100], 2).unwrap();
        let options = CrossEntropy { ignore_index: Some(-100), reduction, ..Default::default() };
        let of_no_classes = |x: &T| x.reshape((2, 0))?.cross_entropy(&none, options);
        let found = both_ways(DType::F32, of_no_classes, &[]);
        assert!(found.iter().all(Vec::is_empty), "{found:?}");
    }
    let targets = T::from_slice(&[-100i64, 1], 2).unwrap();
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        for (label_smoothing, ignored) in
            [(0.0, [f64::NEG_INFINITY; 2]), (0.1, [f64::NAN, 1.0]), (0.1, [f64::INFINITY, 0.0])]
        {
            let options = CrossEntropy {
                ignore_index: Some(-100),
                label_smoothing,
                reduction: Reduction::Sum,
                ..Default::default()
            };
            let loss = |x: &T| x.reshape((2, 2))?.cross_entropy(&targets, options);
            for found in both_ways(dtype, loss, &[&ignored[..], &[1.0, 2.0]].concat()) {
                let is_zero = |x: &f64| x.to_bits() == 0;
                assert!(found[..2].iter().all(is_zero), "{dtype}: {found:?}");
                assert!(found[2] > 0.2 && found[3] < -0.2, "{dtype}: {found:?}");
            }
        }
    }
}

#[test]
fn gradients_of_hypot_and_atan2_beyond_16_bits_are_accurate() {
    let other = tensor(&[50_000.0], DType::F16);
    let at = |f: &dyn Fn(&T) -> Result<T>, g| gradient(DType::F16, f, &[50_000.0], g)[0];
    let root = 0.5f64.sqrt();
    for (found, expected) in [
        (at(&|a| a.hypot(&other), 1.0), root),
        (at(&|b| other.hypot(b), 1.0), root),
        (at(&|a| a.atan2(&other), 1024.0), 1024.0 * 1e-5),
        (at(&|b| other.atan2(b), 1024.0), 1024.0 * -1e-5),
    ] {
        assert_near(DType::F16, &[found], &[expected], 1.0);
    }
}
