//! Few rows of A and a B that is read along its rows: a large B, or one of any size with reversed
//! columns.
//!
//! ```text
//!      k: 8 rows of B side by side        B [▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒]   8 sequential streams
//!                                           [▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒]
//!         the next 8                        [░░░░░░░            ]   prefetched into L2
//!      A [m, 8] on the stack              C [██████████████████]   partial sums, m rows, kept near
//! ```
//!
//! 1. *Along rows, not down columns.* A tile that goes down B's columns uses one cache line per
//!    row, and the hardware prefetcher only follows rows.
//! 2. *Partial sums wait in memory*, because the chains of additions are not complete when a row
//!    ends. A vector of them is loaded and stored once per 8 rows of B. Rows of sums are a line
//!    further apart than the panel is wide: at a power of two they would share one set of the
//!    cache.
//! 3. *More than 6 rows of A are several groups*, which take turns at the panel's part of the 8
//!    rows of B, no more than an L2 cache holds. For 16-bit floats, which each group widens again,
//!    a group has four rows.
//! 4. *Reversed columns* are read in place too: their partial sums are in reverse order, and
//!    reversed when a block of k is done.
//! 5. *The first group prefetches the next 8 rows into L2*: L1 cannot have enough lines in flight
//!    to keep memory busy. Where the hardware prefetcher suffices ([`hardware_prefetches`]), there
//!    are no prefetches.
//!
//! On Zen 4, with 2 to 24 rows of A and [1024, 4096] of B, this takes .66 to .98 of the time of
//! prefetches into L1 and shorter chains if B comes from memory, .70 to 1.18 from the shared cache;
//! docs/lab/kernels.md has the table.

use super::cache::hardware_prefetches;
use super::driver::Combine;
use super::factor::Factor;
use super::matrix::{MatMut, MatRef, step};
use super::pack::{Copied, copied_row};
use super::split::Split;
use super::tile::{MR, Tile, each, max_vectors, multiply, read, row_offsets, write};
use super::workspace::Workspace;
use super::{IN_PLACE_ROWS, KC};
use crate::copy::is_streamed;
use crate::simd::sealed::Sealed as _;
use crate::simd::{Float, Lanes, MAX_LANES, Task};

/// Rows of B read side by side.
const STEPS: usize = 8;

/// Bytes of the partial sums of a panel, which bound the length of B's runs. 2 to 24 rows take .8
/// to 1.0 of the time of 16 KiB (8 rows in an L1 of 48 KiB up to 1.06).
const CHAINS_BYTES: usize = 32 << 10;

/// Bytes from which a B with contiguous rows is read along them: going down its columns would leave
/// the hardware prefetcher idle.
const STREAM_BYTES: usize = 512 * 1024;

/// The most rows of A for which a reversed B is not packed: one row takes 0.2 of the time of
/// packing, 12 take 0.55.
const REVERSED_ROWS: usize = 12;

/// The fewest columns of such a B.
const MIN_COLUMNS: usize = 64;

/// C ← alpha · A·B + beta · C, or A·B + bias; C's rows are contiguous, m ≤ IN_PLACE_ROWS.
pub struct RowsOfB<'a, T: Factor> {
    pub(super) a: MatRef<'a, T>,
    pub(super) b: MatRef<'a, T>,
    pub(super) alpha: T::Sum,
    pub(super) beta: T::Sum,
    pub(super) bias: Option<&'a [T::Sum]>,
    pub(super) c: MatMut<'a, T::Sum>,
    memory: *mut T::Sum,
}

impl<'a, T: Factor> RowsOfB<'a, T> {
    /// True if `rows` rows of A are computed faster this way.
    pub(super) fn pays(b: &MatRef<'_, T>, rows: usize) -> bool {
        let [k, n] = b.shape;
        let most = match b.strides {
            [_, 1] if k.saturating_mul(n) > STREAM_BYTES / size_of::<T>() => IN_PLACE_ROWS,
            // Adjacent rows would be no separate streams; with fewer steps or columns, packing is
            // faster.
            [down, -1] if down.unsigned_abs() > 1 && k >= STEPS && n >= MIN_COLUMNS => {
                REVERSED_ROWS
            }
            _ => 0,
        };
        (1..=most).contains(&rows)
    }

    pub(super) fn new(
        a: MatRef<'a, T>,
        b: MatRef<'a, T>,
        (alpha, beta): (T::Sum, T::Sum),
        bias: Option<&'a [T::Sum]>,
        c: MatMut<'a, T::Sum>,
        workspace: &mut Workspace<T::Sum>,
    ) -> Self {
        debug_assert!(
            c.shape[0] <= IN_PLACE_ROWS && matches!(b.strides[1], 1 | -1) && c.strides[1] == 1
        );
        let [m, n] = c.shape;
        let partial = if b.shape[0] > KC { m * Self::width(m).min(n) } else { 0 };
        let of_a = if T::IS_SUM { 0 } else { m * copied_row(KC) };
        let memory = workspace.elements(m * Self::chains_row(m) + of_a + partial).cast();
        RowsOfB { a, b, alpha, beta, bias, c, memory }
    }

    /// Columns of a panel: whole tiles.
    fn width(m: usize) -> usize {
        let tile = super::tile::MAX_NV * MAX_LANES;
        (CHAINS_BYTES / size_of::<T::Sum>() / m).next_multiple_of(tile)
    }

    /// The distance between rows of partial sums.
    fn chains_row(m: usize) -> usize {
        Self::width(m) + MAX_LANES
    }
}

impl<T: Factor> Task<T::Sum> for RowsOfB<'_, T> {
    type Home = Self;
    type Output = ();

    #[inline(always)]
    fn run<S: Lanes<T::Sum>>(self, simd: S) {
        let RowsOfB { a, b, alpha, beta, bias, ref c, memory: chains } = self;
        let ([m, n], k) = (c.shape, a.shape[1]);
        let (width, chains_row) = (Self::width(m), Self::chains_row(m));
        let copy = chains.wrapping_add(m * chains_row);
        let partial = copy.wrapping_add(if T::IS_SUM { 0 } else { m * copied_row(KC) });
        let is_reversed = b.strides[1] == -1;
        // A B as large as results that are stored non-temporally, or a thread's part of it, comes
        // from memory.
        let is_far = is_streamed::<T>(k.saturating_mul(n));
        let prefetches = !hardware_prefetches() && (is_far || T::IS_SUM && m > 1);
        for left in (0..n).step_by(width) {
            let columns = width.min(n - left);
            let first = if is_reversed { left + columns - 1 } else { left };
            for from in (0..k).step_by(KC) {
                let depth = KC.min(k - from);
                let (a_block, a_strides) = if T::IS_SUM {
                    (step(a.data.cast_mut(), from, a.strides[1]).cast_const().cast(), a.strides)
                } else {
                    let block = a.part([0, from], [m, depth]);
                    // SAFETY: the copy holds m rows of KC elements.
                    T::Sum::call(simd, &unsafe { Copied::new(&block, copy, copied_row(depth)) });
                    (copy.cast_const(), [copied_row(depth) as isize, 1])
                };
                for at in (0..depth).step_by(STEPS) {
                    let steps = STEPS.min(depth - at);
                    let a = step::<T::Sum>(a_block.cast_mut(), at, a_strides[1]);
                    let corner = step(b.data.cast_mut(), from + at, b.strides[0]);
                    let corner = step(corner, first, b.strides[1]);
                    let strip = Strip {
                        rows: m,
                        a: a.cast_const(),
                        a_strides,
                        b: corner.cast_const(),
                        b_step: self.b.strides[0],
                        columns,
                        steps,
                        resume: at > 0,
                        prefetches: prefetches && k - from - at > STEPS,
                        chains,
                        chains_row: chains_row as isize,
                    };
                    // SAFETY: A and C have m rows, at most IN_PLACE_ROWS; `steps` values of k from
                    // `from + at` on are in A (or its copy) and B, and the panel's columns in B;
                    // `chains` has m rows of `width` columns and a line more. Earlier steps wrote
                    // the sums that are resumed.
                    unsafe { strip.run(simd) };
                }
                if is_reversed {
                    for i in 0..m {
                        let chains = chains.wrapping_add(i * chains_row);
                        // SAFETY: the panel's sums of row i have just been written.
                        unsafe { core::slice::from_raw_parts_mut(chains, columns) }.reverse();
                    }
                }
                let combine = Combine {
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
                // SAFETY: m rows and the panel's columns are in C, in the sums just computed and,
                // if k has several blocks, in `partial`; a bias has n elements.
                unsafe { combine.run(simd) };
            }
        }
    }
}

/// `chains [rows, columns] (+)= a [rows, steps] · b [steps, columns]`.
#[derive(Clone, Copy)]
struct Strip<T: Factor> {
    rows: usize,
    a: *const T::Sum,
    a_strides: [isize; 2],
    b: *const T,
    b_step: isize,
    columns: usize,
    steps: usize,
    /// Resumes the sums instead of starting them at zero.
    resume: bool,
    /// Prefetches the next STEPS rows.
    prefetches: bool,
    chains: *mut T::Sum,
    chains_row: isize,
}

impl<T: Factor> Strip<T> {
    /// The most rows of A in a group: those of a tile, or for 16-bit floats as many as leave
    /// registers for widening.
    const GROUP: usize = if T::IS_SUM { MR } else { 4 };

    /// # Safety
    /// - `1 <= rows <= IN_PLACE_ROWS`, `1 <= steps <= STEPS`;
    /// - `a` is valid for reads of `rows` rows and `steps` values of k at `a_strides`, `b` of
    ///   `columns` elements per step;
    /// - `chains` is valid for writes, with `resume` also for reads, of `columns` elements per row,
    ///   rounded up to whole vectors.
    #[inline(always)]
    unsafe fn run<S: Lanes<T::Sum>>(mut self, simd: S) {
        // Copy A's elements next to each other.
        let mut a = [[T::Sum::ZERO; STEPS]; IN_PLACE_ROWS];
        for (i, row) in a.iter_mut().enumerate().take(self.rows) {
            let src = step(self.a.cast_mut(), i, self.a_strides[0]);
            for (p, a) in row.iter_mut().enumerate().take(self.steps) {
                // SAFETY: i < rows and p < steps.
                *a = unsafe { *step(src, p, self.a_strides[1]) };
            }
        }
        (self.a, self.a_strides) = (a.as_ptr().cast(), [STEPS as isize, 1]);
        let tile = const { max_vectors(S::ISA) } * S::LANES;
        let whole = if self.steps < STEPS { 0 } else { self.columns - self.columns % tile };
        let groups = Split::new(self.rows, if const { S::LANES == 1 } { 1 } else { Self::GROUP });
        for group in 0..groups.parts() {
            let (top, rows) = (groups.start(group), groups.len(group));
            let mut tiles = self.group(top, rows, 0);
            tiles.columns = whole;
            tiles.prefetches &= group == 0;
            // SAFETY: a group's rows and columns are the strip's; those up to `whole` are whole
            // tiles.
            unsafe {
                match const { max_vectors(S::ISA) } {
                    4 => tiles.tiles::<S, 4>(simd),
                    2 => tiles.tiles::<S, 2>(simd),
                    _ => tiles.tiles::<S, 1>(simd),
                }
                self.group(top, rows, whole).rest(simd);
            }
        }
    }

    /// The part of `rows` rows from `top` on, and of the columns from `start` on.
    #[inline(always)]
    fn group(self, top: usize, rows: usize, start: usize) -> Self {
        Strip {
            rows,
            a: step(self.a.cast_mut(), top, STEPS as isize).cast_const(),
            b: self.b.wrapping_add(start),
            columns: self.columns - start,
            chains: step(self.chains, top, self.chains_row).wrapping_add(start),
            ..self
        }
    }

    /// Computes whole tiles.
    ///
    /// # Safety
    /// See [`Strip::run`], for STEPS steps, an A whose rows are STEPS long, `rows <= GROUP`, and
    /// columns that are whole tiles.
    #[inline(always)]
    unsafe fn tiles<S: Lanes<T::Sum>, const NV: usize>(&self, simd: S) {
        // SAFETY: the caller promises the same.
        unsafe {
            match self.rows {
                1 => T::Sum::call(simd, Tiles::<T, 1, NV>(self)),
                _ if const { S::LANES == 1 } => core::hint::unreachable_unchecked(),
                2 => T::Sum::call(simd, Tiles::<T, 2, NV>(self)),
                3 => T::Sum::call(simd, Tiles::<T, 3, NV>(self)),
                4 => T::Sum::call(simd, Tiles::<T, 4, NV>(self)),
                5 if const { T::IS_SUM } => T::Sum::call(simd, Tiles::<T, 5, NV>(self)),
                6 if const { T::IS_SUM } => T::Sum::call(simd, Tiles::<T, 6, NV>(self)),
                _ => core::hint::unreachable_unchecked(),
            }
        }
    }
}

/// Whole tiles of ROWS rows and NV vectors, as a separate function.
struct Tiles<'a, T: Factor, const ROWS: usize, const NV: usize>(&'a Strip<T>);

impl<T: Factor, const ROWS: usize, const NV: usize> Task<T::Sum> for Tiles<'_, T, ROWS, NV> {
    type Home = Strip<T>;
    type Output = ();

    #[inline(always)]
    fn run<S: Lanes<T::Sum>>(self, simd: S) {
        let strip = self.0;
        let all = simd.first(S::LANES);
        let mut start = 0;
        while start < strip.columns {
            let (chains, mut b) = (strip.chains.wrapping_add(start), strip.b.wrapping_add(start));
            if strip.prefetches {
                strip.prefetch(simd, start);
            }
            // SAFETY: only `Strip::tiles` makes this, and its caller promises ROWS rows, whole
            // vectors from `start` on, and STEPS steps.
            unsafe {
                let mut acc = [[simd.splat(T::Sum::ZERO); NV]; ROWS];
                if strip.resume {
                    acc = read(simd, chains, strip.chains_row, all);
                }
                let mut p = 0;
                while p < STEPS {
                    let mut row = [simd.splat(T::Sum::ZERO); NV];
                    each!(v in NV => {
                        row[v] = T::load(simd, b.wrapping_add(v * S::LANES));
                    });
                    let a_rows = &row_offsets(STEPS as isize);
                    multiply(simd, strip.a.wrapping_add(p), a_rows, &row, &mut acc);
                    (p, b) = (p + 1, b.wrapping_offset(strip.b_step));
                }
                write(simd, chains, strip.chains_row, None, &acc);
            }
            start += NV * S::LANES;
        }
    }
}

impl<T: Factor> Strip<T> {
    /// Prefetches a tile's columns of the next STEPS rows.
    #[inline(always)]
    fn prefetch<S: Lanes<T::Sum>>(&self, simd: S, start: usize) {
        let mut next = step(self.b.cast_mut(), STEPS, self.b_step).wrapping_add(start);
        for _ in 0..STEPS {
            each!(v in const { max_vectors(S::ISA) } => {
                simd.prefetch_l2(next.wrapping_add(v * S::LANES).cast());
            });
            next = next.wrapping_offset(self.b_step);
        }
    }

    /// Computes all columns, one vector at a time.
    ///
    /// # Safety
    /// See [`Strip::run`], for an A whose rows are STEPS long.
    #[inline(always)]
    unsafe fn rest<S: Lanes<T::Sum>>(&self, simd: S) {
        const { assert!(S::LANES <= MAX_LANES) };
        let mut wide = [T::Sum::ZERO; STEPS * MAX_LANES];
        for start in (0..self.columns).step_by(S::LANES) {
            let lanes = S::LANES.min(self.columns - start);
            let b = self.b.wrapping_add(start);
            let (b, b_step) = if T::IS_SUM {
                (b.cast(), self.b_step)
            } else {
                for p in 0..self.steps {
                    // SAFETY: step p of B has `lanes` columns from `start` on; the array holds
                    // STEPS vectors, as asserted above.
                    unsafe {
                        let row = T::load_up_to(simd, step(b.cast_mut(), p, self.b_step), lanes);
                        simd.store(wide.as_mut_ptr().wrapping_add(p * S::LANES), row);
                    }
                }
                (wide.as_ptr(), S::LANES as isize)
            };
            let tile = Tile {
                rows: self.rows,
                vectors: 1,
                depth: self.steps,
                a: self.a,
                a_rows: row_offsets(STEPS as isize),
                a_step: 1,
                b,
                b_step,
                b_rows: None,
                out: self.chains.wrapping_add(start),
                out_row: self.chains_row,
                last: lanes,
                resume: self.resume,
                add: false,
                bias: None,
            };
            // SAFETY: at most MR rows, and between one column and a vector of the strip's columns.
            unsafe { tile.run(simd) };
        }
    }
}
