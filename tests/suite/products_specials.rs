//! Infinities and NaN times zeros in products of tensors: 0 · ∞ is NaN on every path, and the other elements
//! are exact sums of small integers.

use std::env;

use swath::blas::trace::{GemmPath, Path, trace};
use swath::nn::Activation;
use swath::prelude::*;
use swath::runtime::{Isa, info, set_threads};

use crate::products_bits::embedded;
use crate::support::{alone_with, is_sampled};

type T = Tensor<CpuBackend>;

/// A batch of products `[m, k] × [k, n]`, with one right side each or a common one.
struct Case {
    batch: usize,
    one_right_side: bool,
    shape: [usize; 3],
}

const fn case(batch: usize, one_right_side: bool, shape: [usize; 3]) -> Case {
    Case { batch, one_right_side, shape }
}

/// Vectors, few rows, few columns, small ones, large ones, k split over threads; a batch, a batch of small
/// products, and a batch whose common right side is packed once if the rows of the left sides cannot be
/// stacked.
const CASES: [Case; 10] = [
    case(1, false, [1, 300, 131]),
    case(1, false, [131, 300, 1]),
    case(1, false, [7, 520, 310]),
    case(1, false, [310, 520, 7]),
    case(1, false, [40, 33, 50]),
    case(1, false, [300, 520, 260]),
    case(1, false, [32, 16_384, 24]),
    case(9, false, [33, 47, 31]),
    case(150, false, [12, 12, 12]),
    case(6, true, [40, 300, 90]),
];

/// Each of these runs for some of the [`CASES`].
const LOOPS: [GemmPath; 5] =
    [GemmPath::Small, GemmPath::Rows, GemmPath::Columns, GemmPath::InPlace, GemmPath::Blocked];

/// A and B: one with zeros, the other one with an infinity or NaN in three of four rows or columns, each of
/// which is multiplied by a zero.
fn operands(case: &Case, zeros_in_a: bool) -> [Vec<f64>; 2] {
    let Case { batch, one_right_side, shape: [m, k, n] } = *case;
    let rights = if one_right_side { 1 } else { batch };
    let value = |at: usize| ((at * 5 + at / 7) % 7) as f64 - 3.0;
    let mut a: Vec<f64> = (0..batch * m * k).map(value).collect();
    let mut b: Vec<f64> = (0..rights * k * n).map(|at| value(at * 3 + 1)).collect();
    let special = |i: usize| [f64::INFINITY, f64::NAN, f64::NEG_INFINITY][i % 4];
    let position = |i: usize| (i * 37 + 11) % k;
    for t in 0..batch {
        let (a, b) = (&mut a[t * m * k..][..m * k], &mut b[t % rights * k * n..][..k * n]);
        if zeros_in_a {
            for j in (0..n).filter(|j| j % 4 != 3) {
                b[position(j) * n + j] = special(j);
                a[j % m * k + position(j)] = 0.0;
            }
        } else {
            for i in (0..m).filter(|i| i % 4 != 3) {
                a[i * k + position(i)] = special(i);
                b[position(i) * n + i % n] = -0.0;
            }
        }
    }
    [a, b]
}

fn sums(case: &Case, [a, b]: &[Vec<f64>; 2]) -> Vec<f64> {
    let Case { batch, one_right_side, shape: [m, k, n] } = *case;
    let mut sums = vec![0.0; batch * m * n];
    for (row, sums) in sums.chunks_exact_mut(n).enumerate() {
        let b = &b[if one_right_side { 0 } else { row / m * k * n }..];
        for p in 0..k {
            let a = a[row * k + p];
            sums.iter_mut().zip(&b[p * n..]).for_each(|(sum, &b)| *sum += a * b);
        }
    }
    sums
}

fn numbers(x: &T) -> Result<Vec<u64>> {
    let bits = |x: f64| if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() };
    Ok(x.to_dtype(DType::F64)?.to_vec::<f64>()?.into_iter().map(bits).collect())
}

/// The same tensor, with the last axis but one contiguous.
fn column_major(x: &T) -> Result<T> {
    x.swap_axes(-1, -2)?.contiguous()?.swap_axes(-1, -2)
}

/// Checks the layouts with the given numbers, of four.
fn check(
    case: &Case,
    zeros_in_a: bool,
    dtype: DType,
    layouts: &[usize],
    seen: &mut Vec<Path>,
) -> Result<()> {
    let Case { batch, one_right_side, shape: [m, k, n] } = *case;
    let values = operands(case, zeros_in_a);
    let sums = T::from_vec(sums(case, &values), (batch, m, n))?;
    assert!(sums.to_vec::<f64>()?.iter().any(|x| x.is_nan()));
    let [a, b] = values;
    let a = T::from_vec(a, (batch, m, k))?.to_dtype(dtype)?;
    let b = T::from_vec(b, (if one_right_side { 1 } else { batch }, k, n))?.to_dtype(dtype)?;
    let bias = T::from_vec((0..n).map(|j| (j % 5) as f64 - 2.0).collect::<Vec<_>>(), n)?;
    let biased = sums.add(&bias)?;
    let activated = biased.activation(Activation::Relu)?;
    let bias = bias.to_dtype(dtype)?;
    let (lefts, rights) = ([a.clone(), column_major(&a)?], [b.clone(), column_major(&b)?]);
    for &i in layouts {
        let (a, b) = (&lefts[i / 2], &rights[i % 2]);
        let same = |what: &str, y: T, expected: &T| {
            let found = numbers(&y.reshape((batch, m, n))?)?;
            let expected = numbers(&expected.to_dtype(dtype)?)?;
            let at = found.iter().zip(&expected).position(|(found, expected)| found != expected);
            let what =
                format!("{what}, {batch} of [{m}, {k}] and [{k}, {n}], {dtype}, layouts {i}");
            assert_eq!(at, None, "{what}, zeros in A: {zeros_in_a}");
            Ok(())
        };
        let (product, traced) = trace(|| a.matmul(b));
        same("matmul", product?, &sums)?;
        seen.extend(traced.iter().map(|product| product.path));
        if one_right_side || batch == 1 {
            let weight = b.squeeze(0)?.t()?;
            same("linear", a.linear(&weight, Some(&bias))?, &biased)?;
            let y = a.linear_activation(&weight, Some(&bias), Activation::Relu)?;
            same("linear and relu", y, &activated)?;
        }
    }
    Ok(())
}

/// Runs on each level, in its own process.
///
/// By default one of four layouts for each case, dtype and operand with zeros, rotating with all three; on
/// the portable level, which is a hundred times slower, for a quarter of these. All [`LOOPS`] occur in any
/// case.
#[test]
#[ignore = "run by the test below, with the environment it sets"]
fn worker() -> Result<()> {
    assert_eq!(Some(info().isa.name()), env::var("SWATH_ISA").ok().as_deref());
    let every = if info().isa == Isa::Scalar { 4 } else { 1 };
    for threads in [1, 3] {
        set_threads(threads)?;
        let mut seen = Vec::new();
        for (turn, case) in CASES.iter().enumerate() {
            for (i, dtype) in
                [DType::F32, DType::F64, DType::F16, DType::BF16].into_iter().enumerate()
            {
                for (j, zeros_in_a) in [true, false].into_iter().enumerate() {
                    let is_taken =
                        |&layout: &usize| is_sampled(turn + i + 2 * j + every / 2 + layout, 4);
                    let layouts: Vec<usize> = (0..4).filter(is_taken).collect();
                    if is_sampled(2 * turn + i + j, every) {
                        check(case, zeros_in_a, dtype, &layouts, &mut seen)?;
                    }
                }
            }
        }
        for loops in LOOPS {
            assert!(seen.contains(&Path::Embedded(loops)), "{threads} threads: {loops}");
        }
        let is_along_k = |path: &Path| matches!(path, Path::EmbeddedAlongK(_));
        assert!(threads == 1 || seen.iter().any(is_along_k));
        assert!(threads == 1 || seen.contains(&Path::EmbeddedPacked));
    }
    Ok(())
}

#[test]
fn zeros_times_infinities_and_nan_are_nan_and_other_elements_exact() {
    if !embedded() {
        println!("SKIPPED: {} computes products", info().blas);
        return;
    }
    for isa in Isa::ALL {
        if isa.is_available() {
            alone_with("products_specials::worker", &[("SWATH_ISA", isa.name())], || {
                panic!("the worker runs in its own process")
            });
        } else {
            println!("SKIPPED {isa}: this machine lacks it");
        }
    }
}
