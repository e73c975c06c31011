//! Few rows of A and a B whose columns are contiguous: LANES columns at a time, from end to end.
//!
//! ```text
//!   Bᵀ  [▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒]  column j       LANES streams, each read once, in order
//!       [▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒]  column j + 1
//!        └──┘ LANES of k: a square, transposed in registers; then one multiplication and addition for
//!             each of its rows and each row of A
//! ```
//!
//! Nothing is packed: so few rows would not win back the stores. Sums over the blocks of k stay in
//! registers until the columns are done. The streams' lines are asked for ahead, those of the next
//! columns where these end.

use super::KC;
use super::cache::asks_first_level;
use super::factor::Factor;
use super::matrix::{MatMut, MatRef, step};
use super::pack::MAX_LANES;
use super::tile::each;
use super::workspace::Workspace;
use crate::dispatch::{ElementTask, Isa, isa};
use crate::map::{load_up_to, store_up_to};
use crate::simd::sealed::Sealed as _;
use crate::simd::{Float, Lanes, Vector};

/// Most rows of A: a square and as many sums fit into the registers.
const fn most_rows(isa: Isa) -> usize {
    if isa.has_32_registers() { 8 } else { 4 }
}

/// Elements of `T` by which lines are asked for ahead: 1 KiB, of `f64` 2. Into the second-level cache but where
/// [`asks_first_level`]: a column's lines may share one set of the first-level one with those of all others.
///
/// On Zen 4, one thread, and [1024, 4096] of B, this takes of the time of 1 KiB ahead into the first-level cache, with
/// AVX-512 and up to 8 rows of A .56 to .96 where B comes from memory and .51 to 1.03 where it lies in the shared cache,
/// with AVX2 and up to 4 rows .73 to .96 and .82 to 1.12 (3 rows of `bf16` 1.14 and 1.18). Half as far takes up to 1.4
/// times as long with AVX2; twice as far gains nothing.
const fn ahead<T: Factor>() -> usize {
    256 * size_of::<T::Sum>() / size_of::<T>()
}

/// Elements up to which several rows of A are copied next to each other: at a power of two their lines
/// and those of B's columns would share one set of the cache.
const COPIED_LEN: usize = 8 * 8192;

/// C ← alpha · A·B + beta · C, or A·B + bias; B's columns and C's rows are contiguous.
pub struct ColumnsOfB<'a, T: Factor> {
    a: MatRef<'a, T>,
    b: MatRef<'a, T>,
    alpha: T::Sum,
    beta: T::Sum,
    bias: Option<&'a [T::Sum]>,
    c: MatMut<'a, T::Sum>,
    /// Where rows of A are copied to, widened, if they are.
    copy: Option<*mut T::Sum>,
}

impl<'a, T: Factor> ColumnsOfB<'a, T> {
    /// Whether the product can be computed so.
    pub(super) fn fits(a: &MatRef<'_, T>, b: &MatRef<'_, T>, c: &MatMut<'_, T::Sum>) -> bool {
        let [m, k] = a.shape;
        let few_rows = (1..=most_rows(isa())).contains(&m);
        let a_fits = T::IS_SUM && a.strides[1] == 1 || m.saturating_mul(k) <= COPIED_LEN;
        few_rows && a_fits && a.shape[1] > 0 && b.strides[0] == 1 && c.strides[1] == 1
    }

    pub(super) fn new(
        a: MatRef<'a, T>,
        b: MatRef<'a, T>,
        (alpha, beta): (T::Sum, T::Sum),
        bias: Option<&'a [T::Sum]>,
        c: MatMut<'a, T::Sum>,
        workspace: &mut Workspace<T::Sum>,
    ) -> Self {
        debug_assert!(Self::fits(&a, &b, &c));
        let [m, k] = a.shape;
        let in_place =
            T::IS_SUM && a.strides[1] == 1 && (m == 1 || m.saturating_mul(k) > COPIED_LEN);
        let copy = (!in_place).then(|| workspace.elements(m * copied_row(k)).cast());
        ColumnsOfB { a, b, alpha, beta, bias, c, copy }
    }
}

/// From one copied row to the next: whole lines, more than a power of two has.
fn copied_row(k: usize) -> usize {
    k.next_multiple_of(MAX_LANES) + MAX_LANES
}

impl<T: Factor> ElementTask<T::Sum> for ColumnsOfB<'_, T> {
    type Home = Self;
    type Output = ();

    #[inline(always)]
    fn run<S: Lanes<T::Sum>>(self, simd: S) {
        let ColumnsOfB { a, b, alpha, beta, bias, ref c, copy } = self;
        let ([m, n], k) = (c.shape, a.shape[1]);
        let (a_data, a_row) = match copy {
            None => (a.data.cast(), a.strides[0]),
            Some(copy) => {
                let row = copied_row(k);
                for i in 0..m {
                    let (src, dst) =
                        (step(a.data.cast_mut(), i, a.strides[0]), copy.wrapping_add(i * row));
                    // SAFETY: row i of A has k elements; the copy's rows are whole vectors, and longer.
                    unsafe {
                        if a.strides[1] == 1 {
                            for p in (0..k).step_by(S::LANES) {
                                let x = T::load_up_to(simd, src.wrapping_add(p), k - p);
                                simd.store(dst.wrapping_add(p), x);
                            }
                        } else {
                            for p in 0..k {
                                let x = *step(src, p, a.strides[1]);
                                dst.wrapping_add(p).write(x.widened());
                            }
                        }
                    }
                }
                (copy.cast_const(), row as isize)
            }
        };
        let asks_near = asks_first_level();
        for left in (0..n).step_by(S::LANES) {
            let down = Down {
                a: a_data,
                a_row,
                b: step(b.data.cast_mut(), left, b.strides[1]).cast_const(),
                b_column: b.strides[1],
                depth: k,
                columns: S::LANES.min(n - left),
                alpha,
                beta,
                bias: bias.map(|bias| bias.as_ptr().wrapping_add(left)),
                c: c.data.wrapping_add(left),
                c_row: c.strides[0],
                asks_near,
            };
            // SAFETY: A (or its copy) and C have m rows, not too many, as `fits` has found; columns
            // `left..left + columns` are in B, C and the bias.
            unsafe { down.run(simd, m) };
        }
    }
}

/// Up to LANES columns of B, for all rows of A.
#[derive(Clone, Copy)]
struct Down<T: Factor> {
    /// Rows `a_row` apart, k contiguous.
    a: *const T::Sum,
    a_row: isize,
    /// Columns `b_column` apart, k contiguous.
    b: *const T,
    b_column: isize,
    /// Steps of k.
    depth: usize,
    columns: usize,
    alpha: T::Sum,
    beta: T::Sum,
    bias: Option<*const T::Sum>,
    c: *mut T::Sum,
    c_row: isize,
    /// Asks for lines ahead into the first-level cache, not the second.
    asks_near: bool,
}

impl<T: Factor> Down<T> {
    /// # Safety
    /// - `1 <= rows <= most_rows(S::ISA)`, `1 <= columns <= LANES`;
    /// - `a` is valid for reads of `rows` rows, `b` of `columns` columns, `depth` elements each;
    /// - `c` is valid for writes and, unless beta is zero, for reads of `columns` elements a row; `bias`
    ///   for reads of as many.
    #[inline(always)]
    unsafe fn run<S: Lanes<T::Sum>>(self, simd: S, rows: usize) {
        // SAFETY: the caller's promise, passed on.
        unsafe {
            match rows {
                1 => T::Sum::call(simd, Columns::<T, 1>(self)),
                2 => T::Sum::call(simd, Columns::<T, 2>(self)),
                3 => T::Sum::call(simd, Columns::<T, 3>(self)),
                4 => T::Sum::call(simd, Columns::<T, 4>(self)),
                5 if const { most_rows(S::ISA) >= 5 } => T::Sum::call(simd, Columns::<T, 5>(self)),
                6 if const { most_rows(S::ISA) >= 6 } => T::Sum::call(simd, Columns::<T, 6>(self)),
                7 if const { most_rows(S::ISA) >= 7 } => T::Sum::call(simd, Columns::<T, 7>(self)),
                8 if const { most_rows(S::ISA) >= 8 } => T::Sum::call(simd, Columns::<T, 8>(self)),
                _ => core::hint::unreachable_unchecked(),
            }
        }
    }
}

/// M rows of A, as a function of its own.
struct Columns<T: Factor, const M: usize>(Down<T>);

impl<T: Factor, const M: usize> ElementTask<T::Sum> for Columns<T, M> {
    type Home = Self;
    type Output = ();

    #[inline(always)]
    fn run<S: Lanes<T::Sum>>(self, simd: S) {
        // SAFETY: made by `Down::run` alone, whose caller's promise this is; N is the number of lanes.
        unsafe {
            match const { S::LANES } {
                16 => self.0.sweep::<S, M, 16>(simd),
                8 => self.0.sweep::<S, M, 8>(simd),
                4 => self.0.sweep::<S, M, 4>(simd),
                2 => self.0.sweep::<S, M, 2>(simd),
                _ => self.0.sweep::<S, M, 1>(simd),
            }
        }
    }
}

impl<T: Factor> Down<T> {
    /// # Safety
    /// As [`Down::run`] for M rows; N is the number of lanes.
    #[inline(always)]
    unsafe fn sweep<S: Lanes<T::Sum>, const M: usize, const N: usize>(&self, simd: S) {
        // Lanes beyond the last column hold it once more.
        let mut offsets = [0; N];
        for (j, offset) in offsets.iter_mut().enumerate() {
            *offset = j.min(self.columns - 1) as isize * self.b_column;
        }
        let mut sums = [simd.splat(T::Sum::ZERO); M];
        for from in (0..self.depth).step_by(KC) {
            let depth = KC.min(self.depth - from);
            // SAFETY: steps `from..from + depth` are in A and B.
            let acc = unsafe {
                if self.asks_near {
                    self.block::<S, M, N, true>(simd, &offsets, from, depth)
                } else {
                    self.block::<S, M, N, false>(simd, &offsets, from, depth)
                }
            };
            each::<M>(
                #[inline(always)]
                |i| sums[i] = if from == 0 { acc[i] } else { sums[i] + acc[i] },
            );
        }
        let (alpha, beta) = (simd.splat(self.alpha), simd.splat(self.beta));
        for (i, &ab) in sums.iter().enumerate() {
            let c = step(self.c, i, self.c_row);
            // SAFETY: row i has `columns` elements in C, which is read as the caller promises, and so
            // has the bias.
            unsafe {
                let result = if let Some(bias) = self.bias {
                    ab + load_up_to(simd, bias, self.columns)
                } else if self.beta == T::Sum::ZERO {
                    alpha * ab
                } else {
                    alpha.mul_add(ab, beta * load_up_to(simd, c, self.columns))
                };
                store_up_to(simd, c, self.columns, result);
            }
        }
    }

    /// The chains of one block of k; NEAR: lines are asked for into the first-level cache.
    ///
    /// # Safety
    /// As [`Down::run`] for M rows; the steps are in A and B; a column of B begins at each offset.
    #[inline(always)]
    unsafe fn block<S: Lanes<T::Sum>, const M: usize, const N: usize, const NEAR: bool>(
        &self,
        simd: S,
        offsets: &[isize; N],
        from: usize,
        depth: usize,
    ) -> [S::V; M] {
        let mut acc = [simd.splat(T::Sum::ZERO); M];
        let ahead = const { ahead::<T>() };
        // From the end of these columns to the beginning of the next ones.
        let turn = N as isize * self.b_column - self.depth as isize;
        let (mut a, mut b) = (self.a.wrapping_add(from), self.b.wrapping_add(from));
        let squares = depth / N;
        for square in 0..squares {
            let is_near_end = from + square * N + ahead >= self.depth;
            let next = b.wrapping_add(ahead).wrapping_offset(if is_near_end { turn } else { 0 });
            let mut square = [simd.splat(T::Sum::ZERO); N];
            each::<N>(
                #[inline(always)]
                |j| {
                    // SAFETY: a column, N steps that are left.
                    square[j] = unsafe { T::load(simd, b.wrapping_offset(offsets[j])) };
                    let next = next.wrapping_offset(offsets[j]).cast();
                    if NEAR { simd.prefetch(next) } else { simd.prefetch_l2(next) }
                },
            );
            let square = S::V::transpose(square);
            each::<N>(
                #[inline(always)]
                |p| {
                    each::<M>(
                        #[inline(always)]
                        |i| {
                            let row = a.wrapping_offset(i as isize * self.a_row);
                            // SAFETY: row i, step p of those that are left.
                            let a = simd.splat(unsafe { *row.wrapping_add(p) });
                            acc[i] = a.mul_add(square[p], acc[i]);
                        },
                    );
                },
            );
            (a, b) = (a.wrapping_add(N), b.wrapping_add(N));
        }
        let rest = depth - squares * N;
        if rest > 0 {
            let mut square = [simd.splat(T::Sum::ZERO); N];
            for (lanes, &offset) in square.iter_mut().zip(offsets).take(self.columns) {
                // SAFETY: a column, the steps that are left.
                *lanes = unsafe { T::load_up_to(simd, b.wrapping_offset(offset), rest) };
            }
            let square = S::V::transpose(square);
            for (p, &b) in square.iter().enumerate().take(rest) {
                for (i, acc) in acc.iter_mut().enumerate() {
                    let row = a.wrapping_offset(i as isize * self.a_row);
                    // SAFETY: row i, step p of those that are left.
                    *acc = simd.splat(unsafe { *row.wrapping_add(p) }).mul_add(b, *acc);
                }
            }
        }
        acc
    }
}
