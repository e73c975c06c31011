//! Products that read nothing (alpha = 0, or k = 0) and products that write nothing (no rows or no columns).

use half::{bf16, f16};
use swath_kernels::testing::with_isa;
use swath_kernels::{
    Bias, Epilogue, Factor, Float, Function, Gemm, Isa, MatMut, MatRef, PackedB, Workspace, gemm,
    math, testing,
};

/// Shapes that cover every path: few and many rows, single columns, one and several blocks of k, a B that is
/// small, streamed and packed, more rows than the partial sums are kept for.
const SHAPES: [[usize; 3]; 9] = [
    [7, 3, 5],
    [4, 4, 4],
    [3, 263, 1030],
    [4, 700, 400],
    [30, 300, 70],
    [300, 90, 96],
    [530, 300, 9],
    [300, 520, 1],
    [2, 0, 9],
];

fn same<E: Float>(x: E, y: E) -> bool {
    x == y && E::ONE / x == E::ONE / y || x.to_f64().is_nan() && y.to_f64().is_nan()
}

/// Products with alpha = 0, where A and B are all NaN.
fn check_alpha_zero<T: Factor>(nan: T) {
    let number = T::Sum::from_f64;
    let old = [-0.0, 1.5, f64::INFINITY, 0.0, -2.25, f64::NAN, 1e-30].map(number);
    let workspace = &mut Workspace::new();
    for &[m, k, n] in &SHAPES[..testing::unless_miri(SHAPES.len(), 2)] {
        let (a, b) = (vec![nan; m * k], vec![nan; k * n]);
        let a = MatRef::row_major(&a, [m, k]).unwrap();
        let transposed = MatRef::row_major(&b, [n, k]).unwrap().t();
        for b in [MatRef::row_major(&b, [k, n]).unwrap(), transposed] {
            let mut buffer = Workspace::new();
            let packed = PackedB::pack(b, &mut buffer);
            let betas = [0.0, 1.0, -0.3];
            let alphas: &[f64] = match k {
                0 => &[0.0, -0.0, 1.0, -1.0, f64::INFINITY, f64::NAN],
                _ => &[0.0, -0.0],
            };
            for (alpha, beta) in alphas.iter().flat_map(|&alpha| betas.map(|beta| (alpha, beta))) {
                let (alpha, beta) = (number(alpha), number(beta));
                for (is_packed, strides) in [false, true]
                    .into_iter()
                    .flat_map(|is_packed| [[n, 1], [1, m], [2 * n, 2]].map(|s| (is_packed, s)))
                {
                    let len = (m - 1) * strides[0] + (n - 1) * strides[1] + 1;
                    let mut c: Vec<T::Sum> = (0..len).map(|i| old[i % 7]).collect();
                    let out = MatMut::new(&mut c, 0, [m, n], strides.map(|s| s as isize)).unwrap();
                    match is_packed {
                        true => gemm(Gemm { alpha, beta, ..Gemm::new(a, &packed) }, out, workspace),
                        false => gemm(Gemm { alpha, beta, ..Gemm::new(a, b) }, out, workspace),
                    }
                    .unwrap();
                    for at in (0..m * n).map(|at| at / n * strides[0] + at % n * strides[1]) {
                        let (x, is_zero) = (old[at % 7], beta == number(0.0));
                        let wanted = if is_zero { number(0.0) } else { beta * x };
                        assert!(
                            same(c[at], wanted),
                            "[{m}, {k}, {n}], C {strides:?}, B {:?}, packed {is_packed}: {alpha:?} \
                             AB + {beta:?} {x:?} is {:?}",
                            b.strides(),
                            c[at]
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn alpha_zero_reads_neither_a_nor_b() {
    for isa in Isa::ALL {
        with_isa(isa, || {
            check_alpha_zero(f32::NAN);
            check_alpha_zero(f64::NAN);
            check_alpha_zero(f16::NAN);
            check_alpha_zero(bf16::NAN);
        });
    }
}

/// So many rows, or columns, that a loop over them would not end.
const MANY: usize = 1 << 45;

#[test]
fn empty_products_return_at_once() {
    fn check<T: Factor>(one: T) {
        let (row, workspace) = (vec![one; 300], &mut Workspace::new());
        let [zero, one] = [T::Sum::ZERO, T::Sum::ONE];
        let function: &(dyn Fn(&mut [T::Sum]) + Sync) = &|_| panic!("a call");
        let with = |bias| Epilogue { bias, function: Some(function), sums: None };
        for k in [0, 20, 300] {
            let row = &row[..k];
            let long = MatRef::new(row, 0, [MANY, k], [0, 1]).unwrap();
            let none = MatRef::new(row, 0, [k, 0], [1, 1]).unwrap();
            for ([a, b], c) in [([long, none], [MANY, 0]), ([none.t(), long.t()], [0, MANY])] {
                for strides in [[0, 1], [1, 0], [9, 1], [1, 9], [7, 3]] {
                    let out = || MatMut::new(&mut [], 0, c, strides).unwrap();
                    for beta in [zero, one] {
                        gemm(Gemm { beta, ..Gemm::new(a, b) }, out(), workspace).unwrap();
                        if c[1] == 0 {
                            let mut buffer = Workspace::new();
                            let b = &PackedB::pack(b, &mut buffer);
                            let product = Gemm { beta, ..Gemm::new(a, b) };
                            gemm(product, out(), workspace).unwrap();
                        }
                    }
                    let epilogue = with(None);
                    gemm(Gemm { epilogue, ..Gemm::new(a, b) }, out(), workspace).unwrap();
                    if c[1] == 0 {
                        gemm(
                            Gemm { epilogue: Bias::PerColumn(&[]).into(), ..Gemm::new(a, b) },
                            out(),
                            workspace,
                        )
                        .unwrap();
                        let epilogue = with(Some(Bias::PerColumn(&[])));
                        gemm(Gemm { epilogue, ..Gemm::new(a, b) }, out(), workspace).unwrap();
                    }
                }
            }
        }
    }
    check(1f32);
    check(1f64);
    check(f16::ONE);
    check(bf16::ONE);
}

/// Views at an offset that would be address 0, and with rows that far apart.
#[test]
fn empty_views_are_empty_slices_at_any_offset() {
    let mut data = [1f32; 4];
    let to_null = (data.as_ptr().addr() / 4).wrapping_neg() & (usize::MAX >> 2);
    let mut list = MatMut::new(&mut data, to_null, [0, 5], [5, 1]).unwrap();
    assert_eq!(list.list_mut(), Some(&mut [][..]));
    let mut list = MatMut::new(&mut data, to_null, [5, 0], [0, 1]).unwrap();
    assert_eq!(list.list_mut(), Some(&mut [][..]));
    assert_eq!(list.row_mut(4), []);
    let mut rows = MatMut::new(&mut data, 0, [2, 0], [to_null as isize, 1]).unwrap();
    assert_eq!([rows.row_mut(0).len(), rows.row_mut(1).len()], [0, 0]);
    let (above, mut below) = rows.split_rows(1);
    assert_eq!(below.row_mut(0), []);

    let nothing = MatRef::new(&[], to_null, [2, 0], [3, 1]).unwrap();
    let c = MatMut::new(&mut [], to_null, [1, 0], [3, 1]).unwrap();
    let epilogue = Epilogue {
        bias: Some(Bias::PerColumn(&[])),
        function: Some(&|z: &mut [f32]| math::Relu::KERNEL.run_in_place([None], z)),
        sums: Some(above),
    };
    let a = MatRef::row_major(&[1f32; 2], [1, 2]).unwrap();
    gemm(Gemm { epilogue, ..Gemm::new(a, nothing) }, c, &mut Workspace::new()).unwrap();
}
