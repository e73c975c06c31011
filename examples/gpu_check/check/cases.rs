//! The operations that are checked, each for any backend.

use swath::ops::{BinaryOp, DropoutMask, ReduceOp, UnaryOp};
use swath::prelude::*;
use swath::{ConvOptions, Padding, PoolOptions};

/// An operation on up to three inputs of about the same number of elements.
#[derive(Clone, Copy, Debug)]
pub enum Case {
    Unary(UnaryOp),
    Binary(BinaryOp),
    /// Two operands of which one is transposed.
    Strided,
    /// A row added to every row.
    Broadcast,
    Transpose,
    Reduce(ReduceOp, bool),
    Matmul,
    MatmulTransposed,
    Softmax,
    LayerNorm,
    CrossEntropy,
    Attention,
    Conv2d,
    MaxPool2d,
    Dropout,
    Gather,
    ScatterAdd,
    Cat,
}

pub fn all() -> Vec<Case> {
    let mut cases: Vec<Case> = UnaryOp::ALL.iter().map(|&op| Case::Unary(op)).collect();
    cases.extend(BinaryOp::ALL.iter().map(|&op| Case::Binary(op)));
    for op in ReduceOp::ALL {
        cases.extend([Case::Reduce(op, false), Case::Reduce(op, true)]);
    }
    use Case::{
        Attention, Broadcast, Cat, Conv2d, CrossEntropy, Dropout, Gather, LayerNorm, Matmul,
        MatmulTransposed, MaxPool2d, ScatterAdd, Softmax, Strided, Transpose,
    };
    cases.extend([Strided, Broadcast, Transpose, Matmul, MatmulTransposed, Softmax, LayerNorm]);
    cases.extend([CrossEntropy, Attention, Conv2d, MaxPool2d, Dropout, Gather, ScatterAdd, Cat]);
    cases
}

/// Extent of a square of about this many elements, a multiple of 8.
fn side(elements: usize) -> usize {
    ((elements as f64).sqrt() as usize / 8 * 8).max(8)
}

impl Case {
    pub fn name(self) -> String {
        match self {
            Case::Unary(op) => op.name().to_owned(),
            Case::Binary(op) => op.name().to_owned(),
            Case::Reduce(op, false) => format!("{op:?} of rows").to_lowercase(),
            Case::Reduce(op, true) => format!("{op:?} of columns").to_lowercase(),
            case => format!("{case:?}").to_lowercase(),
        }
    }

    /// Inputs with about this many elements each.
    pub fn inputs(self, elements: usize, rng: &mut Rng) -> Result<Vec<Tensor<CpuBackend>>> {
        type T = Tensor<CpuBackend>;
        let n = side(elements);
        let drawn = |(low, high): (f64, f64), rng: &mut Rng| T::rand((n, n), low..high, rng);
        let plain = |rng: &mut Rng| drawn((-1.0, 1.0), rng);
        let indices = |below: usize, rng: &mut Rng| -> Result<T> {
            let values = (0..n * n).map(|_| rng.below(below as u64) as i64);
            T::from_vec(values.collect::<Vec<_>>(), (n, n))
        };
        Ok(match self {
            Case::Unary(op) => vec![drawn(op.domain(), rng)?],
            Case::Binary(op) => {
                let [a, b] = op.domain();
                vec![drawn(a, rng)?, drawn(b, rng)?]
            }
            Case::CrossEntropy => vec![plain(rng)?, indices(n, rng)?.narrow(1, 0, 1)?.reshape(n)?],
            Case::Gather => vec![plain(rng)?, indices(n, rng)?],
            Case::ScatterAdd => vec![plain(rng)?, indices(n, rng)?, plain(rng)?],
            Case::Attention => {
                let (heads, width) = (8, 32);
                let keys = (elements / heads / width).max(4);
                let part = |rng: &mut Rng| T::randn((heads, keys, width), rng);
                vec![part(rng)?, part(rng)?, part(rng)?]
            }
            Case::Conv2d | Case::MaxPool2d => {
                let size = side(elements / 16);
                vec![T::randn((1, 16, size, size), rng)?, T::randn((16, 16, 3, 3), rng)?]
            }
            _ => vec![plain(rng)?, plain(rng)?],
        })
    }

    /// Computes the operation.
    pub fn run<B: Backend>(self, inputs: &[Tensor<B>]) -> Result<Tensor<B>> {
        let x = &inputs[0];
        let other = inputs.get(1).unwrap_or(x);
        match self {
            Case::Unary(op) => x.unary(op),
            Case::Binary(op) => Ok(Tensor::from_data(B::binary(op, x.data(), other.data())?)),
            Case::Strided => x.add(&other.t()?),
            Case::Broadcast => x.add(&other.narrow(0, 0, 1)?),
            Case::Transpose => x.t()?.contiguous(),
            Case::Reduce(op, columns) => {
                let axis = usize::from(!columns);
                Ok(Tensor::from_data(B::reduce(op, x.data(), &[axis])?))
            }
            Case::Matmul => x.matmul(other),
            Case::MatmulTransposed => x.matmul(&other.t()?),
            Case::Softmax => x.softmax(1),
            Case::LayerNorm => x.layer_norm(None, None, 1e-5),
            Case::CrossEntropy => x.cross_entropy(other, CrossEntropy::default()),
            Case::Attention => {
                x.scaled_dot_product_attention(other, &inputs[2], Default::default())
            }
            Case::Conv2d => {
                let options = ConvOptions { padding: Padding::Same, ..Default::default() };
                x.conv2d(other, None, options)
            }
            Case::MaxPool2d => x.max_pool2d(PoolOptions::default()),
            Case::Dropout => x.dropout(DropoutMask { p: 0.25, seed: 1, stream: 2 }),
            Case::Gather => x.gather(0, other),
            Case::ScatterAdd => x.scatter_add(0, other, &inputs[2]),
            Case::Cat => Tensor::cat(&[x, other], 1),
        }
    }
}
