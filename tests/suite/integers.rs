//! Integers of every width: arithmetic, scalars, indices and products, against Rust's own integers.

use swath::prelude::*;
use swath::{ReferenceBackend, s};

type T = Tensor<CpuBackend>;

/// The integer dtypes with their ranges.
const INTEGERS: [(DType, i64, i64); 7] = [
    (DType::U8, 0, u8::MAX as i64),
    (DType::I8, i8::MIN as i64, i8::MAX as i64),
    (DType::I16, i16::MIN as i64, i16::MAX as i64),
    (DType::U16, 0, u16::MAX as i64),
    (DType::I32, i32::MIN as i64, i32::MAX as i64),
    (DType::U32, 0, u32::MAX as i64),
    (DType::I64, i64::MIN, i64::MAX),
];

fn of(dtype: DType, values: &[i64]) -> T {
    T::from_slice(values, values.len()).unwrap().to_dtype(dtype).unwrap()
}

/// The values, whatever the dtype.
fn values(x: &T) -> Vec<i64> {
    x.to_dtype(DType::I64).unwrap().to_vec::<i64>().unwrap()
}

/// `x` in the range of `dtype`, modulo its size.
fn wrapped(dtype: DType, x: i64) -> i64 {
    match dtype {
        DType::U8 => (x as u8).into(),
        DType::I8 => (x as i8).into(),
        DType::I16 => (x as i16).into(),
        DType::U16 => (x as u16).into(),
        DType::I32 => (x as i32).into(),
        DType::U32 => (x as u32).into(),
        _ => x,
    }
}

#[test]
fn arithmetic_wraps_and_comparisons_are_exact() {
    for (dtype, low, high) in INTEGERS {
        let (a, b) = ([low, high, high, low + 7, 100], [high, high, 1, 3, 100]);
        let (x, y) = (of(dtype, &a), of(dtype, &b));
        let each = |f: fn(i64, i64) -> i64| -> Vec<i64> {
            a.iter().zip(b).map(|(&a, b)| wrapped(dtype, f(a, b))).collect()
        };
        assert_eq!(values(&(&x + &y)), each(i64::wrapping_add), "{dtype}");
        assert_eq!(values(&(&x - &y)), each(i64::wrapping_sub), "{dtype}");
        assert_eq!(values(&(&x * &y)), each(i64::wrapping_mul), "{dtype}");
        assert_eq!(values(&x.maximum(&y).unwrap()), each(i64::max), "{dtype}");
        assert_eq!(values(&x.minimum(&y).unwrap()), each(i64::min), "{dtype}");
        assert_eq!(values(&x.abs().unwrap()), each(|a, _| a.wrapping_abs()), "{dtype}");
        assert_eq!(values(&-&x), each(|a, _| a.wrapping_neg()), "{dtype}");
        assert_eq!(values(&x.sign().unwrap()), each(|a, _| a.signum()), "{dtype}");
        assert_eq!(values(&x.lt(&y).unwrap()), each(|a, b| (a < b).into()), "{dtype}");
        assert_eq!(values(&x.eq(&y).unwrap()), each(|a, b| (a == b).into()), "{dtype}");
        assert_eq!(
            values(&x.ge(high).unwrap()),
            each(|a, _| a).iter().map(|&a| i64::from(a >= high)).collect::<Vec<_>>()
        );
        let chosen = T::where_cond(&x.gt(&y).unwrap(), &x, &y).unwrap();
        assert_eq!((chosen.dtype(), values(&chosen)), (dtype, each(i64::max)));
        assert_eq!(x.add(&y).unwrap().dtype(), dtype);
    }
}

#[test]
fn views_and_owned_operands_give_the_same() {
    for (dtype, ..) in INTEGERS {
        let numbers: Vec<i64> = (0..60 * 37).map(|i| i * 7919 % 251 - 100).collect();
        let x = T::from_vec(numbers, (60, 37)).unwrap().to_dtype(dtype).unwrap();
        let plain = values(&(&(&x * 3) - &x));
        for view in
            [x.t().unwrap().contiguous().unwrap().t().unwrap(), x.flip(0).unwrap().flip(0).unwrap()]
        {
            assert_eq!(values(&(&(&view * 3) - &view)), plain, "{dtype}");
        }
        let owned = (x.clone() * 3) - &x;
        assert_eq!(values(&owned), plain, "{dtype}");
        let row = x.slice(s![0]).unwrap();
        let broadcast = values(&x.sub(&row).unwrap());
        let repeated = row.broadcast_to((60, 37)).unwrap().contiguous().unwrap();
        assert_eq!(broadcast, values(&x.sub(&repeated).unwrap()), "{dtype}");
    }
}

#[test]
fn reductions_have_the_dtypes_and_values_of_integers() {
    for (dtype, low, high) in INTEGERS {
        let x = of(dtype, &[3, high, low, high]);
        let sum = x.sum(None, false).unwrap();
        assert_eq!(sum.dtype(), DType::I64);
        let exact = [3, high, low, high].iter().fold(0i64, |sum, &x| sum.wrapping_add(x));
        assert_eq!(sum.item::<i64>().unwrap(), exact, "{dtype}");
        for (extremum, at, value) in [
            (x.max(None, false).unwrap(), x.argmax_all().unwrap(), (high, 1)),
            (x.min(None, false).unwrap(), x.argmin_all().unwrap(), (low, 2)),
        ] {
            assert_eq!(extremum.dtype(), dtype);
            assert_eq!((values(&extremum)[0], at.item::<i64>().unwrap()), value, "{dtype}");
        }
        let running = x.cumsum(0).unwrap();
        assert_eq!(
            (running.dtype(), running.to_vec::<i64>().unwrap()[1]),
            (DType::I64, high.wrapping_add(3))
        );
        assert!(matches!(x.mean(None, false), Err(Error::UnsupportedDType { op: "mean", .. })));
        assert_eq!(of(dtype, &[]).sum(None, false).unwrap().item::<i64>().unwrap(), 0);
        assert!(of(dtype, &[]).max(None, false).is_err());
    }
}

#[test]
fn division_by_zero_and_the_quotient_out_of_range_are_errors() {
    for (dtype, low, high) in INTEGERS {
        let x = of(dtype, &[7, low, high]);
        for result in [x.div(0), x.rem(0), x.div(of(dtype, &[1, 1, 0]))] {
            assert!(matches!(result, Err(Error::IntegerDivision { .. })), "{dtype}");
        }
        if low < 0 {
            assert!(matches!(x.div(-1), Err(Error::IntegerDivision { op: "div", .. })), "{dtype}");
            assert!(matches!(x.rem(-1), Err(Error::IntegerDivision { op: "rem", .. })), "{dtype}");
            assert!((1 - &x).div(of(dtype, &[2, -1, 3])).is_ok());
            assert_eq!(values(&of(dtype, &[-7, 7]).div(2).unwrap()), [-3, 3]);
            assert_eq!(values(&of(dtype, &[-7, 7]).rem(-2).unwrap()), [-1, 1]);
        }
        assert_eq!(values(&x.div(2).unwrap()), [3, low / 2, high / 2], "{dtype}");
    }
}

#[test]
fn integer_scalars_are_exact_and_out_of_range_an_error() {
    let large = (1i64 << 53) + 1;
    let x = tensor![i64; 0, 1, large];
    assert_eq!((&x + large).to_vec::<i64>().unwrap(), [large, large + 1, 2 * large]);
    assert_eq!((large - &x).to_vec::<i64>().unwrap(), [large, large - 1, 0]);
    assert_eq!((2 * &x).to_vec::<i64>().unwrap(), [0, 2, 2 * large]);
    assert_eq!((7 / (&x + 1)).to_vec::<i64>().unwrap(), [7, 3, 0]);
    assert_eq!(x.eq(large).unwrap().to_vec::<bool>().unwrap(), [false, false, true]);
    assert_eq!(x.eq(large - 1).unwrap().to_vec::<bool>().unwrap(), [false; 3]);
    assert_eq!(x.add_scalar(large).unwrap().to_vec::<i64>().unwrap()[2], 2 * large);
    assert_eq!(x.mul_scalar(3).unwrap().to_vec::<i64>().unwrap(), [0, 3, 3 * large]);
    assert_eq!(x.clamp(1, large - 1).unwrap().to_vec::<i64>().unwrap(), [1, 1, large - 1]);
    // On floats an integer scalar is the nearest float.
    let y = tensor![0.5, 2.0];
    assert_eq!((1 - &y).to_vec::<f32>().unwrap(), [0.5, -1.0]);
    assert_eq!((&y * 2).exp().unwrap().shape(), y.shape());
    assert_eq!((1.0 - &y).exp().unwrap().shape(), y.shape());
    for (dtype, low, high) in INTEGERS {
        let x = of(dtype, &[1]);
        let outside = [low.checked_sub(1), high.checked_add(1)];
        for value in outside.into_iter().flatten() {
            for result in [
                x.add(value),
                x.add_scalar(value),
                x.eq(value),
                x.clamp(value, value),
                x.clamp_min(value),
            ] {
                let text = result.unwrap_err().to_string();
                assert!(text.contains(&value.to_string()) && text.contains(dtype.name()), "{text}");
            }
        }
        for value in [0.5, f64::NAN, f64::INFINITY] {
            assert!(
                matches!(x.add(value), Err(Error::InvalidArgument { op: "add", .. })),
                "{value}"
            );
        }
        assert_eq!(values(&x.add(2.0).unwrap()), [3], "{dtype}");
        assert_eq!(values(&x.mul(high).unwrap()), [high], "{dtype}");
        assert_eq!(values(&x.maximum(low).unwrap()), [1.max(low)], "{dtype}");
    }
}

#[test]
fn integers_are_clamped_by_numbers_and_tensors() {
    for (dtype, _, high) in INTEGERS {
        let x = of(dtype, &[1, 5, 9, high]);
        assert_eq!(values(&x.clamp(2, 8).unwrap()), [2, 5, 8, 8], "{dtype}");
        assert_eq!(values(&x.clamp_min(5).unwrap()), [5, 5, 9, high], "{dtype}");
        assert_eq!(values(&x.clamp_max(5).unwrap()), [1, 5, 5, 5], "{dtype}");
        let (low, top) = (of(dtype, &[2, 6, 0, 0]), of(dtype, &[9, 3, 9, high]));
        // Where the bounds cross, the result is the upper one.
        assert_eq!(values(&x.clamp(&low, &top).unwrap()), [2, 3, 9, high], "{dtype}");
        assert_eq!(values(&x.clamp(2, &top).unwrap()), [2, 3, 9, high], "{dtype}");
        assert!(x.clamp(8, 2).is_err());
    }
    let bits = tensor![bool; true];
    assert!(matches!(bits.clamp_min(0), Err(Error::UnsupportedDType { op: "clamp_min", .. })));
}

#[test]
fn indices_are_of_any_integer_dtype() {
    let table = tensor![[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]];
    let logits = tensor![[1.0, 0.0, 2.0], [0.5, 0.0, 0.25]];
    for (dtype, low, _) in INTEGERS {
        let index = of(dtype, &[2, 0]);
        let rows = [5.0, 6.0, 1.0, 2.0];
        assert_eq!(
            table.index_select(0, &index).unwrap().to_vec::<f32>().unwrap(),
            rows,
            "{dtype}"
        );
        assert_eq!(table.embedding(&index).unwrap().to_vec::<f32>().unwrap(), rows, "{dtype}");
        let columns = index.reshape((2, 1)).unwrap();
        let picked = logits.gather(1, &columns).unwrap();
        assert_eq!(picked.to_vec::<f32>().unwrap(), [2.0, 0.5], "{dtype}");
        let sums = logits.scatter_add(1, &columns, &picked).unwrap();
        assert_eq!(sums.to_vec::<f32>().unwrap(), [1.0, 0.0, 4.0, 1.0, 0.0, 0.25], "{dtype}");
        let sums = table.index_add(0, &index, &tensor![[1.0, 1.0], [2.0, 2.0]]).unwrap();
        assert_eq!(sums.to_vec::<f32>().unwrap(), [3.0, 4.0, 3.0, 4.0, 6.0, 7.0], "{dtype}");
        let loss = |targets: &T| {
            logits.cross_entropy(targets, Default::default()).unwrap().item::<f32>().unwrap()
        };
        assert_eq!(loss(&index), loss(&tensor![i64; 2, 0]), "{dtype}");
        // A tracked table has gradients whatever the dtype of the index.
        let tracked = table.clone().requires_grad();
        let total = tracked.index_select(0, &index).unwrap().sum(None, false).unwrap();
        let gradient = total.backward().unwrap().wrt(&tracked).unwrap().to_vec::<f32>().unwrap();
        assert_eq!(gradient, [1.0, 1.0, 0.0, 0.0, 1.0, 1.0], "{dtype}");
        let error = table.index_select(0, &of(dtype, &[3])).unwrap_err();
        assert!(matches!(error, Error::IndexOutOfRange { index: 3, .. }), "{error}");
        if low < 0 {
            assert!(table.embedding(&of(dtype, &[-1])).is_err());
        }
    }
    for index in [tensor![0.0], tensor![bool; true]] {
        for result in
            [table.index_select(0, &index), table.embedding(&index), table.gather(0, &index)]
        {
            assert!(matches!(result, Err(Error::DTypeMismatch { rhs: DType::I64, .. })));
        }
    }
}

#[test]
fn integer_tensors_are_indexed_selected_and_joined() {
    for (dtype, low, high) in INTEGERS {
        let x = of(dtype, &[low, 5, high]);
        let index = of(DType::I32, &[2, 2, 0]);
        let picked = x.index_select(0, &index).unwrap();
        assert_eq!((picked.dtype(), values(&picked)), (dtype, vec![high, high, low]));
        let sums = x.index_add(0, &index, &of(dtype, &[1, 1, 3])).unwrap();
        let want = [low.wrapping_add(3), 5, high.wrapping_add(2)].map(|x| wrapped(dtype, x));
        assert_eq!((sums.dtype(), values(&sums)), (dtype, want.to_vec()));
        assert_eq!(values(&T::cat(&[&x, &picked], 0).unwrap()), [low, 5, high, high, high, low]);
        let filled = x.masked_fill(&x.eq(5).unwrap(), 7).unwrap();
        assert_eq!(values(&filled), [low, 7, high], "{dtype}");
    }
}

/// The product by its definition, in integers of 128 bits.
fn product(a: &[i64], b: &[i64], [m, k, n]: [usize; 3]) -> Vec<i64> {
    let sum = |i: usize, j: usize| {
        let terms = (0..k).map(|l| i128::from(a[i * k + l]) * i128::from(b[l * n + j]));
        terms.fold(0i128, i128::wrapping_add) as i64
    };
    (0..m * n).map(|at| sum(at / n, at % n)).collect()
}

#[test]
fn products_of_integers_are_exact_and_wrap() {
    let mut state = 1u64;
    let mut draw = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 13) as i64 - (1 << 50)
    };
    for [m, k, n] in [[1, 1, 1], [3, 5, 4], [1, 300, 1], [70, 67, 259], [2, 0, 3], [0, 4, 5]] {
        for (dtype, ..) in INTEGERS {
            let mut drawn =
                |len: usize| -> Vec<i64> { (0..len).map(|_| wrapped(dtype, draw())).collect() };
            let (a, b) = (drawn(m * k), drawn(k * n));
            let of = |x: &[i64], shape: (usize, usize)| of(dtype, x).reshape(shape).unwrap();
            let (x, y) = (of(&a, (m, k)), of(&b, (k, n)));
            let c = x.matmul(&y).unwrap();
            assert_eq!((c.dtype(), c.dims()), (DType::I64, &[m, n][..]));
            let want = product(&a, &b, [m, k, n]);
            assert_eq!(c.to_vec::<i64>().unwrap(), want, "{dtype} {m} {k} {n}");
            let transposed = x.t().unwrap().contiguous().unwrap().t().unwrap().matmul(&y);
            assert_eq!(transposed.unwrap().to_vec::<i64>().unwrap(), want, "{dtype}");
            let pair = T::einsum("ij,jk->ik", &[&x, &y]).unwrap();
            assert_eq!(pair.to_vec::<i64>().unwrap(), want, "einsum {dtype} {m} {k} {n}");
            let pair = x.tensordot(&y, 1).unwrap();
            assert_eq!(pair.to_vec::<i64>().unwrap(), want, "tensordot {dtype}");
        }
    }
}

#[test]
fn batches_vectors_and_outer_products_of_integers() {
    let x = T::arange_as(0., 24., 1., DType::I32).unwrap().reshape((2, 3, 4)).unwrap();
    let y = T::arange_as(0., 8., 1., DType::I32).unwrap().reshape((4, 2)).unwrap();
    let batches = x.matmul(&y).unwrap();
    assert_eq!(batches.dims(), [2, 3, 2]);
    let rows = x.reshape((6, 4)).unwrap().matmul(&y).unwrap();
    assert_eq!(values(&batches), values(&rows));
    let v = of(DType::U8, &[200, 3]);
    assert_eq!(v.matmul(&v).unwrap().item::<i64>().unwrap(), 40009);
    assert_eq!(v.dot(&v).unwrap().item::<i64>().unwrap(), 40009);
    let outer = v.outer(&v).unwrap();
    assert_eq!((outer.dtype(), values(&outer)), (DType::I64, vec![40000, 600, 600, 9]));
    assert_eq!(T::einsum("i,j->ij", &[&v, &v]).unwrap().to_vec::<i64>().unwrap(), values(&outer));
    assert_eq!(T::einsum("bij->b", &[&x]).unwrap().to_vec::<i64>().unwrap(), [66, 210]);
    let row_dots = T::einsum("bij,bij->bi", &[&x, &x]).unwrap();
    let squares = (&x * &x).sum(Some(&[2]), false).unwrap();
    assert_eq!(values(&row_dots), values(&squares));
    let bits = tensor![bool; true];
    assert!(matches!(bits.matmul(&bits), Err(Error::UnsupportedDType { op: "matmul", .. })));
    let mixed = of(DType::I64, &[1]).matmul(&of(DType::I32, &[1]));
    assert!(matches!(mixed, Err(Error::DTypeMismatch { op: "matmul", .. })));
}

/// Every backend gives the same; the reference backend computes element by element.
#[test]
fn the_reference_backend_agrees() {
    type R = Tensor<ReferenceBackend>;
    let numbers = [-7i32, i32::MIN, i32::MAX, 12];
    let x = T::from_slice(&numbers, 4).unwrap();
    let y = R::from_slice(&numbers, 4).unwrap();
    assert_eq!((&x * 3 - 1).to_vec::<i32>().unwrap(), (&y * 3 - 1).to_vec::<i32>().unwrap());
    let (a, b) = (x.matmul(&x).unwrap(), y.matmul(&y).unwrap());
    assert_eq!(a.item::<i64>().unwrap(), b.item::<i64>().unwrap());
    assert!(x.div(-1).is_err() && y.div(-1).is_err());
}
