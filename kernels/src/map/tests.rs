//! Tests of the loop, not of the kernels: these kernels are short and restated element by element.

use super::*;
use crate::dispatch::with_isa;
use crate::math::kernels;
use crate::simd::{IntVector, Isa, Mask, Vector};
use crate::testing::unless_miri;
use crate::{Arg, Block, BlockArg, Function, Kernel, Place};
use core::mem::MaybeUninit;

/// `x * x - 1/x`, four vectors in flight.
pub struct Short;
impl<E: Float> Map<E, 1> for Short {
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
        x * x - simd.splat(E::ONE) / x
    }
}

/// `max(x, 2 x + 1)`, two vectors in flight.
pub struct Long;
impl<E: Float> Map<E, 1> for Long {
    const VECTORS: [usize; 2] = [2, 2];
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
        x.max_or_other(x.mul_add(simd.splat(E::from_f64(2.0)), simd.splat(E::ONE)))
    }
}

/// `2 x`, with a short form that is wrong for large x.
pub struct Forked;
impl<E: Float> Map<E, 1> for Forked {
    const HAS_USUAL: bool = true;
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
        usual_or(
            forked(simd, x),
            #[inline(always)]
            || x + x,
        )
    }

    #[inline(always)]
    fn usual<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> (S::V, S::M) {
        forked(simd, x)
    }
}

#[inline(always)]
fn forked<E: Float, S: Lanes<E>>(simd: S, x: S::V) -> (S::V, S::M) {
    let small = x.lt(simd.splat(E::from_f64(7.6)));
    ((x * simd.splat(E::from_f64(2.0))).select(small, simd.splat(E::NAN)), small)
}

/// `a + 2 b`, with a short form that is wrong for large b.
pub struct ForkedSum;
impl<E: Float> Map<E, 2> for ForkedSum {
    const HAS_USUAL: bool = true;
    const VECTORS: [usize; 2] = [2, 4];
    #[inline(always)]
    fn apply<S: Lanes<E>>(_simd: S, [a, b]: [S::V; 2]) -> S::V {
        a + (b + b)
    }

    #[inline(always)]
    fn usual<S: Lanes<E>>(simd: S, [a, b]: [S::V; 2]) -> (S::V, S::M) {
        let (double, holds) = forked(simd, b);
        (a + double, holds)
    }
}

/// `a - 2 b`, with interleaved vectors.
pub struct Interleaved;
impl<E: Float> Map<E, 2> for Interleaved {
    const VECTORS: [usize; 2] = [2, 4];
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [a, b]: [S::V; 2]) -> S::V {
        b.neg_mul_add(simd.splat(E::from_f64(2.0)), a)
    }
}

/// `a - b / 3`.
pub struct Uneven;
impl<E: Float> Map<E, 2> for Uneven {
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [a, b]: [S::V; 2]) -> S::V {
        a - b / simd.splat(E::from_f64(3.0))
    }
}

/// `a < b ? b : a` by masks, one vector in flight.
pub struct Larger;
impl<E: Float> Map<E, 2> for Larger {
    const VECTORS: [usize; 2] = [1, 1];
    #[inline(always)]
    fn apply<S: Lanes<E>>(_simd: S, [a, b]: [S::V; 2]) -> S::V {
        let less = a.lt(b);
        if less.all() { b } else { S::V::from_bits(b.to_bits().select(less, a.to_bits())) }
    }
}

/// `a + b / 3 − c / 7`.
pub struct Weighted;
impl<E: Float> Map<E, 3> for Weighted {
    const VECTORS: [usize; 2] = [2, 2];
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [a, b, c]: [S::V; 3]) -> S::V {
        a + b / simd.splat(E::from_f64(3.0)) - c / simd.splat(E::from_f64(7.0))
    }
}

kernels! {
    unary {
        /// `x * x - 1/x`.
        short Short cheap;
        /// `max(x, 2 x + 1)`.
        long Long cheap;
        /// `2 x`.
        forked_double Forked costly;
    }
    binary {
        /// `a - b / 3`.
        uneven Uneven cheap;
        /// `max(a, b)`.
        larger Larger cheap;
        /// `a + 2 b`.
        forked_sum ForkedSum costly;
        /// `a - 2 b`.
        interleaved Interleaved costly;
    }
    ternary {
        /// `a + b / 3 − c / 7`.
        weighted Weighted cheap;
    }
}

fn values<E: Float>(len: usize, seed: usize) -> Vec<E> {
    (0..len).map(|i| E::from_f64(((i * 37 + seed * 11) % 101) as f64 / 7.0 - 6.5)).collect()
}

fn bits<E: Float>(x: &[E]) -> Vec<u64> {
    x.iter().map(|x| x.to_f64().to_bits()).collect()
}

/// Slices and scalars in every combination, at every length and several misalignments, also in
/// place.
fn check_slices<E: Float + Stored, const N: usize>(
    kernel: &Kernel<N>,
    isa: Isa,
    f: impl Fn([E; N]) -> E,
) {
    for len in (0..=unless_miri(130, 3)).chain(unless_miri([1024, 1500], [4, 5])) {
        for offset in [0, 1, 15] {
            let inputs: [Box<[E]>; N] =
                core::array::from_fn(|k| values(offset + len, len + k).into());
            let number = |k: usize| E::from_f64(0.7 - 2.0 * k as f64);
            for mix in 0..1 << N {
                let is_value = |k: usize| mix >> k & 1 == 1;
                let at = |k: usize, i: usize| if is_value(k) { number(k) } else { inputs[k][i] };
                let expected: Vec<E> =
                    (offset..offset + len).map(|i| f(core::array::from_fn(|k| at(k, i)))).collect();
                let arguments: [Arg<E>; N] = core::array::from_fn(|k| {
                    if is_value(k) {
                        Arg::Scalar(number(k))
                    } else {
                        Arg::Slice(&inputs[k][offset..])
                    }
                });
                let case = format!("{} of {len} from {offset}, mix {mix} on {isa}", kernel.name());
                let mut y: Box<[E]> = vec![E::NAN; offset + len].into();
                kernel.run(arguments, &mut y[offset..]);
                assert_eq!(bits(&y[offset..]), bits(&expected), "{case}");
                assert_eq!(bits(&y[..offset]), bits(&vec![E::NAN; offset]), "{case}");
                for place in (0..N).filter(|&k| !is_value(k)) {
                    let mut y = inputs[place].clone();
                    let mut given = arguments.map(Some);
                    given[place] = None;
                    kernel.run_in_place(given, &mut y[offset..]);
                    assert_eq!(bits(&y[offset..]), bits(&expected), "{case}, in place of {place}");
                    assert_eq!(bits(&y[..offset]), bits(&inputs[place][..offset]), "{case}");
                }
            }
        }
    }
}

/// Rows with gaps, repeated, backwards, or of one value each; nothing between the rows of the
/// result is written.
fn check_blocks<E: Float + Stored, const N: usize>(
    kernel: &Kernel<N>,
    isa: Isa,
    f: impl Fn([E; N]) -> E,
) {
    let name = kernel.name();
    let shapes = [(1, 5), (3, 2), (2, 40), (11, 3), (20, 33), (12, 130)];
    for &(rows, cols) in &shapes[..if cfg!(miri) { 2 } else { shapes.len() }] {
        let (wide, column) = (values::<E>(rows * (cols + 3), 1), values::<E>(rows, 2));
        let row = |start, stride| BlockArg { data: &wide, start, stride, is_value: false };
        let pitch = cols as isize + 3;
        let backwards = row((rows - 1) * (cols + 3) + 1, -pitch);
        let values = BlockArg { data: &column, start: 0, stride: 1, is_value: true };
        let value = BlockArg { stride: 0, ..values };
        let all = [row(0, cols as isize), row(2, pitch), row(1, 0), backwards, values, value];
        for mix in 0..all.len().pow(N as u32) {
            let mut rest = mix;
            let arguments = [(); N].map(|()| {
                let argument = all[rest % all.len()];
                rest /= all.len();
                argument
            });
            let at = |x: BlockArg<E>, r: usize, c: usize| {
                let first = x.start as isize + r as isize * x.stride;
                x.data[first as usize + if x.is_value { 0 } else { c }]
            };
            for stride in [cols, cols + 4] {
                let shape = Block { rows, cols, stride };
                let filled = |element: &dyn Fn(usize, usize) -> E| {
                    let mut y = vec![E::ONE; rows * stride];
                    for (r, y) in y.chunks_exact_mut(stride).enumerate() {
                        (0..cols).for_each(|c| y[c] = element(r, c));
                    }
                    y
                };
                let expected = bits(&filled(&|r, c| f(arguments.map(|x| at(x, r, c)))));
                let mut y = vec![E::ONE; rows * stride];
                kernel.run_block(arguments, shape, &mut y);
                assert_eq!(bits(&y), expected, "{name} {arguments:?} on {isa}");
                for place in 0..N {
                    let mut y = filled(&|r, c| at(arguments[place], r, c));
                    let mut given = arguments.map(Some);
                    given[place] = None;
                    kernel.run_block_in_place(given, shape, &mut Place::cached(&mut y));
                    assert_eq!(bits(&y), expected, "{name} in place of {place} on {isa}");
                }
            }
        }
    }
}

fn check<E: Float + Stored, const N: usize>(
    kernel: &Kernel<N>,
    isa: Isa,
    f: impl Fn([E; N]) -> E + Copy,
) {
    check_slices(kernel, isa, f);
    check_blocks(kernel, isa, f);
}

fn check_all<E: Float + Stored>(isa: Isa) {
    let number = E::from_f64;
    check(Short::KERNEL, isa, |[x]: [E; 1]| x * x - E::ONE / x);
    check(Forked::KERNEL, isa, |[x]: [E; 1]| x + x);
    check(Long::KERNEL, isa, |[x]: [E; 1]| {
        let y = E::mul_add(x, number(2.0), E::ONE);
        if x > y { x } else { y }
    });
    check(Uneven::KERNEL, isa, |[a, b]: [E; 2]| a - b / number(3.0));
    check(Larger::KERNEL, isa, |[a, b]: [E; 2]| if a < b { b } else { a });
    check(ForkedSum::KERNEL, isa, |[a, b]: [E; 2]| a + (b + b));
    check(Interleaved::KERNEL, isa, |[a, b]: [E; 2]| a - (b + b));
    check(Weighted::KERNEL, isa, |[a, b, c]: [E; 3]| a + b / number(3.0) - c / number(7.0));
}

#[test]
fn bits_depend_on_the_value_alone() {
    for isa in Isa::ALL {
        let ran = with_isa(isa, || {
            check_all::<f32>(isa);
            check_all::<f64>(isa);
        });
        if ran.is_none() {
            println!("skipped: this machine lacks {isa}");
        }
    }
}

#[test]
fn outputs_may_be_uninitialised() {
    let x = values::<f32>(77, 3);
    macro_rules! check {
        ($($function:ident($($x:expr),*);)*) => {$(
            let mut expected = vec![f32::NAN; 77];
            functions::$function($($x,)* &mut expected[..]);
            let mut y = Box::new_uninit_slice(77);
            functions::$function($($x,)* &mut y[..]);
            // SAFETY: the kernel wrote every element.
            let y = unsafe { Box::<[MaybeUninit<f32>]>::assume_init(y) };
            assert_eq!(bits(&y), bits(&expected), stringify!($function));
        )*};
    }
    check! {
        short(&x);
        long(&x);
        forked_double(&x);
        larger(&[0.0; 77], &x);
        forked_sum(&x, &x);
        interleaved(&x, &x);
        weighted(&x, &x, &x);
    }
}

#[test]
#[should_panic(expected = "short: an input has 3 elements, the output 4")]
fn unequal_unary_lengths_panic() {
    functions::short(&[1.0f32; 3], &mut [0.0; 4][..]);
}

#[test]
#[should_panic(expected = "uneven: an input has 5 elements, the output 4")]
fn unequal_binary_lengths_panic() {
    functions::uneven(&[1.0f64; 4], &[1.0; 5], &mut [0.0; 4][..]);
}

#[test]
#[should_panic(expected = "uneven: Block { rows: 2, cols: 3, stride: 3 } exceeds 5 elements")]
fn rows_beyond_their_slice_panic() {
    let x = BlockArg { data: &[1.0f32; 6], start: 0, stride: 3, is_value: false };
    let short = BlockArg { data: &[1.0f32; 5], ..x };
    let shape = Block { rows: 2, cols: 3, stride: 3 };
    Uneven::KERNEL.run_block([x, short], shape, &mut [0.0; 6][..]);
}

#[test]
#[should_panic(expected = "exceeds 2 elements")]
fn backward_rows_before_their_slice_panic() {
    let x = BlockArg { data: &[1.0f32; 6], start: 0, stride: 3, is_value: false };
    let column = BlockArg { data: &[1.0f32; 2], start: 0, stride: -1, is_value: true };
    let shape = Block { rows: 2, cols: 3, stride: 3 };
    Uneven::KERNEL.run_block([x, column], shape, &mut [0.0; 6][..]);
}

#[test]
fn streamed_results_have_the_same_bits() {
    let len = unless_miri(5000, 40);
    for isa in Isa::ALL {
        with_isa(isa, || {
            for (rows, cols, offset) in [(1, len, 0), (1, len, 3), (7, len / 7 - 1, 1), (30, 9, 2)]
            {
                let (a, b) = (values::<f32>(rows * (cols + 1), 1), values::<f32>(rows, 2));
                let a = BlockArg { data: &a, start: 0, stride: cols as isize + 1, is_value: false };
                let b = BlockArg { data: &b, start: 0, stride: 1, is_value: true };
                let shape = Block { rows, cols, stride: cols + 2 };
                let mut expected = vec![1.0; offset + rows * shape.stride];
                let mut y = expected.clone();
                Uneven::KERNEL.run_block([a, b], shape, &mut expected[offset..]);
                crate::with_place(&mut y[offset..], usize::MAX, |mut y| {
                    Uneven::KERNEL.run_block([a, b], shape, &mut y);
                });
                assert_eq!(bits(&y), bits(&expected), "{rows} rows of {cols} on {isa}");
            }
        });
    }
}

#[test]
fn halves_are_computed_in_f32_and_rounded_once() {
    use half::{bf16, f16};
    fn check<T: Stored + PartialEq + core::fmt::Debug>(from: fn(f32) -> T, to: fn(T) -> f32) {
        let x: Vec<T> = values(unless_miri(2500, 20), 3).into_iter().map(from).collect();
        let two = from(2.0);
        let expected: Vec<T> = x.iter().map(|&x| from(to(x) - to(two) / 3.0)).collect();
        let mut y = vec![two; x.len()];
        Uneven::KERNEL.run([Arg::Slice(&x), Arg::Scalar(two)], &mut y);
        assert_eq!(y, expected);
        let mut y = x.clone();
        Uneven::KERNEL.run_in_place([None, Some(Arg::Scalar(two))], &mut y);
        assert_eq!(y, expected);
    }
    check(f16::from_f32, f16::to_f32);
    check(bf16::from_f32, bf16::to_f32);
}

#[test]
fn blocks_of_halves_are_computed_row_by_row() {
    use half::bf16;
    let x: Vec<bf16> = values::<f32>(60, 3).into_iter().map(bf16::from_f32).collect();
    let (rows, cols) = (3, 7);
    let shape = Block { rows, cols, stride: 9 };
    let block = |start, stride, is_value| BlockArg { data: &x, start, stride, is_value };
    // Rows with gaps, backwards, repeated; one value per row, and one value for all rows.
    let arguments = [
        block(1, 11, false),
        block(40, -13, false),
        block(5, 0, false),
        block(50, -3, true),
        block(2, 0, true),
    ];
    let at = |x: &BlockArg<bf16>, r: usize, c: usize| {
        let first = x.start.wrapping_add_signed(r as isize * x.stride);
        x.data[if x.is_value { first } else { first + c }].to_f32()
    };
    let untouched = bf16::from_f32(-5.0);
    let check = |y: &[bf16], expected: &dyn Fn(usize, usize) -> f32, what: &str| {
        for (i, y) in y.iter().enumerate() {
            let (r, c) = (i / shape.stride, i % shape.stride);
            let expected = if c < cols { bf16::from_f32(expected(r, c)) } else { untouched };
            assert_eq!(y.to_bits(), expected.to_bits(), "{what}: row {r}, column {c}");
        }
    };
    for (i, a) in arguments.iter().enumerate() {
        let mut y = vec![untouched; rows * shape.stride];
        Short::KERNEL.run_block([*a], shape, &mut y[..]);
        let short = |x: f32| x * x - 1.0 / x;
        check(&y, &|r, c| short(at(a, r, c)), &format!("short of {i}"));
        for (j, b) in arguments.iter().enumerate() {
            let uneven = |a: f32, b: f32| a - b / 3.0;
            y.fill(untouched);
            Uneven::KERNEL.run_block([*a, *b], shape, &mut y[..]);
            check(&y, &|r, c| uneven(at(a, r, c), at(b, r, c)), &format!("uneven of {i} and {j}"));
            let [a3, b3, c3] = [*a, *b, arguments[(i + j) % 5]];
            y.fill(untouched);
            Weighted::KERNEL.run_block([a3, b3, c3], shape, &mut y[..]);
            let weighted = |r, c| at(a, r, c) + at(b, r, c) / 3.0 - at(&c3, r, c) / 7.0;
            check(&y, &weighted, &format!("weighted of {i} and {j}"));
        }
        for is_first in [false, true] {
            y.fill(untouched);
            let held = bf16::from_f32(0.75);
            y.chunks_mut(shape.stride).for_each(|row| row[..cols].fill(held));
            let operands = if is_first { [None, Some(*a)] } else { [Some(*a), None] };
            Uneven::KERNEL.run_block_in_place(operands, shape, &mut Place::cached(&mut y));
            let uneven = |r, c| match is_first {
                true => 0.75 - at(a, r, c) / 3.0,
                false => at(a, r, c) - 0.75 / 3.0,
            };
            check(&y, &uneven, &format!("in place beside {i}"));
        }
    }
}
