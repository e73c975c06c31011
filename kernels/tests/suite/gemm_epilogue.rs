//! Products with a fused bias and function have the bits of a product, an addition and the function.

use swath_kernels::testing::with_isa;
use swath_kernels::{
    Bias, Epilogue, Factor, Float, Function, Gemm, Geometry, Indirect, Isa, MatMut, MatRef,
    PackedB, Right, Sliding, Stored, Windows, Workspace, gemm, math, testing,
};

fn values<E: Float>(len: usize, seed: u32) -> Vec<E> {
    let sample = testing::interval_sample_f64(-1.0, 1.0, len as u32 + seed);
    sample.skip(seed as usize).map(E::from_f64).collect()
}

/// Shapes that cover every path: one and several blocks of k; B read in place, streamed and packed; a small B
/// with more rows than are computed at once; edge tiles; several panels; more rows than the partial sums are
/// kept for; and empty products.
const SHAPES: [[usize; 3]; 19] = [
    [1, 1, 1],
    [7, 3, 1],
    [5, 64, 33],
    [30, 300, 70],
    [64, 600, 129],
    [3, 700, 300],
    [6, 4, 1100],
    [60, 30, 1030],
    [12, 520, 520],
    [21, 520, 520],
    [1, 513, 1030],
    [130, 20, 17],
    [400, 90, 96],
    [515, 260, 9],
    [4, 0, 9],
    [3, 0, 1],
    [20, 0, 9],
    [0, 5, 6],
    [6, 5, 0],
];

/// Results with gaps, and the expected results.
struct Found<'a, E> {
    what: &'a str,
    values: &'a [E],
    expected: &'a [E],
    columns: usize,
    strides: [usize; 2],
}

impl<E: Float> Found<'_, E> {
    #[track_caller]
    fn check(&self, of_bits: fn(E) -> u64) {
        let Found { what, columns: n, strides: [down, right], .. } = *self;
        for (i, &expected) in self.expected.iter().enumerate() {
            let y = self.values[i / n * down + i % n * right];
            assert_eq!(
                of_bits(y),
                of_bits(expected),
                "{what}: element {i}: {y:?}, not {expected:?}"
            );
        }
    }
}

fn view<E>(values: &mut [E], shape: [usize; 2], strides: [usize; 2]) -> MatMut<'_, E> {
    MatMut::new(values, 0, shape, strides.map(|stride| stride as isize)).unwrap()
}

/// By default a third of the combinations of operands and layouts of C, rotating with the shape; on the
/// portable level, a hundred times slower, one for each shape.
fn check<E: Float + Factor<Sum = E> + Stored + PartialEq>(isa: Isa, of_bits: fn(E) -> u64) {
    let workspace = &mut Workspace::new();
    let every = if isa == Isa::Scalar { 12 } else { 3 };
    for (turn, [m, k, n]) in SHAPES.into_iter().enumerate() {
        let (a, b, mut bias) = (values::<E>(m * k, 1), values::<E>(k * n, 2), values::<E>(n, 3));
        // A product with k = 0 is +0, to which the bias is added.
        if let Some(first) = bias.first_mut() {
            *first = -E::ZERO;
        }
        let operands = [(false, true), (true, true), (false, false)];
        for (of_operands, (b_is_transposed, has_bias)) in operands.into_iter().enumerate() {
            let is_taken = |layout| testing::is_sampled(turn + 4 * of_operands + layout, every);
            if !(0..4).any(is_taken) {
                continue;
            }
            let a = MatRef::row_major(&a, [m, k]).unwrap();
            let b = match b_is_transposed {
                false => MatRef::row_major(&b, [k, n]).unwrap(),
                true => MatRef::row_major(&b, [n, k]).unwrap().t(),
            };
            let mut z = vec![E::NAN; m * n];
            let c = MatMut::row_major(&mut z, [m, n]).unwrap();
            gemm(Gemm::new(a, b), c, workspace).unwrap();
            let bias = has_bias.then_some(&bias[..]);
            for row in z.chunks_mut(n.max(1)) {
                let biases = bias.unwrap_or_default();
                row.iter_mut().zip(biases).for_each(|(y, &bias)| *y = *y + bias);
            }
            let mut y = z.clone();
            math::Gelu::KERNEL.run_in_place([None], &mut y);

            let layouts = [[n, 1], [n + 3, 1], [1, m], [2 * n, 2]];
            for (i, strides) in layouts.into_iter().enumerate().filter(|&(i, _)| is_taken(i)) {
                let name = format!("{m} {k} {n}, {strides:?}, {b_is_transposed} {has_bias}");
                let check = |what: &str, values: &[E], expected: &[E], strides| {
                    let what = &format!("{name}: {what}");
                    Found { what, values, expected, columns: n, strides }.check(of_bits);
                };
                let buffer = || vec![E::NAN; 2 * m * n + 3 * m];
                if let Some(bias) = bias {
                    let mut c = buffer();
                    let product =
                        Gemm { epilogue: Bias::PerColumn(bias).into(), ..Gemm::new(a, b) };
                    gemm(product, view(&mut c, [m, n], strides), workspace).unwrap();
                    check("a bias alone", &c, &z, strides);
                }
                let kept = [None, Some(strides), Some(layouts[(i + 1) % 4])];
                for &kept in &kept[if testing::is_quick() { 2 } else { 0 }..] {
                    let (mut c, mut sums) = (buffer(), buffer());
                    let sums_view = match kept {
                        Some(strides) => Some(view(&mut sums, [m, n], strides)),
                        None => None,
                    };
                    let function = &|z: &mut [E]| math::Gelu::KERNEL.run_in_place([None], z);
                    let (bias, function) = (bias.map(Bias::PerColumn), Some(function as _));
                    let epilogue = Epilogue { bias, function, sums: sums_view };
                    let c_view = view(&mut c, [m, n], strides);
                    gemm(Gemm { epilogue, ..Gemm::new(a, b) }, c_view, workspace).unwrap();
                    check("a function", &c, &y, strides);
                    if let Some(strides) = kept {
                        check("the sums", &sums, &z, strides);
                    }
                    let written = c.iter().filter(|&&x| of_bits(x) != of_bits(E::NAN)).count();
                    assert_eq!(written, m * n, "{name}: gaps must not change");
                }
            }
        }
    }
}

#[test]
fn epilogue_has_the_bits_of_separate_addition_and_function() {
    for isa in Isa::ALL {
        with_isa(isa, || {
            check::<f32>(isa, |x| x.to_bits().into());
            check::<f64>(isa, f64::to_bits);
        });
    }
}

/// For every kind of B, a bias per row or column, and factors: what [`gemm`] and [`Epilogue::apply`] do to C.
#[test]
fn every_product_takes_every_epilogue() {
    let workspace = &mut Workspace::new();
    let image = values::<f32>(2 * 21 * 19, 5);
    let sliding = |extent| Sliding::new(extent, 2);
    let geometry = Geometry::new([Sliding::default(), sliding(21), sliding(19)]).unwrap();
    let windows = Windows::new(&image, 0, [1, 2], [0, 399, 399, 19, 1], geometry).unwrap();
    let ([k, n], offsets) = (windows.shape(), [0, 1, 19, 20, 399, 400, 418, 419]);
    let indirect = Indirect::new(&image, &offsets, n).unwrap();
    let b = values::<f32>(k * n, 6);
    let b = MatRef::row_major(&b, [k, n]).unwrap();
    let mut buffer = Workspace::new();
    let packed = PackedB::pack(b, &mut buffer);
    for m in [3, 70] {
        let (a, old) = (values::<f32>(m * k, 7), values::<f32>(m * n, 8));
        let a = MatRef::row_major(&a, [m, k]).unwrap();
        let (rows, columns) = (values::<f32>(m, 9), values::<f32>(n, 10));
        let kinds: [Right<'_, f32>; 4] =
            [b.into(), (&packed).into(), (&windows).into(), (&indirect).into()];
        for (kind, (alpha, beta)) in kinds.into_iter().flat_map(|kind| {
            [(1.0, 0.0), (1.0, 1.0), (0.5, 2.0), (0.0, 1.0)].map(|factors| (kind, factors))
        }) {
            let mut plain = old.clone();
            let c = MatMut::row_major(&mut plain, [m, n]).unwrap();
            gemm(Gemm { alpha, beta, ..Gemm::new(a, kind) }, c, workspace).unwrap();
            for is_per_row in [false, true] {
                let bias = if is_per_row { Bias::PerRow(&rows) } else { Bias::PerColumn(&columns) };
                let added = |at: usize| if is_per_row { rows[at / n] } else { columns[at % n] };
                let z: Vec<f32> = plain.iter().enumerate().map(|(at, &x)| x + added(at)).collect();
                let [mut c, mut sums, mut applied] = [&old, &old, &plain].map(Clone::clone);
                let function = Some(&(|z: &mut [f32]| z.iter_mut().for_each(|z| *z = -*z)) as _);
                let sums_view = MatMut::row_major(&mut sums, [m, n]).unwrap();
                let epilogue = Epilogue { bias: Some(bias), function, sums: Some(sums_view) };
                let out = MatMut::row_major(&mut c, [m, n]).unwrap();
                gemm(Gemm { alpha, beta, epilogue, ..Gemm::new(a, kind) }, out, workspace).unwrap();
                let wanted: Vec<f32> = z.iter().map(|z| -z).collect();
                assert!(c == wanted && sums == z, "{m} {alpha} {beta} {is_per_row} {kind:?}");
                let mut epilogue = Epilogue { function, ..Epilogue::from(bias) };
                epilogue.apply(MatMut::row_major(&mut applied, [m, n]).unwrap()).unwrap();
                assert!(applied == wanted, "{m} {is_per_row}");
            }
        }
    }
}

#[test]
fn parts_of_an_epilogue_are_those_of_the_parts_of_c() {
    let (rows, columns) = ([1.0f32, 2.0, 3.0], [10.0f32, 20.0, 30.0, 40.0]);
    for (bias, wanted) in [
        (Bias::PerRow(&rows[..]), [[1.0, 1.0], [3.0, 3.0]]),
        (Bias::PerColumn(&columns[..]), [[10.0, 40.0], [10.0, 40.0]]),
    ] {
        let (mut c, mut sums) = ([0.0; 12], [0.0; 12]);
        let sums = MatMut::row_major(&mut sums, [3, 4]).unwrap();
        let (above, below) = Epilogue { sums: Some(sums), ..bias.into() }.split_rows(1);
        let (c_above, c_below) = MatMut::row_major(&mut c, [3, 4]).unwrap().split_rows(1);
        for (epilogue, c) in [(above, c_above), (below, c_below)] {
            let ([mut left, mut right], (c_left, c_right)) =
                (epilogue.split_cols(3).into(), c.split_cols(3));
            left.apply(c_left).unwrap();
            right.apply(c_right).unwrap();
        }
        assert_eq!([[c[0], c[3]], [c[8], c[11]]], wanted);
    }
}
