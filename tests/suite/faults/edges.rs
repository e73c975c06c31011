//! Gradients at NaN, at the origin, and where a length overflows.

use swath::ops::Activation;
use swath::prelude::*;

use super::{FLOATS, INF, NAN, assert_near, differentiated, tensor, values};

/// NaN in, NaN out: the gradient of an activation at NaN is NaN.
#[test]
fn gradients_of_activations_at_nan_are_nan() {
    fn check<B: Backend>() {
        type Call<B> = fn(&Tensor<B>) -> Result<Tensor<B>>;
        let calls: [(&str, Call<B>); 18] = [
            ("abs", |x| x.abs()),
            ("relu", |x| x.relu()),
            ("relu6", |x| x.relu6()),
            ("leaky_relu", |x| x.leaky_relu(0.1)),
            ("elu", |x| x.elu(1.5)),
            ("selu", |x| x.selu()),
            ("sigmoid", |x| x.sigmoid()),
            ("log_sigmoid", |x| x.log_sigmoid()),
            ("tanh", |x| x.tanh()),
            ("silu", |x| x.silu()),
            ("gelu", |x| x.gelu()),
            ("gelu_tanh", |x| x.gelu_tanh()),
            ("softplus", |x| x.softplus()),
            ("mish", |x| x.mish()),
            ("hardsigmoid", |x| x.hardsigmoid()),
            ("hardswish", |x| x.hardswish()),
            ("softmax", |x| x.softmax(-1)),
            ("bias_activation", |x| {
                x.bias_activation(
                    &x.narrow(0, 0, 1)?.squeeze(0)?.detach().zeros_like()?,
                    Activation::Relu,
                )
            }),
        ];
        for dtype in FLOATS {
            for (name, f) in calls {
                let x = tensor::<B>(&[NAN, 0.5], dtype).reshape((1, 2)).unwrap().requires_grad();
                let y = f(&x).unwrap().sum(None, false).unwrap();
                let g = values(y.backward().unwrap().wrt(&x).unwrap());
                assert!(g[0].is_nan(), "{name} {dtype}: {g:?}");
            }
        }
    }
    check::<CpuBackend>();
    check::<ReferenceBackend>();
}

#[test]
fn edges_of_functions_of_several_tensors() {
    for dtype in [DType::F32, DType::F64] {
        let largest = if dtype == DType::F32 { f64::from(f32::MAX) } else { f64::MAX };
        // The length overflows, the direction does not.
        let hypot = |a: f64, b: f64| {
            let (y, g) = differentiated(|xs| xs[0].hypot(&xs[1]), &[&[a], &[b]], dtype);
            [y, g[0][0], g[1][0]]
        };
        let half = 0.5f64.sqrt();
        assert_near(&hypot(largest, -largest), &[INF, half, -half], 1e-6);
        assert_near(&hypot(3.0, 4.0), &[5.0, 0.6, 0.8], 1e-6);
        let least = if dtype == DType::F32 { f64::from(f32::from_bits(1)) } else { 5e-324 };
        assert_near(&hypot(least, 0.0)[1..], &[1.0, 0.0], 0.0);
        assert!(hypot(0.0, 0.0)[1].is_nan());
        let atan2 = |a: f64, b: f64| {
            let (y, g) = differentiated(|xs| xs[0].atan2(&xs[1]), &[&[a], &[b]], dtype);
            [y, g[0][0], g[1][0]]
        };
        assert_near(&atan2(0.0, 0.0), &[0.0, NAN, NAN], 0.0);
        assert_near(&atan2(3.0, 4.0)[1..], &[0.16, -0.12], 1e-6);
        let slopes = atan2(largest, largest);
        assert!(slopes[1] > 0.0 && slopes[1] < 1e-37 && slopes[2] < 0.0, "{slopes:?}");
        // The slope by the exponent is a^b ln a, and 0 at 0 for exponents that are not negative.
        let pow =
            |a: f64, b: f64| differentiated(|xs| xs[0].pow(&xs[1]), &[&[a], &[b]], dtype).1[1][0];
        for zero in [0.0, -0.0] {
            assert_eq!([pow(zero, 0.0), pow(zero, 2.0), pow(zero, 3.0), pow(zero, 0.5)], [0.0; 4]);
            assert_eq!([pow(zero, -2.0), pow(zero, -0.5)], [-INF; 2]);
        }
        assert_eq!([pow(0.0, -1.0), pow(-0.0, -1.0)], [-INF, INF]);
        // A bound that is NaN is none; what the result is gets the gradient.
        let clamp = |a: f64, b: f64, c: f64| {
            let inputs: [&[f64]; 3] = [&[a], &[b], &[c]];
            let (y, g) = differentiated(|xs| xs[0].clamp(&xs[1], &xs[2]), &inputs, dtype);
            [y, g[0][0], g[1][0], g[2][0]]
        };
        assert_eq!(clamp(-1.0, 0.0, NAN), [0.0, 0.0, 1.0, 0.0]);
        assert_eq!(clamp(1.0, 0.0, NAN), [1.0, 1.0, 0.0, 0.0]);
        assert_eq!(clamp(1.0, NAN, 0.0), [0.0, 0.0, 0.0, 1.0]);
        assert_eq!(clamp(-1.0, NAN, 0.0), [-1.0, 1.0, 0.0, 0.0]);
        assert_eq!(clamp(-1.0, NAN, NAN), [-1.0, 1.0, 0.0, 0.0]);
        assert_near(&clamp(NAN, 0.0, 1.0), &[NAN, 1.0, 0.0, 0.0], 0.0);
    }
}
