//! Copies, transposes, permutations, fills; with ordinary and non-temporal
//! stores.

use swath_kernels as k;
use swath_kernels::{Permute, Plain, Transpose};

use super::{Call, Cell, Part, any, call, changed, input, output};

/// The size of a result that is written by non-temporal stores.
const LARGE: usize = 1 << 30;

pub fn calls(len: usize) -> Vec<Call> {
    let mut calls = Vec::new();
    of_plain::<i8>(&mut calls, len);
    of_plain::<u16>(&mut calls, len);
    of_plain::<f32>(&mut calls, len);
    of_plain::<u64>(&mut calls, len);
    calls
}

fn of_plain<T: Cell + Plain>(calls: &mut Vec<Call>, len: usize) {
    let number = T::any(5, 2);
    let target = output::<T>(len).any_length();
    let fill = |[y]: [&mut Part<'_>; 1], number: T| k::fill(y.of::<T>(), number);
    let run = move |parts: [&mut Part<'_>; 1]| fill(parts, number);
    calls.push(call::<T, 1>("fill", "", [target.clone()], run).prefix().portable());
    let run = move |[y]: [&mut Part<'_>; 1]| {
        k::with_place(y.of::<T>(), LARGE, |mut y| k::fill(&mut y, number));
    };
    calls.push(call::<T, 1>("with_place", "fill", [target], run).prefix());
    for (stride, offset) in [(1isize, 0), (2, 1), (3, 0), (0, 0), (-1, 0), (-2, 1)] {
        // The first element read, and one past the last.
        let reach = len.saturating_sub(1) * stride.unsigned_abs();
        let first = if stride < 0 { reach + offset } else { offset };
        let source = any::<T>(if len == 0 { 0 } else { reach + offset + 1 }, 1);
        let y = output::<T>(len).any_length();
        let slots = [input(&source).at_least(), y.clone()];
        let variant = format!("by {stride} from {first}");
        let run = move |[x, y]: [&mut Part<'_>; 2]| {
            k::copy_strided(x.of::<T>(), first, stride, y.of::<T>());
        };
        // A shorter result has only the first elements.
        let mut one = call::<T, 2>("copy_strided", variant, slots.clone(), run).portable();
        one.is_prefix = stride >= 0;
        calls.push(one);
        if stride == 1 {
            let run = move |[x, y]: [&mut Part<'_>; 2]| {
                let x = x.of::<T>();
                k::with_place(y.of(), LARGE, |mut y| k::copy_strided(x, first, 1, &mut y));
            };
            calls.push(call::<T, 2>("with_place", "copy_strided", slots, run).again());
        }
    }
    for [rows, cols] in [[len, 3], [2, len], [len, 33], [17, len]] {
        for gap in [0, 2] {
            transposes::<T>(calls, [rows, cols], gap);
        }
    }
    permutes::<T>(calls, len);
}

fn transposes<T: Cell + Plain>(calls: &mut Vec<Call>, [rows, cols]: [usize; 2], gap: usize) {
    let shape = Transpose {
        rows,
        cols,
        src_offset: gap,
        src_row_stride: cols + gap,
        dst_row_stride: rows + gap,
    };
    let is_empty = rows == 0 || cols == 0;
    let count = |rows: usize, cols: usize| {
        if is_empty { 0 } else { (rows - 1) * (cols + gap) + cols }
    };
    let source = any::<T>(if is_empty { 0 } else { gap + count(rows, cols) }, 1);
    // The elements between the rows must not change.
    let target = changed(&any::<T>(count(cols, rows), 2)).at_least();
    let slots = [input(&source).at_least(), target];
    let variant = format!("[{rows}, {cols}] and {gap}");
    let run = move |[x, y]: [&mut Part<'_>; 2]| k::transpose(x.of::<T>(), y.of::<T>(), shape);
    // Without vectors, if a side is too narrow for them.
    let is_small = rows * cols * size_of::<T>() <= 256;
    let is_partial = rows < 8 && !(rows * size_of::<T>()).is_multiple_of(32);
    let is_narrow = rows.max(cols) >= 16 && (is_partial || is_small && cols < 4);
    let of_narrow = |call: Call| if is_narrow { call.portable() } else { call };
    calls.push(of_narrow(call::<T, 2>("transpose", &*variant, slots.clone(), run)));
    let run = move |[x, y]: [&mut Part<'_>; 2]| {
        let x = x.of::<T>();
        k::with_place(y.of(), LARGE, |mut y| k::transpose(x, &mut y, shape));
    };
    let past = call::<T, 2>("with_place", format!("transpose {variant}"), slots, run);
    calls.push(of_narrow(past).again());
}

fn permutes<T: Cell + Plain>(calls: &mut Vec<Call>, len: usize) {
    let n = len as isize;
    let layouts: [(&[usize], &[isize]); 8] = [
        (&[len], &[-1]),
        (&[3, len], &[n + 1, 1]),
        (&[len, 4], &[1, n]),
        (&[5, len], &[-1, 5]),
        (&[2, len, 3], &[3 * n, 1, n]),
        (&[len, 2, 9], &[0, 20, 2]),
        (&[3, len, 2, 2], &[1, 12, 3, 6]),
        (&[len, 3, 2], &[6, 1, 3]),
    ];
    for (dims, strides) in layouts {
        let (dims, strides) = (dims.to_vec(), strides.to_vec());
        let count: usize = dims.iter().product();
        let reach = |sign: isize| -> usize {
            let steps = dims.iter().zip(&strides);
            steps.map(|(&dim, &step)| dim.saturating_sub(1) * (step * sign).max(0) as usize).sum()
        };
        let offset = reach(-1);
        let source = any::<T>(if count == 0 { 0 } else { offset + reach(1) + 1 }, 1);
        let slots = [input(&source).at_least(), output::<T>(count)];
        let variant = format!("{dims:?} by {strides:?}");
        let run = move |[x, y]: [&mut Part<'_>; 2], streams: bool| {
            let shape = Permute { dims: &dims, strides: &strides, offset };
            let x = x.of::<T>();
            match streams {
                false => k::permute(x, y.of::<T>(), shape),
                true => k::with_place(y.of(), LARGE, |mut y| k::permute(x, &mut y, shape)),
            }
        };
        let past = run.clone();
        let through = move |parts: [&mut Part<'_>; 2]| run(parts, false);
        calls.push(call::<T, 2>("permute", &*variant, slots.clone(), through).portable());
        let past = move |parts: [&mut Part<'_>; 2]| past(parts, true);
        let variant = format!("permute {variant}");
        calls.push(call::<T, 2>("with_place", variant, slots, past).portable().again());
    }
}
