//! Functions of two arguments on rows: [`Binary::run_block`] and in place.

use swath_kernels::{Binary, Block, BlockArg, math, with_place};

use super::{Call, Cell, Part, Slot, any, call, changed, input, output};

/// How an argument's rows lie.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rows {
    /// One behind the other.
    Adjacent,
    /// With two elements between, from the last to the first.
    Backwards,
    /// One for all.
    Repeated,
    /// A value a row.
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

    /// Where nothing is computed, lengths don't matter.
    fn slot(self, slot: Slot, cols: usize) -> Slot {
        if cols == 0 { slot.any_length() } else { slot.at_least() }
    }
}

const PAIRS: [[Rows; 2]; 6] = {
    use Rows::{Adjacent, Backwards, Column, Repeated};
    [
        [Adjacent, Adjacent],
        [Adjacent, Repeated],
        [Column, Adjacent],
        [Backwards, Column],
        [Repeated, Backwards],
        [Column, Column],
    ]
};

pub fn calls(len: usize) -> Vec<Call> {
    let mut calls = Vec::new();
    of::<f32, math::Sub>(&mut calls, "sub", len);
    of::<f64, math::Sub>(&mut calls, "sub", len);
    of::<f32, math::Hypot>(&mut calls, "hypot", len);
    of::<f64, math::Hypot>(&mut calls, "hypot", len);
    calls
}

fn of<E: Cell, F: Binary<E>>(calls: &mut Vec<Call>, name: &str, cols: usize) {
    // More than are asked for ahead, where that is not too much memory or work.
    let rows = if cols <= 130 && !cfg!(miri) { 11 } else { 3 };
    for pair in PAIRS {
        let slots = [0, 1].map(|k| {
            let x = any::<E>(pair[k].len(rows, cols), k + 1);
            pair[k].slot(input(&x), cols)
        });
        let [a, b] = slots.clone();
        for gap in [0, 2] {
            let shape = Block { rows, cols, stride: cols + gap };
            let y_len = (rows - 1) * shape.stride + cols;
            // What lies between rows stays as it is.
            let y = match gap {
                0 => output::<E>(y_len),
                _ => changed(&any::<E>(y_len, 3)),
            };
            let y = Rows::Adjacent.slot(y, cols);
            let run = move |[a, b, y]: [&mut Part<'_>; 3]| {
                let (a, b) = (pair[0].of(a.of::<E>(), rows, cols), pair[1].of(b.of(), rows, cols));
                match gap {
                    0 => F::run_block(a, b, shape, y.of::<E>()),
                    // Past the caches.
                    _ => with_place(y.of(), 1 << 30, |mut y| F::run_block(a, b, shape, &mut y)),
                }
            };
            let variant = format!("{name} {pair:?} gap {gap}");
            calls.push(call::<E, 3>("run_block", variant, [a.clone(), b.clone(), y], run));
        }
        for place in [0, 1].into_iter().filter(|&k| pair[k] == Rows::Adjacent) {
            let shape = Block { rows, cols, stride: cols };
            let other = 1 - place;
            let y = Rows::Adjacent.slot(changed(&any::<E>(rows * cols, place + 1)), cols);
            let run = move |[x, y]: [&mut Part<'_>; 2]| {
                let x = pair[other].of(x.of::<E>(), rows, cols);
                let mut arguments = [None; 2];
                arguments[other] = Some(x);
                F::run_block_in_place(arguments, shape, y.of());
            };
            let variant = format!("{name} {pair:?} in place of {place}");
            calls.push(call::<E, 2>("run_block_in_place", variant, [slots[other].clone(), y], run));
        }
    }
}
