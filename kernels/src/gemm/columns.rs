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
//! registers until the columns are done. The streams are prefetched, those of the next columns where these
//! end.

use super::KC;
use super::cache::runs_ahead;
use super::factor::Factor;
use super::matrix::{MatMut, MatRef, step};
use super::pack::{self, Copied};
use super::tile::each;
use super::workspace::Workspace;
use crate::dispatch::isa;
use crate::simd::sealed::Sealed as _;
use crate::simd::{ElementTask, Float, Isa, Lanes, MAX_LANES, Vector};

/// Most rows of A: a square and as many sums fit into the registers.
const fn most_rows(isa: Isa) -> usize {
    if isa.has_32_registers() { 8 } else { 4 }
}

/// Elements of `T` by which prefetches are ahead: 1 KiB, of `f64` 2. Into the second-level cache unless the core
/// [`runs_ahead`]: a column's lines may share one set of the first-level one with those of all others.
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
    pack::copied_row(k) + MAX_LANES
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
                // SAFETY: the copy has m such rows.
                T::Sum::call(simd, &unsafe { Copied::new(&a, copy, row) });
                (copy.cast_const(), row as isize)
            }
        };
        let is_near = runs_ahead();
        for left in (0..n).step_by(S::LANES) {
            let down = Down {
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
                is_near,
            };
            for top in (0..m).step_by(down.rows) {
                let part = Down {
                    a: step(down.a.cast_mut(), top, a_row).cast_const(),
                    c: step(down.c, top, c.strides[0]),
                    ..down
                };
                // SAFETY: A (or its copy) and C have m rows, not too many, as `fits` has found; columns
                // `left..left + columns` are in B, C and the bias.
                unsafe { part.run(simd) };
            }
        }
    }
}

/// Up to LANES columns of B, for all rows of A.
#[derive(Clone, Copy)]
struct Down<T: Factor> {
    rows: usize,
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
    /// Prefetches into the first-level cache, not the second.
    is_near: bool,
}

impl<T: Factor> Down<T> {
    /// # Safety
    /// - there are `1..=most_rows(S::ISA)` rows, 1 where a vector is one number, and `1..=LANES` columns;
    /// - `a` is valid for reads of `rows` rows, `b` of `columns` columns, `depth` elements each;
    /// - `c` is valid for writes and, unless beta is zero, for reads of `columns` elements a row; `bias`
    ///   for reads of as many.
    #[inline(always)]
    unsafe fn run<S: Lanes<T::Sum>>(self, simd: S) {
        // SAFETY: the caller's promise, passed on.
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

/// At most M rows of A, as a function of its own; where there are fewer, the last one is computed again.
struct Columns<T: Factor, const M: usize>(Down<T>);

impl<T: Factor, const M: usize> ElementTask<T::Sum> for Columns<T, M> {
    type Home = Self;
    type Output = ();

    #[inline(always)]
    fn run<S: Lanes<T::Sum>>(self, simd: S) {
        const { assert!(matches!(S::LANES, 1 | 2 | 4 | 8 | 16)) };
        // SAFETY: made by `Down::run` alone, whose caller's promise this is; by the assertion above N is the
        // number of lanes.
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
    /// As [`Down::run`] for at most M rows; N is the number of lanes.
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
            // SAFETY: at a square N steps are left of the block, at its end fewer; step p is one of them.
            unsafe {
                while end - at >= N {
                    let (a, square) = (self.a.wrapping_add(at), self.square(simd, &offsets, at));
                    // Written out here: too long a loop for the compiler to do it, which would put the
                    // square into memory.
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
                // SAFETY: one of the rows.
                unsafe { self.finish(simd, i, sums[i]) };
            }
        });
    }

    /// Where columns begin; lanes beyond the last column hold it once more.
    #[inline(always)]
    fn offsets<const N: usize>(&self) -> [isize; N] {
        let mut offsets = [0; N];
        for (j, offset) in offsets.iter_mut().enumerate() {
            *offset = j.min(self.columns - 1) as isize * self.b_column;
        }
        offsets
    }

    /// Row i of C, of its sums.
    ///
    /// # Safety
    /// As [`Down::run`] for a row i.
    #[inline(always)]
    unsafe fn finish<S: Lanes<T::Sum>>(&self, simd: S, i: usize, ab: S::V) {
        let (alpha, beta) = (simd.splat(self.alpha), simd.splat(self.beta));
        let c = step(self.c, i, self.c_row);
        // SAFETY: row i has `columns` elements in C, which is read as the caller promises, and so has the
        // bias.
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

    /// N steps of B from `at` on, a vector a step. Prefetches those further on.
    ///
    /// # Safety
    /// A column of B begins at each offset, and has the steps.
    #[inline(always)]
    unsafe fn square<S: Lanes<T::Sum>, const N: usize>(
        &self,
        simd: S,
        offsets: &[isize; N],
        at: usize,
    ) -> [S::V; N] {
        let ahead = const { ahead::<T>() };
        // From the end of these columns to the beginning of the next ones.
        let turn = N as isize * self.b_column - self.depth as isize;
        let b = self.b.wrapping_add(at);
        let next =
            b.wrapping_add(ahead).wrapping_offset(if at + ahead >= self.depth { turn } else { 0 });
        let mut square = [simd.splat(T::Sum::ZERO); N];
        each!(j in N => {
            // SAFETY: a column, N steps of it.
            square[j] = unsafe { T::load(simd, b.wrapping_offset(offsets[j])) };
            let line = next.wrapping_offset(offsets[j]).cast();
            if self.is_near { simd.prefetch(line) } else { simd.prefetch_l2(line) }
        });
        S::V::transpose(square)
    }

    /// The last steps of B, fewer than N.
    ///
    /// # Safety
    /// As [`Down::square`].
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
            // SAFETY: a column, the steps that are left.
            *lanes = unsafe {
                T::load_up_to(simd, self.b.wrapping_add(at).wrapping_offset(offset), count)
            };
        }
        S::V::transpose(square)
    }

    /// One k: `acc += a · b`.
    ///
    /// # Safety
    /// As [`Down::run`]; `a` stands at one of the promised steps, `a_rows` leads from there to rows.
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
            // SAFETY: one of the rows.
            let a = simd.splat(unsafe { *a.wrapping_offset(a_rows[i]) });
            acc[i] = a.mul_add(b, acc[i]);
        });
    }
}
