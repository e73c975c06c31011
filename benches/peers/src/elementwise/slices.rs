//! swath, ndarray and rten-vecmath, which all write to a slice that is there.

use std::hint::black_box;
use std::mem::MaybeUninit;

use ndarray::{ArrayView1, ArrayViewMut1, Zip};
use rten_simd::SimdUnaryOp;

use super::Peer;

/// The exponent of `pow_scalar`.
pub const EXPONENT: f32 = 1.7;

/// Results from first and second arguments.
pub type Function = fn(&[f32], &[f32], &mut [f32]);

pub struct Slices {
    function: Function,
    a: Vec<f32>,
    b: Vec<f32>,
    y: Vec<f32>,
}

impl Slices {
    pub fn new(function: Function, a: &[f32], b: &[f32]) -> Self {
        Slices { function, a: a.to_vec(), b: b.to_vec(), y: vec![0.0; a.len()] }
    }
}

impl Peer for Slices {
    fn run(&mut self) {
        (self.function)(black_box(&self.a), black_box(&self.b), black_box(&mut self.y));
    }

    fn results(&mut self) -> Vec<f32> {
        self.run();
        self.y.clone()
    }
}

/// ndarray's loops, and the standard library's functions in them.
pub fn ndarray(name: &str) -> Option<Function> {
    fn map(x: &[f32], y: &mut [f32], f: impl Fn(f32) -> f32) {
        Zip::from(ArrayViewMut1::from(y)).and(ArrayView1::from(x)).for_each(|y, &x| *y = f(x));
    }
    fn map2(a: &[f32], b: &[f32], y: &mut [f32], f: impl Fn(f32, f32) -> f32) {
        let (a, b) = (ArrayView1::from(a), ArrayView1::from(b));
        Zip::from(ArrayViewMut1::from(y)).and(a).and(b).for_each(|y, &a, &b| *y = f(a, b));
    }
    Some(match name {
        "neg" => |x, _, y| map(x, y, |x| -x),
        "relu" => |x, _, y| map(x, y, |x| x.max(0.0)),
        "sqrt" => |x, _, y| map(x, y, f32::sqrt),
        "exp" => |x, _, y| map(x, y, f32::exp),
        "log" => |x, _, y| map(x, y, f32::ln),
        "tanh" => |x, _, y| map(x, y, f32::tanh),
        "sin" => |x, _, y| map(x, y, f32::sin),
        "cos" => |x, _, y| map(x, y, f32::cos),
        "sigmoid" => |x, _, y| map(x, y, |x| 1.0 / (1.0 + (-x).exp())),
        "silu" => |x, _, y| map(x, y, |x| x / (1.0 + (-x).exp())),
        "gelu_tanh" => |x, _, y| {
            map(x, y, |x| 0.5 * x * (1.0 + (0.797_884_6 * (x + 0.044_715 * x * x * x)).tanh()))
        },
        "add" => |a, b, y| map2(a, b, y, |a, b| a + b),
        "mul" => |a, b, y| map2(a, b, y, |a, b| a * b),
        "pow" => |a, b, y| map2(a, b, y, f32::powf),
        "pow_scalar" => |a, _, y| map(a, y, |a| a.powf(EXPONENT)),
        _ => return None,
    })
}

pub fn rten(name: &str) -> Option<Function> {
    fn map(op: impl SimdUnaryOp<f32>, x: &[f32], y: &mut [f32]) {
        // SAFETY: memory that holds numbers may hold anything; `map` leaves numbers in all of it.
        let y: &mut [MaybeUninit<f32>] =
            unsafe { &mut *(y as *mut [f32] as *mut [MaybeUninit<f32>]) };
        op.map(x, y);
    }
    Some(match name {
        "exp" => |x, _, y| map(rten_vecmath::Exp {}, x, y),
        "tanh" => |x, _, y| map(rten_vecmath::Tanh {}, x, y),
        "sigmoid" => |x, _, y| map(rten_vecmath::Sigmoid {}, x, y),
        "silu" => |x, _, y| map(rten_vecmath::Silu {}, x, y),
        "gelu_tanh" => |x, _, y| map(rten_vecmath::ApproxGelu {}, x, y),
        "gelu" => |x, _, y| map(rten_vecmath::Gelu {}, x, y),
        "sin" => |x, _, y| map(rten_vecmath::Sin::new(), x, y),
        "cos" => |x, _, y| map(rten_vecmath::Cos::new(), x, y),
        "erf" => |x, _, y| map(rten_vecmath::Erf {}, x, y),
        _ => return None,
    })
}
