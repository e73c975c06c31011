//! Products of no rows or no columns.

use half::{bf16, f16};
use swath_kernels::{
    Activation, Epilogue, Factor, Float, Gemm, MatMut, MatRef, PackedB, PackedGemm, Workspace,
    gemm, gemm_bias, gemm_epilogue, gemm_packed,
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
