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
//! One text for every instruction set: the vector's width comes from the token, the tile's shape
//! from the number of registers. The tile is wide because the machine sustains little more than one
//! load (or broadcast) a cycle beside two FMAs: a step of 6 x 4 needs 10 loads for 24 FMAs. Measured
//! share of the FMA peak in L1, AVX-512 f32: 6x64 .98, 8x48 .98, 12x32 .92, 14x32 .80, 14x16 .50;
//! AVX2: 6x16 .95 to .99, 4x24 .6 to .9 (spills).

use crate::dispatch::{ElementTask, Isa};
use crate::simd::{Float, Lanes, Vector};

/// Most rows in a tile.
pub(super) const MR: usize = 6;

/// Most vectors in a tile's row on any instruction set.
pub(super) const MAX_NV: usize = 4;

/// Most vectors in a tile's row: 4 where there are 32 registers, 2 where there are 16.
pub(super) const fn max_vectors(isa: Isa) -> usize {
    if isa.has_32_registers() { MAX_NV } else { 2 }
}

/// Whether a packed tile of B, KC rows of it, takes no more than half of an L1 cache of 32 KiB.
pub(super) const fn tiles_of_b_stay(isa: Isa) -> bool {
    !matches!(isa, Isa::Avx512)
}

/// How A lies under a tile. One stride is always 1: then the addresses of a row of the tile, or of
/// four steps of k, are constants away from each other.
#[derive(Clone, Copy)]
pub(super) enum LayoutOfA {
    /// Element (i, p) at `i * stride + p`.
    Rows(isize),
    /// Element (i, p) at `i + p * stride`.
    Columns(isize),
}

/// One tile's work: `out [rows, vectors * LANES] (+)= a [rows, depth] · b [depth, same]`.
#[derive(Clone, Copy)]
pub(super) struct Tile<E> {
    pub(super) rows: usize,
    pub(super) vectors: usize,
    /// Steps of k.
    pub(super) depth: usize,
    pub(super) a: *const E,
    pub(super) a_layout: LayoutOfA,
    pub(super) b: *const E,
    /// From one k of B to the next.
    pub(super) b_step: isize,
    /// Valid lanes of the last vector of B; all of them if B is packed.
    pub(super) b_last: usize,
    pub(super) out: *mut E,
    /// From one row of the output to the next.
    pub(super) out_row: isize,
    /// Valid lanes of the last vector of the output.
    pub(super) out_last: usize,
    /// Goes on with the chain that the output holds instead of starting one at zero.
    pub(super) resume: bool,
    /// Adds to the output instead of writing it.
    pub(super) add: bool,
    /// Then adds this to each row of it.
    pub(super) bias: Option<*const E>,
}

impl<E: Float> Tile<E> {
    /// Computes the tile.
    ///
    /// # Safety
    /// - `1 <= rows <= MR` and `1 <= vectors <= max_vectors(S::ISA)`;
    /// - `a` is valid for reads as `a_layout` says for i < rows, p < depth;
    /// - `b` is valid for reads of `(vectors - 1) * LANES + b_last` elements at `p * b_step`;
    /// - `out` is valid for writes (with `add` or `resume` also reads, and is initialised) of
    ///   `(vectors - 1) * LANES + out_last` elements at `i * out_row`;
    /// - `bias` is valid for reads of as many elements as a row of `out`;
    /// - `1 <= b_last, out_last <= LANES`.
    #[inline(always)]
    pub(super) unsafe fn run<S: Lanes<E>>(&self, simd: S) {
        // SAFETY: the caller's promise, passed on; each arm has the promised rows and vectors.
        unsafe {
            match self.vectors {
                1 => self.with_vectors::<S, 1>(simd),
                2 => self.with_vectors::<S, 2>(simd),
                3 if const { max_vectors(S::ISA) >= 3 } => self.with_vectors::<S, 3>(simd),
                4 if const { max_vectors(S::ISA) >= 4 } => self.with_vectors::<S, 4>(simd),
                _ => core::hint::unreachable_unchecked(),
            }
        }
    }

    #[inline(always)]
    unsafe fn with_vectors<S: Lanes<E>, const NV: usize>(&self, simd: S) {
        // SAFETY: as in `run`.
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

/// A tile of ROWS rows and NV vectors, as a function of its own: inlined side by side, the sweeps of
/// all shapes would share one register allocation, which then spills accumulators.
struct Sweep<'a, E, const ROWS: usize, const NV: usize>(&'a Tile<E>);

impl<E: Float, const ROWS: usize, const NV: usize> ElementTask<E> for Sweep<'_, E, ROWS, NV> {
    const ALIGNS_FRAME: bool = false;
    type Home = Self;
    type Output = ();

    #[inline(always)]
    fn run<S: Lanes<E>>(self, simd: S) {
        // SAFETY: made by `Tile::run` alone, whose caller's promise this is.
        unsafe { self.0.sweep::<S, ROWS, NV>(simd) }
    }
}

impl<E: Float> Tile<E> {
    #[inline(always)]
    unsafe fn sweep<S: Lanes<E>, const ROWS: usize, const NV: usize>(&self, simd: S) {
        let mut acc = [[simd.splat(E::ZERO); NV]; ROWS];
        // Shorter sweeps are over before memory answers.
        if self.depth >= 32 {
            each::<ROWS>(
                #[inline(always)]
                |i| {
                    let row = self.out.wrapping_offset(i as isize * self.out_row);
                    each::<NV>(
                        #[inline(always)]
                        |v| simd.prefetch(row.wrapping_add(v * S::LANES).cast()),
                    );
                    simd.prefetch(row.wrapping_add(NV * S::LANES - 1).cast());
                },
            );
        }
        if self.resume {
            each::<ROWS>(
                #[inline(always)]
                // SAFETY: i < rows, NV = vectors.
                |i| acc[i] = unsafe { self.read::<S, NV>(simd, i) },
            );
        }
        let mut at = Step { a: self.a, b: self.b };
        let mut left = self.depth;
        let whole = S::LANES == 1 || self.b_last == S::LANES;
        // SAFETY: `left` counts the promised steps; `at` stands at the one that comes next.
        unsafe {
            match (self.a_layout, whole) {
                (LayoutOfA::Rows(stride), true) => {
                    while left >= 4 {
                        each::<4>(
                            #[inline(always)]
                            |p| {
                                let a = at.a.wrapping_add(p);
                                self.step::<S, ROWS, NV, false>(simd, a, stride, at.b, &mut acc);
                                at.b = at.b.wrapping_offset(self.b_step);
                            },
                        );
                        at.a = at.a.wrapping_add(4);
                        left -= 4;
                    }
                    while left > 0 {
                        self.step::<S, ROWS, NV, false>(simd, at.a, stride, at.b, &mut acc);
                        at = at.next(1, self.b_step);
                        left -= 1;
                    }
                }
                (LayoutOfA::Rows(stride), false) => {
                    while left > 0 {
                        self.step::<S, ROWS, NV, true>(simd, at.a, stride, at.b, &mut acc);
                        at = at.next(1, self.b_step);
                        left -= 1;
                    }
                }
                (LayoutOfA::Columns(stride), true) => {
                    while left > 0 {
                        self.step::<S, ROWS, NV, false>(simd, at.a, 1, at.b, &mut acc);
                        at = at.next(stride, self.b_step);
                        left -= 1;
                    }
                }
                (LayoutOfA::Columns(stride), false) => {
                    while left > 0 {
                        self.step::<S, ROWS, NV, true>(simd, at.a, 1, at.b, &mut acc);
                        at = at.next(stride, self.b_step);
                        left -= 1;
                    }
                }
            }
            each::<ROWS>(
                #[inline(always)]
                |i| self.write::<S, NV>(simd, i, acc[i]),
            );
        }
    }

    /// One k: `acc += a · b`.
    ///
    /// # Safety
    /// `a` and `b` stand at one of the promised steps.
    #[inline(always)]
    unsafe fn step<S: Lanes<E>, const ROWS: usize, const NV: usize, const MASKED: bool>(
        &self,
        simd: S,
        a: *const E,
        a_row: isize,
        b: *const E,
        acc: &mut [[S::V; NV]; ROWS],
    ) {
        let mut row = [simd.splat(E::ZERO); NV];
        each::<NV>(
            #[inline(always)]
            |v| {
                let src = b.wrapping_add(v * S::LANES);
                // SAFETY: v < vectors, and only the last vector is cut.
                row[v] = unsafe {
                    if MASKED && v == NV - 1 {
                        simd.load_first(src, self.b_last)
                    } else {
                        simd.load(src)
                    }
                };
            },
        );
        each::<ROWS>(
            #[inline(always)]
            |i| {
                // SAFETY: i < rows.
                let a = simd.splat(unsafe { *a.wrapping_offset(i as isize * a_row) });
                each::<NV>(
                    #[inline(always)]
                    |v| acc[i][v] = a.mul_add(row[v], acc[i][v]),
                );
            },
        );
    }

    /// Row i of the output.
    ///
    /// # Safety
    /// i < rows, NV = vectors, `resume`.
    #[inline(always)]
    unsafe fn read<S: Lanes<E>, const NV: usize>(&self, simd: S, i: usize) -> [S::V; NV] {
        let row = self.out.wrapping_offset(i as isize * self.out_row);
        let whole = S::LANES == 1 || self.out_last == S::LANES;
        let mut lanes = [simd.splat(E::ZERO); NV];
        each::<NV>(
            #[inline(always)]
            |v| {
                let out = row.wrapping_add(v * S::LANES);
                // SAFETY: only the last vector is cut; the caller's promise covers the rest.
                lanes[v] = unsafe {
                    if v < NV - 1 || whole {
                        simd.load(out)
                    } else {
                        simd.load_first(out, self.out_last)
                    }
                };
            },
        );
        lanes
    }

    /// Row i of the output: `out = acc` or `out += acc`, then `out += bias`.
    ///
    /// # Safety
    /// i < rows, NV = vectors.
    #[inline(always)]
    unsafe fn write<S: Lanes<E>, const NV: usize>(&self, simd: S, i: usize, acc: [S::V; NV]) {
        let row = self.out.wrapping_offset(i as isize * self.out_row);
        let last = self.out_last;
        let whole = S::LANES == 1 || last == S::LANES;
        each::<NV>(
            #[inline(always)]
            |v| {
                let out = row.wrapping_add(v * S::LANES);
                // SAFETY: only the last vector is cut; the caller's promise covers the rest.
                unsafe {
                    if v < NV - 1 || whole {
                        let mut sum = if self.add { simd.load(out) + acc[v] } else { acc[v] };
                        if let Some(bias) = self.bias {
                            sum = sum + simd.load(bias.wrapping_add(v * S::LANES));
                        }
                        simd.store(out, sum);
                    } else {
                        let mut sum =
                            if self.add { simd.load_first(out, last) + acc[v] } else { acc[v] };
                        if let Some(bias) = self.bias {
                            sum = sum + simd.load_first(bias.wrapping_add(v * S::LANES), last);
                        }
                        simd.store_first(out, last, sum);
                    }
                }
            },
        );
    }
}

/// Where a sweep over k stands.
struct Step<E> {
    a: *const E,
    b: *const E,
}

impl<E> Step<E> {
    #[inline(always)]
    fn next(self, a_step: isize, b_step: isize) -> Self {
        Step { a: self.a.wrapping_offset(a_step), b: self.b.wrapping_offset(b_step) }
    }
}

/// `f(0)`, …, `f(N - 1)` for N up to 16, written out: a loop over an array of accumulators is unrolled
/// too late for the array to become registers.
#[inline(always)]
pub(super) fn each<const N: usize>(mut f: impl FnMut(usize)) {
    const { assert!(N <= 16 && MR <= 16 && MAX_NV <= 16) };
    macro_rules! each {
        ($($i:literal)*) => {$(
            if N > $i {
                f($i);
            }
        )*};
    }
    each!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
}
