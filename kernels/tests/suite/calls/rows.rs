//! Functions of rows and their gradients, and the pieces of attention.

use swath_kernels as k;
use swath_kernels::{
    CrossEntropyColumns, CrossEntropyRows, LayerNormGradRows, LayerNormRows, MatMut,
    RmsNormGradRows, RmsNormRows, Rows, ScoreBlock,
};

use super::{Call, Cell, Part, call, changed, input, numbers, output, shapes};

pub fn calls(len: usize) -> Vec<Call> {
    let mut calls = Vec::new();
    of_real::<f32>(&mut calls, len);
    of_real::<f64>(&mut calls, len);
    calls
}

fn of_real<E: Cell + Rows>(calls: &mut Vec<Call>, len: usize) {
    let x = numbers::<E>(len, 1);
    let whole: [(&str, fn(&[E], &mut [E])); 2] =
        [("softmax", |x, y| k::softmax(x, y)), ("log_softmax", |x, y| k::log_softmax(x, y))];
    for (name, function) in whole {
        let slots = [input(&x), output::<E>(len)];
        calls.push(call::<E, 2>(name, "", slots, move |[x, y]| function(x.of(), y.of())));
    }
    for shape in shapes(len) {
        softmaxes::<E>(calls, shape);
        cross_entropies::<E>(calls, shape);
        softmaxes_of_columns::<E>(calls, shape);
        cross_entropies_of_columns::<E>(calls, shape);
        layer_norms::<E>(calls, shape);
        rms_norms::<E>(calls, shape);
        attention::<E>(calls, shape);
    }
}

fn softmaxes<E: Cell + Rows>(calls: &mut Vec<Call>, [rows, cols]: [usize; 2]) {
    let count = rows * cols;
    let variant = format!("[{rows}, {cols}]");
    let [x, g] = [1, 2].map(|seed| numbers::<E>(count, seed));
    let forward: [(&str, fn(&[E], usize, &mut [E])); 2] = [
        ("softmax_rows", |x, cols, y| k::softmax_rows(x, cols, y)),
        ("log_softmax_rows", |x, cols, y| k::log_softmax_rows(x, cols, y)),
    ];
    for (name, function) in forward {
        let run = move |[x, y]: [&mut Part<'_>; 2]| function(x.of(), cols, y.of());
        calls.push(call::<E, 2>(name, &*variant, [input(&x), output::<E>(count)], run));
    }
    let backward: [(&str, fn(&[E], &[E], usize, &mut [E])); 2] = [
        ("softmax_grad_rows", |g, y, cols, dx| k::softmax_grad_rows(g, y, cols, dx)),
        ("log_softmax_grad_rows", |g, y, cols, dx| k::log_softmax_grad_rows(g, y, cols, dx)),
    ];
    for (name, function) in backward {
        let slots = [input(&g), input(&x), output::<E>(count)];
        let run = move |[g, y, dx]: [&mut Part<'_>; 3]| function(g.of(), y.of(), cols, dx.of());
        calls.push(call::<E, 3>(name, &*variant, slots, run));
    }
}

fn logits<'a, E>(
    logits: &'a [E],
    targets: &'a [i64],
    label_smoothing: f64,
) -> CrossEntropyRows<'a, E> {
    CrossEntropyRows { logits, targets, ignore_index: Some(-100), label_smoothing }
}

fn cross_entropies<E: Cell + Rows>(calls: &mut Vec<Call>, [rows, cols]: [usize; 2]) {
    // Without classes only the ignored target is valid.
    let class = |i: usize| if cols == 0 || i % 4 == 2 { -100 } else { (i * 7 % cols) as i64 };
    let targets: Vec<i64> = (0..rows).map(class).collect();
    let [x, g, largest, rest] = [(rows * cols, 1), (rows, 2), (rows, 3), (rows, 4)]
        .map(|(len, seed)| numbers::<E>(len, seed));
    for label_smoothing in [0.0, 0.1] {
        let variant = format!("[{rows}, {cols}] {label_smoothing}");
        let of_rows = output::<E>(rows);
        let slots = [input(&x), input(&targets), of_rows.clone(), of_rows.clone(), of_rows];
        let run = move |[x, targets, losses, largest, rest]: [&mut Part<'_>; 5]| {
            k::cross_entropy_rows(
                logits(x.of(), targets.of(), label_smoothing),
                losses.of::<E>(),
                largest.of::<E>(),
                rest.of::<E>(),
            );
        };
        calls.push(call::<E, 5>("cross_entropy_rows", &*variant, slots, run));
        let [g, largest, rest] = [&g, &largest, &rest].map(|x| input(x));
        let slots = [input(&x), input(&targets), g, largest, rest, output::<E>(rows * cols)];
        let run = move |[x, targets, g, largest, rest, dx]: [&mut Part<'_>; 6]| {
            let rows = logits(x.of(), targets.of(), label_smoothing);
            k::cross_entropy_grad_rows(rows, g.of(), largest.of(), rest.of(), dx.of::<E>());
        };
        calls.push(call::<E, 6>("cross_entropy_grad_rows", &*variant, slots, run));
    }
}

/// Elements of a matrix whose rows are `stride` elements apart.
fn span([rows, cols]: [usize; 2], stride: usize) -> usize {
    if rows == 0 { 0 } else { (rows - 1) * stride + cols }
}

/// A result of as many columns as fit, at most `cols`.
fn matrix<'a, E: Cell>(y: &'a mut Part<'_>, [rows, cols]: [usize; 2]) -> MatMut<'a, E> {
    let y = y.of::<E>();
    let cols = cols.min(y.len().checked_div(rows).unwrap_or(cols));
    MatMut::row_major(y, [rows, cols]).expect("as many columns as fit")
}

fn softmaxes_of_columns<E: Cell + Rows>(calls: &mut Vec<Call>, shape: [usize; 2]) {
    for gap in [0, 3] {
        let stride = shape[1] + gap;
        let variant = format!("{shape:?} by {stride}");
        let [x, g] = [1, 2].map(|seed| input(&numbers::<E>(span(shape, stride), seed)).at_least());
        let out = || output::<E>(shape[0] * shape[1]).any_length();
        let forward: [(&str, fn((&[E], usize), MatMut<'_, E>)); 2] = [
            ("softmax_columns", |x, y| k::softmax_columns(x, y)),
            ("log_softmax_columns", |x, y| k::log_softmax_columns(x, y)),
        ];
        for (name, function) in forward {
            let run = move |[x, y]: [&mut Part<'_>; 2]| {
                function((x.of(), stride), matrix(y, shape));
            };
            calls.push(call::<E, 2>(name, &*variant, [x.clone(), out()], run));
        }
        let backward: [(&str, fn((&[E], usize), (&[E], usize), MatMut<'_, E>)); 2] = [
            ("softmax_grad_columns", |g, y, dx| k::softmax_grad_columns(g, y, dx)),
            ("log_softmax_grad_columns", |g, y, dx| k::log_softmax_grad_columns(g, y, dx)),
        ];
        for (name, function) in backward {
            let run = move |[g, y, dx]: [&mut Part<'_>; 3]| {
                function((g.of(), stride), (y.of(), stride), matrix(dx, shape));
            };
            calls.push(call::<E, 3>(name, &*variant, [g.clone(), x.clone(), out()], run));
        }
    }
}

fn columns_of<'a, E>(
    logits: &'a [E],
    targets: &'a [i64],
    (stride, classes, label_smoothing): (usize, usize, f64),
) -> CrossEntropyColumns<'a, E> {
    CrossEntropyColumns {
        logits,
        stride,
        classes,
        targets,
        ignore_index: Some(-100),
        label_smoothing,
    }
}

fn cross_entropies_of_columns<E: Cell + Rows>(calls: &mut Vec<Call>, shape: [usize; 2]) {
    let [classes, cols] = shape;
    let stride = cols + 1;
    let class = |i: usize| if classes == 0 || i % 4 == 2 { -100 } else { (i * 7 % classes) as i64 };
    let targets: Vec<i64> = (0..cols).map(class).collect();
    let x = input(&numbers::<E>(span(shape, stride), 1)).at_least();
    for label_smoothing in [0.0, 0.1] {
        let variant = format!("{shape:?} {label_smoothing}");
        let options = (stride, classes, label_smoothing);
        let of_columns = output::<E>(cols);
        let slots =
            [x.clone(), input(&targets), of_columns.clone(), of_columns.clone(), of_columns];
        let run = move |[x, targets, losses, largest, rest]: [&mut Part<'_>; 5]| {
            let columns = columns_of::<E>(x.of(), targets.of(), options);
            k::cross_entropy_columns(columns, losses.of(), largest.of(), rest.of());
        };
        calls.push(call::<E, 5>("cross_entropy_columns", &*variant, slots, run));
        let [g, largest, rest] = [2, 3, 4].map(|seed| input(&numbers::<E>(cols, seed)));
        let dx = output::<E>(classes * cols).at_least();
        let slots = [x.clone(), input(&targets), g, largest, rest, dx];
        let run = move |[x, targets, g, largest, rest, dx]: [&mut Part<'_>; 6]| {
            let columns = columns_of::<E>(x.of(), targets.of(), options);
            let (largest, rest) = (largest.of(), rest.of());
            k::cross_entropy_grad_columns(columns, g.of(), largest, rest, matrix(dx, shape));
        };
        calls.push(call::<E, 6>("cross_entropy_grad_columns", &*variant, slots, run));
    }
}

fn layer_norms<E: Cell + Rows>(calls: &mut Vec<Call>, [rows, cols]: [usize; 2]) {
    let count = rows * cols;
    let [x, g] = [1, 2].map(|seed| numbers::<E>(count, seed));
    let [weight, bias] = [3, 4].map(|seed| numbers::<E>(cols, seed));
    let deviation = numbers::<E>(rows, 6);
    let sums = [7, 8].map(|seed| numbers::<f64>(cols, seed));
    // Without rows the length of the parameters is unconstrained.
    let of_row = |slot: super::Slot| if rows == 0 { slot.any_length() } else { slot };
    for is_affine in [false, true] {
        let variant = format!("[{rows}, {cols}] {is_affine}");
        let [w, b] = [&weight, &bias]
            .map(|x| if is_affine { of_row(input(x)) } else { input(x).any_length() });
        let slots =
            [input(&x), w.clone(), b, output::<E>(count), output::<E>(rows), output::<E>(rows)];
        let run = move |[x, w, b, y, mean, deviation]: [&mut Part<'_>; 6]| {
            let (weight, bias) = (is_affine.then_some(&*w.of()), is_affine.then_some(&*b.of()));
            let rows = LayerNormRows { x: x.of(), weight, bias, eps: 1e-5 };
            k::layer_norm_rows(rows, y.of::<E>(), mean.of::<E>(), deviation.of::<E>());
        };
        calls.push(call::<E, 6>("layer_norm_rows", &*variant, slots, run));
        let [dw, db] = [&sums[0], &sums[1]].map(|x| of_row(changed(x)));
        let slots = [input(&g), input(&x), w, input(&deviation), output::<E>(count), dw, db];
        let run = move |[g, x, w, deviation, dx, dw, db]: [&mut Part<'_>; 7]| {
            let rows = LayerNormGradRows {
                g: g.of(),
                x: x.of(),
                weight: is_affine.then_some(&*w.of()),
                reciprocal_deviation: deviation.of(),
            };
            k::layer_norm_grad_rows(rows, dx.of::<E>(), dw.of(), db.of());
        };
        calls.push(call::<E, 7>("layer_norm_grad_rows", &*variant, slots, run));
    }
}

fn rms_norms<E: Cell + Rows>(calls: &mut Vec<Call>, [rows, cols]: [usize; 2]) {
    let count = rows * cols;
    let [x, g] = [1, 2].map(|seed| numbers::<E>(count, seed));
    let [weight, reciprocal] = [(cols, 3), (rows, 4)].map(|(len, seed)| numbers::<E>(len, seed));
    let of_row = |slot: super::Slot| if rows == 0 { slot.any_length() } else { slot };
    for has_weight in [false, true] {
        let variant = format!("[{rows}, {cols}] {has_weight}");
        let w = if has_weight { of_row(input(&weight)) } else { input(&weight).any_length() };
        let slots = [input(&x), w.clone(), output::<E>(count), output::<E>(rows)];
        let run = move |[x, w, y, reciprocal]: [&mut Part<'_>; 4]| {
            let rows = RmsNormRows { x: x.of(), weight: has_weight.then_some(&*w.of()), eps: 1e-5 };
            k::rms_norm_rows(rows, y.of::<E>(), reciprocal.of::<E>());
        };
        calls.push(call::<E, 4>("rms_norm_rows", &*variant, slots, run));
        let dw = of_row(changed(&numbers::<f64>(cols, 5)));
        let slots = [input(&g), input(&x), w, input(&reciprocal), output::<E>(count), dw];
        let run = move |[g, x, w, reciprocal, dx, dw]: [&mut Part<'_>; 6]| {
            let rows = RmsNormGradRows {
                g: g.of(),
                x: x.of(),
                weight: has_weight.then_some(&*w.of()),
                reciprocal_rms: reciprocal.of(),
            };
            k::rms_norm_grad_rows(rows, dx.of::<E>(), dw.of());
        };
        calls.push(call::<E, 6>("rms_norm_grad_rows", &*variant, slots, run));
    }
}

fn attention<E: Cell + Rows>(calls: &mut Vec<Call>, [rows, columns]: [usize; 2]) {
    let scale = E::from_f64(0.125);
    for (gap, seen) in [(0, None), (3, None), (0, Some(1)), (1, Some(-1))] {
        let stride = columns + gap;
        let block = ScoreBlock { rows, columns, stride, seen, scale };
        let count = if rows == 0 { 0 } else { (rows - 1) * stride + columns };
        let variant = format!("[{rows}, {columns}] by {stride}, {seen:?}");
        let [x, g] = [1, 2].map(|seed| numbers::<E>(count, seed));
        let scores = changed(&x).at_least();
        let slots = [scores.clone(), output::<E>(rows), output::<E>(rows)];
        calls.push(call::<E, 3>(
            "attention_weights",
            &*variant,
            slots,
            move |[x, largest, inverse]| {
                k::attention_weights(x.of(), block, largest.of(), inverse.of());
            },
        ));
        let [largest, inverse, mean] = [3, 4, 5].map(|seed| input(&numbers::<E>(rows, seed)));
        let slots = [scores, changed(&g).at_least(), largest, inverse, mean];
        let run = move |[x, g, largest, inverse, mean]: [&mut Part<'_>; 5]| {
            let (largest, inverse, mean) = (largest.of(), inverse.of(), mean.of());
            k::attention_weights_grad(x.of(), g.of(), block, largest, inverse, mean, scale);
        };
        calls.push(call::<E, 5>("attention_weights_grad", &*variant, slots, run));
        // A shorter result has fewer rows; the second operand is one row for all of them.
        let slots = [
            input(&x).at_least(),
            input(&numbers::<E>(columns, 5)).at_least(),
            output::<E>(rows).any_length(),
        ];
        let run = move |[a, b, y]: [&mut Part<'_>; 3]| {
            k::row_dots(columns, (a.of(), stride), (b.of(), 0), y.of::<E>());
        };
        calls.push(call::<E, 3>("row_dots", &*variant, slots, run));
    }
}
