//! `linear` against a product and an addition, and against finite differences; `fused/reference.rs` compares
//! it with the reference backend.

use swath::prelude::*;

type T = Tensor<CpuBackend>;

const SECOND_ORDER: GradCheck =
    GradCheck { order: 2, eps: None, rtol: None, atol: None, directions: 4, seed: 1 };

fn randn(shape: impl Into<Shape>, seed: u64, dtype: DType) -> T {
    T::randn(shape, &mut Rng::seed(seed)).unwrap().to_dtype(dtype).unwrap()
}

fn bits(x: &T) -> Vec<u64> {
    let values = x.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
    values.into_iter().map(f64::to_bits).collect()
}

/// x of shape `[…, k]` in several layouts: contiguous, with leading axes swapped, with strided k, with every
/// second row, reversed.
fn layouts(lead: &[usize], k: usize, dtype: DType) -> Vec<T> {
    let shape = |extra: &[usize]| lead.iter().chain(extra).copied().collect::<Vec<_>>();
    let mut all = vec![randn(shape(&[k]), 1, dtype)];
    if let [a, b] = *lead {
        all.push(randn([b, a, k], 2, dtype).permute(&[1, 0, 2]).unwrap());
        all.push(randn([k, a, b], 3, dtype).permute(&[1, 2, 0]).unwrap());
        all.push(randn([a, 1, k], 4, dtype).broadcast_to([a, b, k]).unwrap());
    }
    if !lead.is_empty() {
        let mut double = shape(&[k + 3]);
        double[0] *= 2;
        let x = randn(double, 5, dtype).slice(s![..;2]).unwrap();
        all.push(x.narrow(-1, 2, k).unwrap());
        all.push(randn(shape(&[k]), 6, dtype).flip(0).unwrap());
    }
    all
}

#[test]
fn linear_has_the_bits_of_the_product_and_the_addition() {
    let sizes = [(3, 2), (1, 5), (300, 70), (64, 192), (520, 1), (16, 1030)];
    let mut dtypes = vec![DType::F32, DType::F64, DType::F16, DType::BF16];
    if swath::blas::info().provider != "embedded" {
        println!(
            "SKIPPED: 16-bit floats: a library computes f32 products, and not all of 16-bit floats"
        );
        dtypes.truncate(2);
    }
    for dtype in dtypes {
        for lead in [&[][..], &[1], &[7], &[3, 4], &[9, 33]] {
            for (k, n) in sizes {
                let weights = [
                    randn([n, k], 10, dtype),
                    randn([k, n], 11, dtype).t().unwrap(),
                    randn([n, k + 2], 12, dtype).narrow(1, 1, k).unwrap(),
                ];
                let biases = [
                    None,
                    Some(randn(n, 13, dtype)),
                    Some(randn((n, 2), 14, dtype).slice(s![.., 1]).unwrap()),
                ];
                for (i, x) in layouts(lead, k, dtype).iter().enumerate() {
                    let (weight, bias) = (&weights[i % 3], &biases[(i + k) % 3]);
                    let y = x.linear(weight, bias.as_ref()).unwrap();
                    // 16-bit floats are rounded once, after the addition.
                    let work = if dtype.size() == 2 { DType::F32 } else { dtype };
                    let of = |x: &T| x.to_dtype(work).unwrap();
                    let mut expected = of(x).matmul(&of(weight).t().unwrap()).unwrap();
                    if let Some(bias) = bias {
                        expected = expected.add(of(bias)).unwrap();
                    }
                    let expected = expected.to_dtype(dtype).unwrap();
                    assert_eq!(y.dims(), expected.dims());
                    let at = format!("{dtype} {lead:?} {k} {n}, layout {i}");
                    assert_eq!(bits(&y), bits(&expected), "{at}");
                }
            }
        }
    }
}

/// The bias is added in `f32`: the 16-bit product alone would overflow, or be infinite and cancel another
/// infinity.
#[test]
fn products_beyond_the_16_bit_range_are_added_before_rounding() {
    let f16 = |x: f64| T::full((1, 1), x).unwrap().to_dtype(DType::F16).unwrap();
    let of = |x: f64, bias: f64| {
        let bias = f16(bias).reshape(1).unwrap();
        f16(x)
            .linear(&f16(x), Some(&bias))
            .unwrap()
            .to_dtype(DType::F64)
            .unwrap()
            .item::<f64>()
            .unwrap()
    };
    assert_eq!(of(256.0, -32768.0), 32768.0);
    assert_eq!(of(300.0, f64::NEG_INFINITY), f64::NEG_INFINITY);
}

#[test]
fn a_product_split_over_threads_has_the_same_bits() {
    let (x, w, b) = (
        randn([4, 130, 257], 20, DType::F32),
        randn([300, 257], 21, DType::F32),
        randn(300, 22, DType::F32),
    );
    let expected = x.matmul(&w.t().unwrap()).unwrap().add(&b).unwrap();
    assert_eq!(bits(&x.linear(&w, Some(&b)).unwrap()), bits(&expected));
    // A wide C is split along its columns.
    let (x, w, b) = (x.narrow(1, 0, 5).unwrap(), randn([3000, 257], 23, DType::F32), 3000);
    let b = randn(b, 24, DType::F32);
    let expected = x.matmul(&w.t().unwrap()).unwrap().add(&b).unwrap();
    assert_eq!(bits(&x.linear(&w, Some(&b)).unwrap()), bits(&expected));
}

#[test]
fn extents_of_zero_are_accepted() {
    for (lead, k, n) in [(&[0, 3][..], 4, 5), (&[2, 3], 4, 0), (&[2, 3], 0, 5), (&[], 0, 2)] {
        let x = T::zeros(Shape::new([lead, &[k]].concat()), DType::F32).unwrap().requires_grad();
        let w = T::zeros((n, k), DType::F32).unwrap().requires_grad();
        let b = T::ones(n, DType::F32).unwrap().requires_grad();
        let y = x.linear(&w, Some(&b)).unwrap();
        assert_eq!(y.dims(), [lead, &[n]].concat());
        assert!(y.to_vec::<f32>().unwrap().iter().all(|&y| y == 1.0));
        let grads = y.sum(None, false).unwrap().backward().unwrap();
        let rows: usize = lead.iter().product();
        assert_eq!(grads.wrt(&x).unwrap().dims(), x.dims());
        assert_eq!(grads.wrt(&w).unwrap().to_vec::<f32>().unwrap(), vec![0.0; n * k]);
        assert_eq!(grads.wrt(&b).unwrap().to_vec::<f32>().unwrap(), vec![rows as f32; n]);
    }
}

#[test]
fn gradients_agree_with_finite_differences_twice() {
    for lead in [&[][..], &[3], &[2, 3]] {
        let x = randn([lead, &[4]].concat(), 40, DType::F64);
        let (w, b) = (randn([5, 4], 41, DType::F64), randn(5, 42, DType::F64));
        let f = |xs: &[T]| xs[0].linear(&xs[1], Some(&xs[2]))?.tanh();
        check_gradients(f, &[&x, &w, &b], SECOND_ORDER).unwrap();
        check_gradients(|xs: &[T]| xs[0].linear(&xs[1], None), &[&x, &w], SECOND_ORDER).unwrap();
    }
    let x = randn([3, 2, 4], 43, DType::F64).permute(&[1, 0, 2]).unwrap();
    let w = randn([4, 5], 44, DType::F64).t().unwrap();
    let b = randn((1, 1), 45, DType::F64).broadcast_to((1, 5)).unwrap().squeeze(0).unwrap();
    let f = |xs: &[T]| xs[0].linear(&xs[1], Some(&xs[2]));
    check_gradients(f, &[&x, &w, &b], SECOND_ORDER).unwrap();
    // One tensor as two operands.
    let square = randn([4, 4], 46, DType::F64);
    check_gradients(|xs: &[T]| xs[0].linear(&xs[0], None), &[&square], SECOND_ORDER).unwrap();
}

#[test]
fn only_tracked_inputs_get_gradients() {
    let (x, w, b) =
        (randn([3, 4], 50, DType::F32), randn([2, 4], 51, DType::F32), randn(2, 52, DType::F32));
    for i in 0..3 {
        let track = |j: usize, x: &T| if i == j { x.requires_grad() } else { x.detach() };
        let (x, w, b) = (track(0, &x), track(1, &w), track(2, &b));
        let y = x.linear(&w, Some(&b)).unwrap();
        let grads = y.square().unwrap().sum(None, false).unwrap().backward().unwrap();
        let found = [&x, &w, &b].map(|x| grads.get(x).is_some());
        assert_eq!(found, [i == 0, i == 1, i == 2]);
    }
    assert!(!x.linear(&w, Some(&b)).unwrap().is_tracked());
}

#[test]
fn operands_that_do_not_fit_are_errors() {
    let (x, w) = (randn([2, 3], 60, DType::F32), randn([4, 3], 61, DType::F32));
    let text = |result: Result<T>| result.unwrap_err().to_string();
    assert_eq!(
        text(x.linear(&w.t().unwrap(), None)),
        "linear: 4 inputs expected, found 3, for shapes [2, 3] and [3, 4]"
    );
    let bias = randn(3, 62, DType::F32);
    assert!(
        text(x.linear(&w, Some(&bias)))
            .ends_with("a bias of 4 expected, found 3, for shapes [4, 3] and [3]")
    );
    let wide = w.to_dtype(DType::F64).unwrap();
    assert!(matches!(x.linear(&wide, None), Err(Error::DTypeMismatch { op: "linear", .. })));
    let whole = T::zeros((2, 3), DType::I64).unwrap();
    assert!(matches!(whole.linear(&whole, None), Err(Error::UnsupportedDType { .. })));
    assert!(T::ones((), DType::F32).unwrap().linear(&w, None).is_err());
}
