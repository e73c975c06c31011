//! The bits of sums of products do not depend on the other rows, on recording or on the operands' layouts.

use swath::prelude::*;

use crate::gradcheck::cases::Arrangement::{Contiguous, Permuted, Reversed, Strided};
use crate::gradcheck::cases::arranged;
use crate::products_bits::{bits, embedded};

type T = Tensor<CpuBackend>;
type Call<'a> = &'a dyn Fn(&T, &T) -> Result<T>;
/// A call, shapes of the operands, and the axis of rows in the first one and in the result.
type Case<'a> = (Call<'a>, &'a [usize], &'a [usize], [usize; 2]);

const DTYPES: [DType; 3] = [DType::F32, DType::F64, DType::BF16];

fn normal(shape: &[usize], dtype: DType, seed: u64) -> T {
    T::randn(shape, &mut Rng::seed(seed)).unwrap().to_dtype(dtype).unwrap()
}

/// Libraries use other code paths for other shapes and transposes.
fn is_computed_by_library() -> bool {
    if !embedded() {
        println!("SKIPPED: {} computes products", swath::blas::info());
    }
    !embedded()
}

fn einsum<'a>(equation: &'a str) -> impl Fn(&T, &T) -> Result<T> + 'a {
    move |a, b| T::einsum(equation, &[a, b])
}

/// Gradient of the sum of squares of a product by its first operand.
fn of_first(f: impl Fn(&T, &T) -> Result<T>) -> impl Fn(&T, &T) -> Result<T> {
    move |a, b| {
        let a = a.requires_grad();
        let mut grads = f(&a, b)?.square()?.sum(None, false)?.backward()?;
        Ok(grads.remove(&a).expect("it was recorded"))
    }
}

#[test]
fn a_row_has_the_same_bits_alone_and_among_others() {
    if is_computed_by_library() {
        return;
    }
    let shared_left = of_first(|a, b| a.matmul(b));
    let (product, transposed) = (einsum("bk,kj->bj"), einsum("bk,kj->jb"));
    let (scores, two_sums) = (einsum("bhqd,bhkd->bhqk"), einsum("sik,skj->ij"));
    let (inner, rows) = (einsum("...i,...i->..."), einsum("bi,bi->b"));
    let tensordot = |a: &T, b: &T| a.tensordot(b, 1);
    let cases: [Case<'_>; 9] = [
        (&product, &[7, 1000], &[1000, 1], [0, 0]),
        (&product, &[7, 300], &[300, 40], [0, 0]),
        (&transposed, &[7, 300], &[300, 40], [0, 1]),
        (&transposed, &[7, 300], &[300, 1], [0, 1]),
        (&tensordot, &[7, 1000], &[1000, 1], [0, 0]),
        (&scores, &[2, 3, 7, 256], &[2, 3, 1, 256], [2, 2]),
        (&two_sums, &[8, 200, 300], &[8, 300, 200], [1, 0]),
        (&inner, &[7, 1, 300], &[1, 5, 300], [0, 0]),
        (&shared_left, &[200, 180], &[30, 180, 20], [0, 0]),
    ];
    for dtype in DTYPES {
        for (i, (f, a, b, [axis, of_result])) in cases.iter().enumerate() {
            let (a, b) = (normal(a, dtype, 1), normal(b, dtype, 2));
            let whole = f(&a, &b).unwrap();
            let count = a.dims()[*axis];
            for (from, count) in [(0, 1), (count / 2, 1), (count / 2, count - count / 2)] {
                let alone = f(&a.narrow(*axis, from, count).unwrap(), &b).unwrap();
                let expected = whole.narrow(*of_result, from, count).unwrap();
                assert_eq!(alone.dims(), expected.dims(), "case {i}");
                let (alone, expected) = (bits(&alone).unwrap(), bits(&expected).unwrap());
                assert!(alone == expected, "{dtype}, case {i}: {count} from {from}");
            }
        }
        // A single row of both operands.
        let (a, b) = (normal(&[7, 300], dtype, 3), normal(&[7, 300], dtype, 4));
        let whole = rows(&a, &b).unwrap().narrow(0, 4, 1).unwrap();
        let [a, b] = [a, b].map(|x| x.narrow(0, 4, 1).unwrap());
        assert_eq!(bits(&rows(&a, &b).unwrap()).unwrap(), bits(&whole).unwrap(), "{dtype}");
    }
}

/// Checks products that sum over several axes, and gradients that sum over axes of a batch.
fn sums(dtype: DType, check: impl Fn(&str, Call<'_>, &T, &T)) {
    let equations: [(&str, &[usize], &[usize]); 8] = [
        ("sik,skj->ij", &[4, 170, 60], &[4, 60, 200]),
        ("isk,skj->ij", &[10, 4, 300], &[4, 300, 60]),
        ("ijk,kjl->il", &[6, 40, 50], &[50, 40, 70]),
        ("tbi,tbo->io", &[30, 20, 9], &[30, 20, 8]),
        ("ij,ji->", &[30, 40], &[40, 30]),
        ("bij,bji->b", &[2, 30, 40], &[2, 40, 30]),
        ("abk,kc->abc", &[3, 5, 300], &[300, 7]),
        ("bhqd,bhkd->bhqk", &[2, 3, 4, 300], &[2, 3, 5, 300]),
    ];
    for (equation, a, b) in equations {
        check(equation, &einsum(equation), &normal(a, dtype, 5), &normal(b, dtype, 6));
        let of_first = of_first(einsum(equation));
        check(equation, &of_first, &normal(a, dtype, 7), &normal(b, dtype, 8));
    }
    let swapped = |f: fn(&T, &T) -> Result<T>| of_first(move |a, b| f(b, a));
    let (x, w) = (normal(&[6, 40, 30], dtype, 9), normal(&[30, 20], dtype, 10));
    check("weight of matmul", &swapped(|x, w| x.matmul(w)), &w, &x);
    check("weight of linear", &swapped(|x, w| x.linear(w, None)), &w.t().unwrap(), &x);
    let left = normal(&[200, 180], dtype, 11);
    check("left side", &of_first(|a, b| a.matmul(b)), &left, &normal(&[5, 180, 70], dtype, 12));
    let (a, b) = (normal(&[10, 6, 70], dtype, 13), normal(&[6, 70, 30], dtype, 14));
    check("tensordot", &|a: &T, b: &T| a.tensordot(b, 2), &a, &b);
}

#[test]
fn the_layout_of_the_operands_does_not_change_the_bits() {
    if is_computed_by_library() {
        return;
    }
    for dtype in DTYPES {
        sums(dtype, |name, f, a, b| {
            let expected = bits(&f(a, b).unwrap()).unwrap();
            let layouts = [Contiguous, Permuted, Reversed, Strided];
            for (a_layout, b_layout) in layouts.iter().flat_map(|&a| layouts.map(|b| (a, b))) {
                let found = f(&arranged(a, a_layout), &arranged(b, b_layout)).unwrap();
                let found = bits(&found).unwrap();
                assert!(found == expected, "{dtype} {name}, {a_layout:?} and {b_layout:?}");
            }
        });
    }
}

/// The sum is in the order of the equation, whichever operand provides the rows of the product.
#[test]
fn the_order_of_the_result_does_not_change_the_bits() {
    if is_computed_by_library() {
        return;
    }
    for dtype in DTYPES {
        let (a, b) = (normal(&[30, 20, 9], dtype, 17), normal(&[20, 30, 8], dtype, 18));
        let expected = bits(&einsum("tbi,bto->io")(&a, &b).unwrap()).unwrap();
        let transposed = einsum("tbi,bto->oi")(&a, &b).unwrap().t().unwrap();
        assert!(bits(&transposed).unwrap() == expected, "{dtype}");
    }
}

#[test]
fn recording_does_not_change_the_bits() {
    for dtype in DTYPES {
        sums(dtype, |name, f, a, b| {
            let expected = bits(&f(a, b).unwrap()).unwrap();
            let recorded = f(&a.requires_grad(), &b.requires_grad()).unwrap();
            assert!(bits(&recorded).unwrap() == expected, "{dtype} {name}");
        });
    }
    // Gradients that are recorded, so that they can be differentiated.
    let (a, b) = (normal(&[200, 180], DType::F32, 15), normal(&[7, 180, 60], DType::F32, 16));
    let gradient = |create_graph| {
        let (a, b) = (a.requires_grad(), b.requires_grad());
        let options = Backward { create_graph, ..Backward::default() };
        let y = a.matmul(&b).unwrap().square().unwrap().sum(None, false).unwrap();
        bits(&y.backward_opts(options).unwrap().remove(&a).unwrap()).unwrap()
    };
    assert!(gradient(true) == gradient(false));
}

/// Every partial sum is exact in f32, while sums rounded to 16 bits after each addition would stagnate.
#[test]
fn sixteen_bit_sums_over_several_axes_are_rounded_once() {
    for dtype in [DType::F16, DType::BF16] {
        let ones = |shape: &[usize]| T::ones(shape, dtype).unwrap();
        let check = |y: &T, expected: f32| {
            let y = y.to_dtype(DType::F32).unwrap().to_vec::<f32>().unwrap();
            assert!(y.iter().all(|&y| y == expected), "{dtype}: {} for {expected}", y[0]);
        };
        let (w, b) = (ones(&[200, 200]).requires_grad(), ones(&[600, 200, 8]));
        let y = w.matmul(&b).unwrap();
        check(y.backward_with(&ones(y.dims())).unwrap().wrt(&w).unwrap(), 4800.0);
        check(&einsum("sin,skn->ik")(&ones(&[600, 200, 8]), &b).unwrap(), 4800.0);
        let x = ones(&[8, 600, 184]).permute(&[1, 0, 2]).unwrap();
        let w = ones(&[184, 184]).requires_grad();
        let y = x.linear(&w, None).unwrap();
        check(y.backward_with(&ones(y.dims())).unwrap().wrt(&w).unwrap(), 4800.0);
    }
}
