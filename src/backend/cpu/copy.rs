//! Copies of any layout, compiled once per element size.

use core::ops::Range;

use bytemuck::{Pod, cast_slice, cast_slice_mut};
use smallvec::SmallVec;
use swath_kernels::{self as kernels, Permute, Place, Plain};

use super::elementwise::CHUNK;
use super::tensor::{CpuTensor, Output};
use super::walk::write_chunks;
use super::written::Written;
use crate::backend::{TensorData, joined_shape};
use crate::error::Result;
use crate::layout::{Layout, merge_axes, position_of};
use crate::runtime::parallel::{self, Cost};
use crate::shape::MAX_RANK;

/// Evaluates an expression with `$t` bound to the unsigned integer of a size in bytes.
macro_rules! for_size {
    ($bytes:expr, $t:ident => $body:expr) => {
        match $bytes {
            1 => crate::dtype::for_dtype!(@arm $t u8, $body),
            2 => crate::dtype::for_dtype!(@arm $t u16, $body),
            4 => crate::dtype::for_dtype!(@arm $t u32, $body),
            _ => crate::dtype::for_dtype!(@arm $t u64, $body),
        }
    };
}
pub(super) use for_size;

/// A stored type, and the unsigned integer of the same size that represents its bits.
pub(super) trait AsBits: Pod {
    type Bits: Pod + Send + Sync;
}

macro_rules! as_bits_of {
    ($($bits:ident: $($t:ty)*;)*) => {$($(
        impl AsBits for $t {
            type Bits = $bits;
        }
    )*)*};
}
as_bits_of! {
    u8: u8 i8;
    u16: half::f16 half::bf16 i16 u16;
    u32: f32 i32 u32;
    u64: f64 i64 u64;
}

/// Picoseconds of copying one byte: two threads compare 140,000 `f32` as fast as one.
const COST_PER_BYTE: usize = 24;

/// Cost of copying an element of type `T`.
pub(super) const fn cost<T>() -> Cost {
    Cost(COST_PER_BYTE * size_of::<T>())
}

/// `out[i] = data[position + i · stride]`.
pub(super) fn strided<T: Pod>(data: &[T], position: usize, stride: isize, out: &mut [T]) {
    for_size!(size_of::<T>(), Bits => {
        let (data, out) = (cast_slice::<T, Bits>(data), cast_slice_mut::<T, Bits>(out));
        kernels::copy_strided(data, position, stride, out);
    });
}

/// Copies elements into contiguous order.
pub(super) fn permute<T: Pod>(data: &[T], shape: Permute<'_>, out: &mut [T]) {
    for_size!(size_of::<T>(), Bits => {
        kernels::permute(cast_slice::<T, Bits>(data), cast_slice_mut::<T, Bits>(out), shape);
    });
}

/// Writes `value` to every element.
pub(super) fn fill<T: Pod>(out: &mut [T], value: T) {
    for_size!(size_of::<T>(), Bits => {
        let value = bytemuck::cast::<T, Bits>(value);
        let out = cast_slice_mut::<T, Bits>(out);
        write_chunks(out, CHUNK, cost::<T>(), &|_, out| kernels::fill(out, value));
    });
}

/// Minimum number of units that threads share, so that every thread gets several.
const MIN_UNITS: usize = 64;

/// Copies the elements of a layout of `data` into `out` in row-major order.
pub(super) fn into<T: Pod + Send + Sync>(data: &[T], layout: &Layout, out: &mut [T]) {
    for_size!(size_of::<T>(), Bits => {
        let (data, out) = (cast_slice::<T, Bits>(data), cast_slice_mut::<T, Bits>(out));
        let written = Written::in_parts_of("copy");
        permuted(data, layout, out, &written);
        written.check(out.len());
    });
}

fn permuted<T: Plain>(data: &[T], layout: &Layout, out: &mut [T], written: &Written) {
    let nest = merge_axes(&[layout]);
    let (dims, strides) = (nest.dims(), nest.strides(0));
    let whole = out.len();
    // Cut along the first axis that gives enough units together with the axes before it.
    let mut indices = 1;
    let axis = dims.iter().position(|&dim| {
        indices *= dim;
        indices >= MIN_UNITS
    });
    let axis = axis.unwrap_or(dims.len().saturating_sub(1));
    let along = dims.get(axis).copied().unwrap_or(1);
    let below: usize = dims.iter().skip(axis + 1).product();
    parallel::for_each_chunk_mut(out, below.max(1), cost::<T>(), &|first, part| {
        kernels::with_place(part, whole, |mut place| {
            let (mut index, mut done) = (first, 0);
            while done < place.len() {
                let (above, here) = (index / along, index % along);
                let count = ((place.len() - done) / below).min(along - here);
                let mut offset =
                    position_of(&dims[..axis], &strides[..axis], above, layout.offset());
                let mut dims: SmallVec<[usize; MAX_RANK]> =
                    dims.iter().skip(axis).copied().collect();
                if let Some(first) = dims.first_mut() {
                    *first = count;
                    offset = offset.wrapping_add_signed(here as isize * strides[axis]);
                }
                let strides = &strides[strides.len().min(axis)..];
                let shape = Permute { dims: &dims, strides, offset };
                kernels::permute(data, &mut place.range(done..done + count * below), shape);
                written.add(count * below);
                done += count * below;
                index += count;
            }
        });
    });
}

/// Contiguous copy of a tensor.
pub(super) fn copied(op: &'static str, x: &CpuTensor) -> Result<Output> {
    let mut out = Output::new(op, x.shape(), x.dtype())?;
    for_size!(x.dtype().size(), T => into(x.elements::<T>(), x.layout(), out.elements::<T>()));
    Ok(out)
}

/// Returns the tensor itself if it is contiguous, else a contiguous copy.
pub(super) fn contiguous(op: &'static str, x: &CpuTensor) -> Result<CpuTensor> {
    if x.is_contiguous() { Ok(x.clone()) } else { Ok(copied(op, x)?.finish()) }
}

/// Concatenates the elements of all tensors, in row-major order each.
fn concatenate(tensors: &[&CpuTensor], out: &mut Output) {
    for_size!(tensors[0].dtype().size(), T => {
        let mut out = out.elements::<T>();
        for x in tensors {
            let (here, after) = out.split_at_mut(x.shape().numel());
            into(x.elements::<T>(), x.layout(), here);
            out = after;
        }
    });
}

/// Bytes of the result in which the narrow runs of one tensor after the other are written: a fraction of L1.
const TILE_BYTES: usize = 8 << 10;

/// Longest run in elements that is copied inline, by two moves that may overlap, instead of by a call. For
/// runs of 64 to 128 bytes that takes 0.15 to 0.9 of the time of calls, for 256 bytes 1.2 to 1.9.
const fn narrow<T>() -> usize {
    let elements = 128 / size_of::<T>();
    if elements < 64 { elements } else { 64 }
}

/// `out[row · block + at ..][..width] = runs[row · width ..][..width]` for all rows; `width` is at most
/// [`narrow`].
fn write_column<T: Plain>(runs: &[T], width: usize, out: &mut [T], block: usize, at: usize) {
    /// Copies the first and the last `PART` elements of each run, which may overlap.
    fn ends<T: Copy, const PART: usize>(
        runs: &[T],
        width: usize,
        out: &mut [T],
        block: usize,
        at: usize,
    ) {
        let last = width - PART;
        for (run, row) in runs.chunks_exact(width).zip(out.chunks_exact_mut(block)) {
            let row = &mut row[at..at + width];
            row[..PART].copy_from_slice(&run[..PART]);
            row[last..].copy_from_slice(&run[last..]);
        }
    }
    /// Copies runs of `WIDTH` elements.
    fn whole<T: Copy, const WIDTH: usize>(runs: &[T], out: &mut [T], block: usize, at: usize) {
        for (run, row) in runs.as_chunks::<WIDTH>().0.iter().zip(out.chunks_exact_mut(block)) {
            row[at..at + WIDTH].copy_from_slice(run);
        }
    }
    match width {
        0 => {}
        1 => whole::<T, 1>(runs, out, block, at),
        2 => whole::<T, 2>(runs, out, block, at),
        3 => whole::<T, 3>(runs, out, block, at),
        4 => whole::<T, 4>(runs, out, block, at),
        5..=8 => ends::<T, 4>(runs, width, out, block, at),
        9..=16 => ends::<T, 8>(runs, width, out, block, at),
        17..=32 => ends::<T, 16>(runs, width, out, block, at),
        33..=64 => ends::<T, 32>(runs, width, out, block, at),
        _ => unreachable!("runs are narrow"),
    }
}

/// Writes rows, each of which consists of one run of every tensor.
fn write_rows<T: Plain>(
    runs: &[(&[T], usize)],
    rows: Range<usize>,
    out: &mut Place<'_, T>,
    written: &Written,
) {
    let mut at = 0;
    for row in rows {
        for &(run, width) in runs {
            let run = &run[row * width..][..width];
            match width <= narrow::<T>() {
                true => out[at..at + width].copy_from_slice(run),
                false => kernels::copy_strided(run, 0, 1, &mut out.range(at..at + width)),
            }
            written.add(width);
            at += width;
        }
    }
}

/// Concatenates tensors along `axis`.
///
/// Each index of the axes before `axis` is one block of the result, in which every tensor has one contiguous
/// run. If there is only one block, tensors are copied from any layout.
pub(super) fn cat(tensors: &[&CpuTensor], axis: usize) -> Result<CpuTensor> {
    let shape = joined_shape("cat", tensors, axis)?;
    let (first, along) = (tensors[0], shape.dim(axis));
    let mut out = Output::new("cat", &shape, first.dtype())?;
    let below: usize = shape.dims()[axis + 1..].iter().product();
    let block = along * below;
    if block == shape.numel() {
        concatenate(tensors, &mut out);
        return Ok(out.finish());
    }
    let sources = tensors.iter().map(|x| contiguous("cat", x));
    let sources = sources.collect::<Result<SmallVec<[CpuTensor; 4]>>>()?;
    for_size!(first.dtype().size(), T => {
        let runs = sources.iter().map(|x| (x.run::<T>(), x.shape().dim(axis) * below));
        let runs: SmallVec<[(&[T], usize); 4]> = runs.collect();
        let are_narrow = runs.iter().all(|&(_, width)| width <= narrow::<T>());
        let tile = (TILE_BYTES / (block * size_of::<T>())).max(1);
        let (y, written) = out.parts::<T>("cat");
        write_chunks(y, block, cost::<T>(), &|first, out| {
            let rows = out.len() / block;
            if !are_narrow {
                return write_rows(&runs, first..first + rows, out, written);
            }
            for top in (0..rows).step_by(tile) {
                let (from, end) = (first + top, rows.min(top + tile));
                let out = &mut out[top * block..end * block];
                let mut at = 0;
                for &(run, width) in &runs {
                    let run = &run[from * width..(first + end) * width];
                    write_column(run, width, out, block, at);
                    written.add(run.len());
                    at += width;
                }
            }
        });
    });
    Ok(out.finish())
}
