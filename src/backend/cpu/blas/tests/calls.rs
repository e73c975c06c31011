//! Tests of the checks of a call: integer arguments, canaries, the self-test.

use std::ffi::c_int;

use cblas_sys::{CBLAS_LAYOUT, CblasColMajor, CblasNoTrans, CblasRowMajor};

use super::{Arrangement, operand, values};
use crate::backend::Backend;
use crate::backend::cpu::CpuBackend;
use crate::backend::cpu::blas::call::{CANARY, Call, Failure, MAX_INT, Operand};
use crate::backend::cpu::blas::mock::{
    self, IGNORES_A, IGNORES_B, LAST_TERMS, MAIN_LOOP, NOTHING, NOTHING_WHERE_EVEN, Record, gemm,
    gemv, library,
};
use crate::backend::cpu::blas::plan::Stored;
use crate::backend::cpu::blas::provider::Provider;
use crate::backend::cpu::blas::self_test;
use crate::dtype::{DType, HostData};
use crate::rng::Rng;

/// Rows and columns of the matrices that hold operands.
const SIDE: usize = MAX_INT + 2;

/// Extents m, k, n; whether A is transposed; the leading dimensions of A, B and C.
type Integers = ([usize; 3], bool, [usize; 3]);

/// Computes a product; returns the outcome and the recorded calls.
fn run(integers: Integers) -> (Result<(), Failure>, Vec<Record>) {
    let (shape, transposed, [lda, ldb, ldc]) = integers;
    let (a, b) = (vec![1f32; SIDE * SIDE], vec![1f32; SIDE * SIDE]);
    let mut c = vec![0f32; SIDE * SIDE];
    let call = Call {
        shape,
        a: Operand { data: a.as_ptr(), stored: Stored { transposed, leading: lda } },
        b: Operand { data: b.as_ptr(), stored: Stored { transposed: false, leading: ldb } },
        c: c.as_mut_ptr(),
        ldc,
    };
    mock::with(library(), || {
        let library = mock::provider();
        // SAFETY: no extent and no leading dimension exceeds the side of these matrices.
        library.threads.on_one_thread(|| unsafe { call.run(&library.products) })
    })
}

#[track_caller]
fn assert_refused(integers: Integers) {
    let (result, records) = run(integers);
    assert_eq!((result, records.len()), (Err(Failure::Arguments), 0), "{integers:?}");
}

#[test]
fn arguments_beyond_the_librarys_integers_are_refused() {
    let fits = [
        ([3, 4, 5], false, [MAX_INT; 3]),
        ([MAX_INT, 4, 5], false, [MAX_INT; 3]),
        ([3, MAX_INT, 5], true, [MAX_INT; 3]),
        ([3, 4, MAX_INT], false, [MAX_INT; 3]),
        ([3, 4, 1], false, [MAX_INT; 3]),
        ([1, 4, 5], false, [MAX_INT; 3]),
    ];
    let beyond = [
        ([MAX_INT + 1, 4, 5], false, [MAX_INT; 3]),
        ([3, MAX_INT + 1, 5], true, [MAX_INT; 3]),
        ([1, 4, MAX_INT + 1], false, [MAX_INT + 1; 3]),
        ([2, 4, MAX_INT + 1], false, [MAX_INT + 1; 3]),
        ([3, 4, 5], false, [MAX_INT + 1, MAX_INT, MAX_INT]),
        ([3, 4, 5], false, [MAX_INT, MAX_INT + 1, MAX_INT]),
        ([3, 4, 5], false, [MAX_INT, MAX_INT, MAX_INT + 1]),
        // Matrix-vector products.
        ([MAX_INT + 1, 4, 1], false, [MAX_INT; 3]),
        ([3, MAX_INT + 1, 1], true, [MAX_INT; 3]),
        ([3, 4, 1], false, [MAX_INT + 1, MAX_INT, MAX_INT]),
        ([3, 4, 1], false, [MAX_INT, MAX_INT + 1, MAX_INT]),
        ([3, 4, 1], false, [MAX_INT, MAX_INT, MAX_INT + 1]),
        ([1, 4, 5], true, [MAX_INT + 1, MAX_INT, MAX_INT]),
        ([1, 4, 5], false, [MAX_INT, MAX_INT + 1, MAX_INT]),
    ];
    for integers in fits {
        let (result, records) = run(integers);
        assert_eq!((result, records.len()), (Ok(()), 1), "{integers:?}");
    }
    beyond.into_iter().for_each(assert_refused);
}

#[test]
fn extents_of_zero_and_leading_dimensions_below_the_row_length_are_refused() {
    let matrices = [
        ([3, 0, 5], false, [MAX_INT; 3]),
        ([3, 4, 5], false, [3, 5, 5]),
        ([3, 4, 5], true, [2, 5, 5]),
        ([3, 4, 5], false, [4, 4, 5]),
        ([3, 4, 5], false, [4, 5, 4]),
    ];
    let vectors = [
        ([3, 0, 1], false, [MAX_INT; 3]),
        ([1, 0, 5], false, [MAX_INT; 3]),
        ([3, 4, 1], false, [3, 1, 1]),
        ([3, 4, 1], true, [2, 1, 1]),
        ([1, 4, 5], false, [4, 4, 5]),
        // Increments of 0.
        ([3, 4, 1], false, [4, 0, 1]),
        ([3, 4, 1], false, [4, 1, 0]),
        ([1, 4, 5], true, [0, 5, 5]),
    ];
    matrices.into_iter().chain(vectors).for_each(assert_refused);
}

/// Each invalid argument alone is recorded as a violation, and the mock does not compute.
#[test]
fn the_mock_detects_every_invalid_argument() {
    const SIDE: usize = 20;
    const BEYOND: c_int = MAX_INT as c_int + 1;
    struct Arguments {
        layout: CBLAS_LAYOUT,
        shape: [c_int; 3],
        leading: [c_int; 3],
        beta: f32,
        /// Position of C in the memory that begins with A.
        c: usize,
        null: Option<usize>,
        is_alone: bool,
    }
    let noticed = |change: fn(&mut Arguments), told: &str| {
        let mut arguments = Arguments {
            layout: CblasRowMajor,
            shape: [3, 4, 5],
            leading: [4, 5, 5],
            beta: 0.0,
            c: 2 * SIDE * SIDE,
            null: None,
            is_alone: true,
        };
        change(&mut arguments);
        let Arguments { layout, shape: [m, k, n], leading: [lda, ldb, ldc], .. } = arguments;
        let mut memory = vec![1f32; 3 * SIDE * SIDE];
        let before = memory.clone();
        let found = mock::violations(|library| {
            let base = memory.as_mut_ptr();
            let mut places = [0, SIDE * SIDE, arguments.c].map(|at| base.wrapping_add(at));
            if let Some(i) = arguments.null {
                places[i] = std::ptr::null_mut();
            }
            let [a, b, c] = places;
            let call = || {
                // SAFETY: the mock only accesses matrices with extents of at most 20, which are in `memory`.
                unsafe {
                    let (gemm, plain, beta) =
                        (library.products.f32.gemm, CblasNoTrans, arguments.beta);
                    gemm(layout, plain, plain, m, n, k, 1.0, a, lda, b, ldb, beta, c, ldc);
                }
            };
            if arguments.is_alone { library.threads.on_one_thread(call) } else { call() }
        });
        let expected = if told.is_empty() { vec![] } else { vec![format!("sgemm: {told}")] };
        assert_eq!(found, expected);
        assert_eq!(memory == before, !told.is_empty(), "{told}");
    };
    noticed(|_| {}, "");
    noticed(|it| it.leading = [SIDE as c_int; 3], "");
    noticed(|it| it.layout = CblasColMajor, "layout CblasColMajor, beta 0");
    noticed(|it| it.beta = 0.5, "layout CblasRowMajor, beta 0.5");
    noticed(|it| it.is_alone = false, "8 threads");
    noticed(|it| it.shape[0] = BEYOND, "Some(2001) is beyond the library's integers");
    noticed(|it| it.leading[1] = BEYOND, "Some(2001) is beyond the library's integers");
    noticed(|it| it.shape[1] = 0, "extents 3, 0, 5");
    noticed(|it| it.shape[0] = -1, "extents -1, 4, 5");
    noticed(|it| it.leading[0] = 3, "A: [3, 4] with leading dimension 3");
    noticed(|it| it.leading[1] = 4, "B: [4, 5] with leading dimension 4");
    noticed(|it| it.leading[2] = -5, "C: [3, 5] with leading dimension 0");
    noticed(|it| it.null = Some(0), "A: [3, 4] with leading dimension 4");
    noticed(|it| it.null = Some(2), "C: [3, 5] with leading dimension 5");
    noticed(|it| it.c = 11, "C overlaps an operand");
    noticed(|it| it.c = SIDE * SIDE + 19, "C overlaps an operand");
    // Directly after the last element of A.
    noticed(|it| it.c = 12, "");
}

#[test]
fn a_result_that_equals_the_canary_is_correct() {
    let (mut a, mut b) = (vec![0.0; 400], vec![0.0; 400]);
    a[399] = CANARY as f32;
    (0..20).for_each(|j| b[j * 21] = 1.0);
    let [a, b] = [a, b].map(|x| CpuBackend::from_host(HostData::F32(x), [20, 20].into()).unwrap());
    let (c, _) = mock::with(library(), || CpuBackend::matmul(&a, &b).unwrap());
    assert_eq!(values(&c)[399], f64::from(CANARY as f32));
}

#[test]
fn the_self_test_detects_every_fault() {
    let self_test = |library: Provider| mock::with(library, || self_test::run(mock::provider())).0;
    assert_eq!(self_test(library()), Ok(()));
    type Change = fn(&mut Provider);
    let finds = |change: Change, told: &str| {
        let mut library = library();
        change(&mut library);
        let reason = self_test(library).unwrap_err();
        assert!(reason.contains(told), "{reason}, not {told}");
    };
    finds(|it| it.products.f32.dot = mock::wide_dot, "64-bit integers (ILP64)");
    finds(|it| it.products.f64.dot = mock::wide_dot, "64-bit integers (ILP64)");
    let (matrix, vector) = ("of [2, 3] and [3, 4]", "of [5, 2] and [2, 1]");
    let not_written = |function: &str, at: &str| {
        format!("cblas_{function} {at} returned without writing its result")
    };
    let unwritten: [(Change, _); 4] = [
        (|it| it.products.f32.gemm = gemm::<_, NOTHING>, not_written("sgemm", matrix)),
        (|it| it.products.f64.gemm = gemm::<_, NOTHING>, not_written("dgemm", matrix)),
        (|it| it.products.f32.gemv = gemv::<_, NOTHING>, not_written("sgemv", vector)),
        (|it| it.products.f64.gemv = gemv::<_, NOTHING>, not_written("dgemv", vector)),
    ];
    unwritten.into_iter().for_each(|(change, told)| finds(change, &told));
    fn faults<const FAULT: usize>() -> [(Change, &'static str); 4] {
        [
            (|it| it.products.f32.gemm = gemm::<_, FAULT>, "sgemm"),
            (|it| it.products.f64.gemm = gemm::<_, FAULT>, "dgemm"),
            (|it| it.products.f32.gemv = gemv::<_, FAULT>, "sgemv"),
            (|it| it.products.f64.gemv = gemv::<_, FAULT>, "dgemv"),
        ]
    }
    // The first product, and the first matrix-vector product, that shows the fault. A vector is never
    // transposed.
    for (faults, products, vectors) in [
        (faults::<IGNORES_A>(), matrix, vector),
        (faults::<IGNORES_B>(), matrix, ""),
        (faults::<MAIN_LOOP>(), "of [40, 40] and [40, 40]", "of [131, 144] and [144, 1]"),
        (faults::<LAST_TERMS>(), "of [40, 37] and [37, 40]", "of [144, 131] and [131, 1]"),
    ] {
        for (change, function) in faults {
            let at = if function.ends_with('v') { vectors } else { products };
            if !at.is_empty() {
                finds(change, &format!("cblas_{function} {at} gave"));
            }
        }
    }
}

/// If the library added directly to C, the embedded product would add the same tiles again.
#[test]
fn a_product_is_added_once_if_the_library_fails_midway() {
    let mut rng = Rng::seed(75);
    let [a, b, c] = [[301, 80], [80, 601], [301, 601]]
        .map(|shape| operand(Arrangement::Plain, shape, 1, false, DType::F32, &mut rng));
    let mut broken = library();
    broken.products.f32.gemm = gemm::<_, NOTHING_WHERE_EVEN>;
    let (before, product) = (values(&c), CpuBackend::matmul(&a, &b).unwrap());
    let (sum, records) = mock::with(broken, || {
        let sum = CpuBackend::matmul_add(&a, &b, c).unwrap();
        assert!(mock::provider().failure.get().is_some());
        sum
    });
    assert!(!records.is_empty(), "some calls wrote");
    let wanted = before.iter().zip(values(&product)).map(|(c, product)| c + product);
    for (got, wanted) in values(&sum).into_iter().zip(wanted) {
        assert!((got - wanted).abs() <= 1e-4, "{got}, not {wanted}");
    }
}
