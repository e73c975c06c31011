//! A mock BLAS: it checks and records the arguments of every call and computes products term by term.

use std::cell::Cell;
use std::ffi::c_int;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::call::MAX_INT;
use super::provider::{Found, Functions, Products, Provider, Symbols};
use cblas_sys::{CBLAS_LAYOUT, CBLAS_TRANSPOSE, CblasRowMajor, CblasTrans};
use swath_kernels::Float;

/// A recorded call.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub function: &'static str,
    /// Extents m, k, n.
    pub shape: [usize; 3],
    pub transposed: [bool; 2],
    /// Address ranges of A, B and C.
    pub addresses: [Range<usize>; 3],
}

struct Seen {
    records: Vec<Record>,
    /// Calls with invalid arguments.
    violations: Vec<String>,
}

impl Seen {
    const fn nothing() -> Seen {
        Seen { records: Vec::new(), violations: Vec::new() }
    }
}

/// Held by the test that uses the mock, whose calls may come from any thread.
static SESSION: Mutex<()> = Mutex::new(());
static SEEN: Mutex<Seen> = Mutex::new(Seen::nothing());

/// Number of threads of calls outside
/// [`ThreadControl::on_one_thread`](super::provider::ThreadControl::on_one_thread).
const DEFAULT_THREADS: c_int = 8;

thread_local! {
    /// MKL's number of threads for calls from this thread.
    static THREADS: Cell<c_int> = const { Cell::new(DEFAULT_THREADS) };
    static CURRENT: Cell<Option<&'static Found>> = const { Cell::new(None) };
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The library that computes this thread's products in a test.
pub(super) fn current() -> Option<&'static Found> {
    CURRENT.get()
}

/// The provider of this thread's products.
pub(super) fn provider() -> &'static Provider {
    match current() {
        Some(Found::Library(provider)) => provider,
        _ => panic!("this thread has a library"),
    }
}

/// Runs `f` with `library` as the provider of this thread's products, and returns the recorded calls.
///
/// # Panics
/// If a call had an invalid argument.
pub(super) fn with<T>(library: Provider, f: impl FnOnce() -> T) -> (T, Vec<Record>) {
    let (result, seen) = watch(library, f);
    assert_eq!(seen.violations, Vec::<String>::new());
    (result, seen.records)
}

/// Returns the violations of the calls that `f` makes.
pub(super) fn violations(f: impl FnOnce(&Provider)) -> Vec<String> {
    watch(library(), || f(provider())).1.violations
}

fn watch<T>(library: Provider, f: impl FnOnce() -> T) -> (T, Seen) {
    let _session = lock(&SESSION);
    *lock(&SEEN) = Seen::nothing();
    let result = on_this_thread(Some(Box::leak(Box::new(Found::Library(library)))), f);
    assert_eq!(THREADS.get(), DEFAULT_THREADS, "the user's number of threads is restored");
    (result, std::mem::replace(&mut *lock(&SEEN), Seen::nothing()))
}

/// Runs `f` with another library for this thread.
pub(super) fn on_this_thread<T>(library: Option<&'static Found>, f: impl FnOnce() -> T) -> T {
    struct Restore(Option<&'static Found>);
    impl Drop for Restore {
        fn drop(&mut self) {
            CURRENT.set(self.0);
        }
    }
    let _restore = Restore(CURRENT.replace(library));
    f()
}

/// The symbols of a library.
pub(super) struct Header(pub &'static [(&'static str, *const ())]);

impl Symbols for Header {
    unsafe fn find<T: Copy>(&self, name: &str) -> Option<T> {
        let (_, address) = self.0.iter().find(|(symbol, _)| *symbol == name)?;
        assert_eq!(size_of::<T>(), size_of::<*const ()>());
        // SAFETY: reads a pointer as a pointer; the caller guarantees the function's type.
        Some(unsafe { std::mem::transmute_copy(address) })
    }
}

extern "C" fn set_threads(threads: c_int) -> c_int {
    THREADS.replace(threads)
}

extern "C" fn get_threads() -> c_int {
    THREADS.get()
}

/// The mock as a library whose threads are controlled like MKL's.
pub(super) fn library() -> Provider {
    let header = Header(&[
        ("MKL_Set_Num_Threads_Local", set_threads as *const ()),
        ("MKL_Get_Max_Threads", get_threads as *const ()),
    ]);
    let mut library = Provider::new("mock", &header, products());
    library.tiles = 6;
    library
}

pub(super) fn products() -> Products {
    Products { f32: functions(), f64: functions() }
}

fn functions<E: Float>() -> Functions<E> {
    Functions { gemm: gemm::<E, CORRECT>, gemv: gemv::<E, CORRECT>, dot }
}

/// Fault of a function: none.
pub(super) const CORRECT: usize = 0;
/// Ignores the transpose of A, or of B, but not their leading dimensions.
pub(super) const IGNORES_A: usize = 1;
pub(super) const IGNORES_B: usize = 2;
/// Omits the first of eight or more terms, or the remainder beyond a multiple of eight, like an incorrect
/// loop unrolled eight times or its remainder loop.
pub(super) const MAIN_LOOP: usize = 3;
pub(super) const LAST_TERMS: usize = 4;
/// Writes nothing, like a library that rejects its arguments; always, or if C has an even number of rows
/// and of columns.
pub(super) const NOTHING: usize = 5;
pub(super) const NOTHING_WHERE_EVEN: usize = 6;

/// Indices of the terms that are added of a sum of `depth` terms.
fn terms(fault: usize, depth: usize) -> Range<usize> {
    match fault {
        MAIN_LOOP if depth >= 8 => 1..depth,
        LAST_TERMS if depth >= 8 => 0..depth - depth % 8,
        _ => 0..depth,
    }
}

/// An operand `[rows, cols]` of a call.
struct Operand<E> {
    data: *const E,
    leading: c_int,
    shape: [usize; 2],
    transposed: bool,
    ignores_transpose: bool,
}

impl<E: Float> Operand<E> {
    /// Rows and columns as stored.
    fn stored(&self) -> [usize; 2] {
        let [rows, cols] = self.shape;
        if self.transposed { [cols, rows] } else { [rows, cols] }
    }

    /// Address range of the elements.
    ///
    /// # Errors
    /// The arguments are invalid by the standard.
    fn addresses(&self, name: &str) -> Result<Range<usize>, String> {
        let ([rows, cols], address) = (self.stored(), self.data.addr());
        let leading = usize::try_from(self.leading).unwrap_or(0);
        if leading < cols.max(1) || address == 0 {
            return Err(format!("{name}: [{rows}, {cols}] with leading dimension {leading}"));
        }
        Ok(address..address + ((rows - 1) * leading + cols) * size_of::<E>())
    }

    /// Element (i, j).
    ///
    /// # Safety
    /// The matrix has the stored rows and columns.
    unsafe fn at(&self, i: usize, j: usize) -> f64 {
        let [rows, cols] = self.stored();
        let (row, col) = if self.transposed && !self.ignores_transpose { (j, i) } else { (i, j) };
        // SAFETY: as the caller guarantees.
        unsafe { *self.data.add(row % rows * self.leading as usize + col % cols) }.to_f64()
    }
}

/// Records a call with operands A, B and C; false if its arguments are invalid.
fn record<E: Float>(
    function: &'static str,
    layout: CBLAS_LAYOUT,
    extents: [c_int; 3],
    beta: E,
    operands: [&Operand<E>; 3],
) -> bool {
    let mut seen = lock(&SEEN);
    let integers = extents.into_iter().chain(operands.map(|operand| operand.leading));
    let largest = integers.max().and_then(|largest| usize::try_from(largest).ok());
    let mut refuse = |what: String| {
        seen.violations.push(format!("{function}: {what}"));
        false
    };
    if !matches!(layout, CblasRowMajor) || beta != E::ZERO {
        return refuse(format!("layout {layout:?}, beta {}", beta.to_f64()));
    }
    if THREADS.get() != 1 {
        return refuse(format!("{} threads", THREADS.get()));
    }
    if largest.is_some_and(|largest| largest > MAX_INT) {
        return refuse(format!("{largest:?} is beyond the library's integers"));
    }
    let shape = extents.map(|extent| usize::try_from(extent).unwrap_or(0));
    if shape.contains(&0) {
        let [m, k, n] = extents;
        return refuse(format!("extents {m}, {k}, {n}"));
    }
    let addresses = ["A", "B", "C"].iter().zip(operands);
    let addresses: Result<Vec<_>, _> = addresses.map(|(name, it)| it.addresses(name)).collect();
    let addresses = match addresses {
        Ok(addresses) => <[Range<usize>; 3]>::try_from(addresses).expect("three matrices"),
        Err(what) => return refuse(what),
    };
    let c = &addresses[2];
    if addresses[..2].iter().any(|read| read.start < c.end && c.start < read.end) {
        return refuse("C overlaps an operand".to_owned());
    }
    let transposed = [operands[0].transposed, operands[1].transposed];
    seen.records.push(Record { function, shape, transposed, addresses });
    true
}

fn is_transposed(transpose: CBLAS_TRANSPOSE) -> bool {
    matches!(transpose, CblasTrans)
}

pub(super) unsafe extern "C" fn gemm<E: Float, const FAULT: usize>(
    layout: CBLAS_LAYOUT,
    transpose_a: CBLAS_TRANSPOSE,
    transpose_b: CBLAS_TRANSPOSE,
    m: c_int,
    n: c_int,
    k: c_int,
    alpha: E,
    a: *const E,
    lda: c_int,
    b: *const E,
    ldb: c_int,
    beta: E,
    c: *mut E,
    ldc: c_int,
) {
    let (transposed, shape) = ([transpose_a, transpose_b].map(is_transposed), [m, k, n]);
    let (a, b, c) = ((a, lda), (b, ldb), (c, ldc));
    let product = Product { layout, transposed, shape, alpha, a, b, beta, c, fault: FAULT };
    if FAULT == NOTHING || FAULT == NOTHING_WHERE_EVEN && m % 2 == 0 && n % 2 == 0 {
        return;
    }
    // SAFETY: as the caller guarantees.
    unsafe { product.run(["sgemm", "dgemm"]) }
}

/// C ← alpha·A·B, each matrix with its leading dimension. `beta` must be 0.
struct Product<E> {
    layout: CBLAS_LAYOUT,
    transposed: [bool; 2],
    /// Extents m, k, n.
    shape: [c_int; 3],
    alpha: E,
    a: (*const E, c_int),
    b: (*const E, c_int),
    beta: E,
    c: (*mut E, c_int),
    fault: usize,
}

impl<E: Float> Product<E> {
    /// Computes the product, recorded under the name for its element type.
    ///
    /// # Safety
    /// The matrices have the extents that the arguments describe.
    unsafe fn run(self, names: [&'static str; 2]) {
        let Product {
            layout, transposed: [ta, tb], shape, alpha, beta, c: (c, ldc), fault, ..
        } = self;
        let [m, k, n] = shape.map(|x| usize::try_from(x).unwrap_or(0));
        let operand = |(data, leading), shape, transposed, ignores_transpose| Operand {
            data,
            leading,
            shape,
            transposed,
            ignores_transpose,
        };
        let a = operand(self.a, [m, k], ta, fault == IGNORES_A);
        let b = operand(self.b, [k, n], tb, fault == IGNORES_B);
        let result = operand((c.cast_const(), ldc), [m, n], false, false);
        let name = names[usize::from(size_of::<E>() == 8)];
        if !record(name, layout, shape, beta, [&a, &b, &result]) {
            return;
        }
        for i in 0..m {
            for j in 0..n {
                // SAFETY: within the matrices that the arguments describe.
                unsafe {
                    let term = |p| a.at(i, p) * b.at(p, j);
                    let sum = alpha.to_f64() * terms(fault, k).map(term).sum::<f64>();
                    c.add(i * ldc as usize + j).write(E::from_f64(sum));
                }
            }
        }
    }
}

pub(super) unsafe extern "C" fn gemv<E: Float, const FAULT: usize>(
    layout: CBLAS_LAYOUT,
    transpose: CBLAS_TRANSPOSE,
    rows: c_int,
    cols: c_int,
    alpha: E,
    a: *const E,
    lda: c_int,
    x: *const E,
    x_step: c_int,
    beta: E,
    y: *mut E,
    y_step: c_int,
) {
    if FAULT == NOTHING {
        return;
    }
    let transposed = is_transposed(transpose);
    let (outputs, depth) = if transposed { (cols, rows) } else { (rows, cols) };
    let (transposed, shape) = ([transposed, false], [outputs, depth, 1]);
    let (a, b, c) = ((a, lda), (x, x_step), (y, y_step));
    let product = Product { layout, transposed, shape, alpha, a, b, beta, c, fault: FAULT };
    // SAFETY: as the caller guarantees.
    unsafe { product.run(["sgemv", "dgemv"]) }
}

/// A library with 32-bit integers, which reads the lower halves.
unsafe extern "C" fn dot<E: Float>(
    n: i64,
    x: *const E,
    x_step: i64,
    y: *const E,
    y_step: i64,
) -> E {
    // SAFETY: as the caller guarantees.
    unsafe { wide_dot((n as i32).into(), x, (x_step as i32).into(), y, (y_step as i32).into()) }
}

/// A library with 64-bit integers.
pub(super) unsafe extern "C" fn wide_dot<E: Float>(
    n: i64,
    x: *const E,
    x_step: i64,
    y: *const E,
    y_step: i64,
) -> E {
    // SAFETY: as the caller guarantees.
    let term = |i: i64| unsafe {
        (*x.offset((i * x_step) as isize)).to_f64() * (*y.offset((i * y_step) as isize)).to_f64()
    };
    E::from_f64((0..n).map(term).sum())
}
