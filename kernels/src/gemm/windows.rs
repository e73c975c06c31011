//! The windows that a convolution sees, as a matrix that products copy and pack from the images themselves.
//!
//! ```text
//! row     (c, kd, kh, kw)     a channel and a tap of the window
//! column  (n, od, oh, ow)     an image and a window
//! element image[n, c, pixel of the window at the tap]      0 outside the image
//! ```
//!
//! A convolution is `weight · windows`, the gradient of its weight `windows · gᵀ`. The matrix is larger than the
//! images by the number of taps, so it is never formed: the driver packs panels of it as it packs
//! any other B, and copies rows of it as it copies any other A.
//!
//! 1. A part is written in tiles of at most [`SEGMENTS`] columns. The columns of a tile are cut into *segments*,
//!    runs of one row of windows (one `n`, one `od`, one `oh`).
//! 2. At a tap, the columns of a segment inside the image are a run of pixels at a distance of the stride; it is
//!    computed once and serves all channels.

use core::marker::PhantomData;
use core::mem::MaybeUninit;

use super::factor::Factor;
use super::matrix::GemmError;
use super::pack::{Source, Squares, copied_row};
use super::split::Split;
use super::tile::{MAX_NV, max_vectors};
use crate::geometry::Geometry;
use crate::simd::{Lanes, MAX_LANES, Task};

/// The windows of images `[images, channels, depth, height, width]` as a matrix `[channels · kd · kh · kw,
/// images · od · oh · ow]`, or some of its columns.
#[derive(Debug)]
pub struct Windows<'a, T> {
    data: *const T,
    strides: [isize; 5],
    geometry: Geometry,
    /// The first row.
    top: usize,
    rows: usize,
    /// The first column.
    first: usize,
    columns: usize,
    lifetime: PhantomData<&'a [T]>,
}

impl<T> Clone for Windows<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Windows<'_, T> {}

// SAFETY: a shared view of a slice.
unsafe impl<T: Sync> Send for Windows<'_, T> {}
// SAFETY: a shared view of a slice.
unsafe impl<T: Sync> Sync for Windows<'_, T> {}

impl<'a, T> Windows<'a, T> {
    /// The windows of images whose pixel (n, c, z, y, x) is `data[offset + Σ index · stride]`; `counts` are
    /// those of images and channels.
    ///
    /// # Errors
    /// [`GemmError::OutOfBounds`] if a pixel lies outside of `data`.
    ///
    /// # Panics
    /// If the number of rows or columns overflows.
    pub fn new(
        data: &'a [T],
        offset: usize,
        counts: [usize; 2],
        strides: [isize; 5],
        geometry: Geometry,
    ) -> Result<Self, GemmError> {
        let [images, channels] = counts;
        let [depth, height, width] = geometry.image();
        let extents = [images, channels, depth, height, width];
        if !super::bounds::is_inside(data.len(), offset, extents, strides) {
            let (shape, strides) = ([images, channels], [strides[0], strides[1]]);
            return Err(GemmError::OutOfBounds { offset, shape, strides, len: data.len() });
        }
        let [taps, windows] = [geometry.taps(), geometry.windows().iter().product()];
        let rows = channels.checked_mul(taps).expect("filters are smaller than memory");
        let columns = images.checked_mul(windows).expect("fewer windows than memory has bytes");
        let (data, lifetime) = (data.as_ptr().wrapping_add(offset), PhantomData);
        Ok(Windows { data, strides, geometry, top: 0, rows, first: 0, columns, lifetime })
    }

    /// Rows and columns.
    pub fn shape(&self) -> [usize; 2] {
        [self.rows, self.columns]
    }

    /// Rows `top..top + count`.
    ///
    /// # Panics
    /// If they exceed the rows.
    #[must_use]
    pub fn rows(self, top: usize, count: usize) -> Self {
        let fits = top <= self.rows && count <= self.rows - top;
        assert!(fits, "{count} rows from {top} of {}", self.rows);
        Windows { top: self.top + top, rows: count, ..self }
    }

    /// Columns `first..first + count`.
    ///
    /// # Panics
    /// If they exceed the columns.
    #[must_use]
    pub fn columns(self, first: usize, count: usize) -> Self {
        let fits = first <= self.columns && count <= self.columns - first;
        assert!(fits, "{count} columns from {first} of {}", self.columns);
        Windows { first: self.first + first, columns: count, ..self }
    }
}

/// The transpose of windows, as a B.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transposed<'a, T>(pub Windows<'a, T>);

impl<T: Factor> Source<T::Sum> for Transposed<'_, T> {
    fn strides(&self) -> [isize; 2] {
        [0, 0]
    }
    unsafe fn copy(&self, _: (usize, usize), _: (usize, usize), _: *mut T::Sum) {
        unreachable!("transposed windows are never an A")
    }
    unsafe fn pack(&self, at: (usize, usize), shape: (usize, usize), dst: *mut T::Sum) {
        T::windows(&Part { windows: self.0, at, shape, dst, form: Form::TransposedTiles });
    }
}

impl<T: Factor> Source<T::Sum> for Windows<'_, T> {
    fn strides(&self) -> [isize; 2] {
        [0, 0]
    }
    unsafe fn copy(&self, at: (usize, usize), shape: (usize, usize), dst: *mut T::Sum) {
        T::windows(&Part { windows: *self, at, shape, dst, form: Form::Rows });
    }
    unsafe fn pack(&self, at: (usize, usize), shape: (usize, usize), dst: *mut T::Sum) {
        T::windows(&Part { windows: *self, at, shape, dst, form: Form::Tiles });
    }
}

/// How a part of the windows is written.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// Rows of length [`copied_row`].
    Rows,
    /// Tiles of a panel.
    Tiles,
    /// Tiles of a panel of the transpose.
    TransposedTiles,
}

/// A part to write: of the windows or, if it is transposed, of their transpose.
pub struct Part<'a, T: Factor> {
    windows: Windows<'a, T>,
    at: (usize, usize),
    shape: (usize, usize),
    dst: *mut T::Sum,
    form: Form,
}

/// Columns of a tile that lie in one row of windows.
#[derive(Clone, Copy, Default)]
struct Segment {
    /// Its first column, counted from the first column of the tile.
    column: usize,
    len: usize,
    /// Offset of its image in elements.
    start: isize,
    /// The window of the first column.
    window: [usize; 3],
}

/// Maximum number of segments of a tile, which has one per column at most.
const SEGMENTS: usize = MAX_NV * MAX_LANES;

impl<'a, T: Factor> Task<T::Sum> for &Part<'a, T> {
    type Home = Part<'a, T>;
    type Output = ();

    #[inline(always)]
    fn run<S: Lanes<T::Sum>>(self, simd: S) {
        let &Part { ref windows, at: (top, left), shape: (rows, columns), dst, form } = self;
        if form == Form::Rows {
            let width = copied_row(columns);
            for start in (0..columns).step_by(SEGMENTS) {
                let (count, end) = (SEGMENTS.min(columns - start), width.min(start + SEGMENTS));
                let tile = Tile { top, rows, left: left + start, count, padded: end - start };
                // SAFETY: the caller of `copy` promises rows of `width` elements.
                unsafe { tile.write(simd, windows, dst.wrapping_add(start), width) };
            }
            return;
        }
        let split = Split::new(columns.div_ceil(S::LANES), const { max_vectors(S::ISA) });
        for tile in 0..split.parts() {
            let (start, width) = (split.start(tile) * S::LANES, split.len(tile) * S::LANES);
            let (count, dst) = (width.min(columns - start), dst.wrapping_add(start * rows));
            if form == Form::Tiles {
                let tile = Tile { top, rows, left: left + start, count, padded: width };
                // SAFETY: the caller of `pack` promises the rows of each tile, as whole vectors.
                unsafe { tile.write(simd, windows, dst, width) };
                continue;
            }
            let mut scratch = [MaybeUninit::<T::Sum>::uninit(); SEGMENTS * SEGMENTS];
            let scratch = scratch.as_mut_ptr().cast::<T::Sum>();
            for p in (0..rows).step_by(SEGMENTS) {
                let len = SEGMENTS.min(rows - p);
                let tile =
                    Tile { top: left + start, rows: count, left: top + p, count: len, padded: len };
                let to = dst.wrapping_add(p * width);
                // SAFETY: a tile has at most SEGMENTS columns, so its rows fit the scratch memory; the
                // caller of `pack` promises `rows` rows of `width` elements, whole vectors.
                unsafe {
                    tile.write(simd, windows, scratch, SEGMENTS);
                    let source = scratch.cast_const();
                    Squares::<T::Sum>::new(source, [SEGMENTS as isize, 1], [count, len], to, width)
                        .transpose(simd);
                }
            }
        }
    }
}

/// Rows `top..top + rows` of the columns `left..left + count`, padded with zeros to `padded`.
struct Tile {
    top: usize,
    rows: usize,
    left: usize,
    count: usize,
    padded: usize,
}

impl Tile {
    /// Writes row i to `dst[i * dst_row..]`.
    ///
    /// # Safety
    /// The columns exist, at most [`SEGMENTS`]; `dst` is valid for writes of `padded` elements a row.
    #[inline(always)]
    unsafe fn write<T: Factor, S: Lanes<T::Sum>>(
        &self,
        simd: S,
        windows: &Windows<'_, T>,
        dst: *mut T::Sum,
        dst_row: usize,
    ) {
        let &Tile { rows, left, count, padded, .. } = self;
        let top = windows.top + self.top;
        let geometry = &windows.geometry;
        let ([_, kernel_height, kernel_width], output) = (geometry.kernel(), geometry.windows());
        let mut segments = [Segment::default(); SEGMENTS];
        let mut parts = 0;
        let mut column = 0;
        while column < count {
            let at = windows.first + left + column;
            let (line, across) = (at / output[2], at % output[2]);
            let (plane, down) = (line / output[1], line % output[1]);
            let (image, deep) = (plane / output[0], plane % output[0]);
            let len = (output[2] - across).min(count - column);
            let start = image as isize * windows.strides[0];
            segments[parts] = Segment { column, len, start, window: [deep, down, across] };
            (parts, column) = (parts + 1, column + len);
        }
        let taps = geometry.taps();
        let step = windows.strides[4].wrapping_mul(geometry.axis(2).stride as isize);
        for tap in 0..taps {
            // Channels whose row for this tap is one of `top..top + rows`.
            let channel = top.saturating_sub(tap).div_ceil(taps);
            let end = (top + rows).saturating_sub(tap).div_ceil(taps);
            if channel >= end {
                continue;
            }
            let channels = end - channel;
            let first_row = channel * taps + tap - top;
            let (line, x) = (tap / kernel_width, tap % kernel_width);
            let at = [line / kernel_height, line % kernel_height, x];
            let [planes, lines, columns]: [_; 3] =
                core::array::from_fn(|axis| geometry.axis(axis).windows_at(at[axis]));
            for &Segment { column, len, start, window } in &segments[..parts] {
                // Columns of the segment before, and up to the end of, those inside the image.
                let (mut before, mut inside, mut offset) = (len, len, 0);
                if planes.contains(&window[0]) && lines.contains(&window[1]) {
                    before = columns.start.saturating_sub(window[2]).min(len);
                    inside = columns.end.saturating_sub(window[2]).clamp(before, len);
                    let first = [window[0], window[1], window[2] + before];
                    let pixel = |i: usize| geometry.axis(i).pixel(first[i], at[i]);
                    offset = (0..3).map(|i| pixel(i).wrapping_mul(windows.strides[i + 2])).sum();
                }
                let run = Run { before, inside, len, step };
                let offset = start + channel as isize * windows.strides[1] + offset;
                let mut src = windows.data.wrapping_offset(offset);
                let mut to = dst.wrapping_add(first_row * dst_row + column);
                for _ in 0..channels {
                    // SAFETY: columns `before..inside` of the segment are pixels of this channel, which `new` has
                    // found in the slice; the row of the tile holds the segment.
                    unsafe { run.write(simd, src, to) };
                    src = src.wrapping_offset(windows.strides[1]);
                    to = to.wrapping_add(taps * dst_row);
                }
            }
        }
        if padded > count {
            for row in 0..rows {
                // SAFETY: the caller promises `padded` elements.
                unsafe { dst.wrapping_add(row * dst_row + count).write_bytes(0, padded - count) };
            }
        }
    }
}

/// The elements of a segment at one tap: zeros up to `before`, pixels up to `inside`, zeros up to `len`.
struct Run {
    before: usize,
    inside: usize,
    len: usize,
    /// Distance between the pixels of adjacent columns in elements.
    step: isize,
}

impl Run {
    /// Writes the segment, of which `src` is the first pixel.
    ///
    /// # Safety
    /// `src` is valid for reads of the pixels, `dst` for writes of `len` elements.
    #[inline(always)]
    unsafe fn write<T: Factor, S: Lanes<T::Sum>>(&self, simd: S, src: *const T, dst: *mut T::Sum) {
        let &Run { before, inside, len, step } = self;
        // SAFETY: all indices are below `len`; the caller promises the pixels.
        unsafe {
            if before > 0 {
                dst.write_bytes(0, before);
            }
            let (to, count) = (dst.wrapping_add(before), inside - before);
            if step == 1 {
                let whole = count - count % S::LANES;
                for at in (0..whole).step_by(S::LANES) {
                    simd.store(to.wrapping_add(at), T::load(simd, src.wrapping_add(at)));
                }
                if whole < count {
                    let x = T::load_up_to(simd, src.wrapping_add(whole), count - whole);
                    simd.store_where(to.wrapping_add(whole), simd.first(count - whole), x);
                }
            } else {
                for at in 0..count {
                    to.wrapping_add(at).write((*src.wrapping_offset(at as isize * step)).widened());
                }
            }
            if inside < len {
                dst.wrapping_add(inside).write_bytes(0, len - inside);
            }
        }
    }
}
