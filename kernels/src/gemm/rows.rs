//! Few rows of A and a large B whose rows are contiguous: B is read once, as it lies.
//!
//! ```text
//!      k: 8 rows of B side by side        B [▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒]   8 sequential streams
//!                                           [▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒]
//!      A [m, 8] on the stack              C [██████████████████]   its chains, m rows of them, in L1
//! ```
//!
//! Going down B's columns a tile at a time would take one line a row: the hardware's prefetcher follows
//! rows. Along them the chains of additions are not over when a row ends, so they wait in memory; of 64
//! products a vector of them is loaded and stored once. Rows of chains lie a line further apart than a
//! panel is wide: at a power of two they would share one set of the cache.
//!
//! More than 12 rows of A are two halves, of which the second finds the 8 rows of B in L1.
//!
//! Where two tiles of rows share B's lines, the lines of the next 8 rows are asked for meanwhile: 0.66 to 0.75
//! of the time from memory, 0.72 to 1.03 from a shared cache (8 and 12 rows of A, AVX-512); with one tile, no
//! change.
//!
//! Measured, AVX2, one thread, one row of A: a B of 64 MiB at 1.2 times the speed of plain sequential
//! reading; panels of 4 KiB instead of 16 KiB lose a quarter of it. Chains of 32 KiB instead of 16 KiB, where
//! L1 has 48 KiB, take .81 to .97 of the time of 4 to 16 rows (.94 to 1.06 of 8), since runs of B are longer.

use super::cache::chains_bytes;
use super::driver::Finish;
use super::matrix::{MatMut, MatRef, step};
use super::pack::MAX_LANES;
use super::tile::{LayoutOfA, Tile, each, max_vectors};
use super::workspace::Workspace;
use super::{IN_PLACE_ROWS, KC};
use crate::dispatch::ElementTask;
use crate::simd::{Float, Lanes, Vector};

/// Rows of B read side by side.
const STEPS: usize = 8;

/// C ← alpha · A·B + beta · C, or A·B + bias; B's and C's rows are contiguous, m ≤ IN_PLACE_ROWS.
pub struct RowsOfB<'a, E> {
    pub(super) a: MatRef<'a, E>,
    pub(super) b: MatRef<'a, E>,
    pub(super) alpha: E,
    pub(super) beta: E,
    pub(super) bias: Option<&'a [E]>,
    pub(super) c: MatMut<'a, E>,
    memory: *mut E,
}

impl<'a, E: Float> RowsOfB<'a, E> {
    pub(super) fn new(
        a: MatRef<'a, E>,
        b: MatRef<'a, E>,
        (alpha, beta): (E, E),
        bias: Option<&'a [E]>,
        c: MatMut<'a, E>,
        workspace: &mut Workspace<E>,
    ) -> Self {
        debug_assert!(c.shape[0] <= IN_PLACE_ROWS && b.strides[1] == 1 && c.strides[1] == 1);
        let [m, n] = c.shape;
        let partial = if b.shape[0] > KC { m * Self::width(m).min(n) } else { 0 };
        let memory = workspace.elements(m * Self::chains_row(m) + partial).cast();
        RowsOfB { a, b, alpha, beta, bias, c, memory }
    }

    /// Columns of a panel: whole tiles.
    fn width(m: usize) -> usize {
        let tile = super::tile::MAX_NV * MAX_LANES;
        (chains_bytes() / size_of::<E>() / m).next_multiple_of(tile)
    }

    /// From one row of chains to the next.
    fn chains_row(m: usize) -> usize {
        Self::width(m) + MAX_LANES
    }
}

impl<E: Float> ElementTask<E> for RowsOfB<'_, E> {
    type Home = Self;
    type Output = ();

    #[inline(always)]
    fn run<S: Lanes<E>>(self, simd: S) {
        let RowsOfB { a, b, alpha, beta, bias, ref c, memory: chains } = self;
        let ([m, n], k) = (c.shape, a.shape[1]);
        let (width, chains_row) = (Self::width(m), Self::chains_row(m));
        let partial = chains.wrapping_add(m * chains_row);
        for left in (0..n).step_by(width) {
            let columns = width.min(n - left);
            for from in (0..k).step_by(KC) {
                let depth = KC.min(k - from);
                for at in (0..depth).step_by(STEPS) {
                    let steps = STEPS.min(depth - at);
                    let a = step(a.data.cast_mut(), from + at, a.strides[1]);
                    let b = step(b.data.cast_mut(), from + at, b.strides[0]);
                    let strip = Strip {
                        a: a.cast_const(),
                        a_strides: self.a.strides,
                        b: b.wrapping_add(left).cast_const(),
                        b_step: self.b.strides[0],
                        columns,
                        steps,
                        resume: at > 0,
                        chains,
                        chains_row: chains_row as isize,
                    };
                    // SAFETY: A and C have m rows, IN_PLACE_ROWS at most; `steps` of k from `from + at` on
                    // are in A and B, the panel's columns in B; chains have m rows of `width` columns and a
                    // line more. Steps before wrote what is resumed.
                    unsafe { strip.run(simd, m) };
                }
                let finish = Finish {
                    shape: [m, columns],
                    acc: chains.cast_const(),
                    acc_row: chains_row as isize,
                    sums: partial,
                    sums_row: width.min(n) as isize,
                    first: from == 0,
                    last: from + depth == k,
                    c: c.data.wrapping_add(left),
                    c_strides: c.strides,
                    alpha,
                    beta,
                    bias: bias.map(|bias| bias.as_ptr().wrapping_add(left)),
                };
                // SAFETY: m rows and the panel's columns are in C, in the chains just computed and, if
                // k has several blocks, in the partial sums; a bias has n elements.
                unsafe { finish.run(simd) };
            }
        }
    }
}

/// `chains [rows, columns] (+)= a [rows, steps] · b [steps, columns]`.
#[derive(Clone, Copy)]
struct Strip<E> {
    a: *const E,
    a_strides: [isize; 2],
    b: *const E,
    b_step: isize,
    columns: usize,
    steps: usize,
    /// Goes on with the chains instead of starting them at zero.
    resume: bool,
    chains: *mut E,
    chains_row: isize,
}

impl<E: Float> Strip<E> {
    /// # Safety
    /// - `1 <= rows <= IN_PLACE_ROWS`, `1 <= steps <= STEPS`;
    /// - `a` is valid for reads at `a_strides` for as many rows and steps, `b` for `columns` elements a
    ///   step;
    /// - `chains` is valid for writes, with `resume` for reads, of `columns` elements a row, rounded up to
    ///   whole vectors.
    #[inline(always)]
    unsafe fn run<S: Lanes<E>>(self, simd: S, rows: usize) {
        const { assert!(IN_PLACE_ROWS == 24) };
        let mut strip = self;
        let mut height = if rows > 12 { rows / 2 } else { rows };
        let mut left = rows;
        loop {
            // SAFETY: the caller's promise, for `height` of the rows.
            unsafe { strip.half(simd, height) };
            left -= height;
            if left == 0 {
                return;
            }
            strip.a = step(strip.a.cast_mut(), height, strip.a_strides[0]).cast_const();
            strip.chains = step(strip.chains, height, strip.chains_row);
            height = left;
        }
    }

    /// # Safety
    /// As [`Strip::run`], and `rows <= 12`.
    #[inline(always)]
    unsafe fn half<S: Lanes<E>>(self, simd: S, rows: usize) {
        // SAFETY: the caller's promise, passed on.
        unsafe {
            match rows {
                1 => E::call(simd, Along::<E, 1, 0>(self)),
                2 => E::call(simd, Along::<E, 2, 0>(self)),
                3 => E::call(simd, Along::<E, 3, 0>(self)),
                4 => E::call(simd, Along::<E, 4, 0>(self)),
                5 => E::call(simd, Along::<E, 5, 0>(self)),
                6 => E::call(simd, Along::<E, 6, 0>(self)),
                7 => E::call(simd, Along::<E, 4, 3>(self)),
                8 => E::call(simd, Along::<E, 4, 4>(self)),
                9 => E::call(simd, Along::<E, 5, 4>(self)),
                10 => E::call(simd, Along::<E, 5, 5>(self)),
                11 => E::call(simd, Along::<E, 6, 5>(self)),
                12 => E::call(simd, Along::<E, 6, 6>(self)),
                _ => core::hint::unreachable_unchecked(),
            }
        }
    }
}

/// A strip of R0 + R1 rows, as a function of its own. The second tile follows the first one in the same
/// columns, whose 8 lines of B are then in L1, whatever set of it they share.
struct Along<E, const R0: usize, const R1: usize>(Strip<E>);

impl<E: Float, const R0: usize, const R1: usize> ElementTask<E> for Along<E, R0, R1> {
    type Home = Self;
    type Output = ();

    #[inline(always)]
    fn run<S: Lanes<E>>(self, simd: S) {
        let first = self.0;
        let second = Strip {
            a: step(first.a.cast_mut(), R0, first.a_strides[0]).cast_const(),
            chains: step(first.chains, R0, first.chains_row),
            ..first
        };
        // SAFETY: the promise of `Strip::run`, for the first R0 rows and the R1 below them; NV vectors are
        // a tile.
        unsafe {
            let a0 = first.steps_of_a::<R0>();
            let a1 = second.steps_of_a::<R1>();
            let done = if first.steps < STEPS {
                0
            } else {
                match const { max_vectors(S::ISA) } {
                    4 => Self::tiles::<S, 4>(simd, (&first, &a0), (&second, &a1)),
                    _ => Self::tiles::<S, 2>(simd, (&first, &a0), (&second, &a1)),
                }
            };
            first.rest(simd, &a0, done);
            second.rest(simd, &a1, done);
        }
    }
}

impl<E: Float, const R0: usize, const R1: usize> Along<E, R0, R1> {
    /// The tiles of NV whole vectors; how many columns these are.
    ///
    /// # Safety
    /// As [`Strip::run`] for R0 and R1 rows with STEPS steps.
    #[inline(always)]
    unsafe fn tiles<S: Lanes<E>, const NV: usize>(
        simd: S,
        (first, a0): (&Strip<E>, &[[E; STEPS]; R0]),
        (second, a1): (&Strip<E>, &[[E; STEPS]; R1]),
    ) -> usize {
        let done = first.columns - first.columns % (NV * S::LANES);
        for start in (0..done).step_by(NV * S::LANES) {
            // SAFETY: `start + NV * LANES <= columns`.
            unsafe {
                first.tile::<S, R0, NV>(simd, a0, start, R1 > 0);
                second.tile::<S, R1, NV>(simd, a1, start, false);
            }
        }
        done
    }
}

impl<E: Float> Strip<E> {
    /// Its part of A, close together.
    ///
    /// # Safety
    /// As [`Strip::run`] for ROWS rows.
    #[inline(always)]
    unsafe fn steps_of_a<const ROWS: usize>(&self) -> [[E; STEPS]; ROWS] {
        let mut a = [[E::ZERO; STEPS]; ROWS];
        for (i, row) in a.iter_mut().enumerate() {
            let src = step(self.a.cast_mut(), i, self.a_strides[0]);
            for (p, a) in row.iter_mut().enumerate().take(self.steps) {
                // SAFETY: i < rows and p < steps.
                *a = unsafe { *step(src, p, self.a_strides[1]) };
            }
        }
        a
    }

    /// STEPS steps for NV vectors of columns from `start` on; `ahead` asks for the lines of the next ones.
    ///
    /// # Safety
    /// As [`Strip::run`] for ROWS rows with STEPS steps; the columns are the strip's.
    #[inline(always)]
    unsafe fn tile<S: Lanes<E>, const ROWS: usize, const NV: usize>(
        &self,
        simd: S,
        a: &[[E; STEPS]; ROWS],
        start: usize,
        ahead: bool,
    ) {
        let chains = self.chains.wrapping_add(start);
        let mut acc = [[simd.splat(E::ZERO); NV]; ROWS];
        // SAFETY: row i < rows, the vectors from `start` on.
        unsafe {
            if self.resume {
                each::<ROWS>(
                    #[inline(always)]
                    |i| {
                        let row = chains.wrapping_offset(i as isize * self.chains_row);
                        each::<NV>(
                            #[inline(always)]
                            |v| acc[i][v] = simd.load(row.wrapping_add(v * S::LANES)),
                        );
                    },
                );
            }
            let mut b = self.b.wrapping_add(start);
            each::<STEPS>(
                #[inline(always)]
                |p| {
                    let mut row = [simd.splat(E::ZERO); NV];
                    each::<NV>(
                        #[inline(always)]
                        |v| {
                            row[v] = simd.load(b.wrapping_add(v * S::LANES));
                            if ahead {
                                let next = b.wrapping_offset(STEPS as isize * self.b_step);
                                simd.prefetch(next.wrapping_add(v * S::LANES).cast());
                            }
                        },
                    );
                    each::<ROWS>(
                        #[inline(always)]
                        |i| {
                            let a = simd.splat(a[i][p]);
                            each::<NV>(
                                #[inline(always)]
                                |v| acc[i][v] = a.mul_add(row[v], acc[i][v]),
                            );
                        },
                    );
                    b = b.wrapping_offset(self.b_step);
                },
            );
            each::<ROWS>(
                #[inline(always)]
                |i| {
                    let row = chains.wrapping_offset(i as isize * self.chains_row);
                    each::<NV>(
                        #[inline(always)]
                        |v| simd.store(row.wrapping_add(v * S::LANES), acc[i][v]),
                    );
                },
            );
        }
    }

    /// The columns from `done` on.
    ///
    /// # Safety
    /// As [`Strip::run`] for ROWS rows.
    #[inline(always)]
    unsafe fn rest<S: Lanes<E>, const ROWS: usize>(
        &self,
        simd: S,
        a: &[[E; STEPS]; ROWS],
        done: usize,
    ) {
        if ROWS == 0 {
            return;
        }
        for start in (done..self.columns).step_by(S::LANES) {
            let tile = Tile {
                rows: ROWS,
                vectors: 1,
                depth: self.steps,
                a: a.as_ptr().cast::<E>(),
                a_layout: LayoutOfA::Rows(STEPS as isize),
                b: self.b.wrapping_add(start),
                b_step: self.b_step,
                b_last: S::LANES.min(self.columns - start),
                out: self.chains.wrapping_add(start),
                out_row: self.chains_row,
                out_last: S::LANES,
                resume: self.resume,
                add: false,
                bias: None,
            };
            // SAFETY: at least one of the strip's columns, and no more than a vector of them.
            unsafe { tile.run(simd) };
        }
    }
}
