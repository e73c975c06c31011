//! Infinities and NaN times zeros, on every path: 0 · ∞ is NaN, so no term may be skipped, and other elements
//! must not change.

use half::{bf16, f16};
use swath_kernels::testing::{levels_for, with_isa};
use swath_kernels::{
    Bias, Epilogue, Factor, Float, Function, Gemm, Isa, MatMut, MatRef, PackedB, Stored, Workspace,
    gemm, math, testing,
};

use crate::products::Layout::*;
use crate::products::*;

trait Special: Factor<Sum: Float> {
    fn nearest(x: Self::Sum) -> Self;
}

macro_rules! special {
    ($($t:ty, $nearest:expr;)*) => {$(
        impl Special for $t {
            fn nearest(x: Self::Sum) -> Self {
                $nearest(x)
            }
        }
    )*};
}
special! { f32, |x| x; f64, |x| x; f16, f16::from_f32; bf16, bf16::from_f32; }

/// Matrices by vectors; few rows, and few columns, with a small B and a streamed one; small products; more
/// rows. Each with one and with several blocks of k.
const SHAPES: [[usize; 3]; 16] = [
    [4, 4, 4],
    [1, 70, 1],
    [1, 300, 131],
    [131, 300, 1],
    [3, 40, 30],
    [2, 300, 70],
    [70, 300, 2],
    [7, 520, 530],
    [20, 260, 1030],
    [530, 260, 3],
    [40, 33, 50],
    [64, 64, 64],
    [30, 300, 70],
    [70, 40, 300],
    [100, 300, 129],
    [515, 260, 9],
];

/// One operand with zeros of both signs, the other with an infinity or NaN in three of four of its rows or
/// columns, each of which is multiplied by a zero.
struct Operands<T: Special> {
    narrow: [Box<[T]>; 2],
    wide: [Matrix<T::Sum>; 2],
}

impl<T: Special> Operands<T> {
    fn new([m, k, n]: [usize; 3], layouts: [Layout; 2], zeros_in_a: bool) -> Self {
        let mut random = Random(0x2545_f491_4f6c_dd1d ^ (m * 31 + k * 7 + n) as u64);
        let mut a = Matrix::<T::Sum>::new([m, k], layouts[0], &mut random);
        let mut b = Matrix::<T::Sum>::new([k, n], layouts[1], &mut random);
        let number = T::Sum::from_f64;
        let specials = [f64::INFINITY, f64::NAN, f64::NEG_INFINITY].map(number);
        let zeros = |matrix: &mut Matrix<T::Sum>| {
            matrix.data.iter_mut().skip(1).step_by(3).for_each(|x| *x = number(0.0));
            matrix.data.iter_mut().skip(2).step_by(9).for_each(|x| *x = number(-0.0));
        };
        // For row or column i of one operand, index p along k, and column or row j of the other one.
        let meeting = |i: usize| (i % 4 != 3).then(|| (specials[i % 4], (i * 37 + 11) % k));
        if zeros_in_a {
            zeros(&mut a);
            for j in 0..n {
                if let Some((special, p)) = meeting(j) {
                    b.set(p, j, special);
                    a.set(j % m, p, number(0.0));
                }
            }
        } else {
            zeros(&mut b);
            for i in 0..m {
                if let Some((special, p)) = meeting(i) {
                    a.set(i, p, special);
                    b.set(p, i % n, number(-0.0));
                }
            }
        }
        let narrow = [&mut a, &mut b].map(|matrix| -> Box<[T]> {
            let narrow = matrix.data.iter().map(|&x| T::nearest(x)).collect::<Box<[T]>>();
            matrix.data = narrow.iter().map(|x| x.widened()).collect();
            narrow
        });
        Operands { narrow, wide: [a, b] }
    }

    fn views(&self) -> [MatRef<'_, T>; 2] {
        [0, 1].map(|i| {
            let Matrix { offset, shape, strides, .. } = self.wide[i];
            MatRef::new(&self.narrow[i], offset, shape, strides).unwrap()
        })
    }
}

/// C, stored by rows or, if `transposed`, by columns.
fn output_view<E>(values: &mut [E], [m, n]: [usize; 2], transposed: bool) -> MatMut<'_, E> {
    match transposed {
        false => MatMut::row_major(values, [m, n]).unwrap(),
        true => MatMut::row_major(values, [n, m]).unwrap().t(),
    }
}

/// Every product function on every instruction set, against the oracle.
///
/// By default a third of the combinations of layouts, on the portable level a twelfth, rotating with the
/// shape, so that each shape and each layout occurs, and each shape on every level.
fn check_all<T: Special>()
where
    T::Sum: Stored,
{
    let number = T::Sum::from_f64;
    let (zero, one, workspace) = (number(0.0), number(1.0), &mut Workspace::new());
    let shapes = SHAPES[..testing::unless_miri(SHAPES.len(), 3)].iter();
    let step = if testing::is_quick() { 3 } else { 1 };
    for (turn, &[m, k, n]) in shapes.step_by(step).enumerate() {
        let bias: Vec<T::Sum> = (0..n).map(|j| number(j as f64 * 0.25 - 0.3)).collect();
        let of_a = [Rows, Columns];
        let of_b = [Rows, Columns, NegativeColumns];
        for (i, (layouts, zeros_in_a)) in of_a
            .into_iter()
            .flat_map(|a| of_b.map(|b| [a, b]))
            .flat_map(|layouts| [true, false].map(|zeros_in_a| (layouts, zeros_in_a)))
            .enumerate()
        {
            let runs: Vec<(Isa, bool)> = [false, true]
                .into_iter()
                .map(|transposed| (turn + 2 * i + usize::from(transposed), transposed))
                .filter(|&(case, _)| testing::is_sampled(case, 3))
                .flat_map(|(case, transposed)| {
                    levels_for(case, 12).into_iter().map(move |isa| (isa, transposed))
                })
                .collect();
            if runs.is_empty() {
                continue;
            }
            let operands = Operands::<T>::new([m, k, n], layouts, zeros_in_a);
            let ([a, b], [wide_a, wide_b]) = (operands.views(), &operands.wide);
            let products: Vec<T::Sum> = oracle(wide_a, wide_b);
            assert!(products.iter().any(|x| x.to_f64().is_nan()));
            let biased: Vec<_> =
                products.iter().zip(bias.iter().cycle()).map(|(&x, &y)| x + y).collect();
            let mut activated = biased.clone();
            math::Relu::KERNEL.run_in_place([None], &mut activated);
            let added: Vec<_> = products.iter().map(|&x| number(-0.5) + x).collect();
            for (isa, transposed) in runs {
                let (mut c, mut sums) = (vec![number(-0.5); m * n], vec![number(-0.5); m * n]);
                let at = |at: usize| if transposed { at % n * m + at / n } else { at };
                let check = |what: &str, found: &[T::Sum], expected: &[T::Sum]| {
                    for (i, &expected) in expected.iter().enumerate() {
                        let found = found[at(i)];
                        assert!(
                            same(found, expected),
                            "{isa}: {what} of [{m}, {k}] and [{k}, {n}], {layouts:?}, zeros in A: \
                             {zeros_in_a}, C transposed: {transposed}, element {i}: {found:?}, not {expected:?}"
                        );
                    }
                };
                with_isa(isa, || {
                    let (alpha, mut buffer) = (one, Workspace::new());
                    let packed = &PackedB::pack(b, &mut buffer);
                    let product = Gemm { alpha, beta: one, ..Gemm::new(a, b) };
                    gemm(product, output_view(&mut c, [m, n], transposed), workspace).unwrap();
                    check("a product added", &c, &added);
                    let product = Gemm::new(a, b);
                    gemm(product, output_view(&mut c, [m, n], transposed), workspace).unwrap();
                    check("a product", &c, &products);
                    c.fill(zero);
                    let product = Gemm { alpha, ..Gemm::new(a, packed) };
                    gemm(product, output_view(&mut c, [m, n], transposed), workspace).unwrap();
                    check("a packed product", &c, &products);
                    gemm(
                        Gemm { epilogue: Bias::PerColumn(&bias).into(), ..Gemm::new(a, b) },
                        output_view(&mut c, [m, n], transposed),
                        workspace,
                    )
                    .unwrap();
                    check("a product and a bias", &c, &biased);
                    let function = &|z: &mut [T::Sum]| math::Relu::KERNEL.run_in_place([None], z);
                    let epilogue = Epilogue {
                        bias: Some(Bias::PerColumn(&bias)),
                        function: Some(function),
                        sums: Some(output_view(&mut sums, [m, n], transposed)),
                    };
                    gemm(
                        Gemm { epilogue, ..Gemm::new(a, b) },
                        output_view(&mut c, [m, n], transposed),
                        workspace,
                    )
                    .unwrap();
                    check("a product, a bias and a function", &c, &activated);
                    check("the function's arguments", &sums, &biased);
                })
                .unwrap();
            }
        }
    }
}

#[test]
fn zeros_times_infinities_and_nan_in_f32() {
    check_all::<f32>();
}

#[test]
fn zeros_times_infinities_and_nan_in_f64() {
    check_all::<f64>();
}

#[test]
fn zeros_times_infinities_and_nan_in_f16() {
    check_all::<f16>();
}

#[test]
fn zeros_times_infinities_and_nan_in_bf16() {
    check_all::<bf16>();
}
