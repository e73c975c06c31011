//! Results of the CPU backend that are computed by several threads, against plain loops.

use crate::testing::Tested;
use swath::ops::{ReduceOp, ScanOp};
use swath::{CpuBackend, DType, HostData, Scalar, Tensor};

use crate::support::inputs::Rng;
use crate::support::{alone, alone_with};

type Join = fn(i64, i64) -> i64;

/// The fold and the running totals, both wrapping, of each column of matrices `[above, n, below]`.
fn columns(x: &[i64], [above, n, below]: [usize; 3], op: Join) -> [Vec<i64>; 2] {
    let mut totals = x.to_vec();
    let mut folds = Vec::new();
    for matrix in 0..above {
        for at in (0..below).map(|column| matrix * n * below + column) {
            for row in 1..n {
                let (before, here) = (at + (row - 1) * below, at + row * below);
                totals[here] = op(totals[before], totals[here]);
            }
            folds.push(totals[at + (n - 1) * below]);
        }
    }
    [folds, totals]
}

fn integers_of<B: Tested>(x: swath::Result<B::Tensor>) -> Vec<i64> {
    let data = B::to_host(&x.unwrap()).unwrap();
    let integer = |i| match data.get(i) {
        Some(Scalar::Int(value)) => value,
        other => panic!("{other:?}"),
    };
    (0..data.len()).map(integer).collect()
}

/// Long folds are split into subtrees, rows and matrices over threads. The results differ from part to
/// part.
fn large_integers_agree<B: Tested>() {
    let mut rng = Rng(23);
    for shape in [[1, 1 << 20, 1], [1031, 1019, 1], [37, 151, 190], [1, 1031, 1019]] {
        for dtype in [DType::I64, DType::U8, DType::Bool] {
            // Odd numbers, so that products keep low bits of every factor.
            let values: Vec<i64> = (0..shape.iter().product())
                .map(|_| match dtype {
                    DType::I64 => rng.next_u64() as i64 | 1,
                    DType::U8 => rng.next_u64() as i64 & 255 | 1,
                    _ => (rng.below(5000) != 0).into(),
                })
                .collect();
            let data = match dtype {
                DType::I64 => HostData::I64(values.clone()),
                DType::U8 => HostData::U8(values.iter().map(|&x| x as u8).collect()),
                _ => HostData::Bool(values.iter().map(|&x| x != 0).collect()),
            };
            let x = B::from_host(data, shape.into()).unwrap();
            let ops = [
                (ScanOp::Sum, ReduceOp::Sum, i64::wrapping_add as Join),
                (ScanOp::Product, ReduceOp::Prod, i64::wrapping_mul),
            ];
            let totals = ops.map(|(_, _, op)| columns(&values, shape, op));
            let ends: [(ReduceOp, Join); 4] = [
                (ReduceOp::Max, i64::max),
                (ReduceOp::Min, i64::min),
                (ReduceOp::Any, |a, b| i64::from(a != 0 || b != 0)),
                (ReduceOp::All, |a, b| i64::from(a != 0 && b != 0)),
            ];
            let folds = ends.map(|(fold, op)| {
                let [mut want, _] = columns(&values, shape, op);
                if let ReduceOp::Any | ReduceOp::All = fold {
                    want.iter_mut().for_each(|x| *x = i64::from(*x != 0));
                }
                want
            });
            let [above, n, below] = shape;
            let places = [&folds[0], &folds[1]].map(|ends| -> Vec<i64> {
                let place = |at: usize| {
                    let (matrix, column) = (at / below, at % below);
                    let value = |row| values[(matrix * n + row) * below + column];
                    (0..n).find(|&row| value(row) == ends[at]).unwrap() as i64
                };
                (0..above * below).map(place).collect()
            });
            for threads in [1, 2, 5] {
                swath::runtime::set_threads(threads).unwrap();
                let same = |what: &str, got, want: &[i64]| {
                    let got = integers_of::<B>(got);
                    assert!(got == want, "{what} {dtype} {shape:?} on {threads} threads");
                };
                for ((scan, fold, _), [folds, totals]) in ops.iter().zip(&totals) {
                    same(fold.name(), B::reduce(*fold, &x, &[1]), folds);
                    same(scan.name(), B::scan(*scan, &x, 1), totals);
                }
                for ((fold, _), want) in ends.iter().zip(&folds) {
                    same(fold.name(), B::reduce(*fold, &x, &[1]), want);
                }
                for (fold, want) in [ReduceOp::ArgMax, ReduceOp::ArgMin].into_iter().zip(&places) {
                    same(fold.name(), B::reduce(fold, &x, &[1]), want);
                }
            }
        }
    }
}

#[test]
fn large_integers_agree_with_plain_loops() {
    let name = "backends::large::large_integers_agree_with_plain_loops";
    alone(name, large_integers_agree::<CpuBackend>);
}

/// Float masks are converted to booleans in blocks. Long columns and long rows reach the second block on one
/// thread.
#[test]
fn float_masks_longer_than_a_block_agree() {
    let name = "backends::large::float_masks_longer_than_a_block_agree";
    alone_with(name, &[("SWATH_THREADS", "1")], || {
        let shapes =
            [([20_000, 70], [20_000, 1]), ([2, 20_000], [1, 20_000]), ([7, 3000], [7, 3000])];
        for ([rows, cols], of_mask) in shapes {
            let number = |i: usize| (i % 7) as f32 - 3.0;
            let mask = (0..of_mask[0] * of_mask[1]).map(number).collect();
            let mask = Tensor::<CpuBackend>::from_vec(mask, of_mask).unwrap();
            let count = rows * cols;
            let a: Vec<f32> = (0..count).map(|i| i as f32).collect();
            let x = Tensor::<CpuBackend>::from_vec(a.clone(), (rows, cols)).unwrap();
            let y = Tensor::where_cond(&mask, &x, &x.neg().unwrap()).unwrap();
            let got = y.to_vec::<f32>().unwrap();
            for (at, got) in got.iter().enumerate() {
                let (row, col) = (at / cols, at % cols);
                let of_mask = row.min(of_mask[0] - 1) * of_mask[1] + col.min(of_mask[1] - 1);
                let want = if number(of_mask) == 0.0 { -a[at] } else { a[at] };
                assert_eq!(*got, want, "[{row}, {col}] of [{rows}, {cols}]");
            }
        }
    });
}

/// Fewer rows than threads, each long enough to be split.
#[test]
fn long_rows_without_a_finite_element_agree() {
    let name = "backends::large::long_rows_without_a_finite_element_agree";
    alone_with(name, &[("SWATH_THREADS", "2")], long_rows_without_a_finite_element);
}

fn long_rows_without_a_finite_element() {
    const LEN: usize = 1 << 20;
    for (value, want) in [(f32::NEG_INFINITY, f32::NEG_INFINITY), (f32::INFINITY, f32::INFINITY)] {
        let x = Tensor::<CpuBackend>::full(LEN, value).unwrap();
        assert_eq!(x.logsumexp(None, false).unwrap().item::<f32>().unwrap(), want);
    }
    let mut values = vec![f32::NEG_INFINITY; LEN];
    values[LEN - 5] = 2.5;
    let x = Tensor::<CpuBackend>::from_vec(values, LEN).unwrap();
    assert_eq!(x.logsumexp(None, false).unwrap().item::<f32>().unwrap(), 2.5);
}
