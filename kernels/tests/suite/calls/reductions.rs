//! Reductions of slices and of columns, and the scans.

use half::{bf16, f16};
use swath_kernels as k;
use swath_kernels::reduce::{
    ArgMax, ArgMin, Max, Min, Norm0, Norm1, Norm2, Prod, Reduction, Sum, Variance,
};
use swath_kernels::{
    Accumulate, Addend, Integer, IntegerFold, Pairwise, PairwiseSum, Partial, Rows, SquareSum,
    Truth,
};
use swath_kernels::{partial_columns, reduce, reduce_columns};

use super::{Call, Cell, Part, Slot, any, call, changed, input, numbers, output, shapes};

/// Labels of the calls of `reduce`'s generic functions, under which `HASHES.txt` holds their bits.
pub const GENERIC: [&str; 17] = [
    "fold_integers",
    "fold_integer_columns",
    "end_of_integers",
    "end_of_integer_columns",
    "place_of_integers",
    "place_of_integer_columns",
    "sums_of_columns",
    "magnitudes_of_columns",
    "nonzeros_of_columns",
    "products_of_columns",
    "moments_of_columns",
    "squares_of_columns",
    "push_magnitudes",
    "push_nonzeros",
    "push_factors",
    "push_elements",
    "push_squares",
];

pub fn calls(len: usize) -> Vec<Call> {
    let mut calls = Vec::new();
    accumulations::<f16>(&mut calls, len);
    accumulations::<bf16>(&mut calls, len);
    accumulations::<f32>(&mut calls, len);
    accumulations::<f64>(&mut calls, len);
    of_real::<f32>(&mut calls, len);
    of_real::<f64>(&mut calls, len);
    of_integers::<i64>(&mut calls, len);
    of_integers::<u8>(&mut calls, len);
    scatters::<f32>(&mut calls, len);
    scatters::<f64>(&mut calls, len);
    scatters::<i64>(&mut calls, len);
    scatters::<u8>(&mut calls, len);
    integer_products(&mut calls, len);
    integer_arithmetic(&mut calls, len, 7i64);
    integer_arithmetic(&mut calls, len, 7u32);
    truths::<f16>(&mut calls, len);
    truths::<bf16>(&mut calls, len);
    truths::<f32>(&mut calls, len);
    truths::<f64>(&mut calls, len);
    truths::<i64>(&mut calls, len);
    truths::<i32>(&mut calls, len);
    truths::<u32>(&mut calls, len);
    truths::<u8>(&mut calls, len);
    calls
}

fn of_integers<T>(calls: &mut Vec<Call>, len: usize)
where
    T: Cell + Integer + Default,
    Sum: Reduction<T, Out = i64>,
    Prod: Reduction<T, Out = i64>,
    Max: Reduction<T, Out = T>,
    Min: Reduction<T, Out = T>,
    ArgMax: Reduction<T, Out = i64>,
    ArgMin: Reduction<T, Out = i64>,
{
    of_both::<T, i64>(calls, ["fold_integers", "fold_integer_columns"], len, 0, &Sum);
    of_both::<T, i64>(calls, ["fold_integers", "fold_integer_columns"], len, 1, &Prod);
    for (fold, name) in [(IntegerFold::Sum, "sum"), (IntegerFold::Product, "product")] {
        for [rows, cols] in shapes(len) {
            let variant = format!("{name} [{rows}, {cols}]");
            let (x, y) = (input(&any::<T>(rows * cols, 1)), output::<i64>(rows * cols));
            let run = move |[x, y]: [&mut Part<'_>; 2]| {
                k::scan_integer_rows(fold, x.of::<T>(), cols, y.of::<i64>());
            };
            let slots = [x.clone(), y.clone()];
            calls.push(call::<T, 2>("scan_integer_rows", &*variant, slots, run));
            let run = move |[x, totals, y]: [&mut Part<'_>; 3]| {
                k::scan_integer_columns(fold, x.of::<T>(), totals.of(), y.of::<i64>());
            };
            let slots = [x, changed(&any::<i64>(cols, 2)), y];
            calls.push(call::<T, 3>("scan_integer_columns", variant, slots, run));
        }
    }
    let names = ["end_of_integers", "end_of_integer_columns"];
    of_both::<T, T>(calls, names, len, T::default(), &Max);
    of_both::<T, T>(calls, names, len, T::default(), &Min);
    let names = ["place_of_integers", "place_of_integer_columns"];
    of_both::<T, i64>(calls, names, len, -1, &ArgMax);
    of_both::<T, i64>(calls, names, len, -1, &ArgMin);
}

/// A reduction of a slice, with `none` as the result for no elements, and of the columns of
/// matrices.
fn of_both<T: Cell, Y: Cell>(
    calls: &mut Vec<Call>,
    [name, columns]: [&'static str; 2],
    len: usize,
    none: Y,
    reduction: &'static impl Reduction<T, Out = Y>,
) {
    let slots = [input(&any::<T>(len, 1)).any_length(), output::<Y>(1).any_length()];
    let run = move |[x, y]: [&mut Part<'_>; 2]| {
        let x = x.of::<T>();
        y.of::<Y>()[0] = if x.is_empty() { none } else { reduce(reduction, x) };
    };
    calls.push(call::<T, 2>(name, reduction.name(), slots, run));
    each_shape::<T, Y>(calls, columns, reduction.name(), len, move |x, rows, stride, y| {
        reduce_columns(reduction, x, rows, stride, y);
    });
}

/// Rows that are added to four rows, each many times, the last row first; and to two of the four.
fn scatters<T: Cell + Addend>(calls: &mut Vec<Call>, len: usize) {
    for [rows, cols] in shapes(len) {
        let index: Vec<i64> = (0..rows as i64).map(|i| (3 - i * i - i / 4).rem_euclid(4)).collect();
        let (x, index) = (input(&any::<T>(rows * cols, 1)), input(&index));
        let variant = format!("[{rows}, {cols}]");
        let run = move |[x, index, y]: [&mut Part<'_>; 3]| {
            k::scatter_add_rows::<T>(x.of(), index.of(), [4, cols], y.of());
        };
        let slots = [x.clone(), index.clone(), changed(&any::<T>(4 * cols, 2))];
        calls.push(call::<T, 3>("scatter_add_rows", &*variant, slots, run));
        let run = move |[x, index, y]: [&mut Part<'_>; 3]| {
            k::scatter_add_rows_from::<T>(x.of(), index.of(), [4, cols], 2, y.of());
        };
        let slots = [x, index, changed(&any::<T>(2 * cols, 2))];
        calls.push(call::<T, 3>("scatter_add_rows_from", variant, slots, run));
    }
}

/// Two rows by a matrix.
fn integer_products(calls: &mut Vec<Call>, len: usize) {
    for [inner, n] in shapes(len) {
        let (a, b) = (input(&any::<i64>(2 * inner, 1)), input(&any::<i64>(inner * n, 2)));
        let run = move |[a, b, c]: [&mut Part<'_>; 3]| {
            k::integer_gemm(a.of(), b.of(), [2, inner, n], c.of());
        };
        let slots = [a, b, changed(&any::<i64>(2 * n, 3))];
        calls.push(call::<i64, 3>("integer_gemm", format!("[{inner}, {n}]"), slots, run));
    }
}

/// Sums and products of slices, and quotients by a number.
fn integer_arithmetic<T>(calls: &mut Vec<Call>, len: usize, divisor: T)
where
    T: Cell + k::ArithmeticInteger,
{
    use k::{Arg, IntegerOp};
    let slots = [input(&any::<T>(len, 1)), input(&any::<T>(len, 2)), output::<T>(len)];
    for op in [IntegerOp::Add, IntegerOp::Sub, IntegerOp::Mul] {
        let run = move |[a, b, y]: [&mut Part<'_>; 3]| {
            k::integer_map(op, [a.of::<T>(), b.of()].map(|x| Arg::Slice(&*x)), y.of());
        };
        calls.push(call::<T, 3>("integer_map", format!("{op:?}"), slots.clone(), run));
    }
    let [a, _, y] = slots;
    for op in [IntegerOp::Div, IntegerOp::Rem, IntegerOp::FloorDivide] {
        let run = move |[a, y]: [&mut Part<'_>; 2]| {
            k::integer_map(op, [Arg::Slice(&*a.of()), Arg::Scalar(divisor)], y.of());
        };
        calls.push(call::<T, 2>("integer_map", format!("{op:?}"), [a.clone(), y.clone()], run));
    }
}

fn truths<T: Cell + Truth>(calls: &mut Vec<Call>, len: usize) {
    let x = any::<T>(len, 1);
    let folds: [(&str, fn(&[T]) -> bool); 2] = [("any", k::any), ("all", k::all)];
    for (name, fold) in folds {
        let slots = [input(&x).any_length(), output::<u8>(1).any_length()];
        let run = move |[x, y]: [&mut Part<'_>; 2]| y.of::<u8>()[0] = u8::from(fold(x.of()));
        calls.push(call::<T, 2>(name, "", slots, run));
    }
    each_shape::<T, u8>(calls, "any_columns", "", len, |x, n, stride, y| {
        k::any_columns(x, n, stride, y);
    });
    each_shape::<T, u8>(calls, "all_columns", "", len, |x, n, stride, y| {
        k::all_columns(x, n, stride, y);
    });
}

/// A function of the columns of matrices with `len` columns and with `len` rows, contiguous or not.
fn each_shape<T: Cell, Y: Cell>(
    calls: &mut Vec<Call>,
    name: &'static str,
    what: &str,
    len: usize,
    f: impl Fn(&[T], usize, usize, &mut [Y]) + Copy + Send + Sync + 'static,
) {
    for ([rows, cols], gap) in shapes(len).into_iter().flat_map(|shape| [(shape, 0), (shape, 2)]) {
        if rows == 0 {
            continue;
        }
        let stride = cols + gap;
        let x = any::<T>((rows - 1) * stride + cols, 1);
        let source = if cols == 0 { input(&x).any_length() } else { input(&x).at_least() };
        let slots = [source, output::<Y>(cols).any_length()];
        let variant = format!("{what} [{rows}, {cols}] by {stride}");
        calls.push(call::<T, 2>(name, variant, slots, move |[x, y]| {
            f(x.of(), rows, stride, y.of());
        }));
    }
}

/// The reductions of all four float types.
fn accumulations<E: Cell + Accumulate>(calls: &mut Vec<Call>, len: usize) {
    let folds: [(&str, fn(&[E]) -> E); 8] = [
        ("sum", k::sum),
        ("mean", k::mean),
        ("prod", k::prod),
        ("variance", |x| k::variance(x, 1)),
        ("std", |x| k::std(x, 0)),
        ("norm0", k::norm0),
        ("norm1", k::norm1),
        ("norm2", k::norm2),
    ];
    let x = numbers::<E>(len, 1);
    each_fold(calls, &folds, &x);
    let slots = [input(&x), input(&numbers::<E>(len, 2)), output::<E>(1).any_length()];
    calls.push(call::<E, 3>("dot", "", slots, |[a, b, y]| {
        y.of::<E>()[0] = k::dot(a.of(), b.of());
    }));
    pushes::<E>(calls, &x);
    let folds: [(&str, Columns<E>); 8] = [
        ("sum_columns", |x, rows, stride, y| k::sum_columns(x, rows, stride, y)),
        ("mean_columns", |x, rows, stride, y| k::mean_columns(x, rows, stride, y)),
        ("prod_columns", |x, rows, stride, y| k::prod_columns(x, rows, stride, y)),
        ("variance_columns", |x, rows, stride, y| k::variance_columns(x, rows, stride, 1, y)),
        ("std_columns", |x, rows, stride, y| k::std_columns(x, rows, stride, 0, y)),
        ("norm0_columns", |x, rows, stride, y| k::norm0_columns(x, rows, stride, y)),
        ("norm1_columns", |x, rows, stride, y| k::norm1_columns(x, rows, stride, y)),
        ("norm2_columns", |x, rows, stride, y| k::norm2_columns(x, rows, stride, y)),
    ];
    each_column_fold(calls, &folds, len);
    let parts: [(&str, Columns<E, f64>); 6] = [
        ("sums_of_columns", |x, n, stride, y| of_parts(&Sum, x, [n, stride], y, |sum| sum)),
        ("magnitudes_of_columns", |x, n, stride, y| {
            of_parts(&Norm1, x, [n, stride], y, |sum| sum);
        }),
        ("nonzeros_of_columns", |x, n, stride, y| of_parts(&Norm0, x, [n, stride], y, |n| n)),
        ("products_of_columns", |x, n, stride, y| {
            of_parts(&Prod, x, [n, stride], y, |p| p.value())
        }),
        ("moments_of_columns", |x, n, stride, y| {
            of_parts(&Variance { ddof: 0 }, x, [n, stride], y, |moments| moments.squares);
        }),
        ("squares_of_columns", |x, n, stride, y| {
            of_parts(&Norm2, x, [n, stride], y, SquareSum::root);
        }),
    ];
    each_column_fold(calls, &parts, len);
}

/// The accumulators of columns, each converted to a number.
fn of_parts<E, R: Reduction<E>>(
    reduction: &R,
    x: &[E],
    [rows, stride]: [usize; 2],
    y: &mut [f64],
    number: impl Fn(R::Acc) -> f64,
) {
    let mut parts = vec![R::Acc::EMPTY; y.len()];
    partial_columns(reduction, x, rows, stride, &mut parts);
    y.iter_mut().zip(parts).for_each(|(y, part)| *y = number(part));
}

/// Reductions of one slice to one number.
fn each_fold<E: Cell>(calls: &mut Vec<Call>, folds: &[(&'static str, fn(&[E]) -> E)], x: &[E]) {
    for &(name, fold) in folds {
        let slots = [input(x).any_length(), output::<E>(1).any_length()];
        calls.push(call::<E, 2>(name, "", slots, move |[x, y]| y.of::<E>()[0] = fold(x.of())));
    }
}

fn of_real<E: Cell + Rows>(calls: &mut Vec<Call>, len: usize) {
    let folds: [(&str, fn(&[E]) -> E); 5] = [
        ("logsumexp", k::logsumexp),
        ("max", |x| k::max(x).unwrap_or(E::ZERO)),
        ("min", |x| k::min(x).unwrap_or(E::ZERO)),
        ("max_magnitude", |x| k::max_magnitude(x).unwrap_or(E::ZERO)),
        ("min_magnitude", |x| k::min_magnitude(x).unwrap_or(E::ZERO)),
    ];
    let x = numbers::<E>(len, 1);
    each_fold(calls, &folds, &x);
    let slots = [input(&x).any_length(), output::<f64>(1).any_length()];
    calls.push(call::<E, 2>("push_exps", "", slots, |[x, y]| {
        y.of::<f64>()[0] = pushed(|sum: &mut PairwiseSum| sum.push_exps(x.of(), E::ONE));
    }));
    let finds: [(&str, fn(&[E]) -> Option<usize>); 2] =
        [("argmax", k::argmax), ("argmin", k::argmin)];
    for (name, find) in finds {
        let slots = [input(&x).any_length(), output::<i64>(1).any_length()];
        calls.push(call::<E, 2>(name, "", slots, move |[x, y]| {
            y.of::<i64>()[0] = find(x.of()).map_or(-1, |at| at as i64);
        }));
    }
    columns::<E>(calls, len);
    for shape in shapes(len) {
        scans::<E>(calls, shape);
    }
}

fn pushes<E: Cell + Accumulate>(calls: &mut Vec<Call>, x: &[E]) {
    let pushes: [(&str, fn(&[E]) -> f64); 6] = [
        ("push_slice", |x| pushed(|sum: &mut PairwiseSum| sum.push_slice(x))),
        ("push_magnitudes", |x| pushed(|sum| sum.take(&Norm1, x))),
        ("push_nonzeros", |x| pushed(|sum| sum.take(&Norm0, x))),
        ("push_factors", |x| pushed(|product| product.take(&Prod, x)).value()),
        ("push_elements", |x| pushed(|all| all.take(&Variance { ddof: 0 }, x)).squares),
        ("push_squares", |x| pushed(|sum| sum.take(&Norm2, x)).root()),
    ];
    for (name, push) in pushes {
        let slots = [input(x).any_length(), output::<f64>(1).any_length()];
        calls.push(call::<E, 2>(name, "", slots, move |[x, y]| y.of::<f64>()[0] = push(x.of())));
    }
    let slots = [input(x), input(&numbers::<E>(x.len(), 3)), output::<f64>(1).any_length()];
    calls.push(call::<E, 3>("push_products", "", slots, |[a, b, y]| {
        let (a, b) = (a.of::<E>(), b.of());
        y.of::<f64>()[0] = pushed(|sum: &mut PairwiseSum| sum.push_products(a, b));
    }));
}

fn pushed<P: Partial>(push: impl FnOnce(&mut Pairwise<P>)) -> P {
    let mut fold = Pairwise::new();
    push(&mut fold);
    fold.finish()
}

type Columns<E, Y = E> = fn(&[E], usize, usize, &mut [Y]);
type FindColumns<E> = fn(&[E], usize, usize, &mut [i64]);

/// Reductions of each column of matrices with `len` columns and with `len` rows, contiguous or not.
fn each_column_fold<E: Cell, Y: Cell>(
    calls: &mut Vec<Call>,
    folds: &[(&'static str, Columns<E, Y>)],
    len: usize,
) {
    for_each_matrix::<E>(len, |rows, cols, stride, source, variant| {
        for &(name, fold) in folds {
            // A shorter result has fewer columns.
            let slots = [source.clone(), output::<Y>(cols).any_length()];
            calls.push(call::<E, 2>(name, variant, slots, move |[x, y]| {
                fold(x.of(), rows, stride, y.of());
            }));
        }
    });
}

fn for_each_matrix<E: Cell>(len: usize, mut f: impl FnMut(usize, usize, usize, Slot, &str)) {
    for ([rows, cols], gap) in shapes(len).into_iter().flat_map(|shape| [(shape, 0), (shape, 2)]) {
        if rows == 0 {
            continue;
        }
        let stride = cols + gap;
        let x = numbers::<E>((rows - 1) * stride + cols, 1);
        let source = if cols == 0 { input(&x).any_length() } else { input(&x).at_least() };
        f(rows, cols, stride, source, &format!("[{rows}, {cols}] by {stride}"));
    }
}

fn columns<E: Cell + Rows>(calls: &mut Vec<Call>, len: usize) {
    let folds: [(&str, Columns<E>); 5] = [
        ("logsumexp_columns", |x, rows, stride, y| k::logsumexp_columns(x, rows, stride, y)),
        ("max_columns", |x, rows, stride, y| k::max_columns(x, rows, stride, y)),
        ("min_columns", |x, rows, stride, y| k::min_columns(x, rows, stride, y)),
        ("max_magnitude_columns", |x, rows, stride, y| {
            k::max_magnitude_columns(x, rows, stride, y)
        }),
        ("min_magnitude_columns", |x, rows, stride, y| {
            k::min_magnitude_columns(x, rows, stride, y)
        }),
    ];
    each_column_fold(calls, &folds, len);
    let finds: [(&str, FindColumns<E>); 2] = [
        ("argmax_columns", |x, rows, stride, y| k::argmax_columns(x, rows, stride, y)),
        ("argmin_columns", |x, rows, stride, y| k::argmin_columns(x, rows, stride, y)),
    ];
    for_each_matrix::<E>(len, |rows, cols, stride, source, variant| {
        for (name, find) in finds {
            let slots = [source.clone(), output::<i64>(cols).any_length()];
            calls.push(call::<E, 2>(name, variant, slots, move |[x, y]| {
                find(x.of(), rows, stride, y.of());
            }));
        }
    });
}

fn scans<E: Cell + Rows>(calls: &mut Vec<Call>, [rows, cols]: [usize; 2]) {
    let along: [(&str, fn(&[E], usize, &mut [E])); 2] = [
        ("cumsum_rows", |x, cols, y| k::cumsum_rows(x, cols, y)),
        ("cumprod_rows", |x, cols, y| k::cumprod_rows(x, cols, y)),
    ];
    let down: [(&str, fn(&[E], &mut [f64], &mut [E])); 2] = [
        ("cumsum_columns", |x, totals, y| k::cumsum_columns(x, totals, y)),
        ("cumprod_columns", |x, totals, y| k::cumprod_columns(x, totals, y)),
    ];
    let x = numbers::<E>(rows * cols, 1);
    let variant = format!("[{rows}, {cols}]");
    for (name, scan) in along {
        let slots = [input(&x), output::<E>(rows * cols)];
        let run = move |[x, y]: [&mut Part<'_>; 2]| scan(x.of(), cols, y.of());
        calls.push(call::<E, 2>(name, &*variant, slots, run));
    }
    for (name, scan) in down {
        let slots = [input(&x), changed(&numbers::<f64>(cols, 2)), output::<E>(rows * cols)];
        let run = move |[x, totals, y]: [&mut Part<'_>; 3]| scan(x.of(), totals.of(), y.of());
        calls.push(call::<E, 3>(name, &*variant, slots, run));
    }
}
