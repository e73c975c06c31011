//! Integers that are computed as others, `I8`, `I16`, `U16` and `U64`, against loops in `i128`; conversions between
//! all dtypes against NumPy's.

use swath::prelude::*;
use swath::{ReferenceBackend, s};

type T = Tensor<CpuBackend>;

const STORED: [DType; 4] = [DType::I8, DType::I16, DType::U16, DType::U64];

/// Numbers modulo the size of `dtype`.
fn of(dtype: DType, bits: &[u64]) -> T {
    let bytes: Vec<u8> =
        bits.iter().flat_map(|x| x.to_le_bytes()[..dtype.size()].to_vec()).collect();
    T::from_bytes(dtype, bits.len(), &bytes).unwrap()
}

fn bits(x: &T) -> Vec<u64> {
    let x = x.contiguous().unwrap();
    let of_one =
        |bytes: &[u8]| bytes.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte));
    x.as_bytes().unwrap().chunks(x.dtype().size()).map(of_one).collect()
}

fn values(x: &T) -> Vec<i128> {
    let shift = 128 - 8 * x.dtype().size() as u32;
    let signed =
        !matches!(x.dtype(), DType::U8 | DType::U16 | DType::U32 | DType::U64 | DType::Bool);
    let value = |bits: u64| match signed {
        true => i128::from(bits) << shift >> shift,
        false => bits.into(),
    };
    bits(x).into_iter().map(value).collect()
}

/// Numbers of all sizes, some of them equal.
fn numbers(count: usize, mut seed: u64) -> Vec<u64> {
    let mut next = || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        seed >> 33
    };
    (0..count)
        .map(|_| match next() % 4 {
            0 => [0, 1, u64::MAX, 1 << 63, (1 << 63) - 1, 127, 128, 32768][next() as usize % 8],
            1 => next() % 5,
            _ => next() << 33 ^ next(),
        })
        .collect()
}

#[test]
fn conversions_are_those_of_numpy() {
    let mut pairs = 0;
    for line in include_str!("../vectors/conversions.txt").lines() {
        let mut words = line.split(' ');
        let mut dtype = || {
            let name = words.next().unwrap();
            DType::ALL.into_iter().find(|dtype| dtype.name() == name).unwrap()
        };
        let (from, to) = (dtype(), dtype());
        let hex = |word: &str| u64::from_str_radix(word, 16).unwrap();
        let (given, wanted): (Vec<u64>, Vec<&str>) =
            words.map(|pair| pair.split_once(':').map(|(x, y)| (hex(x), y)).unwrap()).unzip();
        // Short, and longer than the blocks of kernels.
        for repeats in [1, 60] {
            let x = of(from, &given.repeat(repeats));
            let y = x.to_dtype(to).unwrap();
            let reference = x.to_backend::<ReferenceBackend>().unwrap().to_dtype(to).unwrap();
            let reference = reference.to_backend::<CpuBackend>().unwrap();
            for y in [y, reference] {
                let is_nan = values(&y.isnan().unwrap());
                for (i, got) in bits(&y).into_iter().enumerate() {
                    let (x, want) = (given[i % given.len()], wanted[i % given.len()]);
                    let agrees = if want == "nan" { is_nan[i] == 1 } else { got == hex(want) };
                    assert!(agrees, "{from} {x:x} to {to}: {got:x}, not {want}");
                }
            }
        }
        pairs += 1;
    }
    assert_eq!(pairs, DType::ALL.len().pow(2));
}

#[test]
fn elements_are_ordered_as_numbers() {
    for (dtype, n) in STORED.into_iter().flat_map(|dtype| [1, 2, 7, 1000].map(|n| (dtype, n))) {
        let (x, y) = (of(dtype, &numbers(n, 1)), of(dtype, &numbers(n, 2)));
        let (a, b) = (values(&x), values(&y));
        let each = |f: fn(i128, i128) -> i128| -> Vec<i128> {
            a.iter().zip(&b).map(|(&a, &b)| f(a, b)).collect()
        };
        assert_eq!(values(&x.lt(&y).unwrap()), each(|a, b| (a < b).into()), "{dtype}");
        assert_eq!(values(&x.ge(&y).unwrap()), each(|a, b| (a >= b).into()), "{dtype}");
        assert_eq!(values(&x.eq(&y).unwrap()), each(|a, b| (a == b).into()), "{dtype}");
        let least = a.iter().min().unwrap();
        let equal: Vec<i128> = a.iter().map(|a| (a == least).into()).collect();
        assert_eq!(values(&x.eq(x.min(None, true).unwrap()).unwrap()), equal, "{dtype}");
        assert_eq!(values(&x.maximum(&y).unwrap()), each(i128::max), "{dtype}");
        assert_eq!(values(&x.minimum(&y).unwrap()), each(i128::min), "{dtype}");
        assert_eq!(values(&x.max(None, false).unwrap()), [*a.iter().max().unwrap()], "{dtype}");
        let both = T::stack(&[&x, &y], 0).unwrap();
        assert_eq!(values(&both.max(Some(&[0]), false).unwrap()), each(i128::max), "{dtype}");
        assert_eq!(values(&both.argmin(0, false).unwrap()), each(|a, b| (b < a).into()), "{dtype}");
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by_key(|&i| a[i]);
        let sorted: Vec<i128> = order.iter().map(|&i| a[i]).collect();
        let (got, at) = x.sort(0, false).unwrap();
        assert_eq!((values(&got), got.dtype()), (sorted.clone(), dtype));
        assert_eq!(values(&at), order.iter().map(|&i| i as i128).collect::<Vec<_>>());
        let places = |x: &i128| sorted.partition_point(|sorted| sorted < x) as i128;
        let wanted: Vec<i128> = b.iter().map(places).collect();
        assert_eq!(values(&y.searchsorted(&got).unwrap()), wanted, "{dtype}");
        let (top, _) = x.topk(n.min(3), 0).unwrap();
        assert_eq!(values(&top), sorted.iter().rev().take(3).copied().collect::<Vec<_>>());
        let mut largest = a.clone();
        (1..n).for_each(|i| largest[i] = largest[i].max(largest[i - 1]));
        assert_eq!(values(&x.cummax(0).unwrap().0), largest, "{dtype}");
    }
}

#[test]
fn elements_are_moved_by_their_size() {
    for dtype in STORED {
        let (x, y) = (of(dtype, &numbers(12, 3)), of(dtype, &numbers(12, 4)));
        let (a, b) = (values(&x), values(&y));
        let picked = |at: &[usize]| -> Vec<i128> { at.iter().map(|&i| a[i]).collect() };
        assert_eq!(values(&T::cat(&[&x, &y], 0).unwrap()), [&a[..], &b].concat());
        let at = tensor![i64; 11, 0, -1, 3];
        assert_eq!(values(&x.gather(0, &at).unwrap()), picked(&[11, 0, 11, 3]), "{dtype}");
        assert_eq!(values(&x.index_select(0, &at).unwrap()), picked(&[11, 0, 11, 3]), "{dtype}");
        assert_eq!(values(&x.slice(s![1..9;3]).unwrap()), picked(&[1, 4, 7]), "{dtype}");
        assert_eq!(values(&x.flip(0).unwrap()), a.iter().rev().copied().collect::<Vec<_>>());
        let turned = x.reshape((3, 4)).unwrap().t().unwrap();
        let wanted: Vec<usize> = (0..12).map(|i| i % 3 * 4 + i / 3).collect();
        assert_eq!(values(&turned), picked(&wanted), "{dtype}");
        assert_eq!(values(&x.repeat([2]).unwrap()), [&a[..], &a].concat(), "{dtype}");
        let mask = x.gt(&y).unwrap();
        let chosen: Vec<i128> = a.iter().zip(&b).map(|(&a, &b)| a.max(b)).collect();
        assert_eq!(values(&T::where_cond(&mask, &x, &y).unwrap()), chosen, "{dtype}");
        // As a mask and as indices.
        let nonzero: Vec<i128> =
            a.iter().zip(&b).map(|(&a, &b)| if a == 0 { b } else { a }).collect();
        assert_eq!(values(&T::where_cond(&x, &x, &y).unwrap()), nonzero, "{dtype}");
        assert_eq!(values(&x.any(None, false).unwrap()), [1], "{dtype}");
        assert_eq!(values(&x.all(None, false).unwrap()), [(!a.contains(&0)).into()], "{dtype}");
        assert_eq!(values(&x.gather(0, &of(dtype, &[2, 11])).unwrap()), picked(&[2, 11]));
        let text = format!("{x}");
        assert!(a.iter().all(|x| text.contains(&x.to_string())), "{text}");
        for shape in [vec![0], vec![0, 3], vec![1, 1, 1], vec![]] {
            let x = T::full(shape.clone(), 3u8).unwrap().to_dtype(dtype).unwrap();
            assert_eq!(values(&x.sum(None, false).unwrap()), [3 * x.numel() as i128]);
            assert_eq!(x.to_dtype(DType::F16).unwrap().dims(), shape);
        }
    }
}

#[test]
fn sums_are_i64_modulo_its_size() {
    for dtype in STORED {
        let x = of(dtype, &numbers(999, 5));
        let wrapped = |x: i128| i128::from(x as i64);
        let total = x.sum(None, false).unwrap();
        assert_eq!(
            (total.dtype(), values(&total)),
            (DType::I64, vec![wrapped(values(&x).iter().sum())])
        );
        let mut sum = 0;
        let sums: Vec<i128> = values(&x).iter().map(|x| (sum = wrapped(sum + x), sum).1).collect();
        assert_eq!(values(&x.cumsum(0).unwrap()), sums, "{dtype}");
        let product = values(&x).iter().fold(1i64, |product, &x| product.wrapping_mul(x as i64));
        assert_eq!(values(&x.prod(None, false).unwrap()), [product.into()], "{dtype}");
    }
}

#[test]
fn large_numbers_are_neither_rounded_nor_negative() {
    let x = tensor![u64; u64::MAX, 1 << 63, 7];
    assert_eq!(x.slice(s![0]).unwrap().item::<u64>().unwrap(), u64::MAX);
    assert_eq!(x.to_vec::<u64>().unwrap(), [u64::MAX, 1 << 63, 7]);
    assert_eq!(values(&x.eq(u64::MAX).unwrap()), [1, 0, 0]);
    assert_eq!(values(&x.gt(8).unwrap()), [1, 1, 0]);
    assert_eq!(values(&(&x / u64::MAX)), [1, 0, 0]);
    assert_eq!(values(&x.rem(1u64 << 63).unwrap()), [(1 << 63) - 1, 0, 7]);
    assert_eq!(values(&x.abs().unwrap()), values(&x));
    assert_eq!(values(&x.sign().unwrap()), [1, 1, 1]);
    assert_eq!(values(&x.clamp_min(1u64 << 63).unwrap()), [u64::MAX.into(), 1 << 63, 1 << 63]);
    assert_eq!(T::full(1, u64::MAX).unwrap().to_vec::<u64>().unwrap(), [u64::MAX]);
    assert!(x.add_scalar(-1).is_err() && x.add_scalar(1.9e19).is_err());
    let last = T::arange_as(2f64.powi(63), 2f64.powi(63) + 4096.0, 2048.0, DType::U64).unwrap();
    assert_eq!(values(&last), [1 << 63, (1 << 63) + 2048]);
    assert!(tensor![1.0, 2.0].gather(0, &x).is_err());
    assert_eq!(f32::from_scalar(u64::MAX.into()), 2f32.powi(64));
    assert_eq!(f64::from_scalar(((1u64 << 63) + 1025).into()), 2f64.powi(63) + 2048.0);
}
