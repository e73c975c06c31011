//! rten-vecmath, row by row, into memory that is there.

use std::hint::black_box;
use std::mem::MaybeUninit;

use rten_simd::{SimdOp, f16};
use rten_vecmath::{F32ToF16, MaxNum, Normalize, NormalizeOptions, Softmax, Sum, SumSquareSub};

use super::{EPSILON, Inputs, Peer};

struct Slices<'a, E> {
    inputs: &'a Inputs,
    y: Vec<E>,
    function: fn(&Inputs, &mut [E]),
    read: fn(E) -> f32,
}

impl<E: Copy> Peer for Slices<'_, E> {
    fn run(&mut self) {
        (self.function)(black_box(self.inputs), black_box(&mut self.y));
    }

    fn results(&mut self) -> Vec<f32> {
        self.run();
        self.y.iter().map(|&y| (self.read)(y)).collect()
    }
}

pub fn peer<'a>(name: &str, inputs: &'a Inputs) -> Option<Box<dyn Peer + 'a>> {
    let [rows, columns] = inputs.shape;
    let floats = |elements: usize, function| -> Option<Box<dyn Peer + 'a>> {
        Some(Box::new(Slices { inputs, y: vec![0f32; elements], function, read: |y| y }))
    };
    match name {
        "sum" => floats(1, |x, y| y[0] = Sum::new(&x.a).dispatch()),
        "sum axis 1" => floats(rows, |x, y| per_row(x, y, |row| Sum::new(row).dispatch())),
        "mean" => floats(1, |x, y| y[0] = Sum::new(&x.a).dispatch() / x.a.len() as f32),
        "max" => floats(1, |x, y| y[0] = MaxNum::new(&x.a).dispatch()),
        "max axis 1" => floats(rows, |x, y| per_row(x, y, |row| MaxNum::new(row).dispatch())),
        "variance axis 1" => floats(rows, |x, y| {
            per_row(x, y, |row| squares(row).1 / (row.len() - 1) as f32);
        }),
        "softmax" => floats(rows * columns, |x, y| {
            for (x, y) in in_rows(x, y) {
                Softmax::new(x, memory(y)).dispatch();
            }
        }),
        "layer_norm" => floats(rows * columns, |x, y| {
            let weight = Some(x.row());
            for (x, y) in in_rows(x, y) {
                let (mean, squares) = squares(x);
                let options = NormalizeOptions {
                    pre_scale_bias: mean,
                    scale: 1.0 / (squares / x.len() as f32 + EPSILON).sqrt(),
                    element_scale: weight,
                    element_bias: weight,
                    ..Default::default()
                };
                Normalize::new(x, memory(y), options).dispatch();
            }
        }),
        "to f16" => Some(Box::new(Slices {
            inputs,
            y: vec![f16::from_f32(0.0); rows * columns],
            function: |x, y| _ = F32ToF16::new(&x.a, memory(y)).dispatch(),
            read: f16::to_f32,
        })),
        _ => None,
    }
}

fn per_row(x: &Inputs, y: &mut [f32], f: impl Fn(&[f32]) -> f32) {
    for (row, y) in x.a.chunks_exact(x.shape[1]).zip(y) {
        *y = f(row);
    }
}

fn in_rows<'a>(
    x: &'a Inputs,
    y: &'a mut [f32],
) -> impl Iterator<Item = (&'a [f32], &'a mut [f32])> {
    x.a.chunks_exact(x.shape[1]).zip(y.chunks_exact_mut(x.shape[1]))
}

/// The mean and the sum of squared distances from it.
fn squares(row: &[f32]) -> (f32, f32) {
    let mean = Sum::new(row).dispatch() / row.len() as f32;
    (mean, SumSquareSub::new(row, mean).dispatch())
}

fn memory<E: Copy>(y: &mut [E]) -> &mut [MaybeUninit<E>] {
    // SAFETY: memory that holds numbers may hold anything; rten's functions leave numbers in all of it.
    unsafe { &mut *(y as *mut [E] as *mut [MaybeUninit<E>]) }
}
