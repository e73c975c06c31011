//! `jvp` against central differences in f64 and against the Jacobian times the direction.

use swath::prelude::*;

type T = Tensor<CpuBackend>;

fn wide(x: &T) -> Vec<f64> {
    x.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap()
}

#[track_caller]
fn assert_close(found: &T, expected: &[f64], tolerance: f64) {
    let found = wide(found);
    assert_eq!(found.len(), expected.len());
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        let allowed = tolerance * expected.abs().max(1.0);
        assert!((found - expected).abs() <= allowed, "element {i}: {found} and {expected}");
    }
}

type Case = (&'static str, fn(&T) -> Result<T>);

const CASES: [Case; 9] = [
    ("identity", |x| Ok(x.clone())),
    ("log_softmax", |x| x.log_softmax(-1)),
    ("product with itself", |x| x.matmul(&x.t()?)),
    ("views", |x| x.permute(&[1, 0])?.slice(s![1.., ..;-1])?.exp()),
    ("gather", |x| x.gather(1, &tensor![i64; [0, 2], [1, 1]])?.mul(x.sum(Some(&[1]), true)?)),
    ("layer_norm", |x| x.layer_norm(Some(&tensor![f64; 1.0, -2.0, 0.5]), None, 1e-3)),
    ("attention", |x| x.scaled_dot_product_attention(x, &x.sin()?, Attention::default())),
    ("to_dtype", |x| x.to_dtype(DType::F64)?.square()?.mean(None, false)),
    ("cumprod", |x| x.cumprod(1)?.gelu()),
];

#[test]
fn products_agree_with_differences_and_with_the_jacobian() {
    let x = T::from_vec(vec![0.3, -0.2, 1.1, 0.9, -1.4, 0.6], (2, 3)).unwrap();
    let v = T::from_vec(vec![1.0, -0.5, 0.25, 2.0, 0.75, -1.5], (2, 3)).unwrap();
    for (name, f) in CASES {
        let (value, slope) = jvp(f, &x, &v).unwrap_or_else(|error| panic!("{name}: {error}"));
        let y = f(&x).unwrap();
        assert_eq!((value.shape(), slope.shape()), (y.shape(), y.shape()), "{name}");
        assert_eq!(wide(&value), wide(&y), "{name}");
        assert!(!value.is_tracked() && !slope.is_tracked(), "{name}");
        let at = |by: f64| wide(&f(&x.add(v.mul(by).unwrap()).unwrap()).unwrap());
        let (high, low) = (at(1e-5), at(-1e-5));
        let differences: Vec<f64> = high.iter().zip(&low).map(|(h, l)| (h - l) / 2e-5).collect();
        assert_close(&slope, &differences, 1e-8);
        let by_rows = jacobian(f, &x).unwrap().reshape((y.numel(), 6)).unwrap();
        let product = by_rows.matmul(&v.reshape(6).unwrap()).unwrap();
        assert_close(&slope, &wide(&product), 1e-12);
    }
}

#[test]
fn results_can_be_differentiated_again() {
    let order = GradCheck { order: 2, ..GradCheck::default() };
    let x = tensor![f64; 0.4, -0.9, 1.3];
    let w = tensor![f64; 1.5, 0.5, -0.7];
    let cubic = |x: &T, w: &T| x.square()?.mul(x)?.mul(w)?.add(x.matmul(w)?.sin()?);
    let both = |xs: &[T]| {
        let (value, slope) = jvp(|x| cubic(x, &xs[1]), &xs[0], &xs[2])?;
        T::cat(&[&value, &slope], 0)
    };
    check_gradients(both, &[&x, &w, &tensor![f64; 0.3, 1.0, -2.0]], order).unwrap();
    // Forward over reverse is the Hessian's product.
    let energy = |x: &T| cubic(x, &w)?.sum(None, false);
    let slope = |x: &T| vjp(energy, x, &tensor![f64; 1.0].squeeze(0)?);
    let (_, product) = jvp(slope, &x.requires_grad(), &w).unwrap();
    let expected = hessian_vector_product(energy, &x, &w).unwrap();
    assert_close(&product, &wide(&expected), 1e-12);
    // Inside no_grad nothing is recorded.
    let tracked = x.requires_grad();
    let (value, slope) = no_grad(|| jvp(|x| cubic(x, &w), &tracked, &w)).unwrap();
    assert!(!value.is_tracked() && !slope.is_tracked());
}

#[test]
fn constants_have_slope_zero_and_wrong_arguments_are_errors() {
    let (x, v) = (tensor![1.0, 2.0], tensor![1.0, 1.0]);
    let tracked = tensor![5.0, 6.0, 7.0].requires_grad();
    for f in [
        (|_: &T| Ok(tensor![5.0, 6.0, 7.0])) as fn(&T) -> Result<T>,
        |x| no_grad(|| x.sum(None, true))?.broadcast_to(3),
        |x| x.detach().sum(None, true)?.broadcast_to(3),
    ] {
        assert_eq!(wide(&jvp(f, &x, &v).unwrap().1), [0.0; 3]);
    }
    let (value, slope) = jvp(|_| Ok(tracked.clone()), &x, &v).unwrap();
    assert_eq!((wide(&value), wide(&slope)), (vec![5.0, 6.0, 7.0], vec![0.0; 3]));
    let error = |result: Result<(T, T)>| result.unwrap_err().to_string();
    let square = |x: &T| x.square();
    assert_eq!(error(jvp(square, &x, &tensor![1.0])), "jvp: shapes [2] and [1] do not fit");
    let text = error(jvp(square, &x, &tensor![f64; 1.0, 1.0]));
    assert!(text.starts_with("jvp: dtypes f32"), "{text}");
    let integers = tensor![i64; 1, 2];
    assert_eq!(
        error(jvp(|x| x.abs(), &integers, &integers)),
        "jvp: not defined for i64 (of shape [2])"
    );
    let reason = error(jvp(|x| x.reshape(3), &x, &v));
    assert!(reason.starts_with("reshape"), "{reason}");
}
