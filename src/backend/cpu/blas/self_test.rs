//! Tests that a library conforms to its header: small products with known values through every entry
//! point, before the first real one.
//!
//! A library with 64-bit integers (ILP64) would read the upper halves of arguments, which are not written.
//! It is detected first, by a call that is safe with either width: `dot` of length 2 - 2³² in 64 bits, which
//! is 2 in 32 bits; a negative length gives 0. This holds on x86-64 and AArch64, where a function reads only
//! the lower half of the register of a 32-bit argument; other platforms may require sign extension.

use swath_kernels::Float;

use super::call::{Call, Operand};
use super::plan::Stored;
use super::provider::{Products, Provider};

/// Extents m, k, n, with a case of each kind of vector.
const SMALL: [[usize; 3]; 4] = [[2, 3, 4], [5, 2, 1], [1, 4, 3], [1, 1, 1]];

/// Extents that fill register tiles, with long sums and with sums that are not a multiple of eight terms:
/// libraries have separate code for each.
const TILES: [[usize; 3]; 5] = [[40, 3, 40], [40, 3, 1], [1, 3, 40], [40, 40, 40], [40, 37, 40]];
const VECTORS: [[usize; 3]; 4] = [[131, 144, 1], [1, 144, 131], [144, 131, 1], [1, 131, 144]];

/// Difference between the leading dimension and the row length of every operand.
const GAP: usize = 3;

/// Runs all tests.
///
/// # Errors
/// The failure, as the rest of a sentence that begins with the library's name.
pub(super) fn run(provider: &Provider) -> Result<(), String> {
    provider.threads.on_one_thread(|| {
        typed::<f32>(&provider.products, 's')?;
        typed::<f64>(&provider.products, 'd')
    })
}

fn typed<E: Float>(products: &Products, letter: char) -> Result<(), String> {
    let Some(functions) = products.of::<E>() else { return Ok(()) };
    let failed = |function: &str, what: String| {
        Err(format!("failed its self-test: cblas_{letter}{function} {what}"))
    };
    if cfg!(all(target_pointer_width = "64", any(target_arch = "x86_64", target_arch = "aarch64")))
    {
        let (x, y) = ([3.0, 5.0].map(E::from_f64), [7.0, 11.0].map(E::from_f64));
        let length = 2 - (1i64 << 32);
        // SAFETY: the length is 2 if only the lower half is read, otherwise negative, so that nothing is read.
        match unsafe { (functions.dot)(length, x.as_ptr(), 1, y.as_ptr(), 1) }.to_f64() {
            76.0 => {}
            0.0 => return Err("has 64-bit integers (ILP64), not 32-bit ones (LP64)".to_owned()),
            other => return failed("dot", format!("gave {other} instead of 76")),
        }
    }
    for shape in SMALL.into_iter().chain(TILES).chain(VECTORS) {
        let sums = sums(shape);
        for (ta, tb) in [(false, false), (false, true), (true, false), (true, true)] {
            let operands = [operand(shape, 0, ta), operand(shape, 1, tb)];
            let function = if shape[0] == 1 || shape[2] == 1 { "gemv" } else { "gemm" };
            let checked = check::<E>(products, shape, &operands, &sums);
            checked.or_else(|what| failed(function, what))?;
        }
    }
    Ok(())
}

/// A matrix with gaps between its stored rows.
type Gapped<E> = (Vec<E>, Stored);

/// Checks one product, whose expected rows are `sums`.
///
/// # Errors
/// A description of the failure.
fn check<E: Float>(
    products: &Products,
    shape: [usize; 3],
    operands: &[Gapped<E>; 2],
    sums: &[Vec<f64>],
) -> Result<(), String> {
    let ([m, k, n], ldc) = (shape, shape[2] + GAP);
    // The previous content of C must not matter.
    let mut all = vec![E::NAN; sums.len() * ldc];
    let [a, b] = operands.each_ref().map(|it| Operand { data: it.0.as_ptr(), stored: it.1 });
    let call = Call { shape, a, b, c: all.as_mut_ptr(), ldc };
    // SAFETY: the vectors hold the stored rows, with their gaps, of A, B and C.
    let result = unsafe { call.run(products) };
    let at = format!("of [{m}, {k}] and [{k}, {n}]");
    result.map_err(|_| format!("{at} returned without writing its result"))?;
    for (i, (row, sums)) in all.chunks_exact(ldc).zip(sums).enumerate() {
        for (j, value) in row.iter().map(|value| value.to_f64()).enumerate() {
            let expected = sums.get(j).copied().unwrap_or(f64::NAN);
            if value != expected && !(value.is_nan() && expected.is_nan()) {
                return Err(format!("{at} gave {value} at ({i}, {j}), not {expected}"));
            }
        }
    }
    Ok(())
}

/// A (`which` = 0) or B (1) of the product of this shape.
fn operand<E: Float>([m, k, n]: [usize; 3], which: usize, transposed: bool) -> Gapped<E> {
    let ([rows, cols], value) = ([[m, k], [k, n]][which], VALUES[which]);
    let [outer, inner] = if transposed { [cols, rows] } else { [rows, cols] };
    let leading = inner + GAP;
    let mut data = vec![E::NAN; outer * leading];
    for (i, row) in data.chunks_exact_mut(leading).enumerate() {
        for (j, element) in row[..inner].iter_mut().enumerate() {
            let (i, j) = if transposed { (j, i) } else { (i, j) };
            *element = E::from_f64(value(i, j));
        }
    }
    (data, Stored { transposed, leading })
}

/// Expected rows of the product.
fn sums([m, k, n]: [usize; 3]) -> Vec<Vec<f64>> {
    let [a, b] = VALUES;
    let sum = |i, j| (0..k).map(|p| a(i, p) * b(p, j)).sum();
    (0..m).map(|i| (0..n).map(|j| sum(i, j)).collect()).collect()
}

/// Elements of A and of B.
const VALUES: [fn(usize, usize) -> f64; 2] = [
    |i, p| ((1 + i * 3 + p * 7) % 13) as f64 - 6.0,
    |p, j| ((2 + p * 5 + j * 4) % 17) as f64 - 8.0,
];
