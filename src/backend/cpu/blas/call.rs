//! One call of the library: the only place where swath calls a matrix product of a BLAS.

use std::ffi::c_int;

use cblas_sys::{CBLAS_TRANSPOSE, CblasNoTrans, CblasRowMajor, CblasTrans};
use smallvec::SmallVec;

use super::layout::Stored;
use super::library::{Entries, GemmBatch, Library};
use swath_kernels::Float;

/// Written to the last element of every C before a call: finite, and nothing that is likely to be a result.
pub(super) const CANARIES: [f64; 2] = [-6.254_803_215e-27, 8.901_352_467e-25];

/// An operand of one call.
#[derive(Debug)]
pub(super) struct Operand<E> {
    /// Its element (0, 0).
    pub data: *const E,
    pub stored: Stored,
}

impl<E> Clone for Operand<E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Operand<E> {}

/// C ← A·B, or C ← C + A·B, `[m, k] × [k, n]`, C row-major.
#[derive(Debug)]
pub(super) struct Call<E> {
    /// m, k, n; none is zero.
    pub shape: [usize; 3],
    pub a: Operand<E>,
    pub b: Operand<E>,
    pub c: *mut E,
    /// Elements from one row of C to the next.
    pub row: usize,
    /// Adds to C instead of writing it.
    pub add: bool,
}

/// Why a call did not do its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// A number is zero or larger than the library's integers hold: nothing was called.
    Arguments,
    /// It returned without writing C, as `xerbla` makes it do with arguments that it takes for wrong.
    NotWritten,
}

/// A matrix × vector: `[rows, cols]` as stored, transposed or not, and the steps of the vectors.
struct Vector<E> {
    matrix: Operand<E>,
    rows: usize,
    cols: usize,
    x: *const E,
    x_step: usize,
    y_step: usize,
}

impl<E: Float> Call<E> {
    /// Computes it.
    ///
    /// # Errors
    /// [`Failure`]; the content of C is then unspecified.
    ///
    /// # Safety
    /// - the elements of A and B, where `stored` says, are valid for reads;
    /// - `c` is valid for writes (with `add` also reads) of `[m, n]` elements, rows `row` apart, and
    ///   nobody else accesses them meanwhile.
    pub unsafe fn run(&self, library: &Library) -> Result<(), Failure> {
        let entries = library.entries::<E>().ok_or(Failure::Arguments)?;
        // SAFETY: the caller's promise, passed on.
        unsafe { self.run_by(entries, library.max_int) }
    }

    /// As [`run`](Call::run), by these functions of a library.
    ///
    /// # Errors
    /// As [`Call::run`].
    ///
    /// # Safety
    /// As [`Call::run`].
    pub(super) unsafe fn run_by(
        &self,
        entries: &Entries<E>,
        max_int: usize,
    ) -> Result<(), Failure> {
        let [m, _, n] = self.shape;
        // SAFETY: the caller's promise, passed on; the last element is one of C's.
        unsafe {
            let last = self.c.wrapping_add((m - 1) * self.row + (n - 1));
            written([last], self.add, || self.send(entries, max_int))
        }
    }

    /// # Safety
    /// As [`Call::run`].
    unsafe fn send(&self, entries: &Entries<E>, max_int: usize) -> Result<(), Failure> {
        let [m, k, n] = self.shape;
        let int = |value| int(value, max_int);
        let beta = if self.add { E::ONE } else { E::ZERO };
        if let Some(v) = self.vector() {
            let (rows, cols) = (int(v.rows)?, int(v.cols)?);
            let leading = int(leading(v.matrix.stored, [v.rows, v.cols], true)?)?;
            let (x_step, y_step) = (int(v.x_step)?, int(v.y_step)?);
            let transpose = transpose(v.matrix.stored);
            // SAFETY: every number was shown to be as it is in the library's integers and not zero;
            // the caller promises the memory that they address. With beta = 0 y is only written.
            unsafe {
                (entries.gemv)(
                    CblasRowMajor,
                    transpose,
                    rows,
                    cols,
                    E::ONE,
                    v.matrix.data,
                    leading,
                    v.x,
                    x_step,
                    beta,
                    self.c,
                    y_step,
                );
            }
            return Ok(());
        }
        let lda = int(leading(self.a.stored, [m, k], false)?)?;
        let ldb = int(leading(self.b.stored, [k, n], false)?)?;
        let ldc = int(leading(Stored { transposed: false, leading: self.row }, [m, n], false)?)?;
        let (ta, tb) = (transpose(self.a.stored), transpose(self.b.stored));
        let (m, n, k) = (int(m)?, int(n)?, int(k)?);
        // SAFETY: as above, for C.
        unsafe {
            (entries.gemm)(
                CblasRowMajor,
                ta,
                tb,
                m,
                n,
                k,
                E::ONE,
                self.a.data,
                lda,
                self.b.data,
                ldb,
                beta,
                self.c,
                ldc,
            );
        }
        Ok(())
    }

    /// The call as a matrix × vector, if C is a column or a row.
    fn vector(&self) -> Option<Vector<E>> {
        let [m, k, n] = self.shape;
        let step = |stored: Stored, down: bool| match stored.transposed == down {
            // Along a stored row.
            true => 1,
            false => {
                if k == 1 {
                    1
                } else {
                    stored.leading
                }
            }
        };
        let (matrix, outputs, x, x_step, y_step) = match (m, n) {
            (_, 1) => {
                let y_step = if m == 1 { 1 } else { self.row };
                (self.a, m, self.b.data, step(self.b.stored, true), y_step)
            }
            // yᵀ = Bᵀ·aᵀ
            (1, _) => {
                let Operand { data, stored } = self.b;
                let stored = Stored { transposed: !stored.transposed, ..stored };
                (Operand { data, stored }, n, self.a.data, step(self.a.stored, false), 1)
            }
            _ => return None,
        };
        let [rows, cols] = if matrix.stored.transposed { [k, outputs] } else { [outputs, k] };
        Some(Vector { matrix, rows, cols, x, x_step, y_step })
    }
}

/// Runs `send`, and sees that it wrote the last element of every C.
///
/// # Safety
/// Unless `add`, each of `lasts` is valid for reads and writes.
unsafe fn written<E: Float>(
    lasts: impl IntoIterator<Item = *mut E>,
    add: bool,
    send: impl Fn() -> Result<(), Failure>,
) -> Result<(), Failure> {
    if add {
        return send();
    }
    let mut unwritten: SmallVec<[*mut E; 16]> = lasts.into_iter().collect();
    for canary in CANARIES.map(E::from_f64) {
        for last in &unwritten {
            // SAFETY: as the caller promises.
            unsafe { last.write(canary) };
        }
        send()?;
        // The canary may be what a product is, but then the other one is not.
        // SAFETY: as the caller promises.
        unwritten.retain(|last| unsafe { **last == canary });
        if unwritten.is_empty() {
            return Ok(());
        }
    }
    Err(Failure::NotWritten)
}

/// An extent, a step or a leading dimension as the library takes it.
fn int(value: usize, max_int: usize) -> Result<c_int, Failure> {
    if value == 0 || value > max_int {
        return Err(Failure::Arguments);
    }
    c_int::try_from(value).map_err(|_| Failure::Arguments)
}

fn transpose(stored: Stored) -> CBLAS_TRANSPOSE {
    if stored.transposed { CblasTrans } else { CblasNoTrans }
}

/// The leading dimension to give for a matrix of this shape (`as_stored`: of its storage). A lone
/// stored row has no next one: there it need only be as long as the row.
fn leading(stored: Stored, shape: [usize; 2], as_stored: bool) -> Result<usize, Failure> {
    let [rows, cols] = if stored.transposed && !as_stored { [shape[1], shape[0]] } else { shape };
    match rows {
        1 => Ok(cols),
        _ if stored.leading >= cols => Ok(stored.leading),
        _ => Err(Failure::Arguments),
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
    library: &Library,
    gemm_batch: GemmBatch<E>,
    call: &Call<E>,
    addresses: &[(*const E, *const E, *mut E)],
) -> Result<(), Failure> {
    let int = |value| int(value, library.max_int);
    let ([m, k, n], count) = (call.shape, int(addresses.len())?);
    let lda = int(leading(call.a.stored, [m, k], false)?)?;
    let ldb = int(leading(call.b.stored, [k, n], false)?)?;
    let ldc = int(leading(Stored { transposed: false, leading: call.row }, [m, n], false)?)?;
    let (ta, tb) = (transpose(call.a.stored), transpose(call.b.stored));
    let (beta, last) = (if call.add { E::ONE } else { E::ZERO }, (m - 1) * call.row + (n - 1));
    let (m, n, k) = (int(m)?, int(n)?, int(k)?);
    let a: SmallVec<[*const E; 16]> = addresses.iter().map(|address| address.0).collect();
    let b: SmallVec<[*const E; 16]> = addresses.iter().map(|address| address.1).collect();
    let c: SmallVec<[*mut E; 16]> = addresses.iter().map(|address| address.2).collect();
    let send = || {
        // SAFETY: one group of `count` products; every number was shown to be as it is in the
        // library's integers and not zero; the caller promises the memory that they address.
        unsafe {
            gemm_batch(
                CblasRowMajor,
                &ta,
                &tb,
                &m,
                &n,
                &k,
                &E::ONE,
                a.as_ptr(),
                &lda,
                b.as_ptr(),
                &ldb,
                &beta,
                c.as_ptr(),
                &ldc,
                1,
                &count,
            );
        }
        Ok(())
    };
    // SAFETY: the last element of each C.
    unsafe { written(c.iter().map(|c| c.wrapping_add(last)), call.add, send) }
}
