//! Few rows of A and a B whose columns are contiguous: LANES columns at a time, over all of k.
//!
//! ```text
//!   Bᵀ  [▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒]  column j       LANES streams, each read once, in order
//!       [▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒]  column j + 1
//!        └──┘ LANES of k: a square, transposed in registers; then one fused multiply-add for each
//!             of its rows and each row of A
//! ```
//!
//! Nothing is packed, because so few rows would not repay the stores. Sums over the blocks of k
//! stay in registers until the columns are done. The streams are prefetched, and near their end
//! those of the next columns.

use super::KC;
use super::cache::hardware_prefetches;
use super::factor::Factor;
use super::matrix::{MatMut, MatRef, step};
use super::pack::{self, Copied};
use super::tile::each;
use super::workspace::Workspace;
use crate::dispatch::isa;
use crate::simd::sealed::Sealed as _;
use crate::simd::{Float, Isa, Lanes, MAX_LANES, Task, Vector};

/// The most rows of A: a square and that many sums fit the registers.
const fn most_rows(isa: Isa) -> usize {
    if isa.has_32_registers() { 8 } else { 4 }
}

/// Prefetch distance in elements of `T`: 1 KiB, for `f64` 2. Prefetches go to L2, unless the
/// hardware prefetcher suffices ([`hardware_prefetches`]), because the cache lines of all columns
/// may share one set of L1. On Zen 4 this takes .51 to 1.18 of the time of prefetching into L1; see
/// docs/lab/kernels.md.
const fn ahead<T: Factor>() -> usize {
    256 * size_of::<T::Sum>() / size_of::<T>()
}

/// Elements of A up to which its rows are copied together: at a power of two, their lines and those
/// of B's columns would share one set of the cache.
const COPIED_LEN: usize = 8 * 8192;

/// C ← alpha · A·B + beta · C, or A·B + bias; B's columns and C's rows are contiguous.
pub struct ColumnsOfB<'a, T: Factor> {
    a: MatRef<'a, T>,
    b: MatRef<'a, T>,
    alpha: T::Sum,
    beta: T::Sum,
    bias: Option<&'a [T::Sum]>,
    c: MatMut<'a, T::Sum>,
    /// Memory that rows of A are copied to and widened in, if any.
    copy: Option<*mut T::Sum>,
}

impl<'a, T: Factor> ColumnsOfB<'a, T> {
    /// True if the product can be computed this way.
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

/// The distance between copied rows: whole cache lines, and one more vector, so that it is no power
/// of two.
fn copied_row(k: usize) -> usize {
    pack::copied_row(k) + MAX_LANES
}

impl<T: Factor> Task<T::Sum> for ColumnsOfB<'_, T> {
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
                // SAFETY: the copy has m such rows.
                T::Sum::call(simd, &unsafe { Copied::new(&a, copy, row) });
                (copy.cast_const(), row as isize)
            }
        };
        let prefetches_l1 = hardware_prefetches();
        for left in (0..n).step_by(S::LANES) {
            let group = ColumnGroup {
                rows: if const { S::LANES == 1 } { 1 } else { m },
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
                prefetches_l1,
            };
            for top in (0..m).step_by(group.rows) {
                let part = ColumnGroup {
                    a: step(group.a.cast_mut(), top, a_row).cast_const(),
                    c: step(group.c, top, c.strides[0]),
                    ..group
                };
                // SAFETY: A (or its copy) and C have m rows, at most `most_rows`, as `fits` has
                // checked; columns `left..left + columns` are in B, C and the bias.
                unsafe { part.run(simd) };
            }
        }
    }
}

/// Up to LANES columns of B, for all rows of A.
#[derive(Clone, Copy)]
struct ColumnGroup<T: Factor> {
    rows: usize,
    /// Rows are `a_row` apart; k is contiguous.
    a: *const T::Sum,
    a_row: isize,
    /// Columns are `b_column` apart; k is contiguous.
    b: *const T,
    b_column: isize,
    /// Values of k.
    depth: usize,
    columns: usize,
    alpha: T::Sum,
    beta: T::Sum,
    bias: Option<*const T::Sum>,
    c: *mut T::Sum,
    c_row: isize,
    /// Prefetches into L1 instead of L2.
    prefetches_l1: bool,
}

impl<T: Factor> ColumnGroup<T> {
    /// # Safety
    /// - there are `1..=most_rows(S::ISA)` rows, 1 if a vector has one lane, and `1..=LANES`
    ///   columns;
    /// - `a` is valid for reads of `rows` rows, `b` of `columns` columns, `depth` elements each;
    /// - `c` is valid for writes and, unless beta is zero, for reads of `columns` elements per row;
    ///   `bias` for reads of `columns` elements.
    #[inline(always)]
    unsafe fn run<S: Lanes<T::Sum>>(self, simd: S) {
        // SAFETY: the caller promises the same.
        unsafe {
            match self.rows {
                1 => T::Sum::call(simd, Columns::<T, 1>(self)),
                _ if const { S::LANES == 1 } => core::hint::unreachable_unchecked(),
                2 => T::Sum::call(simd, Columns::<T, 2>(self)),
                3 | 4 => T::Sum::call(simd, Columns::<T, 4>(self)),
                5 | 6 if const { most_rows(S::ISA) >= 6 } => {
                    T::Sum::call(simd, Columns::<T, 6>(self));
                }
                7 | 8 if const { most_rows(S::ISA) >= 8 } => {
                    T::Sum::call(simd, Columns::<T, 8>(self));
                }
                _ => core::hint::unreachable_unchecked(),
            }
        }
    }
}

/// At most M rows of A, as a separate function; missing rows repeat the last one.
struct Columns<T: Factor, const M: usize>(ColumnGroup<T>);

impl<T: Factor, const M: usize> Task<T::Sum> for Columns<T, M> {
    type Home = Self;
    type Output = ();

    #[inline(always)]
    fn run<S: Lanes<T::Sum>>(self, simd: S) {
        const { assert!(matches!(S::LANES, 1 | 2 | 4 | 8 | 16)) };
        // SAFETY: only `ColumnGroup::run` makes this, and its caller promises the same; N is the
        // number of lanes, as asserted above.
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

impl<T: Factor> ColumnGroup<T> {
    /// # Safety
    /// See [`ColumnGroup::run`], for at most M rows; N is the number of lanes.
    #[inline(always)]
    unsafe fn sweep<S: Lanes<T::Sum>, const M: usize, const N: usize>(&self, simd: S) {
        let offsets = self.offsets::<N>();
        let mut a_rows = [0; M];
        each!(i in M => {
            a_rows[i] = i.min(self.rows - 1) as isize * self.a_row;
        });
        let mut sums = [simd.splat(T::Sum::ZERO); M];
        let mut at = 0;
        while at < self.depth {
            let mut acc = [simd.splat(T::Sum::ZERO); M];
            let (from, end) = (at, self.depth.min(at + KC));
            // SAFETY: a square has N more values of k in the block, the last one fewer, and p is
            // one of them.
            unsafe {
                while end - at >= N {
                    let (a, square) = (self.a.wrapping_add(at), self.square(simd, &offsets, at));
                    // Unrolled by hand: the loop is too long for the compiler to unroll, which
                    // would put the square into memory.
                    macro_rules! steps {
                        ($($p:literal)*) => {$(
                            if const { $p < N } {
                                self.add_step(simd, a.wrapping_add($p), &a_rows, square[$p], &mut acc);
                            }
                        )*};
                    }
                    steps!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
                    at += N;
                }
                if at < end {
                    let (a, rest) = (self.a.wrapping_add(at), end - at);
                    let square = self.last_square(simd, &offsets, at, rest);
                    let mut p = 0;
                    while p < rest {
                        self.add_step(simd, a.wrapping_add(p), &a_rows, square[p], &mut acc);
                        p += 1;
                    }
                    at = end;
                }
            }
            each!(i in M => {
                sums[i] = if from == 0 { acc[i] } else { sums[i] + acc[i] };
            });
        }
        each!(i in M => {
            if i < self.rows {
                // SAFETY: i is one of the rows.
                unsafe { self.finish(simd, i, sums[i]) };
            }
        });
    }

    /// The offsets of the columns; lanes beyond the last column repeat it.
    #[inline(always)]
    fn offsets<const N: usize>(&self) -> [isize; N] {
        let mut offsets = [0; N];
        for (j, offset) in offsets.iter_mut().enumerate() {
            *offset = j.min(self.columns - 1) as isize * self.b_column;
        }
        offsets
    }

    /// Writes row i of C from its sums.
    ///
    /// # Safety
    /// See [`ColumnGroup::run`]; i is one of the rows.
    #[inline(always)]
    unsafe fn finish<S: Lanes<T::Sum>>(&self, simd: S, i: usize, ab: S::V) {
        let (alpha, beta) = (simd.splat(self.alpha), simd.splat(self.beta));
        let c = step(self.c, i, self.c_row);
        // SAFETY: row i has `columns` elements in C and in the bias; C is read only as the caller
        // promises.
        unsafe {
            let result = if let Some(bias) = self.bias {
                ab + simd.load_up_to(bias, self.columns)
            } else if self.beta == T::Sum::ZERO {
                alpha * ab
            } else {
                alpha.mul_add(ab, beta * simd.load_up_to(c, self.columns))
            };
            simd.store_up_to(c, self.columns, result);
        }
    }

    /// Loads N values of k of B from `at` on, one vector each, and prefetches later ones.
    ///
    /// # Safety
    /// A column of B begins at each offset, and has these elements.
    #[inline(always)]
    unsafe fn square<S: Lanes<T::Sum>, const N: usize>(
        &self,
        simd: S,
        offsets: &[isize; N],
        at: usize,
    ) -> [S::V; N] {
        let ahead = const { ahead::<T>() };
        // At the end of these columns, continue at the beginning of the next ones.
        let turn = N as isize * self.b_column - self.depth as isize;
        let b = self.b.wrapping_add(at);
        let next =
            b.wrapping_add(ahead).wrapping_offset(if self.depth - at <= ahead { turn } else { 0 });
        let mut square = [simd.splat(T::Sum::ZERO); N];
        each!(j in N => {
            // SAFETY: a column, with N more elements.
            square[j] = unsafe { T::load(simd, b.wrapping_offset(offsets[j])) };
            let line = next.wrapping_offset(offsets[j]).cast();
            if self.prefetches_l1 { simd.prefetch(line) } else { simd.prefetch_l2(line) }
        });
        S::V::transpose(square)
    }

    /// Loads the last values of k of B, fewer than N.
    ///
    /// # Safety
    /// See [`ColumnGroup::square`].
    #[inline(always)]
    unsafe fn last_square<S: Lanes<T::Sum>, const N: usize>(
        &self,
        simd: S,
        offsets: &[isize; N],
        at: usize,
        count: usize,
    ) -> [S::V; N] {
        let mut square = [simd.splat(T::Sum::ZERO); N];
        for (lanes, &offset) in square.iter_mut().zip(offsets).take(self.columns) {
            // SAFETY: a column, with `count` more elements.
            *lanes = unsafe {
                T::load_up_to(simd, self.b.wrapping_add(at).wrapping_offset(offset), count)
            };
        }
        S::V::transpose(square)
    }

    /// Adds one k: `acc += a · b`.
    ///
    /// # Safety
    /// See [`ColumnGroup::run`]; `a` points to one of the promised values of k, and `a_rows` leads
    /// from there to the rows.
    #[inline(always)]
    unsafe fn add_step<S: Lanes<T::Sum>, const M: usize>(
        &self,
        simd: S,
        a: *const T::Sum,
        a_rows: &[isize; M],
        b: S::V,
        acc: &mut [S::V; M],
    ) {
        each!(i in M => {
            // SAFETY: i is one of the rows.
            let a = simd.splat(unsafe { *a.wrapping_offset(a_rows[i]) });
            acc[i] = a.mul_add(b, acc[i]);
        });
    }
}
