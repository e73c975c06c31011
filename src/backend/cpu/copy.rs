//! Moves elements without looking at them: copies of any layout, by element size.

use bytemuck::{Pod, cast_slice, cast_slice_mut};
use smallvec::SmallVec;
use swath_kernels::{self as kernels, Arg, Transpose};

use super::parallel::{self, Cost};
use super::walk::Walk;
use super::{CpuTensor, Output};
use crate::backend::TensorData;
use crate::error::Result;
use crate::layout::Layout;

/// Runs an expression with `$t` bound to an unsigned integer of the element size of a dtype.
macro_rules! for_size {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype.size() {
            1 => crate::dtype::for_dtype!(@arm $t u8, $body),
            2 => crate::dtype::for_dtype!(@arm $t u16, $body),
            4 => crate::dtype::for_dtype!(@arm $t u32, $body),
            _ => crate::dtype::for_dtype!(@arm $t u64, $body),
        }
    };
}
pub(super) use for_size;

/// Of copying one byte, in and out.
const COST_PER_BYTE: usize = 60;

/// What moving an element of type `T` costs.
pub(super) const fn cost<T>() -> Cost {
    Cost(COST_PER_BYTE * size_of::<T>())
}

/// Runs an expression with `$t` bound to an unsigned integer of the size of a type.
macro_rules! as_bits {
    ($type:ty, $t:ident => $body:expr) => {
        match size_of::<$type>() {
            1 => crate::dtype::for_dtype!(@arm $t u8, $body),
            2 => crate::dtype::for_dtype!(@arm $t u16, $body),
            4 => crate::dtype::for_dtype!(@arm $t u32, $body),
            _ => crate::dtype::for_dtype!(@arm $t u64, $body),
        }
    };
}

/// `out[i] = data[position + i · stride]`.
pub(super) fn strided<T: Pod>(data: &[T], position: usize, stride: isize, out: &mut [T]) {
    as_bits!(T, Bits => {
        let (data, out) = (cast_slice::<T, Bits>(data), cast_slice_mut::<T, Bits>(out));
        kernels::copy_strided(data, position, stride, out);
    });
}

/// `out[row · cols + col] = data[corner + row + col · stride]`: a tile whose columns are contiguous.
pub(super) fn transpose<T: Pod>(
    data: &[T],
    corner: usize,
    stride: isize,
    [rows, cols]: [usize; 2],
    out: &mut [T],
) {
    as_bits!(T, Bits => {
        let (data, out) = (cast_slice::<T, Bits>(data), cast_slice_mut::<T, Bits>(out));
        match usize::try_from(stride) {
            Ok(stride) => {
                let shape = Transpose {
                    rows: cols,
                    cols: rows,
                    src_offset: corner,
                    src_row_stride: stride,
                    dst_row_stride: cols,
                };
                kernels::transpose(data, out, shape);
            }
            Err(_) => {
                for (row, out) in out.chunks_exact_mut(cols).enumerate() {
                    kernels::copy_strided(data, corner + row, stride, out);
                }
            }
        }
    });
}

/// Copies the elements of a layout of `data` into `out` in row-major order.
pub(super) fn into<T: Pod + Send + Sync>(data: &[T], layout: &Layout, out: &mut [T]) {
    let walk = Walk::new(&[layout]);
    if walk.transpose_into(data, out) {
        return;
    }
    let operand = walk.operand(0, data);
    walk.run(out, cost::<T>(), &|fetch, out| match fetch.one(&operand) {
        Arg::Slice(x) => out.copy_from_slice(x),
        Arg::Scalar(x) => out.fill(x),
    });
}

/// The elements in row-major order without gaps.
pub(super) fn contiguous(op: &'static str, x: &CpuTensor) -> Result<CpuTensor> {
    if x.layout.is_contiguous() {
        return Ok(x.clone());
    }
    let mut out = Output::new(op, x.shape(), x.dtype)?;
    for_size!(x.dtype, T => into(x.elements::<T>(), &x.layout, out.elements::<T>()));
    Ok(out.finish())
}

/// The tensors one after the other along `axis`.
///
/// Seen from the result, every index of the axes before `axis` is one block, in which each tensor
/// has one contiguous run.
pub(super) fn cat(tensors: &[&CpuTensor], axis: usize) -> Result<CpuTensor> {
    let first = tensors[0];
    let along = tensors.iter().map(|x| x.shape().dim(axis)).fold(0, usize::saturating_add);
    let shape = first.shape().with_axis(axis, Some(along));
    let mut out = Output::new("cat", &shape, first.dtype)?;
    let below: usize = shape.dims()[axis + 1..].iter().product();
    let block = along * below;
    let sources = tensors.iter().map(|x| contiguous("cat", x));
    let sources = sources.collect::<Result<SmallVec<[CpuTensor; 4]>>>()?;
    for_size!(first.dtype, T => {
        let runs = sources.iter().map(|x| (x.run::<T>(), x.shape().dim(axis) * below));
        let runs: SmallVec<[(&[T], usize); 4]> = runs.collect();
        parallel::for_each_chunk_mut(out.elements::<T>(), block.max(1), cost::<T>(), &|first, out| {
            for (i, mut out) in out.chunks_exact_mut(block.max(1)).enumerate() {
                for &(run, len) in &runs {
                    let (here, after) = out.split_at_mut(len);
                    here.copy_from_slice(&run[(first + i) * len..][..len]);
                    out = after;
                }
            }
        });
    });
    Ok(out.finish())
}
