//! Products of shapes and strides that cover each path through the loops around the micro-kernel.
//! `hashes.rs` records them beside the calls of every length.

use half::{bf16, f16};
use swath_kernels::{Bias, Factor, Float as _, Gemm, MatMut, MatRef, PackedB, Workspace, gemm};

use super::{Call, Cell, Part, call, changed, input, numbers};

/// Shapes `[m, k, n]`, with the name of their path.
type Path = (&'static str, &'static [[usize; 3]]);

const PATHS: [Path; 6] = [
    // One row, one column, or both; the larger B is streamed.
    ("vector", &[[1, 300, 131], [1, 520, 300], [300, 520, 1], [1, 700, 1], [1, 1, 90]]),
    // B in place or stored transposed, packed from 13 rows on; the larger B, over half a MiB,
    // streamed.
    ("skinny", &[[2, 300, 70], [7, 520, 260], [12, 270, 490], [13, 40, 90], [16, 300, 70]]),
    // All operands fit into the nearest caches.
    ("small", &[[4, 4, 4], [17, 33, 31], [64, 64, 64], [48, 96, 96]]),
    ("small_k", &[[40, 1, 70], [100, 3, 50], [33, 0, 9]]),
    // One more value of k than a block, and several blocks.
    ("blocks_of_k", &[[20, 257, 40], [9, 1030, 17], [30, 512, 33]]),
    // Several groups of rows, several panels of B.
    ("blocked", &[[50, 300, 140], [14, 30, 1100], [97, 40, 100]]),
];

/// 16-bit floats need twice as many elements for the half MiB from which B is streamed, by rows and
/// by columns.
const HALVES: [Path; 1] =
    [("streamed", &[[1, 520, 530], [2, 263, 1030], [7, 520, 530], [13, 700, 400], [530, 520, 1]])];

/// Strides of C, A and B that are neither row-major nor columns, for the shape `[30, 270, 70]`.
const STRIDES: [[[isize; 2]; 3]; 6] = [
    // Wider rows; every other element.
    [[75, 1], [280, 1], [75, 1]],
    [[160, 2], [560, 2], [150, 2]],
    // From the last row up; from the last element back.
    [[-70, 1], [-270, 1], [-70, 1]],
    [[-70, -1], [-1, -30], [-1, -270]],
    // One row or column repeated; one element for all.
    [[1, 30], [0, 1], [1, 0]],
    [[70, 1], [1, 0], [0, 0]],
];

const STRIDED: [usize; 3] = [30, 270, 70];

/// Strides of few rows by a B whose rows are reversed, have gaps, or are one element, for the shape
/// `[5, 270, 600]`.
const SKINNY_STRIDES: [[[isize; 2]; 3]; 3] = [
    [[600, 1], [270, 1], [600, -1]],
    [[610, 1], [1, 5], [1230, 2]],
    [[600, 1], [-270, -1], [1, 0]],
];

const SKINNY_STRIDED: [usize; 3] = [5, 270, 600];

/// Every call, with the name of its path as the first word of its variant.
pub fn calls() -> Vec<Call> {
    let mut calls = Vec::new();
    of_factor::<f32>(&mut calls, &PATHS);
    of_factor::<f64>(&mut calls, &PATHS);
    let paths = [&PATHS[..], &HALVES].concat();
    of_factor::<f16>(&mut calls, &paths);
    of_factor::<bf16>(&mut calls, &paths);
    calls
}

fn of_factor<T: Cell + Factor<Sum: Cell>>(calls: &mut Vec<Call>, paths: &[Path]) {
    let plain = (T::Sum::ONE, T::Sum::ZERO);
    for &(name, shapes) in paths {
        for &[m, k, n] in shapes {
            for transposed in 0..4usize {
                let of = |[rows, cols]: [usize; 2], transposed| {
                    if transposed { [1, rows as isize] } else { [cols as isize, 1] }
                };
                let (a, b) = (of([m, k], transposed & 1 != 0), of([k, n], transposed & 2 != 0));
                let strides = [[n as isize, 1], a, b];
                products::<T>(
                    calls,
                    &format!("{name} {transposed:02b}"),
                    [m, k, n],
                    strides,
                    plain,
                );
            }
        }
    }
    for strides in STRIDES {
        products::<T>(calls, "strided", STRIDED, strides, plain);
    }
    for strides in SKINNY_STRIDES {
        products::<T>(calls, "skinny_strided", SKINNY_STRIDED, strides, plain);
    }
    for (alpha, beta) in [(1.0, 1.0), (-0.7, 0.0), (0.3, 2.7)] {
        for shape @ [_, k, n] in [[1, 300, 131], [7, 270, 490], [20, 30, 40], [20, 600, 70]] {
            let strides = [[n as isize, 1], [k as isize, 1], [n as isize, 1]];
            let scales = (T::Sum::from_f64(alpha), T::Sum::from_f64(beta));
            products::<T>(calls, "scaled", shape, strides, scales);
        }
    }
}

/// Index of the first element, and number of elements in a matrix's memory.
fn memory([rows, cols]: [usize; 2], [down, right]: [isize; 2]) -> (usize, usize) {
    if rows * cols == 0 {
        return (0, 0);
    }
    let reaches = [(rows as isize - 1) * down, (cols as isize - 1) * right];
    let low: isize = reaches.iter().map(|reach| reach.min(&0)).sum();
    let high: isize = reaches.iter().map(|reach| reach.max(&0)).sum();
    (low.unsigned_abs(), (high - low) as usize + 1)
}

fn view<E>(x: &[E], shape: [usize; 2], strides: [isize; 2]) -> MatRef<'_, E> {
    MatRef::new(x, memory(shape, strides).0, shape, strides).expect("a view")
}

fn view_mut<E>(x: &mut [E], shape: [usize; 2], strides: [isize; 2]) -> MatMut<'_, E> {
    MatMut::new(x, memory(shape, strides).0, shape, strides).expect("a view")
}

/// The product by each function; strides are those of C, A and B.
fn products<T: Cell + Factor<Sum: Cell>>(
    calls: &mut Vec<Call>,
    name: &str,
    [m, k, n]: [usize; 3],
    [c_strides, a_strides, b_strides]: [[isize; 2]; 3],
    (alpha, beta): (T::Sum, T::Sum),
) {
    let variant = format!("{name} {:?} {c_strides:?} {a_strides:?} {b_strides:?}", [m, k, n]);
    let len = |shape, strides| memory(shape, strides).1;
    let (a_len, b_len) = (len([m, k], a_strides), len([k, n], b_strides));
    let c_len = len([m, n], c_strides);
    let (a, b) = (input(&numbers::<T>(a_len, 1)), input(&numbers::<T>(b_len, 2)));
    let old = changed(&numbers::<T::Sum>(c_len, 3));
    let run = move |[a, b, c]: [&mut Part<'_>; 3]| {
        let (a, b) = (view(a.of::<T>(), [m, k], a_strides), view(b.of(), [k, n], b_strides));
        let c = view_mut(c.of(), [m, n], c_strides);
        gemm(Gemm { alpha, beta, ..Gemm::new(a, b) }, c, &mut Workspace::new()).expect("a product");
    };
    calls.push(call::<T, 3>("gemm", &*variant, [a.clone(), b.clone(), old.clone()], run));
    let run = move |[a, b, c]: [&mut Part<'_>; 3]| {
        let (a, b) = (view(a.of::<T>(), [m, k], a_strides), view(b.of::<T>(), [k, n], b_strides));
        let c = view_mut(c.of(), [m, n], c_strides);
        let mut buffer = Workspace::new();
        let b = &PackedB::pack(b, &mut buffer);
        let product = Gemm { alpha, beta, ..Gemm::new(a, b) };
        gemm(product, c, &mut Workspace::new()).expect("a product");
    };
    calls.push(call::<T, 3>("gemm_packed", &*variant, [a.clone(), b.clone(), old], run).again());
    if (alpha, beta) == (T::Sum::ONE, T::Sum::ZERO) {
        let run = move |[a, b, bias, c]: [&mut Part<'_>; 4]| {
            let (a, b) = (view(a.of::<T>(), [m, k], a_strides), view(b.of(), [k, n], b_strides));
            let c = view_mut(c.of(), [m, n], c_strides);
            gemm(
                Gemm { epilogue: Bias::PerColumn(bias.of()).into(), ..Gemm::new(a, b) },
                c,
                &mut Workspace::new(),
            )
            .expect("a product");
        };
        let bias = input(&numbers::<T::Sum>(n, 4));
        // Memory between the elements must not change.
        let c = changed(&numbers::<T::Sum>(c_len, 5));
        calls.push(call::<T, 4>("gemm_bias", &*variant, [a, b, bias, c], run));
    }
}
