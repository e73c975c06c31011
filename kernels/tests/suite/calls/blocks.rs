//! Functions on rows: [`Kernel::run_block`], also in place, comparisons and selection.

use half::bf16;
use swath_kernels::{
    Block, BlockArg, Compare, Comparison, Function, NumberTest, Place, Select, Stored,
    compare_block, math, select_block, test_numbers_block, with_place,
};

use super::{Call, Cell, Part, Slot, any, call, changed, input, output};

/// Layouts of an argument's rows.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rows {
    /// Contiguous.
    Adjacent,
    /// With two elements between them, from the last to the first.
    Backwards,
    /// One row, repeated.
    Repeated,
    /// One value per row.
    Column,
}

impl Rows {
    fn len(self, rows: usize, cols: usize) -> usize {
        match self {
            Rows::Adjacent => rows * cols,
            Rows::Backwards => (rows - 1) * (cols + 2) + cols,
            Rows::Repeated => cols,
            Rows::Column => rows,
        }
    }

    fn of<E>(self, data: &[E], rows: usize, cols: usize) -> BlockArg<'_, E> {
        let gap = cols + 2;
        let (start, stride, is_value) = match self {
            Rows::Adjacent => (0, cols as isize, false),
            Rows::Backwards => ((rows - 1) * gap, -(gap as isize), false),
            Rows::Repeated => (0, 0, false),
            Rows::Column => (0, 1, true),
        };
        BlockArg { data, start, stride, is_value }
    }

    /// If nothing is computed, any length is accepted.
    fn slot(self, slot: Slot, cols: usize) -> Slot {
        if cols == 0 { slot.any_length() } else { slot.at_least() }
    }
}

use Rows::{Adjacent, Backwards, Column, Repeated};

const SINGLES: [[Rows; 1]; 4] = [[Adjacent], [Repeated], [Backwards], [Column]];

const PAIRS: [[Rows; 2]; 6] = [
    [Adjacent, Adjacent],
    [Adjacent, Repeated],
    [Column, Adjacent],
    [Backwards, Column],
    [Repeated, Backwards],
    [Column, Column],
];

const TRIPLES: [[Rows; 3]; 6] = [
    [Adjacent, Adjacent, Adjacent],
    [Adjacent, Repeated, Column],
    [Column, Adjacent, Backwards],
    [Backwards, Column, Adjacent],
    [Repeated, Backwards, Repeated],
    [Column, Column, Column],
];

pub fn calls(len: usize) -> Vec<Call> {
    let mut calls = Vec::new();
    of_real::<f32>(&mut calls, len);
    of_real::<f64>(&mut calls, len);
    comparisons::<f32>(&mut calls, len);
    comparisons::<bf16>(&mut calls, len);
    comparisons::<i64>(&mut calls, len);
    selections::<f32>(&mut calls, len);
    selections::<u16>(&mut calls, len);
    calls
}

fn of_real<E: Cell + Stored>(calls: &mut Vec<Call>, cols: usize) {
    unary::<E, math::Neg>(calls, "neg", cols);
    unary::<E, math::Exp>(calls, "exp", cols);
    binary::<E, math::Sub>(calls, "sub", cols);
    binary::<E, math::Hypot>(calls, "hypot", cols);
    ternary::<E, math::MulAdd>(calls, "mul_add", cols);
    ternary::<E, math::EluGrad>(calls, "elu_grad", cols);
}

fn unary<E: Cell + Stored, F: Function<1>>(calls: &mut Vec<Call>, name: &str, cols: usize) {
    for kinds in SINGLES {
        let run = |x: [BlockArg<E>; 1], shape, y: &mut Place<E>| F::KERNEL.run_block(x, shape, y);
        apart::<E, E, 1, 2>(calls, "run_block", name, kinds, cols, run);
    }
}

fn binary<E: Cell + Stored, F: Function<2>>(calls: &mut Vec<Call>, name: &str, cols: usize) {
    for kinds in PAIRS {
        let run = |x: [BlockArg<E>; 2], shape, y: &mut Place<E>| F::KERNEL.run_block(x, shape, y);
        apart::<E, E, 2, 3>(calls, "run_block", name, kinds, cols, run);
        in_place::<E, 2>(calls, name, kinds, cols, |x, shape, y| {
            F::KERNEL.run_block_in_place(x, shape, &mut Place::cached(y))
        });
    }
}

fn ternary<E: Cell + Stored, F: Function<3>>(calls: &mut Vec<Call>, name: &str, cols: usize) {
    for kinds in TRIPLES {
        let run = |x: [BlockArg<E>; 3], shape, y: &mut Place<E>| F::KERNEL.run_block(x, shape, y);
        apart::<E, E, 3, 4>(calls, "run_block", name, kinds, cols, run);
        in_place::<E, 3>(calls, name, kinds, cols, |x, shape, y| {
            F::KERNEL.run_block_in_place(x, shape, &mut Place::cached(y))
        });
    }
}

fn comparisons<T: Cell + Compare>(calls: &mut Vec<Call>, cols: usize) {
    for kinds in PAIRS {
        for op in [Comparison::Ne, Comparison::Ge] {
            let name = format!("{op:?}");
            let run = move |[a, b]: [BlockArg<T>; 2], shape, y: &mut Place<u8>| {
                compare_block(op, a, b, shape, y);
            };
            apart::<T, u8, 2, 3>(calls, "compare_block", &name, kinds, cols, run);
        }
    }
    for kinds in SINGLES {
        let run = |[x]: [BlockArg<T>; 1], shape, y: &mut Place<u8>| {
            test_numbers_block(NumberTest::IsFinite, x, shape, y);
        };
        apart::<T, u8, 1, 2>(calls, "test_numbers_block", "", kinds, cols, run);
        if matches!(T::KIND, super::Kind::Integer(_)) {
            let added = calls.len() - 2..;
            let portable: Vec<Call> = calls.drain(added).map(Call::portable).collect();
            calls.extend(portable);
        }
    }
}

/// More rows than are prefetched, unless that takes too much memory or time.
fn rows_of(cols: usize) -> usize {
    if cols <= 130 && !cfg!(miri) { 11 } else { 3 }
}

/// A result whose rows have gaps, which must not change.
fn result<E: Cell>(cols: usize, gap: usize) -> (Block, Slot) {
    let shape = Block { rows: rows_of(cols), cols, stride: cols + gap };
    let len = (shape.rows - 1) * shape.stride + cols;
    let y = if gap == 0 { output::<E>(len) } else { changed(&any::<E>(len, 3)) };
    (shape, Adjacent.slot(y, cols))
}

fn inputs<E: Cell, const N: usize>(kinds: [Rows; N], cols: usize) -> [Slot; N] {
    let mut seed = 0;
    kinds.map(|rows| {
        seed += 1;
        rows.slot(input(&any::<E>(rows.len(rows_of(cols), cols), seed)), cols)
    })
}

/// Calls with a separate result, whose rows have gaps or not; `M` is one more than `N`.
fn apart<E: Cell, Y: Cell, const N: usize, const M: usize>(
    calls: &mut Vec<Call>,
    function: &'static str,
    name: &str,
    kinds: [Rows; N],
    cols: usize,
    f: impl Fn([BlockArg<E>; N], Block, &mut Place<Y>) + Copy + 'static,
) {
    for gap in [0, 2] {
        let (shape, y) = result::<Y>(cols, gap);
        let slots = inputs::<E, N>(kinds, cols).into_iter().chain([y]).collect::<Vec<Slot>>();
        let run = move |parts: [&mut Part<'_>; M]| {
            let mut parts = Vec::from(parts);
            let y = parts.pop().expect("the result");
            let mut parts = parts.into_iter();
            let arguments = kinds.map(|rows| {
                let x: &mut Part<'_> = parts.next().expect("as many as arguments");
                rows.of(x.of::<E>(), shape.rows, cols)
            });
            // With non-temporal stores, if there are gaps.
            let whole = if gap == 0 { 0 } else { 1 << 30 };
            with_place(y.of(), whole, |mut y| f(arguments, shape, &mut y));
        };
        let variant = format!("{name} {kinds:?} gap {gap}");
        let slots: [Slot; M] = slots.try_into().ok().expect("arguments and the result");
        calls.push(call::<E, M>(function, variant, slots, run));
    }
}

/// Calls in place of each argument that has the layout of the result.
fn in_place<E: Cell, const N: usize>(
    calls: &mut Vec<Call>,
    name: &str,
    kinds: [Rows; N],
    cols: usize,
    f: fn([Option<BlockArg<E>>; N], Block, &mut [E]),
) {
    for place in (0..N).filter(|&k| kinds[k] == Adjacent) {
        let (shape, _) = result::<E>(cols, 0);
        let mut slots = inputs::<E, N>(kinds, cols);
        slots[place] = Adjacent.slot(changed(&any::<E>(shape.rows * cols, place + 1)), cols);
        let run = move |parts: [&mut Part<'_>; N]| {
            let mut arguments = [None; N];
            let mut y: &mut [E] = &mut [];
            for (k, part) in parts.into_iter().enumerate() {
                match k == place {
                    true => y = part.of(),
                    false => arguments[k] = Some(kinds[k].of(part.of::<E>(), shape.rows, cols)),
                }
            }
            f(arguments, shape, y);
        };
        let variant = format!("{name} {kinds:?} in place of {place}");
        calls.push(call::<E, N>("run_block_in_place", variant, slots, run));
    }
}

fn selections<T: Cell + Select>(calls: &mut Vec<Call>, cols: usize) {
    for kinds in TRIPLES {
        for gap in [0, 2] {
            let (shape, y) = result::<T>(cols, gap);
            let [_, a, b] = inputs::<T, 3>(kinds, cols);
            let mask: Vec<u8> = any(kinds[0].len(shape.rows, cols), 9);
            let mask: Vec<u8> = mask.into_iter().map(|x| x & 1).collect();
            let mask = kinds[0].slot(input(&mask), cols);
            let run = move |[mask, a, b, y]: [&mut Part<'_>; 4]| {
                let mask = kinds[0].of(mask.of(), shape.rows, cols);
                let a = kinds[1].of(a.of(), shape.rows, cols);
                let b = kinds[2].of(b.of(), shape.rows, cols);
                select_block(mask, a, b, shape, y.of::<T>());
            };
            let variant = format!("{kinds:?} gap {gap}");
            calls.push(call::<T, 4>("select_block", variant, [mask, a, b, y], run));
        }
    }
}
