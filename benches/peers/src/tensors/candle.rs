//! candle.

use candle_core::{D, DType, Device, Result, Tensor};
use candle_nn::ops::{layer_norm, softmax_last_dim};

use super::{EPSILON, Inputs, Peer, call};

pub struct Operands {
    a: Tensor,
    b: Tensor,
    row: Tensor,
    column: Tensor,
    mask: Tensor,
    columns: Tensor,
    rows: Tensor,
    images: [usize; 4],
    squares: [usize; 3],
}

impl Operands {
    pub fn new(inputs: &Inputs) -> Self {
        let ([rows, columns], cpu) = (inputs.shape, &Device::Cpu);
        let mask: Vec<u8> = inputs.mask.iter().map(|&x| x.into()).collect();
        let make = || -> Result<Self> {
            Ok(Operands {
                a: Tensor::from_slice(&inputs.a, (rows, columns), cpu)?,
                b: Tensor::from_slice(&inputs.b, (rows, columns), cpu)?,
                row: Tensor::from_slice(inputs.row(), columns, cpu)?,
                column: Tensor::from_slice(inputs.column(), (rows, 1), cpu)?,
                mask: Tensor::from_vec(mask, (rows, columns), cpu)?,
                columns: Tensor::from_slice(&inputs.columns, (rows, columns), cpu)?,
                rows: Tensor::from_slice(&inputs.rows, rows, cpu)?,
                images: inputs.images,
                squares: inputs.squares,
            })
        };
        make().expect("shapes fit")
    }
}

pub fn peer<'a>(name: &str, operands: &'a Operands) -> Option<Box<dyn Peer + 'a>> {
    let function: fn(&Operands) -> Result<Tensor> = match name {
        "sum" => |x| x.a.sum_all(),
        "sum axis 0" => |x| x.a.sum(0),
        "sum axis 1" => |x| x.a.sum(1),
        "mean" => |x| x.a.mean_all(),
        "max" => |x| x.a.max_all(),
        "max axis 1" => |x| x.a.max(1),
        "argmax axis 1" => |x| x.a.argmax(D::Minus1),
        "variance axis 1" => |x| x.a.var(1),
        "logsumexp axis 1" => |x| x.a.log_sum_exp(1),
        "softmax" => |x| softmax_last_dim(&x.a),
        "layer_norm" => |x| layer_norm(&x.a, &x.row, &x.row, EPSILON),
        "cumsum axis 1" => |x| x.a.cumsum(1),
        "where_cond" => |x| x.mask.where_cond(&x.a, &x.b),
        "lt" => |x| x.a.lt(&x.b),
        "to f16" => |x| x.a.to_dtype(DType::F16),
        "to i64" => |x| x.a.to_dtype(DType::I64),
        "gather axis 1" => |x| x.a.gather(&x.columns, 1),
        "index_select axis 0" => |x| x.a.index_select(&x.rows, 0),
        "a + row" => |x| x.a.broadcast_add(&x.row),
        "a + column" => |x| x.a.broadcast_add(&x.column),
        "a + scalar" => |x| &x.a + 0.5,
        "a.t() + b" => |x| x.a.t()? + &x.b,
        "a.t() contiguous" => |x| x.a.t()?.contiguous(),
        "permute(0, 2, 1, 3)" => |x| x.a.reshape(&x.images)?.permute((0, 2, 1, 3))?.contiguous(),
        "a.flip(1).t() + b" => |x| x.a.flip(&[1])?.t()? + &x.b,
        "squares.t() + b" => {
            |x| x.a.reshape(&x.squares)?.permute((0, 2, 1))? + x.b.reshape(&x.squares)?
        }
        _ => return None,
    };
    call(operands, function, |result| {
        let read = || result?.to_dtype(DType::F32)?.flatten_all()?.to_vec1();
        read().expect("shapes and axes fit")
    })
}
