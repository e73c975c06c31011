//! Copies any layout into contiguous elements.
//!
//! ```text
//! remove axes of one element; merge neighbouring axes that form one
//! if elements are nearest along the last axis: copy a run for every index of the others, unless
//!     the run is contiguous and shorter than two cache lines: then it is a unit, moved like a
//!     single element, and the last axis is removed
//! if units are contiguous along another axis: transpose that axis and the last one, for every
//!     index of the others; unit by unit if a side is too narrow
//! if another axis has smaller steps than the last: unit by unit, walking both axes in squares, so
//!     that a cache line is used completely while it is loaded
//! else: unit by unit
//! ```

use core::mem::size_of;

use super::Plain;
use super::stream::{LINE, stream_lines, streaming};
use super::strided::copy_run;
use super::transpose::transpose_nest;
use super::unit::for_unit;
use crate::dispatch::run;
use crate::output::Output;
use crate::simd::{Simd, Task};

/// The most axes of a [`Permute`].
const MAX_RANK: usize = 8;

/// The layout that [`permute`](crate::permute) reads: element `[i, j, …]` of the result is element
/// `offset + i * strides[0] + j * strides[1] + …` of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permute<'a> {
    /// Extents of the result, which is written in row-major order; at most 8.
    pub dims: &'a [usize],
    /// Distance in the source along each axis; negative reads backwards, 0 repeats an element.
    pub strides: &'a [isize],
    /// Position of the element with index 0 along every axis.
    pub offset: usize,
}

/// Copies elements of any layout into contiguous ones; panics unless they are inside `src` and fill
/// `dst`.
#[inline(always)]
#[track_caller]
pub(crate) fn permute<T: Plain>(src: &[T], dst: &mut (impl Output<T> + ?Sized), shape: Permute) {
    let (streams, _fence) = streaming(dst);
    let (dst, len) = dst.as_raw();
    let Some(nest) = shape.nest(src.len(), len) else {
        panic!("permute: {shape:?} does not fit {} elements or a result of {len}", src.len());
    };
    if len == 0 {
        return;
    }
    // SAFETY: `nest` checked that the nest's elements are inside `src` and that its result is all
    // of `dst`; the borrows keep both apart.
    unsafe { nest.copy(src.as_ptr().add(shape.offset), dst, streams) }
}

impl Permute<'_> {
    /// The axes that matter; `None` if an element would be outside of `src_len` elements, or the
    /// result does not have `dst_len`.
    fn nest(&self, src_len: usize, dst_len: usize) -> Option<Nest> {
        let Permute { dims, strides, offset } = *self;
        let fits = dims.len() == strides.len() && dims.len() <= MAX_RANK;
        let numel = dims.iter().try_fold(1usize, |numel, &dim| numel.checked_mul(dim));
        // A product that overflows before a zero extent is rejected too.
        if !fits || (numel != Some(dst_len)) {
            return None;
        }
        let mut nest = Nest::default();
        if dst_len == 0 {
            return Some(nest);
        }
        let (mut low, mut high) = (offset, offset);
        for (&dim, &stride) in dims.iter().zip(strides) {
            let reach = isize::try_from(dim - 1).ok()?.checked_mul(stride)?;
            let end = if reach < 0 { &mut low } else { &mut high };
            *end = end.checked_add_signed(reach)?;
        }
        if high >= src_len {
            return None;
        }
        let mut below = dst_len;
        for (&dim, &stride) in dims.iter().zip(strides).filter(|(dim, _)| **dim > 1) {
            below /= dim;
            nest.join(dim, stride, below as isize);
        }
        Some(nest)
    }
}

/// Axes with their steps in a source and in a result.
#[derive(Clone, Copy, Default)]
pub(super) struct Nest {
    rank: usize,
    dims: [usize; MAX_RANK],
    src: [isize; MAX_RANK],
    dst: [isize; MAX_RANK],
}

impl Nest {
    pub fn rank(&self) -> usize {
        self.rank
    }

    pub fn extent(&self, axis: usize) -> usize {
        self.dims[axis]
    }

    /// Steps in the source and in the result.
    pub fn steps(&self, axis: usize) -> [isize; 2] {
        [self.src[axis], self.dst[axis]]
    }

    /// Bytes of the result if its units are contiguous in the order of the axes, else `None`.
    pub fn piece(&self, unit: usize) -> Option<isize> {
        let mut bytes = unit as isize;
        for axis in (0..self.rank).rev() {
            if self.dst[axis] != bytes {
                return None;
            }
            bytes *= self.dims[axis] as isize;
        }
        Some(bytes)
    }

    pub fn push_axis_of(&mut self, other: &Nest, axis: usize) {
        self.push(other.dims[axis], other.src[axis], other.dst[axis]);
    }

    pub fn push(&mut self, dim: usize, src: isize, dst: isize) {
        self.dims[self.rank] = dim;
        self.src[self.rank] = src;
        self.dst[self.rank] = dst;
        self.rank += 1;
    }

    /// [`Nest::push`] for an axis that may form one with the last axis.
    fn join(&mut self, dim: usize, src: isize, dst: isize) {
        let whole = |step: isize| step.checked_mul(dim as isize);
        match self.rank.checked_sub(1) {
            Some(last)
                if whole(src) == Some(self.src[last]) && whole(dst) == Some(self.dst[last]) =>
            {
                self.dims[last] *= dim;
                (self.src[last], self.dst[last]) = (src, dst);
            }
            _ => self.push(dim, src, dst),
        }
    }

    /// Removes an axis; returns its extent and steps.
    pub fn remove(&mut self, axis: usize) -> (usize, isize, isize) {
        let removed = (self.dims[axis], self.src[axis], self.dst[axis]);
        self.dims.copy_within(axis + 1..self.rank, axis);
        self.src.copy_within(axis + 1..self.rank, axis);
        self.dst.copy_within(axis + 1..self.rank, axis);
        self.rank -= 1;
        removed
    }

    /// Sorts the axes so that the source is read front to back. With non-temporal stores the order
    /// in which whole lines are written does not matter: `[32, 64, 128, 64]` with its middle axes
    /// exchanged takes 1.0 of a copy's time, in the result's order 1.3.
    fn order_by_source(&mut self) {
        for end in 1..self.rank {
            for axis in (0..end).rev() {
                if self.src[axis].unsigned_abs() >= self.src[axis + 1].unsigned_abs() {
                    break;
                }
                self.dims.swap(axis, axis + 1);
                self.src.swap(axis, axis + 1);
                self.dst.swap(axis, axis + 1);
            }
        }
    }

    /// Converts steps from elements to bytes. Only the step of an axis of one element can overflow,
    /// and is not used.
    pub fn in_bytes(mut self, size: usize) -> Nest {
        for axis in 0..self.rank {
            self.src[axis] = self.src[axis].wrapping_mul(size as isize);
            self.dst[axis] = self.dst[axis].wrapping_mul(size as isize);
        }
        self
    }

    /// An index to walk the nest with, starting at zeros.
    #[inline(always)]
    pub fn walk(&self) -> Walk<'_> {
        Walk { nest: self, index: [0; MAX_RANK], from: 0, to: 0 }
    }

    /// # Safety
    /// Every element is valid for reads from `src`; the whole result is written from `dst` on, in
    /// row-major order.
    unsafe fn copy<T: Plain>(mut self, src: *const T, dst: *mut T, streams: bool) {
        let Some(last) = self.rank.checked_sub(1) else {
            // SAFETY: without axes there is one element.
            return unsafe { dst.write(src.read()) };
        };
        let (stride, size) = (self.src[last], size_of::<T>());
        // Enough contiguous elements along another axis for a transpose.
        let are_adjacent = |axis: usize| self.src[axis] == 1 && self.dims[axis] >= 8;
        let is_nearer =
            |axis: usize| (1..stride.unsigned_abs()).contains(&self.src[axis].unsigned_abs());
        let unit = match stride {
            1 if last > 0 => self.dims[last] * size,
            // A few repetitions of a contiguous row are a matrix whose rows are all the same.
            0 if self.dims[last].saturating_mul(size) < LINE && (0..last).any(are_adjacent) => size,
            _ if (0..last).any(is_nearer) => size,
            _ => usize::MAX,
        };
        // Whole lines can be stored non-temporally in any order.
        let is_line = streams && unit == LINE && dst.align_offset(LINE) == 0;
        if unit < 2 * LINE && !is_line {
            let mut units = self.in_bytes(size);
            if stride == 1 {
                units.remove(last);
            }
            // SAFETY: a unit is an element, or the contiguous elements along the last axis.
            return unsafe { units.copy_units(src.cast(), dst.cast(), unit, streams) };
        }
        let (len, ..) = self.remove(last);
        if streams && stride.unsigned_abs() <= 1 {
            self.order_by_source();
        }
        run(Runs { nest: self, src, dst, len, stride, streams });
    }

    /// [`Nest::copy`] in units of `unit` bytes, less than two cache lines; steps are in bytes.
    ///
    /// # Safety
    /// See [`Nest::copy`].
    unsafe fn copy_units(mut self, src: *const u8, dst: *mut u8, unit: usize, streams: bool) {
        let last = self.rank - 1;
        let adjacent = |step: isize| (0..last).rfind(|&axis| self.src[axis] == step);
        // SAFETY: every address below is a unit's, in some order; a walk that starts at the far end
        // of an axis goes backwards along it.
        unsafe {
            if let Some(axis) = adjacent(unit as isize) {
                return transpose_nest(self, axis, src, dst, unit, streams);
            }
            if let Some(axis) = adjacent(-(unit as isize)) {
                let steps = self.dims[axis] as isize - 1;
                let (src, dst) =
                    (src.offset(steps * self.src[axis]), dst.offset(steps * self.dst[axis]));
                self.src[axis] = unit as isize;
                self.dst[axis] = -self.dst[axis];
                return transpose_nest(self, axis, src, dst, unit, streams);
            }
            for_unit!(unit, copy => self.copy_by(src, dst, copy));
        }
    }

    /// Copies unit by unit, in an order that uses a cache line completely while it is loaded.
    ///
    /// # Safety
    /// See [`Nest::copy_units`]; `copy` copies one unit.
    #[inline(always)]
    unsafe fn copy_by(mut self, src: *const u8, dst: *mut u8, copy: impl Fn(*const u8, *mut u8)) {
        let last = self.rank - 1;
        let (len, stride, step) = self.remove(last);
        let smallest = (0..last).rev().filter(|&axis| self.src[axis] != 0);
        let smallest = smallest.min_by_key(|&axis| self.src[axis].unsigned_abs());
        let smaller =
            smallest.filter(|&axis| self.src[axis].unsigned_abs() < stride.unsigned_abs());
        let (rows, row_from, row_to) = smaller.map_or((1, 0, 0), |axis| self.remove(axis));
        let square = if smaller.is_some() { SQUARE } else { len };
        let mut at = self.walk();
        loop {
            for first_row in (0..rows).step_by(SQUARE) {
                for first in (0..len).step_by(square) {
                    for row in first_row..rows.min(first_row + SQUARE) {
                        let from = at.from + row as isize * row_from;
                        let to = at.to + row as isize * row_to;
                        for i in first..len.min(first + square) {
                            let i = i as isize;
                            let src = src.wrapping_offset(from + i * stride);
                            copy(src, dst.wrapping_offset(to + i * step));
                        }
                    }
                }
            }
            if !at.step() {
                break;
            }
        }
    }
}

/// An index along every axis of a nest. Neither an iterator nor a callback, because whatever a
/// kernel's loop calls must be inlined into it to use its instruction set.
pub(super) struct Walk<'a> {
    nest: &'a Nest,
    index: [usize; MAX_RANK],
    /// The element's offset in the source.
    pub from: isize,
    /// Its offset in the result.
    pub to: isize,
}

impl Walk<'_> {
    /// Advances to the next index, the last axis fastest; false after the last.
    #[inline(always)]
    pub fn step(&mut self) -> bool {
        let Nest { rank, dims, src, dst } = self.nest;
        let mut axis = *rank;
        while axis > 0 {
            axis -= 1;
            self.index[axis] += 1;
            self.from += src[axis];
            self.to += dst[axis];
            if self.index[axis] < dims[axis] {
                return true;
            }
            self.from -= dims[axis] as isize * src[axis];
            self.to -= dims[axis] as isize * dst[axis];
            self.index[axis] = 0;
        }
        false
    }
}

/// Indices of either axis that are walked together.
const SQUARE: usize = 32;

/// A run for every index of a nest.
struct Runs<T> {
    nest: Nest,
    src: *const T,
    dst: *mut T,
    len: usize,
    stride: isize,
    streams: bool,
}

impl<T: Plain> Task for Runs<T> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Runs { nest, src, dst, len, stride, streams } = self;
        let bytes = len * size_of::<T>();
        let mut at = nest.walk();
        loop {
            // SAFETY: the caller of `Nest::copy` promises every element of the nest, and so of the
            // runs.
            unsafe {
                let (src, dst) = (src.offset(at.from), dst.offset(at.to));
                if streams && stride == 1 && bytes >= LINE {
                    stream_lines::<f32, S>(simd, src.cast(), dst.cast(), bytes, LINE);
                } else {
                    copy_run(src, stride, dst, len, streams && bytes >= 2 * LINE);
                }
            }
            if !at.step() {
                return;
            }
        }
    }
}
