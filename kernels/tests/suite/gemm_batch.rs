//! A row of a product has the same bits alone, in a batch of 7 and of 4096, at any position, for row-major
//! and transposed operands, on every path that the shape takes.

use swath_kernels::testing::with_isa;
use swath_kernels::{
    Bias, Factor, Float, Gemm, Isa, MatMut, MatRef, PackedB, Workspace, gemm, testing,
};

/// `[k, n]`: matrix by vector; B in L1, with one and two blocks of k; B that is packed for the batch and read
/// in place for few rows; B that is streamed for few rows (over half a MiB).
const SHAPES: [[usize; 2]; 6] = [[300, 1], [33, 65], [270, 17], [100, 180], [520, 40], [290, 460]];

/// Rows of the large batch, fewer on emulators.
fn batch() -> usize {
    if testing::is_quick() { 96 } else { 4096 }
}

/// Rows to compare: in the first, a middle and the last tile, on both sides of where work is split.
fn compared_rows() -> Vec<usize> {
    let batch = batch();
    if testing::is_quick() {
        vec![5, batch - 1]
    } else {
        vec![0, 5, 6, 48, 511, 512, 1031, batch - 8, batch - 1]
    }
}

/// A matrix in row-major or column-major order.
struct Matrix<E> {
    data: Vec<E>,
    shape: [usize; 2],
    transposed: bool,
}

impl<E: Float> Matrix<E> {
    /// The same matrix in either storage order.
    fn new(shape: [usize; 2], transposed: bool, seed: usize) -> Self {
        let [rows, cols] = shape;
        let numbers = testing::interval_sample_f64(-1.0, 1.0, (seed + rows * cols) as u32);
        let numbers: Vec<E> = numbers.skip(seed).map(E::from_f64).collect();
        let data = match transposed {
            false => numbers,
            true => (0..rows * cols).map(|at| numbers[at % rows * cols + at / rows]).collect(),
        };
        Matrix { data, shape, transposed }
    }

    fn view(&self) -> MatRef<'_, E> {
        let [rows, cols] = self.shape;
        match self.transposed {
            false => MatRef::row_major(&self.data, [rows, cols]).unwrap(),
            true => MatRef::row_major(&self.data, [cols, rows]).unwrap().t(),
        }
    }
}

/// The function that computes the product.
#[derive(Clone, Copy, Debug)]
enum Call<'a, E> {
    Gemm,
    Packed,
    Bias(&'a [E]),
}

/// The product of some rows, row-major; C is stored by columns if `transposed`.
fn rows_of<E: Float + Factor<Sum = E>>(
    a: MatRef<'_, E>,
    b: MatRef<'_, E>,
    call: Call<'_, E>,
    transposed: bool,
) -> Vec<E> {
    let ([m, _], [_, n]) = (a.shape(), b.shape());
    let mut c = vec![E::NAN; m * n];
    let workspace = &mut Workspace::new();
    let out = match transposed {
        false => MatMut::row_major(&mut c, [m, n]).unwrap(),
        true => MatMut::row_major(&mut c, [n, m]).unwrap().t(),
    };
    let (alpha, beta) = (E::ONE, E::ZERO);
    match call {
        Call::Gemm => gemm(Gemm { alpha, beta, ..Gemm::new(a, b) }, out, workspace),
        Call::Bias(bias) => {
            gemm(Gemm { epilogue: Bias::PerColumn(bias).into(), ..Gemm::new(a, b) }, out, workspace)
        }
        Call::Packed => {
            let mut buffer = Workspace::new();
            let b = &PackedB::pack(b, &mut buffer);
            gemm(Gemm { alpha, beta, ..Gemm::new(a, b) }, out, workspace)
        }
    }
    .unwrap();
    match transposed {
        false => c,
        true => (0..m * n).map(|at| c[at % n * m + at / n]).collect(),
    }
}

fn part<E: Float>(a: MatRef<'_, E>, from: usize, rows: usize) -> MatRef<'_, E> {
    a.split_rows(from).1.split_rows(rows).0
}

/// By default a third of the orientations, rotating with the shape; a sixth on the portable level.
fn check<E: Float + Factor<Sum = E>>(isa: Isa, of_bits: fn(&E) -> u64) {
    let bits = |x: &[E]| x.iter().map(of_bits).collect::<Vec<u64>>();
    let batch = batch();
    // Scalar code takes the same paths, but slowly.
    let shapes = if isa == Isa::Scalar { &SHAPES[..3] } else { &SHAPES };
    let every = if isa == Isa::Scalar { 6 } else { 3 };
    for (turn, &[k, n]) in shapes.iter().enumerate() {
        let bias: Vec<E> = (0..n).map(|j| E::from_f64(j as f64 - 0.3)).collect();
        // All others must give the result of the plain product of the whole batch.
        let plain = [[batch, k], [k, n]].map(|shape| Matrix::<E>::new(shape, false, 0));
        let whole = rows_of(plain[0].view(), plain[1].view(), Call::Gemm, false);
        let biased: Vec<E> = whole.iter().zip(bias.iter().cycle()).map(|(&y, &b)| y + b).collect();
        for orientation in (0..8).filter(|i| testing::is_sampled(turn + i, every)) {
            let [a_transposed, b_transposed, c_transposed] =
                [1, 2, 4].map(|bit: usize| orientation & bit != 0);
            let (a, b) = (
                Matrix::<E>::new([batch, k], a_transposed, 0),
                Matrix::<E>::new([k, n], b_transposed, 0),
            );
            let (a, b) = (a.view(), b.view());
            for call in [Call::Gemm, Call::Packed, Call::Bias(&bias)] {
                let whole = if matches!(call, Call::Bias(_)) { &biased } else { &whole };
                let at = |rows: usize, row: usize| {
                    let transposed = [a_transposed, b_transposed, c_transposed];
                    format!("{isa}: {rows} rows from {row}, [{k}, {n}], {transposed:?}, {call:?}")
                };
                if orientation == 0 || matches!(call, Call::Gemm) {
                    let same = bits(&rows_of(a, b, call, c_transposed)) == bits(whole);
                    assert!(same, "{}", at(batch, 0));
                }
                for row in compared_rows() {
                    for rows in [1, 7] {
                        let from = row.min(batch - rows);
                        let got = rows_of(part(a, from, rows), b, call, c_transposed);
                        let expected = &whole[from * n..(from + rows) * n];
                        assert!(bits(&got) == bits(expected), "{}", at(rows, from));
                    }
                }
            }
        }
    }
}

#[test]
fn a_row_has_the_same_bits_alone_and_in_any_batch() {
    for isa in Isa::ALL {
        with_isa(isa, || {
            check::<f32>(isa, |x| x.to_bits().into());
            check::<f64>(isa, |x| x.to_bits());
        });
    }
}
