//! Definitions by plain loops, on data of every dtype with ties and special values, in several layouts, on two backends.

use swath::prelude::*;

type T = Tensor<CpuBackend>;

/// Small numbers with ties; of floats also NaN, infinities and both zeros.
fn drawn(shape: impl Into<Shape>, dtype: DType, seed: u64) -> T {
    let shape = shape.into();
    let numbers = T::randint(shape, 0..7, &mut Rng::seed(seed)).unwrap();
    if !dtype.is_float() {
        return numbers.to_dtype(dtype).unwrap();
    }
    let specials = [-0.0, 0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.5, -2.0];
    let values = numbers.to_vec::<i64>().unwrap().into_iter().map(|i| specials[i as usize]);
    T::from_vec(values.collect(), shape).unwrap().to_dtype(dtype).unwrap()
}

fn floats<B: Backend>(x: &Tensor<B>) -> Vec<f64> {
    x.to_dtype(DType::F64).unwrap().to_vec().unwrap()
}

fn same(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b || a.is_nan() && b.is_nan())
}

/// The tensor, and the same values with another layout.
fn layouts(x: &T) -> [T; 2] {
    let last = x.rank() - 1;
    [x.clone(), x.flip(last).unwrap().contiguous().unwrap().flip(last).unwrap()]
}

#[test]
fn membership_in_small_and_large_sets() {
    for dtype in DType::ALL {
        for members in [0usize, 1, 2, 5, 16, 17, 40] {
            let (x, test) = (drawn((3, 1500), dtype, 1), drawn(members, dtype, 9 + members as u64));
            let numbers = floats(&test);
            let want: Vec<bool> = floats(&x).iter().map(|x| numbers.contains(x)).collect();
            for x in layouts(&x) {
                assert_eq!(x.isin(&test).unwrap().to_vec::<bool>().unwrap(), want, "{dtype}");
            }
            let there = |x: &T| x.to_backend::<ReferenceBackend>().unwrap();
            let found = there(&x).isin(&there(&test)).unwrap();
            assert_eq!(found.to_vec::<bool>().unwrap(), want, "{dtype}");
        }
    }
}

/// Reduces the sources of each element of a vector in their order.
fn reduced(x: &[f64], index: &[i64], source: &[f64], mode: ReduceMode, own: bool) -> Vec<f64> {
    let reduce = |(i, &x): (usize, &f64)| {
        let mut parts: Vec<f64> =
            index.iter().zip(source).filter(|(at, _)| **at == i as i64).map(|(_, &s)| s).collect();
        if own || parts.is_empty() {
            parts.insert(0, x);
        }
        let extremum = |prefers: fn(&f64, &f64) -> bool| {
            parts.iter().copied().reduce(|a, b| if a.is_nan() || prefers(&a, &b) { a } else { b })
        };
        match mode {
            ReduceMode::Sum => parts.iter().sum(),
            ReduceMode::Mean => parts.iter().sum::<f64>() / parts.len() as f64,
            ReduceMode::Prod => parts.iter().product(),
            ReduceMode::Max => extremum(|a, b| a > b).unwrap(),
            ReduceMode::Min => extremum(|a, b| a < b).unwrap(),
        }
    };
    x.iter().enumerate().map(reduce).collect()
}

#[test]
fn reductions_at_indices_of_every_dtype() {
    use ReduceMode::*;
    let dtypes = DType::ALL.into_iter().filter(|dtype| dtype.has_arithmetic());
    for (seed, dtype) in dtypes.enumerate() {
        let (n, m) = (5usize, 19usize);
        let x = drawn(n, dtype, seed as u64);
        // Powers of two, whose products and sums are exact, few enough for a byte.
        let powers = T::randint(m, 0..2, &mut Rng::seed(3)).unwrap().add(1).unwrap();
        let index = T::randint(m, 0..n as i64 - 1, &mut Rng::seed(4)).unwrap();
        for (mode, source) in [
            (Sum, powers.to_dtype(dtype).unwrap()),
            (Prod, powers.to_dtype(dtype).unwrap()),
            (Max, drawn(m, dtype, 70)),
            (Min, drawn(m, dtype, 71)),
        ] {
            for own in [true, false] {
                let at = index.to_vec::<i64>().unwrap();
                let want = reduced(&floats(&x), &at, &floats(&source), mode, own);
                for source in layouts(&source) {
                    let y = x.scatter_reduce(0, &index, &source, mode, own).unwrap();
                    assert_eq!(y.dtype(), dtype);
                    if dtype.is_float() || want.iter().all(|&y| (0.0..100.0).contains(&y)) {
                        let found = floats(&y);
                        assert!(same(&found, &want), "{mode:?} {own} {dtype}: {found:?}, {want:?}");
                    }
                    let there = |x: &T| x.to_backend::<ReferenceBackend>().unwrap();
                    let (index, source) = (there(&index), there(&source));
                    let reference = there(&x).scatter_reduce(0, &index, &source, mode, own);
                    assert!(same(&floats(&reference.unwrap()), &floats(&y)), "{mode:?} {dtype}");
                }
            }
        }
    }
}

#[test]
fn long_groups_of_a_matrix() {
    let mut rng = Rng::seed(5);
    let index = T::randint((600, 3), 0..4, &mut rng).unwrap();
    let source = T::rand((600, 3), 0.99..1.01, &mut rng).unwrap().to_dtype(DType::F64).unwrap();
    let x = T::rand((4, 5), 0.5..2.0, &mut rng).unwrap().to_dtype(DType::F64).unwrap();
    for mode in [ReduceMode::Mean, ReduceMode::Prod, ReduceMode::Max, ReduceMode::Min] {
        let y = x.scatter_reduce(0, &index, &source, mode, true).unwrap();
        for column in 0..5 {
            let of = |x: &T| floats(&x.narrow(1, column, 1).unwrap());
            let want = match column {
                0..3 => {
                    let at = index.narrow(1, column, 1).unwrap().reshape(-1).unwrap();
                    reduced(&of(&x), &at.to_vec::<i64>().unwrap(), &of(&source), mode, true)
                }
                // The index has fewer columns.
                _ => of(&x),
            };
            for (y, want) in of(&y).iter().zip(want) {
                assert!((y - want).abs() < 1e-13 * want, "{mode:?}: {y}, {want}");
            }
        }
    }
}

#[test]
fn distinct_elements_and_runs_of_every_dtype() {
    for dtype in DType::ALL {
        let x = drawn((40, 2), dtype, 21);
        let values = floats(&x);
        let rows: Vec<&[f64]> = values.chunks(2).collect();
        for x in layouts(&x) {
            let unique = x.unique_along(0).unwrap();
            let kinds = floats(&unique.values);
            let inverse = unique.inverse.to_vec::<i64>().unwrap();
            for (row, &kind) in rows.iter().zip(&inverse) {
                assert!(same(row, &kinds[kind as usize * 2..][..2]), "{dtype}");
            }
            let firsts = unique.indices.to_vec::<i64>().unwrap();
            let counts = unique.counts.to_vec::<i64>().unwrap();
            for (kind, (&first, &count)) in firsts.iter().zip(&counts).enumerate() {
                let members = inverse.iter().filter(|&&i| i == kind as i64).count();
                assert_eq!(count as usize, members);
                let before = &inverse[..first as usize];
                assert!(inverse[first as usize] == kind as i64 && !before.contains(&(kind as i64)));
            }
            // In lexicographic order, where NaN is the largest number.
            let key = |row: &[f64]| {
                let number = |&x: &f64| if x.is_nan() { (true, 0.0) } else { (false, x) };
                row.iter().map(number).collect::<Vec<_>>()
            };
            assert!(kinds.chunks(2).is_sorted_by(|a, b| key(a) < key(b)));
            let flat = x.unique_with_indices().unwrap();
            let runs = x.unique_consecutive(None).unwrap();
            for unique in [flat, runs] {
                let numbers = unique.inverse.to_vec::<i64>().unwrap();
                let again = unique.values.index_select(0, &unique.inverse.reshape(-1).unwrap());
                assert!(same(&floats(&again.unwrap()), &values), "{dtype}");
                assert_eq!(unique.counts.sum_all().unwrap().item::<i64>().unwrap(), 80);
                let firsts = unique.indices.to_vec::<i64>().unwrap();
                for (kind, &first) in firsts.iter().enumerate() {
                    let position = numbers.iter().position(|&i| i == kind as i64);
                    assert_eq!(position, Some(first as usize));
                }
            }
        }
        let there = x.to_backend::<ReferenceBackend>().unwrap().unique_along(-2).unwrap();
        assert!(same(&floats(&there.values), &floats(&x.unique_along(0).unwrap().values)));
    }
}

#[test]
fn frequent_elements_and_medians_of_every_dtype() {
    for dtype in DType::ALL {
        let x = drawn((6, 9), dtype, 33);
        for x in layouts(&x) {
            let (modes, at) = x.mode(1, false).unwrap();
            let (middles, places) = x.nanmedian(1, false).unwrap();
            let (modes, middles) = (floats(&modes), floats(&middles));
            let [at, places] = [at, places].map(|at| at.to_vec::<i64>().unwrap());
            for (i, row) in floats(&x).chunks(9).enumerate() {
                let count = |x: f64| row.iter().filter(|y| **y == x).count();
                let best = row.iter().map(|&x| count(x)).max().unwrap();
                let winners = row.iter().copied().filter(|&x| count(x) == best);
                let smallest = winners.reduce(f64::min).unwrap();
                assert_eq!(modes[i], smallest, "{dtype}");
                assert_eq!(row.iter().rposition(|&x| x == smallest), Some(at[i] as usize));
                let mut numbers: Vec<f64> = row.iter().copied().filter(|x| !x.is_nan()).collect();
                numbers.sort_by(f64::total_cmp);
                assert_eq!(middles[i], numbers[(numbers.len() - 1) / 2]);
                assert_eq!(row[places[i] as usize], middles[i]);
            }
        }
        let there = x.to_backend::<ReferenceBackend>().unwrap();
        let [a, b] = [there.mode(0, true).unwrap().0, there.nanmedian(0, true).unwrap().0];
        assert!(same(&floats(&a), &floats(&x.mode(0, true).unwrap().0)), "{dtype}");
        assert!(same(&floats(&b), &floats(&x.nanmedian(0, true).unwrap().0)), "{dtype}");
    }
}

#[test]
fn repetitions_of_every_dtype() {
    for dtype in DType::ALL {
        let x = drawn((2, 3, 2), dtype, 40);
        for (counts, each) in [(tensor![i64; 2, 0, 3], [2, 0, 3]), (tensor![i64; 2], [2; 3])] {
            for x in layouts(&x) {
                let y = x.repeat_interleave(&counts, 1).unwrap();
                let want: Vec<f64> = (0..2)
                    .flat_map(|i| (0..3).flat_map(move |j| vec![(i, j); each[j]]))
                    .flat_map(|(i, j)| floats(&x.narrow(0, i, 1).unwrap().narrow(1, j, 1).unwrap()))
                    .collect();
                assert!(same(&floats(&y), &want), "{dtype}");
                assert_eq!(y.dims(), [2, each.iter().sum::<usize>(), 2]);
            }
        }
    }
}

#[test]
fn cumulative_logarithms_of_every_float() {
    let mut rng = Rng::seed(8);
    let x = T::rand((3, 130), -30.0..30.0, &mut rng).unwrap();
    for dtype in DType::ALL.into_iter().filter(|dtype| dtype.is_float()) {
        let x = x.to_dtype(dtype).unwrap();
        let y = x.logcumsumexp(1).unwrap();
        assert_eq!(y.dtype(), dtype);
        let (x, y) = (floats(&x), floats(&y));
        let precision = [(DType::F64, 1e-14), (DType::F32, 6e-8), (DType::F16, 5e-4)];
        let precision = precision.iter().find(|(of, _)| *of == dtype).map_or(4e-3, |p| p.1);
        for (x, y) in x.chunks(130).zip(y.chunks(130)) {
            let mut sum = 0.0;
            for (x, y) in x.iter().zip(y) {
                sum += x.exp();
                let want = sum.ln();
                assert!(
                    (y - want).abs() <= precision * want.abs().max(1.0),
                    "{dtype}: {y}, {want}"
                );
            }
        }
    }
}
