//! Reductions over axes, and running sums and products.

use swath::{Backend, DType, PadMode, Scalar, Tensor};

use super::Rows;
use super::elementwise::wide;
use crate::error::Error;
use crate::row::Default::{self, Absent, Int};
use crate::row::{Call, Results, Row, axis, one, row};

/// A reduction over axes, which stay with extent 1 if the flag is true.
type Reduction<B> = fn(&Tensor<B>, &[usize], bool) -> swath::Result<Tensor<B>>;

/// Reduces over the axes that an attribute or, since later versions, an input names; the result has the input's dtype.
fn reduce<B: Backend>(call: &Call<'_, B>, f: Reduction<B>) -> Results<B> {
    let x = call.tensor(0)?;
    let given = call.ints_in("axes", 1)?.unwrap_or_default();
    let axes = match given.is_empty() && !call.flag("noop_with_empty_axes")? {
        true => (0..x.rank()).collect(),
        false => {
            given.into_iter().map(|given| axis(given, x.rank())).collect::<Result<Vec<_>, _>>()?
        }
    };
    one(f(x, &axes, call.flag("keepdims")?)?.to_dtype(x.dtype()))
}

/// `x` in a dtype for squares and logarithms: `F32` for 16-bit floats, 64 bits for integers.
fn widened<B: Backend>(x: &Tensor<B>) -> swath::Result<Tensor<B>> {
    let dtype = x.dtype();
    x.to_dtype(if dtype.is_float() || dtype == DType::U64 { wide(dtype) } else { DType::I64 })
}

/// Number of elements of each that axes are reduced to.
fn count<B: Backend>(x: &Tensor<B>, axes: &[usize]) -> usize {
    axes.iter().map(|&axis| x.dims()[axis]).product()
}

/// The mean; that of integers is truncated.
fn mean<B: Backend>(x: &Tensor<B>, axes: &[usize], keepdims: bool) -> swath::Result<Tensor<B>> {
    match x.dtype().is_float() {
        true => x.mean(Some(axes), keepdims),
        false => {
            let wide = widened(x)?;
            wide.sum(Some(axes), keepdims)?.to_dtype(wide.dtype())?.div(count(x, axes))
        }
    }
}

/// The largest element; of no elements the smallest number of the dtype.
fn largest<B: Backend>(x: &Tensor<B>, axes: &[usize], keepdims: bool) -> swath::Result<Tensor<B>> {
    match x.dtype() {
        DType::Bool => x.any(Some(axes), keepdims),
        dtype if count(x, axes) == 0 => x.max_with_initial(bounds(dtype).0, Some(axes), keepdims),
        _ => x.max(Some(axes), keepdims),
    }
}

/// The smallest element; of no elements the largest number of the dtype.
fn smallest<B: Backend>(x: &Tensor<B>, axes: &[usize], keepdims: bool) -> swath::Result<Tensor<B>> {
    match x.dtype() {
        DType::Bool => x.all(Some(axes), keepdims),
        dtype if count(x, axes) == 0 => x.min_with_initial(bounds(dtype).1, Some(axes), keepdims),
        _ => x.min(Some(axes), keepdims),
    }
}

/// The smallest and largest number of a dtype, infinite for floats.
fn bounds(dtype: DType) -> (Scalar, Scalar) {
    let ones = u64::MAX >> (64 - 8 * dtype.size());
    match dtype {
        _ if dtype.is_float() => (f64::NEG_INFINITY.into(), f64::INFINITY.into()),
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => (0u64.into(), ones.into()),
        _ => ((!(ones >> 1)).cast_signed().into(), (ones >> 1).into()),
    }
}

/// The sum of absolute values.
fn absolute_sum<B: Backend>(
    x: &Tensor<B>,
    axes: &[usize],
    keepdims: bool,
) -> swath::Result<Tensor<B>> {
    match x.dtype().is_float() {
        true => x.norm(1.0, Some(axes), keepdims),
        false => widened(x)?.abs()?.sum(Some(axes), keepdims),
    }
}

/// The square root of the sum of squares; that of integers is truncated.
fn length<B: Backend>(x: &Tensor<B>, axes: &[usize], keepdims: bool) -> swath::Result<Tensor<B>> {
    match x.dtype().is_float() {
        true => x.norm(2.0, Some(axes), keepdims),
        false => square_sum(x, axes, keepdims)?.to_dtype(DType::U64)?.to_dtype(DType::F64)?.sqrt(),
    }
}

/// The sum of squares.
fn square_sum<B: Backend>(
    x: &Tensor<B>,
    axes: &[usize],
    keepdims: bool,
) -> swath::Result<Tensor<B>> {
    widened(x)?.square()?.sum(Some(axes), keepdims)
}

/// The logarithm of the sum; that of integers is truncated.
fn log_sum<B: Backend>(x: &Tensor<B>, axes: &[usize], keepdims: bool) -> swath::Result<Tensor<B>> {
    let sum = widened(x)?.sum(Some(axes), keepdims)?;
    if sum.dtype().is_float() { sum.log() } else { sum.to_dtype(DType::F64)?.log() }
}

/// The logarithm of the sum of exponentials; that of integers is truncated.
fn log_sum_exp<B: Backend>(
    x: &Tensor<B>,
    axes: &[usize],
    keepdims: bool,
) -> swath::Result<Tensor<B>> {
    let x = if x.dtype().is_float() { x.clone() } else { x.to_dtype(DType::F64)? };
    x.logsumexp(Some(axes), keepdims)
}

/// The index of an extremum along an axis: of equal ones the first, or the last.
fn index<B: Backend>(
    call: &Call<'_, B>,
    f: fn(&Tensor<B>, usize, bool) -> swath::Result<Tensor<B>>,
) -> Results<B> {
    let x = call.tensor(0)?;
    let (axis, keepdims) = (call.axis("axis", x.rank())?, call.flag("keepdims")?);
    match call.flag("select_last_index")? {
        false => one(f(x, axis, keepdims)),
        true => {
            let from_end = f(&x.flip(axis)?, axis, keepdims)?;
            one(from_end.neg()?.add(x.dims()[axis].saturating_sub(1)))
        }
    }
}

/// A running sum or product along an axis: `f`, which gives `start` for no elements.
fn scan<B: Backend>(
    call: &Call<'_, B>,
    start: f64,
    f: fn(&Tensor<B>, usize) -> swath::Result<Tensor<B>>,
) -> Results<B> {
    let x = call.tensor(0)?;
    let axis = match call.ints_of(1)?.as_deref() {
        Some(&[given]) => axis(given, x.rank())?,
        _ => return Err(Error::operator("expected one number as the axis")),
    };
    let is_reverse = call.flag("reverse")?;
    let turned = |x: Tensor<B>| if is_reverse { x.flip(axis) } else { Ok(x) };
    let mut y = turned(x.clone())?;
    if call.flag("exclusive")? && x.dims()[axis] > 0 {
        let mut pads = vec![(0, 0); x.rank() - axis];
        pads[0] = (1, -1);
        y = y.pad(&pads, PadMode::Constant(start))?;
    }
    one(turned(f(&y, axis)?)?.to_dtype(x.dtype()))
}

/// The attributes of reductions.
const REDUCED: &[(&str, Default)] =
    &[("axes", Absent), ("keepdims", Int(1)), ("noop_with_empty_axes", Int(0))];
/// The attributes of indices of extrema.
const INDEXED: &[(&str, Default)] =
    &[("axis", Int(0)), ("keepdims", Int(1)), ("select_last_index", Int(0))];
/// The attributes of running sums and products.
const RUNNING: &[(&str, Default)] = &[("exclusive", Int(0)), ("reverse", Int(0))];

impl<B: Backend> Rows<B> {
    pub const REDUCE: &'static [Row<B>] = &[
        row("ReduceSum", 1, REDUCED, |c| {
            reduce(c, |x, axes, keepdims| x.sum(Some(axes), keepdims))
        }),
        row("ReduceProd", 1, REDUCED, |c| {
            reduce(c, |x, axes, keepdims| x.prod(Some(axes), keepdims))
        }),
        row("ReduceMean", 1, REDUCED, |c| reduce(c, mean)),
        row("ReduceMax", 1, REDUCED, |c| reduce(c, largest)),
        row("ReduceMin", 1, REDUCED, |c| reduce(c, smallest)),
        row("ReduceL1", 1, REDUCED, |c| reduce(c, absolute_sum)),
        row("ReduceL2", 1, REDUCED, |c| reduce(c, length)),
        row("ReduceSumSquare", 1, REDUCED, |c| reduce(c, square_sum)),
        row("ReduceLogSum", 1, REDUCED, |c| reduce(c, log_sum)),
        row("ReduceLogSumExp", 1, REDUCED, |c| reduce(c, log_sum_exp)),
        row("ArgMax", 1, INDEXED, |c| index(c, |x, axis, keepdims| x.argmax(axis, keepdims))),
        row("ArgMin", 1, INDEXED, |c| index(c, |x, axis, keepdims| x.argmin(axis, keepdims))),
        row("CumSum", 11, RUNNING, |c| scan(c, 0.0, |x, axis| x.cumsum(axis))),
        row("CumProd", 26, RUNNING, |c| scan(c, 1.0, |x, axis| x.cumprod(axis))),
    ];
}
