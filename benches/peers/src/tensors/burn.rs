//! burn's backend flex.
//!
//! It makes a tensor contiguous where a reshape cannot be a view.

use burn_tensor::activation::softmax;
use burn_tensor::kind::Basic;
use burn_tensor::module::layer_norm;
use burn_tensor::{Bool, DType, Device, FloatDType, Int, IntDType, Tensor, TensorData, s};

use super::{EPSILON, Inputs, Peer, call};

pub struct Operands {
    a: Tensor<2>,
    b: Tensor<2>,
    row: Tensor<2>,
    column: Tensor<2>,
    weight: Tensor<1>,
    mask: Tensor<2, Bool>,
    columns: Tensor<2, Int>,
    rows: Tensor<1, Int>,
    images: [usize; 4],
    squares: [usize; 3],
}

impl Operands {
    pub fn new(inputs: &Inputs) -> Self {
        let ([rows, columns], device) = (inputs.shape, Device::flex());
        let floats =
            |x: &[f32], shape| Tensor::<2>::from_data(TensorData::new(x.to_vec(), shape), &device);
        let columns_of = TensorData::new(inputs.columns.clone(), [rows, columns]);
        Operands {
            a: floats(&inputs.a, [rows, columns]),
            b: floats(&inputs.b, [rows, columns]),
            row: floats(inputs.row(), [1, columns]),
            column: floats(inputs.column(), [rows, 1]),
            weight: Tensor::from_floats(inputs.row(), &device),
            mask: Tensor::from_data(TensorData::new(inputs.mask.clone(), inputs.shape), &device),
            columns: Tensor::from_data(columns_of, (&device, DType::I64)),
            rows: Tensor::from_data(&inputs.rows[..], (&device, DType::I64)),
            images: inputs.images,
            squares: inputs.squares,
        }
    }
}

pub fn peer<'a>(name: &str, operands: &'a Operands) -> Option<Box<dyn Peer + 'a>> {
    let x = operands;
    match name {
        "sum" => call(x, |x| x.a.clone().sum(), read),
        "sum axis 0" => call(x, |x| x.a.clone().sum_dim(0), read),
        "sum axis 1" => call(x, |x| x.a.clone().sum_dim(1), read),
        "mean" => call(x, |x| x.a.clone().mean(), read),
        "max" => call(x, |x| x.a.clone().max(), read),
        "max axis 1" => call(x, |x| x.a.clone().max_dim(1), read),
        "argmax axis 1" => call(x, |x| x.a.clone().argmax(1), read),
        "variance axis 1" => call(x, |x| x.a.clone().var(1), read),
        "softmax" => call(x, |x| softmax(x.a.clone(), 1), read),
        "layer_norm" => call(x, normalize, read),
        "cumsum axis 1" => call(x, |x| x.a.clone().cumsum(1), read),
        "where_cond" => call(x, |x| x.b.clone().mask_where(x.mask.clone(), x.a.clone()), read),
        "lt" => call(x, |x| x.a.clone().lower(x.b.clone()), read),
        "to f16" => call(x, |x| x.a.clone().cast(FloatDType::F16), read),
        "to i64" => call(x, |x| x.a.clone().cast(IntDType::I64), read),
        "gather axis 1" => call(x, |x| x.a.clone().gather(1, x.columns.clone()), read),
        "index_select axis 0" => call(x, |x| x.a.clone().select(0, x.rows.clone()), read),
        "a + row" => call(x, |x| x.a.clone().add(x.row.clone()), read),
        "a + column" => call(x, |x| x.a.clone().add(x.column.clone()), read),
        "a + scalar" => call(x, |x| x.a.clone().add_scalar(0.5), read),
        "a.t() + b" => call(x, |x| x.a.clone().t().add(x.b.clone()), read),
        "a.t() contiguous" => call(x, |x| flat(x.a.clone().t()), read),
        "permute(0, 2, 1, 3)" => {
            call(x, |x| flat(x.a.clone().reshape(x.images).permute([0, 2, 1, 3])), read)
        }
        "a.flip(1).t() + b" => call(x, |x| x.a.clone().flip([1]).t().add(x.b.clone()), read),
        "-a[:, ::2].t()" => call(x, |x| x.a.clone().slice(s![.., ..;2]).t().neg(), read),
        "squares.t() + b" => call(
            x,
            |x| {
                x.a.clone()
                    .reshape(x.squares)
                    .permute([0, 2, 1])
                    .add(x.b.clone().reshape(x.squares))
            },
            read,
        ),
        _ => None,
    }
}

fn normalize(x: &Operands) -> Tensor<2> {
    layer_norm(x.a.clone(), x.weight.clone(), Some(x.weight.clone()), EPSILON.into())
}

fn flat<const D: usize>(x: Tensor<D>) -> Tensor<1> {
    let elements = x.dims().iter().product::<usize>();
    x.reshape([elements])
}

fn read<const D: usize, K: Basic>(x: Tensor<D, K>) -> Vec<f32> {
    x.into_data().iter().collect()
}
