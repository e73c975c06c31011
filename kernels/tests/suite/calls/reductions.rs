//! Reductions of slices and of columns, and the scans.

use half::{bf16, f16};
use swath_kernels as k;
use swath_kernels::reduce::{
    All, Any, ArgMax, ArgMin, Max, MaxMagnitude, Mean, Min, MinMagnitude, Norm0, Norm1, Norm2,
    Prod, Reduction, Std, Sum, Variance,
};
use swath_kernels::{
    Accumulate, Addend, Pairwise, PairwiseSum, Partial, Rows, Scan, SquareSum, Truth,
};
use swath_kernels::{partial_columns, reduce, reduce_columns};

use super::{Call, Cell, Part, any, call, changed, input, numbers, output, shapes};

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
    T: Cell + Scan<Total = i64, Out = i64> + Default,
    Sum: Reduction<T, Out = i64>,
    Prod: Reduction<T, Out = i64>,
    Max: Reduction<T, Out = T>,
    Min: Reduction<T, Out = T>,
    ArgMax: Reduction<T, Out = i64>,
    ArgMin: Reduction<T, Out = i64>,
{
    of_both::<T, i64>(calls, ["fold_integers", "fold_integer_columns"], len, 0, &Sum);
    of_both::<T, i64>(calls, ["fold_integers", "fold_integer_columns"], len, 1, &Prod);
    let labels = ["scan_integer_rows", "scan_integer_columns"];
    let fills = (any::<T> as Fill<T>, any::<i64> as Fill<i64>);
    scans::<T>(calls, labels, "cumsum", len, fills, (k::cumsum_rows, k::cumsum_columns));
    scans::<T>(calls, labels, "cumprod", len, fills, (k::cumprod_rows, k::cumprod_columns));
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
    of_columns(calls, columns, len, any::<T>, reduction);
}

/// Rows that are added to four rows, each many times, the last row first; and to two of the four.
fn scatters<T: Cell + Addend>(calls: &mut Vec<Call>, len: usize) {
    for [rows, cols] in shapes(len) {
        let index: Vec<i64> = (0..rows as i64).map(|i| (3 - i * i - i / 4).rem_euclid(4)).collect();
        let (x, index) = (input(&any::<T>(rows * cols, 1)), input(&index));
        let variant = format!("[{rows}, {cols}]");
        let run = move |[x, index, y]: [&mut Part<'_>; 3]| {
            k::scatter_add_rows::<T>(x.of(), index.of(), [4, cols], 0, y.of());
        };
        let slots = [x.clone(), index.clone(), changed(&any::<T>(4 * cols, 2))];
        calls.push(call::<T, 3>("scatter_add_rows", &*variant, slots, run));
        let run = move |[x, index, y]: [&mut Part<'_>; 3]| {
            k::scatter_add_rows::<T>(x.of(), index.of(), [4, cols], 2, y.of());
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
    of_columns(calls, "any_columns", len, any::<T>, &Any);
    of_columns(calls, "all_columns", len, any::<T>, &All);
}

/// Makes a number of elements, determined by a seed.
type Fill<T> = fn(usize, usize) -> Vec<T>;

/// A reduction of the columns of matrices.
fn of_columns<T: Cell, Y: Cell>(
    calls: &mut Vec<Call>,
    name: &'static str,
    len: usize,
    fill: Fill<T>,
    reduction: &'static impl Reduction<T, Out = Y>,
) {
    each_shape(calls, name, reduction.name(), len, fill, |x, rows, stride, y: &mut [Y]| {
        reduce_columns(reduction, x, rows, stride, y);
    });
}

/// A function of the columns of matrices with `len` columns and with `len` rows, contiguous or not.
fn each_shape<T: Cell, Y: Cell>(
    calls: &mut Vec<Call>,
    name: &'static str,
    what: &str,
    len: usize,
    fill: Fill<T>,
    f: impl Fn(&[T], usize, usize, &mut [Y]) + Copy + Send + Sync + 'static,
) {
    for ([rows, cols], gap) in shapes(len).into_iter().flat_map(|shape| [(shape, 0), (shape, 2)]) {
        if rows == 0 {
            continue;
        }
        let stride = cols + gap;
        let x = fill((rows - 1) * stride + cols, 1);
        let source = if cols == 0 { input(&x).any_length() } else { input(&x).at_least() };
        // A shorter result has fewer columns.
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
        ("norm0", |x| reduce(&Norm0, x)),
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
    of_columns(calls, "sum_columns", len, numbers::<E>, &Sum);
    of_columns(calls, "mean_columns", len, numbers::<E>, &Mean);
    of_columns(calls, "prod_columns", len, numbers::<E>, &Prod);
    of_columns(calls, "variance_columns", len, numbers::<E>, &Variance { ddof: 1 });
    of_columns(calls, "std_columns", len, numbers::<E>, &Std { ddof: 0 });
    of_columns(calls, "norm0_columns", len, numbers::<E>, &Norm0);
    of_columns(calls, "norm1_columns", len, numbers::<E>, &Norm1);
    of_columns(calls, "norm2_columns", len, numbers::<E>, &Norm2);
    let parts: [(&'static str, fn(&[E], usize, usize, &mut [f64])); 6] = [
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
    for (name, fold) in parts {
        each_shape(calls, name, "", len, numbers::<E>, fold);
    }
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

fn of_real<E: Cell + Rows + Scan<Total = f64, Out = E>>(calls: &mut Vec<Call>, len: usize) {
    let folds: [(&str, fn(&[E]) -> E); 5] = [
        ("logsumexp", k::logsumexp),
        ("max", |x| k::max(x).unwrap_or(E::ZERO)),
        ("min", |x| k::min(x).unwrap_or(E::ZERO)),
        ("max_magnitude", |x| reduce(&MaxMagnitude, x)),
        ("min_magnitude", |x| if x.is_empty() { E::ZERO } else { reduce(&MinMagnitude, x) }),
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
    each_shape(
        calls,
        "logsumexp_columns",
        "",
        len,
        numbers::<E>,
        |x, rows, stride, y: &mut [E]| {
            k::logsumexp_columns::<E>(x, rows, stride, y);
        },
    );
    of_columns(calls, "max_columns", len, numbers::<E>, &Max);
    of_columns(calls, "min_columns", len, numbers::<E>, &Min);
    of_columns(calls, "max_magnitude_columns", len, numbers::<E>, &MaxMagnitude);
    of_columns(calls, "min_magnitude_columns", len, numbers::<E>, &MinMagnitude);
    of_columns(calls, "argmax_columns", len, numbers::<E>, &ArgMax);
    of_columns(calls, "argmin_columns", len, numbers::<E>, &ArgMin);
    let fills = (numbers::<E> as Fill<E>, numbers::<f64> as Fill<f64>);
    let labels = ["cumsum_rows", "cumsum_columns"];
    scans::<E>(calls, labels, "cumsum", len, fills, (k::cumsum_rows, k::cumsum_columns));
    let labels = ["cumprod_rows", "cumprod_columns"];
    scans::<E>(calls, labels, "cumprod", len, fills, (k::cumprod_rows, k::cumprod_columns));
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

type RowScan<T> = fn(&[T], usize, &mut [<T as Scan>::Out]);
type ColumnScan<T> = fn(&[T], &mut [<T as Scan>::Total], &mut [<T as Scan>::Out]);

/// A scan along rows and down columns, under two labels.
fn scans<T: Cell + Scan<Total: Cell, Out: Cell>>(
    calls: &mut Vec<Call>,
    labels: [&'static str; 2],
    name: &str,
    len: usize,
    (fill, fill_totals): (Fill<T>, Fill<T::Total>),
    (along, down): (RowScan<T>, ColumnScan<T>),
) {
    for [rows, cols] in shapes(len) {
        let variant = format!("{name} [{rows}, {cols}]");
        let (x, y) = (input(&fill(rows * cols, 1)), output::<T::Out>(rows * cols));
        let slots = [x.clone(), y.clone()];
        let run = move |[x, y]: [&mut Part<'_>; 2]| along(x.of(), cols, y.of());
        calls.push(call::<T, 2>(labels[0], &*variant, slots, run));
        let slots = [x, changed(&fill_totals(cols, 2)), y];
        let run = move |[x, totals, y]: [&mut Part<'_>; 3]| down(x.of(), totals.of(), y.of());
        calls.push(call::<T, 3>(labels[1], variant, slots, run));
    }
}
