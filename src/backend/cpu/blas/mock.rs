//! A BLAS for tests: it checks and records the arguments of every call, and computes the product term
//! by term.

use std::cell::Cell;
use std::ffi::c_int;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::call::MAX_INT;
use super::provider::{Found, Functions, Products, Provider, ROW_MAJOR, Symbols, TRANSPOSE};
use swath_kernels::Float;

/// One call.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub function: &'static str,
    /// m, k, n.
    pub shape: [usize; 3],
    pub transposed: [bool; 2],
    /// Addresses between the first and the last byte of A, B and C.
    pub addresses: [Range<usize>; 3],
}

struct Seen {
    records: Vec<Record>,
    /// What no call may do.
    violations: Vec<String>,
}

impl Seen {
    const fn nothing() -> Seen {
        Seen { records: Vec::new(), violations: Vec::new() }
    }
}

/// One test at a time has the mock: calls come from any thread.
static SESSION: Mutex<()> = Mutex::new(());
static SEEN: Mutex<Seen> = Mutex::new(Seen::nothing());

/// Threads that a call from outside of [`ThreadControl::on_one_thread`](super::provider::ThreadControl::on_one_thread) would use.
const UNTOLD: c_int = 8;

thread_local! {
    /// MKL's number of threads for this thread.
    static THREADS: Cell<c_int> = const { Cell::new(UNTOLD) };
    static CURRENT: Cell<Option<&'static Found>> = const { Cell::new(None) };
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The library of this thread's products, in a test.
pub(super) fn current() -> Option<&'static Found> {
    CURRENT.get()
}

/// The same as what it is.
pub(super) fn provider() -> &'static Provider {
    match current() {
        Some(Found::Library(provider)) => provider,
        _ => panic!("this thread has a library"),
    }
}

/// Runs `f` with this thread's products computed by `library`, and tells what it was called for.
///
/// # Panics
/// If a call had a wrong argument.
pub(super) fn with<T>(library: Provider, f: impl FnOnce() -> T) -> (T, Vec<Record>) {
    let (result, seen) = watch(library, f);
    assert_eq!(seen.violations, Vec::<String>::new());
    (result, seen.records)
}

/// What `f`'s calls did that no call may.
pub(super) fn violations(f: impl FnOnce(&Provider)) -> Vec<String> {
    watch(library(), || f(provider())).1.violations
}

fn watch<T>(library: Provider, f: impl FnOnce() -> T) -> (T, Seen) {
    let _session = lock(&SESSION);
    *lock(&SEEN) = Seen::nothing();
    let result = on_this_thread(Some(Box::leak(Box::new(Found::Library(library)))), f);
    assert_eq!(THREADS.get(), UNTOLD, "the user's number of threads");
    (result, std::mem::replace(&mut *lock(&SEEN), Seen::nothing()))
}

/// Runs `f` with `library` in place of this thread's.
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

/// What a library's header declares.
pub(super) struct Header(pub &'static [(&'static str, *const ())]);

impl Symbols for Header {
    unsafe fn find<T: Copy>(&self, name: &str) -> Option<T> {
        let (_, address) = self.0.iter().find(|(symbol, _)| *symbol == name)?;
        assert_eq!(size_of::<T>(), size_of::<*const ()>());
        // SAFETY: a pointer read as a pointer; the caller names the function's type.
        Some(unsafe { std::mem::transmute_copy(address) })
    }
}

extern "C" fn set_threads(threads: c_int) -> c_int {
    THREADS.replace(threads)
}

extern "C" fn get_threads() -> c_int {
    THREADS.get()
}

/// The mock as a library, which is told its number of threads as MKL is.
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
    Functions {
        gemm: gemm::<E, RIGHT>,
        gemv: gemv::<E, RIGHT>,
        dot,
        gemm_batch: Some(gemm_batch::<E, RIGHT>),
    }
}

/// What a function does wrong: nothing.
pub(super) const RIGHT: usize = usize::MAX;
/// It ignores that A, or B, is transposed, but not their leading dimensions.
pub(super) const IGNORES_A: usize = usize::MAX - 1;
pub(super) const IGNORES_B: usize = usize::MAX - 2;
/// It leaves out the first of eight terms or more, or the last ones beyond a multiple of eight: a loop of
/// eight steps is wrong, or the one after it.
pub(super) const MAIN_LOOP: usize = usize::MAX - 3;
pub(super) const LAST_TERMS: usize = usize::MAX - 4;
/// It writes nothing, as a library that takes its arguments for wrong; or so where the rows and the columns
/// of C are even in number.
pub(super) const NOTHING: usize = usize::MAX - 5;
pub(super) const NOTHING_WHERE_EVEN: usize = usize::MAX - 6;
/// A batch's: the operands of the first product are taken for those of all; any other number, that product
/// is not written.
pub(super) const FIRST_OPERANDS: usize = usize::MAX - 7;

/// The terms of a sum of so many.
fn terms(fault: usize, depth: usize) -> Range<usize> {
    match fault {
        MAIN_LOOP if depth >= 8 => 1..depth,
        LAST_TERMS if depth >= 8 => 0..depth - depth % 8,
        _ => 0..depth,
    }
}

/// A matrix among the arguments.
struct Argument {
    name: &'static str,
    address: usize,
    /// As stored.
    rows: usize,
    cols: usize,
    leading: c_int,
}

impl Argument {
    fn new<E>(
        name: &'static str,
        data: *const E,
        transposed: bool,
        [rows, cols]: [usize; 2],
        leading: c_int,
    ) -> Self {
        let [rows, cols] = if transposed { [cols, rows] } else { [rows, cols] };
        Argument { name, address: data as usize, rows, cols, leading }
    }

    /// Its addresses; what the standard forbids becomes a violation.
    fn range<E>(&self) -> Result<Range<usize>, String> {
        let Argument { name, address, rows, cols, leading } = *self;
        let leading = usize::try_from(leading).unwrap_or(0);
        if leading < cols.max(1) || address == 0 {
            return Err(format!("{name}: [{rows}, {cols}] with leading dimension {leading}"));
        }
        Ok(address..address + ((rows - 1) * leading + cols) * size_of::<E>())
    }
}

/// Notes the call; false if it must not be carried out.
fn note<E>(
    function: &'static str,
    layout: c_int,
    [m, k, n]: [c_int; 3],
    transposed: [bool; 2],
    beta: f64,
    arguments: [Argument; 3],
) -> bool {
    let mut seen = lock(&SEEN);
    let numbers = [m, k, n].into_iter().chain(arguments.iter().map(|argument| argument.leading));
    let greatest = numbers.max().and_then(|number| usize::try_from(number).ok());
    let is_beyond = greatest.is_some_and(|number| number > MAX_INT);
    let mut refuse = |what: String| {
        seen.violations.push(format!("{function}: {what}"));
        false
    };
    if layout != ROW_MAJOR || beta != 0.0 {
        return refuse(format!("layout {layout}, beta {beta}"));
    }
    if THREADS.get() != 1 {
        return refuse(format!("{} threads", THREADS.get()));
    }
    if is_beyond {
        return refuse(format!("{greatest:?} is beyond the library's integers"));
    }
    let Some(shape) = [m, k, n]
        .into_iter()
        .map(|x| usize::try_from(x).ok().filter(|&x| x > 0))
        .collect::<Option<Vec<_>>>()
    else {
        return refuse(format!("extents {m}, {k}, {n}"));
    };
    let mut addresses = Vec::new();
    for argument in &arguments {
        match argument.range::<E>() {
            Ok(range) => addresses.push(range),
            Err(what) => return refuse(what),
        }
    }
    let [a, b, c] = <[Range<usize>; 3]>::try_from(addresses).expect("three matrices");
    if [&a, &b].iter().any(|read| read.start < c.end && c.start < read.end) {
        return refuse("C overlaps an operand".to_owned());
    }
    let shape = [shape[0], shape[1], shape[2]];
    seen.records.push(Record { function, shape, transposed, addresses: [a, b, c] });
    true
}

fn is(transpose: c_int) -> bool {
    transpose == TRANSPOSE
}

/// A matrix `[rows, cols]` as a function reads it.
struct Read<E> {
    data: *const E,
    leading: c_int,
    shape: [usize; 2],
    transposed: bool,
    /// Read as if it were not transposed.
    ignores: bool,
}

impl<E: Float> Read<E> {
    /// Element (i, j).
    unsafe fn at(&self, i: usize, j: usize) -> f64 {
        let Read { data, leading, shape: [rows, cols], transposed, ignores } = *self;
        let (rows, cols) = if transposed { (cols, rows) } else { (rows, cols) };
        let (row, col) = if transposed && !ignores { (j, i) } else { (i, j) };
        // SAFETY: the caller's matrix is stored as so many rows and columns.
        unsafe { *data.add(row % rows * leading as usize + col % cols) }.to_f64()
    }
}

pub(super) unsafe extern "C" fn gemm<E: Float, const FAULT: usize>(
    layout: c_int,
    transpose_a: c_int,
    transpose_b: c_int,
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
    let (transposed, shape) = ([transpose_a, transpose_b].map(is), [m, k, n]);
    let (a, b, c) = ((a, lda), (b, ldb), (c, ldc));
    let product = Product { layout, transposed, shape, alpha, a, b, beta, c, fault: FAULT };
    if FAULT == NOTHING || FAULT == NOTHING_WHERE_EVEN && m % 2 == 0 && n % 2 == 0 {
        return;
    }
    // SAFETY: as the caller promises.
    unsafe { product.run(["sgemm", "dgemm"]) }
}

/// C ← alpha·A·B + beta·C, each matrix with its leading dimension.
struct Product<E> {
    layout: c_int,
    transposed: [bool; 2],
    /// m, k, n.
    shape: [c_int; 3],
    alpha: E,
    a: (*const E, c_int),
    b: (*const E, c_int),
    beta: E,
    c: (*mut E, c_int),
    fault: usize,
}

impl<E: Float> Product<E> {
    /// Computes it, noted under the name for its element type.
    unsafe fn run(self, names: [&'static str; 2]) {
        let Product { layout, transposed, shape, alpha, a: (a, lda), b: (b, ldb), beta, .. } = self;
        let ([ta, tb], (c, ldc), fault) = (transposed, self.c, self.fault);
        let [rows, depth, cols] = shape.map(|x| usize::try_from(x).unwrap_or(0));
        let arguments = [
            Argument::new("A", a, ta, [rows, depth], lda),
            Argument::new("B", b, tb, [depth, cols], ldb),
            Argument::new("C", c.cast_const(), false, [rows, cols], ldc),
        ];
        let name = names[usize::from(size_of::<E>() == 8)];
        if !note::<E>(name, layout, shape, transposed, beta.to_f64(), arguments) {
            return;
        }
        let (shape, ignores) = ([rows, depth], fault == IGNORES_A);
        let a = Read { data: a, leading: lda, shape, transposed: ta, ignores };
        let (shape, ignores) = ([depth, cols], fault == IGNORES_B);
        let b = Read { data: b, leading: ldb, shape, transposed: tb, ignores };
        for i in 0..rows {
            for j in 0..cols {
                // SAFETY: inside of the matrices that the arguments describe.
                unsafe {
                    let term = |p| a.at(i, p) * b.at(p, j);
                    let sum = alpha.to_f64() * terms(fault, depth).map(term).sum::<f64>();
                    let out = c.add(i * ldc as usize + j);
                    let old = if beta == E::ZERO { 0.0 } else { beta.to_f64() * (*out).to_f64() };
                    out.write(E::from_f64(old + sum));
                }
            }
        }
    }
}

pub(super) unsafe extern "C" fn gemv<E: Float, const FAULT: usize>(
    layout: c_int,
    transpose: c_int,
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
    let transposed = is(transpose);
    let (outputs, depth) = if transposed { (cols, rows) } else { (rows, cols) };
    let [m, k] = [outputs, depth].map(|x| usize::try_from(x).unwrap_or(0));
    let arguments = [
        Argument::new("A", a, transposed, [m, k], lda),
        Argument::new("x", x, false, [k, 1], x_step),
        Argument::new("y", y.cast_const(), false, [m, 1], y_step),
    ];
    let name = if size_of::<E>() == 8 { "dgemv" } else { "sgemv" };
    let extents = [outputs, depth, 1];
    if !note::<E>(name, layout, extents, [transposed, false], beta.to_f64(), arguments) {
        return;
    }
    let ignores = FAULT == IGNORES_A;
    let a = Read { data: a, leading: lda, shape: [m, k], transposed, ignores };
    for i in 0..m {
        // SAFETY: inside of the matrix and the vectors that the arguments describe.
        unsafe {
            let term = |p: usize| a.at(i, p) * (*x.add(p * x_step as usize)).to_f64();
            let sum = alpha.to_f64() * terms(FAULT, k).map(term).sum::<f64>();
            let out = y.add(i * y_step as usize);
            let old = if beta == E::ZERO { 0.0 } else { beta.to_f64() * (*out).to_f64() };
            out.write(E::from_f64(old + sum));
        }
    }
}

/// With 32-bit integers: the lower halves.
unsafe extern "C" fn dot<E: Float>(
    n: i64,
    x: *const E,
    x_step: i64,
    y: *const E,
    y_step: i64,
) -> E {
    // SAFETY: the caller's vectors hold as many elements.
    unsafe { wide_dot((n as i32).into(), x, (x_step as i32).into(), y, (y_step as i32).into()) }
}

/// With 64-bit integers.
pub(super) unsafe extern "C" fn wide_dot<E: Float>(
    n: i64,
    x: *const E,
    x_step: i64,
    y: *const E,
    y_step: i64,
) -> E {
    // SAFETY: as the caller promises.
    let term = |i: i64| unsafe {
        (*x.offset((i * x_step) as isize)).to_f64() * (*y.offset((i * y_step) as isize)).to_f64()
    };
    E::from_f64((0..n).map(term).sum())
}

pub(super) unsafe extern "C" fn gemm_batch<E: Float, const FAULT: usize>(
    layout: c_int,
    transpose_a: *const c_int,
    transpose_b: *const c_int,
    m: *const c_int,
    n: *const c_int,
    k: *const c_int,
    alpha: *const E,
    a: *const *const E,
    lda: *const c_int,
    b: *const *const E,
    ldb: *const c_int,
    beta: *const E,
    c: *const *mut E,
    ldc: *const c_int,
    groups: c_int,
    group_sizes: *const c_int,
) {
    let mut i = 0;
    for group in 0..usize::try_from(groups).unwrap_or(0) {
        // SAFETY: the arrays have an element a group, those of addresses one a product.
        unsafe {
            for _ in 0..*group_sizes.add(group) {
                let of = if FAULT == FIRST_OPERANDS { 0 } else { i };
                let product = Product {
                    layout,
                    transposed: [*transpose_a.add(group), *transpose_b.add(group)].map(is),
                    shape: [*m.add(group), *k.add(group), *n.add(group)],
                    alpha: *alpha.add(group),
                    a: (*a.add(of), *lda.add(group)),
                    b: (*b.add(of), *ldb.add(group)),
                    beta: *beta.add(group),
                    c: (*c.add(i), *ldc.add(group)),
                    fault: FAULT,
                };
                if i != FAULT {
                    product.run(["sgemm_batch", "dgemm_batch"]);
                }
                i += 1;
            }
        }
    }
}
