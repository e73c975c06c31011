//! The examples of NumPy's documentation of `einsum`, `tensordot`, `outer` and `diagonal`.

use swath::prelude::*;

type T = Tensor<CpuBackend>;

fn arange(count: usize, shape: impl Into<Shape>) -> T {
    T::arange(0.0, count as f64, 1.0).unwrap().reshape(shape).unwrap()
}

fn check(equation: &str, operands: &[&T], dims: &[usize], expected: &[f32]) {
    let y = T::einsum(equation, operands).unwrap();
    assert_eq!((y.dims(), &y.to_vec::<f32>().unwrap()[..]), (dims, expected), "{equation}");
}

const CONTRACTION: [f32; 10] =
    [4400., 4730., 4532., 4874., 4664., 5018., 4796., 5162., 4928., 5306.];

#[test]
fn numpy_einsum() {
    let (a, b, c) = (arange(25, (5, 5)), arange(5, 5), arange(6, (2, 3)));
    let rows = [10., 35., 60., 85., 110.];
    check("ii", &[&a], &[], &[60.]);
    check("ii->i", &[&a], &[5], &[0., 6., 12., 18., 24.]);
    check("ij->i", &[&a], &[5], &rows);
    check("...j->...", &[&a], &[5], &rows);
    let turned = [0., 3., 1., 4., 2., 5.];
    check("ji", &[&c], &[3, 2], &turned);
    check("ij->ji", &[&c], &[3, 2], &turned);
    check("i,i", &[&b, &b], &[], &[30.]);
    let product = [30., 80., 130., 180., 230.];
    check("ij,j", &[&a, &b], &[5], &product);
    check("...j,j", &[&a, &b], &[5], &product);
    let three = T::full((), 3.0f32).unwrap();
    let tripled = [0., 3., 6., 9., 12., 15.];
    check("..., ...", &[&three, &c], &[2, 3], &tripled);
    check(",ij", &[&three, &c], &[2, 3], &tripled);
    let outer = [0., 1., 2., 3., 4., 0., 2., 4., 6., 8.];
    check("i,j", &[&tensor![1.0, 2.0], &b], &[2, 5], &outer);
    let (a, b) = (arange(60, (3, 4, 5)), arange(24, (4, 3, 2)));
    check("ijk,jil->kl", &[&a, &b], &[5, 2], &CONTRACTION);
    let (a, b) = (arange(6, (3, 2)), arange(12, (4, 3)));
    let product = [10., 28., 46., 64., 13., 40., 67., 94.];
    check("ki,jk->ij", &[&a, &b], &[2, 4], &product);
    check("ki,...k->i...", &[&a, &b], &[2, 4], &product);
    check("k...,jk", &[&a, &b], &[2, 4], &product);
    // "Chained array operations".
    let a = T::ones(64, DType::F32).unwrap().reshape((2, 4, 8)).unwrap();
    let y = T::einsum("ijk,ilm,njm,nlk,abc->", &[&a; 5]).unwrap();
    assert_eq!(y.item::<f32>().unwrap(), 262_144.0);
}

#[test]
fn numpy_tensordot() {
    let (a, b) = (arange(60, (3, 4, 5)), arange(24, (4, 3, 2)));
    let y = a.tensordot(&b, ([1, 0], [0, 1])).unwrap();
    assert_eq!((y.dims(), y.to_vec::<f32>().unwrap()), (&[5, 2][..], CONTRACTION.to_vec()));
    // The same from the end, and as slices.
    let y = a.tensordot(&b, ([-2, -3], [-3, -2])).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), CONTRACTION);
    let y = a.tensordot(&b, (&[1, 0][..], &[0usize, 1][..])).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), CONTRACTION);
    // The documentation's table: a number of axes, 0 for the outer product.
    let (a, b) = (arange(6, (2, 3)), arange(6, (3, 2)));
    let y = a.tensordot(&b, 1).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [10.0, 13.0, 28.0, 40.0]);
    let y = a.tensordot(&b.t().unwrap(), 2).unwrap();
    assert_eq!((y.rank(), y.item::<f32>().unwrap()), (0, 0. + 2. + 8. + 3. + 12. + 25.));
    let y = tensor![1.0, 2.0].tensordot(&a, 0).unwrap();
    assert_eq!(y.dims(), [2, 2, 3]);
    assert_eq!(y.to_vec::<f32>().unwrap()[6..], [0., 2., 4., 6., 8., 10.]);
}

#[test]
fn numpy_outer_and_diagonal() {
    let y = T::ones(5, DType::F32).unwrap().outer(&T::linspace(-2.0, 2.0, 5).unwrap()).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [-2., -1., 0., 1., 2.].repeat(5));
    assert_eq!(arange(4, (2, 2)).diagonal(0, 1).unwrap().to_vec::<f32>().unwrap(), [0., 3.]);
    let y = arange(8, (2, 2, 2)).diagonal(0, 1).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [0., 6., 1., 7.]);
}

#[test]
fn vectors_multiply_alike_by_every_method() {
    let (a, b) = (tensor![1.0, 2.0, 3.0], tensor![4.0, -5.0, 6.0]);
    let each = [a.dot(&b), a.matmul(&b), a.tensordot(&b, 1), T::einsum("i,i", &[&a, &b])];
    for y in each {
        let y = y.unwrap();
        assert_eq!((y.rank(), y.item::<f32>().unwrap()), (0, 12.0));
    }
    let each = [a.outer(&b), a.tensordot(&b, 0), T::einsum("i,j", &[&a, &b])];
    for y in each {
        let y = y.unwrap();
        assert_eq!(y.dims(), [3, 3]);
        assert_eq!(y.to_vec::<f32>().unwrap(), [4., -5., 6., 8., -10., 12., 12., -15., 18.]);
    }
    let m = arange(6, (2, 3));
    assert_eq!(m.matmul(&a).unwrap().to_vec::<f32>().unwrap(), [8.0, 26.0]);
    assert_eq!(a.matmul(&m.t().unwrap()).unwrap().to_vec::<f32>().unwrap(), [8.0, 26.0]);
}
