//! Products of 16-bit floats have the bits of products of the same numbers in `f32`, on every
//! instruction set.

use half::{bf16, f16};
use swath_kernels::testing::{levels, levels_for, with_isa};
use swath_kernels::{
    Bias, Epilogue, Factor, Function, Gemm, Isa, MatMut, MatRef, PackedB, Workspace, gemm, math,
    testing,
};

trait Half: Factor<Sum = f32> {
    fn nearest(x: f32) -> Self;
    const SUBNORMAL: Self;
    const INFINITY: Self;
}

impl Half for f16 {
    fn nearest(x: f32) -> Self {
        f16::from_f32(x)
    }
    const SUBNORMAL: Self = f16::from_bits(0x0155);
    const INFINITY: Self = f16::INFINITY;
}

impl Half for bf16 {
    fn nearest(x: f32) -> Self {
        bf16::from_f32(x)
    }
    const SUBNORMAL: Self = bf16::from_bits(0x0055);
    const INFINITY: Self = bf16::INFINITY;
}

/// Row-major and column-major, with gaps, every other element, rows or all elements in reverse order, one row
/// or one column broadcast.
fn layouts([rows, cols]: [usize; 2]) -> [[isize; 2]; 11] {
    let [rows, cols] = [rows as isize, cols as isize];
    [
        [cols, 1],
        [1, rows],
        [cols + 5, 1],
        [1, rows + 3],
        [3 * cols, 2],
        [-cols, 1],
        [cols, -1],
        [2, -3 * rows],
        [-1, -rows],
        [0, 1],
        [1, 0],
    ]
}

/// A matrix of 16-bit floats, and the same numbers as `f32`.
struct Matrix<T> {
    narrow: Vec<T>,
    wide: Vec<f32>,
    offset: usize,
    shape: [usize; 2],
    strides: [isize; 2],
}

impl<T: Half> Matrix<T> {
    fn new(shape: [usize; 2], strides: [isize; 2], seed: usize) -> Self {
        let reach = |axis: usize| (shape[axis] as isize - 1).max(0) * strides[axis];
        let low: isize = (0..2).map(|axis| reach(axis).min(0)).sum();
        let high: isize = (0..2).map(|axis| reach(axis).max(0)).sum();
        let len = (high - low) as usize + 1;
        let sample = testing::interval_sample_f64(-1.0, 1.0, (seed + len) as u32);
        let mut narrow: Vec<T> = sample.skip(seed).map(|x| T::nearest(x as f32)).collect();
        narrow.iter_mut().skip(3).step_by(17).for_each(|x| *x = T::SUBNORMAL);
        let mut this =
            Matrix { narrow, wide: Vec::new(), offset: low.unsigned_abs(), shape, strides };
        this.widen();
        this
    }

    fn widen(&mut self) {
        self.wide = self.narrow.iter().map(|x| x.widened()).collect();
    }

    fn views(&self) -> (MatRef<'_, T>, MatRef<'_, f32>) {
        let Matrix { narrow, wide, offset, shape, strides } = self;
        let narrow = MatRef::new(narrow, *offset, *shape, *strides).unwrap();
        (narrow, MatRef::new(wide, *offset, *shape, *strides).unwrap())
    }
}

#[derive(Clone, Copy, Debug)]
enum Call<'a> {
    Gemm(f32, f32),
    Packed(f32, f32),
    /// A product with a bias and a function, whose inputs are kept.
    Epilogue(&'a [f32]),
}

/// The result of a product into a C with gaps.
fn product<T: Factor<Sum = f32>>(
    (a, b): (MatRef<'_, T>, MatRef<'_, T>),
    c_strides: [usize; 2],
    call: Call<'_>,
) -> Vec<u32> {
    let (m, n) = (a.shape()[0], b.shape()[1]);
    let strides = c_strides.map(|stride| stride as isize);
    let len = m.saturating_sub(1) * c_strides[0] + n.saturating_sub(1) * c_strides[1] + 1;
    let (mut c, mut sums) = (vec![0.5f32; len], vec![0.5f32; len]);
    let workspace = &mut Workspace::new();
    let out = MatMut::new(&mut c, 0, [m, n], strides).unwrap();
    match call {
        Call::Gemm(alpha, beta) => gemm(Gemm { alpha, beta, ..Gemm::new(a, b) }, out, workspace),
        Call::Packed(alpha, beta) => {
            let mut buffer = Workspace::new();
            let b = &PackedB::pack(b, &mut buffer);
            gemm(Gemm { alpha, beta, ..Gemm::new(a, b) }, out, workspace)
        }
        Call::Epilogue(bias) => {
            let kept = Some(MatMut::new(&mut sums, 0, [m, n], strides).unwrap());
            let function = &|z: &mut [f32]| math::Relu::KERNEL.run_in_place([None], z);
            let (bias, function) = (Some(Bias::PerColumn(bias)), Some(function as _));
            let epilogue = Epilogue { bias, function, sums: kept };
            gemm(Gemm { epilogue, ..Gemm::new(a, b) }, out, workspace)
        }
    }
    .unwrap();
    let bits = |x: &f32| if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() };
    c.iter().chain(&sums).map(bits).collect()
}

/// Checks a product on some levels. The `f32` product, which has the same bits on all levels (`gemm.rs`), is
/// computed on one.
fn check<T: Half>(
    a: &Matrix<T>,
    b: &Matrix<T>,
    c_strides: [usize; 2],
    call: Call<'_>,
    levels: Vec<Isa>,
) {
    let ((a, wide_a), (b, wide_b)) = (a.views(), b.views());
    let expected = product((wide_a, wide_b), c_strides, call);
    for isa in levels {
        let empty = a.shape()[0] * b.shape()[1] == 0;
        let run = || product((a, b), c_strides, call);
        let found = if empty { run() } else { with_isa(isa, run).unwrap() };
        let (shapes, strides) = ([a.shape(), b.shape()], [a.strides(), b.strides()]);
        let what = || format!("{isa}: {shapes:?} {strides:?} to {c_strides:?}, {call:?}");
        for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let [found, expected] = [*found, *expected].map(f32::from_bits);
            assert_eq!(
                found.to_bits(),
                expected.to_bits(),
                "{}: {i}: {found}, not {expected}",
                what()
            );
        }
    }
}

/// One and several blocks of k; a B of few columns, of several panels, and one whose columns or rows are
/// streamed (over half a MiB); every number of rows of a tile; single columns; a k too long for copies of A;
/// empty products.
const SHAPES: [[usize; 3]; 26] = [
    [1, 1, 1],
    [7, 3, 5],
    [4, 4, 4],
    [17, 33, 31],
    [64, 64, 64],
    [30, 300, 70],
    [100, 3, 50],
    [1, 520, 530],
    [2, 520, 530],
    [3, 263, 1030],
    [4, 700, 400],
    [5, 257, 1100],
    [6, 520, 530],
    [8, 263, 1030],
    [13, 700, 400],
    [24, 520, 530],
    [25, 520, 530],
    [300, 520, 1],
    [1, 9000, 1],
    [8, 8200, 17],
    [258, 20, 1100],
    [1, 66_000, 5],
    [515, 260, 9],
    [4, 0, 9],
    [0, 5, 6],
    [6, 5, 0],
];

/// By default one of the four calls for each shape and pair of layouts, and a quarter of these on the
/// portable level too. The choice rotates with the shape and with both layouts, so that each call occurs with
/// each layout.
fn shapes_and_layouts<T: Half>() {
    let mut checked = 0;
    for (turn, &[m, k, n]) in SHAPES[..testing::unless_miri(SHAPES.len(), 3)].iter().enumerate() {
        let plain = m * k * n > 100_000 || testing::is_quick();
        let all = layouts([k, n]).len();
        // With few rows the path depends on the layout of B.
        let few = m <= 24 && !testing::is_quick();
        let count = if plain { 2 } else { all };
        let of_b = if few { all } else { count };
        for (i, a_strides) in layouts([m, k]).into_iter().enumerate().take(count) {
            let a = Matrix::<T>::new([m, k], a_strides, 1);
            for (j, b_strides) in layouts([k, n]).into_iter().enumerate().take(of_b) {
                let b = Matrix::<T>::new([k, n], b_strides, 2);
                let bias: Vec<f32> = (0..n).map(|j| j as f32 * 0.25 - 0.3).collect();
                let to = [[n.max(1), 1], [n + 3, 1], [1, m.max(1)], [2 * n.max(1), 2]][(i + j) % 4];
                let calls = [
                    Call::Gemm(1.0, 0.0),
                    Call::Gemm(-0.7, 0.3),
                    Call::Packed(1.0, (j % 2) as f32),
                    Call::Epilogue(&bias),
                ];
                for (of_call, call) in calls.into_iter().enumerate() {
                    if testing::is_sampled(turn + i + 2 * j + of_call, 4) {
                        check(&a, &b, to, call, levels_for(checked, 4));
                        checked += 1;
                    }
                }
            }
        }
    }
}

#[test]
fn f16_products_have_the_bits_of_f32_products() {
    shapes_and_layouts::<f16>();
}

#[test]
fn bf16_products_have_the_bits_of_f32_products() {
    shapes_and_layouts::<bf16>();
}

#[test]
fn infinities_and_nan_propagate() {
    fn of<T: Half>() {
        let shapes = [[3, 40, 30], [2, 520, 530], [30, 300, 70]];
        for [m, k, n] in shapes.into_iter().take(testing::unless_miri(3, 1)) {
            for transposed in 0..4usize {
                let mut a = Matrix::<T>::new([m, k], layouts([m, k])[transposed & 1], 1);
                let mut b = Matrix::<T>::new([k, n], layouts([k, n])[transposed >> 1], 2);
                a.narrow[5] = T::INFINITY;
                b.narrow[7] = T::nearest(f32::NAN);
                a.widen();
                b.widen();
                check(&a, &b, [n, 1], Call::Gemm(1.0, 0.0), levels());
            }
        }
    }
    of::<f16>();
    of::<bf16>();
}
