//! The checked operations, for any backend.

use swath::backend::gpu::Capabilities;
use swath::ops::{BinaryOp, DropoutMask, ReduceOp, UnaryOp};
use swath::prelude::*;
use swath::{ConvOptions, Padding, PoolOptions};

/// An operation on up to three inputs of about the same number of elements.
#[derive(Clone, Copy, Debug)]
pub enum Case {
    Unary(UnaryOp),
    Binary(BinaryOp),
    /// A sum with a transposed operand.
    Strided,
    /// A row added to all rows.
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
    AvgPool2d,
    Dropout,
    Gather,
    ScatterAdd,
    Cumsum,
    Cat,
}

/// The variants of a case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// The result in `f32`.
    F32,
    /// The gradients of the sum of the cubes of the result, in `f32`.
    Gradients,
    /// The result in `f16`.
    F16,
    /// The result in `i64`.
    I64,
}

/// Returns the cases that a device supports.
pub fn all(device: &Capabilities) -> Vec<(Case, Kind)> {
    let mut functions: Vec<Case> = UnaryOp::ALL.iter().map(|&op| Case::Unary(op)).collect();
    functions.extend(BinaryOp::ALL.iter().map(|&op| Case::Binary(op)));
    let both = |op| [Case::Reduce(op, false), Case::Reduce(op, true)];
    let reductions: Vec<Case> = ReduceOp::ALL.into_iter().flat_map(both).collect();
    use Case::{
        Attention, AvgPool2d, Binary, Broadcast, Cat, Conv2d, CrossEntropy, Cumsum, Dropout,
        Gather, LayerNorm, Matmul, MatmulTransposed, MaxPool2d, ScatterAdd, Softmax, Strided,
        Transpose,
    };
    let arrangements = [Strided, Broadcast, Transpose, Gather, ScatterAdd, Cumsum, Cat];
    let compounds = [
        Matmul,
        MatmulTransposed,
        Softmax,
        LayerNorm,
        CrossEntropy,
        Attention,
        Conv2d,
        MaxPool2d,
        AvgPool2d,
        Dropout,
    ];
    let integers = [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Maximum].map(Binary);
    let counts = [ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::ArgMax].map(both);
    let mut cases = Vec::new();
    let mut add = |kind: Kind, of: &[Case]| cases.extend(of.iter().map(|&case| (case, kind)));
    add(Kind::F32, &functions);
    add(Kind::F32, &reductions);
    add(Kind::F32, &arrangements);
    add(Kind::F32, &compounds);
    add(Kind::Gradients, &functions);
    add(Kind::Gradients, &arrangements);
    add(Kind::Gradients, &compounds);
    if device.f16 {
        add(Kind::F16, &functions);
        add(Kind::F16, &arrangements);
        add(Kind::F16, &compounds);
    }
    if device.i64 {
        add(Kind::I64, &integers);
        add(Kind::I64, counts.as_flattened());
        add(Kind::I64, &arrangements);
    }
    cases
}

impl Kind {
    /// Maximum error of a correct result.
    pub fn tolerance(self) -> f64 {
        match self {
            Kind::F32 => 2e-5,
            Kind::Gradients => 1e-4,
            Kind::F16 => 2e-3,
            Kind::I64 => 0.0,
        }
    }

    /// Computes the result or the gradients.
    pub fn run<B: Backend>(self, case: Case, inputs: &[Tensor<B>]) -> Result<Tensor<B>> {
        if self != Kind::Gradients {
            return case.run(inputs);
        }
        let track =
            |x: &Tensor<B>| if x.dtype().is_float() { x.requires_grad() } else { x.clone() };
        let inputs: Vec<Tensor<B>> = inputs.iter().map(track).collect();
        let y = case.run(&inputs)?;
        let mut gradients = y.square()?.mul(&y)?.sum(None, false)?.backward()?;
        let parts = inputs.iter().filter_map(|x| gradients.remove(x)).map(|g| g.flatten(0, -1));
        let parts = parts.collect::<Result<Vec<_>>>()?;
        Tensor::cat(&parts.iter().collect::<Vec<_>>(), 0)
    }
}

/// Returns the side of a square of about this many elements, a multiple of 8.
fn side(elements: usize) -> usize {
    ((elements as f64).sqrt() as usize / 8 * 8).max(8)
}

impl Case {
    pub fn name(self, kind: Kind) -> String {
        let name = match self {
            Case::Unary(op) => op.name().to_owned(),
            Case::Binary(op) => op.name().to_owned(),
            Case::Reduce(op, false) => format!("{op:?} of rows").to_lowercase(),
            Case::Reduce(op, true) => format!("{op:?} of columns").to_lowercase(),
            case => format!("{case:?}").to_lowercase(),
        };
        match kind {
            Kind::F32 => name,
            kind => format!("{name}, {}", format!("{kind:?}").to_lowercase()),
        }
    }

    /// Draws inputs with about this many elements each.
    pub fn inputs(
        self,
        kind: Kind,
        elements: usize,
        rng: &mut Rng,
    ) -> Result<Vec<Tensor<CpuBackend>>> {
        let converted = |x: Tensor<CpuBackend>| match kind {
            Kind::F16 if x.dtype().is_float() => x.to_dtype(DType::F16),
            Kind::I64 if x.dtype().is_float() => x.mul(100.0)?.to_dtype(DType::I64),
            _ => Ok(x),
        };
        self.drawn(elements, rng)?.into_iter().map(converted).collect()
    }

    fn drawn(self, elements: usize, rng: &mut Rng) -> Result<Vec<Tensor<CpuBackend>>> {
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
            Case::Conv2d | Case::MaxPool2d | Case::AvgPool2d => {
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
            Case::Binary(op) => x.binary(op, other),
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
            Case::AvgPool2d => x.avg_pool2d(PoolOptions::default()),
            Case::Cumsum => x.cumsum(1),
            Case::Dropout => x.dropout(DropoutMask { p: 0.25, seed: 1, stream: 2 }),
            Case::Gather => x.gather(0, other),
            Case::ScatterAdd => x.scatter_add(0, other, &inputs[2]),
            Case::Cat => Tensor::cat(&[x, other], 1),
        }
    }
}
