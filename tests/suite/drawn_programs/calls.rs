//! The operations of drawn programs, a row each.

use swath::ops::{BinaryOp, CompareOp, NumberTest, ReduceOp, TernaryOp, UnaryOp};
use swath::prelude::*;
use swath::{
    ConvOptions, CrossEntropy, Interpolation, PadMode, Padding, PoolOptions, Reduction, SliceItem,
};

use super::draw::Draw;

/// Arguments of a call. Most fit the first operand; each row takes those that it has.
#[derive(Debug)]
pub struct Params {
    /// Chooses an op among those of a row.
    pub pick: usize,
    pub axis: isize,
    pub other_axis: isize,
    /// Small numbers: starts, lengths, sizes.
    pub sizes: [usize; 3],
    /// Another shape of as many elements, mostly.
    pub shape: Vec<usize>,
    /// A shape that broadcasting gives, mostly.
    pub wider: Vec<usize>,
    /// An order of the axes, mostly.
    pub order: Vec<usize>,
    /// Axes of a reduction; `None` for all.
    pub axes: Option<Vec<usize>>,
    pub pads: Vec<(isize, isize)>,
    pub items: Vec<SliceItem>,
    pub flag: bool,
    pub other_flag: bool,
    pub number: f64,
    pub dtype: DType,
}

impl Params {
    /// Arguments for a tensor of this shape.
    pub fn new(draw: &mut Draw<'_>, dims: &[usize]) -> Params {
        let rank = dims.len() as isize;
        let axis = |draw: &mut Draw<'_>| match draw.once_in(12) {
            true => draw.choose(&[rank, -rank - 1, isize::MAX, isize::MIN]),
            false => draw.below(2 * dims.len()) as isize - rank,
        };
        let (axis, other_axis) = (axis(draw), axis(draw));
        let sizes = [(); 3].map(|()| match draw.once_in(24) {
            true => draw.choose(&[usize::MAX, 1 << 62, 1000]),
            false => draw.choose(&[1, 2, 0, 3, 4, 1, 5]),
        });
        let numel: usize = dims.iter().product();
        let divisors: Vec<usize> = (1..=numel).filter(|&i| numel.is_multiple_of(i)).collect();
        let shape = match draw.below(8) {
            0 => draw.dims(),
            1 => vec![numel],
            _ if divisors.is_empty() => dims.iter().rev().copied().collect(),
            _ => {
                let first = divisors[draw.below(divisors.len())];
                match draw.once_in(2) {
                    true => vec![first, numel / first],
                    false => vec![numel / first, 1, first],
                }
            }
        };
        let mut wider: Vec<usize> = dims.to_vec();
        for dim in &mut wider {
            if *dim == 1 || draw.once_in(20) {
                *dim = draw.below(4);
            }
        }
        if draw.once_in(3) && wider.len() < 6 {
            wider.insert(0, draw.below(4));
        }
        let mut order: Vec<usize> = (0..dims.len()).collect();
        for i in 1..order.len() {
            order.swap(i, draw.below(i + 1));
        }
        if draw.once_in(16) {
            order.push(draw.below(4));
        }
        let axes = match draw.below(4) {
            0 => None,
            1 => Some(order.iter().copied().take(2).collect()),
            2 => Some(order.iter().copied().take(1).collect()),
            _ => Some((0..draw.below(3)).map(|_| draw.below(dims.len() + 1)).collect()),
        };
        let pads = (0..draw.below(dims.len() + 2))
            .map(|_| (draw.below(5) as isize - 1, draw.below(5) as isize - 1))
            .collect();
        let items = (0..draw.below(dims.len() + 2))
            .map(|_| {
                let mut bound = || match draw.once_in(3) {
                    true => None,
                    false => Some(draw.below(7) as isize - 3),
                };
                let (start, end) = (bound(), bound());
                match draw.below(4) {
                    0 => SliceItem::Index(draw.below(4) as isize - 1),
                    1 => SliceItem::Range { start, end, step: 1 },
                    _ => {
                        let step = draw.choose(&[1, -1, 2, -2, 0, 3]);
                        SliceItem::Range { start, end, step }
                    }
                }
            })
            .collect();
        let number =
            draw.choose(&[2.0, 0.5, 0.0, -1.0, 1.0, 3.0, f64::INFINITY, f64::NAN, 300.0, 0.25]);
        Params {
            pick: draw.below(256),
            axis,
            other_axis,
            sizes,
            shape,
            wider,
            order,
            axes,
            pads,
            items,
            flag: draw.once_in(2),
            other_flag: draw.once_in(2),
            number,
            dtype: draw.choose(&DTYPES),
        }
    }

    fn mode(&self) -> PadMode {
        match self.pick % 4 {
            0 => PadMode::Constant(self.number),
            1 => PadMode::Reflect,
            2 => PadMode::Replicate,
            _ => PadMode::Circular,
        }
    }

    fn binary(&self) -> BinaryOp {
        BinaryOp::ALL[self.pick % BinaryOp::ALL.len()]
    }

    fn reduction(&self) -> ReduceOp {
        ReduceOp::ALL[self.pick % ReduceOp::ALL.len()]
    }

    fn conv<const N: usize>(&self) -> ConvOptions<N> {
        let [stride, dilation, groups] = self.sizes;
        let padding = Padding::Zeros([self.pick % 3; N]);
        ConvOptions { stride: [stride; N], padding, dilation: [dilation; N], groups }
    }

    fn pool<const N: usize>(&self) -> PoolOptions<N> {
        let [kernel, stride, _] = self.sizes;
        PoolOptions {
            stride: self.flag.then_some([stride; N]),
            padding: [self.pick % 2; N],
            ceil_mode: self.other_flag,
            ..PoolOptions::new([kernel; N])
        }
    }
}

pub const DTYPES: [DType; 9] = [
    DType::F32,
    DType::F64,
    DType::I64,
    DType::F16,
    DType::BF16,
    DType::U8,
    DType::Bool,
    DType::I32,
    DType::U32,
];

/// How close a result must be to the reference's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Close {
    /// The same values; integers always are.
    Exact,
    /// Elements within some units of the largest operand or of the element.
    Elements,
    /// Sums and products of many elements, up to a power of the largest operand.
    Sums,
    /// Nothing but shape and dtype.
    Any,
}

/// Where the operands after the first come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Others {
    /// Tensors of the program, or new ones that broadcast with the first.
    Like,
    /// A mask, and one like the first.
    Mask,
    /// Indices along `axis` of the rank of the first, and a source of their shape.
    Places,
    /// A vector of indices along `axis`.
    Indices,
    /// Classes of rows.
    Classes,
    /// A matrix that the last axis of the first can be multiplied by, and a vector.
    Weight,
    /// A matrix whose rows have the length of the last axis of the first, and a vector.
    Filter,
    /// Filters; the first is mostly new images, with one axis or with two.
    Images1,
    Images2,
}

impl Others {
    /// The axes of an image, where the first operand is images.
    pub fn image_axes(self) -> Option<usize> {
        match self {
            Others::Images1 => Some(1),
            Others::Images2 => Some(2),
            _ => None,
        }
    }
}

type Run<B> = fn(&[&Tensor<B>; 3], &Params) -> Result<Vec<Tensor<B>>>;

/// One result or several.
trait Results<B: Backend> {
    fn into_vec(self) -> Vec<Tensor<B>>;
}

impl<B: Backend> Results<B> for Tensor<B> {
    fn into_vec(self) -> Vec<Tensor<B>> {
        vec![self]
    }
}

impl<B: Backend> Results<B> for (Tensor<B>, Tensor<B>) {
    fn into_vec(self) -> Vec<Tensor<B>> {
        vec![self.0, self.1]
    }
}

impl<B: Backend> Results<B> for (Tensor<B>, Tensor<B>, Tensor<B>) {
    fn into_vec(self) -> Vec<Tensor<B>> {
        vec![self.0, self.1, self.2]
    }
}

impl<B: Backend> Results<B> for Vec<Tensor<B>> {
    fn into_vec(self) -> Vec<Tensor<B>> {
        self
    }
}

/// A row.
pub struct Call {
    /// The operation as its errors name it.
    pub name: fn(&Params) -> &'static str,
    pub close: Close,
    pub others: Others,
    pub cpu: Run<CpuBackend>,
    pub reference: Run<ReferenceBackend>,
}

macro_rules! calls {
    ($($name:expr, $close:ident, $others:ident: |$x:ident, $p:ident| $body:expr;)*) => {
        /// All rows.
        pub const CALLS: &[Call] = &[$(Call {
            #[allow(unused_variables, reason = "most names depend on nothing")]
            name: |$p| $name,
            close: Close::$close,
            others: Others::$others,
            #[allow(unused_variables, reason = "rows take what they need")]
            cpu: |$x, $p| $body.map(|y| Results::<CpuBackend>::into_vec(y)),
            #[allow(unused_variables, reason = "rows take what they need")]
            reference: |$x, $p| $body.map(|y| Results::<ReferenceBackend>::into_vec(y)),
        }),*];
    };
}

calls! {
    UnaryOp::ALL[p.pick % UnaryOp::ALL.len()].name(), Elements, Like:
        |x, p| x[0].unary(UnaryOp::ALL[p.pick % UnaryOp::ALL.len()]);
    p.binary().name(), Elements, Like: |x, p| x[0].binary(p.binary(), x[1]);
    p.binary().name(), Elements, Like: |x, p| x[0].binary(p.binary(), p.number);
    TernaryOp::ALL[p.pick % TernaryOp::ALL.len()].name(), Elements, Like:
        |x, p| x[0].ternary(TernaryOp::ALL[p.pick % TernaryOp::ALL.len()], x[1], x[2]);
    CompareOp::ALL[p.pick % 6].name(), Exact, Like: |x, p| x[0].compare(CompareOp::ALL[p.pick % 6], x[1]);
    CompareOp::ALL[p.pick % 6].name(), Exact, Like: |x, p| x[0].compare(CompareOp::ALL[p.pick % 6], p.number);
    NumberTest::ALL[p.pick % 3].name(), Exact, Like: |x, p| x[0].test(NumberTest::ALL[p.pick % 3]);
    "logical_and", Exact, Mask: |x, p| x[0].logical_and(x[1]);
    "logical_or", Exact, Mask: |x, p| x[0].logical_or(x[1]);
    "logical_not", Exact, Mask: |x, p| x[0].logical_not();
    "where_cond", Exact, Mask: |x, p| Tensor::where_cond(x[1], x[0], x[2]);
    "masked_fill", Exact, Mask: |x, p| x[0].masked_fill(x[1], p.number);
    "affine", Elements, Like: |x, p| x[0].affine(p.number, 0.5);
    "powf", Elements, Like: |x, p| x[0].powf(p.number);
    "clamp", Exact, Like: |x, p| x[0].clamp(-1.0, p.number);
    "leaky_relu", Elements, Like: |x, p| x[0].leaky_relu(0.1);
    "elu", Elements, Like: |x, p| x[0].elu(p.number);

    p.reduction().name(), Sums, Like: |x, p| x[0].reduce(p.reduction(), p.axes.as_deref(), p.flag);
    "sum", Sums, Like: |x, p| x[0].sum_axis(p.axis, p.flag);
    "max", Exact, Like: |x, p| x[0].max_axis(p.axis, p.flag);
    "argmin", Exact, Like: |x, p| x[0].argmin(p.axis, p.flag);
    "std", Sums, Like: |x, p| x[0].std_axis(p.axis, p.flag, p.pick % 3);
    "norm", Sums, Like: |x, p| x[0].norm(p.number, p.axes.as_deref(), p.flag);
    "sum_to", Sums, Like: |x, p| x[0].sum_to(p.shape.as_slice());
    "cumsum", Sums, Like: |x, p| x[0].cumsum(p.axis);
    "cumprod", Sums, Like: |x, p| x[0].cumprod(p.axis);

    "to_dtype", Exact, Like: |x, p| x[0].to_dtype(p.dtype);
    "reshape", Exact, Like: |x, p| x[0].reshape(p.shape.as_slice());
    "flatten", Exact, Like: |x, p| x[0].flatten(p.axis, p.other_axis);
    "permute", Exact, Like: |x, p| x[0].permute(&p.order);
    "transpose", Exact, Like: |x, p| x[0].transpose(None);
    "swap_axes", Exact, Like: |x, p| x[0].swap_axes(p.axis, p.other_axis);
    "narrow", Exact, Like: |x, p| x[0].narrow(p.axis, p.sizes[0], p.sizes[1]);
    "slice", Exact, Like: |x, p| x[0].slice(&p.items);
    "flip", Exact, Like: |x, p| x[0].flip(p.axis);
    "diagonal", Exact, Like: |x, p| x[0].diagonal(p.axis, p.other_axis);
    "unfold", Exact, Like: |x, p| x[0].unfold(p.axis, p.sizes[0], p.sizes[1]);
    "unsqueeze", Exact, Like: |x, p| x[0].unsqueeze(p.axis);
    "squeeze", Exact, Like: |x, p| x[0].squeeze(p.axis);
    "broadcast_to", Exact, Like: |x, p| x[0].broadcast_to(p.wider.as_slice());
    "pad", Exact, Like: |x, p| x[0].pad(&p.pads, p.mode());
    "contiguous", Exact, Like: |x, p| x[0].contiguous();
    "cat", Exact, Like: |x, p| Tensor::cat(&[x[0], x[1], x[2]], p.axis);
    "interpolate", Elements, Like: |x, p| {
        let mode = if p.flag { Interpolation::Nearest } else { Interpolation::Bilinear { align_corners: p.other_flag } };
        x[0].interpolate([p.sizes[0], p.sizes[1]], mode)
    };

    "gather", Exact, Places: |x, p| x[0].gather(p.axis, x[1]);
    "scatter_add", Sums, Places: |x, p| x[0].scatter_add(p.axis, x[1], x[2]);
    "index_select", Exact, Indices: |x, p| x[0].index_select(p.axis, x[1]);
    "index_add", Sums, Indices: |x, p| x[0].index_add(p.axis, x[1], x[0]);
    "embedding", Exact, Indices: |x, p| x[0].embedding(x[1]);

    "matmul", Sums, Weight: |x, p| x[0].matmul(x[1]);
    "linear", Sums, Filter: |x, p| x[0].linear(x[1], p.flag.then_some(x[2]));
    "outer", Elements, Like: |x, p| x[0].outer(x[1]);
    "tensordot", Sums, Weight: |x, p| x[0].tensordot(x[1], p.sizes[0]);
    "einsum", Sums, Weight: |x, p| Tensor::einsum(
        ["ij,jk->ik", "ij,jk->ki", "...j,jk", "ij,jk->", "ii,jk->jk", "ij,j", "abc->cab"][p.pick % 7],
        &[x[0], x[1]],
    );
    "softmax", Elements, Like: |x, p| x[0].softmax(p.axis);
    "log_softmax", Elements, Like: |x, p| x[0].log_softmax(p.axis);
    "cross_entropy", Sums, Classes: |x, p| {
        let reduction = [Reduction::Mean, Reduction::Sum, Reduction::None][p.pick % 3];
        let ignore_index = p.flag.then_some(1);
        x[0].cross_entropy(x[1], CrossEntropy { reduction, ignore_index, ..CrossEntropy::default() })
    };
    "layer_norm", Any, Like: |x, p| x[0].layer_norm(None, None, p.number);
    "rms_norm", Any, Like: |x, p| x[0].rms_norm(None, p.number);
    "conv1d", Sums, Images1: |x, p| x[0].conv1d(x[1], None, p.conv());
    "conv2d", Sums, Images2: |x, p| x[0].conv2d(x[1], None, p.conv());
    "max_pool1d", Exact, Images1: |x, p| x[0].max_pool1d(p.pool());
    "max_pool2d", Exact, Images2: |x, p| x[0].max_pool2d(p.pool());
    "avg_pool2d", Sums, Images2: |x, p| x[0].avg_pool2d(p.pool());
    "adaptive_avg_pool2d", Sums, Images2: |x, p| {
        x[0].adaptive_avg_pool2d([p.sizes[0].min(200), p.sizes[1]])
    };

    "stack", Exact, Like: |x, p| Tensor::stack(&[x[0], x[1]], p.axis);
    "split", Exact, Like: |x, p| x[0].split(p.sizes[0], p.axis);
    "chunk", Exact, Like: |x, p| x[0].chunk(p.sizes[0], p.axis);
    "unbind", Exact, Like: |x, p| x[0].unbind(p.axis);
    "repeat", Exact, Like: |x, p| x[0].repeat(p.sizes.map(|n| n.min(30)));
    "tile", Exact, Like: |x, p| x[0].tile(&p.sizes[..2]);
    "roll", Exact, Like: |x, p| x[0].roll(p.other_axis, p.axis);
    "movedim", Exact, Like: |x, p| x[0].movedim(p.axis, p.other_axis);
    "tril", Exact, Like: |x, p| x[0].tril(p.axis);
    "triu", Exact, Like: |x, p| x[0].triu(p.axis);
    "diag", Exact, Like: |x, p| x[0].diag(p.axis);
    "one_hot", Exact, Like: |x, p| x[0].one_hot(p.sizes[0]);
    "meshgrid", Exact, Indices: |x, p| Tensor::meshgrid(&[x[0], x[1]]);
    "full_like", Exact, Like: |x, p| x[0].full_like(p.number);
    "scatter", Exact, Places: |x, p| x[0].scatter(p.axis, x[1], x[2]);
    "slice_assign", Exact, Like: |x, p| x[0].slice_assign(&p.items, x[1]);
    "index", Exact, Indices: |x, p| {
        x[0].index(&[p.flag.then_some(x[1]), p.other_flag.then_some(x[1])])
    };
    "index_put", Exact, Indices: |x, p| {
        x[0].index_put(&[p.flag.then_some(x[1]), p.other_flag.then_some(x[1])], x[2])
    };
    "masked_select", Exact, Mask: |x, p| x[0].masked_select(x[1]);
    "masked_scatter", Exact, Mask: |x, p| x[0].masked_scatter(x[1], x[2]);
    "nonzero", Exact, Like: |x, p| x[0].nonzero();

    "sort", Exact, Like: |x, p| x[0].sort(p.axis, p.flag);
    "argsort", Exact, Like: |x, p| x[0].argsort(p.axis, p.flag);
    "topk", Exact, Like: |x, p| x[0].topk(p.sizes[0], p.axis);
    "bottomk", Exact, Like: |x, p| x[0].bottomk(p.sizes[0], p.axis);
    "median", Exact, Like: |x, p| x[0].median(p.axis, p.flag);
    "quantile", Elements, Like: |x, p| x[0].quantile(p.number, p.axis, p.flag);
    "unique", Exact, Like: |x, p| x[0].unique();
    "searchsorted", Exact, Like: |x, p| x[0].searchsorted(&x[1].sort(-1, false).unwrap_or_else(|_| (x[1].clone(), x[1].clone())).0);
    "bincount", Exact, Indices: |x, p| x[1].bincount(p.sizes[0].min(1000));
    "bincount_weighted", Sums, Places: |x, p| x[1].bincount_weighted(x[2], p.sizes[0].min(1000));
    "histogram", Exact, Like: |x, p| x[0].histogram(p.sizes[0].min(1000), -1.0..p.number);
    "cummax", Exact, Like: |x, p| x[0].cummax(p.axis);
    "cummin", Exact, Like: |x, p| x[0].cummin(p.axis);

    "logaddexp", Elements, Like: |x, p| x[0].logaddexp(x[1]);
    "logical_xor", Exact, Mask: |x, p| x[0].logical_xor(x[1]);
    "nan_to_num", Exact, Like: |x, p| x[0].nan_to_num(0.5, 4.0, None);
    "isclose", Exact, Like: |x, p| x[0].isclose(x[1], 0.1, 0.01, p.flag);
    "softplus_with", Elements, Like: |x, p| x[0].softplus_with(p.number, 4.0);
    "clamp_min", Exact, Like: |x, p| x[0].clamp_min(p.number);
    "clamp_max", Exact, Like: |x, p| x[0].clamp_max(p.number);
    "nll", Sums, Classes: |x, p| {
        let ignore_index = p.flag.then_some(1);
        x[0].nll(x[1], CrossEntropy { ignore_index, ..CrossEntropy::default() })
    };
}
