//! Tensors large enough to be split over threads, with one op of each kind.

use swath::ops::{BinaryOp, CompareOp, ReduceOp, ScanOp, UnaryOp};
use swath::{Arg, Backend, CpuBackend, DType, HostData, Scalar, Tensor, TensorData};

use crate::support::agree::{Disagreements, Reference, Tested, Tolerance, among};
use crate::support::inputs::{Arrangement, Fill, Input, Rng};
use crate::support::{alone, alone_with};

/// Over a million elements; no extent is a multiple of a vector or a block.
const SHAPE: [usize; 2] = [1031, 1019];

const EXACT: Tolerance = Tolerance::EXACT;

fn large_tensors_agree<B: Tested>(arrangement: Arrangement, other: Arrangement) {
    let mut rng = Rng(arrangement as u64);
    let mut seen = Disagreements::default();
    let fill = Fill::plain(0.5, 2.0);
    let mut input =
        |dtype, arrangement| Input::new(dtype, SHAPE, arrangement, || fill.draw(&mut rng, dtype));
    let (a, b) = (input(DType::F32, arrangement), input(DType::F32, other));
    let (x, y) = (a.on::<B>(), b.on::<B>());
    let (u, v) = (a.on::<Reference>(), b.on::<Reference>());
    let mut compare = |op: &str, got, want, tolerance: &Tolerance| {
        seen.compare::<B>(|| format!("{op} {arrangement:?} {other:?}"), got, want, tolerance);
    };

    let (got, want) = (B::unary(UnaryOp::Exp, &x), Reference::unary(UnaryOp::Exp, &u));
    compare("exp", got, want, &Tolerance::ulp(1));
    let want = || Reference::binary(BinaryOp::Sub, &u, &v);
    compare("sub", B::binary(BinaryOp::Sub, &x, &y), want(), &EXACT);
    let given_away = (Arg::Owned(a.on::<B>()), Arg::Owned(y.clone()));
    compare("sub, owned", B::binary(BinaryOp::Sub, given_away.0, given_away.1), want(), &EXACT);
    let (less, smaller) =
        (B::compare(CompareOp::Lt, &x, &y), Reference::compare(CompareOp::Lt, &u, &v));
    compare("lt", less.clone(), smaller.clone(), &EXACT);
    let got = B::where_cond(&less.unwrap(), &x, &y);
    compare("where", got, Reference::where_cond(&smaller.unwrap(), &u, &v), &EXACT);
    compare("cast", B::cast(&x, DType::F16), Reference::cast(&u, DType::F16), &EXACT);
    compare("contiguous", B::contiguous(&x), Ok(u.clone()), &EXACT);
    compare("cat", B::cat(&[&x, &y], 1), Reference::cat(&[&u, &v], 1), &EXACT);
    for axes in [&[0][..], &[1], &[0, 1]] {
        // All terms are positive: u Σ|x| is half an ULP of the sum.
        let (got, want) =
            (B::reduce(ReduceOp::Sum, &x, axes), Reference::reduce(ReduceOp::Sum, &u, axes));
        compare("sum", got, want, &Tolerance::ulp(1));
        let (got, want) =
            (B::reduce(ReduceOp::Max, &x, axes), Reference::reduce(ReduceOp::Max, &u, axes));
        compare("max", got, want, &EXACT);
    }
    let index = Input::new(DType::I64, [2000, SHAPE[1]], Arrangement::RepeatedColumns, || {
        Scalar::Int(rng.below(SHAPE[0]) as i64)
    });
    let (rows, lines) = (index.on::<B>(), index.on::<Reference>());
    let (got, want) = (B::gather(&x, 0, &rows), Reference::gather(&u, 0, &lines));
    compare("gather", got.clone(), want.clone(), &EXACT);
    let (ours, theirs) = (got.unwrap(), want.unwrap());
    assert_eq!(ours.shape(), theirs.shape());
    let got = B::scatter_add(&y, 0, &rows, &ours);
    compare("scatter_add", got, Reference::scatter_add(&v, 0, &lines, &theirs), &EXACT);
    seen.finish();
}

pub fn large_contiguous_tensors_agree<B: Tested>() {
    large_tensors_agree::<B>(Arrangement::Contiguous, Arrangement::RepeatedRows);
}

pub fn large_permuted_tensors_agree<B: Tested>() {
    large_tensors_agree::<B>(Arrangement::Permuted, Arrangement::Contiguous);
}

pub fn large_tensors_of_mixed_arrangement_agree<B: Tested>() {
    large_tensors_agree::<B>(Arrangement::Mixed, Arrangement::Stepped);
}

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
                    DType::I64 => rng.next() as i64 | 1,
                    DType::U8 => rng.next() as i64 & 255 | 1,
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

/// Concatenates runs of every small width, in more rows than are copied at a time.
pub fn cat_of_narrow_tensors_agrees<B: Tested>() {
    const ROWS: usize = 4099;
    for dtype in among::<B>(&[DType::U8, DType::BF16, DType::F32, DType::I64]) {
        for width in (0..=20).chain([31, 32, 33, 48, 63, 64, 65]) {
            let widths = [width, 1, 3, width];
            let value = |part: usize, i: usize| ((part * 37 + i * 11) % 101) as f32;
            let parts: Vec<Tensor<B>> = (0..4)
                .map(|part| {
                    let values = (0..ROWS * widths[part]).map(|i| value(part, i)).collect();
                    let x = Tensor::from_vec(values, [ROWS, widths[part]]).unwrap();
                    x.to_dtype(dtype).unwrap()
                })
                .collect();
            let joined = Tensor::cat(&parts.iter().collect::<Vec<_>>(), 1).unwrap();
            let found = joined.to_dtype(DType::F32).unwrap().to_vec::<f32>().unwrap();
            let rows = (0..ROWS).flat_map(|row| (0..4).map(move |part| (row, part)));
            let want = rows.flat_map(|(row, part)| {
                let from = row * widths[part];
                (from..from + widths[part]).map(move |i| value(part, i))
            });
            assert!(want.eq(found), "{dtype}, width {width}");
        }
    }
}
