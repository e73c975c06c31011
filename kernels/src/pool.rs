//! Pooling: the largest element, or the mean, of each window of an image.
//!
//! ```text
//! largest: for each vector of adjacent windows of a row: take the larger of it and the pixels at the next place
//! mean:    for each row of windows, 256 windows at a time:
//!              for each place in the window: add the pixels there, a run at a distance of the stride
//! ```
//!
//! The order of places is the same everywhere, so bits are too.

use core::mem::MaybeUninit;
use core::ops::Range;

use crate::dispatch::Enter as _;
use crate::gemm::Geometry;
use crate::simd::{ElementTask, Float, IntVector as _, Lanes, MAX_LANES, Vector as _};

/// Maximum number of windows that are computed at once: their values stay in the L1 cache.
const TILE: usize = 256;

/// Some windows of one row, `first..first + count`, at the place of the image where they begin.
#[derive(Clone, Copy)]
struct Tile {
    deep: usize,
    down: usize,
    first: usize,
    count: usize,
}

/// Calls `f(tile, index of its first result)` for all windows of an image.
#[inline(always)]
fn each_tile(geometry: &Geometry, mut f: impl FnMut(Tile, usize)) {
    let [depth, height, width] = geometry.output;
    for deep in 0..depth {
        for down in 0..height {
            for first in (0..width).step_by(TILE) {
                let count = TILE.min(width - first);
                f(Tile { deep, down, first, count }, (deep * height + down) * width + first);
            }
        }
    }
}

/// Calls `f(place, windows, pixel)` for every place of the windows of a tile that is inside the image for some of
/// them: the range of these windows, and the pixel of the first. Pixels of neighbouring windows are a stride
/// apart.
#[inline(always)]
fn each_place(geometry: &Geometry, tile: Tile, mut f: impl FnMut(usize, Range<usize>, usize)) {
    let Geometry { image, kernel, stride, dilation, padding, .. } = *geometry;
    let at = |axis: usize, window: usize, place: usize| {
        (window * stride[axis] + place * dilation[axis]) as isize - padding[axis]
    };
    let inside =
        |axis: usize, x: isize| (0..image[axis] as isize).contains(&x).then_some(x as usize);
    for z in 0..kernel[0] {
        let Some(plane) = inside(0, at(0, tile.deep, z)) else { continue };
        for y in 0..kernel[1] {
            let Some(row) = inside(1, at(1, tile.down, y)) else { continue };
            for x in 0..kernel[2] {
                let left = at(2, tile.first, x);
                let reach = |x: isize| {
                    ((x + stride[2] as isize - 1).max(0) as usize / stride[2]).min(tile.count)
                };
                let (start, end) = (reach(-left), reach(image[2] as isize - left));
                if start < end {
                    let column = (left + (start * stride[2]) as isize) as usize;
                    let pixel = (plane * image[1] + row) * image[2] + column;
                    f((z * kernel[1] + y) * kernel[2] + x, start..end, pixel);
                }
            }
        }
    }
}

/// Calls `f(window, pixel)` for `count` windows. Strides of 1 and 2 have loops of their own, which the compiler
/// vectorizes.
#[inline(always)]
fn each_pixel<E: Copy>(pixels: &[E], stride: usize, count: usize, mut f: impl FnMut(usize, E)) {
    match stride {
        1 => pixels[..count].iter().enumerate().for_each(|(i, &x)| f(i, x)),
        2 => {
            let pairs = pixels.chunks_exact(2).take(count);
            let whole = pairs.len();
            pairs.enumerate().for_each(|(i, pair)| f(i, pair[0]));
            if whole < count {
                f(whole, pixels[2 * whole]);
            }
        }
        _ => pixels.iter().step_by(stride).take(count).enumerate().for_each(|(i, &x)| f(i, x)),
    }
}

struct Largest<'a, E> {
    x: &'a [E],
    geometry: Geometry,
    y: &'a mut [E],
    /// Empty if not wanted.
    positions: &'a mut [i64],
}

impl<E: Float> ElementTask<E> for Largest<'_, E> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Lanes<E>>(self, simd: S) {
        let Largest { x, geometry, y, positions } = self;
        let Geometry { image, output, .. } = geometry;
        let (pixels, windows): (usize, usize) = (image.iter().product(), output.iter().product());
        let mut all_positions = positions.chunks_exact_mut(windows);
        for (x, y) in x.chunks_exact(pixels.max(1)).zip(y.chunks_exact_mut(windows)) {
            let positions = all_positions.next().unwrap_or_default();
            let mut rows = y.chunks_exact_mut(output[2]);
            for deep in 0..output[0] {
                for down in 0..output[1] {
                    let (Some(y), row) = (rows.next(), deep * output[1] + down) else { return };
                    for first in (0..output[2]).step_by(S::LANES) {
                        let y = &mut y[first..output[2].min(first + S::LANES)];
                        let start = row * output[2] + first;
                        let positions = positions.get_mut(start..start + y.len());
                        let windows = [deep, down, first];
                        largest_of(simd, x, &geometry, windows, y, positions.unwrap_or_default());
                    }
                }
            }
        }
    }
}

/// The largest pixels of at most a vector of adjacent windows, and their positions if wanted.
#[inline(always)]
fn largest_of<E: Float, S: Lanes<E>>(
    simd: S,
    x: &[E],
    geometry: &Geometry,
    windows: [usize; 3],
    y: &mut [E],
    positions: &mut [i64],
) {
    let &Geometry { image, kernel, stride, dilation, padding, .. } = geometry;
    let count = y.len();
    let at = |axis: usize, place: usize| {
        (windows[axis] * stride[axis] + place * dilation[axis]) as isize - padding[axis]
    };
    let is_in = |axis: usize, pixel: isize| (0..image[axis] as isize).contains(&pixel);
    let mut best = simd.splat(-E::INFINITY);
    // Offsets of the best pixels from the first place, and the lanes that have one.
    let (mut offsets, mut found) = (simd.splat_int(0.into()), simd.first(0));
    for z in 0..kernel[0] {
        for row in 0..kernel[1] {
            let (plane, line) = (at(0, z), at(1, row));
            if !is_in(0, plane) || !is_in(1, line) {
                continue;
            }
            let line = (plane as usize * image[1] + line as usize) * image[2];
            let line = &x[line..line + image[2]];
            for column in 0..kernel[2] {
                let pixel = at(2, column);
                let last = pixel + ((count - 1) * stride[2]) as isize;
                let mut inside = 0..count;
                if pixel < 0 || last >= image[2] as isize {
                    let reach = |x: isize| (x + stride[2] as isize - 1).max(0) as usize / stride[2];
                    let start = reach(-pixel).min(count);
                    inside = start..reach(image[2] as isize - pixel).clamp(start, count);
                }
                let pixels = load_apart(simd, line, pixel, stride[2], inside.clone());
                let mut takes = best.lt(pixels) | (pixels.is_nan() & !best.is_nan());
                if !positions.is_empty() {
                    takes = takes | !found;
                }
                if inside != (0..count) {
                    takes = takes & lanes(simd, inside);
                }
                best = pixels.select(takes, best);
                if !positions.is_empty() {
                    let offset = (z * dilation[0] * image[1] + row * dilation[1]) * image[2]
                        + column * dilation[2];
                    offsets = simd.splat_int((offset as i32).into()).select(takes, offsets);
                    found = found | takes;
                }
            }
        }
    }
    // SAFETY: `y` has `count` elements.
    unsafe { simd.store_up_to(y.as_mut_ptr(), count, best) };
    if positions.is_empty() {
        return;
    }
    let mut memory = [MaybeUninit::<E>::uninit(); MAX_LANES];
    // SAFETY: the array holds a vector, whose lanes are as wide as their bits.
    let offsets = unsafe {
        simd.store(memory.as_mut_ptr().cast(), S::V::from_bits(offsets));
        core::slice::from_raw_parts(memory.as_ptr().cast::<E::Int>(), S::LANES)
    };
    let first = [0, 1, 2].map(|axis| at(axis, 0) as i64);
    let first = (first[0] * image[1] as i64 + first[1]) * image[2] as i64 + first[2];
    for (i, (position, &offset)) in positions.iter_mut().zip(offsets).enumerate() {
        *position = first + (i * stride[2]) as i64 + offset.into();
    }
}

/// The mask of a range of lanes.
#[inline(always)]
fn lanes<E: Float, S: Lanes<E>>(simd: S, range: Range<usize>) -> S::M {
    simd.first(range.end) & !simd.first(range.start)
}

/// Reads pixel `first + i * stride` into each lane i of `range`, which are those inside `line`; the others are
/// unspecified.
#[inline(always)]
fn load_apart<E: Float, S: Lanes<E>>(
    simd: S,
    line: &[E],
    first: isize,
    stride: usize,
    range: Range<usize>,
) -> S::V {
    if range.is_empty() {
        return simd.splat(E::ZERO);
    }
    let last = first + ((range.end - 1) * stride) as isize;
    assert!(first + (range.start * stride) as isize >= 0 && (last as usize) < line.len());
    let src = line.as_ptr().wrapping_offset(first);
    // SAFETY: the pixels of the range are inside the line, as asserted, and so are those between them.
    unsafe {
        match (stride, range.start) {
            (1, 0) => simd.load_up_to(src, range.end),
            (1, _) => simd.load_where(src, lanes(simd, range)),
            (2, 0) => {
                let count = 2 * range.end - 1;
                let low = simd.load_up_to(src, count);
                match count.checked_sub(S::LANES) {
                    Some(rest) if rest > 0 => {
                        low.even_lanes(simd.load_up_to(src.wrapping_add(S::LANES), rest), S::LANES)
                    }
                    _ => low.even_lanes(low, S::LANES),
                }
            }
            _ => {
                let mut memory = [E::ZERO; MAX_LANES];
                for i in range {
                    memory[i] = *src.wrapping_add(i * stride);
                }
                simd.load(memory.as_ptr())
            }
        }
    }
}

/// Places of a window along an axis that count in the divisor: those inside the image, or also those in the
/// padding, which is the same at both ends.
#[inline(always)]
fn counted(geometry: &Geometry, counts_padding: bool, axis: usize, window: usize) -> usize {
    let Geometry { image, kernel, stride, dilation, padding, .. } = *geometry;
    let margin = if counts_padding { padding[axis] } else { 0 };
    let first = (window * stride[axis]) as isize - padding[axis];
    // Places before `position`.
    let before = |position: isize| {
        ((position - first).max(0) as usize).div_ceil(dilation[axis]).min(kernel[axis])
    };
    before(image[axis] as isize + margin) - before(-margin)
}

/// `f(window of the tile, divisor of its mean)` for every window of a tile.
#[inline(always)]
fn each_divisor(
    geometry: &Geometry,
    counts_padding: bool,
    tile: Tile,
    mut f: impl FnMut(usize, f64),
) {
    let along = |axis, window| counted(geometry, counts_padding, axis, window);
    let rows = along(0, tile.deep) * along(1, tile.down);
    for i in 0..tile.count {
        f(i, (rows * along(2, tile.first + i)) as f64);
    }
}

struct Mean<'a, E> {
    x: &'a [E],
    geometry: Geometry,
    counts_padding: bool,
    y: &'a mut [E],
}

impl<E: Float> ElementTask<E> for Mean<'_, E> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Lanes<E>>(self, _simd: S) {
        let Mean { x, geometry, counts_padding, y } = self;
        let (pixels, windows): (usize, usize) =
            (geometry.image.iter().product(), geometry.output.iter().product());
        for (x, y) in x.chunks_exact(pixels.max(1)).zip(y.chunks_exact_mut(windows)) {
            each_tile(&geometry, |tile, first| {
                let mut sums = [0.0f64; TILE];
                each_place(&geometry, tile, |_, range, pixel| {
                    let sums = &mut sums[range.clone()];
                    each_pixel(&x[pixel..], geometry.stride[2], range.len(), |i, x| {
                        sums[i] += x.to_f64();
                    });
                });
                each_divisor(&geometry, counts_padding, tile, |i, divisor| {
                    y[first + i] = E::from_f64(sums[i] / divisor);
                });
            });
        }
    }
}

struct MeanGrad<'a, E> {
    g: &'a [E],
    geometry: Geometry,
    counts_padding: bool,
    y: &'a mut [E],
}

impl<E: Float> ElementTask<E> for MeanGrad<'_, E> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Lanes<E>>(self, _simd: S) {
        let MeanGrad { g, geometry, counts_padding, y } = self;
        let (pixels, windows): (usize, usize) =
            (geometry.image.iter().product(), geometry.output.iter().product());
        y.fill(E::ZERO);
        for (g, y) in g.chunks_exact(windows).zip(y.chunks_exact_mut(pixels.max(1))) {
            each_tile(&geometry, |tile, first| {
                let mut parts = [E::ZERO; TILE];
                each_divisor(&geometry, counts_padding, tile, |i, divisor| {
                    parts[i] = E::from_f64(g[first + i].to_f64() / divisor);
                });
                each_place(&geometry, tile, |_, range, pixel| {
                    let to = y[pixel..].iter_mut().step_by(geometry.stride[2]);
                    to.zip(&parts[range]).for_each(|(y, &part)| *y = *y + part);
                });
            });
        }
    }
}

pub(crate) fn largest<E: Float>(x: &[E], geometry: Geometry, y: &mut [E], positions: &mut [i64]) {
    E::enter(Largest { x, geometry, y, positions });
}

pub(crate) fn mean<E: Float>(x: &[E], geometry: Geometry, counts_padding: bool, y: &mut [E]) {
    E::enter(Mean { x, geometry, counts_padding, y });
}

pub(crate) fn mean_grad<E: Float>(g: &[E], geometry: Geometry, counts_padding: bool, y: &mut [E]) {
    E::enter(MeanGrad { g, geometry, counts_padding, y });
}
