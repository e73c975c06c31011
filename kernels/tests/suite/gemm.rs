//! The product against a scalar definition with the documented order of additions, on every instruction set.

use std::mem::MaybeUninit;

use crate::products::Layout::*;
use crate::products::*;
use swath_kernels::testing::{levels, with_isa};
use swath_kernels::{
    Factor, Float, Gemm, GemmError, GemmPath, MatMut, MatRef, PackedB, Workspace, gemm,
};

fn check_layouts<E: Float + Factor<Sum = E>>(
    [m, k, n]: [usize; 3],
    layouts: [Layout; 3],
    (alpha, beta): (f64, f64),
) {
    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ (m * 31 + k * 7 + n) as u64);
    let a = Matrix::<E>::new([m, k], layouts[0], &mut random);
    let b = Matrix::<E>::new([k, n], layouts[1], &mut random);
    let c = Matrix::<E>::new([m, n], layouts[2], &mut random);
    check(&a, &b, &c, E::from_f64(alpha), E::from_f64(beta));
}

const PLAIN: (f64, f64) = (1.0, 0.0);
const SCALES: [(f64, f64); 6] =
    [PLAIN, (1.0, 1.0), (1.0, -0.5), (-0.7, 0.0), (1.3, 1.0), (0.3, 2.7)];
const ALL_LAYOUTS: [Layout; 11] = [
    Rows,
    Columns,
    Padded,
    PaddedColumns,
    Spread,
    EveryOther,
    NegativeRows,
    NegativeColumns,
    NegativeBoth,
    ZeroRows,
    ZeroColumns,
];

#[test]
fn large_odd_shapes_match_the_definition_in_all_orientations() {
    for shape in [[37, 333, 513], [7, 65, 1025], [130, 257, 70], [13, 600, 1100]] {
        for a in [Rows, Columns] {
            for b in [Rows, Columns] {
                check_layouts::<f32>(shape, [a, b, Rows], PLAIN);
            }
        }
    }
    check_layouts::<f64>([37, 333, 513], [Rows, Rows, Rows], PLAIN);
    check_layouts::<f64>([37, 333, 513], [Columns, Columns, Rows], PLAIN);
}

#[test]
fn k_around_block_boundaries_matches_the_definition() {
    for k in [0, 1, 2, 3, 4, 5, 15, 16, 17, 255, 256, 257, 511, 512, 513, 600] {
        for scales in SCALES {
            check_layouts::<f32>([14, k, 35], [Rows, Columns, Rows], scales);
            check_layouts::<f64>([14, k, 35], [Columns, Rows, Rows], scales);
        }
    }
}

#[test]
fn every_tile_shape_matches_the_definition() {
    for m in 0..=14 {
        for n in [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 47, 48, 49, 63, 64, 65, 80, 129] {
            for b in [Rows, Columns] {
                check_layouts::<f32>([m, 9, n], [Rows, b, Rows], PLAIN);
                check_layouts::<f64>([m, 9, n], [Rows, b, Padded], (1.0, 1.0));
            }
        }
    }
}

#[test]
fn vectors_by_matrices_match_the_definition() {
    for (a, b) in [(Rows, Rows), (Rows, Columns), (Columns, Rows), (Columns, Columns)] {
        for shape in [[1, 300, 131], [131, 300, 1], [1, 700, 1], [2, 300, 40], [40, 300, 2]] {
            check_layouts::<f32>(shape, [a, b, Rows], PLAIN);
            check_layouts::<f32>(shape, [a, b, Spread], (2.0, 1.0));
            check_layouts::<f64>(shape, [a, b, Columns], (1.0, 1.0));
        }
    }
}

#[test]
fn few_rows_by_a_streamed_b_match_the_definition() {
    for m in [1, 5, 12, 13, 24] {
        for scales in [PLAIN, (1.0, 1.0), (0.3, 2.7)] {
            check_layouts::<f32>([m, 600, 301], [Rows, Rows, Rows], scales);
            check_layouts::<f32>([m, 257, 1100], [Columns, Padded, Spread], scales);
            check_layouts::<f64>([m, 600, 301], [Rows, Columns, Rows], scales);
            check_layouts::<f64>([m, 30, 2500], [Spread, NegativeRows, Columns], scales);
        }
    }
}

/// Several panels and blocks of k; reversed rows are read in place, the others packed.
#[test]
fn few_rows_by_a_strided_or_reversed_b_match_the_definition() {
    for m in [1, 5, 7, 12, 13] {
        for b in [NegativeColumns, EveryOther, Spread, ZeroColumns] {
            for scales in [PLAIN, (0.3, 2.7)] {
                check_layouts::<f32>([m, 600, 301], [Rows, b, Rows], scales);
                check_layouts::<f32>([m, 9, 10_000 / m], [Columns, b, Padded], scales);
                check_layouts::<f64>([m, 257, 5000 / m], [Spread, b, Rows], scales);
                check_layouts::<f64>([m, 0, 30], [Rows, b, Rows], scales);
            }
        }
    }
}

#[test]
fn any_strides_match_the_definition() {
    for a in ALL_LAYOUTS {
        for b in ALL_LAYOUTS {
            check_layouts::<f32>([15, 37, 70], [a, b, Rows], PLAIN);
            check_layouts::<f32>([5, 270, 19], [a, b, Columns], (1.0, 1.0));
        }
    }
    for c in &ALL_LAYOUTS[..9] {
        let c = *c;
        for scales in SCALES {
            check_layouts::<f32>([20, 300, 70], [Rows, Rows, c], scales);
            check_layouts::<f64>([20, 30, 70], [Rows, Columns, c], scales);
        }
    }
}

/// Some of the layouts have C in one vector.
#[test]
fn four_by_four_products_match_the_definition() {
    for (a, b) in ALL_LAYOUTS.into_iter().flat_map(|a| ALL_LAYOUTS.map(|b| (a, b))) {
        for c in [Rows, Columns, Padded, Spread] {
            check_layouts::<f32>([4, 4, 4], [a, b, c], PLAIN);
        }
    }
}

#[test]
fn more_rows_than_the_scratch_holds_match_the_definition() {
    check_layouts::<f32>([1030, 300, 5], [Rows, Rows, Padded], (1.0, 1.0));
    check_layouts::<f32>([530, 270, 40], [Rows, Columns, Spread], PLAIN);
}

#[test]
fn gaps_in_the_output_do_not_change() {
    let mut random = Random(7);
    let a = Matrix::<f32>::new([9, 40], Rows, &mut random);
    let b = Matrix::<f32>::new([40, 21], Columns, &mut random);
    for strides in [[50isize, 1], [1, 50], [60, 2]] {
        for isa in levels() {
            let len = (8 * strides[0] + 20 * strides[1] + 40) as usize;
            let mut data = vec![f32::MAX; len];
            let c = MatMut::new(&mut data, 7, [9, 21], strides).unwrap();
            let product = Gemm::new(a.view(), b.view());
            with_isa(isa, || gemm(product, c, &mut Workspace::new()).unwrap()).unwrap();
            let mut inside = vec![false; len];
            for (i, j) in (0..9).flat_map(|i| (0..21).map(move |j| (i, j))) {
                inside[7 + i * strides[0] as usize + j * strides[1] as usize] = true;
            }
            for (at, x) in data.iter().enumerate() {
                assert_eq!(*x == f32::MAX, !inside[at], "{isa}, strides {strides:?}, index {at}");
            }
        }
    }
}

#[test]
fn uninitialised_output_is_written_and_never_read() {
    let mut random = Random(3);
    for k in [5, 300] {
        let a = Matrix::<f64>::new([7, k], Rows, &mut random);
        let b = Matrix::<f64>::new([k, 30], Rows, &mut random);
        let mut memory = vec![MaybeUninit::new(f64::NAN); 7 * 30];
        let product = |beta| Gemm { beta, ..Gemm::new(a.view(), b.view()) };
        let c = MatMut::uninit(&mut memory, 0, [7, 30], [30, 1]).unwrap();
        gemm(product(0.0), c, &mut Workspace::new()).unwrap();
        for (at, (x, expected)) in memory.iter().zip(oracle(&a, &b)).enumerate() {
            // SAFETY: all elements were initialised with NaN.
            let got = unsafe { x.assume_init() };
            assert!(same(got, expected), "element {at}");
        }
        let c = MatMut::uninit(&mut memory, 0, [7, 30], [30, 1]).unwrap();
        let error = gemm(product(1.0), c, &mut Workspace::new()).unwrap_err();
        assert_eq!(error, GemmError::UninitializedOutput { c: [7, 30] });
    }
}

#[test]
fn error_is_within_k_units_of_the_product_of_magnitudes() {
    let mut random = Random(5);
    for k in [17, 256, 1000] {
        let a = Matrix::<f64>::new([11, k], Rows, &mut random);
        let b = Matrix::<f64>::new([k, 23], Columns, &mut random);
        let mut c = vec![0.0f64; 11 * 23];
        let product = Gemm::new(a.view(), b.view());
        let out = MatMut::row_major(&mut c, [11, 23]).unwrap();
        gemm(product, out, &mut Workspace::new()).unwrap();
        for (at, &got) in c.iter().enumerate() {
            // Neumaier's compensated sum of products split exactly by fma: about twice f64.
            let (mut sum, mut low, mut magnitude) = (0.0f64, 0.0f64, 0.0f64);
            for p in 0..k {
                let (x, y) = (a.at(at / 23, p), b.at(p, at % 23));
                let product = x * y;
                low += x.mul_add(y, -product);
                let next = sum + product;
                low += if sum.abs() >= product.abs() {
                    (sum - next) + product
                } else {
                    (product - next) + sum
                };
                sum = next;
                magnitude += product.abs();
            }
            let bound = k as f64 * (f64::EPSILON / 2.0) * magnitude;
            assert!((got - (sum + low)).abs() <= bound, "k = {k}, element {at}");
        }
    }
}

#[test]
fn single_rows_parts_and_packed_b_have_the_bits_of_the_whole() {
    let mut random = Random(23);
    let (m, k, n) = (29, 300, 1100);
    let a = Matrix::<f32>::new([m, k], Rows, &mut random);
    for layout in [Rows, Columns, Spread] {
        let b = Matrix::<f32>::new([k, n], layout, &mut random);
        let mut whole = vec![0.0f32; m * n];
        let mut workspace = Workspace::new();
        let product = Gemm::new(a.view(), b.view());
        gemm(product, MatMut::row_major(&mut whole, [m, n]).unwrap(), &mut workspace).unwrap();

        let mut row = vec![0.0f32; n];
        for i in 0..m {
            let alone = Gemm::new(a.view().split_rows(i).1.split_rows(1).0, b.view());
            gemm(alone, MatMut::row_major(&mut row, [1, n]).unwrap(), &mut workspace).unwrap();
            assert_eq!(row, whole[i * n..(i + 1) * n], "row {i}");
        }

        let mut parts = vec![0.0f32; m * n];
        let (left, right) = MatMut::row_major(&mut parts, [m, n]).unwrap().split_cols(701);
        let ((b_left, b_right), (a_top, a_bottom)) =
            (b.view().split_cols(701), a.view().split_rows(10));
        std::thread::scope(|scope| {
            for (b, c) in [(b_left, left), (b_right, right)] {
                let (top, bottom) = c.split_rows(10);
                for (a, c) in [(a_top, top), (a_bottom, bottom)] {
                    scope.spawn(move || {
                        let product = Gemm::new(a, b);
                        gemm(product, c, &mut Workspace::new()).unwrap();
                    });
                }
            }
        });
        assert_eq!(parts, whole);

        let mut buffer = Workspace::new();
        let packed = &PackedB::pack(b.view(), &mut buffer);
        let mut rows = vec![0.0f32; m * n];
        let (top, bottom) = MatMut::row_major(&mut rows, [m, n]).unwrap().split_rows(10);
        std::thread::scope(|scope| {
            for (a, c) in [(a_top, top), (a_bottom, bottom)] {
                scope.spawn(move || {
                    let product = Gemm::new(a, packed);
                    gemm(product, c, &mut Workspace::new()).unwrap();
                });
            }
        });
        assert_eq!(rows, whole);
    }
}

/// Shape, layouts of A, B and C, scale factors, and the expected path.
#[test]
fn each_shape_uses_its_path() {
    use GemmPath::{Blocked, Columns as ColumnsOfB, InPlace, Rows as RowsOfB, Small};
    let added = (1.0, 1.0);
    for (shape, layouts, factors, expected) in [
        ([4, 4, 4], [Rows, Rows, Rows], PLAIN, Small),
        ([64, 64, 64], [Rows, Rows, Rows], PLAIN, Small),
        ([64, 64, 64], [Columns, Columns, Columns], PLAIN, Small),
        // Added to C; two blocks of k; A without contiguous rows or columns.
        ([64, 64, 64], [Rows, Rows, Rows], added, InPlace),
        ([64, 257, 16], [Rows, Rows, Rows], PLAIN, InPlace),
        ([64, 64, 64], [Spread, Rows, Rows], PLAIN, InPlace),
        // A vector by a matrix and a matrix by a vector, in both storage orders.
        ([1, 700, 500], [Rows, Rows, Rows], PLAIN, RowsOfB),
        ([1, 700, 500], [Rows, Columns, Rows], PLAIN, ColumnsOfB),
        ([500, 700, 1], [Rows, Rows, Rows], PLAIN, ColumnsOfB),
        ([500, 700, 1], [Columns, Rows, Rows], PLAIN, RowsOfB),
        ([4, 700, 500], [Rows, Columns, Rows], added, ColumnsOfB),
        ([24, 700, 500], [Rows, Rows, Rows], added, RowsOfB),
        ([24, 700, 500], [Rows, NegativeColumns, Rows], PLAIN, Blocked),
        ([4, 700, 500], [Rows, NegativeColumns, Rows], PLAIN, RowsOfB),
        ([25, 700, 500], [Rows, Rows, Rows], PLAIN, Blocked),
        ([24, 300, 120], [Rows, Rows, Rows], PLAIN, InPlace),
        ([25, 300, 120], [Rows, Rows, Rows], PLAIN, Blocked),
        ([300, 120, 300], [Rows, Columns, Rows], PLAIN, Blocked),
        ([300, 120, 300], [Rows, Rows, Spread], PLAIN, Blocked),
        ([24, 700, 500], [Rows, Rows, Rows], (0.0, 1.0), InPlace),
        ([3, 0, 5], [Rows, Rows, Rows], PLAIN, InPlace),
    ] {
        let mut random = Random(29);
        let [m, k, n] = shape;
        let a = Matrix::<f32>::new([m, k], layouts[0], &mut random);
        let b = Matrix::<f32>::new([k, n], layouts[1], &mut random);
        for isa in levels() {
            let mut c = Matrix::<f32>::new([m, n], layouts[2], &mut random);
            let (alpha, beta) = (factors.0 as f32, factors.1 as f32);
            let product = Gemm { alpha, beta, ..Gemm::new(a.view(), b.view()) };
            let path = with_isa(isa, || gemm(product, c.view_mut(), &mut Workspace::new()));
            assert_eq!(path, Some(Ok(expected)), "{isa}: {shape:?} {layouts:?} {factors:?}");
        }
    }
}

#[test]
fn empty_k_scales_c_by_beta() {
    let mut c = [5.0f32; 6];
    let nothing: [f32; 0] = [];
    let a = MatRef::row_major(&nothing, [2, 0]).unwrap();
    let b = MatRef::row_major(&nothing, [0, 3]).unwrap();
    let product = Gemm { beta: 2.0, ..Gemm::new(a, b) };
    let out = MatMut::row_major(&mut c, [2, 3]).unwrap();
    gemm(product, out, &mut Workspace::new()).unwrap();
    assert_eq!(c, [10.0; 6]);
    gemm(Gemm::new(a, b), MatMut::row_major(&mut c, [2, 3]).unwrap(), &mut Workspace::new())
        .unwrap();
    assert!(c.iter().all(|x| x.to_bits() == 0));
}

#[test]
fn packed_b_of_another_isa_is_an_error() {
    let levels = levels();
    let (data, mut c) = ([1.0f32; 9], [0.0f32; 9]);
    let view = MatRef::row_major(&data, [3, 3]).unwrap();
    let mut buffer = Workspace::new();
    let packed = with_isa(levels[0], || PackedB::pack(view, &mut buffer)).unwrap();
    for &isa in &levels[1..] {
        let product = Gemm::new(view, &packed);
        let result = with_isa(isa, || {
            // A kernel must run on the level, or `with_isa` panics.
            PackedB::pack(view, &mut Workspace::new());
            let c = MatMut::row_major(&mut c, [3, 3]).unwrap();
            gemm(product, c, &mut Workspace::new())
        });
        let error = GemmError::PackedForOtherIsa { packed: levels[0], running: isa };
        assert_eq!(result, Some(Err(error)));
    }
}

/// Products that round to zero keep the sign of the zero, on every path and in every block of k.
fn check_vanishing<E: Float + Factor<Sum = E>>(tiny: f64) {
    for shape in
        [[1, 256, 24], [4, 4, 4], [5, 256, 24], [3, 300, 1100], [20, 600, 40], [70, 40, 129]]
    {
        for [layout_a, layout_b] in [
            [Rows, Rows],
            [Rows, Columns],
            [Columns, Rows],
            [Rows, NegativeColumns],
            [Rows, NegativeBoth],
            [Spread, EveryOther],
        ] {
            let [m, k, n] = shape;
            let mut random = Random(0x1234_5678_9abc_def1);
            let [mut a, mut b] = [([m, k], layout_a), ([k, n], layout_b)]
                .map(|(shape, layout)| Matrix::<E>::new(shape, layout, &mut random));
            for x in a.data.iter_mut().chain(&mut b.data) {
                *x = E::from_f64(x.to_f64() * tiny);
            }
            let c = Matrix::<E>::new([m, n], Rows, &mut random);
            let zeros = [0.0, -0.0].map(E::from_f64);
            let products = oracle(&a, &b);
            let seen = zeros.map(|zero| products.iter().any(|&x| same(x, zero)));
            assert_eq!(seen, [true; 2], "{shape:?}");
            check(&a, &b, &c, E::ONE, E::ZERO);
        }
    }
}

#[test]
fn underflowing_sums_keep_their_signs() {
    check_vanishing::<f32>(2f64.powi(-77));
    check_vanishing::<f64>(2f64.powi(-540));
}

/// If partial sums need separate memory, it holds a limited number of rows at a time.
#[test]
fn workspace_for_partial_sums_is_bounded() {
    let [few, many] = [512, 2100].map(|m| {
        let (a, b) = (vec![1f32; m * 300], vec![1f32; 300 * 70]);
        let (mut c, mut workspace) = (vec![1f32; m * 70], Workspace::new());
        let a = MatRef::row_major(&a, [m, 300]).unwrap();
        let b = MatRef::row_major(&b, [300, 70]).unwrap();
        let out = MatMut::row_major(&mut c, [m, 70]).unwrap();
        gemm(Gemm { beta: 1.0, ..Gemm::new(a, b) }, out, &mut workspace).unwrap();
        assert_eq!(c, vec![301.0; m * 70]);
        workspace.capacity()
    });
    assert_eq!(few, many);
}
