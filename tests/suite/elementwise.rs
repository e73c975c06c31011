//! Element-wise functions against values of PyTorch 2 and mpmath (`tests/vectors/special.txt`), at special values, in every
//! dtype and on other backends.

use std::fs;

use swath::prelude::*;
use swath::{AnyBackend, Device, ReferenceBackend};

type T = Tensor<CpuBackend>;

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;
const FLOATS: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];
const INTEGERS: [DType; 8] =
    [DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U16, DType::U32, DType::U64];

fn of(values: &[f64]) -> T {
    T::from_slice(values, values.len()).unwrap()
}

fn values<B: Backend>(x: &Tensor<B>) -> Vec<f64> {
    x.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap()
}

/// Fails unless every value has the bits of the wanted one, or both are NaN.
#[track_caller]
fn assert_same(got: &T, want: &[f64]) {
    let same = |(x, y): (&f64, &f64)| x.to_bits() == y.to_bits() || (x.is_nan() && y.is_nan());
    let got = values(got);
    assert!(got.len() == want.len() && got.iter().zip(want).all(same), "{got:?} {want:?}");
}

/// Number of floats between two numbers.
fn floats_between(a: f64, b: f64) -> u64 {
    let place = |x: f64| if x < 0.0 { -(x.abs().to_bits() as i64) } else { x.to_bits() as i64 };
    if a.is_nan() && b.is_nan() { 0 } else { place(a).abs_diff(place(b)) }
}

fn singles_between(a: f32, b: f32) -> u32 {
    let place = |x: f32| if x < 0.0 { -(x.abs().to_bits() as i32) } else { x.to_bits() as i32 };
    if a.is_nan() && b.is_nan() { 0 } else { place(a).abs_diff(place(b)) }
}

#[test]
fn remainder_matches_torch() {
    let a = of(&[
        7., -7., 0., -0., 0., -0., -1., 1., -1., 1., 4., -4., 4., -4., INF, 1., 0., -0., 5.5,
        -1e-20,
    ]);
    let b = of(&[
        -2., 2., -1., -1., 1., 1., INF, INF, -INF, -INF, 2., 2., -2., -2., 2., 0., INF, -INF, 2.,
        1.,
    ]);
    let want = [
        -1., 1., 0., -0., 0., -0., INF, 1., -1., -INF, 0., -0., 0., -0., NAN, NAN, 0., -0., 1.5, 1.,
    ];
    assert_same(&a.remainder(&b).unwrap(), &want);
    let flipped = a.flip(0).unwrap().remainder(b.flip(0).unwrap()).unwrap().flip(0).unwrap();
    assert_same(&flipped, &want);
    for dtype in FLOATS {
        let (x, y) = (a.to_dtype(dtype).unwrap(), b.to_dtype(dtype).unwrap());
        // -1e-20 is 0 in the narrowest.
        let known = if dtype == DType::F16 { 19 } else { 20 };
        let rest = x.remainder(&y).unwrap().narrow(0, 0, known).unwrap();
        assert_same(&rest, &want[..known]);
    }
    assert_same(&of(&[-1., 1.]).floor_divide(INF).unwrap(), &[-1., 0.]);
    assert_same(&of(&[]).remainder(2.0).unwrap(), &[]);
}

#[test]
fn remainder_and_floor_divide_are_partners() {
    for dtype in INTEGERS {
        let a = tensor![i64; 7, 100, 127, 0, 5].to_dtype(dtype).unwrap();
        let b = tensor![i64; 2, 7, 100, 3, 5].to_dtype(dtype).unwrap();
        let (a, b) = match dtype.name().starts_with('i') {
            true => (T::cat(&[&a, &-&a], 0).unwrap(), T::cat(&[&-&b, &b], 0).unwrap()),
            false => (a, b),
        };
        let rest = a.remainder(&b).unwrap();
        let sum = &b * &a.floor_divide(&b).unwrap() + &rest;
        assert_eq!(values(&sum), values(&a), "{dtype}");
        let agrees = |(r, b): (&f64, &f64)| *r == 0.0 || (*r < 0.0) == (*b < 0.0);
        assert!(values(&rest).iter().zip(&values(&b)).all(agrees), "{dtype}");
        let error = a.remainder(0).unwrap_err();
        assert!(
            matches!(error, Error::IntegerDivision { op: "remainder", .. }),
            "{dtype}: {error}"
        );
    }
    assert_eq!(tensor![i64; -7, 7].remainder(3).unwrap().to_vec::<i64>().unwrap(), [2, 1]);
    assert!(tensor![i64; i64::MIN].remainder(-1).is_err());
    let (x, y) = (of(&[-7.5, 3.0]).requires_grad(), of(&[2.0, -4.0]).requires_grad());
    let grads = x.remainder(&y).unwrap().sum_all().unwrap().backward().unwrap();
    assert_eq!(values(grads.wrt(&x).unwrap()), [1., 1.]);
    assert_eq!(values(grads.wrt(&y).unwrap()), [4., 1.]);
}

/// Powers to numbers that are products and roots, with the special cases of C's `pow`.
#[test]
fn powers_to_small_numbers_are_within_one_float() {
    let mut x = vec![0.0, -0.0, INF, -INF, NAN, 1.0, -1.0, 2.0, -2.0, 0.5, 1e-40, -1e-40, 3.4e38];
    let mut state = 1u64;
    for _ in 0..20_000 {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        x.push(f64::from(f32::from_bits((state >> 32) as u32)));
    }
    let wide = of(&x);
    let narrow = wide.to_dtype(DType::F32).unwrap();
    for p in [-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0] {
        let (y, z) = (narrow.powf(p).unwrap(), wide.pow(p).unwrap());
        let (y, z) = (y.to_vec::<f32>().unwrap(), values(&z));
        let wide_powers = x.iter().zip(z);
        for ((&x, y), (&wide, z)) in values(&narrow).iter().zip(y).zip(wide_powers) {
            let want = x.powf(p);
            let class = |a: f64| (a.is_nan(), a == 0.0 && a.is_sign_negative(), a.is_infinite());
            assert!(singles_between(y, want as f32) <= 1, "{x}^{p}: {y}, not {want}");
            assert_eq!(class(y.into()), class((want as f32).into()), "{x}^{p}: {y}");
            // The system's `pow` is within a float, too.
            assert!(floats_between(z, wide.powf(p)) <= 2, "{wide}^{p}: {z}");
        }
        let half = wide.to_dtype(DType::F16).unwrap();
        let want = half.to_dtype(DType::F32).unwrap().powf(p).unwrap();
        assert_same(&half.powf(p).unwrap(), &values(&want.to_dtype(DType::F16).unwrap()));
        let strided = narrow.flip(0).unwrap().powf(p).unwrap().flip(0).unwrap();
        assert_same(&strided, &values(&narrow.powf(p).unwrap()));
    }
    assert_eq!(values(&of(&[3.0]).pow(2.0).unwrap()), [9.0]);
    assert!(tensor![i64; 2].pow(2).is_err());
}

fn special(name: &str, x: &T) -> T {
    match name {
        "erfinv" => x.erfinv(),
        "lgamma" => x.lgamma(),
        "digamma" => x.digamma(),
        "i0" => x.i0(),
        "i0e" => x.i0e(),
        "i1" => x.i1(),
        "i1e" => x.i1e(),
        "sinc" => x.sinc(),
        name => x.polygamma(name.trim_start_matches("polygamma").parse().unwrap()),
    }
    .unwrap()
}

/// `f64` within the bounds that the methods state, `f32` within one float.
#[test]
fn special_functions_match_mpmath() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/special.txt");
    let text = fs::read_to_string(path).unwrap();
    let number = |bits: &str| f64::from_bits(u64::from_str_radix(bits, 16).unwrap());
    let mut worst = std::collections::BTreeMap::new();
    for line in text.lines() {
        let [name, x, want] = line.split(' ').collect::<Vec<_>>().try_into().unwrap();
        let (x, want) = (number(x), number(want));
        let y = special(name, &of(&[x])).item::<f64>().unwrap();
        let parts = match name {
            "lgamma" if x < -0.25 => special(name, &of(&[-x])).item::<f64>().unwrap().max(1.0),
            "digamma" if x < 0.0 => want.abs() + 20.0,
            "polygamma2" if x < 0.0 => 20.0 * (1.0 + want.abs()),
            _ => 0.0,
        };
        let bound = if name == "i1e" { 5 } else { 4 };
        let distance = floats_between(y, want);
        let near = (y - want).abs() <= 4.0 * f64::EPSILON * parts;
        assert!(distance <= bound || near, "{name}({x:e}) = {y:e}, not {want:e}");
        if parts == 0.0 {
            let worst = worst.entry(name).or_insert(0);
            *worst = distance.max(*worst);
        }
        if f64::from(x as f32) == x {
            let y = special(name, &T::full(1, x as f32).unwrap()).item::<f32>().unwrap();
            let distance = singles_between(y, want as f32);
            assert!(distance <= 1, "{name}({x:e}) = {y:e}, not {:e}", want as f32);
        }
    }
    println!("{worst:?}");
    assert_eq!(worst.len(), 11);
}

#[test]
fn special_functions_at_special_values_match_torch() {
    let x = of(&[0., -0., -1., -INF, INF, NAN]);
    for (name, want) in [
        ("erfinv", [0., -0., -INF, NAN, NAN, NAN]),
        ("lgamma", [INF, INF, INF, INF, INF, NAN]),
        ("digamma", [-INF, INF, NAN, NAN, INF, NAN]),
        ("polygamma1", [INF, INF, INF, NAN, 0., NAN]),
        ("polygamma2", [-INF, -INF, -INF, NAN, -0., NAN]),
        ("sinc", [1., 1., 0., NAN, NAN, NAN]),
    ] {
        let y = special(name, &x);
        // The signs of sinc's zeros vary.
        let y = if name == "sinc" { y.abs().unwrap() } else { y };
        assert_same(&y, &want);
    }
    for (name, want) in [("i0", INF), ("i0e", 0.)] {
        assert_same(&special(name, &of(&[0., -INF, INF, NAN])), &[1., want, want, NAN]);
    }
    for (name, want) in [("i1", INF), ("i1e", 0.)] {
        assert_same(&special(name, &of(&[0., -0., -INF, INF])), &[0., -0., -want, want]);
    }
    // Orders above 20, and results near the ends of the range.
    let y = values(&of(&[0.5, 3.0, 1e3]).polygamma(50).unwrap());
    let want = [-6.848_644_940_502_395e79, -1.4121832832993648e40, -6.236_181_645_943_135e-88];
    assert!(y.iter().zip(want).all(|(y, want)| (y / want - 1.0).abs() < 1e-12), "{y:?}");
    assert!(values(&of(&[1.0]).polygamma(200).unwrap())[0].is_infinite());
    assert!(tensor![i64; 1].lgamma().is_err() && tensor![bool; true].i0().is_err());
    assert_eq!(T::zeros((0, 3), DType::F32).unwrap().digamma().unwrap().dims(), [0, 3]);
    let scalar = T::full((), 2.0f32).unwrap().expand((2, 2)).unwrap().lgamma().unwrap();
    assert_eq!(values(&scalar), [0.0; 4]);
}

/// 16-bit floats are rounded once.
#[test]
fn special_functions_of_half_floats_are_rounded_once() {
    for dtype in [DType::F16, DType::BF16] {
        let x = T::linspace(-3.0, 5.0, 999).unwrap().to_dtype(dtype).unwrap();
        let wide = x.to_dtype(DType::F64).unwrap();
        for name in ["lgamma", "digamma", "polygamma1", "i0", "i1e", "sinc", "erfinv"] {
            let want = special(name, &wide).to_dtype(dtype).unwrap();
            let y = special(name, &x);
            assert_eq!(y.dtype(), dtype);
            assert_same(&y, &values(&want));
        }
    }
}

#[test]
fn numbers_beside_nan_match_torch() {
    let (x, y) = (of(&[1., -1., NAN, 2., NAN]), of(&[1., 2., 3., NAN, NAN]));
    assert_same(&x.fmax(&y).unwrap(), &[1., 2., 3., 2., NAN]);
    assert_same(&x.fmin(&y).unwrap(), &[1., -1., 3., 2., NAN]);
    let (a, b) = (of(&[1., -1.]).requires_grad(), of(&[1., 2.]).requires_grad());
    let grads = a.fmax(&b).unwrap().sum_all().unwrap().backward().unwrap();
    assert_eq!(values(grads.wrt(&a).unwrap()), [0.5, 0.]);
    assert_eq!(values(grads.wrt(&b).unwrap()), [0.5, 1.]);
    assert_eq!(tensor![i64; 3, -4].fmin(0).unwrap().to_vec::<i64>().unwrap(), [0, -4]);
    let error = x.fmax(of(&[1., 2.])).unwrap_err().to_string();
    assert!(error.starts_with("fmax"), "{error}");
    let x = of(&[0., -0., NAN, 1., -1., INF]);
    assert_same(&x.heaviside(3.0).unwrap(), &[3., 3., 0., 1., 0., 1.]);
    assert!(!x.requires_grad().heaviside(0.5).unwrap().is_tracked());
    assert_eq!(tensor![i64; -2, 0, 5].heaviside(7).unwrap().to_vec::<i64>().unwrap(), [0, 7, 1]);
}

#[test]
fn signs_are_those_of_the_bits() {
    let x = of(&[1., -1., 0., -0., INF, -INF, f64::NAN.copysign(-1.0), f64::NAN.copysign(1.0)]);
    let want = [false, true, false, true, false, true, true, false];
    for dtype in FLOATS {
        let signs = x.to_dtype(dtype).unwrap().signbit().unwrap();
        assert_eq!(signs.to_vec::<bool>().unwrap()[..6], want[..6], "{dtype}");
    }
    assert_eq!(x.signbit().unwrap().to_vec::<bool>().unwrap(), want);
    for dtype in INTEGERS {
        let x = tensor![i64; 1, 0, -1].to_dtype(dtype).unwrap();
        let is_signed = dtype.name().starts_with('i');
        assert_eq!(x.signbit().unwrap().to_vec::<bool>().unwrap(), [false, false, is_signed]);
    }
    let y = of(&[3., -4., 0., NAN]).copysign(of(&[-0., 1., -2., -1.])).unwrap();
    assert_same(&y, &[-3., 4., -0., NAN]);
    let (a, b) = (of(&[0., -2., 1.]).requires_grad(), of(&[1., -1., -1.]).requires_grad());
    let grads = a.copysign(&b).unwrap().sum_all().unwrap().backward().unwrap();
    assert_eq!(values(grads.wrt(&a).unwrap()), [0., 1., -1.]);
    assert_eq!(values(grads.wrt(&b).unwrap()), [0.; 3]);
}

#[test]
fn ldexp_rounds_once_and_frexp_undoes_it() {
    let x = of(&[1.5, -3.0, 1e-310, 1e300, 0.0, -0.0, INF, NAN, 1.9999999999999998]);
    let (m, e) = x.frexp().unwrap();
    assert_eq!(e.dtype(), DType::I32);
    assert_same(&m.ldexp(&e).unwrap(), &values(&x));
    assert_eq!(e.to_vec::<i32>().unwrap(), [1, 2, -1029, 997, 0, 0, 0, 0, 1]);
    let half = values(&m.abs().unwrap())
        .iter()
        .all(|m| (0.5..1.0).contains(m) || *m == 0.0 || !m.is_finite());
    assert!(half, "{m}");
    // Where 2^e is out of range, and where the result is subnormal: the tie 1.5 · 2^-1074 and what is just below it.
    let x = of(&[1e-300, 5e-324, 1.5, 1.4999999999999998, 1.5, 3.0, 1.0, -1.0]);
    let e = tensor![i64; 2000, 2097, -1074, -1074, -1075, -1076, -3000, 3000];
    let want = [
        1e-300 * 2f64.powi(1000) * 2f64.powi(1000),
        2f64.powi(1023),
        1e-323,
        5e-324,
        5e-324,
        5e-324,
        0.,
        -INF,
    ];
    assert_same(&x.ldexp(&e).unwrap(), &want);
    let e = tensor![i64; 250, -149, -150, 277].to_dtype(DType::I32).unwrap();
    let y = tensor![1e-40, 1.5, 1.5, 1e-45].ldexp(&e).unwrap().to_vec::<f32>().unwrap();
    assert_eq!(
        y,
        [(1e-40f32 as f64 * 2f64.powi(250)) as f32, 3e-45, 1e-45, 2f32.powi(127) * 2.0f32.powi(1)]
    );
    let narrow = of(&[1.5, 1.0]).to_dtype(DType::F16).unwrap();
    assert_eq!(values(&narrow.ldexp(tensor![i64; -24, 70000]).unwrap()), [2f64.powi(-23), INF]);
    assert_eq!(values(&of(&[2.0]).ldexp(0.5).unwrap()), [2.0 * 2f64.sqrt()]);
    let error = of(&[1.0]).ldexp(&tensor![1.0]).unwrap_err();
    assert!(matches!(error, Error::DTypeMismatch { op: "ldexp", .. }), "{error}");
    assert!(tensor![i64; 1].ldexp(2).is_err() && tensor![i64; 1].frexp().is_err());
    let x = of(&[10.0, -0.3]).requires_grad();
    let grads = x.frexp().unwrap().0.sum_all().unwrap().backward().unwrap();
    assert_eq!(values(grads.wrt(&x).unwrap()), [1.0 / 16.0, 2.0]);
}

#[test]
fn other_functions_match_torch() {
    let x = of(&[0., 1., -0.1, 1.1, 0.5, 0.3, 0.5 + f64::EPSILON]);
    let y = x.logit(None).unwrap();
    assert_same(&y.narrow(0, 0, 5).unwrap(), &[-INF, INF, NAN, NAN, 0.]);
    let near = values(&y.narrow(0, 5, 2).unwrap());
    assert!((near[0] + 0.8472978603872036).abs() < 2e-16 && near[1] == 4.0 * f64::EPSILON);
    let y = values(&x.logit(1e-3).unwrap());
    assert!(y[0] == y[2] && y[1] == y[3] && (y[0] + 6.906754778648554).abs() < 1e-15, "{y:?}");
    let inside = of(&[0.25, -0.5, 1.5]).requires_grad();
    let grads = inside.logit(None).unwrap().sum_all().unwrap().backward().unwrap();
    assert_same(grads.wrt(&inside).unwrap(), &[16.0 / 3.0, NAN, NAN]);
    assert!(x.logit(0.75).is_err());
    let x = of(&[NAN, INF, 0.5, -0.5, -0., 0.75, -2.]);
    assert_same(&x.hardshrink(0.5).unwrap(), &[NAN, INF, 0., 0., 0., 0.75, -2.]);
    assert_same(&x.softshrink(0.5).unwrap(), &[NAN, INF, 0., 0., 0., 0.25, -1.5]);
    assert!(matches!(x.softshrink(-1.0), Err(Error::InvalidArgument { op: "softshrink", .. })));
    let y = of(&[-9., -1., 0., 9., NAN]).hardsigmoid_with(0.25, 0.5).unwrap();
    assert_same(&y, &[0., 0.25, 0.5, 1., NAN]);
    let (a, b) = (of(&[1000., -INF, INF, 3., -1.]), of(&[1000., 2., INF, 3., 4.]));
    let y = values(&a.logaddexp2(&b).unwrap());
    assert_eq!(y[..4], [1001., 2., INF, 4.]);
    assert!((y[4] - 4.044394119358453).abs() < 1e-15);
    let y = tensor![i64; 2, 3].float_power(&tensor![0.5, -1.0]).unwrap();
    assert_eq!((y.dtype(), values(&y)), (DType::F64, vec![2f64.sqrt(), 1.0 / 3.0]));
    assert_eq!(values(&tensor![-2.0].float_power(3).unwrap()), [-8.0]);
    for x in [tensor![i64; 1], tensor![i64; 0]] {
        assert!(x.hardshrink(1.0).is_err() && x.logaddexp2(1).is_err() && x.copysign(1).is_err());
    }
}

/// Every function of integers against 128-bit arithmetic, in every dtype.
#[test]
fn functions_of_integers_are_those_of_wide_integers() {
    type Op = (&'static str, fn(&T, &T) -> Result<T>, fn(i128, i128, DType) -> i128);
    let divisor = |mut a: i128, mut b: i128| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a.abs()
    };
    let ops: [Op; 7] = [
        ("and", |a, b| a.bitwise_and(b), |a, b, _| a & b),
        ("or", |a, b| a.bitwise_or(b), |a, b, _| a | b),
        ("xor", |a, b| a.bitwise_xor(b), |a, b, _| a ^ b),
        ("gcd", |a, b| a.gcd(b), |_, _, _| 0),
        ("lcm", |a, b| a.lcm(b), |_, _, _| 0),
        (
            "shl",
            |a, b| a.bitwise_left_shift(b),
            |a, b, dtype| {
                let width = 8 * dtype.size() as i128;
                if (0..width).contains(&b) { a << b } else { 0 }
            },
        ),
        (
            "shr",
            |a, b| a.bitwise_right_shift(b),
            |a, b, dtype| {
                let width = 8 * dtype.size() as i128;
                a >> if (0..width).contains(&b) { b } else { 127 }
            },
        ),
    ];
    for dtype in INTEGERS {
        let bits = 8 * dtype.size() as u32;
        let is_signed = dtype.name().starts_with('i');
        let wrap = |x: i128| match is_signed {
            true => x << (128 - bits) >> (128 - bits),
            false => x & ((1 << bits) - 1),
        };
        let numbers = [0, 1, 2, 3, 5, 7, 8, 12, 15, 16, 31, 63, 64, 90, -1, -2, -6, -7, -100];
        let ends = [1i128 << (bits - 1), (1 << (bits - 1)) - 1, -(1 << (bits - 2)), 1 << 20];
        let numbers: Vec<i128> = numbers.into_iter().chain(ends).map(wrap).collect();
        let of = |x: &[i128]| {
            let words: Vec<i64> = x.iter().map(|&x| x as i64).collect();
            T::from_vec(words, x.len()).unwrap().to_dtype(dtype).unwrap()
        };
        let x = of(&numbers);
        let (a, b) = (x.unsqueeze(1).unwrap(), x.unsqueeze(0).unwrap());
        for (name, run, want) in ops {
            let y = run(&a, &b).unwrap();
            assert_eq!(y.dtype(), dtype);
            let dense = run(&a.expand(*y.shape()).unwrap().contiguous().unwrap(), &b).unwrap();
            let got = y.to_dtype(DType::I64).unwrap().to_vec::<i64>().unwrap();
            assert_eq!(got, dense.to_dtype(DType::I64).unwrap().to_vec::<i64>().unwrap());
            let pairs = numbers.iter().flat_map(|&a| numbers.iter().map(move |&b| (a, b)));
            for ((a, b), got) in pairs.zip(got) {
                let want = match name {
                    "gcd" => divisor(a, b),
                    // Products that wrap are not compared.
                    "lcm" if divisor(a, b) == 0 => 0,
                    "lcm" => match (a / divisor(a, b)).checked_mul(b).map(i128::abs) {
                        Some(multiple) if multiple < 1 << (bits - 1) => multiple,
                        _ => continue,
                    },
                    _ => want(a, b, dtype),
                };
                assert_eq!(got, wrap(want) as i64, "{name} of {a} and {b}, {dtype}");
            }
        }
        let inverted = x.bitwise_not().unwrap().to_dtype(DType::I64).unwrap();
        let want: Vec<i64> = numbers.iter().map(|&x| wrap(!x) as i64).collect();
        assert_eq!(inverted.to_vec::<i64>().unwrap(), want, "{dtype}");
        let low = x.bitwise_and(15).unwrap().to_dtype(DType::I64).unwrap();
        let want: Vec<i64> = numbers.iter().map(|&x| (x & 15) as i64).collect();
        assert_eq!(low.to_vec::<i64>().unwrap(), want, "{dtype}");
    }
}

#[test]
fn bits_of_booleans_operators_and_errors() {
    let (a, b) = (tensor![bool; true, true, false], tensor![bool; true, false, false]);
    assert_eq!((&a & &b).to_vec::<bool>().unwrap(), [true, false, false]);
    assert_eq!((&a | &b).to_vec::<bool>().unwrap(), [true, true, false]);
    assert_eq!((&a ^ &b).to_vec::<bool>().unwrap(), [false, true, false]);
    assert_eq!((!&a).to_vec::<bool>().unwrap(), [false, false, true]);
    let none = 0;
    assert_eq!((a.clone() & none).to_vec::<bool>().unwrap(), [false; 3]);
    let x = tensor![i64; 6, 3];
    assert_eq!((!(x.clone() | 9)).to_vec::<i64>().unwrap(), [!15, !11]);
    for result in [
        a.gcd(&b),
        a.bitwise_left_shift(1),
        tensor![1.0].bitwise_and(1),
        tensor![1.0].bitwise_not(),
    ] {
        assert!(matches!(result, Err(Error::UnsupportedDType { .. })), "{result:?}");
    }
    let bytes = tensor![u8; 1, 2];
    assert!(matches!(bytes.bitwise_or(300), Err(Error::InvalidArgument { op: "bitwise_or", .. })));
    assert!(matches!(bytes.bitwise_or(&x), Err(Error::DTypeMismatch { op: "bitwise_or", .. })));
    let error = x.bitwise_xor(&tensor![i64; 1, 2, 3]).unwrap_err();
    assert!(matches!(error, Error::ShapeMismatch { op: "bitwise_xor", .. }), "{error}");
    assert_eq!(T::zeros((0, 2), DType::I32).unwrap().gcd(4).unwrap().dims(), [0, 2]);
}

#[test]
fn view_as_shares_memory_in_any_layout() {
    let x = tensor![[1.0, -2.0, 3.0], [4.0, 5.0, -0.0]];
    let turned = x.t().unwrap();
    let bits = turned.view_as(DType::U32).unwrap();
    let want: Vec<u32> = [1.0f32, 4.0, -2.0, 5.0, 3.0, -0.0].map(f32::to_bits).to_vec();
    assert_eq!((bits.dims(), bits.to_vec::<u32>().unwrap()), (&[3, 2][..], want));
    assert_eq!(values(&bits.view_as(DType::F32).unwrap()), values(&turned));
    let place = |x: &T| x.as_slice::<f32>().unwrap().as_ptr() as usize;
    let back = x.view_as(DType::I32).unwrap().view_as(DType::F32).unwrap();
    assert_eq!(place(&back), place(&x));
    // Memory of one dtype is reused for another.
    let sum = T::from_vec(vec![1.0f32, 2.0], 2).unwrap().view_as(DType::I32).unwrap() + 1;
    assert_eq!(sum.dtype(), DType::I32);
    assert_eq!(sum.to_vec::<i32>().unwrap(), [1.0f32, 2.0].map(|x| x.to_bits() as i32 + 1));
    let sum = sum.view_as(DType::F32).unwrap() * 2.0;
    assert!(sum.dtype() == DType::F32 && sum.into_vec::<f32>().unwrap()[1] > 4.0);
    assert_eq!(
        tensor![u8; 0, 1].view_as(DType::Bool).unwrap().to_vec::<bool>().unwrap(),
        [false, true]
    );
    assert!(matches!(tensor![u8; 2].view_as(DType::Bool), Err(Error::InvalidArgument { .. })));
    let error = x.view_as(DType::F64).unwrap_err().to_string();
    assert!(error.contains("32 bits") && error.contains("[2, 3]"), "{error}");
    assert_eq!(T::zeros((3, 0), DType::F16).unwrap().view_as(DType::BF16).unwrap().dims(), [3, 0]);
}

/// Functions that are computed on the CPU stay on the device of their operands.
#[test]
fn other_backends_give_the_same() {
    type R = Tensor<ReferenceBackend>;
    type A = Tensor<AnyBackend>;
    let x = [0.25f32, -1.5, 3.0];
    let here = T::from_slice(&x, 3).unwrap();
    let there = R::from_slice(&x, 3).unwrap();
    let any = AnyBackend::with_device(Device::Reference, || A::from_slice(&x, 3)).unwrap();
    macro_rules! same {
        ($($method:ident($($argument:expr),*);)*) => {$(
            let want = values(&here.$method($($argument),*).unwrap());
            let got = there.$method($($argument),*).unwrap();
            let moved = any.$method($($argument),*).unwrap();
            assert_eq!((values(&got), values(&moved)), (want.clone(), want), stringify!($method));
            assert_eq!(moved.device(), Device::Reference);
        )*};
    }
    same! { lgamma(); i0(); sinc(); signbit(); ldexp(3); view_as(DType::I32); remainder(2.0); powf(2.0); fmax(0.0); }
    let (m, e) = any.frexp().unwrap();
    assert_eq!((m.device(), e.device()), (Device::Reference, Device::Reference));
    let bits = any.view_as(DType::I32).unwrap();
    assert_eq!(values(&(&bits ^ &bits)), [0.0; 3]);
    assert_eq!(values(&bits.gcd(&bits).unwrap()), values(&bits.abs().unwrap()));
}
