//! Values and gradients at extreme arguments: squares that overflow, bounds that cross, infinities and NaN.

use swath::ops::ReduceOp;
use swath::prelude::*;

type T = Tensor<CpuBackend>;
type Op = fn(&T) -> Result<T>;

/// Gradient of the sum of `f` at `values` in `dtype`.
fn slopes(f: impl Fn(&T) -> Result<T>, values: &[f64], dtype: DType) -> Vec<f64> {
    let x = T::from_slice(values, values.len()).unwrap().to_dtype(dtype).unwrap().requires_grad();
    let grads = f(&x).unwrap().sum(None, false).unwrap().backward().unwrap();
    grads.wrt(&x).unwrap().to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap()
}

#[track_caller]
fn assert_near(found: &[f64], exact: &[f64], relative: f64) {
    assert_eq!(found.len(), exact.len());
    for (y, exact) in found.iter().zip(exact) {
        assert!((y - exact).abs() <= relative * exact.abs(), "{y:e}, not {exact:e}");
    }
}

const FLOATS: [(DType, f64); 4] =
    [(DType::F16, 2e-3), (DType::BF16, 2e-2), (DType::F32, 1e-6), (DType::F64, 1e-15)];

#[test]
fn logsumexp_gradients_do_not_depend_on_the_rounded_value() {
    for (dtype, tolerance) in FLOATS {
        for x in [100.0, 1e3, 1e4] {
            let equal = slopes(|x| x.logsumexp(None, false), &[x, x], dtype);
            assert_eq!(equal, [0.5, 0.5], "{dtype} {x}");
        }
        let share = slopes(|x| x.logsumexp(None, false), &[1.0, 3.0, f64::NEG_INFINITY], dtype);
        let e2 = 2f64.exp();
        assert_near(&share, &[1.0 / (1.0 + e2), e2 / (1.0 + e2), 0.0], tolerance);
        let nothing = slopes(|x| x.logsumexp(None, false), &[f64::NEG_INFINITY; 2], dtype);
        assert_eq!(nothing, [0.0, 0.0]);
        assert!(slopes(|x| x.logsumexp(None, false), &[], dtype).is_empty());
    }
}

#[test]
fn norms_of_zeros_have_a_gradient() {
    assert_eq!(slopes(|x| x.norm(-1.0, None, false), &[0.0, 2.0], DType::F32), [0.0, 0.0]);
    assert_eq!(slopes(|x| x.norm(-2.5, None, false), &[0.0, 0.0], DType::F32), [0.0, 0.0]);
    assert_near(
        &slopes(|x| x.norm(3.0, None, false), &[0.0, -2.0], DType::F32),
        &[0.0, -1.0],
        1e-6,
    );
    // y = (1/1 + 1/4)^(-1) = 0.8 and dy/dx = (y/x)²
    let both = slopes(|x| x.norm(-1.0, None, false), &[1.0, 4.0], DType::F64);
    assert_near(&both, &[0.64, 0.04], 1e-14);
}

#[test]
fn a_nan_result_passes_the_gradient_to_the_nan_input() {
    let nan = f64::NAN;
    let values = [1.0, nan, 3.0];
    assert_eq!(slopes(|x| x.max(None, false), &values, DType::F32), [0.0, 1.0, 0.0]);
    assert_eq!(slopes(|x| x.min(None, false), &values, DType::F32), [0.0, 1.0, 0.0]);
    let largest = |x: &T| x.norm(f64::INFINITY, None, false);
    assert!(slopes(largest, &values, DType::F32)[1].is_nan());
    assert_eq!(slopes(|x| x.maximum(2.0), &values, DType::F32), [0.0, 1.0, 1.0]);
    assert_eq!(slopes(|x| x.minimum(2.0), &values, DType::F32), [1.0, 1.0, 0.0]);
    assert_eq!(slopes(|x| x.clamp(0.0, 2.0), &values, DType::F32), [1.0, 1.0, 0.0]);
    assert_eq!(slopes(|x| T::full(3, 2.0)?.maximum(x), &values, DType::F64), [0.0, 1.0, 1.0]);
}

/// If the lower bound exceeds the upper one, the result is the upper one, which gets the gradient.
#[test]
fn clamp_with_crossed_bounds_returns_the_upper_one() {
    fn run<B: Backend>() {
        let tensor = |values: &[f64]| {
            Tensor::<B>::from_vec(values.to_vec(), values.len()).unwrap().requires_grad()
        };
        let a = tensor(&[0.0, 1.5, 3.0, 1.0, -1.0, 0.5, 2.0]);
        let b = tensor(&[2.0, 2.0, 2.0, 1.0, 0.0, 0.0, 0.0]);
        let c = tensor(&[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
        let y = a.clamp(&b, &c).unwrap();
        assert_eq!(y.to_vec::<f64>().unwrap(), [1.0, 1.0, 1.0, 1.0, 0.0, 0.5, 1.0]);
        let grads = y.sum(None, false).unwrap().backward().unwrap();
        let of = |x: &Tensor<B>| grads.wrt(x).unwrap().to_vec::<f64>().unwrap();
        assert_eq!(of(&a), [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
        assert_eq!(of(&b), [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0]);
        assert_eq!(of(&c), [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0]);
    }
    run::<CpuBackend>();
    run::<ReferenceBackend>();
}

#[test]
fn slopes_with_squares_that_overflow_or_underflow() {
    for (dtype, tolerance) in FLOATS {
        let (large, small): (f64, f64) = match dtype {
            DType::F16 => (512.0, 2f64.powi(-13)),
            _ => (2f64.powi(70), 2f64.powi(-70)),
        };
        let allowed = 4.0 * tolerance;
        assert_near(&slopes(T::asinh, &[large, -large], dtype), &[1.0 / large; 2], allowed);
        assert_near(&slopes(T::acosh, &[large], dtype), &[1.0 / large], allowed);
        assert_near(
            &slopes(T::atan, &[large.min(2f64.powi(60))], dtype),
            &[large.min(2f64.powi(60)).powi(-2)],
            if dtype == DType::F16 { 0.05 } else { allowed },
        );
        for r in [large, small] {
            let other = |x: &T| T::full(1, r)?.to_dtype(x.dtype());
            let expected = [0.5 / r];
            assert_near(&slopes(|a| a.atan2(&other(a)?), &[r], dtype), &expected, allowed);
            let minus = [-0.5 / r];
            assert_near(&slopes(|b| other(b)?.atan2(b), &[r], dtype), &minus, allowed);
        }
        // 1 - x² where x is so near 1 that x² rounds to 1
        let x = 1.0 - 2f64.powi(if dtype == DType::BF16 { -8 } else { -11 });
        let root = ((1.0 - x) * (1.0 + x)).sqrt();
        assert_near(&slopes(T::asin, &[x], dtype), &[1.0 / root], allowed);
        assert_near(&slopes(T::atanh, &[x], dtype), &[1.0 / (root * root)], allowed);
    }
}

/// Second derivatives of gated activations far from 0 are 0, not infinity times 0.
#[test]
fn second_derivatives_of_gated_activations_vanish_far_from_zero() {
    let ops: [(&str, Op); 4] =
        [("gelu", T::gelu), ("gelu_tanh", T::gelu_tanh), ("silu", T::silu), ("mish", T::mish)];
    for (name, op) in ops {
        for (dtype, values) in [
            (DType::F16, &[30.0, -30.0, 300.0, -300.0, 6e4][..]),
            (DType::F32, &[150.0, -150.0, 1e10, -1e10, 1e30][..]),
            (DType::F64, &[1000.0, -1000.0, 1e100, -1e100, 1e200][..]),
        ] {
            let slope = |x: &T| {
                let y = op(x)?.sum(None, false)?;
                Ok(grad(&y, &[x], true)?.remove(0))
            };
            let second = slopes(slope, values, dtype);
            assert!(second.iter().all(|&x| x.abs() < 1e-9), "{name} {dtype}: {second:?}");
        }
    }
}

/// In a contiguous tensor an axis of extent 1 may have any stride.
#[test]
fn reductions_beside_a_reversed_axis_of_one_element() {
    let x = Tensor::<CpuBackend>::from_vec((0..360).collect::<Vec<i64>>(), (4, 3, 6, 5)).unwrap();
    let plain = x.sum(Some(&[0, 2]), false).unwrap().to_vec::<i64>().unwrap();
    let x = x.reshape((4, 1, 3, 6, 5)).unwrap().flip(1).unwrap();
    let reversed = x.sum(Some(&[0, 3]), false).unwrap().to_vec::<i64>().unwrap();
    assert_eq!(reversed, plain);
    assert_eq!(plain[0], (0..4).flat_map(|i| (0..6).map(move |k| 90 * i + 5 * k)).sum::<i64>());
}

#[test]
fn backends_check_their_arguments() {
    let x = CpuBackend::from_vec(vec![1.0f32, 2.0], 2).unwrap();
    let error = CpuBackend::reduce(ReduceOp::Norm { p: f64::NAN }, &x, &[0]).unwrap_err();
    assert!(error.to_string().contains("norm: p is NaN"), "{error}");

    let of =
        |shape: &[usize]| CpuBackend::from_vec(vec![0f32; shape.iter().product()], shape).unwrap();
    let (a, b, c) = (of(&[2, 3]), of(&[2, 2]), of(&[3]));
    let wide = CpuBackend::cast(&a, DType::F64).unwrap();
    for (tensors, axis, parts) in [
        (&[][..], 0, &["cat"][..]),
        (&[&a, &b][..], 0, &["cat", "[2, 3]", "[2, 2]"]),
        (&[&a, &c][..], 0, &["cat", "[2, 3]", "[3]"]),
        (&[&a, &wide][..], 0, &["cat", "f32", "f64"]),
        (&[&a, &a][..], 2, &["cat", "axis 2", "[2, 3]"]),
    ] {
        let text = CpuBackend::cat(tensors, axis).unwrap_err().to_string();
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    }
    assert_eq!(CpuBackend::cat(&[&a, &b], 1).unwrap().shape(), &Shape::new([2, 5]));

    // The error states the shape of the left operand, not the broadcast one.
    let [row, column] = [Tensor::zeros(3, DType::I64), Tensor::zeros([2, 1], DType::I64)];
    let (row, column): (Tensor, Tensor) = (row.unwrap(), column.unwrap());
    let text = row.lerp(&column, 0.5).unwrap_err().to_string();
    assert_eq!(text, "lerp: not defined for i64 (of shape [3])");
    let text = tensor![i64; 1, 2].clamp(0.5, 5.0).unwrap_err().to_string();
    assert!(text.contains("clamp") && text.contains("0.5"), "{text}");
}
