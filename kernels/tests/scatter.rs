//! Addition of rows by index, on every instruction set, against sums of one element after another.

use std::panic::{AssertUnwindSafe, catch_unwind};

use swath_kernels::testing::with_isa;
use swath_kernels::{Addend, Isa, philox_words, scatter_add_rows, scatter_add_rows_from};

/// Sums element by element in the order of the index.
fn sums<E: Addend>(x: &[E], index: &[i64], cols: usize, y: &[E], plus: fn(E, E) -> E) -> Vec<E> {
    let mut y = y.to_vec();
    for (i, &to) in index.iter().enumerate() {
        for c in 0..cols {
            let at = to as usize * cols + c;
            y[at] = plus(y[at], x[i * cols + c]);
        }
    }
    y
}

fn check<E: Addend>(number: fn(u32) -> E, plus: fn(E, E) -> E, bits: fn(E) -> u64) {
    let bits = |x: &[E]| -> Vec<u64> { x.iter().map(|&x| bits(x)).collect() };
    let shapes =
        [(1, 1, 1), (40, 3, 1), (7, 5, 2), (64, 9, 15), (33, 4, 16), (50, 2, 33), (3, 200, 130)];
    for (count, rows, cols) in shapes {
        let mut words = vec![0; (count + rows) * cols + count];
        philox_words(5, (rows * cols) as u64, 0, &mut words);
        let (names, numbers) = words.split_at(count);
        let index: Vec<i64> = names.iter().map(|word| i64::from(*word) % rows as i64).collect();
        let numbers: Vec<E> = numbers.iter().map(|&word| number(word)).collect();
        let (x, y) = numbers.split_at(count * cols);
        let want = bits(&sums(x, &index, cols, y, plus));
        let context = format!("{count} rows of {cols} to {rows}");
        let mut got = y.to_vec();
        scatter_add_rows(x, &index, cols, &mut got);
        assert!(bits(&got) == want, "{context}");
        for parts in [2, 3] {
            let mut got = y.to_vec();
            let per_part = rows.div_ceil(parts);
            for (part, y) in got.chunks_mut(per_part * cols).enumerate() {
                scatter_add_rows_from(x, &index, cols, part * per_part, y);
            }
            assert!(bits(&got) == want, "{context}, {parts} parts");
        }
    }
}

#[test]
fn rows_are_added_in_the_order_of_the_index() {
    // Numbers of many sizes: another order gives other sums.
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

/// The text of the panic that adding ends with; what was to be added to is as before.
fn refused(x: &[f32], index: &[i64], cols: usize, rows: usize) -> String {
    let mut y = vec![1.0; rows];
    let add = AssertUnwindSafe(|| scatter_add_rows(x, index, cols, &mut y));
    let payload = catch_unwind(add);
    assert!(y.iter().all(|&y| y == 1.0));
    let payload = payload.expect_err("it is refused");
    payload.downcast_ref::<String>().expect("a formatted text").clone()
}

#[test]
fn an_index_outside_is_refused_before_anything_is_added() {
    for index in [3, -1, i64::MIN, i64::MAX] {
        let text = refused(&[1.0; 4], &[0, index], 2, 6);
        assert_eq!(text, format!("scatter_add_rows: index {index} of 3 rows"));
    }
    assert_eq!(refused(&[1.0; 4], &[0], 4, 0), "scatter_add_rows: index 0 of 0 rows");
    assert_eq!(refused(&[1.0; 3], &[0, 1], 2, 6), "scatter_add_rows: 3 elements, not 4");
    assert_eq!(refused(&[1.0; 2], &[0], 2, 5), "scatter_add_rows: 5 elements in rows of 2");
    let most = usize::MAX / 2 + 1;
    let text = refused(&[], &[0, 0], most, 0);
    assert_eq!(text, format!("scatter_add_rows: 2 rows of {most} elements"));
}

#[test]
fn rows_of_others_are_passed_over() {
    let mut y = [1.0f32; 2];
    let index = [4, 5, 2, i64::MIN, i64::MAX, -1];
    scatter_add_rows_from(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0], &index, 1, 4, &mut y);
    assert_eq!(y, [2.0, 3.0]);
    scatter_add_rows_from::<f32>(&[], &[1, 2], 0, 0, &mut []);
    scatter_add_rows::<f32>(&[], &[1, 2], 0, &mut []);
    scatter_add_rows_from::<f32>(&[1.0], &[0], 1, 0, &mut []);
}
