//! Random data with ties, NaN, zeros and infinities against plain definitions: short rows, rows that are sorted by
//! radix, and one that threads share.

use std::cmp::Ordering;

use swath::prelude::*;

type T = Tensor<CpuBackend>;

/// Values of few kinds, and among them special ones.
fn values(n: usize, kinds: i64, seed: u64) -> Vec<f64> {
    let mut rng = Rng::seed(seed);
    let specials = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, -f64::NAN, 1.0, -1.0];
    let draw = |rng: &mut Rng| match rng.below(10) {
        0 => specials[rng.below(8) as usize],
        _ => (rng.below(kinds as u64) as i64 - kinds / 2) as f64 / 4.0,
    };
    (0..n).map(|_| draw(&mut rng)).collect()
}

fn f64s(x: &T) -> Vec<f64> {
    x.to_dtype(DType::F64).unwrap().to_vec().unwrap()
}

fn i64s(x: &T) -> Vec<i64> {
    x.to_vec().unwrap()
}

/// Order of numbers, NaN last.
fn compare(a: f64, b: f64, descending: bool) -> Ordering {
    match (a.is_nan(), b.is_nan()) {
        (false, false) if descending => b.partial_cmp(&a).unwrap(),
        (false, false) => a.partial_cmp(&b).unwrap(),
        (a, b) => a.cmp(&b),
    }
}

/// Checks that `indices` order the elements of `x`, are distinct, and keep equal elements in order.
fn assert_ordered(x: &[f64], indices: &[i64], descending: bool) {
    let mut seen = vec![false; x.len()];
    for &i in indices {
        assert!(!std::mem::replace(&mut seen[i as usize], true), "index {i} twice");
    }
    for pair in indices.windows(2) {
        let [a, b] = [pair[0] as usize, pair[1] as usize];
        let order = compare(x[a], x[b], descending).then(a.cmp(&b));
        assert!(order.is_lt(), "{} at {a} before {} at {b}", x[a], x[b]);
    }
}

fn assert_same(found: &[f64], want: impl IntoIterator<Item = f64>) {
    for (i, (found, want)) in found.iter().zip(want).enumerate() {
        let is_same = found.to_bits() == want.to_bits() || found.is_nan() && want.is_nan();
        assert!(is_same, "element {i}: {found}, not {want}");
    }
}

const LENGTHS: [usize; 8] = [1, 2, 31, 300, 1023, 1024, 5000, 60_000];

#[test]
fn rows_of_every_length_and_dtype_are_sorted() {
    for (seed, n) in LENGTHS.into_iter().enumerate() {
        for kinds in [3, 200, 1 << 40] {
            let x = T::from_vec(values(n, kinds, seed as u64), n).unwrap();
            for dtype in DType::ALL {
                let x = x.to_dtype(dtype).unwrap();
                let wide = f64s(&x);
                for descending in [false, true] {
                    let (sorted, indices) = x.sort(0, descending).unwrap();
                    let indices = i64s(&indices);
                    assert_eq!((indices.len(), sorted.dtype()), (n, dtype));
                    assert_ordered(&wide, &indices, descending);
                    assert_same(&f64s(&sorted), indices.iter().map(|&i| wide[i as usize]));
                }
            }
        }
    }
}

/// More than threads would leave to one of them, in rows that end up in an odd and an even number of parts.
#[test]
fn a_long_row_is_sorted_on_several_threads() {
    for n in [400_000, 1 << 19] {
        for (dtype, kinds) in [(DType::F32, 1 << 30), (DType::F32, 5), (DType::I64, 1 << 50)] {
            let x = T::from_vec(values(n, kinds, 3), n).unwrap().to_dtype(dtype).unwrap();
            let (sorted, indices) = x.sort(0, false).unwrap();
            let (wide, indices) = (f64s(&x), i64s(&indices));
            assert_ordered(&wide, &indices, false);
            assert_same(&f64s(&sorted), indices.iter().map(|&i| wide[i as usize]));
        }
    }
}

/// The first k of a sort, for few and for many of random, ordered and equal elements.
#[test]
fn the_first_elements_are_those_of_a_sort() {
    let rows = |n: usize| {
        let ascending: Vec<f64> = (0..n).map(|i| i as f64).collect();
        let descending: Vec<f64> = ascending.iter().rev().copied().collect();
        let mostly_nan = (0..n).map(|i| if i % 97 == 5 { i as f64 } else { f64::NAN }).collect();
        [values(n, 1 << 40, 1), values(n, 7, 2), ascending, descending, vec![2.0; n], mostly_nan]
    };
    for n in [1, 5, 64, 65, 200, 3000] {
        let x = T::from_vec(rows(n).concat(), (6, n)).unwrap();
        for dtype in [DType::F16, DType::F32, DType::F64, DType::U8, DType::I64, DType::U32] {
            let x = x.to_dtype(dtype).unwrap();
            for descending in [false, true] {
                let all = x.argsort(1, descending).unwrap();
                for k in [1, 2, 10, 64, n / 2, n - 1, n].into_iter().filter(|&k| k <= n) {
                    let (values, indices) =
                        if descending { x.topk(k, 1) } else { x.bottomk(k, 1) }.unwrap();
                    let first = all.narrow(1, 0, k).unwrap();
                    assert_eq!(i64s(&indices), i64s(&first), "{dtype} {n} {k} {descending}");
                    assert_same(&f64s(&values), f64s(&x.gather(1, &first).unwrap()));
                }
            }
        }
    }
}

/// Every axis of every layout gives what its contiguous lines give.
#[test]
fn axes_and_layouts_agree_with_contiguous_lines() {
    let x = T::from_vec(values(3 * 40 * 5, 9, 4), (3, 40, 5)).unwrap();
    let x = x.to_dtype(DType::F32).unwrap();
    let views = [
        x.clone(),
        x.permute(&[2, 0, 1]).unwrap(),
        x.flip(1).unwrap(),
        x.slice(s![.., ..;3, 1..4]).unwrap(),
        x.narrow(0, 1, 1).unwrap().broadcast_to((4, 40, 5)).unwrap(),
        x.narrow(2, 2, 1).unwrap().broadcast_to((3, 40, 6)).unwrap(),
    ];
    type Op = fn(&T, usize) -> Result<(T, T)>;
    let ops: [Op; 6] = [
        |x, axis| x.sort(axis, false),
        |x, axis| x.sort(axis, true),
        |x, axis| x.topk(3, axis),
        |x, axis| x.bottomk(2, axis),
        |x, axis| x.cummax(axis),
        |x, axis| x.cummin(axis),
    ];
    for view in views {
        for axis in 0..3 {
            let lines = view.swap_axes(axis, 2).unwrap().contiguous().unwrap();
            for (i, op) in ops.iter().enumerate() {
                let (values, indices) = op(&view, axis).unwrap();
                let (want, places) = op(&lines, 2).unwrap();
                let turned = |x: &T| x.swap_axes(axis, 2).unwrap();
                assert_same(&f64s(&values), f64s(&turned(&want)));
                assert_eq!(i64s(&indices), i64s(&turned(&places)), "{i} {axis} {}", view.shape());
            }
        }
    }
}

#[test]
fn searches_count_the_elements_before() {
    for (seed, n) in [0usize, 1, 2, 3, 50, 1000].into_iter().enumerate() {
        for dtype in DType::ALL {
            let seed = seed as u64;
            let line = T::from_vec(values(2 * n, 60, seed), (2, n)).unwrap();
            let sorted = line.to_dtype(dtype).unwrap().sort(1, false).unwrap().0;
            let x = T::from_vec(values(2 * 70, 60, seed + 10), (2, 70)).unwrap();
            let x = x.to_dtype(dtype).unwrap().flip(1).unwrap();
            let (wide, rows) = (f64s(&x), f64s(&sorted));
            for right in [false, true] {
                let found =
                    if right { x.searchsorted_right(&sorted) } else { x.searchsorted(&sorted) };
                let want = wide.iter().enumerate().map(|(i, &x)| {
                    let is_before = |&&y: &&f64| match compare(y, x, false) {
                        Ordering::Less => true,
                        order => right && order.is_eq(),
                    };
                    rows[i / 70 * n..][..n].iter().filter(is_before).count() as i64
                });
                assert_eq!(i64s(&found.unwrap()), want.collect::<Vec<_>>(), "{dtype} {n} {right}");
            }
        }
    }
}

#[test]
fn histograms_and_distinct_elements_of_random_data() {
    let x = values(5000, 90, 21);
    let t = T::from_slice(&x, (50, 100)).unwrap();
    let (bins, low, high) = (13, -7.0, 8.5);
    let mut want = vec![0i64; bins];
    for &x in x.iter().filter(|x| (low..=high).contains(*x)) {
        let end = |i: usize| (i as f64).mul_add(high / 13.0 - low / 13.0, low);
        let bin = (0..bins).rev().find(|&i| x >= end(i)).unwrap();
        want[bin] += 1;
    }
    assert_eq!(i64s(&t.histogram(bins, low..high).unwrap()), want);
    for dtype in DType::ALL {
        let t = t.to_dtype(dtype).unwrap();
        let wide = f64s(&t);
        let (values, inverse, counts) = t.unique().unwrap();
        assert_eq!((values.dtype(), inverse.shape()), (dtype, t.shape()));
        let (values, counts, inverse) = (f64s(&values), i64s(&counts), i64s(&inverse));
        assert!(values.windows(2).all(|pair| compare(pair[0], pair[1], false).is_lt()));
        let mut found = vec![0; values.len()];
        for (x, number) in wide.into_iter().zip(inverse) {
            assert!(compare(values[number as usize], x, false).is_eq());
            found[number as usize] += 1;
        }
        assert_eq!(found, counts);
    }
}
