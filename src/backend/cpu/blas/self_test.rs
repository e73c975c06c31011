//! Whether a library does what its header says: small products with known values through every
//! entry point, before the first real one.
//!
//! A library with 64-bit integers (ILP64) would read the upper halves of arguments that were never
//! written. It is found out first, by a call that is harmless either way: `dot` of length
//! 2 - 2³² in 64 bits, which is 2 in 32; a negative length gives 0. That is known of x86-64 and AArch64,
//! whose functions take the lower half of a register for a 32-bit argument; others may want the upper half to
//! be its sign.

use std::array::from_fn;

use super::call::{Call, Operand, run_batch};
use super::layout::Stored;
use super::library::{Entries, GemmBatch, Library};
use swath_kernels::Float;

/// Runs all tests.
///
/// # Errors
/// What the library did, as the end of a sentence that begins with its name.
pub(super) fn run(library: &Library) -> Result<(), String> {
    library.on_one_thread(|| {
        typed(library, &library.f32, 's')?;
        typed(library, &library.f64, 'd')
    })
}

fn typed<E: Float>(library: &Library, entries: &Entries<E>, letter: char) -> Result<(), String> {
    let failed = |function: &str, what: String| {
        Err(format!("failed its self-test: cblas_{letter}{function} {what}"))
    };
    if cfg!(all(target_pointer_width = "64", any(target_arch = "x86_64", target_arch = "aarch64")))
    {
        let (x, y) = ([3.0, 5.0].map(E::from_f64), [7.0, 11.0].map(E::from_f64));
        let length = 2 - (1i64 << 32);
        // SAFETY: of length 2 if the lower half is read, else negative: nothing is then read.
        match unsafe { (entries.dot)(length, x.as_ptr(), 1, y.as_ptr(), 1) }.to_f64() {
            76.0 => {}
            0.0 => {
                return Err("has 64-bit integers (ILP64), swath calls libraries with 32-bit ones \
                            (LP64)"
                    .to_owned());
            }
            other => return failed("dot", format!("gave {other} instead of 76")),
        }
    }
    // Extents with a vector's case each, all four transposes, leading dimensions beyond the rows; then those
    // that hold whole tiles of a library's registers, with many terms and with some left over of eight:
    // all code of their own.
    let small = [[2, 3, 4], [5, 2, 1], [1, 4, 3], [1, 1, 1]];
    let tiles = [[40, 3, 40], [40, 3, 1], [1, 3, 40], [40, 40, 40], [40, 37, 40]];
    let vectors = [[131, 144, 1], [1, 144, 131], [144, 131, 1], [1, 131, 144]];
    for shape in small.into_iter().chain(tiles).chain(vectors) {
        let sums = sums(shape);
        for transposed in [(false, false), (false, true), (true, false), (true, true)] {
            for add in [false, true] {
                let case = Case::<E>::new(shape, transposed, add);
                if let Err(what) = case.check(&sums, library, entries, None) {
                    let function = if shape[0] == 1 || shape[2] == 1 { "gemv" } else { "gemm" };
                    return failed(function, what);
                }
                if let Some(batch) = entries.gemm_batch
                    && let Err(what) = case.check(&sums, library, entries, Some(batch))
                {
                    return failed("gemm_batch", what);
                }
            }
        }
    }
    Ok(())
}

/// Elements beyond a row, in every operand.
const GAP: usize = 3;

/// Products in a call of a batch, each of operands of its own.
const BATCH: usize = 2;

/// What stands in C before, and around it before and after.
const OLD: f64 = 100.0;

/// Products of small integers, which every order of additions computes exactly. One alone is the first.
struct Case<E> {
    shape: [usize; 3],
    a: (Vec<E>, Stored),
    b: (Vec<E>, Stored),
    add: bool,
}

impl<E: Float> Case<E> {
    fn new([m, k, n]: [usize; 3], transposed: (bool, bool), add: bool) -> Self {
        let operand = |[rows, cols]: [usize; 2], transposed, value: fn(usize, usize) -> f64| {
            let [outer, inner] = if transposed { [cols, rows] } else { [rows, cols] };
            let leading = inner + GAP;
            let mut data = vec![E::NAN; BATCH * outer * leading];
            for (t, data) in data.chunks_exact_mut(outer * leading).enumerate() {
                for i in 0..rows {
                    for j in 0..cols {
                        let (outer, inner) = if transposed { (j, i) } else { (i, j) };
                        data[outer * leading + inner] = E::from_f64(value(i + t, j + t));
                    }
                }
            }
            (data, Stored { transposed, leading })
        };
        Case {
            shape: [m, k, n],
            a: operand([m, k], transposed.0, a_value),
            b: operand([k, n], transposed.1, b_value),
            add,
        }
    }

    /// # Errors
    /// What is wrong.
    fn check(
        &self,
        sums: &[f64],
        library: &Library,
        entries: &Entries<E>,
        batch: Option<GemmBatch<E>>,
    ) -> Result<(), String> {
        let [m, k, n] = self.shape;
        let row = n + GAP;
        // Where C is only written, what it held must not matter.
        let old = if self.add { E::from_f64(OLD) } else { E::NAN };
        let count = if batch.is_some() { BATCH } else { 1 };
        let mut c = vec![old; count * m * row];
        let call = Call {
            shape: self.shape,
            a: Operand { data: self.a.0.as_ptr(), stored: self.a.1 },
            b: Operand { data: self.b.0.as_ptr(), stored: self.b.1 },
            c: c.as_mut_ptr(),
            row,
            add: self.add,
        };
        // SAFETY: the vectors hold the stored rows of A, B and C with their gaps.
        let result = unsafe {
            match batch {
                Some(batch) => {
                    let of = |all: &[E], t| all[t * (all.len() / BATCH)..].as_ptr();
                    let addresses: [_; BATCH] =
                        from_fn(|t| (of(&self.a.0, t), of(&self.b.0, t), call.c.add(t * m * row)));
                    run_batch(library, batch, &call, &addresses)
                }
                None => call.run_by(entries, library.max_int),
            }
        };
        let at = || format!("of [{m}, {k}] and [{k}, {n}]");
        result.map_err(|_| format!("{} returned without writing its result", at()))?;
        for (i, row) in c.chunks_exact(row).enumerate() {
            for (j, &value) in row.iter().enumerate() {
                let expected = match (j < n, self.add) {
                    (true, true) => OLD + sums[i * n + j],
                    (true, false) => sums[i * n + j],
                    (false, _) => old.to_f64(),
                };
                let value = value.to_f64();
                if value != expected && !(value.is_nan() && expected.is_nan()) {
                    let i = i % m;
                    return Err(format!("{} gave {value} at ({i}, {j}), not {expected}", at()));
                }
            }
        }
        Ok(())
    }
}

/// The products of a batch, row by row.
fn sums([m, k, n]: [usize; 3]) -> Vec<f64> {
    let mut sums = vec![0.0; BATCH * m * n];
    for (at, row) in sums.chunks_exact_mut(n).enumerate() {
        let (t, i) = (at / m, at % m);
        for p in 0..k {
            let a = a_value(i + t, p + t);
            row.iter_mut().enumerate().for_each(|(j, sum)| *sum += a * b_value(p + t, j + t));
        }
    }
    sums
}

fn a_value(i: usize, p: usize) -> f64 {
    ((1 + i * 3 + p * 7) % 13) as f64 - 6.0
}

fn b_value(p: usize, j: usize) -> f64 {
    ((2 + p * 5 + j * 4) % 17) as f64 - 8.0
}
