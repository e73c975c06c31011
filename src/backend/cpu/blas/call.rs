//! One call of the library: the only module that calls a matrix product of a BLAS.

use std::ffi::c_int;

use cblas_sys::CBLAS_LAYOUT::{self, CblasRowMajor};
use cblas_sys::CBLAS_TRANSPOSE::{self, CblasNoTrans, CblasTrans};
use swath_kernels::Float;

use super::plan::Stored;
use super::provider::{Functions, Products};

/// Value stored in the last element of C before a call: finite, and unlikely to be a result. A result
/// that equals it counts as not written and is recomputed by the embedded product.
pub(super) const CANARY: f64 = -6.254_803_215e-27;

/// Largest integer argument of a call. Unit tests lower it so that they can exceed it.
pub(super) const MAX_INT: usize = if cfg!(test) { 2000 } else { c_int::MAX as usize };

/// An operand of one call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operand<E> {
    /// Element (0, 0).
    pub data: *const E,
    pub stored: Stored,
}

/// C ← A·B, `[m, k] × [k, n]`, C row-major.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<E> {
    /// Extents m, k, n; none is zero.
    pub shape: [usize; 3],
    pub a: Operand<E>,
    pub b: Operand<E>,
    pub c: *mut E,
    /// Leading dimension of C.
    pub ldc: usize,
}

/// Reason why a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The library lacks the function, or an argument is zero or too large for its integers. Nothing was called.
    Arguments,
    /// The library returned without writing C, as it does after `xerbla` reports an invalid argument.
    NotWritten,
}

/// The order of the elements of every matrix.
const ORDER: CBLAS_LAYOUT = CblasRowMajor;

/// Integer arguments of `gemm`: m, n, k; the leading dimensions of A, B and C; the transposes of A and B.
type Integers = ([c_int; 3], [c_int; 3], [CBLAS_TRANSPOSE; 2]);

impl<E: Float> Call<E> {
    /// Computes the product.
    ///
    /// # Errors
    /// [`Failure`]; the content of C is then unspecified.
    ///
    /// # Safety
    /// - The elements of A and B, as described by `stored`, are valid for reads.
    /// - `c` is valid for writes of `[m, n]` elements with leading dimension `ldc`, and no one else accesses
    ///   them during the call.
    pub unsafe fn run(&self, products: &Products) -> Result<(), Failure> {
        let functions = products.of::<E>().ok_or(Failure::Arguments)?;
        match self.shape {
            // SAFETY: as the caller guarantees.
            [_, _, 1] => unsafe { self.run_vector(functions) },
            // SAFETY: as above. The column Cᵀ = Bᵀ·Aᵀ is the row C in memory.
            [1, k, n] => unsafe {
                let [a, b] = [self.b, self.a].map(|Operand { data, stored }| {
                    let stored = Stored { transposed: !stored.transposed, ..stored };
                    Operand { data, stored }
                });
                let column = Call { shape: [n, k, 1], a, b, ldc: 1, ..*self };
                column.run_vector(functions)
            },
            // SAFETY: as above.
            _ => unsafe { self.run_matrix(functions) },
        }
    }

    /// # Safety
    /// As [`Call::run`].
    unsafe fn run_matrix(&self, functions: &Functions<E>) -> Result<(), Failure> {
        let ([m, n, k], [lda, ldb, ldc], [ta, tb]) = self.integers()?;
        let (gemm, one, beta) = (functions.gemm, E::ONE, E::ZERO);
        let (a, b, c) = (self.a.data, self.b.data, self.c);
        // SAFETY: `int` has checked that every integer fits the library's type and is not zero; the caller
        // guarantees the memory that they describe. With beta = 0 C is only written.
        let call = || unsafe { gemm(ORDER, ta, tb, m, n, k, one, a, lda, b, ldb, beta, c, ldc) };
        // SAFETY: the last element belongs to C.
        unsafe { check_written(self.last(), call) }
    }

    /// Computes a matrix-vector product: C is a column.
    ///
    /// # Safety
    /// As [`Call::run`].
    unsafe fn run_vector(&self, functions: &Functions<E>) -> Result<(), Failure> {
        let ([outputs, k, _], Operand { data: a, stored }) = (self.shape, self.a);
        let Operand { data: x, stored: x_stored } = self.b;
        let [rows, cols] = as_stored(stored, [outputs, k]);
        let (t, lda) = (transpose(stored), int(leading(stored, [outputs, k])?)?);
        let (rows, cols) = (int(rows)?, int(cols)?);
        let incx = int(if x_stored.transposed || k == 1 { 1 } else { x_stored.leading })?;
        let incy = int(if outputs == 1 { 1 } else { self.ldc })?;
        let (gemv, one, beta, y) = (functions.gemv, E::ONE, E::ZERO, self.c);
        // SAFETY: as in `run_matrix`.
        let call = || unsafe { gemv(ORDER, t, rows, cols, one, a, lda, x, incx, beta, y, incy) };
        // SAFETY: as in `run_matrix`.
        unsafe { check_written(self.last(), call) }
    }

    /// Address of the last element of C.
    fn last(&self) -> *mut E {
        let [m, _, n] = self.shape;
        self.c.wrapping_add((m - 1) * self.ldc + (n - 1))
    }

    fn integers(&self) -> Result<Integers, Failure> {
        let [m, k, n] = self.shape;
        let c = Stored { transposed: false, leading: self.ldc };
        let ld = |stored, shape| int(leading(stored, shape)?);
        let (a, b) = (self.a.stored, self.b.stored);
        let leading = [ld(a, [m, k])?, ld(b, [k, n])?, ld(c, [m, n])?];
        Ok(([int(m)?, int(n)?, int(k)?], leading, [transpose(a), transpose(b)]))
    }
}

/// Runs `call` and checks that it wrote the last element of C.
///
/// # Safety
/// `last` is valid for reads and writes.
unsafe fn check_written<E: Float>(last: *mut E, call: impl FnOnce()) -> Result<(), Failure> {
    let canary = E::from_f64(CANARY);
    // SAFETY: as the caller guarantees.
    unsafe { last.write(canary) };
    call();
    // SAFETY: as the caller guarantees.
    if unsafe { *last } != canary { Ok(()) } else { Err(Failure::NotWritten) }
}

/// Converts an extent, an increment or a leading dimension to the library's integer type.
fn int(value: usize) -> Result<c_int, Failure> {
    let fits = (1..=MAX_INT).contains(&value);
    c_int::try_from(value).ok().filter(|_| fits).ok_or(Failure::Arguments)
}

fn transpose(stored: Stored) -> CBLAS_TRANSPOSE {
    if stored.transposed { CblasTrans } else { CblasNoTrans }
}

/// Rows and columns as stored.
fn as_stored(stored: Stored, [rows, cols]: [usize; 2]) -> [usize; 2] {
    if stored.transposed { [cols, rows] } else { [rows, cols] }
}

/// Leading dimension to pass for a matrix of this shape. For a single stored row its length suffices.
fn leading(stored: Stored, shape: [usize; 2]) -> Result<usize, Failure> {
    match as_stored(stored, shape) {
        [1, cols] => Ok(cols),
        [_, cols] if stored.leading >= cols => Ok(stored.leading),
        _ => Err(Failure::Arguments),
    }
}
