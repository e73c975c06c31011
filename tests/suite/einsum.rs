//! `einsum` against sums written as loops over all indices, in f64; published examples; derivatives; error
//! messages. The copies that it makes are measured in `products_memory.rs`.

mod bits;
mod errors;
mod naive;
mod vectors;

use swath::prelude::*;

use crate::gradcheck::cases::{ALL, arranged, uniform};

type T = Tensor<CpuBackend>;

const SECOND_ORDER: GradCheck =
    GradCheck { order: 2, eps: None, rtol: None, atol: None, directions: 4, seed: 1 };

/// First and second order, of the function and of its square, whose upstream gradient depends on the inputs.
#[test]
fn gradients_agree_with_finite_differences_twice() {
    let cases: [(&str, &[&[usize]]); 30] = [
        ("ij->ji", &[&[2, 3]]),
        ("ij->", &[&[2, 3]]),
        ("ii->i", &[&[3, 3]]),
        ("ii", &[&[3, 3]]),
        ("iji->j", &[&[2, 3, 2]]),
        ("iij->ji", &[&[2, 2, 3]]),
        ("ij,jk->ik", &[&[2, 3], &[3, 4]]),
        ("ij,jk->ki", &[&[2, 3], &[3, 4]]),
        ("ij,kj->ik", &[&[2, 3], &[4, 3]]),
        ("bij,bjk->bik", &[&[2, 2, 3], &[2, 3, 2]]),
        ("bij,kj->bik", &[&[2, 2, 3], &[4, 3]]),
        ("ij,bjk->bik", &[&[2, 3], &[2, 3, 2]]),
        ("bhqd,bhkd->bhqk", &[&[2, 1, 2, 3], &[2, 1, 4, 3]]),
        ("bqhd,bkhd->bhqk", &[&[2, 2, 2, 3], &[2, 3, 2, 3]]),
        ("ij,ij->i", &[&[2, 3], &[2, 3]]),
        ("ij,ij->", &[&[2, 3], &[2, 3]]),
        ("ij,ji->", &[&[2, 3], &[3, 2]]),
        ("ij,j->i", &[&[2, 3], &[3]]),
        ("i,j->ij", &[&[2], &[3]]),
        ("bi,bj->bij", &[&[2, 2], &[2, 3]]),
        ("bi,bj->ijb", &[&[2, 2], &[2, 3]]),
        ("ij,j->ij", &[&[2, 3], &[3]]),
        ("ij,ik->jk", &[&[1, 3], &[2, 2]]),
        ("...i,...i->...", &[&[2, 3], &[4, 1, 3]]),
        ("...ij,jk", &[&[2, 2, 3], &[3, 2]]),
        ("ijk,kjl->il", &[&[2, 3, 2], &[2, 3, 4]]),
        (",i->i", &[&[], &[3]]),
        ("ab,bc,cd->ad", &[&[2, 3], &[3, 2], &[2, 4]]),
        ("bn,anm,bm->ba", &[&[2, 3], &[4, 3, 2], &[2, 2]]),
        ("ij,ij,ij->j", &[&[2, 3], &[2, 3], &[2, 3]]),
    ];
    for (equation, shapes) in cases {
        let f = |xs: &[T]| T::einsum(equation, &xs.iter().collect::<Vec<_>>());
        for (i, &arrangement) in ALL.iter().enumerate() {
            let inputs: Vec<T> = (shapes.iter().enumerate())
                .map(|(j, shape)| {
                    let x = uniform(*shape, (-2.0, 2.0), 70 + j as u64);
                    arranged(&x, ALL[(i + j) % ALL.len()])
                })
                .collect();
            let inputs: Vec<&T> = inputs.iter().collect();
            let square = |xs: &[T]| f(xs)?.square();
            let passed = check_gradients(f, &inputs, SECOND_ORDER)
                .and_then(|()| check_gradients(square, &inputs, SECOND_ORDER));
            passed.unwrap_or_else(|error| panic!("{equation}, {arrangement:?}: {error}"));
        }
    }
}

#[test]
fn one_tensor_as_two_operands_gets_both_gradients() {
    let x = uniform((3, 3), (-1.0, 1.0), 5);
    let f = |xs: &[T]| T::einsum("ij,jk,ki->", &[&xs[0], &xs[0], &xs[0]]);
    check_gradients(f, &[&x], SECOND_ORDER).unwrap();
}

#[test]
fn diagonals_and_permutations_are_views() {
    let x = T::arange(0., 24., 1.).unwrap().reshape((2, 3, 4)).unwrap();
    let turned = T::einsum("ijk->kij", &[&x]).unwrap();
    assert_eq!(turned.layout().strides(), [1, 12, 4]);
    let square = x.narrow(2, 1, 3).unwrap();
    let diagonal = T::einsum("ijj->ji", &[&square]).unwrap();
    assert_eq!(diagonal.layout().strides(), [5, 12]);
    assert_eq!(diagonal.layout().offset(), 1);
    assert_eq!(diagonal.to_vec::<f32>().unwrap(), [1.0, 13.0, 6.0, 18.0, 11.0, 23.0]);
}

#[test]
fn results_of_two_operands_are_contiguous() {
    let x = |shape: &[usize]| T::randn(shape, &mut Rng::seed(3)).unwrap();
    let cases: [(&str, &[usize], &[usize]); 6] = [
        ("ij,jk->ik", &[3, 4], &[4, 5]),
        ("ij,jk->ki", &[3, 4], &[4, 5]),
        ("bij,bjk->bki", &[2, 3, 4], &[2, 4, 5]),
        ("bij,kj->bik", &[2, 3, 4], &[5, 4]),
        ("bij,kj->kbi", &[2, 3, 4], &[5, 4]),
        ("bi,bj->ijb", &[2, 3], &[2, 4]),
    ];
    for (equation, a, b) in cases {
        let y = T::einsum(equation, &[&x(a), &x(b)]).unwrap();
        assert!(y.layout().is_contiguous(), "{equation}: {:?}", y.layout().strides());
    }
}

#[test]
fn half_precision_and_products_with_no_elements() {
    for dtype in [DType::F16, DType::BF16] {
        let a = tensor![[1.0, 2.0], [3.0, 4.0]].to_dtype(dtype).unwrap();
        let y = T::einsum("ij,kj->ik", &[&a, &a]).unwrap();
        let values = y.to_dtype(DType::F32).unwrap().to_vec::<f32>().unwrap();
        assert_eq!((y.dtype(), &values[..]), (dtype, &[5.0, 11.0, 11.0, 25.0][..]));
    }
    let zeros = |shape: &[usize]| T::zeros(shape, DType::F64).unwrap();
    let y = T::einsum("ij,jk->ik", &[&zeros(&[2, 0]), &zeros(&[0, 3])]).unwrap();
    assert_eq!(y.to_vec::<f64>().unwrap(), [0.0; 6]);
    let y = T::einsum("bij,jk->bik", &[&zeros(&[0, 2, 4]), &zeros(&[4, 3])]).unwrap();
    assert_eq!(y.dims(), [0, 2, 3]);
    let x = zeros(&[0, 0, 2]).requires_grad();
    let y = T::einsum("iij->", &[&x]).unwrap();
    assert_eq!(y.backward().unwrap().wrt(&x).unwrap().dims(), [0, 0, 2]);
}

/// A product would need nine axes; without contiguous axes all eight are traversed one by one.
#[test]
fn operands_of_eight_axes() {
    let count = 1 << 8;
    let values = |seed: usize| {
        let value = |i: usize| ((i * seed + i / 7) % 7) as f64 - 3.0;
        T::from_vec((0..count).map(value).collect::<Vec<f64>>(), [2; 8]).unwrap()
    };
    let backwards: Vec<usize> = (0..8).rev().collect();
    let laid_out = |x: &T, way: usize| match way {
        0 => x.clone(),
        1 => x.permute(&backwards).unwrap().contiguous().unwrap().permute(&backwards).unwrap(),
        _ => (0..8).fold(x.clone(), |x, axis| {
            let wider = T::cat(&[&x, &x.narrow(axis, 0, 1).unwrap()], axis).unwrap();
            wider.narrow(axis, 0, 2).unwrap()
        }),
    };
    let (a, b) = (values(3), values(5));
    let product = a.mul(&b).unwrap();
    for kept in ["abcdefg", "bcdefgh", "abcdh", "ach", "a", "h", ""] {
        let axes: Vec<usize> =
            (0..8).filter(|&axis| !kept.contains(char::from(b'a' + axis as u8))).collect();
        let expected = product.sum(Some(&axes), false).unwrap().to_vec::<f64>().unwrap();
        for (way, other) in [(0, 0), (0, 1), (1, 2), (2, 0), (2, 2)] {
            let equation = format!("abcdefgh,abcdefgh->{kept}");
            let found = T::einsum(&equation, &[&laid_out(&a, way), &laid_out(&b, other)]).unwrap();
            assert_eq!(found.to_vec::<f64>().unwrap(), expected, "{equation} {way} {other}");
        }
    }
    let found = T::einsum("abcdefgh,abcdefgh->hgfedcba", &[&a, &laid_out(&b, 1)]).unwrap();
    let expected = product.permute(&backwards).unwrap();
    assert_eq!(found.to_vec::<f64>().unwrap(), expected.to_vec::<f64>().unwrap());
}

/// Eight operands, for which not every order of products is tried.
#[test]
fn a_chain_of_eight_matrices() {
    let sizes = [2, 7, 3, 5, 4, 6, 2, 3, 4];
    let links: Vec<T> =
        (0..8).map(|i| uniform((sizes[i], sizes[i + 1]), (-1.0, 1.0), i as u64)).collect();
    let found = T::einsum("ab,bc,cd,de,ef,fg,gh,hi->ai", &links.iter().collect::<Vec<_>>());
    let product = links[1..].iter().try_fold(links[0].clone(), |product, x| product.matmul(x));
    let [found, product] = [found, product].map(|x| x.unwrap().to_vec::<f64>().unwrap());
    for (found, expected) in found.iter().zip(&product) {
        assert!((found - expected).abs() < 1e-13 * (1.0 + expected.abs()), "{found} {expected}");
    }
}
