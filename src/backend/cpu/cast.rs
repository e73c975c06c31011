//! Conversions between element types, and between tensors and values outside of them.

use bytemuck::Pod;
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use swath_kernels::Arg as Run;

use super::copy;
use super::parallel::Cost;
use super::walk::Walk;
use super::{CpuTensor, Output};
use crate::backend::{TensorData, check_len};
use crate::dtype::{
    DType, Element, HostData, Scalar, check_truth_values, for_dtype, swap_little_endian,
};
use crate::error::{Error, Result};
use crate::shape::Shape;

/// Of converting one element.
const COST: Cost = Cost(800);

/// A 16-bit float, converted a slice at a time.
pub(super) trait Half: Element<Stored = Self> + Pod {
    fn widen(x: &[Self], y: &mut [f32]);
    fn narrow(x: &[f32], y: &mut [Self]);
}

macro_rules! half {
    ($($t:ty)*) => {$(
        impl Half for $t {
            fn widen(x: &[Self], y: &mut [f32]) {
                x.convert_to_f32_slice(y);
            }
            fn narrow(x: &[f32], y: &mut [Self]) {
                y.convert_from_f32_slice(x);
            }
        }
    )*};
}
half!(f16 bf16);

pub(super) fn cast(x: &CpuTensor, dtype: DType) -> Result<CpuTensor> {
    if x.dtype() == dtype {
        return Ok(x.clone());
    }
    match (x.dtype(), dtype) {
        (DType::F16, DType::F32) => convert::<f16, f32>(x, |x, y| x.convert_to_f32_slice(y)),
        (DType::BF16, DType::F32) => convert::<bf16, f32>(x, |x, y| x.convert_to_f32_slice(y)),
        (DType::F32, DType::F16) => convert::<f32, f16>(x, |x, y| y.convert_from_f32_slice(x)),
        (DType::F32, DType::BF16) => convert::<f32, bf16>(x, |x, y| y.convert_from_f32_slice(x)),
        (from, to) => for_dtype!(from, From => for_dtype!(to, To => {
            convert::<From, To>(x, each::<From, To>)
        })),
    }
}

/// Generic, so that the conversions are [`Element`]'s: `half`'s own of the same names round twice.
fn each<A: Element, B: Element>(x: &[A::Stored], y: &mut [B::Stored]) {
    let convert = |x: A| match A::DTYPE.is_float() {
        true => B::from_f64(x.to_f64()),
        false => B::from_i64(x.to_i64()),
    };
    y.iter_mut().zip(x).for_each(|(y, &x)| *y = convert(A::from_stored(x)).to_stored());
}

fn convert<A: Element, B: Element>(
    x: &CpuTensor,
    f: impl Fn(&[A::Stored], &mut [B::Stored]) + Sync,
) -> Result<CpuTensor> {
    let mut out = Output::new("to_dtype", x.shape(), B::DTYPE)?;
    let walk = Walk::new(&[&x.layout]);
    let operand = walk.operand(0, x.elements::<A::Stored>());
    walk.run(out.elements::<B::Stored>(), COST, &|fetch, y| match fetch.one(&operand) {
        Run::Slice(x) => f(x, y),
        Run::Scalar(x) => {
            let (value, rest) = y.split_at_mut(1);
            f(&[x], value);
            rest.fill(value[0]);
        }
    });
    Ok(out.finish())
}

pub(super) fn full(shape: &Shape, value: Scalar, dtype: DType) -> Result<CpuTensor> {
    let mut out = Output::new("full", shape, dtype)?;
    for_dtype!(dtype, T => {
        let value = T::from_scalar(value).to_stored();
        let out = out.elements::<<T as Element>::Stored>();
        copy::fill(out, value);
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
    let bytes = out.elements_as_bytes();
    fill(bytes)?;
    check_truth_values("read", dtype, bytes)?;
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
            let reason = "item needs exactly one element";
            Err(Error::InvalidShape { op: "item", shape: *x.shape(), reason })
        }
    }
}
