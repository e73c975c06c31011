//! An element's bits depend only on its arguments: not on the length of the slice, the element's
//! position in it, the slice's alignment, or the address of the result.

use crate::calls;
use std::collections::{BTreeMap, HashMap};

use crate::functions::{Real, of_gradients, of_one_argument, of_two_arguments};
use swath_kernels::testing::{
    ALIGNED_FROM, is_full, is_quick, is_sampled, levels, unless_miri, with_isa,
};
use swath_kernels::{Arg, Isa, Kernel};

const LONGEST: usize = unless_miri(130, 9);
const OFFSETS: usize = unless_miri(16, 2);
/// Lengths from which on rows are split at an aligned address, if all slices are aligned there.
const LONG: [usize; 2] = unless_miri([ALIGNED_FROM, ALIGNED_FROM + 88], [LONGEST; 2]);

/// Arguments of all classes and exponents, as many as the longest slice at the last offset needs.
fn arguments<E: Real>(seed: usize) -> Vec<E> {
    let all = E::inputs(unless_miri(1 << 12, 1 << 3));
    // Some tens of ordinary numbers among the others, since most bit patterns are very large or tiny.
    let pick = |i: usize| match i % 3 {
        0 => E::from_f64((i as f64 * 0.37 + seed as f64).sin() * 3.0),
        _ => all[(i * 61 + seed * 7) % all.len()],
    };
    (0..LONG[1] + OFFSETS + LINE / size_of::<E>()).map(pick).collect()
}

const LINE: usize = 64;

/// The elements from the first cache line boundary on.
fn from_a_line<E>(x: &mut [E]) -> &mut [E] {
    let at = x.as_ptr().align_offset(LINE);
    &mut x[at..][..LONG[1] + OFFSETS]
}

fn assert_same<E: Real>(what: &dyn Fn() -> String, got: &[E], expected: &[E]) {
    for (i, (y, expected)) in got.iter().zip(expected).enumerate() {
        let same = y.canonical() == expected.canonical();
        assert!(same, "{}, element {i}: {y:e}, alone {expected:e}", what());
    }
}

fn on_every_isa(mut f: impl FnMut(Isa)) {
    for isa in levels() {
        with_isa(isa, || f(isa));
    }
}

/// Every length and offset within the arguments. By default, at each length up to [`LONGEST`], a quarter of
/// the offsets (one on the portable level), rotating with the length. Under Miri, which runs scalar code,
/// only length 0 and all of the arguments.
fn windows(isa: Isa) -> impl Iterator<Item = (usize, usize)> {
    let lengths = (0..=LONGEST).chain(unless_miri(&LONG[..], &[]).iter().copied());
    let all = lengths.flat_map(|len| (0..OFFSETS).map(move |offset| (offset, len)));
    let every = if isa == Isa::Scalar { OFFSETS } else { 4 };
    all.filter(move |&(offset, len)| match cfg!(miri) {
        true => matches!((offset, len), (0, 0) | (1, LONGEST)),
        false => len > LONGEST || is_sampled(offset + len, every),
    })
}

/// Ordinary numbers, with an arbitrary number at every 41st position: kernels with a fast path for ordinary
/// numbers enter and leave it.
fn mostly_ordinary<E: Real>() -> Vec<E> {
    let mut x = arguments::<E>(1);
    for (i, x) in x.iter_mut().enumerate().filter(|(i, _)| i % 41 != 40) {
        *x = E::from_f64((i as f64 * 0.37).sin() * 3.0);
    }
    x
}

fn check1<E: Real>(kernel: &Kernel<1>) {
    check1_of::<E>(kernel, arguments(1));
    // Scalar code has no fast paths.
    if !cfg!(miri) {
        check1_of::<E>(kernel, mostly_ordinary());
    }
}

fn check1_of<E: Real>(kernel: &Kernel<1>, mut x: Vec<E>) {
    let name = kernel.name();
    let mut y = x.clone();
    let (x, y) = (&*from_a_line(&mut x), from_a_line(&mut y));
    on_every_isa(|isa| {
        let mut alone = x.to_vec();
        for (x, y) in x.chunks(1).zip(alone.chunks_mut(1)) {
            kernel.run([Arg::Slice(x)], y);
        }
        for (offset, len) in windows(isa) {
            let what = |how| move || format!("{name}, {isa}, {len} from {offset}, {how}");
            let window = offset..offset + len;
            // The result has another offset than the argument.
            let out = (OFFSETS - 1 - offset)..(OFFSETS - 1 - offset) + len;
            kernel.run([Arg::Slice(&x[window.clone()])], &mut y[out.clone()]);
            assert_same(&what("apart"), &y[out], &alone[window.clone()]);
            if len >= ALIGNED_FROM {
                y.fill(E::from_f64(f64::NAN));
                kernel.run([Arg::Slice(&x[window.clone()])], &mut y[window.clone()]);
                assert_same(&what("alike"), &y[window.clone()], &alone[window.clone()]);
            }
            y[window.clone()].copy_from_slice(&x[window.clone()]);
            kernel.run_in_place([None], &mut y[window.clone()]);
            assert_same(&what("in place"), &y[window.clone()], &alone[window]);
        }
    });
}

fn check2<E: Real>(kernel: &Kernel<2>) {
    let name = kernel.name();
    let [mut a, mut b, mut y] = [2, 3, 4].map(arguments::<E>);
    let (a, b, y) = (&*from_a_line(&mut a), &*from_a_line(&mut b), from_a_line(&mut y));
    on_every_isa(|isa| {
        let mut alone = a.to_vec();
        for (i, y) in alone.chunks_mut(1).enumerate() {
            kernel.run([Arg::Scalar(a[i]), Arg::Scalar(b[i])], y);
        }
        for (offset, len) in windows(isa) {
            let what = |how| move || format!("{name}, {isa}, {len} from {offset}, {how}");
            let window = offset..offset + len;
            let out = (OFFSETS - 1 - offset)..(OFFSETS - 1 - offset) + len;
            let expected = &alone[window.clone()];
            let (a, b) = (&a[window.clone()], &b[window.clone()]);
            kernel.run([Arg::Slice(a), Arg::Slice(b)], &mut y[out.clone()]);
            assert_same(&what("apart"), &y[out], expected);
            let y = &mut y[window];
            if len >= ALIGNED_FROM {
                y.fill(E::from_f64(f64::NAN));
                kernel.run([Arg::Slice(a), Arg::Slice(b)], y);
                assert_same(&what("alike"), y, expected);
            }
            y.copy_from_slice(a);
            kernel.run_in_place([None, Some(Arg::Slice(b))], y);
            assert_same(&what("in place of the left"), y, expected);
            y.copy_from_slice(b);
            kernel.run_in_place([Some(Arg::Slice(a)), None], y);
            assert_same(&what("in place of the right"), y, expected);
        }
        // One number for all elements.
        let a = &a[..unless_miri(a.len(), 3)];
        let y = &mut y[..a.len()];
        for number in 0..unless_miri(20, 1) {
            let mut expected = a.to_vec();
            let number = b[number * 6];
            kernel.run([Arg::Slice(a), Arg::Slice(&vec![number; a.len()])], &mut expected);
            kernel.run([Arg::Slice(a), Arg::Scalar(number)], y);
            assert_same(&|| format!("{name}, {isa}, {number:e} on the right"), y, &expected);
            y.copy_from_slice(a);
            kernel.run_in_place([None, Some(Arg::Scalar(number))], y);
            assert_same(&|| format!("{name}, {isa}, in place, {number:e}"), y, &expected);
            kernel.run([Arg::Slice(&vec![number; a.len()]), Arg::Slice(a)], &mut expected);
            kernel.run([Arg::Scalar(number), Arg::Slice(a)], y);
            assert_same(&|| format!("{name}, {isa}, {number:e} on the left"), y, &expected);
            y.copy_from_slice(a);
            kernel.run_in_place([Some(Arg::Scalar(number)), None], y);
            assert_same(&|| format!("{name}, {isa}, {number:e}, in place"), y, &expected);
        }
    });
}

/// In runs of vectors, NaN in one lane must not change how another lane is computed. By default each number
/// is put at every third position, which covers each lane of a vector in turn.
fn check_beside_nan<E: Real>(kernel: &Kernel<1>, signalling: E, numbers: &[E]) {
    let name = kernel.name();
    const LEN: usize = unless_miri(64, 3);
    on_every_isa(|isa| {
        let places = (0..LEN).flat_map(|at| numbers.iter().enumerate().map(move |x| (at, x)));
        let places = places.filter(|(at, (i, _))| cfg!(miri) || is_sampled(at + i, 3));
        for (at, (_, &number)) in places {
            let mut alone = [number];
            kernel.run_in_place([None], &mut alone);
            for nan_at in (0..LEN).filter(|&i| i != at && (i % 5 == 0 || i.abs_diff(at) < 9)) {
                let mut y = [E::from_f64(1.25); LEN];
                (y[at], y[nan_at]) = (number, signalling);
                kernel.run_in_place([None], &mut y);
                let what = || format!("{name} of {number:e}, {isa}, {at} with a NaN at {nan_at}");
                assert_same(&what, &y[at..=at], &alone);
            }
        }
    });
}

#[test]
fn a_signalling_nan_does_not_change_its_neighbours() {
    let (f32s, f64s) = ([1e30, 2e4, -1e-40, -90.0], [1e200, 2e4, -1e-310, -740.0]);
    let [f32_nan, f64_nan] = [0x7f80_0001, 0x7ff0_0000_0000_0001];
    for function in of_one_argument() {
        check_beside_nan::<f32>(function.kernel, f32::from_bits(f32_nan as u32), &f32s);
        check_beside_nan::<f64>(function.kernel, f64::from_bits(f64_nan), &f64s);
    }
}

/// A pair has the same result alone and at any position among others, which decide whether a run of vectors
/// takes the fast path.
fn check_pairs<E: Real>(kernel: &Kernel<2>, pairs: &[[f64; 2]], nan: E) {
    let name = kernel.name();
    const LEN: usize = unless_miri(69, 3);
    let pairs: Vec<[E; 2]> = pairs.iter().map(|pair| pair.map(E::from_f64)).collect();
    let one = E::from_f64(1.0);
    let pairs = [pairs, vec![[nan, one], [one, nan], [nan, nan]]].concat();
    let [usual, beside] = [[1.25, 0.75], [-2.0, 3.0]].map(|pair| pair.map(E::from_f64));
    on_every_isa(|isa| {
        let alone = |[a, b]: [E; 2]| {
            let mut y = [nan];
            kernel.run([Arg::Slice(&[a]), Arg::Slice(&[b])], &mut y);
            y[0]
        };
        for (at, &pair) in (0..LEN).flat_map(|at| pairs.iter().map(move |pair| (at, pair))) {
            for other in [usual, beside] {
                let (mut a, mut b) = ([usual[0]; LEN], [usual[1]; LEN]);
                let mut expected = [alone(usual); LEN];
                for (i, pair) in [((at + LEN / 9 + 1) % LEN, other), (at, pair)] {
                    ([a[i], b[i]], expected[i]) = (pair, alone(pair));
                }
                let mut y = [nan; LEN];
                kernel.run([Arg::Slice(&a), Arg::Slice(&b)], &mut y);
                let what = || format!("{name} of {pair:?} at {at}, {isa}, beside {other:?}");
                assert_same(&what, &y, &expected);
            }
        }
    });
}

#[test]
fn pairs_have_the_same_bits_among_any_others() {
    let (zero, infinity) = (0.0, f64::INFINITY);
    let both = [
        [infinity, 0.5],
        [-infinity, 3.0],
        [zero, -1.0],
        [-zero, 3.0],
        [zero, zero],
        [1.5, infinity],
        [0.5, -infinity],
        [-1.0, infinity],
        [-8.0, 1.0 / 3.0],
        [-2.0, 7.0],
        [-3.0, zero],
        [1.0, 1e30],
    ];
    let small = [
        [1e-40, 0.5],
        [1e-45, -0.25],
        [-1e-40, 3.0],
        [2.0, 127.5],
        [2.0, -126.5],
        [2.0, -140.0],
        [2.0, 200.0],
    ];
    let large = [
        [1e-310, 0.5],
        [5e-324, -0.25],
        [-1e-310, 3.0],
        [2.0, 1022.5],
        [2.0, -1022.5],
        [2.0, -1060.0],
        [2.0, 2000.0],
    ];
    let (f32s, f64s) = ([&both[..], &small].concat(), [&both[..], &large].concat());
    let [f32_nan, f64_nan] = [0x7f80_0001, 0x7ff0_0000_0000_0001];
    let check = |kernel| {
        check_pairs(kernel, &f32s, f32::from_bits(f32_nan as u32));
        check_pairs(kernel, &f64s, f64::from_bits(f64_nan));
    };
    of_two_arguments().for_each(|function| check(function.kernel));
    of_gradients().for_each(|function| check(function.kernel));
}

#[test]
fn functions_of_one_argument_f32() {
    of_one_argument().for_each(|function| check1::<f32>(function.kernel));
}

#[test]
fn functions_of_one_argument_f64() {
    of_one_argument().for_each(|function| check1::<f64>(function.kernel));
}

#[test]
fn functions_of_two_arguments_f32() {
    of_two_arguments().for_each(|function| check2::<f32>(function.kernel));
    of_gradients().for_each(|function| check2::<f32>(function.kernel));
}

#[test]
fn functions_of_two_arguments_f64() {
    of_two_arguments().for_each(|function| check2::<f64>(function.kernel));
    of_gradients().for_each(|function| check2::<f64>(function.kernel));
}

/// Every call; under Miri, which checks memory and not bits, the last four of each function and
/// element type: for three arguments those with slices only, for matrices those with gaps.
fn calls_of(len: usize) -> Vec<calls::Call> {
    let mut calls = calls::every(len);
    if cfg!(miri) && len > 0 {
        let mut kept: BTreeMap<String, usize> = BTreeMap::new();
        calls.reverse();
        calls.retain(|call| {
            // A `Place` is written by another function.
            let of_place = call.variant.split(' ').next().filter(|_| call.function == "with_place");
            let kind = [call.function, &call.dtype, of_place.unwrap_or("")].join(" ");
            let count = kept.entry(kind).or_default();
            *count += 1;
            *count <= 4
        });
        calls.reverse();
    }
    calls
}

/// The outputs of the call; panics if they differ between offsets.
fn anywhere(call: &calls::Call, isa: Isa, offsets: impl Iterator<Item = usize>) -> Vec<Vec<u8>> {
    let expected = call.outputs(isa, unless_miri(0, 1));
    for offset in offsets {
        let same = call.outputs(isa, offset) == expected;
        assert!(same, "{}, {isa}: different bits at an offset of {offset}", call.name());
    }
    expected
}

/// Four of the sixteen offsets at each length, rotating. By default one offset on the portable level, and all
/// lengths up to 40, then one in five, which covers every remainder after whole vectors.
#[test]
fn other_functions() {
    let longest = unless_miri(130, 3);
    let lengths = (0..=longest).step_by(unless_miri(if is_quick() { 5 } else { 1 }, longest));
    let lengths: Vec<usize> =
        lengths.filter(|&len| cfg!(miri) || len <= 40 || is_sampled(len, 5)).collect();
    let long = if cfg!(miri) { Vec::new() } else { calls_of(longest) };
    let prefixes_on = |isa| -> HashMap<String, Vec<Vec<u8>>> {
        let prefixes = long.iter().filter(|call| call.is_prefix);
        prefixes.map(|call| (call.name(), call.outputs(isa, 1))).collect()
    };
    let levels: Vec<_> = levels().into_iter().map(|isa| (isa, prefixes_on(isa))).collect();
    for len in lengths {
        let calls = calls_of(len);
        for (isa, prefixes) in &levels {
            let (isa, mut before) = (*isa, Vec::new());
            let most = if isa == Isa::Scalar && !is_full() { 1 } else { 4 };
            for call in &calls {
                let offsets = (1..calls::OFFSETS).filter(|offset| (offset + len).is_multiple_of(4));
                let outputs = anywhere(call, isa, offsets.take(unless_miri(most, 0)));
                let name = call.name();
                if let Some(long) = prefixes.get(&name) {
                    let same = outputs.iter().zip(long).all(|(y, long)| long.starts_with(y));
                    assert!(
                        same,
                        "{name}, {isa}: different bits in {len} elements and in {longest}"
                    );
                }
                if call.repeats && !cfg!(miri) {
                    assert!(
                        outputs == before,
                        "{name}, {isa}, {len}: differs from the call before it"
                    );
                }
                before = outputs;
            }
        }
    }
}
