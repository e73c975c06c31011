//! One call of the library: the only place where swath calls a matrix product of a BLAS.

use std::ffi::c_int;
use std::iter::once;

use smallvec::SmallVec;
use swath_kernels::Float;

use super::plan::Stored;
use super::provider::{Functions, NO_TRANSPOSE, Products, ROW_MAJOR, TRANSPOSE};

/// Written to the last element of every C before a call: finite, and unlikely to be a result. A result that
/// equals it is taken for one that was not written, and computed anew by the embedded product.
pub(super) const CANARY: f64 = -6.254_803_215e-27;

/// The greatest number that a call may give, so small in unit tests that they go beyond it.
pub(super) const MAX_INT: usize = if cfg!(test) { 2000 } else { c_int::MAX as usize };

/// Most products in a call of a batch.
pub(super) const MOST_OF_BATCH: usize = 16;

/// An operand of one call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operand<E> {
    /// Its element (0, 0).
    pub data: *const E,
    pub stored: Stored,
}

/// C ← A·B, `[m, k] × [k, n]`, C row-major.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<E> {
    /// m, k, n; none is zero.
    pub shape: [usize; 3],
    pub a: Operand<E>,
    pub b: Operand<E>,
    pub c: *mut E,
    /// Elements from one row of C to the next.
    pub row: usize,
}

/// Why a call did not do its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// A number is zero or larger than the library's integers hold, or it lacks the function: nothing was called.
    Arguments,
    /// It returned without writing C, as `xerbla` makes it do with arguments that it takes for wrong.
    NotWritten,
}

/// The arguments of a call of `gemm` but for the addresses: m, n, k; the leading dimensions of A, B and C; the
/// transposes of A and B.
type Numbers = ([c_int; 3], [c_int; 3], [c_int; 2]);

impl<E: Float> Call<E> {
    /// Computes it.
    ///
    /// # Errors
    /// [`Failure`]; the content of C is then unspecified.
    ///
    /// # Safety
    /// - the elements of A and B, where `stored` says, are valid for reads;
    /// - `c` is valid for writes of `[m, n]` elements, rows `row` apart, and
    ///   nobody else accesses them meanwhile.
    pub unsafe fn run(&self, products: &Products) -> Result<(), Failure> {
        let functions = products.of::<E>().ok_or(Failure::Arguments)?;
        match self.shape {
            // SAFETY: the caller's promise, passed on.
            [_, _, 1] => unsafe { self.run_vector(functions) },
            // SAFETY: as above. Cᵀ = Bᵀ·Aᵀ, a column; in memory it is the row C.
            [1, k, n] => unsafe {
                let [a, b] = [self.b, self.a].map(|Operand { data, stored }| {
                    let stored = Stored { transposed: !stored.transposed, ..stored };
                    Operand { data, stored }
                });
                let column = Call { shape: [n, k, 1], a, b, row: 1, ..*self };
                column.run_vector(functions)
            },
            // SAFETY: as above.
            _ => unsafe { self.run_matrix(functions) },
        }
    }

    /// # Safety
    /// As [`Call::run`].
    unsafe fn run_matrix(&self, functions: &Functions<E>) -> Result<(), Failure> {
        let ([m, n, k], [lda, ldb, ldc], [ta, tb]) = self.numbers()?;
        let (gemm, one, beta) = (functions.gemm, E::ONE, E::ZERO);
        let (a, b, c) = (self.a.data, self.b.data, self.c);
        // SAFETY: every number was shown to be as it is in the library's integers and not zero;
        // the caller promises the memory that they address. With beta = 0 C is only written.
        let send =
            || unsafe { gemm(ROW_MAJOR, ta, tb, m, n, k, one, a, lda, b, ldb, beta, c, ldc) };
        // SAFETY: the last element is one of C's.
        unsafe { written(once(self.last(c)), send) }
    }

    /// A matrix × vector: C is a column.
    ///
    /// # Safety
    /// As [`Call::run`].
    unsafe fn run_vector(&self, functions: &Functions<E>) -> Result<(), Failure> {
        let ([outputs, k, _], Operand { data: a, stored }) = (self.shape, self.a);
        let Operand { data: x, stored: of_x } = self.b;
        let [rows, cols] = as_stored(stored, [outputs, k]);
        let (t, lda) = (transpose(stored), int(leading(stored, [outputs, k])?)?);
        let (rows, cols) = (int(rows)?, int(cols)?);
        let step = int(if of_x.transposed || k == 1 { 1 } else { of_x.leading })?;
        let to = int(if outputs == 1 { 1 } else { self.row })?;
        let (gemv, one, beta, y) = (functions.gemv, E::ONE, E::ZERO, self.c);
        // SAFETY: as above, for y.
        let send = || unsafe { gemv(ROW_MAJOR, t, rows, cols, one, a, lda, x, step, beta, y, to) };
        // SAFETY: as above.
        unsafe { written(once(self.last(y)), send) }
    }

    /// The last element of a result at `c`.
    fn last(&self, c: *mut E) -> *mut E {
        let [m, _, n] = self.shape;
        c.wrapping_add((m - 1) * self.row + (n - 1))
    }

    fn numbers(&self) -> Result<Numbers, Failure> {
        let [m, k, n] = self.shape;
        let c = Stored { transposed: false, leading: self.row };
        let of = |stored, shape| int(leading(stored, shape)?);
        let (a, b) = (self.a.stored, self.b.stored);
        let leading = [of(a, [m, k])?, of(b, [k, n])?, of(c, [m, n])?];
        Ok(([int(m)?, int(n)?, int(k)?], leading, [transpose(a), transpose(b)]))
    }
}

/// Products that share all but their operands' addresses, in one call.
///
/// # Errors
/// As [`Call::run`].
///
/// # Safety
/// As [`Call::run`], for `call` with each of the addresses `[a, b, c]` in place of its own.
pub(super) unsafe fn run_batch<E: Float>(
    products: &Products,
    call: &Call<E>,
    addresses: &[(*const E, *const E, *mut E)],
) -> Result<(), Failure> {
    let functions = products.of::<E>().ok_or(Failure::Arguments)?;
    let batch = functions.gemm_batch.ok_or(Failure::Arguments)?;
    let ([m, n, k], [lda, ldb, ldc], [ta, tb]) = call.numbers()?;
    let (order, one, beta) = (ROW_MAJOR, &E::ONE, &E::ZERO);
    let count = int(addresses.len())?;
    let a: SmallVec<[*const E; MOST_OF_BATCH]> = addresses.iter().map(|it| it.0).collect();
    let b: SmallVec<[*const E; MOST_OF_BATCH]> = addresses.iter().map(|it| it.1).collect();
    let c: SmallVec<[*mut E; MOST_OF_BATCH]> = addresses.iter().map(|it| it.2).collect();
    let lasts = addresses.iter().map(|it| call.last(it.2));
    let (a, b, c) = (a.as_ptr(), b.as_ptr(), c.as_ptr());
    // SAFETY: one group of `count` products; every number was shown to be as it is in the library's
    // integers and not zero; the caller promises the memory that they address.
    let send = || unsafe {
        batch(order, &ta, &tb, &m, &n, &k, one, a, &lda, b, &ldb, beta, c, &ldc, 1, &count);
    };
    // SAFETY: the last element of each C.
    unsafe { written(lasts, send) }
}

/// Runs `send`, and sees that it wrote the last element of every C.
///
/// # Safety
/// Each of `lasts` is valid for reads and writes.
unsafe fn written<E: Float>(
    lasts: impl Iterator<Item = *mut E> + Clone,
    send: impl FnOnce(),
) -> Result<(), Failure> {
    let canary = E::from_f64(CANARY);
    // SAFETY: as the caller promises.
    lasts.clone().for_each(|last| unsafe { last.write(canary) });
    send();
    // SAFETY: as the caller promises.
    let all = lasts.map(|last| unsafe { *last }).all(|value| value != canary);
    if all { Ok(()) } else { Err(Failure::NotWritten) }
}

/// An extent, a step or a leading dimension as the library takes it.
fn int(value: usize) -> Result<c_int, Failure> {
    let fits = (1..=MAX_INT).contains(&value);
    c_int::try_from(value).ok().filter(|_| fits).ok_or(Failure::Arguments)
}

fn transpose(stored: Stored) -> c_int {
    if stored.transposed { TRANSPOSE } else { NO_TRANSPOSE }
}

/// Rows and columns as stored.
fn as_stored(stored: Stored, [rows, cols]: [usize; 2]) -> [usize; 2] {
    if stored.transposed { [cols, rows] } else { [rows, cols] }
}

/// The leading dimension to give for a matrix of this shape. A lone stored row has no next one: there it
/// need only be as long as the row.
fn leading(stored: Stored, shape: [usize; 2]) -> Result<usize, Failure> {
    match as_stored(stored, shape) {
        [1, cols] => Ok(cols),
        [_, cols] if stored.leading >= cols => Ok(stored.leading),
        _ => Err(Failure::Arguments),
    }
}
