//! Pooling: the largest element, or the mean, of each window of an image.
//!
//! ```text
//! largest: for each vector of adjacent windows of a row: take the larger of it and the pixels at the next tap
//! mean:    for each row of windows, 256 windows at a time:
//!              for each tap: add the pixels there, a run at a distance of the stride
//! ```
//!
//! The order of taps is the same everywhere, so bits are too.

use core::mem::MaybeUninit;
use core::ops::Range;

use crate::dispatch::run;
use crate::geometry::Geometry;
use crate::simd::{Float, IntVector as _, Lanes, MAX_LANES, Task, Vector as _};

/// Maximum number of windows that are computed at once: their values stay in the L1 cache.
const TILE: usize = 256;

/// Some windows of one row, `first..first + count`: windows of the axes before it, and of this one.
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
    let [depth, height, width] = geometry.windows();
    for deep in 0..depth {
        for down in 0..height {
            for first in (0..width).step_by(TILE) {
                let count = TILE.min(width - first);
                f(Tile { deep, down, first, count }, (deep * height + down) * width + first);
            }
        }
    }
}

/// Calls `f(windows, pixel)` for every tap that is inside the image for some windows of a tile: the range of these
/// windows, and the pixel of the first. Pixels of neighbouring windows are a stride apart.
#[inline(always)]
fn each_tap(geometry: &Geometry, tile: Tile, mut f: impl FnMut(Range<usize>, usize)) {
    let [deep, down, across] = [0, 1, 2].map(|axis| geometry.axis(axis));
    let windows = tile.first..tile.first + tile.count;
    let taps = across.taps_of_some(&windows);
    for z in deep.taps_of(tile.deep) {
        for y in down.taps_of(tile.down) {
            let line =
                deep.pixel(tile.deep, z) as usize * down.image + down.pixel(tile.down, y) as usize;
            let mut x = taps.start;
            while x < taps.end {
                x = match across.windows_among(x, &windows) {
                    Ok(inside) => {
                        let column = across.pixel(tile.first + inside.start, x) as usize;
                        f(inside, line * across.image + column);
                        x + 1
                    }
                    Err(next) => next,
                };
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

impl<E: Float> Task<E> for Largest<'_, E> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Lanes<E>>(self, simd: S) {
        let Largest { x, geometry, y, positions } = self;
        let output = geometry.windows();
        let (pixels, windows): (usize, usize) =
            (geometry.image().iter().product(), output.iter().product());
        let whole = geometry.axis(2).whole_windows();
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
                        let positions = positions.unwrap_or_default();
                        let is_whole = whole.contains(&first) && y.len() <= whole.end - first;
                        largest_of(simd, x, &geometry, [deep, down, first], is_whole, y, positions);
                    }
                }
            }
        }
    }
}

/// The largest pixels of at most a vector of adjacent windows, and their positions if wanted. `is_whole`: all taps of the
/// windows across are inside the image.
#[inline(always)]
fn largest_of<E: Float, S: Lanes<E>>(
    simd: S,
    x: &[E],
    geometry: &Geometry,
    windows: [usize; 3],
    is_whole: bool,
    y: &mut [E],
    positions: &mut [i64],
) {
    let [deep, down, across] = [0, 1, 2].map(|axis| geometry.axis(axis));
    let count = y.len();
    let some = windows[2]..windows[2] + count;
    let taps = if is_whole { 0..across.kernel } else { across.taps_of_some(&some) };
    let mut best = simd.splat(-E::INFINITY);
    // Position that the first window has if the best pixel of a lane is at the same tap, and the lanes that have one. It is
    // exact in the lowest 32 bits.
    let (mut origins, mut found) = (simd.splat_int(0.into()), simd.first(0));
    for z in deep.taps_of(windows[0]) {
        for row in down.taps_of(windows[1]) {
            let start = (deep.pixel(windows[0], z) as usize * down.image
                + down.pixel(windows[1], row) as usize)
                * across.image;
            let line = &x[start..][..across.image];
            let mut column = taps.start;
            while column < taps.end {
                let mut inside = 0..count;
                if !is_whole {
                    inside = match across.windows_among(column, &some) {
                        Ok(inside) => inside,
                        Err(next) => {
                            column = next;
                            continue;
                        }
                    };
                }
                let pixel = across.pixel(windows[2], column);
                let pixels = load_apart(simd, line, pixel, across.stride, inside.clone());
                let mut takes = best.lt(pixels) | (pixels.is_nan() & !best.is_nan());
                if !positions.is_empty() {
                    takes = takes | !found;
                }
                if inside != (0..count) {
                    takes = takes & lanes(simd, inside);
                }
                best = pixels.select(takes, best);
                if !positions.is_empty() {
                    let origin = (start as i32).wrapping_add(pixel as i32);
                    origins = simd.splat_int(origin.into()).select(takes, origins);
                    found = found | takes;
                }
                column += 1;
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
    let origins = unsafe {
        simd.store(memory.as_mut_ptr().cast(), S::V::from_bits(origins));
        core::slice::from_raw_parts(memory.as_ptr().cast::<E::Int>(), S::LANES)
    };
    for (i, (position, &origin)) in positions.iter_mut().zip(origins).enumerate() {
        let (origin, distance): (i64, _) = (origin.into(), (i * across.stride) as i64);
        *position = i64::from((origin + distance) as i32);
    }
}

/// The mask of a range of lanes.
#[inline(always)]
fn lanes<E: Float, S: Lanes<E>>(simd: S, range: Range<usize>) -> S::M {
    simd.first(range.end) & !simd.first(range.start)
}

/// Reads pixel `first + i * stride` into each lane i of `range`, which is not empty and those inside `line`; the others
/// are unspecified.
#[inline(always)]
fn load_apart<E: Float, S: Lanes<E>>(
    simd: S,
    line: &[E],
    first: isize,
    stride: usize,
    range: Range<usize>,
) -> S::V {
    let [begin, end] = [range.start, range.end - 1].map(|i| first + (i * stride) as isize);
    assert!(0 <= begin && begin <= end && end < line.len() as isize);
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

/// `f(window of the tile, divisor of its mean)` for every window of a tile.
#[inline(always)]
fn each_divisor(counted: &Geometry, tile: Tile, mut f: impl FnMut(usize, f64)) {
    let along = |axis: usize, window| counted.axis(axis).taps_of(window).len();
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

impl<E: Float> Task<E> for Mean<'_, E> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Lanes<E>>(self, _simd: S) {
        let Mean { x, geometry, counts_padding, y } = self;
        let (pixels, windows): (usize, usize) =
            (geometry.image().iter().product(), geometry.windows().iter().product());
        let counted = if counts_padding { geometry.with_padding() } else { geometry };
        // An image may have no pixels, and its windows see padding.
        for (image, y) in y.chunks_exact_mut(windows).enumerate() {
            let x = &x[image * pixels..][..pixels];
            each_tile(&geometry, |tile, first| {
                let mut sums = [0.0f64; TILE];
                each_tap(&geometry, tile, |range, pixel| {
                    let sums = &mut sums[range.clone()];
                    each_pixel(&x[pixel..], geometry.axis(2).stride, range.len(), |i, x| {
                        sums[i] += x.to_f64();
                    });
                });
                each_divisor(&counted, tile, |i, divisor| {
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

impl<E: Float> Task<E> for MeanGrad<'_, E> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Lanes<E>>(self, _simd: S) {
        let MeanGrad { g, geometry, counts_padding, y } = self;
        let (pixels, windows): (usize, usize) =
            (geometry.image().iter().product(), geometry.windows().iter().product());
        let counted = if counts_padding { geometry.with_padding() } else { geometry };
        y.fill(E::ZERO);
        for (g, y) in g.chunks_exact(windows).zip(y.chunks_exact_mut(pixels.max(1))) {
            each_tile(&geometry, |tile, first| {
                let mut parts = [E::ZERO; TILE];
                each_divisor(&counted, tile, |i, divisor| {
                    parts[i] = E::from_f64(g[first + i].to_f64() / divisor);
                });
                each_tap(&geometry, tile, |range, pixel| {
                    let to = y[pixel..].iter_mut().step_by(geometry.axis(2).stride);
                    to.zip(&parts[range]).for_each(|(y, &part)| *y = *y + part);
                });
            });
        }
    }
}

pub(crate) fn largest<E: Float>(x: &[E], geometry: Geometry, y: &mut [E], positions: &mut [i64]) {
    run(Largest { x, geometry, y, positions });
}

pub(crate) fn mean<E: Float>(x: &[E], geometry: Geometry, counts_padding: bool, y: &mut [E]) {
    run(Mean { x, geometry, counts_padding, y });
}

pub(crate) fn mean_grad<E: Float>(g: &[E], geometry: Geometry, counts_padding: bool, y: &mut [E]) {
    run(MeanGrad { g, geometry, counts_padding, y });
}
