//! Matrices in all layouts, and the product by a scalar definition of its order of additions.

use swath_kernels::testing::{levels, with_isa};
use swath_kernels::{Factor, Float, Gemm, MatMut, MatRef, Workspace, gemm};

/// A small generator (xorshift64*), so that inputs are the same on every machine.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    pub fn fill<E: Float>(&mut self, len: usize) -> Box<[E]> {
        (0..len).map(|_| E::from_f64(self.next())).collect()
    }
}

/// A matrix in exactly as much memory as its strides require.
pub struct Matrix<E> {
    pub data: Box<[E]>,
    pub offset: usize,
    pub shape: [usize; 2],
    pub strides: [isize; 2],
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Layout {
    Rows,
    Columns,
    /// Rows with gaps between them.
    Padded,
    PaddedColumns,
    /// Neither stride is 1.
    Spread,
    EveryOther,
    NegativeRows,
    NegativeColumns,
    NegativeBoth,
    /// One row, broadcast.
    ZeroRows,
    ZeroColumns,
}

use Layout::*;

impl<E: Float> Matrix<E> {
    pub fn new(shape: [usize; 2], layout: Layout, random: &mut Random) -> Self {
        let [rows, cols] = shape.map(|extent| extent as isize);
        let strides = match layout {
            Rows => [cols, 1],
            Columns => [1, rows],
            Padded => [cols + 5, 1],
            PaddedColumns => [1, rows + 3],
            Spread => [3 * cols + 1, 3],
            EveryOther => [2 * cols + 1, 2],
            NegativeRows => [-cols, 1],
            NegativeColumns => [cols, -1],
            NegativeBoth => [-1, -rows],
            ZeroRows => [0, 1],
            ZeroColumns => [1, 0],
        };
        let reach = |extent: isize, stride: isize| (extent - 1).max(0) * stride;
        let reaches = [reach(rows, strides[0]), reach(cols, strides[1])];
        let low: isize = reaches.iter().map(|r| r.min(&0)).sum();
        let high: isize = reaches.iter().map(|r| r.max(&0)).sum();
        let len = if rows * cols == 0 { 0 } else { (high - low + 1) as usize };
        Matrix { data: random.fill(len), offset: -low as usize, shape, strides }
    }

    fn index(&self, i: usize, j: usize) -> usize {
        let [down, right] = self.strides;
        (self.offset as isize + i as isize * down + j as isize * right) as usize
    }

    pub fn at(&self, i: usize, j: usize) -> E {
        self.data[self.index(i, j)]
    }

    pub fn set(&mut self, i: usize, j: usize, value: E) {
        self.data[self.index(i, j)] = value;
    }

    pub fn view(&self) -> MatRef<'_, E> {
        MatRef::new(&self.data, self.offset, self.shape, self.strides).unwrap()
    }

    pub fn view_mut(&mut self) -> MatMut<'_, E> {
        MatMut::new(&mut self.data, self.offset, self.shape, self.strides).unwrap()
    }

    pub fn copy(&self) -> Self {
        Matrix { data: self.data.clone(), ..*self }
    }
}

/// A·B by rows, in the documented order of additions, by exactly rounded fused multiply-adds.
pub fn oracle<E: Float>(a: &Matrix<E>, b: &Matrix<E>) -> Vec<E> {
    let ([m, k], n) = (a.shape, b.shape[1]);
    let rows_of_b: Vec<E> = (0..k * n).map(|at| b.at(at / n, at % n)).collect();
    let (mut ab, mut chains) = (vec![E::ZERO; m * n], vec![E::ZERO; n]);
    for i in 0..if n == 0 { 0 } else { m } {
        for from in (0..k).step_by(256) {
            chains.fill(E::ZERO);
            for p in from..k.min(from + 256) {
                add_products(a.at(i, p), &rows_of_b[p * n..][..n], &mut chains);
            }
            let row = ab[i * n..][..n].iter_mut().zip(&chains);
            row.for_each(|(sum, &chain)| *sum = if from == 0 { chain } else { *sum + chain });
        }
    }
    ab
}

/// `chains[j] = x · y[j] + chains[j]`, rounded once.
fn add_products<E: Float>(x: E, y: &[E], chains: &mut [E]) {
    #[inline(always)]
    fn add<E: Float>(x: E, y: &[E], chains: &mut [E]) {
        chains.iter_mut().zip(y).for_each(|(chain, &y)| *chain = x.mul_add(y, *chain));
    }
    /// Compiled to vector instructions, where `mul_add` otherwise calls the C library.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    fn add_by_instructions<E: Float>(x: E, y: &[E], chains: &mut [E]) {
        add(x, y, chains);
    }
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the processor has both features.
        return unsafe { add_by_instructions(x, y, chains) };
    }
    add(x, y, chains);
}

/// Applies alpha and beta; `ab` is `None` if k is 0, and only beta · C is left.
fn scaled<E: Float>(ab: Option<E>, c: E, alpha: E, beta: E) -> E {
    let Some(ab) = ab else { return if beta == E::ZERO { E::ZERO } else { beta * c } };
    if beta != E::ZERO {
        if alpha == E::ONE && beta == E::ONE { c + ab } else { alpha.mul_add(ab, beta * c) }
    } else if alpha == E::ONE {
        ab
    } else {
        alpha * ab
    }
}

/// True if both have the same bits, or are NaN with any payload.
pub fn same<E: Float>(x: E, y: E) -> bool {
    // Equal numbers differ in bits only if they are zeros, whose reciprocals then differ in sign.
    x == y && E::ONE / x == E::ONE / y || x.to_f64().is_nan() && y.to_f64().is_nan()
}

/// Checks `gemm` on every level against the oracle, bit for bit.
pub fn check<E: Float + Factor<Sum = E>>(
    a: &Matrix<E>,
    b: &Matrix<E>,
    c: &Matrix<E>,
    alpha: E,
    beta: E,
) {
    let mut workspace = Workspace::new();
    let ([m, n], k) = (c.shape, a.shape[1]);
    let ab = oracle(a, b).into_iter().enumerate();
    let expected: Vec<E> = ab
        .map(|(at, ab)| scaled((k > 0).then_some(ab), c.at(at / n, at % n), alpha, beta))
        .collect();
    for isa in levels() {
        let mut result = c.copy();
        let product = Gemm { alpha, beta, ..Gemm::new(a.view(), b.view()) };
        let run = || gemm(product, result.view_mut(), &mut workspace).unwrap();
        if m * n == 0 {
            run();
        } else {
            with_isa(isa, run).unwrap();
        }
        for (at, &expected) in expected.iter().enumerate() {
            let got = result.at(at / n, at % n);
            assert!(
                same(got, expected),
                "{isa}: {:?}{:?} x {:?}{:?} -> {:?}, alpha {alpha:?}, beta {beta:?}: ({}, {}) is \
                 {got:?}, not {expected:?}",
                a.shape,
                a.strides,
                b.shape,
                b.strides,
                c.strides,
                at / n,
                at % n,
            );
        }
    }
}
