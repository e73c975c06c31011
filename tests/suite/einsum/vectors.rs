//! Examples from NumPy's documentation of `einsum`, `tensordot`, `outer` and `diagonal`.

use swath::prelude::*;

type T = Tensor<CpuBackend>;

fn arange(count: usize, shape: impl Into<Shape>) -> T {
    let shape: Shape = shape.into();
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
    // The documentation's table: a number of axes, where 0 gives the outer product.
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
fn vectors_have_the_same_products_by_every_method() {
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

#[test]
fn sums_beyond_the_precision_of_sixteen_bits_are_exact() {
    for dtype in [DType::F16, DType::BF16] {
        let full =
            |dims: &[usize], x: f64| T::full(dims, x as f32).unwrap().to_dtype(dtype).unwrap();
        let value = |equation, operands: &[&T]| {
            let y = T::einsum(equation, operands).unwrap();
            assert_eq!(y.dtype(), dtype);
            y.to_dtype(DType::F32).unwrap().to_vec::<f32>().unwrap()
        };
        // 2^17 ones, and 2^-10 2^7 times: 2^14.
        let (ones, few) = (full(&[1 << 17], 1.0).requires_grad(), full(&[1 << 7], 2f64.powi(-10)));
        assert_eq!(value("i,j->", &[&ones, &few]), [16384.0]);
        // An extent of 1, broadcast.
        let one = full(&[1], 2f64.powi(-10)).requires_grad();
        assert_eq!(value("i,i->", &[&ones, &one]), [128.0]);
        assert_eq!(value("ij,j->i", &[&full(&[2, 1], 0.25), &ones]), [32768.0; 2]);
        // An intermediate product of 2^17.
        assert_eq!(value("i,i,j->j", &[&ones, &ones, &few]), [128.0; 128]);
        let y = T::einsum("i,i->", &[&ones, &one]).unwrap().mul(2f32.powi(-4)).unwrap();
        let grads = y.backward().unwrap();
        let of = |x: &T| grads.wrt(x).unwrap().to_dtype(DType::F32).unwrap();
        assert_eq!(of(&one).to_vec::<f32>().unwrap(), [8192.0]);
        assert!(of(&ones).to_vec::<f32>().unwrap().iter().all(|&x| x == 2f32.powi(-14)));
    }
}

/// Multiplied from the left, or first and last operand first, a product would have over 2^40 elements: 4 TiB.
#[test]
fn three_matrices_are_multiplied_in_the_cheapest_order() {
    let ones = |dims: [usize; 2]| T::ones(dims, DType::F32).unwrap();
    let (a, b, c) = (ones([1 << 20, 2]), ones([2, 1 << 20]), ones([1 << 20, 2]));
    let y = T::einsum("ab,bc,cd->ad", &[&a, &b, &c]).unwrap().to_vec::<f32>().unwrap();
    assert!(y.iter().all(|&y| y == 2_097_152.0));
}

#[test]
fn empty_sums_are_zero_whatever_the_other_operands_are() {
    let (a, none) =
        (tensor![f32::INFINITY, -1.0, f32::NAN].requires_grad(), arange(0, 0).requires_grad());
    let one = tensor![f32::NAN].requires_grad();
    for (equation, operands) in [
        ("i,j->i", [&a, &none, &one]),
        ("i,j,k->i", [&a, &none, &one]),
        ("i,j,j->i", [&a, &one, &none]),
    ] {
        let operands = &operands[..equation.split(',').count()];
        let y = T::einsum(equation, operands).unwrap();
        let bits: Vec<u32> = y.to_vec::<f32>().unwrap().iter().map(|x| x.to_bits()).collect();
        assert_eq!(bits, [0; 3], "{equation}");
        let grads = y.sum(None, false).unwrap().backward().unwrap();
        for x in operands {
            let gradient = grads.wrt(x).unwrap();
            assert_eq!(gradient.dims(), x.dims());
            assert!(gradient.to_vec::<f32>().unwrap().iter().all(|&x| x == 0.0), "{equation}");
        }
    }
    assert_eq!(T::einsum("i,j->j", &[&a, &none]).unwrap().dims(), [0]);
}
