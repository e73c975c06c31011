//! Products of no rows or no columns.

use half::{bf16, f16};
use swath_kernels::{
    Activation, Epilogue, Factor, Float, Gemm, MatMut, MatRef, PackedB, PackedGemm, Unary,
    Workspace, gemm, gemm_bias, gemm_epilogue, gemm_packed, math,
};

/// More rows, or columns, than could be walked.
const MANY: usize = 1 << 45;

#[test]
fn products_of_no_elements_return_at_once() {
    fn check<T: Factor>(one: T) {
        let (row, workspace) = (vec![one; 300], &mut Workspace::new());
        let [zero, one] = [T::Sum::ZERO, T::Sum::ONE];
        let activation =
            || Some(Activation { function: |_: &mut [T::Sum]| panic!("a call"), sums: None });
        for k in [0, 20, 300] {
            let row = &row[..k];
            let long = MatRef::new(row, 0, [MANY, k], [0, 1]).unwrap();
            let none = MatRef::new(row, 0, [k, 0], [1, 1]).unwrap();
            for ([a, b], c) in [([long, none], [MANY, 0]), ([none.t(), long.t()], [0, MANY])] {
                for strides in [[0, 1], [1, 0], [9, 1], [1, 9], [7, 3]] {
                    let out = || MatMut::new(&mut [], 0, c, strides).unwrap();
                    for beta in [zero, one] {
                        gemm(Gemm { a, b, alpha: one, beta }, out(), workspace).unwrap();
                        if c[1] == 0 {
                            let mut buffer = Workspace::new();
                            let b = &PackedB::pack(b, &mut buffer);
                            let product = PackedGemm { a, b, alpha: one, beta };
                            gemm_packed(product, out(), workspace).unwrap();
                        }
                    }
                    let epilogue = Epilogue { bias: None, activation: activation() };
                    gemm_epilogue(a, b, epilogue, out(), workspace).unwrap();
                    if c[1] == 0 {
                        gemm_bias(a, b, &[], out(), workspace).unwrap();
                        let epilogue = Epilogue { bias: Some(&[]), activation: activation() };
                        gemm_epilogue(a, b, epilogue, out(), workspace).unwrap();
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

/// The offset from which a slice's elements would begin at address 0, and rows that far apart.
#[test]
fn views_of_no_elements_are_empty_slices_wherever_they_begin() {
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
    let activation = Some(Activation { function: math::Relu::run_in_place, sums: Some(above) });
    let c = MatMut::new(&mut [], to_null, [1, 0], [3, 1]).unwrap();
    let epilogue = Epilogue { bias: Some(&[]), activation };
    let a = MatRef::row_major(&[1f32; 2], [1, 2]).unwrap();
    gemm_epilogue(a, nothing, epilogue, c, &mut Workspace::new()).unwrap();
}
