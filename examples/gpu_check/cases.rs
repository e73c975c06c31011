//! The operations.

use swath::ops::{BinaryOp, DropoutMask, ReduceOp, UnaryOp};
use swath::prelude::*;
use swath::{AnyBackend, ConvOptions, Padding, PoolOptions};

pub type T = Tensor<AnyBackend>;

/// Matrices `a` and `b` of `[n, n]`, indices below n of the same shape, weights of a convolution.
pub type Inputs = [T; 4];

/// An operation on one or more of the inputs.
pub struct Case {
    pub name: String,
    pub kinds: &'static [Kind],
    /// The ranges of the elements of `a` and `b`.
    domains: [(f64, f64); 2],
    run: Run,
}

/// A variant of a case.
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

const ALL: &[Kind] = &[Kind::F32, Kind::Gradients, Kind::F16, Kind::I64];
const FLOATS: &[Kind] = &[Kind::F32, Kind::Gradients, Kind::F16];

type Run = Box<dyn Fn(&Inputs) -> Result<T>>;
type Function = fn(&Inputs) -> Result<T>;

/// Operations that move or add elements.
const ARRANGEMENTS: [(&str, Function); 7] = [
    ("a + b.t()", |[a, b, ..]| a.add(&b.t()?)),
    ("a + row", |[a, b, ..]| a.add(&b.narrow(0, 0, 1)?)),
    ("transpose", |[a, ..]| a.t()?.contiguous()),
    ("gather", |[a, _, indices, _]| a.gather(0, indices)),
    ("scatter_add", |[a, b, indices, _]| a.scatter_add(0, indices, b)),
    ("cumsum", |[a, ..]| a.cumsum(1)),
    ("cat", |[a, b, ..]| Tensor::cat(&[a, b], 1)),
];

const COMPOUNDS: [(&str, Function); 10] = [
    ("matmul", |[a, b, ..]| a.matmul(b)),
    ("matmul by b.t()", |[a, b, ..]| a.matmul(&b.t()?)),
    ("softmax", |[a, ..]| a.softmax(1)),
    ("layer_norm", |[a, ..]| a.layer_norm(None, None, 1e-5)),
    ("cross_entropy", |[a, _, indices, _]| {
        a.cross_entropy(&indices.narrow(0, 0, 1)?.flatten(0, -1)?, CrossEntropy::default())
    }),
    ("attention", |[a, b, ..]| {
        let [q, k] = [a.reshape((8, -1, 32))?, b.reshape((8, -1, 32))?];
        q.scaled_dot_product_attention(&k, &q, Attention::default())
    }),
    ("conv2d", |[a, _, _, weight]| {
        let options = ConvOptions { padding: Padding::Same, ..Default::default() };
        image(a)?.conv2d(weight, None, options)
    }),
    ("max_pool2d", |[a, ..]| image(a)?.max_pool2d(PoolOptions::default())),
    ("avg_pool2d", |[a, ..]| image(a)?.avg_pool2d(PoolOptions::default())),
    ("dropout", |[a, ..]| a.dropout(DropoutMask { p: 0.25, seed: 1, stream: 2 })),
];

/// An image of 16 channels.
fn image(a: &T) -> Result<T> {
    let side = a.dims()[0] / 4;
    a.reshape((1, 16, side, side))
}

/// Returns every function, reduction and arithmetic operation, and one or two of each other kind.
pub fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |name: String, kinds, domains, run: Run| {
        cases.push(Case { name, kinds, domains, run });
    };
    let plain = (-1.0, 1.0);
    for &op in UnaryOp::ALL {
        let run = move |[a, ..]: &Inputs| a.unary(op);
        add(op.name().to_owned(), FLOATS, [op.domain(), plain], Box::new(run));
    }
    for &op in BinaryOp::ALL {
        use BinaryOp::{Add, Maximum, Mul, Sub};
        let kinds = if matches!(op, Add | Sub | Mul | Maximum) { ALL } else { FLOATS };
        let run = move |[a, b, ..]: &Inputs| a.binary(op, b);
        add(op.name().to_owned(), kinds, op.domain(), Box::new(run));
    }
    for (op, axis) in ReduceOp::ALL.into_iter().flat_map(|op| [(op, 1), (op, 0)]) {
        use ReduceOp::{ArgMax, Max, Prod, Sum};
        let is_whole = matches!(op, Sum | Prod | Max | ArgMax);
        let kinds: &[Kind] = if is_whole { &[Kind::F32, Kind::I64] } else { &[Kind::F32] };
        let name = format!("{op:?} of {}", ["columns", "rows"][axis]).to_lowercase();
        let run =
            move |[a, ..]: &Inputs| Ok(T::from_data(AnyBackend::reduce(op, a.data(), &[axis])?));
        add(name, kinds, [plain; 2], Box::new(run));
    }
    for (table, kinds) in [(&ARRANGEMENTS[..], ALL), (&COMPOUNDS[..], FLOATS)] {
        for &(name, run) in table {
            add(name.to_owned(), kinds, [plain; 2], Box::new(run));
        }
    }
    cases
}

impl Kind {
    pub fn dtype(self) -> DType {
        match self {
            Kind::F32 | Kind::Gradients => DType::F32,
            Kind::F16 => DType::F16,
            Kind::I64 => DType::I64,
        }
    }

    /// Returns the maximum error of a correct result.
    pub fn tolerance(self) -> f64 {
        match self {
            Kind::F32 => 2e-5,
            Kind::Gradients => 1e-4,
            Kind::F16 => 2e-3,
            Kind::I64 => 0.0,
        }
    }
}

impl Case {
    /// Draws inputs for matrices of `[n, n]`, on the device of the thread.
    pub fn inputs(&self, kind: Kind, n: usize) -> Result<Inputs> {
        let mut rng = Rng::seed(1);
        let mut drawn = |shape: Shape, (low, high): (f64, f64)| {
            let x = T::rand(shape, low..high, &mut rng)?;
            let x = if kind == Kind::I64 { x.mul(100.0)? } else { x };
            x.to_dtype(kind.dtype())
        };
        let [a, b] = self.domains.map(|domain| drawn((n, n).into(), domain));
        let weight = drawn((16, 16, 3, 3).into(), (-1.0, 1.0))?;
        Ok([a?, b?, T::randint((n, n), 0..n as i64, &mut rng)?, weight])
    }

    /// Computes the result or the gradients.
    pub fn run(&self, kind: Kind, inputs: &Inputs) -> Result<T> {
        if kind != Kind::Gradients {
            return (self.run)(inputs);
        }
        let track = |x: &T| if x.dtype().is_float() { x.requires_grad() } else { x.clone() };
        let inputs = inputs.each_ref().map(track);
        let y = (self.run)(&inputs)?;
        let mut gradients = y.square()?.mul(&y)?.sum(None, false)?.backward()?;
        let parts = inputs.iter().filter_map(|x| gradients.remove(x)).map(|g| g.flatten(0, -1));
        let parts = parts.collect::<Result<Vec<_>>>()?;
        Tensor::cat(&parts.iter().collect::<Vec<_>>(), 0)
    }
}
