//! Error messages name the operation, the equation and all shapes.

use swath::prelude::*;

type T = Tensor<CpuBackend>;

fn zeros(shape: &[usize]) -> T {
    T::zeros(shape, DType::F32).unwrap()
}

fn message(equation: &str, shapes: &[&[usize]]) -> String {
    let operands: Vec<T> = shapes.iter().map(|shape| zeros(shape)).collect();
    let error = T::einsum(equation, &operands.iter().collect::<Vec<_>>()).unwrap_err();
    assert!(matches!(error, Error::InvalidArgument { op: "einsum", .. }), "{error:?}");
    error.to_string()
}

#[test]
fn every_message_of_einsum() {
    let two: &[&[usize]] = &[&[2, 3], &[3, 4]];
    let cases: [(&str, &[&[usize]], &str); 18] = [
        ("ij,jk->iz", two, "`z` of the output is in no operand"),
        ("ij,jk->ii", two, "`i` occurs twice in the output"),
        ("ij,jkl->i", two, "`jkl` does not name the 2 axes of operand 1"),
        ("ij,k->i", two, "`k` does not name the 2 axes of operand 1"),
        ("ij,jkl...->i", two, "`jkl...` does not name the 2 axes of operand 1"),
        ("ij,kj->i", two, "`j` is 4 in operand 1, 3 before it"),
        ("ii,jk->i", two, "`i` is 2 and 3 in operand 0"),
        ("...i,...k->i", two, "axis -1 of `...` is 3 in operand 1, 2 before it"),
        ("ij->i", two, "expected one term per operand, got 1 for 2"),
        ("ij,jk,kl->i", two, "expected one term per operand, got 3 for 2"),
        ("i1,jk->i", two, "expected a letter, got `1`"),
        ("ij,jk->i>k", two, "expected a letter, got `>`"),
        ("ij,jé->i", two, "expected a letter, got `é`"),
        ("ij,jk->i,k", two, "expected a letter, got `,`"),
        ("..ij,jk->i", two, "expected `...`, got a single point"),
        ("...i...,jk->i", two, "`...` occurs twice in `...i...`"),
        ("abcd,efghi->abcdefghi", &[&[1; 4], &[1; 5]], "the output has 9 axes, at most 8 are"),
        ("", &[], "expected one term per operand, got 1 for 0"),
    ];
    for (equation, shapes, reason) in cases {
        let found = message(equation, shapes);
        let shapes: Vec<String> = shapes.iter().map(|shape| format!("{shape:?}")).collect();
        let expected = format!("einsum: \"{equation}\" of shapes {}: {reason}", shapes.join(", "));
        assert!(found.starts_with(&expected), "{found}\nnot {expected}");
    }
    // Any two operands share three letters each with the third, and four with the output.
    let found = message("abcdefjk,abcghilm,defghino->jklmno", &[&[2; 8][..]; 3]);
    assert!(found.ends_with("every order needs a product of more than 8 axes"), "{found}");
}

#[test]
fn dtypes_and_sizes() {
    let (a, wide) = (zeros(&[2, 2]), T::zeros((2, 2), DType::F64).unwrap());
    let error = T::einsum("ij,jk", &[&a, &wide]).unwrap_err();
    assert!(matches!(error, Error::DTypeMismatch { op: "einsum", .. }), "{error:?}");
    let bits = T::zeros((2, 2), DType::Bool).unwrap();
    let error = T::einsum("ii", &[&bits]).unwrap_err();
    assert!(matches!(error, Error::UnsupportedDType { op: "einsum", .. }), "{error:?}");
    let long = T::zeros((), DType::F32).unwrap().broadcast_to(1 << 40).unwrap();
    let error = T::einsum("i,j->ij", &[&long, &long]).unwrap_err();
    assert!(matches!(error, Error::Overflow { op: "einsum", .. }), "{error:?}");
}

#[test]
fn tensordot_outer_and_diagonal() {
    let (a, b) = (zeros(&[2, 3]), zeros(&[3, 4]));
    let text = |result: Result<T>| result.unwrap_err().to_string();
    assert_eq!(text(a.tensordot(&b, 2)), "tensordot: shapes [2, 3] and [3, 4] do not fit");
    assert_eq!(
        text(a.tensordot(&b, 3)),
        "tensordot: expected at most as many axes as [2, 3] and [3, 4] have, got 3"
    );
    let uneven = (&[0, 1][..], &[0][..]);
    let expected =
        "tensordot: expected lists of equal length, got 2 axes of [2, 3] and 1 of [3, 4]";
    assert_eq!(text(a.tensordot(&b, uneven)), expected);
    assert_eq!(
        text(a.tensordot(&b, ([1, 1], [0, 1]))),
        "tensordot: axis 1 appears twice for shape [2, 3]"
    );
    assert_eq!(
        text(a.tensordot(&b, ([2], [0]))),
        "tensordot: axis 2 is out of range for shape [2, 3]"
    );
    let five = zeros(&[1; 5]);
    assert_eq!(text(five.tensordot(&five, 0)), "tensordot: 10 axes, at most 8 are supported");
    assert_eq!(text(a.outer(&zeros(&[3]))), "outer: shapes [2, 3] and [3] do not fit");
    let bits = T::zeros(2, DType::Bool).unwrap();
    assert!(matches!(bits.outer(&bits), Err(Error::UnsupportedDType { op: "outer", .. })));
    assert!(matches!(
        bits.tensordot(&bits, 1),
        Err(Error::UnsupportedDType { op: "tensordot", .. })
    ));
    assert_eq!(text(a.diagonal(0, 2)), "diagonal: axis 2 is out of range for shape [2, 3]");
    assert_eq!(text(a.diagonal(1, -1)), "diagonal: axis 1 appears twice for shape [2, 3]");
}

/// A scalar, broadcast by strides of 0.
fn repeated(shape: &[usize]) -> T {
    T::zeros((), DType::F32).unwrap().broadcast_to(shape).unwrap()
}

#[test]
fn intermediate_products_that_are_too_large_are_errors() {
    // Too large whichever two operands are multiplied first.
    for (equation, shape) in [
        ("xij,yjk,zki->xyz", &[1 << 10, 1 << 24, 1 << 24][..]),
        ("xi,yi,zi->xyz", &[1 << 19, 1 << 30]),
    ] {
        let x = repeated(shape);
        let error = T::einsum(equation, &[&x; 3]).unwrap_err();
        assert!(matches!(error, Error::InvalidArgument { op: "einsum", .. }), "{error:?}");
        let found = error.to_string();
        let start = format!("einsum: \"{equation}\" of shapes {shape:?}, {shape:?}, {shape:?}: ");
        assert!(found.starts_with(&start) && found.contains("more elements"), "{found}");
    }
}

#[test]
fn results_larger_than_memory_are_errors() {
    let check = |called: &str, result: Result<T>| match result.unwrap_err() {
        Error::OutOfMemory { op, bytes, .. } => assert_eq!((op, bytes >> 59), (called, 1)),
        error => panic!("{called}: {error:?}"),
    };
    let (long, short) = (repeated(&[1 << 57]), repeated(&[2]));
    let rows = repeated(&[1 << 57, 2]);
    check("einsum", T::einsum("i,i->i", &[&long, &long]));
    check("einsum", T::einsum("ij->i", &[&rows]));
    check("einsum", T::einsum("ij,ij->i", &[&rows, &rows]));
    check("einsum", T::einsum("ij,j->i", &[&rows, &short]));
    check("einsum", T::einsum("i,j->ij", &[&repeated(&[1 << 56]), &short]));
    check("tensordot", rows.tensordot(&short, 1));
    check("tensordot", repeated(&[1 << 56]).tensordot(&short, 0));
    check("outer", repeated(&[1 << 56]).outer(&short));
    check("matmul", rows.matmul(&short));
}
