//! Every operation of every instruction set against the scalar level, which defines each operation.

use ::half::{bf16, f16};

use super::*;
use crate::dispatch::{Isa, run, with_isa};
use crate::testing::unless_miri;

mod memory;

/// Floats as bits, so that NaNs and signs of zero compare too.
trait Bits: Float {
    fn to_u64(self) -> u64;
    fn from_u64(bits: u64) -> Self;
    /// 256 different numbers.
    fn rows() -> &'static Rows<Self>;
}

macro_rules! rows {
    ($t:ident) => {{
        static TABLE: Rows<$t> = {
            let mut rows = [[0.0; 8]; 32];
            let mut i = 0;
            while i < 256 {
                rows[i / 8][i % 8] = i as $t * 1.25 - 100.0;
                i += 1;
            }
            Rows::new(rows)
        };
        &TABLE
    }};
}

impl Bits for f32 {
    fn to_u64(self) -> u64 {
        u64::from(self.to_bits())
    }
    fn from_u64(bits: u64) -> Self {
        f32::from_bits(bits as u32)
    }
    fn rows() -> &'static Rows<f32> {
        rows!(f32)
    }
}

impl Bits for f64 {
    fn to_u64(self) -> u64 {
        self.to_bits()
    }
    fn from_u64(bits: u64) -> Self {
        f64::from_bits(bits)
    }
    fn rows() -> &'static Rows<f64> {
        rows!(f64)
    }
}

/// Zeros, subnormals, ties, exact and inexact values, the largest, infinities and NaNs.
fn special_values<E: Bits>() -> Vec<E> {
    let mantissa = if size_of::<E>() == 4 { 23 } else { 52 };
    let integer_limit = 2f64.powi(mantissa);
    let mut values = vec![0.0, 0.5, 1.0, 1.0 / 3.0, 1.5, 2.5, 3.5, 0.7, 2.0, 1e-30, 1e30, 1e-40];
    values.extend([integer_limit, integer_limit - 0.5, integer_limit / 2.0 + 0.5, 7.0, 8.0, 15.0]);
    let mut values: Vec<E> = values.into_iter().map(E::from_f64).collect();
    let infinity = E::INFINITY.to_u64();
    let min_normal = 1 << mantissa;
    let bits = [1, 2, 3, min_normal - 1, min_normal, min_normal + 1, infinity - 1, infinity];
    values.extend(bits.map(E::from_u64));
    values.extend(values.clone().into_iter().map(|x| -x));
    values.push(E::NAN);
    values
}

/// The results of each operation, by name: all pairs of special values through vectors of `S`.
struct AllOperations<E>(Vec<[E; 3]>);

const COLUMNS: [&str; 33] = [
    "add",
    "sub",
    "mul",
    "div",
    "neg",
    "mul_add",
    "neg_mul_add",
    "sqrt",
    "abs",
    "round_ties_even",
    "min_or_other",
    "max_or_other",
    "eq",
    "lt",
    "le",
    "is_nan",
    "select",
    "lookup8",
    "lookup16",
    "lookup32",
    "lookup_rows",
    "int add",
    "int sub",
    "and",
    "or",
    "xor",
    "shl",
    "shr",
    "int eq",
    "int gt",
    "int select",
    "mask algebra",
    "any, all",
];

impl<E: Bits> Work<E> for AllOperations<E> {
    type Output = Vec<Vec<u64>>;
    #[inline(always)]
    fn on<S: Lanes<E>>(self, simd: S) -> Self::Output {
        let mut columns = vec![Vec::new(); COLUMNS.len()];
        for triples in self.0.chunks_exact(S::LANES) {
            let column = |i: usize| triples.iter().map(|t| t[i]).collect::<Vec<E>>();
            let load = |x: &[E]| {
                assert_eq!(x.len(), S::LANES);
                // SAFETY: a whole vector was asserted.
                unsafe { simd.load(x.as_ptr()) }
            };
            let (a, b, c) = (load(&column(0)), load(&column(1)), load(&column(2)));
            let (i, j) = (a.to_bits(), b.to_bits());
            let (yes, no) = (simd.splat(E::ONE), simd.splat(E::ZERO));
            let from = <S::V as Vector>::from_bits;
            let truth = |m: S::M| yes.select(m, no);
            let table: [E; 32] = core::array::from_fn(|i| E::from_f64(i as f64 * 1.25 - 3.0));
            let (half, quarter) = (table.first_chunk().unwrap(), table.first_chunk().unwrap());
            let index = i.shr::<5>() - j;
            let results = [
                a + b,
                a - b,
                a * b,
                a / b,
                -a,
                a.mul_add(b, c),
                a.neg_mul_add(b, c),
                a.sqrt(),
                a.abs(),
                a.round_ties_even(),
                a.min_or_other(b),
                a.max_or_other(b),
                truth(a.eq(b)),
                truth(a.lt(b)),
                truth(a.le(b)),
                truth(a.is_nan()),
                a.select(b.lt(c), c),
                S::V::lookup8(quarter, index, a),
                S::V::lookup16(half, index, a),
                S::V::lookup32(&table, index, a),
                from(
                    simd.lookup_rows(E::rows(), index)
                        .map(S::V::to_bits)
                        .into_iter()
                        .fold(i, |sum, column| sum.shl::<1>() + column),
                ),
                from(i + j),
                from(i - j),
                from(i & j),
                from(i | j),
                from(i ^ j),
                from(i.shl::<9>()),
                from(i.shr::<9>()),
                truth(i.eq(j)),
                truth(i.gt(j)),
                from(i.select(j.gt(i), j)),
                truth((a.lt(b) & b.lt(c)) | !(a.lt(c) | i.gt(j))),
            ];
            for (results, column) in results.into_iter().zip(&mut columns) {
                let mut lanes = vec![E::ZERO; S::LANES];
                // SAFETY: the buffer holds a whole vector.
                unsafe { simd.store(lanes.as_mut_ptr(), results) };
                column.extend(lanes.into_iter().map(E::to_u64));
            }
            let count = |m: S::M| triples.iter().filter(|_| m.any()).count();
            for mask in [a.lt(b), a.eq(a), a.is_nan()] {
                let mut lanes = vec![E::ZERO; S::LANES];
                // SAFETY: the buffer holds a whole vector.
                unsafe { simd.store(lanes.as_mut_ptr(), truth(mask)) };
                let lanes: Vec<bool> = lanes.into_iter().map(|x| x == E::ONE).collect();
                assert_eq!(mask.any(), lanes.contains(&true));
                assert_eq!(mask.all(), !lanes.contains(&false));
                assert_eq!(count(mask), if mask.any() { S::LANES } else { 0 });
            }
        }
        columns
    }
}

fn is_nan<E: Bits>(bits: u64) -> bool {
    E::from_u64(bits).partial_cmp(&E::ZERO).is_none()
}

/// Work on vectors of any width.
trait Work<E: Float> {
    type Output;
    fn on<S: Lanes<E>>(self, simd: S) -> Self::Output;
}

/// Work on single vectors, or on two joined ones.
struct On<T> {
    work: T,
    joined: bool,
}

impl<E: Bits, T: Work<E>> Task<E> for On<T> {
    type Home = Self;
    type Output = T::Output;
    #[inline(always)]
    fn run<S: Lanes<E>>(self, simd: S) -> T::Output {
        if self.joined { self.work.on(Wide(simd)) } else { self.work.on(simd) }
    }
}

fn check_all_operations<E: Bits>() {
    let values = special_values::<E>();
    let mut triples = Vec::new();
    for (i, &a) in values.iter().enumerate() {
        for (j, &b) in values.iter().enumerate() {
            triples.push([a, b, values[(7 * i + 3 * j) % values.len()]]);
        }
    }
    // Operations on registers touch no memory, so a few cases are enough for Miri.
    let mut triples: Vec<_> = triples.into_iter().step_by(unless_miri(1, 89)).collect();
    triples.resize(triples.len().next_multiple_of(32), [E::ONE; 3]);
    let results = |joined| run::<E, _>(On { work: AllOperations(triples.clone()), joined });
    let scalar = with_isa(Isa::Scalar, || results(false)).unwrap();
    for isa in Isa::ALL {
        let Some(both) = with_isa(isa, || [false, true].map(results)) else {
            println!("skipped: this machine lacks {isa}");
            continue;
        };
        for ((name, expected), actual) in
            both.iter().flat_map(|columns| COLUMNS.iter().zip(&scalar).zip(columns))
        {
            assert_eq!(expected.len(), actual.len(), "{name} on {isa}");
            for ((x, &expected), &actual) in triples.iter().zip(expected).zip(actual) {
                // The sign and payload of a computed NaN are the CPU's own.
                let same = expected == actual || (is_nan::<E>(expected) && is_nan::<E>(actual));
                assert!(same, "{name}{x:?} on {isa}: {actual:#x}, scalar {expected:#x}");
            }
        }
    }
}

#[test]
fn f32_operations_have_the_scalar_bits() {
    check_all_operations::<f32>();
}

#[test]
fn f64_operations_have_the_scalar_bits() {
    check_all_operations::<f64>();
}

/// `x * 2^k` for pairs of a value and the integer `k` as bits.
struct Scale<E>(Vec<(E, i64)>);

impl<E: Bits> Work<E> for Scale<E> {
    type Output = Vec<E>;
    #[inline(always)]
    fn on<S: Lanes<E>>(self, simd: S) -> Vec<E> {
        let mut results = vec![E::ZERO; self.0.len()];
        for (pairs, out) in self.0.chunks_exact(S::LANES).zip(results.chunks_exact_mut(S::LANES)) {
            let x: Vec<E> = pairs.iter().map(|p| p.0).collect();
            let k: Vec<E> = pairs.iter().map(|p| E::from_u64(p.1 as u64)).collect();
            // SAFETY: `x`, `k` and `out` hold a whole vector each, as chunks do.
            unsafe {
                let (x, k) = (simd.load(x.as_ptr()), simd.load(k.as_ptr()));
                simd.store(out.as_mut_ptr(), x.scale_by_power_of_two(k.to_bits()));
            }
        }
        results
    }
}

fn check_scale<E: Bits>(bias: i64, step: usize, exact: impl Fn(E, i64) -> Option<E>) {
    let mut pairs = Vec::new();
    for x in special_values::<E>() {
        let range = 2 * (1 - bias)..=2 * bias;
        pairs.extend(range.step_by(step).chain([2 * bias, 0, -bias]).map(|k| (x, k)));
    }
    pairs.resize(pairs.len().next_multiple_of(32), (E::ONE, 0));
    let results = |joined| run::<E, _>(On { work: Scale(pairs.clone()), joined });
    let scalar = with_isa(Isa::Scalar, || results(false)).unwrap();
    for isa in Isa::ALL {
        let Some([results, wide]) = with_isa(isa, || [false, true].map(results)) else {
            println!("skipped: this machine lacks {isa}");
            continue;
        };
        let bits = |x: &[E]| x.iter().map(|x| x.to_u64()).collect::<Vec<_>>();
        assert_eq!(bits(&wide), bits(&results), "two vectors as one on {isa}");
        for ((&(x, k), &expected), &actual) in pairs.iter().zip(&scalar).zip(&results) {
            let both_nan = is_nan::<E>(expected.to_u64()) && is_nan::<E>(actual.to_u64());
            let same = both_nan || expected.to_u64() == actual.to_u64();
            assert!(same, "{x:?} * 2^{k} on {isa}: {actual:?}, scalar {expected:?}");
            if let Some(exact) = exact(x, k).filter(|_| !both_nan) {
                assert_eq!(exact.to_u64(), actual.to_u64(), "{x:?} * 2^{k} on {isa}");
            }
        }
    }
}

#[test]
fn scaling_by_powers_of_two_rounds_once() {
    // Every product is exact in f64; only the conversion rounds.
    check_scale::<f32>(127, unless_miri(1, 61), |x, k| {
        Some((f64::from(x) * 2f64.powi(k as i32)) as f32)
    });
    // Normal results are exact: only the exponent may change.
    check_scale::<f64>(1023, unless_miri(3, 501), |x, k| {
        let exponent = |x: f64| (x.to_bits() >> 52 & 0x7ff) as i64;
        let normal = 1..=2046;
        let scaled = exponent(x) + k;
        (normal.contains(&exponent(x)) && normal.contains(&scaled))
            .then(|| f64::from_bits((x.to_bits() as i64 + (k << 52)) as u64))
    });
}
