//! ndarray: its own operations, and its loops where a closure does the rest.

use half::f16;
use ndarray::{Array, Array1, Array2, Array3, Axis, Dimension, Zip, s};

use super::{Inputs, Peer, call};

pub struct Operands {
    a: Array2<f32>,
    b: Array2<f32>,
    row: Array1<f32>,
    column: Array2<f32>,
    mask: Array2<bool>,
    rows: Vec<usize>,
    images: [usize; 4],
    squares: [usize; 3],
}

impl Operands {
    pub fn new(inputs: &Inputs) -> Self {
        fn array<T: Clone>(x: &[T], shape: [usize; 2]) -> Array2<T> {
            Array2::from_shape_vec(shape, x.to_vec()).expect("shapes fit")
        }
        Operands {
            a: array(&inputs.a, inputs.shape),
            b: array(&inputs.b, inputs.shape),
            row: inputs.row().to_vec().into(),
            column: array(inputs.column(), [inputs.shape[0], 1]),
            mask: array(&inputs.mask, inputs.shape),
            rows: inputs.rows.iter().map(|&row| row as usize).collect(),
            images: inputs.images,
            squares: inputs.squares,
        }
    }
}

pub fn peer<'a>(name: &str, operands: &'a Operands) -> Option<Box<dyn Peer + 'a>> {
    let x = operands;
    match name {
        "sum" => call(x, |x| x.a.sum(), |y| vec![y]),
        "sum axis 0" => call(x, |x| x.a.sum_axis(Axis(0)), read),
        "sum axis 1" => call(x, |x| x.a.sum_axis(Axis(1)), read),
        "mean" => call(x, |x| x.a.mean(), |y| y.into_iter().collect()),
        "max" => call(x, |x| x.a.fold(f32::NEG_INFINITY, largest), |y| vec![y]),
        "max axis 1" => {
            call(x, |x| x.a.map_axis(Axis(1), |row| row.fold(f32::NEG_INFINITY, largest)), read)
        }
        "variance axis 1" => call(x, |x| x.a.var_axis(Axis(1), 1.0), read),
        "cumsum axis 1" => call(x, cumsum, read),
        "where_cond" => call(x, choose, read),
        "lt" => call(
            x,
            |x| Zip::from(&x.a).and(&x.b).map_collect(|a, b| a < b),
            |y| y.mapv(|y| f32::from(u8::from(y))).into_iter().collect(),
        ),
        "to f16" => call(x, |x| x.a.mapv(f16::from_f32), |y| read(y.mapv(f16::to_f32))),
        "to i64" => call(x, |x| x.a.mapv(|x| x as i64), |y| read(y.mapv(|y| y as f32))),
        "index_select axis 0" => call(x, |x| x.a.select(Axis(0), &x.rows), read),
        "a + row" => call(x, |x| &x.a + &x.row, read),
        "a + column" => call(x, |x| &x.a + &x.column, read),
        "a + scalar" => call(x, |x| &x.a + 0.5, read),
        "a.t() + b" => call(x, |x| &x.a.t() + &x.b, read),
        "a.t() contiguous" => call(x, |x| x.a.t().as_standard_layout().into_owned(), read),
        "permute(0, 2, 1, 3)" => call(x, permute, read),
        "a.flip(1).t() + b" => call(x, |x| &x.a.slice(s![.., ..;-1]).t() + &x.b, read),
        "-a[:, ::2].t()" => call(x, |x| -&x.a.slice(s![.., ..;2]).t(), read),
        "squares.t() + b" => call(x, squares, read),
        _ => None,
    }
}

fn largest(a: f32, &b: &f32) -> f32 {
    a.max(b)
}

fn cumsum(x: &Operands) -> Array2<f32> {
    let mut y = x.a.clone();
    y.accumulate_axis_inplace(Axis(1), |&before, y| *y += before);
    y
}

fn choose(x: &Operands) -> Array2<f32> {
    Zip::from(&x.mask).and(&x.a).and(&x.b).map_collect(|&mask, &a, &b| if mask { a } else { b })
}

fn permute(x: &Operands) -> ndarray::Array4<f32> {
    let images = x.a.view().into_shape_with_order(x.images).expect("as many elements");
    images.permuted_axes([0, 2, 1, 3]).as_standard_layout().into_owned()
}

fn squares(x: &Operands) -> Array3<f32> {
    let a = x.a.view().into_shape_with_order(x.squares).expect("as many elements");
    let b = x.b.view().into_shape_with_order(x.squares).expect("as many elements");
    &a.permuted_axes([0, 2, 1]) + &b
}

/// In row-major order, whatever the layout.
fn read<D: Dimension>(x: Array<f32, D>) -> Vec<f32> {
    x.iter().copied().collect()
}
