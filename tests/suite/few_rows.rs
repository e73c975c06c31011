//! Products of few rows by transposed weights, integer arithmetic, running extrema and Huber losses: around the
//! sizes of squares, groups, chunks and blocks in which their kernels work, against plain loops.

use swath::nn::loss::{Reduction, huber_with};
use swath::ops::BinaryOp;
use swath::prelude::*;

type T = Tensor<CpuBackend>;

/// Values of k in a chain of fused multiply-adds.
const BLOCK: usize = 256;

fn randn(shape: impl Into<Shape>, seed: u64) -> T {
    T::randn(shape, &mut Rng::seed(seed)).unwrap()
}

/// `x · wᵀ + bias` by the definition: chains from +0 over blocks of k, which are added in order.
fn by_definition(x: &[f32], w: &[f32], bias: Option<&[f32]>, [m, n, k]: [usize; 3]) -> Vec<u32> {
    let element = |i: usize, j: usize| {
        let (a, b) = (&x[i * k..][..k], &w[j * k..][..k]);
        let chains = a
            .chunks(BLOCK)
            .zip(b.chunks(BLOCK))
            .map(|(a, b)| a.iter().zip(b).fold(0f32, |sum, (a, b)| a.mul_add(*b, sum)));
        let sum = chains.reduce(|sum, chain| sum + chain).unwrap_or(0.0);
        bias.map_or(sum, |bias| sum + bias[j]).to_bits()
    };
    (0..m).flat_map(|i| (0..n).map(move |j| element(i, j))).collect()
}

#[test]
fn few_rows_by_transposed_weights_have_the_bits_of_the_definition() {
    if swath::blas::info().provider != "embedded" {
        println!("SKIPPED: a library computes the products");
        return;
    }
    for m in 0..=9 {
        for n in [0, 1, 3, 15, 16, 17, 31, 32, 33, 47, 64, 65, 100] {
            for k in [0, 1, 15, 16, 17, 64, 255, 256, 257, 530] {
                // Rows of the weights that are contiguous, and not aligned.
                let (x, all) = (randn((m, k), 1), randn((n, k + 3), 2));
                let (bias, w) = (randn(n, 3), all.narrow(1, 2, k).unwrap());
                let [x_values, w_values, bias_values] =
                    [&x, &w, &bias].map(|x| x.to_vec::<f32>().unwrap());
                for (with, given) in [(None, None), (Some(&bias), Some(&bias_values[..]))] {
                    let want = by_definition(&x_values, &w_values, given, [m, n, k]);
                    for w in [&w, &w.contiguous().unwrap()] {
                        let y = x.linear(w, with).unwrap().to_vec::<f32>().unwrap();
                        let got: Vec<u32> = y.into_iter().map(f32::to_bits).collect();
                        assert!(got == want, "{m} rows, {n} columns, k = {k}");
                    }
                }
            }
        }
    }
}

/// Numbers of every magnitude of the type, the smallest and the largest among them.
fn integers(dtype: DType, count: usize, seed: u64) -> Vec<i64> {
    let (low, high) = match dtype {
        DType::I32 => (i32::MIN.into(), i32::MAX.into()),
        DType::U32 => (0, u32::MAX.into()),
        _ => (i64::MIN, i64::MAX),
    };
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state ^ state >> 29) as i64
    };
    let special = [low, high, 0, 1, -1, (1 << 51) - 1, 1 << 51, (1 << 51) + 1, -(1 << 51), 1 << 53];
    let drawn = (0..count).map(|i| match i % 7 {
        0 => special[next() as usize % special.len()],
        _ => next() >> (next() & 63),
    });
    drawn.map(|x| if (low..=high).contains(&x) { x } else { x.rem_euclid(high) }).collect()
}

#[test]
fn integer_arithmetic_is_that_of_wider_integers() {
    type Op = (BinaryOp, fn(i128, i128) -> i128);
    let ops: [Op; 7] = [
        (BinaryOp::Add, |a, b| a + b),
        (BinaryOp::Sub, |a, b| a - b),
        (BinaryOp::Mul, |a, b| a.wrapping_mul(b)),
        (BinaryOp::Div, |a, b| a / b),
        (BinaryOp::Rem, |a, b| a % b),
        (BinaryOp::Remainder, |a, b| a.rem_euclid(b) + if b < 0 && a % b != 0 { b } else { 0 }),
        (BinaryOp::FloorDivide, |a, b| a.div_euclid(b) - i128::from(b < 0 && a.rem_euclid(b) != 0)),
    ];
    for dtype in [DType::I32, DType::U32, DType::I64] {
        let wrap = |x: i128| match dtype {
            DType::I32 => (x as i32).into(),
            DType::U32 => (x as u32).into(),
            _ => x as i64,
        };
        let of = |x: &[i64]| T::from_slice(x, x.len()).unwrap().to_dtype(dtype).unwrap();
        let values = |x: &T| x.to_dtype(DType::I64).unwrap().to_vec::<i64>().unwrap();
        for count in [0, 1, 5, 127, 128, 129, 3000] {
            // Small numbers alone are divided in another way than with large ones among them.
            for small in [false, true] {
                let limit = |x: i64| if small { x % 1000 } else { x };
                let a: Vec<i64> = integers(dtype, count, 1).into_iter().map(limit).collect();
                let b = integers(dtype, count, 2).into_iter().map(|b| match limit(b) {
                    0 | -1 => 7,
                    b => b,
                });
                let b: Vec<i64> = b.collect();
                let (x, y) = (of(&a), of(&b));
                for (op, f) in ops {
                    let want = |b: &dyn Fn(usize) -> i64| -> Vec<i64> {
                        (0..count).map(|i| wrap(f(a[i].into(), b(i).into()))).collect()
                    };
                    let name = format!("{op:?} of {count} {dtype}");
                    let each = want(&|i| b[i]);
                    assert_eq!(values(&x.binary(op, &y).unwrap()), each, "{name}");
                    assert_eq!(values(&of(&a).binary(op, &y).unwrap()), each, "{name}");
                    let number = x.binary(op, 13i64).unwrap();
                    assert_eq!(values(&number), want(&|_| 13), "{name}, of a number");
                    let mut changed = of(&a);
                    if op == BinaryOp::Add {
                        changed.add_assign(&y).unwrap();
                        assert_eq!(values(&changed), each, "{name}, in place");
                    }
                    let flipped = x.flip(0).unwrap().binary(op, y.flip(0).unwrap()).unwrap();
                    assert_eq!(values(&flipped.flip(0).unwrap()), each, "{name}, of views");
                }
            }
        }
    }
}

#[test]
fn quotients_without_a_value_are_errors_wherever_they_are() {
    for (dtype, low) in [(DType::I32, i32::MIN.into()), (DType::I64, i64::MIN)] {
        for op in BinaryOp::ALL.iter().copied().filter(|op| op.divides_integers()) {
            for at in [0, 1, 127, 128, 199] {
                for (a, b) in [(5, 0), (low, -1), (low, 0)] {
                    let (mut x, mut y) = (vec![low; 200], vec![3; 200]);
                    (x[at], y[at]) = (a, b);
                    let [x, y] =
                        [x, y].map(|x| T::from_vec(x, 200).unwrap().to_dtype(dtype).unwrap());
                    let result = x.binary(op, &y);
                    assert!(matches!(result, Err(Error::IntegerDivision { .. })), "{op:?} {a} {b}");
                }
            }
        }
    }
    let x = T::from_slice(&[5u32], 1).unwrap();
    assert!(matches!(x.div(0i64), Err(Error::IntegerDivision { .. })));
}

#[test]
fn running_extrema_are_those_of_a_loop_over_the_elements() {
    let nan = f64::NAN;
    for dtype in
        [DType::F16, DType::BF16, DType::F32, DType::F64, DType::I64, DType::I32, DType::U8]
    {
        for n in [1, 2, 63, 64, 65, 128, 1000] {
            for (kind, special) in [("plain", None), ("zeros", Some(-0.0)), ("NaN", Some(nan))] {
                let mut x = randn((3, n), n as u64).affine(40.0, 100.0).unwrap().round().unwrap();
                if let Some(special) = special.filter(|_| dtype.is_float()) {
                    // One of the first row, and one in the second half of another.
                    let mut values = x.mul_scalar(-1.0).unwrap().to_vec::<f32>().unwrap();
                    (values[n / 3], values[n + n / 2], values[n + n - 1]) =
                        (special as f32, special as f32, 0.0);
                    x = T::from_vec(values, (3, n)).unwrap();
                }
                let x = x.to_dtype(dtype).unwrap();
                let rows = x.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
                for (largest, results) in [(true, x.cummax(1)), (false, x.cummin(1))] {
                    let (values, indices) = results.unwrap();
                    let values = values.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
                    let indices = indices.to_vec::<i64>().unwrap();
                    for (r, row) in rows.chunks(n).enumerate() {
                        let mut best = 0;
                        for (i, &x) in row.iter().enumerate() {
                            let beats = if largest { x > row[best] } else { x < row[best] };
                            if beats || x.is_nan() && !row[best].is_nan() {
                                best = i;
                            }
                            let context = format!("{dtype}, {kind}, {n}, row {r}, element {i}");
                            assert_eq!(indices[r * n + i], best as i64, "{context}");
                            let (value, want) = (values[r * n + i], row[best]);
                            let same = value.to_bits() == want.to_bits();
                            assert!(same || value.is_nan() && want.is_nan(), "{context}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn gathered_rows_name_the_first_index_that_is_outside() {
    for shape in [&[300][..], &[2, 300], &[2, 300, 1]] {
        let x = randn(shape, 1);
        let axis = if shape.len() == 1 { 0 } else { 1 };
        let numel = x.numel() as i64;
        let inside: Vec<i64> = (0..numel).map(|i| i * 7 % 300).collect();
        let index = T::from_slice(&inside, shape).unwrap();
        let (got, values) = (x.gather(axis, &index).unwrap(), x.to_vec::<f32>().unwrap());
        let want = (0..inside.len()).map(|i| values[i / 300 * 300 + inside[i] as usize]);
        assert!(got.to_vec::<f32>().unwrap().into_iter().eq(want));
        for bad in [-301, 300, i64::MIN, i64::MAX] {
            let mut outside = inside.clone();
            (outside[77], outside[78]) = (bad, -305);
            let result = x.gather(axis, &T::from_slice(&outside, shape).unwrap());
            let Err(Error::IndexOutOfRange { index, .. }) = result else { panic!("{result:?}") };
            assert_eq!(index, bad);
        }
    }
}

#[test]
fn huber_losses_have_the_bits_of_their_steps() {
    for dtype in [DType::F32, DType::F64] {
        for n in [0, 1, 15, 16, 1000] {
            let [a, b] =
                [1, 2].map(|seed| randn(n, seed).mul_scalar(2.0).unwrap().to_dtype(dtype).unwrap());
            for delta in [0.3, 1.0, 2.5] {
                let d = a.sub(&b).unwrap();
                let near = d.clamp(-delta, delta).unwrap();
                let half = near.mul_scalar(0.5).unwrap();
                let want = near.mul(d.sub(&half).unwrap()).unwrap();
                let x = a.requires_grad();
                let loss = huber_with(&x, &b, delta, Reduction::None).unwrap();
                let bits = |x: &T| -> Vec<u64> {
                    let wide = x.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
                    wide.into_iter().map(f64::to_bits).collect()
                };
                assert_eq!(bits(&loss), bits(&want));
                let upstream = randn(n, 3).to_dtype(dtype).unwrap();
                let gradients = loss.backward_with(&upstream).unwrap();
                let slope = upstream.mul(&near).unwrap();
                assert_eq!(bits(gradients.get(&x).unwrap()), bits(&slope));
            }
        }
    }
}
