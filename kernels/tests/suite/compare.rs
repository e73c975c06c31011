//! Comparisons, tests of numbers and selection, against the order of the exact values.

use half::{bf16, f16};
use swath_kernels::testing::{special_values_f32, special_values_f64, with_isa};
use swath_kernels::{
    Arg, Block, BlockArg, Compare, Comparison, Isa, NumberTest, Select, compare, compare_block,
    select, select_block, test_numbers, test_numbers_block,
};

const ALL: [Comparison; 6] = [
    Comparison::Eq,
    Comparison::Ne,
    Comparison::Lt,
    Comparison::Le,
    Comparison::Gt,
    Comparison::Ge,
];

fn on_every_isa(f: impl Fn()) {
    for isa in Isa::ALL {
        if with_isa(isa, &f).is_none() {
            println!("{isa} skipped, this machine lacks it");
        }
    }
}

/// The result of a comparison by the order of two numbers, `None` if either is NaN.
fn holds(op: Comparison, order: Option<std::cmp::Ordering>) -> bool {
    use std::cmp::Ordering::*;
    match op {
        Comparison::Eq => order == Some(Equal),
        Comparison::Ne => order != Some(Equal),
        Comparison::Lt => order == Some(Less),
        Comparison::Le => matches!(order, Some(Less | Equal)),
        Comparison::Gt => order == Some(Greater),
        Comparison::Ge => matches!(order, Some(Greater | Equal)),
    }
}

/// All pairs of the values, as slices and with one of the two as a scalar.
fn check<T: Compare>(values: &[T], order: impl Fn(T, T) -> Option<std::cmp::Ordering>) {
    let n = values.len();
    let a: Vec<T> = values.iter().flat_map(|&x| vec![x; n]).collect();
    let b: Vec<T> = values.iter().copied().cycle().take(n * n).collect();
    for op in ALL {
        let mut y = vec![7; n * n];
        compare(op, Arg::Slice(&a), Arg::Slice(&b), &mut y);
        for (i, y) in y.into_iter().enumerate() {
            assert_eq!(y, u8::from(holds(op, order(a[i], b[i]))), "{op:?}, pair {i}");
        }
        for &x in values {
            let (mut left, mut right) = (vec![7; n], vec![7; n]);
            compare(op, Arg::Scalar(x), Arg::Slice(values), &mut left);
            compare(op, Arg::Slice(values), Arg::Scalar(x), &mut right);
            for (i, &y) in values.iter().enumerate() {
                assert_eq!(left[i], u8::from(holds(op, order(x, y))), "{op:?}");
                assert_eq!(right[i], u8::from(holds(op, order(y, x))), "{op:?}");
            }
        }
        let mut same = [7; 3];
        compare(op, Arg::Scalar(values[0]), Arg::Scalar(values[0]), &mut same);
        assert_eq!(same, [u8::from(holds(op, order(values[0], values[0]))); 3]);
    }
}

#[test]
fn comparisons_match_the_order_of_exact_values() {
    on_every_isa(|| {
        check(&special_values_f32(), |a, b| f64::from(a).partial_cmp(&f64::from(b)));
        check(&special_values_f64(), |a, b| a.partial_cmp(&b));
        let halves: Vec<u16> = (0..=u16::MAX).step_by(1021).chain([0x8000, 0x7c00]).collect();
        let f16s: Vec<f16> = halves.iter().map(|&x| f16::from_bits(x)).collect();
        check(&f16s, |a, b| a.to_f64().partial_cmp(&b.to_f64()));
        let bf16s: Vec<bf16> = halves.iter().map(|&x| bf16::from_bits(x)).collect();
        check(&bf16s, |a, b| a.to_f64().partial_cmp(&b.to_f64()));
        let integers = [i64::MIN, -(1 << 40), -1, 0, 1, 2, (1 << 53) + 1, 1 << 53, i64::MAX];
        check(&integers, |a, b| i128::from(a).partial_cmp(&i128::from(b)));
        check(&(0..=255).step_by(5).collect::<Vec<u8>>(), |a, b| a.partial_cmp(&b));
    });
}

#[test]
fn number_tests_match_the_bits() {
    let tests = [NumberTest::IsNan, NumberTest::IsInf, NumberTest::IsFinite];
    let class = |test, special: bool, fraction: bool| match test {
        NumberTest::IsNan => special && fraction,
        NumberTest::IsInf => special && !fraction,
        NumberTest::IsFinite => !special,
    };
    on_every_isa(|| {
        for test in tests {
            let x = special_values_f32();
            let mut y = vec![7; x.len()];
            test_numbers(test, &x, &mut y);
            for (x, y) in x.iter().zip(&y) {
                let special = x.to_bits() >> 23 & 0xff == 0xff;
                assert_eq!(*y == 1, class(test, special, x.to_bits() << 9 != 0), "{test:?} {x}");
            }
            let x = special_values_f64();
            y.resize(x.len(), 7);
            test_numbers(test, &x, &mut y);
            for (x, y) in x.iter().zip(&y) {
                let special = x.to_bits() >> 52 & 0x7ff == 0x7ff;
                assert_eq!(*y == 1, class(test, special, x.to_bits() << 12 != 0), "{test:?} {x}");
            }
            let x: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
            let mut y = vec![7; x.len()];
            test_numbers(test, &x, &mut y);
            for (bits, y) in (0..=u16::MAX).zip(&y) {
                let special = bits >> 10 & 0x1f == 0x1f;
                assert_eq!(*y == 1, class(test, special, bits << 6 != 0), "{test:?} {bits:x}");
            }
        }
    });
    let mut y = [7; 2];
    test_numbers(NumberTest::IsFinite, &[i64::MAX, 0], &mut y);
    assert_eq!(y, [1, 1]);
    test_numbers(NumberTest::IsNan, &[0u8, 255], &mut y);
    assert_eq!(y, [0, 0]);
}

#[test]
fn select_takes_a_where_the_mask_is_set_else_b() {
    fn check<T: Select + PartialEq + std::fmt::Debug>(from: impl Fn(u8) -> T) {
        for len in (0..=130).chain([1000]) {
            let mask: Vec<u8> = (0..len).map(|i| [0, 1, 0, 255, 2][i * i % 5]).collect();
            let a: Vec<T> = (0..len).map(|i| from(i as u8)).collect();
            let b: Vec<T> = (0..len).map(|i| from(200 - i as u8 % 100)).collect();
            let number = from(77);
            let mut y = vec![from(1); len];
            let expect = |y: &[T], a: &dyn Fn(usize) -> T, b: &dyn Fn(usize) -> T| {
                let chosen = |i: usize| if mask[i] == 0 { b(i) } else { a(i) };
                assert!((0..len).all(|i| y[i] == chosen(i)), "{len} elements");
            };
            select(&mask, Arg::Slice(&a), Arg::Slice(&b), &mut y);
            expect(&y, &|i| a[i], &|i| b[i]);
            select(&mask, Arg::Scalar(number), Arg::Slice(&b), &mut y);
            expect(&y, &|_| number, &|i| b[i]);
            select(&mask, Arg::Slice(&a), Arg::Scalar(number), &mut y);
            expect(&y, &|i| a[i], &|_| number);
            select(
                &mask,
                Arg::Scalar(a.first().copied().unwrap_or(number)),
                Arg::Scalar(number),
                &mut y,
            );
            expect(&y, &|_| a[0], &|_| number);
        }
    }
    on_every_isa(|| {
        check(|x| x);
        check(|x| u16::from(x) * 257);
        check(|x| u32::from(x) * 0x0101_0101);
        check(|x| u64::from(x) * 0x0101_0101_0101_0101);
    });
}

/// Each row of a block must have the result of the slice function on that row.
#[test]
fn blocks_equal_their_rows() {
    fn check<T: Compare + Select + std::fmt::Debug>(from: impl Fn(u8) -> T) {
        for (rows, cols) in [(1, 5), (3, 2), (11, 3), (20, 130), (2, 1500)] {
            let pitch = cols + 3;
            let wide: Vec<T> = (0..rows * pitch).map(|i| from((i * 7 % 97) as u8)).collect();
            let masks: Vec<u8> = (0..rows * pitch).map(|i| [0, 1, 0, 255, 2][i * i % 5]).collect();
            let backwards = ((rows - 1) * pitch + 1, -(pitch as isize), false);
            let kinds = [(2, pitch as isize, false), (1, 0, false), backwards, (0, 1, true)];
            fn of<X>(
                data: &[X],
                (start, stride, is_value): (usize, isize, bool),
            ) -> BlockArg<'_, X> {
                BlockArg { data, start, stride, is_value }
            }
            let shape = Block { rows, cols, stride: cols + 2 };
            for (mask, a, b) in kinds
                .iter()
                .flat_map(|&mask| kinds.iter().flat_map(move |&a| kinds.map(move |b| (mask, a, b))))
            {
                let context = |r| format!("row {r} of {shape:?}, {mask:?} {a:?} {b:?}");
                let (mask, a, b) = (of(&masks, mask), of(&wide, a), of(&wide, b));
                let len = rows * shape.stride;
                let (mut less, mut finite, mut chosen) =
                    (vec![7; len], vec![7; len], vec![from(7); len]);
                compare_block(Comparison::Lt, a, b, shape, &mut less);
                test_numbers_block(NumberTest::IsFinite, a, shape, &mut finite);
                select_block(mask, a, b, shape, &mut chosen);
                for r in 0..rows {
                    let repeated = |x: Arg<u8>| match x {
                        Arg::Slice(x) => x.to_vec(),
                        Arg::Scalar(x) => vec![x; cols],
                    };
                    let (x, z) = (a.row(r, cols), b.row(r, cols));
                    let filled = |x: Arg<T>| match x {
                        Arg::Slice(x) => x.to_vec(),
                        Arg::Scalar(x) => vec![x; cols],
                    };
                    let (mut l, mut f, mut c) = (vec![0; cols], vec![0; cols], vec![from(0); cols]);
                    compare(Comparison::Lt, x, z, &mut l);
                    test_numbers(NumberTest::IsFinite, &filled(x), &mut f);
                    select(&repeated(mask.row(r, cols)), x, z, &mut c);
                    let begin = r * shape.stride;
                    let (row, gap) = (begin..begin + cols, begin + cols..begin + shape.stride);
                    assert!(less[row.clone()] == l && finite[row.clone()] == f, "{}", context(r));
                    assert!(chosen[row].iter().eq(&c), "{}", context(r));
                    assert_eq!([&less[gap.clone()], &finite[gap]], [[7; 2]; 2]);
                }
            }
        }
    }
    on_every_isa(|| {
        check(|x| x);
        check(|x| if x == 5 { f32::INFINITY } else { x.into() });
        check(|x| if x == 5 { f16::INFINITY } else { f16::from_f32(x.into()) });
    });
}

#[test]
#[should_panic(expected = "select_block: Block { rows: 2, cols: 2, stride: 2 } exceeds 3 elements")]
fn mask_rows_beyond_their_slice_panic() {
    let x = BlockArg { data: &[1, 2, 3, 4], start: 0, stride: 2, is_value: false };
    let mask = BlockArg { data: &[1, 0, 1], ..x };
    select_block(mask, x, x, Block { rows: 2, cols: 2, stride: 2 }, &mut [0; 4]);
}

#[test]
#[should_panic(expected = "compare: an input has 2 elements, the output 3")]
fn lengths_must_agree() {
    compare(Comparison::Eq, Arg::Slice(&[1u8, 2]), Arg::Scalar(1), &mut [0; 3]);
}
