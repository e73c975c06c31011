//! Functions of three arguments against references in twice the precision, with every combination of slices
//! and scalars, in place or not, at every length.

use crate::reference::DoubleDouble;
use swath_kernels::testing::{
    ALIGNED_FROM, even_sample_f32, even_sample_f64, special_values_f32, special_values_f64,
    with_isa,
};
use swath_kernels::{Arg, Function, Isa, Stored, math};

fn on_every_isa(f: impl Fn()) {
    for isa in Isa::ALL {
        if with_isa(isa, &f).is_none() {
            println!("{isa} skipped, this machine lacks it");
        }
    }
}

fn run<F: Function<3>, E: Stored + Default>(triples: &[[E; 3]]) -> Vec<E> {
    let column = |i: usize| triples.iter().map(|x| x[i]).collect::<Vec<E>>();
    let mut y = vec![E::default(); triples.len()];
    let [a, b, c] = [0, 1, 2].map(column);
    F::KERNEL.run([&a, &b, &c].map(|x| Arg::Slice(x)), &mut y);
    y
}

/// All triples of the special values, and bit patterns, half of which have similar exponents.
fn triples<E: Copy>(special: &[E], sample: Vec<E>, near: impl Fn(E, E) -> E) -> Vec<[E; 3]> {
    let special = special
        .iter()
        .flat_map(|&a| special.iter().flat_map(move |&b| special.iter().map(move |&c| [a, b, c])));
    let apart = sample.windows(3).map(|x| [x[0], x[1], x[2]]);
    let alike = sample.windows(2).map(|x| [x[0], near(x[0], x[1]), near(x[1], x[0])]);
    special.chain(apart).chain(alike).collect()
}

fn triples_f32() -> Vec<[f32; 3]> {
    let sample = even_sample_f32(1 << 16).collect();
    triples(&special_values_f32(), sample, |x, y| x * (1.0 + (y.to_bits() & 0xffff) as f32 * 1e-6))
}

fn triples_f64() -> Vec<[f64; 3]> {
    let sample = even_sample_f64(1 << 16).collect();
    triples(&special_values_f64(), sample, |x, y| x * (1.0 + (y.to_bits() & 0xffff) as f64 * 1e-6))
}

fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

#[test]
fn mul_add_rounds_once() {
    // (1 + 2^-11)² - 1 - 2^-10: the last bit is lost if the product is rounded.
    let x = 1.0 + 2f32.powi(-11);
    assert_eq!(run::<math::MulAdd, f32>(&[[x, x, -1.0 - 2f32.powi(-10)]]), [2f32.powi(-22)]);
    on_every_isa(|| {
        let inputs = triples_f32();
        for ([a, b, c], y) in inputs.iter().zip(run::<math::MulAdd, f32>(&inputs)) {
            let expected = fused(*a, *b, *c);
            assert!(same(y.into(), expected.into()), "{a:e} {b:e} {c:e}: {y:e}, not {expected:e}");
        }
        let inputs = triples_f64();
        for ([a, b, c], y) in inputs.iter().zip(run::<math::MulAdd, f64>(&inputs)) {
            assert!(same(y, a.mul_add(*b, *c)), "{a:e} {b:e} {c:e}: {y:e}");
        }
    });
}

/// In f64 the product of two `f32` is exact; the sum is rounded to odd, then to `f32`.
fn fused(a: f32, b: f32, c: f32) -> f32 {
    let (product, c) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = product + c;
    let part = sum - product;
    let error = (product - (sum - part)) + (c - part);
    if error == 0.0 || !sum.is_finite() || sum.to_bits() & 1 == 1 {
        return sum as f32;
    }
    let away = (error > 0.0) == (sum > 0.0);
    f64::from_bits(if away { sum.to_bits() + 1 } else { sum.to_bits() - 1 }) as f32
}

#[test]
fn clamp_keeps_values_in_range_and_nan() {
    on_every_isa(|| {
        let inputs: Vec<[f64; 3]> = triples_f64()
            .into_iter()
            .filter(|[_, low, high]| low <= high || low.is_nan() || high.is_nan())
            .collect();
        for ([x, low, high], y) in inputs.iter().zip(run::<math::Clamp, f64>(&inputs)) {
            let expected = match () {
                () if x < low => *low,
                () if x > high => *high,
                () => *x,
            };
            assert!(same(y, expected), "{x:e} between {low:e} and {high:e}: {y:e}");
        }
        let narrow: Vec<[f32; 3]> = inputs.iter().map(|x| x.map(|x| x as f32)).collect();
        let wide: Vec<[f64; 3]> = narrow.iter().map(|x| x.map(f64::from)).collect();
        let wide = run::<math::Clamp, f64>(&wide);
        let agree = run::<math::Clamp, f32>(&narrow).into_iter().zip(wide);
        assert!(agree.into_iter().all(|(y, wide)| same(y.into(), wide)));
    });
}

#[test]
fn lerp_is_exact_at_the_ends_and_accurate_between() {
    on_every_isa(|| {
        let values: Vec<f32> = even_sample_f32(1 << 14).filter(|x| x.abs() < 1e38).collect();
        let weights = [0.0, 1.0, 0.5, 0.25, 0.3, 0.999, 1e-7, -2.0, 3.5];
        let pairs = values.windows(2).chain(values.chunks(2).filter(|x| x.len() == 2));
        let inputs: Vec<[f32; 3]> = pairs.flat_map(|x| weights.map(|w| [x[0], x[1], w])).collect();
        for ([a, b, w], y) in inputs.iter().zip(run::<math::Lerp, f32>(&inputs)) {
            let [a, b, w] = [*a, *b, *w].map(f64::from);
            let error = (f64::from(y) - (a * (1.0 - w) + b * w)).abs();
            let allowed = match w {
                0.0 => 0.0,
                1.0 => 0.0,
                w => (2.0 + 3.0 * w.abs()) * 2f64.powi(-24) * (a.abs() + b.abs()) + 1e-45,
            };
            assert!(error <= allowed, "from {a:e} to {b:e} by {w}: {y:e}");
            let between = 2.0 * 2f64.powi(-24) * (a.abs() + b.abs()) + 1e-45;
            assert!(!(0.0..=1.0).contains(&w) || error <= between, "{a:e} {b:e} {w}: {y:e}");
        }
    });
    let y = run::<math::Lerp, f64>(&[[1e16, 1.0, 1.0], [1e16, 1.0, 0.0], [3.0, 5.0, 0.25]]);
    assert_eq!(y, [1.0, 1e16, 3.5]);
    assert!(run::<math::Lerp, f64>(&[[1.0, 2.0, f64::NAN]])[0].is_nan());
}

#[test]
fn lerp_of_f64_is_as_accurate() {
    on_every_isa(|| {
        // In twice the precision no intermediate value may overflow or underflow.
        let middle = |x: &f64| (1e-200..1e200).contains(&x.abs());
        let values: Vec<f64> = even_sample_f64(1 << 16).filter(middle).collect();
        let near = |x: f64, y: f64| x * (1.0 + (y.to_bits() & 0xffff) as f64 * 1e-5);
        let weights = [0.0, 1.0, 0.5, 0.25, 0.3, 0.999, 1e-7, -2.0, 3.5];
        let pairs = values.windows(2).flat_map(|x| [[x[0], x[1]], [x[0], near(x[0], x[1])]]);
        let inputs: Vec<[f64; 3]> = pairs.flat_map(|[a, b]| weights.map(|w| [a, b, w])).collect();
        for ([a, b, w], y) in inputs.iter().zip(run::<math::Lerp, f64>(&inputs)) {
            let [wide_a, wide_b, wide_w] = [*a, *b, *w].map(DoubleDouble::from);
            let exact = wide_a * (DoubleDouble::from(1.0) - wide_w) + wide_b * wide_w;
            let error = (DoubleDouble::from(y) - exact).high.abs();
            let units = match w {
                0.0 | 1.0 => 0.0,
                w if (0.0..=1.0).contains(w) => 2.0,
                w => 2.0 + 3.0 * w.abs(),
            };
            let allowed = units * 2f64.powi(-53) * (a.abs() + b.abs());
            assert!(error <= allowed, "from {a:e} to {b:e} by {w}: {y:e}");
        }
    });
}

#[test]
fn leaky_relu_and_elu_gradients_match_their_slopes() {
    on_every_isa(|| {
        let x: Vec<f32> = even_sample_f32(1 << 14).collect();
        let inputs: Vec<[f32; 3]> =
            x.iter().flat_map(|&x| [[1.0, x, 0.25], [-2.0, x, 1.5]]).collect();
        for ([g, x, s], y) in inputs.iter().zip(run::<math::LeakyReluGrad, f32>(&inputs)) {
            match x.is_nan() {
                true => assert!(y.is_nan(), "at NaN: {y}"),
                false => assert_eq!(y, if *x > 0.0 { *g } else { g * s }),
            }
        }
        for ([g, x, s], y) in inputs.iter().zip(run::<math::EluGrad, f32>(&inputs)) {
            let exact = if *x > 0.0 {
                f64::from(*g)
            } else {
                f64::from(*g) * f64::from(*s) * core_math::exp((*x).into())
            };
            let allowed = 2.5 * 2f64.powi(-23) * exact.abs() + 1e-44;
            let near = (f64::from(y) - exact).abs() <= allowed;
            assert!(near || x.is_nan() && y.is_nan(), "{x:e}: {y:e}, not {exact:e}");
        }
    });
    on_every_isa(|| {
        let inputs: Vec<[f64; 3]> = even_sample_f64(1 << 16)
            .filter(|x| *x > -700.0)
            .flat_map(|x| [[1.0, x, 0.25], [-2.7, x, 1.3]])
            .collect();
        for ([g, x, s], y) in inputs.iter().zip(run::<math::EluGrad, f64>(&inputs)) {
            let [wide_g, wide_s] = [*g, *s].map(DoubleDouble::from);
            // The exponential is rounded here, to half an ULP.
            let factor =
                if *x > 0.0 { wide_g } else { wide_g * wide_s * core_math::exp(*x).into() };
            let error = (DoubleDouble::from(y) - factor).high.abs();
            assert!(error <= 3.0 * 2f64.powi(-52) * factor.high.abs(), "{g} {x:e} {s}: {y:e}");
        }
        for ([g, x, s], y) in inputs.iter().zip(run::<math::LeakyReluGrad, f64>(&inputs)) {
            match x.is_nan() {
                true => assert!(y.is_nan(), "at NaN: {y}"),
                false => assert_eq!(y, if *x > 0.0 { *g } else { g * s }),
            }
        }
    });
    let at_zero = [[3.0f64, 0.0, 0.5], [3.0, -0.0, 0.5], [3.0, f64::NEG_INFINITY, 0.5]];
    assert_eq!(run::<math::LeakyReluGrad, f64>(&at_zero[..2]), [1.5, 1.5]);
    assert_eq!(run::<math::EluGrad, f64>(&at_zero), [1.5, 1.5, 0.0]);
}

/// `f` weights the three arguments differently, so that they can be distinguished.
#[test]
fn arguments_may_be_slices_scalars_or_the_result() {
    let column = |k: f32| move |i: usize| k + i as f32 * 0.5;
    let [a, b, c] = [column(2.0), column(-30.0), column(1000.0)];
    on_every_isa(|| {
        for len in (0..=70).chain([130, ALIGNED_FROM + 33]) {
            for mix in 0..8 {
                let slices = [a, b, c].map(|f| (0..len).map(f).collect::<Vec<f32>>());
                let is_slice = |k: usize| mix >> k & 1 == 1;
                let argument = |k: usize| match is_slice(k) {
                    true => Arg::Slice(&slices[k][..]),
                    false => Arg::Scalar([a(3), b(3), c(3)][k]),
                };
                let value = |k: usize, i: usize| [a, b, c][k](if is_slice(k) { i } else { 3 });
                let expected: Vec<f32> =
                    (0..len).map(|i| value(0, i).mul_add(value(1, i), value(2, i))).collect();
                let mut y = vec![7.0; len];
                math::MulAdd::KERNEL.run([0, 1, 2].map(argument), &mut y);
                assert_eq!(y, expected, "{len} elements, mix {mix:b}");
                for target in (0..3).filter(|&k| is_slice(k)) {
                    let arguments = [0, 1, 2].map(|k| (k != target).then(|| argument(k)));
                    let mut y = slices[target].clone();
                    math::MulAdd::KERNEL.run_in_place(arguments, &mut y);
                    assert_eq!(y, expected, "{len} elements, mix {mix:b}, into {target}");
                }
            }
        }
    });
}

#[test]
#[should_panic(expected = "clamp: an input has 2 elements, the output 3")]
fn lengths_must_agree() {
    let x = [Arg::Scalar(1.0), Arg::Scalar(0.0), Arg::Slice(&[2.0, 3.0])];
    math::Clamp::KERNEL.run(x, &mut [0f32; 3]);
}
