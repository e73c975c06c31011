//! `jacobian`, `hessian_vector_product` and related functions, and derivatives of derivatives, against finite
//! differences and formulas derived by hand.

use swath::prelude::*;

type T = Tensor<CpuBackend>;

fn tensor<B: Backend>(values: &[f64], shape: impl Into<Shape>, dtype: DType) -> Tensor<B> {
    let x = Tensor::<B>::from_vec(values.to_vec(), shape).unwrap();
    x.to_dtype(dtype).unwrap()
}

fn wide<B: Backend>(x: &Tensor<B>) -> Vec<f64> {
    x.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap()
}

fn total<B: Backend>(x: &Tensor<B>) -> Tensor<B> {
    x.sum(None, false).unwrap()
}

#[track_caller]
fn assert_close<B: Backend>(x: &Tensor<B>, expected: &[f64], tolerance: f64) {
    let found = wide(x);
    assert_eq!(found.len(), expected.len());
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        let allowed = tolerance * expected.abs().max(1.0);
        assert!((found - expected).abs() <= allowed, "element {i}: {found} and {expected}");
    }
}

/// Jacobian by central differences in f64, a column for each element of the argument.
fn differences<B: Backend>(
    f: impl Fn(&Tensor<B>) -> Result<Tensor<B>>,
    x: &Tensor<B>,
    eps: f64,
) -> Vec<f64> {
    let n = x.numel();
    let at = |j: usize, by: f64| {
        let mut point = wide(x);
        point[j] += by;
        wide(&f(&tensor(&point, *x.shape(), x.dtype())).unwrap())
    };
    let columns: Vec<Vec<f64>> = (0..n)
        .map(|j| {
            let (high, low) = (at(j, eps), at(j, -eps));
            high.iter().zip(&low).map(|(h, l)| (h - l) / (2.0 * eps)).collect()
        })
        .collect();
    let rows = columns.first().map_or(0, Vec::len);
    (0..rows).flat_map(|i| columns.iter().map(move |column| column[i])).collect()
}

/// Runs a check on both backends, in f64 and in f32, with a tolerance for each.
macro_rules! everywhere {
    ($check:ident) => {
        $check::<CpuBackend>(DType::F64, 1e-12);
        $check::<CpuBackend>(DType::F32, 1e-4);
        $check::<ReferenceBackend>(DType::F64, 1e-12);
        $check::<ReferenceBackend>(DType::F32, 1e-4);
    };
}

#[test]
fn jacobians_match_formulas() {
    fn check<B: Backend>(dtype: DType, tolerance: f64) {
        // Softmax: diag(p) - p pᵀ.
        let x = tensor::<B>(&[0.3, -1.2, 0.7], 3, dtype);
        let e: Vec<f64> = wide(&x).iter().map(|x| x.exp()).collect();
        let p: Vec<f64> = e.iter().map(|v| v / e.iter().sum::<f64>()).collect();
        let unit = |i, j| f64::from(u8::from(i == j));
        let expected: Vec<f64> =
            (0..9).map(|k| p[k / 3] * (unit(k / 3, k % 3) - p[k % 3])).collect();
        let j = jacobian(|x| x.softmax(0), &x).unwrap();
        assert_eq!((j.shape(), j.dtype()), (&Shape::new([3, 3]), dtype));
        assert_close(&j, &expected, tolerance);

        // d(X·B)[i, j] / dX[k, l] = δ(i, k) B[l, j], for X [2, 3] and B [3, 2].
        let values = [0.5, -1.0, 2.0, 0.25, 1.5, -0.75];
        let (x, b) = (tensor::<B>(&values, (2, 3), dtype), tensor::<B>(&values, (3, 2), dtype));
        let j = jacobian(|x| x.matmul(&b), &x).unwrap();
        assert_eq!(j.dims(), [2, 2, 2, 3]);
        let expected: Vec<f64> =
            (0..24).map(|n| unit(n / 12, n / 3 % 2) * values[n % 3 * 2 + n / 6 % 2]).collect();
        assert_close(&j, &expected, tolerance);

        // The Jacobian of a scalar is its gradient; that by a scalar has the shape of the value.
        let j = jacobian(|x| x.square()?.sum(None, false), &x).unwrap();
        assert_eq!(j.shape(), x.shape());
        assert_close(&j, &values.map(|v| 2.0 * v), tolerance);
        let t = tensor::<B>(&[0.5], (), dtype);
        let j = jacobian(|t| t.mul(&b), &t).unwrap();
        assert_eq!(j.shape(), b.shape());
        assert_close(&j, &values, tolerance);
    }
    everywhere!(check);
}

#[test]
fn jacobians_agree_with_differences() {
    type Case = (&'static str, fn(&T) -> Result<T>);
    let cases: [Case; 6] = [
        ("log_softmax", |x| x.log_softmax(-1)),
        ("product with itself", |x| x.matmul(&x.t()?)),
        ("views", |x| x.permute(&[1, 0])?.slice(s![1.., ..;-1])?.exp()),
        ("gather", |x| x.gather(1, &tensor![i64; [0, 2], [1, 1]])?.mul(x.sum(Some(&[1]), true)?)),
        ("cat", |x| T::cat(&[&x.sin()?, &x.mean(Some(&[0]), true)?], 0)),
        ("to_dtype", |x| x.square()?.to_dtype(DType::F64)?.mul_scalar(3.0)),
    ];
    let x = tensor(&[0.3, -0.2, 1.1, 0.9, -1.4, 0.6], (2, 3), DType::F64);
    for (name, f) in cases {
        for x in [&x, &x.flip(1).unwrap(), &x.reshape((3, 2)).unwrap().t().unwrap()] {
            let expected = differences(f, x, 1e-5);
            let found = jacobian(f, x).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_close(&found, &expected, 1e-8);
            let upstream = T::linspace_as(-1.0, 2.0, expected.len() / 6, DType::F64).unwrap();
            let y = f(x).unwrap();
            let product = vjp(f, x, &upstream.reshape(*y.shape()).unwrap()).unwrap();
            let by_hand = upstream.matmul(&found.reshape((y.numel(), 6)).unwrap()).unwrap();
            assert_eq!(product.shape(), x.shape());
            assert_close(&product, &wide(&by_hand), 1e-12);
        }
    }
}

#[test]
fn second_derivatives_of_quadratics_and_rosenbrock() {
    fn check<B: Backend>(dtype: DType, tolerance: f64) {
        // xᵀAx has the Hessian A + Aᵀ.
        let a = [2.0, -1.0, 0.5, 3.0, 0.25, 1.5, -2.0, 4.0, 1.0];
        let matrix = tensor::<B>(&a, (3, 3), dtype);
        let x = tensor::<B>(&[1.0, -2.0, 0.5], 3, dtype);
        let v = [0.5, 1.0, -1.5];
        let quadratic = |x: &Tensor<B>| x.matmul(&matrix)?.matmul(x);
        let expected: Vec<f64> = (0..9).map(|k| a[k] + a[k % 3 * 3 + k / 3]).collect();
        let h = hessian(quadratic, &x).unwrap();
        assert_eq!((h.dims(), h.dtype()), ([3, 3].as_slice(), dtype));
        assert_close(&h, &expected, tolerance);
        let product: Vec<f64> =
            (0..3).map(|i| (0..3).map(|j| expected[3 * i + j] * v[j]).sum()).collect();
        let v = tensor(&v, 3, dtype);
        assert_close(&hessian_vector_product(quadratic, &x, &v).unwrap(), &product, tolerance);

        // (1 - x)² + 100 (y - x²)².
        let rosenbrock = |p: &Tensor<B>| {
            let (x, y) = (p.narrow(0, 0, 1)?, p.narrow(0, 1, 1)?);
            let valley = y.sub(x.square()?)?.square()?.mul_scalar(100.0)?;
            x.affine(-1.0, 1.0)?.square()?.add(valley)?.sum(None, false)
        };
        let (px, py) = (-0.5, 0.75);
        let p = tensor::<B>(&[px, py], 2, dtype);
        let expected = [2.0 - 400.0 * py + 1200.0 * px * px, -400.0 * px, -400.0 * px, 200.0];
        assert_close(&hessian(rosenbrock, &p).unwrap(), &expected, tolerance);
        let v = tensor(&[2.0, -1.0], 2, dtype);
        let product = [2.0 * expected[0] - expected[1], 2.0 * expected[2] - expected[3]];
        assert_close(&hessian_vector_product(rosenbrock, &p, &v).unwrap(), &product, tolerance);
    }
    everywhere!(check);
}

#[test]
fn values_that_do_not_depend_on_the_argument_have_zero_derivatives() {
    let x = tensor![1.0, 2.0];
    let constant = tensor![5.0, 6.0, 7.0];
    let tracked = constant.requires_grad();
    for f in [
        (|_| Ok(tensor![5.0, 6.0, 7.0])) as fn(&T) -> Result<T>,
        |x| no_grad(|| x.sum(None, true))?.broadcast_to(3),
        |x| x.detach().sum(None, true)?.broadcast_to(3),
    ] {
        assert_eq!(wide(&jacobian(f, &x).unwrap()), [0.0; 6]);
        assert_eq!(wide(&vjp(f, &x, &constant).unwrap()), [0.0; 2]);
    }
    assert_eq!(wide(&jacobian(|_| Ok(tracked.clone()), &x).unwrap()), [0.0; 6]);
    let hvp = |f: &dyn Fn(&T) -> Result<T>| wide(&hessian_vector_product(f, &x, &x).unwrap());
    assert_eq!(hvp(&|x| x.sum(None, false)), [0.0; 2]);
    assert_eq!(hvp(&|_| Ok(tensor![5.0])), [0.0; 2]);
    assert_eq!(hvp(&|_| tracked.sum(None, false)), [0.0; 2]);
    // The captured tensor makes the gradient tracked, but it does not depend on the argument.
    assert_eq!(hvp(&|x| x.sum(None, false)?.mul(total(&tracked))), [0.0; 2]);
    assert_eq!(wide(&hessian(|x| x.sum(None, false), &x).unwrap()), [0.0; 4]);
    // An argument without elements.
    let empty = T::zeros((0, 2), DType::F32).unwrap();
    assert_eq!(jacobian(|x| x.exp(), &empty).unwrap().dims(), [0, 2, 0, 2]);
    assert_eq!(
        hessian_vector_product(|x| x.exp()?.sum(None, false), &empty, &empty).unwrap().dims(),
        [0, 2]
    );
    assert_eq!(wide(&jacobian(|x| Ok(x.clone()), &x).unwrap()), [1.0, 0.0, 0.0, 1.0]);
}

#[test]
fn wrong_arguments_are_errors_that_name_operation_and_shape() {
    let x = tensor![1.0, 2.0];
    let error = |result: Result<T>| result.unwrap_err().to_string();
    let deep = T::ones((1, 1, 1, 1, 2), DType::F32).unwrap();
    assert_eq!(error(jacobian(|x| x.exp(), &deep)), "jacobian: 10 axes, at most 8 are supported");
    assert_eq!(
        error(hessian(|x| x.sum(None, false), &deep)),
        "hessian: 10 axes, at most 8 are supported"
    );
    let integers = tensor![i64; 1, 2];
    assert_eq!(
        error(jacobian(|x| x.abs(), &integers)),
        "jacobian: not defined for i64 (of shape [2])"
    );
    assert_eq!(
        error(jacobian(|x| x.to_dtype(DType::I64), &x)),
        "jacobian: not defined for i64 (of shape [2])"
    );
    let square = |x: &T| x.square();
    let reason = "hessian_vector_product: shape [2]: expected a function that returns one element";
    assert_eq!(error(hessian_vector_product(square, &x, &x)), reason);
    let reason = "hessian_vector_product: shapes [2] and [1] do not fit";
    assert_eq!(error(hessian_vector_product(square, &x, &tensor![1.0])), reason);
    assert!(matches!(
        hessian_vector_product(square, &x, &tensor![f64; 1.0, 2.0]),
        Err(Error::DTypeMismatch { op: "hessian_vector_product", .. })
    ));
    assert!(matches!(
        vjp(|x| x.sum(None, true), &x, &x),
        Err(Error::ShapeMismatch { op: "vjp", .. })
    ));
    // Errors of the function are returned unchanged.
    assert!(matches!(
        jacobian(|x| x.matmul(&deep), &x),
        Err(Error::ShapeMismatch { op: "matmul", .. })
    ));
}

#[test]
fn captured_tensors_are_constants_and_their_graphs_are_not_changed() {
    let x = tensor![f64; 0.5, 2.0].requires_grad();
    let z = x.exp().unwrap();
    let j = jacobian(|x| x.mul(&z), &x).unwrap();
    assert_close(&j, &[0.5f64.exp(), 0.0, 0.0, 2f64.exp()], 1e-12);
    // The argument is differentiated, the captured x is not.
    assert_eq!(wide(&jacobian(|y| y.mul(&x), &x).unwrap()), [0.5, 0.0, 0.0, 2.0]);
    // The graph of z can be differentiated afterwards, and may have been released before.
    total(&z).backward().unwrap();
    assert_close(&jacobian(|y| y.mul(&z), &x.detach()).unwrap(), &wide(&j), 1e-12);
    let h = hessian(|y| y.square()?.mul(&z)?.sum(None, false), &x.detach()).unwrap();
    assert_close(&h, &[2.0 * 0.5f64.exp(), 0.0, 0.0, 2.0 * 2f64.exp()], 1e-12);
}

#[test]
fn derivatives_of_functions_can_be_differentiated() {
    let order = |order| GradCheck { order, ..GradCheck::default() };
    let x = tensor(&[0.4, -0.9, 1.3], 3, DType::F64);
    let w = tensor(&[1.5, 0.5, -0.7], 3, DType::F64);
    let cubic = |x: &T, w: &T| x.square()?.mul(x)?.mul(w)?.add(x.matmul(w)?.sin()?);
    check_gradients(|xs: &[T]| jacobian(|x| cubic(x, &xs[1]), &xs[0]), &[&x, &w], order(2))
        .unwrap();
    let hvp = |xs: &[T]| {
        let energy = |x: &T| cubic(x, &xs[1])?.mul(x)?.sum(None, false);
        hessian_vector_product(energy, &xs[0], &xs[2])
    };
    check_gradients(hvp, &[&x, &w, &tensor(&[0.3, 1.0, -2.0], 3, DType::F64)], order(2)).unwrap();
    check_gradients(
        |xs: &[T]| hessian(|x| cubic(x, &xs[1])?.sum(None, false), &xs[0]),
        &[&x, &w],
        order(1),
    )
    .unwrap();
    // A gradient penalty: w is captured, x is plain data, and x is an intermediate value.
    let penalty = |xs: &[T]| {
        let one = tensor(&[1.0], (), DType::F64);
        vjp(|x| cubic(x, &xs[0])?.sum(None, false), &xs[0].exp()?, &one)?.square()
    };
    check_gradients(penalty, &[&w], order(2)).unwrap();
    // Jacobian of a Jacobian: d²(x_i³)/dx_j dx_k = 6 x_i.
    let twice = jacobian(|x| jacobian(|x| x.square()?.mul(x), x), &x).unwrap();
    assert_eq!(twice.dims(), [3, 3, 3]);
    let at = |i: usize| 6.0 * wide(&x)[i];
    let expected: Vec<f64> = (0..27).map(|n| if n % 13 == 0 { at(n / 13) } else { 0.0 }).collect();
    assert_close(&twice, &expected, 1e-12);
    // The result is untracked if nothing is tracked, or nothing is recorded.
    let energy = |x: &T| x.square()?.sum(None, false);
    assert!(!hessian_vector_product(energy, &x, &x).unwrap().is_tracked());
    assert!(!jacobian(energy, &x).unwrap().is_tracked());
    let leaf = x.requires_grad();
    let cube = |x: &T| x.square()?.mul(x);
    assert!(jacobian(cube, &leaf).unwrap().is_tracked());
    let j = no_grad(|| jacobian(cube, &leaf)).unwrap();
    assert!(!j.is_tracked());
    assert_close(&j, &wide(&jacobian(cube, &x).unwrap()), 0.0);
}

#[test]
fn third_order_and_mixed_partials_through_views_and_indices() {
    let x = tensor(&[0.5, -1.5, 0.8, 1.2], (2, 2), DType::F64).requires_grad();
    let y = tensor(&[1.1, 0.7], 2, DType::F64).requires_grad();
    // f = Σ over the flipped, gathered transpose: x00³ y0 + x11 x10² y1 + e^(y0 y1)
    let picked = x.t().unwrap().flip(1).unwrap().gather(1, &tensor![i64; [1], [0]]).unwrap();
    let (x00, x11) = (picked.slice(s![0, 0]).unwrap(), picked.slice(s![1, 0]).unwrap());
    let x10 = x.reshape(4).unwrap().index_select(0, &tensor![i64; 2]).unwrap().squeeze(0).unwrap();
    let (y0, y1) = (y.slice(s![0]).unwrap(), y.slice(s![1]).unwrap());
    let f = &(&(&x00 * &x00) * &x00) * &y0
        + &(&x11 * &(&x10 * &x10)) * &y1
        + (&y0 * &y1).exp().unwrap();
    let derivative = |f: &T, by: &T| grad(&total(f), &[by], true).unwrap().remove(0);
    let (a, b, c, p, q) = (0.5, 0.8, 1.2, 1.1, 0.7);
    let fx = derivative(&f, &x);
    assert_close(&fx, &[3.0 * a * a * p, 0.0, 2.0 * c * b * q, b * b * q], 1e-12);
    let fxx = derivative(&fx, &x);
    // Summed over the first index: sums of the Hessian's rows.
    assert_close(&fxx, &[6.0 * a * p, 0.0, 2.0 * c * q + 2.0 * b * q, 2.0 * b * q], 1e-12);
    let fxxx = derivative(&fxx, &x);
    assert_close(&fxxx, &[6.0 * p, 0.0, 4.0 * q, 2.0 * q], 1e-12);
    let fxxy = derivative(&fxx, &y);
    assert_close(&fxxy, &[6.0 * a, 2.0 * c + 4.0 * b], 1e-12);
    let fxy = derivative(&fx, &y);
    assert_close(&fxy, &[3.0 * a * a, 2.0 * c * b + b * b], 1e-12);
    assert_close(&derivative(&fxy, &x), &[6.0 * a, 0.0, 2.0 * c + 2.0 * b, 2.0 * b], 1e-12);
    // One graph serves all derivatives, also several leaves and intermediates in one call.
    let both = grad(&total(&f), &[&y, &picked, &x, &y0], true).unwrap();
    let e = (p * q).exp();
    assert_close(&both[0], &[a * a * a + q * e, c * b * b + p * e], 1e-12);
    assert_close(&both[1], &[3.0 * a * a * p, b * b * q], 1e-12);
    assert_close(&both[2], &wide(&fx), 1e-12);
    assert_close(&both[3], &[a * a * a + q * e], 1e-12);
    // Σ of f_y0 and f_y1 twice by y: f_y0y0 + f_y0y1 and so on, of e^(y0 y1) alone.
    let fy = derivative(&f, &y);
    let cross = e * (1.0 + p * q);
    assert_close(&derivative(&fy, &y), &[q * q * e + cross, p * p * e + cross], 1e-12);
}

#[test]
fn values_computed_under_no_grad_are_constants_in_all_orders() {
    let x = tensor![f64; 2.0].requires_grad();
    let factor = no_grad(|| x.square()).unwrap();
    let y = total(&(&x.square().unwrap() * &factor));
    let first = grad(&y, &[&x], true).unwrap().remove(0);
    assert_eq!(wide(&first), [16.0]);
    assert_eq!(wide(&grad(&total(&first), &[&x], true).unwrap()[0]), [8.0]);
    // A gradient that was not recorded is a constant: differentiating it is an error.
    let first = grad(&y, &[&x], false).unwrap().remove(0);
    assert!(!first.is_tracked());
    assert!(matches!(grad(&total(&first), &[&x], false), Err(Error::NoGradient { .. })));
    // create_graph records even where recording is off.
    let y = total(&(&x.square().unwrap() * &x));
    let first = no_grad(|| grad(&y, &[&x], true)).unwrap().remove(0);
    assert_eq!(wide(&grad(&total(&first), &[&x], false).unwrap()[0]), [12.0]);
}

#[test]
fn a_gradient_by_some_tensors_does_not_release_the_rest_of_the_graph() {
    let (x, w) = (tensor![2.0].requires_grad(), tensor![3.0].requires_grad());
    let (ex, ew) = (x.square().unwrap(), w.square().unwrap());
    let y = total(&(&ex * &ew));
    assert_eq!(wide(&grad(&y, &[&x], false).unwrap()[0]), [36.0]);
    assert!(matches!(y.backward(), Err(Error::GraphReleased { .. })));
    assert!(matches!(total(&ex).backward(), Err(Error::GraphReleased { op: "square" })));
    assert_eq!(wide(total(&ew).backward().unwrap().wrt(&w).unwrap()), [6.0]);
    // The graph that an intermediate was computed from may be released already.
    let middle = x.square().unwrap();
    let y = total(&middle.square().unwrap());
    total(&middle).backward().unwrap();
    let error = grad(&y, &[&x], false).unwrap_err();
    assert!(matches!(error, Error::GraphReleased { op: "square" }));
    // An untracked tensor is reported before anything is released.
    let y = total(&x.square().unwrap());
    let error = grad(&y, &[&x, &tensor![1.0]], false).unwrap_err();
    assert!(error.to_string().contains("not tracked"), "{error}");
    assert_eq!(wide(&grad(&y, &[&x], false).unwrap()[0]), [4.0]);
}

#[test]
fn a_missing_gradient_names_the_reason() {
    let x = tensor![1.0, 2.0].requires_grad();
    let integers = tensor![i64; 1, 2].requires_grad();
    let middle = x.square().unwrap();
    let y = total(&middle);
    let error = y.backward_opts(Backward { retain_graph: true, ..Backward::default() });
    let grads = error.unwrap();
    let text = |x: &T| grads.wrt(x).unwrap_err().to_string();
    assert!(
        text(&integers).contains("is i64, and only floats have gradients"),
        "{}",
        text(&integers)
    );
    assert!(text(&middle).contains("call retain_grad() on it before backward"));
    middle.retain_grad();
    assert!(text(&middle).contains("after the backward pass"), "{}", text(&middle));
    // The next pass keeps it; a second retain_grad has no effect.
    let grads = y.backward().unwrap();
    middle.retain_grad();
    assert_eq!(wide(grads.wrt(&middle).unwrap()), [1.0, 1.0]);
    let other = x.exp().unwrap();
    other.retain_grad();
    let y = total(&middle.detach().requires_grad());
    let grads = y.backward().unwrap();
    let text = |x: &T| grads.wrt(x).unwrap_err().to_string();
    assert!(text(&x).contains("does not depend on"), "{}", text(&x));
    let untracked = no_grad(|| x.exp()).unwrap();
    untracked.retain_grad();
    assert!(text(&untracked).contains("outside no_grad"), "{}", text(&untracked));
    // The pass starts at integers.
    let counted = x.to_dtype(DType::I64).unwrap().sum(None, false).unwrap();
    let error = counted.backward().unwrap_err().to_string();
    assert!(error.contains("is i64, and only floats have gradients"), "{error}");
    let error = grad(&total(&x), &[&integers], false).unwrap_err().to_string();
    assert!(error.contains("only floats have gradients"), "{error}");
    assert!(Gradients::new().wrt(&x).unwrap_err().to_string().contains("none was added"));
}

#[test]
fn running_products_with_zeros_have_gradients_to_second_order() {
    let options = GradCheck { order: 2, ..Default::default() };
    for values in [
        &[2.0, 0.0, 3.0, -1.5, 0.5][..],
        &[0.0, 2.0, 1.5],
        &[1.5, 0.0, 2.0, 0.0, -1.0, 3.0],
        &[0.0, 0.0, 0.0],
        &[3.0],
    ] {
        let x = tensor::<CpuBackend>(values, values.len(), DType::F64);
        check_gradients(|xs: &[T]| xs[0].cumprod(0)?.square(), &[&x], options).unwrap();
        let x = x.unsqueeze(0).unwrap().unsqueeze(-1).unwrap().broadcast_to((2, values.len(), 3));
        check_gradients(|xs: &[T]| xs[0].cumprod(1), &[&x.unwrap()], options).unwrap();
    }
    // d/dx₁ of x₀ + x₀ x₁ + x₀ x₁ x₂ at x₁ = 0.
    let x = tensor::<CpuBackend>(&[2.0, 0.0, 5.0], 3, DType::F32).requires_grad();
    let grads = total(&x.cumprod(0).unwrap()).backward().unwrap();
    assert_close(grads.wrt(&x).unwrap(), &[1.0, 12.0, 0.0], 0.0);
}
