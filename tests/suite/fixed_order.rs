//! Scatter-adds, running totals and reductions of columns on threads add in one order, whatever the number of
//! threads, which each test sets in its own process.

use swath::prelude::*;

use crate::support::{alone, is_sampled};

type T = Tensor<CpuBackend>;

/// Sequential sum of `[above, count, below]` at `index` into zeros `[above, extent, below]`, as bits.
fn plain(index: &[i64], source: &[f32], [above, extent, below]: [usize; 3]) -> Vec<u32> {
    let mut out = vec![0f32; above * extent * below];
    for (i, row) in source.chunks_exact(below).enumerate() {
        let to = i / index.len() * extent + index[i % index.len()] as usize;
        out[to * below..][..below].iter_mut().zip(row).for_each(|(y, x)| *y += x);
    }
    out.iter().map(|y| y.to_bits()).collect()
}

#[test]
fn threads_add_in_the_order_of_the_source() {
    alone("fixed_order::threads_add_in_the_order_of_the_source", || add_on_threads().unwrap());
}

fn add_on_threads() -> Result<()> {
    let mut rng = Rng::seed(9);
    // Wide rows, which are split by columns, and narrow ones, which are split by target rows.
    let cases = [
        [1, 50, 517, 3000],
        [1, 300, 7, 40_000],
        [3, 40, 20, 9000],
        [2, 9, 128, 2000],
        [1, 64, 1, 90_000],
    ];
    for [above, extent, below, count] in cases {
        let index: Vec<i64> = (0..count).map(|i| (i * i % 97 * 31 % extent) as i64).collect();
        let source = T::randn((above, count, below), &mut rng)?;
        let want = plain(&index, &source.to_vec::<f32>()?, [above, extent, below]);
        let index = T::from_vec(index, count)?;
        for threads in [1, 2, 3, 7] {
            swath::runtime::set_threads(threads)?;
            let zeros = T::zeros((above, extent, below), DType::F32)?;
            let got = zeros.index_add(1, &index, &source)?.to_vec::<f32>()?;
            let same = got.iter().zip(&want).all(|(got, want)| got.to_bits() == *want);
            assert!(same, "{above} {extent} {below} {count} on {threads} threads");
            let back = source.index_select(1, &T::from_vec(vec![7i64, 0, 7], 3)?)?;
            assert_eq!(
                back.narrow(1, 0, 1)?.to_vec::<f32>()?,
                source.narrow(1, 7, 1)?.to_vec::<f32>()?
            );
        }
    }
    Ok(())
}

#[test]
fn gather_and_scatter_add_have_the_same_bits_on_any_number_of_threads() {
    alone(
        "fixed_order::gather_and_scatter_add_have_the_same_bits_on_any_number_of_threads",
        || {
            elements_on_threads().unwrap();
        },
    );
}

/// Bits of the values, in row-major order.
fn bits(x: &T) -> Result<Vec<u64>> {
    Ok(x.to_dtype(DType::F64)?.to_vec::<f64>()?.into_iter().map(f64::to_bits).collect())
}

fn elements_on_threads() -> Result<()> {
    let mut rng = Rng::seed(10);
    // Bands of columns of one matrix and of several; the last axis; rows of x beyond the index.
    let cases: [([usize; 3], usize, [usize; 3]); 6] = [
        ([1, 300, 517], 1, [1, 400, 517]),
        ([9, 40, 130], 1, [9, 70, 130]),
        ([3, 200, 130], 1, [2, 300, 130]),
        ([30, 20, 90], 2, [30, 20, 300]),
        ([70, 30, 40], 0, [90, 30, 35]),
        ([4000, 20, 9], 0, [50, 20, 9]),
    ];
    for (shape, axis, wanted) in cases {
        let count: usize = wanted.iter().product();
        let extent = shape[axis];
        let index: Vec<i64> = (0..count).map(|i| (i * i % 1009 * 31 % extent) as i64).collect();
        let position = |i: usize| {
            let mut at = [i / (wanted[1] * wanted[2]), i / wanted[2] % wanted[1], i % wanted[2]];
            at[axis] = index[i] as usize;
            (at[0] * shape[1] + at[1]) * shape[2] + at[2]
        };
        let x = T::randn(shape, &mut rng)?;
        let source = T::randn(wanted, &mut rng)?;
        let named = T::from_vec(index.clone(), wanted)?;
        for dtype in [DType::F32, DType::BF16] {
            let (x, source) = (x.to_dtype(dtype)?, source.to_dtype(dtype)?);
            let wide = |x: &T| x.to_dtype(DType::F32)?.to_vec::<f32>();
            let (values, more) = (wide(&x)?, wide(&source)?);
            let picked: Vec<f32> = (0..count).map(|i| values[position(i)]).collect();
            let mut sums = values.clone();
            (0..count).for_each(|i| sums[position(i)] += more[i]);
            let (picked, sums) = (T::from_vec(picked, wanted)?, T::from_vec(sums, shape)?);
            let (picked, sums) = (bits(&picked)?, bits(&sums.to_dtype(dtype)?)?);
            for threads in [1, 2, 3, 5] {
                swath::runtime::set_threads(threads)?;
                let context = format!("{dtype} {shape:?} {axis} on {threads} threads");
                assert!(bits(&x.gather(axis, &named)?)? == picked, "gather {context}");
                let got = x.scatter_add(axis, &named, &source)?;
                assert!(bits(&got)? == sums, "scatter_add {context}");
            }
        }
    }
    Ok(())
}

#[test]
fn gradients_of_16_bit_tables_are_sums_rounded_once() {
    for (dtype, want) in [(DType::BF16, 4992.0), (DType::F16, 5000.0)] {
        let ids = T::zeros(5000, DType::I64).unwrap();
        let table = T::zeros((2, 1), dtype).unwrap().requires_grad();
        let sum = |y: T| -> Vec<f64> {
            let g = y.sum(None, false).unwrap().backward().unwrap();
            let g = g.wrt(&table).unwrap().to_dtype(DType::F64).unwrap();
            g.to_vec::<f64>().unwrap()
        };
        assert_eq!(sum(table.embedding(&ids).unwrap()), [want, 0.0], "{dtype}");
        assert_eq!(sum(table.index_select(0, &ids).unwrap()), [want, 0.0], "{dtype}");
        let column = ids.unsqueeze(1).unwrap();
        assert_eq!(sum(table.gather(0, &column).unwrap()), [want, 0.0], "{dtype}");
        let ones = T::ones((5000, 1), dtype).unwrap();
        let added = table.detach().index_add(0, &ids, &ones).unwrap();
        assert_eq!(bits(&added).unwrap(), [want.to_bits(), 0], "{dtype}");
    }
}

#[test]
fn running_totals_have_the_same_bits_on_any_number_of_threads() {
    alone("fixed_order::running_totals_have_the_same_bits_on_any_number_of_threads", || {
        total_on_threads().unwrap();
    });
}

fn total_on_threads() -> Result<()> {
    let x = T::randn((3, 400, 700), &mut Rng::seed(2))?;
    let of = |threads| -> Result<Vec<u32>> {
        swath::runtime::set_threads(threads)?;
        let first = x.reshape((1200, 700))?;
        let all = [x.cumsum(-1)?, x.cumsum(1)?, first.cumsum(0)?, first.cumprod(0)?];
        let mut bits = Vec::new();
        for y in all {
            bits.extend(y.to_vec::<f32>()?.into_iter().map(f32::to_bits));
        }
        Ok(bits)
    };
    let want = of(1)?;
    for threads in [2, 3, 7] {
        assert!(of(threads)? == want, "{threads} threads");
    }
    Ok(())
}

#[test]
fn totals_down_large_matrices_have_the_same_bits_on_any_number_of_threads() {
    alone(
        "fixed_order::totals_down_large_matrices_have_the_same_bits_on_any_number_of_threads",
        || {
            total_down_columns().unwrap();
        },
    );
}

/// Few columns, for which only rows can be split, and many; products with factors near 1, which stay
/// accurate.
fn total_down_columns() -> Result<()> {
    for shape in [[4096, 1024], [40_000, 3], [70_000, 1], [3000, 70]] {
        let x = T::randn(shape, &mut Rng::seed(3))?;
        let factors = x.mul_scalar(1e-3)?.add_scalar(1.0)?;
        for dtype in [DType::F32, DType::F64, DType::BF16, DType::I64] {
            let scaled = if dtype == DType::I64 { x.mul_scalar(100.0)? } else { x.clone() };
            let (x, factors) = (scaled.to_dtype(dtype)?, factors.to_dtype(dtype)?);
            let of = |threads| -> Result<[Vec<u64>; 2]> {
                swath::runtime::set_threads(threads)?;
                let (sums, products) = (x.cumsum(0)?, factors.cumprod(0)?);
                let exact = sums.slice(s![-1])?;
                if dtype == DType::I64 {
                    assert_eq!(exact.to_vec::<i64>()?, x.sum_axis(0, false)?.to_vec::<i64>()?);
                }
                Ok([bits(&sums)?, bits(&products)?])
            };
            let want = of(1)?;
            for threads in [2, 3, 5] {
                assert!(of(threads)? == want, "{dtype} {shape:?} on {threads} threads");
            }
        }
    }
    Ok(())
}

#[test]
fn reductions_of_columns_have_the_same_bits_on_any_number_of_threads() {
    alone("fixed_order::reductions_of_columns_have_the_same_bits_on_any_number_of_threads", || {
        reduce_columns().unwrap();
    });
}

/// Few columns of so many rows that threads split the rows for every dtype. In the first columns the results
/// (extrema with signed zeros, NaN, indices, any, all) are decided near the end, in another part than the
/// start.
fn reduce_columns() -> Result<()> {
    for (s, [rows, cols]) in [[6000, 750], [44_000, 101], [750_001, 6]].into_iter().enumerate() {
        let late = rows - 5;
        let value = |row: usize, col: usize, x: f32| match (col, row) {
            (0, _) => {
                if row == late {
                    0.0
                } else {
                    -0.0
                }
            }
            (1, 4500) => f32::NAN,
            (1, _) if row == late => f32::NAN,
            (2, _) if row == 3000 || row == late => 100.0,
            (2, _) => x.abs().min(99.0) + 1.0,
            (3, _) => {
                if row == late {
                    1.0
                } else {
                    0.0
                }
            }
            (4, _) => {
                if row == late {
                    0.0
                } else {
                    2.0
                }
            }
            _ => x,
        };
        let x = T::randn((rows, cols), &mut Rng::seed(4))?.mul_scalar(3.0)?.to_vec::<f32>()?;
        let at = |(i, x): (usize, &f32)| value(i / cols, i % cols, *x);
        let x = T::from_vec(x.iter().enumerate().map(at).collect::<Vec<_>>(), (rows, cols))?;
        let dtypes = [DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64, DType::U8];
        // By default every second dtype and two of the numbers of threads, rotating with the shape.
        for (d, dtype) in dtypes.into_iter().enumerate().filter(|(d, _)| is_sampled(s + d, 2)) {
            // Odd integers, and floats near 1, so that no product is 0 or overflows.
            let factor = |i: usize| match dtype.is_float() {
                true => 1.0 + (i % 7) as f32 / 1024.0 - 3.0 / 1024.0,
                false => (i % 7 * 2 + 1) as f32,
            };
            let factors =
                T::from_vec((0..rows * cols).map(factor).collect::<Vec<_>>(), (rows, cols))?;
            let wider = |x: &T| T::cat(&[&x.narrow(1, 0, 2)?, x, &x.narrow(1, 0, 1)?], 1);
            let parts = |x: &T| wider(&x.to_dtype(dtype)?)?.narrow(1, 2, cols);
            let (x, factors) = (parts(&x)?, parts(&factors)?);
            let of = |x: &T, factors: &T, axis: isize| -> Result<Vec<u64>> {
                let mut all = vec![x.sum_axis(axis, false)?, factors.prod_axis(axis, false)?];
                all.extend([x.max_axis(axis, false)?, x.min_axis(axis, false)?]);
                all.extend([x.argmax(axis, false)?, x.argmin(axis, false)?]);
                all.extend([x.any_axis(axis, false)?, x.all_axis(axis, false)?]);
                if dtype.is_float() {
                    all.extend([x.mean_axis(axis, false)?, x.variance_axis(axis, false, 1)?]);
                    all.push(x.std_axis(axis, false, 0)?);
                    for p in [0.0, 1.0, 2.0, f64::INFINITY, f64::NEG_INFINITY] {
                        all.push(x.norm_axis(p, axis, false)?);
                    }
                }
                let mut found = Vec::new();
                for y in all {
                    let nan = f64::NAN.to_bits();
                    let of_nan = |bits: u64| if f64::from_bits(bits).is_nan() { nan } else { bits };
                    found.extend(bits(&y)?.into_iter().map(of_nan));
                }
                Ok(found)
            };
            swath::runtime::set_threads(1)?;
            let want = of(&x.t()?.contiguous()?, &factors.t()?.contiguous()?, 1)?;
            let all = [1, 2, 3, 7].into_iter().enumerate();
            for (_, threads) in all.filter(|(i, _)| is_sampled((s + d) / 2 + i, 2)) {
                swath::runtime::set_threads(threads)?;
                assert!(of(&x, &factors, 0)? == want, "{dtype} {rows} {cols} on {threads} threads");
            }
        }
    }
    Ok(())
}
