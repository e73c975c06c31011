//! swath.

use swath::prelude::*;

use super::{EPSILON, Inputs, Peer, call};

type T = Tensor<CpuBackend>;

pub struct Operands {
    a: T,
    b: T,
    row: T,
    column: T,
    mask: T,
    columns: T,
    rows: T,
    images: [usize; 4],
    squares: [usize; 3],
}

impl Operands {
    pub fn new(inputs: &Inputs) -> Self {
        let [rows, columns] = inputs.shape;
        let make = || -> Result<Self> {
            Ok(Operands {
                a: T::from_slice(&inputs.a, (rows, columns))?,
                b: T::from_slice(&inputs.b, (rows, columns))?,
                row: T::from_slice(inputs.row(), columns)?,
                column: T::from_slice(inputs.column(), (rows, 1))?,
                mask: T::from_slice(&inputs.mask, (rows, columns))?,
                columns: T::from_slice(&inputs.columns, (rows, columns))?,
                rows: T::from_slice(&inputs.rows, rows)?,
                images: inputs.images,
                squares: inputs.squares,
            })
        };
        make().expect("shapes fit")
    }
}

pub fn peer<'a>(name: &str, operands: &'a Operands) -> Option<Box<dyn Peer + 'a>> {
    let function: fn(&Operands) -> Result<T> = match name {
        "sum" => |x| x.a.sum(None, false),
        "sum axis 0" => |x| x.a.sum_axis(0, false),
        "sum axis 1" => |x| x.a.sum_axis(1, false),
        "mean" => |x| x.a.mean(None, false),
        "max" => |x| x.a.max(None, false),
        "max axis 1" => |x| x.a.max_axis(1, false),
        "argmax axis 1" => |x| x.a.argmax(1, false),
        "variance axis 1" => |x| x.a.variance_axis(1, false, 1),
        "logsumexp axis 1" => |x| x.a.logsumexp_axis(1, false),
        "softmax" => |x| x.a.softmax(-1),
        "layer_norm" => |x| x.a.layer_norm(Some(&x.row), Some(&x.row), EPSILON.into()),
        "cumsum axis 1" => |x| x.a.cumsum(1),
        "where_cond" => |x| T::where_cond(&x.mask, &x.a, &x.b),
        "lt" => |x| x.a.lt(&x.b),
        "to f16" => |x| x.a.to_dtype(DType::F16),
        "to i64" => |x| x.a.to_dtype(DType::I64),
        "gather axis 1" => |x| x.a.gather(1, &x.columns),
        "index_select axis 0" => |x| x.a.index_select(0, &x.rows),
        "a + row" => |x| x.a.add(&x.row),
        "a + column" => |x| x.a.add(&x.column),
        "a + scalar" => |x| x.a.add_scalar(0.5),
        "a.t() + b" => |x| x.a.t()?.add(&x.b),
        "a.t() contiguous" => |x| x.a.t()?.contiguous(),
        "permute(0, 2, 1, 3)" => |x| x.a.reshape(x.images)?.permute(&[0, 2, 1, 3])?.contiguous(),
        "a.flip(1).t() + b" => |x| x.a.flip(1)?.t()?.add(&x.b),
        "-a[:, ::2].t()" => |x| x.a.slice(s![.., ..;2])?.t()?.neg(),
        "squares.t() + b" => {
            |x| x.a.reshape(x.squares)?.permute(&[0, 2, 1])?.add(x.b.reshape(x.squares)?)
        }
        _ => return None,
    };
    call(operands, function, |result| {
        let read = || result?.to_dtype(DType::F32)?.to_vec();
        read().expect("shapes and axes fit")
    })
}
