//! Pooling: the largest element, or the mean, of each window of an image.
//!
//! ```text
//! for each row of windows, 256 windows at a time:
//!     for each place in the window: combine the pixels there, a run at a distance of the stride
//! ```
//!
//! Runs are loops over slices that the compiler vectorizes for each instruction set. The order of places is the
//! same everywhere, so bits are too.

use crate::dispatch::run;
use crate::gemm::Geometry;
use crate::simd::{Simd, Task};

/// Element types of pooling: `f32` and `f64`. Sealed.
pub trait Pooled: Copy + Send + Sync + 'static + sealed::Sealed {
    #[doc(hidden)]
    const LOWEST: Self;
    #[doc(hidden)]
    const ZERO: Self;
    #[doc(hidden)]
    fn is_after(self, best: Self) -> bool;
    #[doc(hidden)]
    fn wide(self) -> f64;
    #[doc(hidden)]
    fn rounded(x: f64) -> Self;
    #[doc(hidden)]
    fn plus(self, other: Self) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! pooled {
    ($($t:ident)*) => {$(
        impl sealed::Sealed for $t {}
        impl Pooled for $t {
            const LOWEST: $t = $t::NEG_INFINITY;
            const ZERO: $t = 0.0;
            /// True if it is larger than `best`, or the first NaN.
            #[inline(always)]
            fn is_after(self, best: $t) -> bool {
                self > best || (self.is_nan() && !best.is_nan())
            }
            #[inline(always)]
            fn wide(self) -> f64 {
                self.into()
            }
            #[inline(always)]
            fn rounded(x: f64) -> $t {
                x as $t
            }
            #[inline(always)]
            fn plus(self, other: $t) -> $t {
                self + other
            }
        }
    )*};
}
pooled!(f32 f64);

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
fn each_place(
    geometry: &Geometry,
    tile: Tile,
    mut f: impl FnMut(usize, core::ops::Range<usize>, usize),
) {
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
    positions: &'a mut [i64],
}

impl<E: Pooled> Task for Largest<'_, E> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) {
        let Largest { x, geometry, y, positions } = self;
        let Geometry { image, kernel, stride, dilation, padding, output } = geometry;
        let (pixels, windows): (usize, usize) = (image.iter().product(), output.iter().product());
        let all = positions.chunks_exact_mut(windows).zip(y.chunks_exact_mut(windows));
        for (x, (positions, y)) in x.chunks_exact(pixels.max(1)).zip(all) {
            each_tile(&geometry, |tile, first| {
                let (mut best, mut place_of) = ([E::LOWEST; TILE], [-1i32; TILE]);
                each_place(&geometry, tile, |place, range, pixel| {
                    let best = &mut best[range.clone()];
                    let place_of = &mut place_of[range.clone()];
                    each_pixel(&x[pixel..], stride[2], range.len(), |i, x| {
                        let takes = x.is_after(best[i]) || place_of[i] < 0;
                        best[i] = if takes { x } else { best[i] };
                        place_of[i] = if takes { place as i32 } else { place_of[i] };
                    });
                });
                y[first..first + tile.count].copy_from_slice(&best[..tile.count]);
                for i in 0..tile.count {
                    let place = place_of[i] as usize;
                    let within = [
                        place / (kernel[1] * kernel[2]),
                        place / kernel[2] % kernel[1],
                        place % kernel[2],
                    ];
                    let window = [tile.deep, tile.down, tile.first + i];
                    let [z, y, x]: [i64; 3] = core::array::from_fn(|axis| {
                        (window[axis] * stride[axis] + within[axis] * dilation[axis]) as i64
                            - padding[axis] as i64
                    });
                    positions[first + i] = (z * image[1] as i64 + y) * image[2] as i64 + x;
                }
            });
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

impl<E: Pooled> Task for Mean<'_, E> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) {
        let Mean { x, geometry, counts_padding, y } = self;
        let (pixels, windows): (usize, usize) =
            (geometry.image.iter().product(), geometry.output.iter().product());
        for (x, y) in x.chunks_exact(pixels.max(1)).zip(y.chunks_exact_mut(windows)) {
            each_tile(&geometry, |tile, first| {
                let mut sums = [0.0f64; TILE];
                each_place(&geometry, tile, |_, range, pixel| {
                    let sums = &mut sums[range.clone()];
                    each_pixel(&x[pixel..], geometry.stride[2], range.len(), |i, x| {
                        sums[i] += x.wide();
                    });
                });
                each_divisor(&geometry, counts_padding, tile, |i, divisor| {
                    y[first + i] = E::rounded(sums[i] / divisor);
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

impl<E: Pooled> Task for MeanGrad<'_, E> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) {
        let MeanGrad { g, geometry, counts_padding, y } = self;
        let (pixels, windows): (usize, usize) =
            (geometry.image.iter().product(), geometry.output.iter().product());
        y.fill(E::ZERO);
        for (g, y) in g.chunks_exact(windows).zip(y.chunks_exact_mut(pixels.max(1))) {
            each_tile(&geometry, |tile, first| {
                let mut parts = [E::ZERO; TILE];
                each_divisor(&geometry, counts_padding, tile, |i, divisor| {
                    parts[i] = E::rounded(g[first + i].wide() / divisor);
                });
                each_place(&geometry, tile, |_, range, pixel| {
                    let to = y[pixel..].iter_mut().step_by(geometry.stride[2]);
                    to.zip(&parts[range]).for_each(|(y, &part)| *y = y.plus(part));
                });
            });
        }
    }
}

pub(crate) fn largest<E: Pooled>(x: &[E], geometry: Geometry, y: &mut [E], positions: &mut [i64]) {
    run(Largest { x, geometry, y, positions });
}

pub(crate) fn mean<E: Pooled>(x: &[E], geometry: Geometry, counts_padding: bool, y: &mut [E]) {
    run(Mean { x, geometry, counts_padding, y });
}

pub(crate) fn mean_grad<E: Pooled>(g: &[E], geometry: Geometry, counts_padding: bool, y: &mut [E]) {
    run(MeanGrad { g, geometry, counts_padding, y });
}
