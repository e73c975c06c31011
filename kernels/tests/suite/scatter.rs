//! Scatter-add of rows on every instruction set, against sequential sums.

use std::panic::{AssertUnwindSafe, catch_unwind};

use swath_kernels::testing::with_isa;
use swath_kernels::{Addend, Isa, philox_words, scatter_add_rows};

/// Sequential sums; shape: batch, rows of x and of y in each, columns.
fn sums<E: Addend>(
    [batch, count, rows, cols]: [usize; 4],
    x: &[E],
    index: &[i64],
    y: &[E],
    plus: fn(E, E) -> E,
) -> Vec<E> {
    let mut y = y.to_vec();
    for (b, i) in (0..batch).flat_map(|b| (0..count).map(move |i| (b, i))) {
        for c in 0..cols {
            let at = (b * rows + index[i] as usize) * cols + c;
            y[at] = plus(y[at], x[(b * count + i) * cols + c]);
        }
    }
    y
}

/// Several chunks of indices, small and large batches, rows of all lengths.
const SHAPES: [[usize; 4]; 14] = [
    [1, 1, 1, 1],
    [1, 40, 3, 1],
    [1, 7, 5, 2],
    [3, 64, 9, 15],
    [1, 33, 4, 16],
    [5, 50, 2, 33],
    [1, 3, 200, 130],
    [1, 256, 5, 1],
    [2, 257, 9, 3],
    [1, 700, 300, 1],
    [1, 600, 4, 17],
    [40, 1, 3, 1],
    [40, 2, 1, 2],
    [9, 8, 7, 1],
];

fn check<E: Addend>(number: fn(u32) -> E, plus: fn(E, E) -> E, bits: fn(E) -> u64) {
    let bits = |x: &[E]| -> Vec<u64> { x.iter().map(|&x| bits(x)).collect() };
    for shape in SHAPES {
        let [batch, count, rows, cols] = shape;
        let mut words = vec![0; batch * (count + rows) * cols + count];
        philox_words(5, (rows * cols) as u64, 0, &mut words);
        let (names, numbers) = words.split_at(count);
        let numbers: Vec<E> = numbers.iter().map(|&word| number(word)).collect();
        let (x, y) = numbers.split_at(batch * count * cols);
        // Spread indices; all the last row, except one; all row 0, except one, the last row.
        let spread: Vec<i64> = names.iter().map(|word| i64::from(*word) % rows as i64).collect();
        let last = rows as i64 - 1;
        let (mut without, mut with) = (vec![last; count], vec![0; count]);
        (without[count - 1], with[count - 1]) = (0, last);
        for index in [spread, without, with] {
            let want = bits(&sums(shape, x, &index, y, plus));
            let mut got = y.to_vec();
            scatter_add_rows(x, &index, [rows, cols], 0, &mut got);
            assert!(bits(&got) == want, "{shape:?}");
            for parts in [2, 3, 7] {
                let mut got = y.to_vec();
                let per_part = (batch * rows).div_ceil(parts);
                for (part, y) in got.chunks_mut(per_part * cols).enumerate() {
                    scatter_add_rows(x, &index, [rows, cols], part * per_part, y);
                }
                assert!(bits(&got) == want, "{shape:?}, {parts} parts");
            }
        }
    }
}

#[test]
fn rows_are_added_in_index_order() {
    // Numbers of many magnitudes, so that another order would give other sums.
    for isa in Isa::ALL {
        let ran = with_isa(isa, || {
            check::<f32>(
                |word| (f64::from(word) * 2f64.powi((word % 40) as i32 - 52)) as f32,
                |a, b| a + b,
                |x| u64::from(x.to_bits()),
            );
            check::<f64>(
                |word| f64::from(word) * 2f64.powi((word % 60) as i32 - 62),
                |a, b| a + b,
                f64::to_bits,
            );
            check::<i64>(
                |word| i64::from(word) << (word % 32),
                |a, b| (i128::from(a) + i128::from(b)) as i64,
                |x| x as u64,
            );
            check::<u8>(|word| word as u8, |a, b| (u32::from(a) + u32::from(b)) as u8, u64::from);
        });
        if ran.is_none() {
            println!("SKIPPED {isa}: this machine lacks it");
        }
    }
}

/// The text of the panic in `add`, which must not have changed anything.
fn refused(len: usize, add: impl FnOnce(&mut [f32])) -> String {
    let mut y = vec![1.0; len];
    let payload = catch_unwind(AssertUnwindSafe(|| add(&mut y)));
    assert!(y.iter().all(|&y| y == 1.0));
    let payload = payload.expect_err("the call must panic");
    payload.downcast_ref::<String>().expect("a formatted text").clone()
}

#[test]
fn invalid_arguments_panic_before_anything_is_added() {
    let part = |x: &[f32], first: usize, len: usize| {
        refused(len, |y| scatter_add_rows(x, &[0], [3, 2], first, y))
    };
    assert_eq!(
        part(&[1.0; 3], 0, 2),
        "scatter_add_rows: 3 elements do not divide into 1 rows of 2"
    );
    assert_eq!(part(&[1.0; 2], 0, 3), "scatter_add_rows: 3 elements do not divide into rows of 2");
    assert_eq!(part(&[1.0; 2], 2, 4), "scatter_add_rows: rows end at 4, beyond 3");
    assert_eq!(part(&[], 100, 2), "scatter_add_rows: rows end at 101, beyond 0");
    let most = usize::MAX / 2 + 1;
    let text = refused(1, |y| scatter_add_rows(&[1.0], &[0, 0], [1, most], 0, y));
    assert_eq!(text, format!("scatter_add_rows: 1 elements do not divide into 2 rows of {most}"));
    let text = part(&[1.0; 2], usize::MAX, 2);
    assert_eq!(text, format!("scatter_add_rows: rows end at {}, beyond 3", usize::MAX as u128 + 1));
    let text = refused(1, |y| scatter_add_rows(&[1.0], &[-2], [most, 1], most - 1, y));
    assert_eq!(text, format!("scatter_add_rows: {most} rows exceed the range of i64"));
}

#[test]
fn rows_outside_of_the_part_are_skipped() {
    let mut y = [1.0f32; 2];
    let index = [4, 5, 2, i64::MIN, i64::MAX, -1];
    let x = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
    scatter_add_rows(&x, &index, [9, 1], 4, &mut y);
    assert_eq!(y, [2.0, 3.0]);
    // Parts that are a whole block, and in one call also a part of one.
    for cols in [1, 2] {
        let (x, mut y) = (vec![1.0; 4 * 3 * cols], vec![0.0; 4 * 2 * cols]);
        scatter_add_rows(&x, &[5, -1, 1], [2, cols], 1, &mut y[cols..]);
        let own = |row: usize| if row % 2 == 1 { 1.0 } else { 0.0 };
        assert!((0..y.len()).all(|i| y[i] == own(i / cols)), "{y:?}");
    }
    // The largest number of rows that a signed index can name.
    let (most, mut last) = (i64::MAX as usize, [1.0f32]);
    scatter_add_rows(&x[..3], &[i64::MIN, i64::MAX - 1, -1], [most, 1], most - 1, &mut last);
    assert_eq!(last, [3.0]);
    scatter_add_rows::<f32>(&[], &[1, 2], [3, 0], 0, &mut []);
    scatter_add_rows::<f32>(&[], &[], [3, 2], 0, &mut [1.0; 6]);
    scatter_add_rows::<f32>(&[1.0], &[0], [1, 1], 1, &mut []);
}
