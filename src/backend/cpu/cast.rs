//! Conversions between element types, and between tensors and host values.

use bytemuck::{Pod, cast_slice, cast_slice_mut};
use swath_kernels::{self as kernels, Arg as Run};

use super::copy::{self, AsBits};
use super::elementwise::with_sign_flipped;
use super::tensor::{CpuTensor, Output};
use super::walk::Walk;
use super::working::for_float;
use crate::backend::{Arg, TensorData, check_len};
use crate::dtype::{DType, Element, HostData, Scalar, check_bools, for_dtype, swap_little_endian};
use crate::error::{Error, Result};
use crate::runtime::parallel::Cost;
use crate::shape::Shape;

/// Picoseconds of a conversion per byte read or written: two threads widen 120,000 `bf16` as fast as one.
const COST_PER_BYTE: usize = 18;

/// Assumed of an element of a program's own function, which is not known: a few calls of the C library.
const COST_OF_A_FUNCTION: Cost = Cost(5_000);

pub(super) fn cast(x: &CpuTensor, dtype: DType) -> Result<CpuTensor> {
    if x.dtype() == dtype {
        return Ok(x.clone());
    }
    for_dtype!(x.dtype(), From => {
        type Given = <From as Element>::Stored;
        type A = <Given as AsBits>::Bits;
        match dtype {
            DType::Bool => convert::<A, u8>(x, dtype, &|x, y| {
                kernels::nonzero(cast_slice::<A, Given>(x), y);
            }),
            _ => for_dtype!(dtype, To => {
                type Wanted = <To as Element>::Stored;
                type B = <Wanted as AsBits>::Bits;
                convert::<A, B>(x, dtype, &|x, y| {
                    kernels::convert(cast_slice::<A, Given>(x), cast_slice_mut::<B, Wanted>(y));
                })
            }),
        }
    })
}

/// True for integers that `I64` stands in for where they have no kernels; of `U64` it has the bits.
pub(super) fn is_widened(dtype: DType) -> bool {
    is_narrow(dtype) || matches!(dtype, DType::I32 | DType::U32 | DType::U64)
}

/// True for integers that are computed in `I32`.
pub(super) fn is_narrow(dtype: DType) -> bool {
    matches!(dtype, DType::I8 | DType::I16 | DType::U16)
}

/// Integers without kernels as `I64`; other tensors unchanged.
pub(super) fn wide_integers(x: &CpuTensor) -> Result<CpuTensor> {
    cast(x, if is_widened(x.dtype()) { DType::I64 } else { x.dtype() })
}

/// Integers without kernels in a type that has them, in which they have the same order; other tensors unchanged.
pub(super) fn ordered(x: &CpuTensor) -> Result<CpuTensor> {
    match x.dtype() {
        DType::U64 => with_sign_flipped(x, DType::I64),
        dtype => cast(x, if is_narrow(dtype) { DType::I32 } else { dtype }),
    }
}

/// Like [`ordered`], of an operand of this dtype or a number that becomes one.
pub(super) fn ordered_arg(x: &Arg<'_, CpuTensor>, dtype: DType) -> Result<Arg<'static, CpuTensor>> {
    Ok(match x {
        Arg::Scalar(value) => {
            Arg::Scalar(item(&ordered(&full(&Shape::scalar(), *value, dtype)?)?)?)
        }
        Arg::Ref(x) => Arg::Owned(ordered(x)?),
        Arg::Owned(x) => Arg::Owned(ordered(x)?),
    })
}

/// Undoes [`ordered`].
pub(super) fn restored(x: &CpuTensor, dtype: DType) -> Result<CpuTensor> {
    match dtype {
        DType::U64 => with_sign_flipped(x, dtype),
        _ => cast(x, dtype),
    }
}

/// Converts elements that are given as bits, so that the walk is compiled once per pair of sizes.
fn convert<A: Pod + Send + Sync, B: Pod + Send + Sync>(
    x: &CpuTensor,
    dtype: DType,
    f: &(dyn Fn(&[A], &mut [B]) + Sync),
) -> Result<CpuTensor> {
    let cost = Cost(COST_PER_BYTE * (size_of::<A>() + size_of::<B>()));
    map_rows("to_dtype", x, dtype, cost, f)
}

/// Applies a function to every element, of the types that are stored as `x` has them.
pub(crate) fn map_elements<E: Element, R: Element>(
    op: &'static str,
    x: &CpuTensor,
    f: impl Fn(E) -> R + Sync,
) -> Result<CpuTensor> {
    map_rows(op, x, R::DTYPE, COST_OF_A_FUNCTION, &|x: &[E::Stored], y: &mut [R::Stored]| {
        for (x, y) in x.iter().zip(y) {
            *y = f(E::from_stored(*x)).to_stored();
        }
    })
}

/// Applies a function in `f64` to every element of a tensor of floats, and rounds once.
pub(crate) fn map_f64(
    op: &'static str,
    x: &CpuTensor,
    f: &(dyn Fn(f64) -> f64 + Sync),
) -> Result<CpuTensor> {
    for_float!(op, x, T => map_elements::<T, T>(op, x, |x| <T as Element>::from_f64(f(Element::to_f64(x)))))
}

/// Computes rows of a result from those of `x`, which are as long or one element that stands for all.
fn map_rows<A: Pod + Send + Sync, B: Pod + Send + Sync>(
    op: &'static str,
    x: &CpuTensor,
    dtype: DType,
    cost: Cost,
    f: &(dyn Fn(&[A], &mut [B]) + Sync),
) -> Result<CpuTensor> {
    let mut out = Output::new(op, x.shape(), dtype)?;
    let walk = Walk::new(&[x.layout()]);
    let operand = [walk.operand(0, x.elements::<A>())];
    walk.run(out.parts::<B>(op), cost, &|fetch, y| {
        let shape = fetch.shape();
        let [x] = fetch.rows(&operand);
        for r in 0..shape.rows {
            let y = &mut y[r * shape.stride..][..shape.cols];
            match x.row(r, shape.cols) {
                Run::Slice(x) => f(x, y),
                Run::Scalar(x) => {
                    let (value, rest) = y.split_at_mut(1);
                    f(&[x], value);
                    rest.fill(value[0]);
                }
            }
        }
    });
    Ok(out.finish())
}

pub(super) fn full(shape: &Shape, value: Scalar, dtype: DType) -> Result<CpuTensor> {
    let mut out = Output::new("full", shape, dtype)?;
    for_dtype!(dtype, T => {
        copy::fill(out.elements(), T::from_scalar(value).to_stored());
    });
    Ok(out.finish())
}

pub(super) fn from_host(data: &HostData, shape: &Shape) -> Result<CpuTensor> {
    check_len("from_host", data.len(), shape)?;
    let mut out = Output::new("from_host", shape, data.dtype())?;
    for_dtype!(data.dtype(), T => {
        let values = T::host_slice(data).unwrap_or(&[]);
        let out = out.elements::<<T as Element>::Stored>();
        out.iter_mut().zip(values).for_each(|(y, x)| *y = x.to_stored());
    });
    Ok(out.finish())
}

/// [`from_host`] without a copy of large values.
pub(super) fn adopt_host(data: HostData, shape: &Shape) -> Result<CpuTensor> {
    check_len("from_host", data.len(), shape)?;
    match Output::adopt(data, shape)? {
        Ok(out) => Ok(out.finish()),
        Err(data) => from_host(&data, shape),
    }
}

pub(super) fn to_host(x: &CpuTensor) -> Result<HostData> {
    let x = copy::contiguous("to_host", x)?;
    Ok(for_dtype!(x.dtype(), T => {
        let values = x.run::<<T as Element>::Stored>().iter().map(|&x| T::from_stored(x));
        T::into_host(values.collect())
    }))
}

pub(super) fn read(
    shape: &Shape,
    dtype: DType,
    fill: &mut dyn FnMut(&mut [u8]) -> Result<()>,
) -> Result<CpuTensor> {
    let mut out = Output::exact("read", shape, dtype)?;
    let bytes = out.bytes_mut();
    fill(bytes)?;
    check_bools("read", dtype, bytes)?;
    swap_little_endian(dtype, bytes);
    Ok(out.finish())
}

pub(super) fn item(x: &CpuTensor) -> Result<Scalar> {
    let at = x.layout().offset();
    let value = for_dtype!(x.dtype(), T => {
        x.elements::<<T as Element>::Stored>().get(at).map(|&stored| T::from_stored(stored).to_scalar())
    });
    match value {
        Some(value) if x.numel() == 1 => Ok(value),
        _ => {
            let reason = "expected exactly one element";
            Err(Error::InvalidShape { op: "item", shape: *x.shape(), reason })
        }
    }
}
