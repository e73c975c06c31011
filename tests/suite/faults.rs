//! Values at the edges: infinite logits and masked classes, ranges into integers, products whose parts leave
//! the range, sizes at the end of their type, gradients at NaN. Expected values are limits, exact, or
//! computed independently.

mod edges;

use swath::io::safetensors::TrainingState;
use swath::nn::{Linear, Visit, loss};
use swath::ops::ReduceOp;
use swath::optim::{
    AdamW, AdamWOptions, CosineSchedule, Optimizer, Schedule, StepSchedule, WarmupSchedule,
};
use swath::prelude::*;

type T = Tensor<CpuBackend>;

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;
const FLOATS: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];

fn tensor<B: Backend>(values: &[f64], dtype: DType) -> Tensor<B> {
    Tensor::from_slice(values, values.len()).unwrap().to_dtype(dtype).unwrap()
}

fn values<B: Backend>(x: &Tensor<B>) -> Vec<f64> {
    x.to_dtype(DType::F64).unwrap().to_vec().unwrap()
}

/// Value of the sum of `f`, and the gradients of all `inputs`.
fn differentiated(
    f: impl Fn(&[T]) -> Result<T>,
    inputs: &[&[f64]],
    dtype: DType,
) -> (f64, Vec<Vec<f64>>) {
    let xs: Vec<T> =
        inputs.iter().map(|x| tensor::<CpuBackend>(x, dtype).requires_grad()).collect();
    let y = f(&xs).unwrap().sum(None, false).unwrap();
    let grads = y.backward().unwrap();
    (values(&y)[0], xs.iter().map(|x| values(grads.wrt(x).unwrap())).collect())
}

#[track_caller]
fn assert_near(found: &[f64], expected: &[f64], tolerance: f64) {
    let is_near = |(&x, &y): (&f64, &f64)| {
        x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= tolerance * y.abs().max(1.0)
    };
    let same = found.len() == expected.len() && found.iter().zip(expected).all(is_near);
    assert!(same, "{found:?}, not {expected:?}");
}

fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 2e-3,
        DType::BF16 => 2e-2,
        DType::F32 => 1e-6,
        _ => 1e-14,
    }
}

#[test]
fn losses_at_infinite_logits_and_masked_classes() {
    for dtype in FLOATS {
        let near = |found: &[f64], expected: &[f64]| assert_near(found, expected, tolerance(dtype));
        // A masked class: 0.5 (2 ln 0.5 - ln p0 - ln p1), and the gradient p - target.
        let target = tensor(&[0.5, 0.5, 0.0], dtype);
        let divergence =
            |xs: &[T]| loss::kl_div_with(&xs[0].log_softmax(-1)?, &target, loss::Reduction::Sum);
        let (y, g) = differentiated(divergence, &[&[1.0, 2.0, -INF]], dtype);
        let p = 1.0 / (1.0 + 1f64.exp());
        near(&[y], &[0.120_114_506_958_277_6]);
        near(&g[0], &[p - 0.5, 0.5 - p, 0.0]);
        let divergence = |xs: &[T]| loss::kl_div_with(&xs[0], &xs[1], loss::Reduction::Sum);
        let (y, g) = differentiated(divergence, &[&[-1.0, -INF, NAN], &[1.0, 0.0, 0.0]], dtype);
        near(&[y], &[1.0]);
        near(&g[0], &[-1.0, 0.0, 0.0]);
        near(&g[1], &[2.0, 0.0, 0.0]);
        // A target that the input excludes is infinitely wrong.
        let (y, g) = differentiated(divergence, &[&[-INF], &[0.5]], dtype);
        near(&[y, g[0][0]], &[INF, -0.5]);

        let bce = |xs: &[T]| {
            loss::binary_cross_entropy_with_logits_with(&xs[0], &xs[1], loss::Reduction::None)
        };
        let (logits, targets) = ([INF, -INF, INF, -INF, INF], [1.0, 0.0, 0.0, 1.0, 0.5]);
        let each = bce(&[tensor(&logits, dtype), tensor(&targets, dtype)]).unwrap();
        assert_eq!(values(&each), [0.0, 0.0, INF, INF, INF], "{dtype}");
        let (_, g) = differentiated(bce, &[&logits, &targets], dtype);
        assert_eq!(g[0], [0.0, 0.0, 1.0, -1.0, 0.5], "{dtype}");
        // At finite logits the gradient of the target is -x.
        let (_, g) = differentiated(bce, &[&[2.0, -3.0], &[1.0, 0.0]], dtype);
        assert_eq!(g[1], [-2.0, 3.0], "{dtype}");

        let huber = |delta: f64| {
            move |xs: &[T]| loss::huber_with(&xs[0], &xs[1], delta, loss::Reduction::None)
        };
        for delta in [1.0, 0.5] {
            let x = [INF, -INF, 3.0, 0.25];
            let (_, g) = differentiated(huber(delta), &[&x, &[0.0; 4]], dtype);
            assert_eq!(g[0], [delta, -delta, delta, 0.25], "{dtype}");
            let y = huber(delta)(&[tensor(&x, dtype), tensor(&[0.0; 4], dtype)]).unwrap();
            let far = delta * (3.0 - 0.5 * delta);
            assert_eq!(values(&y), [INF, INF, far, 0.03125], "{dtype}");
        }
        for delta in [INF, 1e300] {
            let (y, g) = differentiated(huber(delta), &[&[3.0, -1.0], &[0.0; 2]], dtype);
            assert_eq!((y, &g[0][..]), (5.0, &[3.0, -1.0][..]), "{dtype}");
            let (y, g) = differentiated(huber(delta), &[&[INF], &[0.0]], dtype);
            assert!(y == INF && g[0][0] > 6e4, "{dtype}: {g:?}");
        }
        type Loss = fn(&T, &T) -> Result<T>;
        for (f, slope) in [(loss::mse as Loss, INF), (loss::mae as Loss, 1.0)] {
            let (y, g) = differentiated(|xs| f(&xs[0], &xs[1]), &[&[INF], &[0.0]], dtype);
            assert_eq!((y, &g), (INF, &vec![vec![slope], vec![-slope]]), "{dtype}");
        }
        let classes = tensor![i64; 1];
        let nll = |xs: &[T]| loss::nll(&xs[0].reshape((1, 3))?.log_softmax(-1)?, &classes);
        let cross = |xs: &[T]| loss::cross_entropy(&xs[0].reshape((1, 3))?, &classes);
        type Call<'a> = &'a dyn Fn(&[T]) -> Result<T>;
        let calls: [Call<'_>; 2] = [&nll, &cross];
        for f in calls {
            let (y, g) = differentiated(f, &[&[1.0, 2.0, -INF]], dtype);
            near(&[y], &[(1.0 + (-1f64).exp()).ln()]);
            near(&g[0], &[p, -p, 0.0]);
        }
    }
}

#[test]
fn gradients_of_logsumexp_and_norms_with_an_infinity() {
    let is_same = |found: &[f64], expected: &[f64]| {
        let pairs = found.iter().zip(expected);
        found.len() == expected.len()
            && pairs.fold(true, |all, (x, y)| all && (x == y || (x.is_nan() && y.is_nan())))
    };
    for dtype in FLOATS {
        let slopes = |x: &[f64]| differentiated(|xs| xs[0].logsumexp(None, false), &[x], dtype).1;
        assert!(is_same(&slopes(&[1.0, INF])[0], &[0.0, NAN]), "{dtype}");
        assert!(is_same(&slopes(&[INF, -INF, INF, 6e4])[0], &[NAN, 0.0, NAN, 0.0]), "{dtype}");
        assert_eq!(slopes(&[-INF, -INF])[0], [0.0, 0.0], "{dtype}");
        assert!(slopes(&[NAN, INF])[0].iter().all(|g| g.is_nan()), "{dtype}");
        let norm = |p: f64, x: &[f64]| {
            differentiated(|xs| xs[0].norm(p, None, false), &[x], dtype).1.remove(0)
        };
        for p in [1.5, 2.0, 3.0] {
            assert!(is_same(&norm(p, &[3.0, -INF, 0.0]), &[0.0, NAN, 0.0]), "{dtype} {p}");
        }
        assert_eq!(norm(INF, &[3.0, -INF, 0.0]), [0.0, -1.0, 0.0], "{dtype}");
        assert_eq!(norm(1.0, &[3.0, -INF, 0.0]), [1.0, -1.0, 0.0], "{dtype}");
        assert!(is_same(&norm(2.0, &[INF, 7.0, -INF]), &[NAN, 0.0, NAN]), "{dtype}");
        assert_eq!(norm(-1.0, &[2.0, INF]), [1.0, 0.0], "{dtype}");
    }
    // The second derivative of rows without an infinity is untouched by one that has it.
    let x = tensor![f64; [0.0, 1.0], [1.0, INF]].requires_grad();
    let y = x.logsumexp(Some(&[1]), false).unwrap().sum(None, false).unwrap();
    let first = grad(&y, &[&x], true).unwrap().remove(0);
    let second = first.narrow(1, 0, 1).unwrap().sum(None, false).unwrap().backward().unwrap();
    let p = 1.0 / (1.0 + 1f64.exp());
    let slope = p * (1.0 - p);
    assert_near(&values(second.wrt(&x).unwrap())[..2], &[slope, -slope], 1e-14);
}

#[test]
fn ranges_into_integers_are_exact_or_an_error() {
    let bytes = |x: Result<T>| x.unwrap().to_vec::<u8>().unwrap();
    let longs = |x: Result<T>| x.unwrap().to_vec::<i64>().unwrap();
    let invalid = |x: Result<T>| match x {
        Err(Error::InvalidArgument { op, reason }) => {
            assert!(op == "arange" || op == "linspace", "{op}: {reason}");
        }
        other => panic!("{other:?}"),
    };
    invalid(T::linspace_as(0., 1000., 5, DType::U8));
    invalid(T::linspace_as(-1., 3., 5, DType::U8));
    invalid(T::linspace_as(0., 10., 4, DType::I64));
    invalid(T::linspace_as(0., 2., 3, DType::Bool));
    invalid(T::linspace_as(0.5, 2.5, 3, DType::I64));
    assert_eq!(bytes(T::linspace_as(0., 255., 4, DType::U8)), [0, 85, 170, 255]);
    assert_eq!(bytes(T::linspace_as(255., 251., 5, DType::U8)), [255, 254, 253, 252, 251]);
    assert_eq!(bytes(T::linspace_as(7., 1e9, 1, DType::U8)), [7]);
    assert!(longs(T::linspace_as(0.5, 1e300, 0, DType::I64)).is_empty());
    assert_eq!(longs(T::linspace_as(1., 10., 4, DType::I64)), [1, 4, 7, 10]);
    let (low, two) = (-(2f64.powi(63)), 2f64.powi(53));
    assert_eq!(longs(T::linspace_as(low, low + 4096., 3, DType::I64))[1], i64::MIN + 2048);
    let inner = longs(T::linspace_as(two, two + 6., 7, DType::I64));
    assert_eq!(inner, (0..7).map(|i| (1 << 53) + i).collect::<Vec<i64>>());

    assert_eq!(bytes(T::arange_as(255., 256., 1., DType::U8)), [255]);
    assert_eq!(bytes(T::arange_as(254., 256., 1., DType::U8)), [254, 255]);
    invalid(T::arange_as(254., 1e300, 1e299, DType::U8));
    assert_eq!(bytes(T::arange_as(0., 0.3, 0.5, DType::U8)), [0]);
    assert_eq!(bytes(T::arange_as(2., -1., -1., DType::U8)), [2, 1, 0]);
    assert_eq!(bytes(T::arange_as(2., -0.5, -1., DType::U8)), [2, 1, 0]);
    assert_eq!(bytes(T::arange_as(2., 0.0, -1., DType::U8)), [2, 1]);
    assert!(bytes(T::arange_as(2., 2., 1., DType::U8)).is_empty());
    assert!(bytes(T::arange_as(2., 3., -1., DType::U8)).is_empty());
    invalid(T::arange_as(255., 257., 1., DType::U8));
    invalid(T::arange_as(0., 1., 0.5, DType::I64));
    invalid(T::arange_as(0.5, 1., 1., DType::I64));
    invalid(T::arange_as(2., -2., -1., DType::U8));
    invalid(T::arange_as(0., 2f64.powi(64), 2f64.powi(63), DType::I64));
    assert!(T::arange_as(0., f64::MAX, 1., DType::I64).is_err());
    let four: Vec<i64> = (0..4).map(|i| (1 << 53) + i).collect();
    assert_eq!(longs(T::arange_as(two, two + 4., 1., DType::I64)), four);
    assert_eq!(
        longs(T::arange_as(low, low + 2048., 1024., DType::I64)),
        [i64::MIN, i64::MIN + 1024]
    );
    let largest = i64::MAX - 1023;
    assert_eq!(longs(T::arange_as(largest as f64, 2f64.powi(63), 1., DType::I64)).len(), 1024);
    let wide = longs(T::arange_as(low, 2f64.powi(63), 2f64.powi(62), DType::I64));
    assert_eq!(wide, [i64::MIN, -(1 << 62), 0, 1 << 62]);
}

#[test]
fn a_product_that_fits_its_type() {
    fn check<B: Backend>(dtypes: &[DType]) {
        let prod = |x: &[f64], dtype| {
            values(&tensor::<B>(x, dtype).reduce(ReduceOp::Prod, None, false).unwrap())[0]
        };
        let wave = [1e200, 1e-300, 1e200, 1e-300, 1.0];
        assert_near(&[prod(&wave, DType::F64) / 1e-200], &[1.0], 1e-14);
        let tiny = 5e-324; // 2^-1074
        assert_eq!(prod(&[tiny, 2f64.powi(1000), 2f64.powi(74), 3.0], DType::F64), 3.0);
        assert_eq!(prod(&[tiny, 0.75], DType::F64), tiny);
        assert_eq!(prod(&[f64::MAX, 2.0], DType::F64), INF);
        assert_eq!(prod(&[-f64::MAX, 2.0], DType::F64), -INF);
        assert_eq!(prod(&[tiny; 3000], DType::F64), 0.0);
        assert_eq!(prod(&[INF, tiny, tiny], DType::F64), INF);
        assert!(prod(&[INF, 0.0], DType::F64).is_nan() && prod(&[NAN, 1e300], DType::F64).is_nan());
        for &dtype in dtypes {
            let (high, low) = if dtype == DType::F16 {
                (2f64.powi(15), 2f64.powi(-15))
            } else {
                (2f64.powi(100), 2f64.powi(-100))
            };
            for count in [3, 40, 1000, 5000] {
                // All large factors first, then all small ones, and in turn.
                let turns: Vec<f64> = (0..2 * count).map(|i| [high, low][i % 2]).collect();
                let mut sorted = turns.clone();
                sorted.sort_by(f64::total_cmp);
                for x in [&turns, &sorted] {
                    let more: Vec<f64> = x.iter().copied().chain([-3.0]).collect();
                    assert_eq!(
                        (prod(x, dtype), prod(&more, dtype)),
                        (1.0, -3.0),
                        "{dtype} {count}"
                    );
                }
                // Columns.
                let columns = tensor::<B>(&sorted, dtype).unsqueeze(1).unwrap();
                let columns = columns.broadcast_to((2 * count, 5)).unwrap().contiguous().unwrap();
                let y = values(&columns.prod(Some(&[0]), false).unwrap());
                assert_eq!(y, [1.0; 5], "{dtype} {count}");
            }
        }
    }
    check::<CpuBackend>(&FLOATS);
    check::<ReferenceBackend>(&[DType::F32, DType::F64]);
    // Products within the range have the bits of plain multiplication in the fixed tree.
    let x: Vec<f64> = (0..16).map(|i| 1.0 + f64::from(i) / 7.0).collect();
    let mut lanes = x.clone();
    for half in [8, 4, 2, 1] {
        (0..half).for_each(|i| lanes[i] *= lanes[i + half]);
    }
    assert_eq!(
        tensor::<CpuBackend>(&x, DType::F64).prod(None, false).unwrap().item::<f64>().unwrap(),
        lanes[0]
    );
    // The products of the others fit, too.
    let slopes =
        |x: &[f64]| differentiated(|xs| xs[0].prod(None, false), &[x], DType::F64).1.remove(0);
    let found = slopes(&[1e200, 1e200, 1e-300, 1e-300, 1.0]);
    let expected = [0.0, 0.0, 1e100, 1e100, 1e-200];
    found
        .iter()
        .zip(expected)
        .for_each(|(g, exact)| assert!((g - exact).abs() <= 1e-13 * exact, "{found:?}"));
    assert_eq!(slopes(&[1e200, 0.0, 1e200, 1e-300]), [0.0, 1e100, 0.0, 0.0]);
}

/// A masked value counts 0 times, and 0 · NaN is NaN: the page of attention says so.
#[test]
fn a_nan_in_a_masked_key_does_not_leak_through_attention() {
    let q = T::ones((1, 2), DType::F64).unwrap();
    let (k, v) = (tensor![f64; [1.0, 1.0], [NAN, 1.0]], tensor![f64; [3.0], [4.0]]);
    let mask = tensor![bool; true, false];
    let options = Attention { mask: Some(&mask), ..Default::default() };
    assert_eq!(values(&q.scaled_dot_product_attention(&k, &v, options).unwrap()), [3.0]);
}

#[test]
fn sizes_at_the_end_of_their_type() {
    for warmup in [u64::MAX, u64::MAX - 1, 1 << 63] {
        let schedule = WarmupSchedule { warmup, then: 1.0 };
        for step in [0, 5, 1 << 62, u64::MAX - 1, u64::MAX] {
            let rate = schedule.rate(step);
            assert!((0.0..=1.0).contains(&rate), "{warmup} {step}: {rate}");
        }
    }
    assert_eq!(WarmupSchedule { warmup: 3, then: 1.0 }.rate(0), 0.25);
    for steps in [0, 1, u64::MAX] {
        for step in [0, 1, u64::MAX - 1, u64::MAX] {
            let cosine = CosineSchedule { peak: 1.0, floor: 0.0, steps }.rate(step);
            let decay = StepSchedule { initial: 1.0, factor: 0.5, every: steps }.rate(step);
            assert!((0.0..=1.0).contains(&cosine) && (0.0..=1.0).contains(&decay));
        }
    }
    for n in [1 << 62, usize::MAX, usize::MAX / 8] {
        let drawn = Rng::seed(1).permutation(n);
        assert!(matches!(drawn, Err(Error::OutOfMemory { .. })), "{drawn:?}");
    }
    let order = Rng::seed(1).permutation(100).unwrap();
    let index = T::from_vec(order.clone(), 100).unwrap();
    assert_eq!(index.dtype(), DType::I64);
    let mut sorted = order;
    sorted.sort_unstable();
    assert_eq!(sorted, (0..100).collect::<Vec<i64>>());
    assert!(Rng::seed(1).permutation(0).unwrap().is_empty());
    assert!(Rng::seed(1).uniform_vec::<f32>(usize::MAX, 0.0..1.0).is_err());
    assert!(Rng::seed(1).normal_vec::<f64>(usize::MAX / 8).is_err());
}

#[test]
fn einsum_of_hundreds_of_operands() {
    let x = tensor![f64; 1.0, 0.5, -1.0].requires_grad();
    let equation = |count: usize| format!("{}->a", vec!["a"; count].join(","));
    let y = T::einsum(&equation(300), &[&x; 300]).unwrap();
    assert_eq!(values(&y), [1.0, 0.5f64.powi(300), 1.0]);
    let grads = y.sum(None, false).unwrap().backward().unwrap();
    let exact = [300.0, 300.0 * 0.5f64.powi(299), -300.0];
    assert_near(&values(grads.wrt(&x).unwrap()), &exact, 1e-12);
    // A chain of matrices, whose labels all differ.
    let letters: Vec<char> = ('a'..='z').chain('A'..='Z').collect();
    let terms: Vec<String> = letters.windows(2).map(|pair| pair.iter().collect()).collect();
    let chain = format!("{}->aZ", terms.join(","));
    let turn = tensor![f64; [0.0, 1.0], [-1.0, 0.0]];
    let y = T::einsum(&chain, &vec![&turn; terms.len()]).unwrap();
    // 51 quarter turns are three.
    assert_eq!(values(&y), [0.0, -1.0, 1.0, 0.0]);
}

#[test]
fn bits_of_gradients_do_not_depend_on_the_operands_layout() {
    let mut rng = Rng::seed(5);
    let mut draw = |shape: &[usize]| T::randn(shape, &mut rng).unwrap();
    type Call = fn(&T, &T) -> Result<T>;
    let calls: [(Call, &[usize], &[usize]); 7] = [
        (|a, b| T::einsum("i,jk->ijk", &[a, b]), &[2], &[4, 4]),
        (|a, b| a.tensordot(b, 0), &[2], &[4, 4]),
        (|a, b| a.tensordot(b, 0), &[2, 3], &[5, 4]),
        (|a, b| T::einsum("ij,jkl->ikl", &[a, b]), &[3, 5], &[5, 4, 7]),
        (|a, b| T::einsum("ij,klj->lki", &[a, b]), &[3, 5], &[6, 7, 5]),
        (|a, b| T::einsum("bi,bjk->bjki", &[a, b]), &[2, 3], &[2, 9, 8]),
        (|a, b| T::einsum("j,ijk->ijk", &[a, b]), &[6], &[5, 6, 7]),
    ];
    for (i, (f, left, right)) in calls.iter().enumerate() {
        let (a, b) = (draw(left), draw(right));
        let weights = draw(f(&a, &b).unwrap().dims());
        let gradients = |a: &T, b: &T| {
            let (a, b) = (a.requires_grad(), b.requires_grad());
            let y = f(&a, &b).unwrap().mul(&weights).unwrap().sum(None, false).unwrap();
            let grads = y.backward().unwrap();
            [&a, &b].map(|x| {
                let bits = grads.wrt(x).unwrap().to_vec::<f32>().unwrap();
                bits.into_iter().map(f32::to_bits).collect::<Vec<u32>>()
            })
        };
        let expected = gradients(&a, &b);
        let (last, rank) = (b.rank() - 1, b.rank());
        let turned = |x: &T, p: usize, q: usize| {
            x.swap_axes(p, q).unwrap().contiguous().unwrap().swap_axes(p, q).unwrap()
        };
        let strided =
            Tensor::cat(&[&b, &b], last).unwrap().narrow(last, 0, b.dims()[last]).unwrap();
        let flipped = b.flip(0).unwrap().contiguous().unwrap().flip(0).unwrap();
        let mut layouts =
            vec![turned(&b, rank - 2, rank - 1), turned(&b, 0, rank - 1), strided, flipped];
        layouts.push(turned(&layouts[0], 0, 1));
        for (j, layout) in layouts.iter().enumerate() {
            assert!(gradients(&a, layout) == expected, "case {i}, layout {j}");
        }
        if a.rank() == 2 {
            assert!(gradients(&turned(&a, 0, 1), &layouts[0]) == expected, "case {i}");
        }
    }
}

#[test]
fn restoring_a_state_without_an_optimizer_restores_the_model() {
    let folder = crate::support::files::Scratch::new("model-alone");
    let path = folder.0.join("state.safetensors");
    let model = |seed| Linear::<CpuBackend>::new(3, 2, &mut Rng::seed(seed)).unwrap();
    let weights = |model: &Linear| model.weight.to_vec::<f32>().unwrap();
    let saved = model(1);
    TrainingState::new().with_model(&saved).with_counter("step", 3).unwrap().save(&path).unwrap();

    let (mut restored, mut optimizer) = (model(2), AdamW::new(AdamWOptions::default()).unwrap());
    let x = tensor![[1.0, 2.0, 3.0]];
    let loss = restored.forward(&x).unwrap().square().unwrap().sum(None, false).unwrap();
    optimizer.step(&mut restored, &loss.backward().unwrap()).unwrap();
    let remembered = optimizer.state().unwrap().len();
    let mut state = TrainingState::load(&path).unwrap();
    state.restore(&mut restored, &mut optimizer).unwrap();
    assert_eq!(weights(&restored), weights(&saved));
    assert_eq!(optimizer.state().unwrap().len(), remembered);
    assert_eq!(state.counter("step").unwrap(), 3);

    let mut restored = model(3);
    let mut state = TrainingState::load(&path).unwrap();
    state.restore_model(&mut restored).unwrap();
    assert_eq!(weights(&restored), weights(&saved));
    // Its tensors have been taken.
    let error = state.restore_model(&mut restored).unwrap_err();
    assert!(matches!(error, Error::File { .. }), "{error}");

    // A state with an optimizer may restore the model alone, and the optimizer later.
    TrainingState::new()
        .with_model(&saved)
        .with_optimizer(&optimizer)
        .unwrap()
        .save(&path)
        .unwrap();
    let mut state = TrainingState::load(&path).unwrap();
    state.restore_model(&mut model(4)).unwrap();
    let mut other = Linear::<CpuBackend>::new(4, 2, &mut Rng::seed(5)).unwrap();
    let before = weights(&other);
    let mut state = TrainingState::load(&path).unwrap();
    let error = state.restore_model(&mut other).unwrap_err();
    assert!(error.to_string().contains("restore_model"), "{error}");
    assert_eq!(weights(&other), before);
    let _: &dyn Visit<CpuBackend> = &other;
}
