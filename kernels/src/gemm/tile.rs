//! The micro-kernel: one tile of C in registers, one block of k.
//!
//! ```text
//!            b: NV vectors a step of k, rows `b_step` apart
//!            [ b0 | b1 | b2 | b3 ]
//!   a0 ──x── [ 00 | 01 | 02 | 03 ]      acc[i][v] = fma(splat(a_i), b_v, acc[i][v])
//!   a1 ──x── [ 10 | 11 | 12 | 13 ]
//!   …                                   6 x 4 accumulators + 4 of b + 1 of a = 29 of 32 registers
//!   a5 ──x── [ 50 | 51 | 52 | 53 ]      6 x 2              + 2      + 1      = 15 of 16
//! ```
//!
//! One source for every instruction set: the vector's width comes from the token, the tile's shape
//! from the number of registers. The tile is wide because cores sustain little more than one load
//! (or broadcast) per cycle beside two FMAs: a step of 6 x 4 needs 10 loads for 24 FMAs. Measured
//! share of the FMA peak in L1, AVX-512 f32: 6x64 .98, 8x48 .98, 12x32 .92, 14x32 .80, 14x16 .50;
//! AVX2: 6x16 .95 to .99, 4x24 .6 to .9 (spills).

use super::matrix::step;
use crate::simd::{Float, Isa, Lanes, Task, Vector};

/// A loop over `0..count` with a count so small that the compiler unrolls it and keeps the arrays
/// it indexes in registers. These loops are compiled for every tile shape; `while` starts from half
/// as many instructions as `for`.
macro_rules! each {
    ($i:ident in $count:expr => $body:block) => {
        let mut $i = 0;
        while $i < $count {
            $body
            $i += 1;
        }
    };
}
pub(super) use each;

/// The most rows in a tile.
pub(super) const MR: usize = 6;

/// The most vectors in a tile's row on any instruction set.
pub(super) const MAX_NV: usize = 4;

/// The most vectors in a tile's row: 4 with 32 registers, 2 with 16, and 1 if a vector has one
/// lane, where tiles gain nothing.
pub(super) const fn max_vectors(isa: Isa) -> usize {
    match isa {
        Isa::Scalar => 1,
        _ if isa.has_32_registers() => MAX_NV,
        _ => 2,
    }
}

/// True if a packed tile of B, KC rows of it, takes at most half of an L1 cache of 32 KiB.
pub(super) const fn tiles_of_b_stay(isa: Isa) -> bool {
    !matches!(isa, Isa::Avx512)
}

/// The fewest values of k for which the output is prefetched: shorter sweeps end before memory
/// answers.
const PREFETCH_DEPTH: usize = 32;

/// Offsets of a tile's rows of A. They are kept in memory, because the compiler would compute
/// multiples of one stride by a chain of additions for each k.
#[inline(always)]
pub(super) fn row_offsets(stride: isize) -> [isize; MR] {
    let mut offsets = [0; MR];
    for (i, offset) in offsets.iter_mut().enumerate() {
        *offset = (i as isize).wrapping_mul(stride);
    }
    offsets
}

/// The work on one tile: `out [rows, vectors * LANES] (+)= a [rows, depth] · b [depth, same]`.
#[derive(Clone, Copy)]
pub(super) struct Tile<'a, E> {
    pub(super) rows: usize,
    pub(super) vectors: usize,
    /// Values of k.
    pub(super) depth: usize,
    pub(super) a: *const E,
    /// Offsets of the rows of A from the first, see [`row_offsets`].
    pub(super) a_rows: [isize; MR],
    /// The distance between values of k in A.
    pub(super) a_step: isize,
    pub(super) b: *const E,
    /// The distance between values of k in B.
    pub(super) b_step: isize,
    /// The offset from `b` for each value of k, instead of multiples of `b_step`.
    pub(super) b_rows: Option<&'a [usize]>,
    pub(super) out: *mut E,
    /// The distance between rows of the output.
    pub(super) out_row: isize,
    /// Lanes of the output's last vector; B and the bias have at least as many.
    pub(super) last: usize,
    /// Resumes the sums that the output holds instead of starting at zero.
    pub(super) resume: bool,
    /// Adds to the output instead of writing it.
    pub(super) add: bool,
    /// Added to each row afterwards.
    pub(super) bias: Option<*const E>,
}

impl<E: Float> Tile<'_, E> {
    /// Computes the tile. A function without vectors between the loops that call it and the
    /// micro-kernels: those enable target features that it lacks, so none is inlined into the
    /// loops.
    ///
    /// # Safety
    /// - `1 <= rows <= MR` and `1 <= vectors <= max_vectors(S::ISA)`;
    /// - `a` is valid for reads of elements (i, p) at `a_rows[i] + p * a_step` for i < rows, p < depth;
    /// - `b` is valid for reads of `(vectors - 1) * LANES + last` elements at `p * b_step`, or at `b_rows[p]`, which has
    ///   `depth` elements if given;
    /// - `out` is valid for writes (with `add` or `resume` also reads, and is initialised) of as
    ///   many elements at `i * out_row`;
    /// - `bias` is valid for reads of as many elements as a row of `out`;
    /// - `1 <= last <= LANES`.
    #[inline(never)]
    pub(super) unsafe fn run<S: Lanes<E>>(&self, simd: S) {
        // SAFETY: the caller promises the same; each arm has the promised rows and vectors.
        unsafe {
            match self.vectors {
                _ if const { S::LANES == 1 } => self.scalar_rows(simd),
                1 => self.with_vectors::<S, 1>(simd),
                2 => self.with_vectors::<S, 2>(simd),
                3 if const { max_vectors(S::ISA) >= 3 } => self.with_vectors::<S, 3>(simd),
                4 if const { max_vectors(S::ISA) >= 4 } => self.with_vectors::<S, 4>(simd),
                _ => core::hint::unreachable_unchecked(),
            }
        }
    }

    /// Computes the tile row by row, if a vector has one lane.
    ///
    /// # Safety
    /// See [`Tile::run`].
    #[inline(always)]
    unsafe fn scalar_rows<S: Lanes<E>>(&self, simd: S) {
        const { assert!(S::LANES > 1 || max_vectors(S::ISA) == 1) };
        for i in 0..self.rows {
            let row = Tile {
                a: self.a.wrapping_offset(self.a_rows[i]),
                out: step(self.out, i, self.out_row),
                ..*self
            };
            // Row i is one of the rows that the caller promised.
            E::call(simd, Sweep::<E, 1, 1>(&row));
        }
    }

    #[inline(always)]
    unsafe fn with_vectors<S: Lanes<E>, const NV: usize>(&self, simd: S) {
        // SAFETY: the caller is `run`, whose caller promises the same; each arm has the promised
        // rows.
        unsafe {
            match self.rows {
                1 => E::call(simd, Sweep::<E, 1, NV>(self)),
                2 => E::call(simd, Sweep::<E, 2, NV>(self)),
                3 => E::call(simd, Sweep::<E, 3, NV>(self)),
                4 => E::call(simd, Sweep::<E, 4, NV>(self)),
                5 => E::call(simd, Sweep::<E, 5, NV>(self)),
                6 => E::call(simd, Sweep::<E, 6, NV>(self)),
                _ => core::hint::unreachable_unchecked(),
            }
        }
    }
}

/// A tile of ROWS rows and NV vectors, as a separate function: inlined side by side, the sweeps of
/// all shapes would share one register allocation, which spills accumulators.
struct Sweep<'a, E, const ROWS: usize, const NV: usize>(&'a Tile<'a, E>);

impl<E: Float, const ROWS: usize, const NV: usize> Task<E> for Sweep<'_, E, ROWS, NV> {
    const ALIGNS_FRAME: bool = false;
    type Home = Self;
    type Output = ();

    #[inline(always)]
    fn run<S: Lanes<E>>(self, simd: S) {
        let Tile { ref a_rows, out, out_row, .. } = *self.0;
        let last = simd.first(self.0.last);
        if self.0.depth >= PREFETCH_DEPTH {
            self.0.prefetch(simd);
        }
        // SAFETY: only `Tile` makes this, and the caller of `Tile::run` promises ROWS rows and NV
        // vectors, the last one under the mask, and `depth` values of k in A and B.
        unsafe {
            let mut acc = [[simd.splat(E::ZERO); NV]; ROWS];
            if self.0.resume {
                acc = read(simd, out, out_row, last);
            }
            let (mut a, mut b) = (self.0.a, self.0.b);
            let mut left = self.0.depth;
            if let Some(offsets) = self.0.b_rows {
                for &offset in offsets {
                    let row = read_row(simd, b.wrapping_add(offset), last);
                    multiply(simd, a, a_rows, &row, &mut acc);
                    a = a.wrapping_offset(self.0.a_step);
                }
                left = 0;
            }
            while left >= 4 && self.0.a_step == 1 {
                each!(p in 4 => {
                    let row = read_row(simd, b, last);
                    multiply(simd, a.wrapping_add(p), a_rows, &row, &mut acc);
                    b = b.wrapping_offset(self.0.b_step);
                });
                (a, left) = (a.wrapping_add(4), left - 4);
            }
            while left > 0 {
                let row = read_row(simd, b, last);
                multiply(simd, a, a_rows, &row, &mut acc);
                (a, b) = (a.wrapping_offset(self.0.a_step), b.wrapping_offset(self.0.b_step));
                left -= 1;
            }
            if self.0.add {
                add(simd, out, out_row, last, &mut acc);
            }
            if let Some(bias) = self.0.bias {
                add(simd, bias.cast_mut(), 0, last, &mut acc);
            }
            write(simd, out, out_row, (self.0.last < S::LANES).then_some(last), &acc);
        }
    }
}

impl<E: Float> Tile<'_, E> {
    /// Prefetches the output, which is written at the end of the sweep.
    #[inline(always)]
    fn prefetch<S: Lanes<E>>(&self, simd: S) {
        for i in 0..self.rows {
            let row = step(self.out, i, self.out_row);
            for v in 0..self.vectors {
                simd.prefetch(row.wrapping_add(v * S::LANES).cast());
            }
            simd.prefetch(row.wrapping_add(self.vectors * S::LANES - 1).cast());
        }
    }
}

/// Reads a row of vectors, the last one under a mask.
///
/// # Safety
/// The vectors, but of the last one only the lanes of the mask, are valid for reads.
#[inline(always)]
pub(super) unsafe fn read_row<E: Float, S: Lanes<E>, const NV: usize>(
    simd: S,
    src: *const E,
    last: S::M,
) -> [S::V; NV] {
    let mut row = [simd.splat(E::ZERO); NV];
    each!(v in NV => {
        let src = src.wrapping_add(v * S::LANES);
        // SAFETY: the caller promises the vectors.
        row[v] = unsafe { if v < NV - 1 { simd.load(src) } else { simd.load_where(src, last) } };
    });
    row
}

/// Reads rows of vectors.
///
/// # Safety
/// See [`read_row`], for each row.
#[inline(always)]
pub(super) unsafe fn read<E: Float, S: Lanes<E>, const ROWS: usize, const NV: usize>(
    simd: S,
    src: *mut E,
    row: isize,
    last: S::M,
) -> [[S::V; NV]; ROWS] {
    let mut rows = [[simd.splat(E::ZERO); NV]; ROWS];
    each!(i in ROWS => {
        // SAFETY: the caller promises the rows.
        rows[i] = unsafe { read_row(simd, step(src, i, row), last) };
    });
    rows
}

/// Adds one k: `acc += a · b`.
///
/// # Safety
/// `a` is valid for reads at the first ROWS of the offsets; ROWS is at most MR.
#[inline(always)]
pub(super) unsafe fn multiply<E: Float, S: Lanes<E>, const ROWS: usize, const NV: usize>(
    simd: S,
    a: *const E,
    a_rows: &[isize; MR],
    b: &[S::V; NV],
    acc: &mut [[S::V; NV]; ROWS],
) {
    each!(i in ROWS => {
        let src = if i == 0 { a } else { a.wrapping_offset(a_rows[i]) };
        // SAFETY: the caller promises the offsets.
        let a = simd.splat(unsafe { *src });
        each!(v in NV => {
            acc[i][v] = a.mul_add(b[v], acc[i][v]);
        });
    });
}

/// Adds rows of vectors: `acc = x + acc`.
///
/// # Safety
/// See [`read`].
#[inline(always)]
unsafe fn add<E: Float, S: Lanes<E>, const ROWS: usize, const NV: usize>(
    simd: S,
    src: *mut E,
    row: isize,
    last: S::M,
    acc: &mut [[S::V; NV]; ROWS],
) {
    each!(i in ROWS => {
        // SAFETY: the caller promises the rows.
        let x: [S::V; NV] = unsafe { read_row(simd, step(src, i, row), last) };
        each!(v in NV => {
            acc[i][v] = x[v] + acc[i][v];
        });
    });
}

/// Writes rows of vectors, the last one under a mask if given: a masked store that is not needed
/// takes longer on some cores.
///
/// # Safety
/// The vectors, but of the last one only the lanes of the mask, are valid for writes.
#[inline(always)]
pub(super) unsafe fn write<E: Float, S: Lanes<E>, const ROWS: usize, const NV: usize>(
    simd: S,
    dst: *mut E,
    row: isize,
    last: Option<S::M>,
    rows: &[[S::V; NV]; ROWS],
) {
    each!(i in ROWS => {
        let row = step(dst, i, row);
        each!(v in NV => {
            let dst = row.wrapping_add(v * S::LANES);
            // SAFETY: the caller promises the vectors.
            unsafe {
                match last {
                    Some(last) if v == NV - 1 => simd.store_where(dst, last, rows[i][v]),
                    _ => simd.store(dst, rows[i][v]),
                }
            }
        });
    });
}
