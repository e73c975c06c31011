//! The loop, not the kernels: kernels of these tests are short and stated again element by element.

use super::*;
use crate::dispatch::{Isa, with_isa};
use crate::simd::{IntVector, Mask, Vector};
use crate::testing::unless_miri;
use crate::{Binary, Block, BlockArg, Ternary, Unary};
use core::mem::MaybeUninit;

/// `x * x - 1/x`, four vectors in flight.
pub struct Short;
impl<E: Float> Map1<E> for Short {
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, x: S::V) -> S::V {
        x * x - simd.splat(E::ONE) / x
    }
}

/// `max(x, 2 x + 1)`, two in flight.
pub struct Long;
impl<E: Float> Map1<E> for Long {
    const UNROLL: usize = 2;
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, x: S::V) -> S::V {
        x.max_or_other(x.mul_add(simd.splat(E::from_f64(2.0)), simd.splat(E::ONE)))
    }
}

/// `2 x`, in two forms of which the short one is wrong for large x.
pub struct Forked;
impl<E: Float> Map1<E> for Forked {
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, x: S::V) -> S::V {
        usual_or(
            forked(simd, x),
            #[inline(always)]
            || x + x,
        )
    }

    #[inline(always)]
    fn usual<S: Lanes<E>>(simd: S, x: S::V) -> Option<(S::V, S::M)> {
        Some(forked(simd, x))
    }
}

#[inline(always)]
fn forked<E: Float, S: Lanes<E>>(simd: S, x: S::V) -> (S::V, S::M) {
    let small = x.lt(simd.splat(E::from_f64(7.6)));
    ((x * simd.splat(E::from_f64(2.0))).select(small, simd.splat(E::NAN)), small)
}

/// `a + 2 b`, in two forms of which the short one is wrong for large b.
pub struct ForkedSum;
impl<E: Float> Map2<E> for ForkedSum {
    const UNROLL: usize = 2;
    const UNROLL_32: usize = 4;
    #[inline(always)]
    fn apply<S: Lanes<E>>(_simd: S, a: S::V, b: S::V) -> S::V {
        a + (b + b)
    }

    #[inline(always)]
    fn usual<S: Lanes<E>>(simd: S, a: S::V, b: S::V) -> Option<(S::V, S::M)> {
        let (double, holds) = forked(simd, b);
        Some((a + double, holds))
    }
}

/// `a - 2 b`, vectors taking turns.
pub struct InTurn;
impl<E: Float> Map2<E> for InTurn {
    const UNROLL: usize = 2;
    const UNROLL_32: usize = 4;
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, a: S::V, b: S::V) -> S::V {
        b.neg_mul_add(simd.splat(E::from_f64(2.0)), a)
    }
}

/// `a - b / 3`.
pub struct Uneven;
impl<E: Float> Map2<E> for Uneven {
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, a: S::V, b: S::V) -> S::V {
        a - b / simd.splat(E::from_f64(3.0))
    }
}

/// `a < b ? b : a` by masks, one in flight.
pub struct Larger;
impl<E: Float> Map2<E> for Larger {
    const UNROLL: usize = 1;
    #[inline(always)]
    fn apply<S: Lanes<E>>(_simd: S, a: S::V, b: S::V) -> S::V {
        let less = a.lt(b);
        if less.all() { b } else { S::V::from_bits(b.to_bits().select(less, a.to_bits())) }
    }
}

/// `a + b / 3 − c / 7`.
pub struct Weighted;
impl<E: Float> Map3<E> for Weighted {
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, a: S::V, b: S::V, c: S::V) -> S::V {
        a + b / simd.splat(E::from_f64(3.0)) - c / simd.splat(E::from_f64(7.0))
    }
}

kernels! {
    unary {
        /// `x * x - 1/x`.
        short Short;
        /// `max(x, 2 x + 1)`.
        long Long;
        /// `2 x`.
        forked_double Forked;
    }
    binary {
        /// `a - b / 3`.
        uneven Uneven;
        /// `max(a, b)`.
        larger Larger;
        /// `a + 2 b`.
        forked_sum ForkedSum;
        /// `a - 2 b`.
        in_turn InTurn;
    }
    ternary {
        /// `a + b / 3 − c / 7`.
        weighted Weighted;
    }
}

fn values<E: Float>(len: usize, seed: usize) -> Vec<E> {
    (0..len).map(|i| E::from_f64(((i * 37 + seed * 11) % 101) as f64 / 7.0 - 6.5)).collect()
}

fn bits<E: Float>(x: &[E]) -> Vec<u64> {
    x.iter().map(|x| x.to_f64().to_bits()).collect()
}

fn check_unary<E: Float, F: Unary<E>>(isa: Isa, f: impl Fn(E) -> E) {
    for len in 0..=unless_miri(130, 3) {
        for offset in [0, 1, 3, 8, 15] {
            let input: Box<[E]> = values(offset + len, len).into();
            let expected: Vec<E> = input[offset..].iter().map(|&x| f(x)).collect();
            let mut out: Box<[E]> = vec![E::NAN; offset + len].into();
            F::run(&input[offset..], &mut out[offset..]);
            assert_eq!(bits(&out[offset..]), bits(&expected), "{} {len} on {isa}", F::NAME);
            assert_eq!(bits(&out[..offset]), bits(&vec![E::NAN; offset]));
            let mut in_place = input.clone();
            F::run_in_place(&mut in_place[offset..]);
            assert_eq!(bits(&in_place[offset..]), bits(&expected), "{} in place", F::NAME);
            assert_eq!(bits(&in_place[..offset]), bits(&input[..offset]));
        }
    }
}

fn check_binary<E: Float, F: Binary<E>>(isa: Isa, f: impl Fn(E, E) -> E) {
    for len in 0..=unless_miri(130, 3) {
        let (a, b): (Box<[E]>, Box<[E]>) = (values(len, 1).into(), values(len, 2).into());
        let (s, t) = (E::from_f64(0.7), E::from_f64(-1.3));
        let arguments = [
            (Arg::Slice(&a[..]), Arg::Slice(&b[..])),
            (Arg::Slice(&a), Arg::Scalar(t)),
            (Arg::Scalar(s), Arg::Slice(&b)),
            (Arg::Scalar(s), Arg::Scalar(t)),
        ];
        for (x, y) in arguments {
            let at = |arg: Arg<E>, i: usize| match arg {
                Arg::Slice(x) => x[i],
                Arg::Scalar(x) => x,
            };
            let expected: Vec<E> = (0..len).map(|i| f(at(x, i), at(y, i))).collect();
            let mut out: Box<[E]> = vec![E::NAN; len].into();
            F::run(x, y, &mut out[..]);
            assert_eq!(bits(&out), bits(&expected), "{} {len} on {isa}", F::NAME);
            if let Arg::Slice(x) = x {
                let mut left: Box<[E]> = x.into();
                F::run_in_place_left(&mut left, y);
                assert_eq!(bits(&left), bits(&expected), "{} {len} on {isa}", F::NAME);
            }
            if let Arg::Slice(y) = y {
                let mut right: Box<[E]> = y.into();
                F::run_in_place_right(x, &mut right);
                assert_eq!(bits(&right), bits(&expected), "{} {len} on {isa}", F::NAME);
            }
        }
    }
}

type InPlace<E, const N: usize> = fn([Option<BlockArg<E>>; N], Block, &mut [E]);

/// Rows of the arguments apart, repeated, backwards or a value each; between rows of the result nothing
/// is written.
fn check_block<E: Float, const N: usize>(
    name: &str,
    isa: Isa,
    f: impl Fn([E; N]) -> E,
    run: impl Fn([BlockArg<E>; N], Block, &mut Vec<E>),
    in_place: Option<InPlace<E, N>>,
) {
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
                run(arguments, shape, &mut y);
                assert_eq!(bits(&y), expected, "{name} {arguments:?} on {isa}");
                let Some(in_place) = in_place else { continue };
                for place in 0..N {
                    let mut y = filled(&|r, c| at(arguments[place], r, c));
                    let mut given = arguments.map(Some);
                    given[place] = None;
                    in_place(given, shape, &mut y);
                    assert_eq!(bits(&y), expected, "{name} in place of {place} on {isa}");
                }
            }
        }
    }
}

fn check_all<E: Float>(isa: Isa)
where
    Short: Unary<E>,
    Long: Unary<E>,
    Forked: Unary<E>,
    Uneven: Binary<E>,
    Larger: Binary<E>,
    ForkedSum: Binary<E>,
    InTurn: Binary<E>,
    Weighted: Ternary<E>,
{
    check_unary::<E, Short>(isa, |x| x * x - E::ONE / x);
    check_unary::<E, Forked>(isa, |x| x + x);
    check_unary::<E, Long>(isa, |x| {
        let y = E::mul_add(x, E::from_f64(2.0), E::ONE);
        if x > y { x } else { y }
    });
    check_binary::<E, Uneven>(isa, |a, b| a - b / E::from_f64(3.0));
    check_binary::<E, Larger>(isa, |a, b| if a < b { b } else { a });
    check_binary::<E, ForkedSum>(isa, |a, b| a + (b + b));
    check_binary::<E, InTurn>(isa, |a, b| a - (b + b));
    check_block("forked", isa, |[x]| x + x, |[x], shape, y| Forked::run_block(x, shape, y), None);
    check_block(
        "uneven",
        isa,
        |[a, b]| a - b / E::from_f64(3.0),
        |[a, b], shape, y| Uneven::run_block(a, b, shape, y),
        Some(Uneven::run_block_in_place),
    );
    check_block(
        "larger",
        isa,
        |[a, b]| if a < b { b } else { a },
        |[a, b], shape, y| Larger::run_block(a, b, shape, y),
        Some(Larger::run_block_in_place),
    );
    check_block(
        "forked sum",
        isa,
        |[a, b]| a + (b + b),
        |[a, b], shape, y| ForkedSum::run_block(a, b, shape, y),
        Some(ForkedSum::run_block_in_place),
    );
    check_block(
        "in turn",
        isa,
        |[a, b]| a - (b + b),
        |[a, b], shape, y| InTurn::run_block(a, b, shape, y),
        Some(InTurn::run_block_in_place),
    );
    check_block(
        "weighted",
        isa,
        |[a, b, c]| a + b / E::from_f64(3.0) - c / E::from_f64(7.0),
        |[a, b, c], shape, y| Weighted::run_block(a, b, c, shape, y),
        Some(Weighted::run_block_in_place),
    );
}

#[test]
fn bits_depend_on_nothing_but_the_value() {
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
    let mut y = Box::new_uninit_slice(77);
    functions::long(&x, &mut y[..]);
    functions::forked_double(&x, &mut y[..]);
    functions::larger(&[0.0; 77], &x, &mut y[..]);
    functions::forked_sum(&x, &x, &mut y[..]);
    functions::in_turn(&x, &x, &mut y[..]);
    functions::weighted(&x, &x, &x, &mut y[..]);
    functions::short(&x, &mut y[..]);
    // SAFETY: the kernel wrote every element.
    let y = unsafe { Box::<[MaybeUninit<f32>]>::assume_init(y) };
    assert!(x.iter().zip(&y).all(|(x, y)| x * x - 1.0 / x == *y));
}

#[test]
#[should_panic(expected = "short: an input has 3 elements, the output 4")]
fn unary_lengths_must_agree() {
    functions::short(&[1.0f32; 3], &mut [0.0; 4][..]);
}

#[test]
#[should_panic(expected = "uneven: an input has 5 elements, the output 4")]
fn binary_lengths_must_agree() {
    functions::uneven(&[1.0f64; 4], &[1.0; 5], &mut [0.0; 4][..]);
}

#[test]
#[should_panic(expected = "uneven: Block { rows: 2, cols: 3, stride: 3 } exceeds 5 elements")]
fn rows_lie_inside_their_slice() {
    let x = BlockArg { data: &[1.0f32; 6], start: 0, stride: 3, is_value: false };
    let short = BlockArg { data: &[1.0f32; 5], ..x };
    let shape = Block { rows: 2, cols: 3, stride: 3 };
    Uneven::run_block(x, short, shape, &mut [0.0; 6][..]);
}

#[test]
#[should_panic(expected = "exceeds 2 elements")]
fn rows_backwards_lie_inside_their_slice() {
    let x = BlockArg { data: &[1.0f32; 6], start: 0, stride: 3, is_value: false };
    let column = BlockArg { data: &[1.0f32; 2], start: 0, stride: -1, is_value: true };
    let shape = Block { rows: 2, cols: 3, stride: 3 };
    Uneven::run_block(x, column, shape, &mut [0.0; 6][..]);
}
