//! Traces of products.

use swath::blas::trace::{Traced, trace};
use swath::prelude::*;
use swath::runtime::set_threads;

use crate::products_bits::embedded;
use crate::support::alone;

type T = Tensor<CpuBackend>;

fn zeros(shape: &[usize]) -> T {
    T::zeros(shape, DType::F32).unwrap()
}

fn words(traced: &[Traced]) -> Vec<String> {
    traced.iter().map(Traced::to_string).collect()
}

#[test]
fn the_path_of_each_product_is_reported() {
    alone("trace::the_path_of_each_product_is_reported", || {
        if !embedded() {
            println!("SKIPPED: a library computes the large products");
            return;
        }
        // On several threads the loops of the first part are reported.
        for threads in [1, 3] {
            set_threads(threads).unwrap();
            let matmul = |a: &[usize], b: &[usize], b_turned: bool| {
                let b = if b_turned { zeros(&[b[1], b[0]]).t().unwrap() } else { zeros(b) };
                let (y, traced) = trace(|| zeros(a).matmul(&b));
                y.unwrap();
                words(&traced)
            };
            for (a, b, b_turned, path) in [
                ([30, 40], [40, 50], false, "small"),
                ([1, 700], [700, 900], false, "rows of B"),
                ([1, 700], [700, 900], true, "columns of B"),
                ([12, 700], [700, 900], false, "rows of B"),
                ([20, 300], [300, 100], false, "blocked, B in place"),
                ([7, 520], [520, 310], false, "rows of B"),
                ([260, 300], [300, 320], false, "blocked"),
                ([260, 300], [300, 320], true, "blocked"),
            ] {
                let [[m, k], [_, n]] = [a, b];
                let expected = format!("1 x [{m}, {k}] · [{k}, {n}] f32: embedded, {path}");
                assert_eq!(matmul(&a, &b, b_turned), [expected], "{threads} threads");
            }
            let along_k = if threads == 1 { "blocked" } else { "along k, small" };
            let expected = format!("1 x [32, 65536] · [65536, 32] f32: embedded, {along_k}");
            assert_eq!(matmul(&[32, 65_536], &[65_536, 32], false), [expected]);
            // 16-bit floats: half as many bytes, which are too few for streaming B.
            let half = |shape: &[usize]| zeros(shape).to_dtype(DType::BF16).unwrap();
            let (a, b) = (half(&[7, 520]), half(&[520, 310]));
            let expected = "1 x [7, 520] · [520, 310] f32: embedded, blocked";
            assert_eq!(words(&trace(|| a.matmul(&b).unwrap()).1), [expected]);

            // A batch, rows stacked over one right side, and left sides whose rows cannot be stacked.
            let batch = |b: T| words(&trace(|| zeros(&[9, 40, 30]).matmul(&b).unwrap()).1);
            let small = ["9 x [40, 30] · [30, 20] f32: embedded, small"];
            assert_eq!(batch(zeros(&[9, 30, 20])), small);
            let rows = ["1 x [360, 30] · [30, 20] f32: embedded, small"];
            assert_eq!(batch(zeros(&[1, 30, 20])), rows);
            let (a, b) = (zeros(&[9, 300, 60]).permute(&[0, 2, 1]).unwrap(), zeros(&[1, 300, 200]));
            let packed = ["9 x [60, 300] · [300, 200] f32: embedded, right side packed"];
            assert_eq!(words(&trace(|| a.matmul(&b).unwrap()).1), packed);
        }
    });
}

/// Parts of one product, and blocks of k, may take different loops: here 24 and 25 rows, and 256 and 10
/// values of k, of which the last ones are added to the sum of all blocks before.
#[test]
fn the_path_of_the_first_part_is_reported() {
    alone("trace::the_path_of_the_first_part_is_reported", || {
        if !embedded() {
            println!("SKIPPED: a library computes the products");
            return;
        }
        for (threads, [m, k, n], path) in [
            (1, [49, 30_000, 100], "blocked"),
            (2, [49, 30_000, 100], "rows of B"),
            (2, [26, 168 * 256 + 10, 60], "along k, blocked"),
        ] {
            set_threads(threads).unwrap();
            let (a, b) = (zeros(&[m, k]), zeros(&[k, n]));
            let expected = format!("1 x [{m}, {k}] · [{k}, {n}] f32: embedded, {path}");
            assert_eq!(words(&trace(|| a.matmul(&b).unwrap()).1), [expected]);
        }
    });
}

/// Also after an error inside; an outer trace includes what an inner one records.
#[test]
fn traces_nest() {
    let (a, b) = (zeros(&[2, 3]), zeros(&[3, 4]));
    let (inner, outer) = trace(|| {
        a.matmul(&b).unwrap();
        let (result, inner) = trace(|| b.matmul(&zeros(&[4, 5])).and_then(|c| c.matmul(&a)));
        assert!(result.is_err());
        a.matmul(&b).unwrap();
        inner
    });
    let shapes = |traced: &[Traced]| traced.iter().map(|it| it.shape).collect::<Vec<_>>();
    assert_eq!(shapes(&inner), [[3, 4, 5]]);
    assert_eq!(shapes(&outer), [[2, 3, 4], [3, 4, 5], [2, 3, 4]]);
}
