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
            /// Larger, or the first NaN.
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

/// Windows of a row that are computed at once.
const TILE: usize = 256;

/// Some windows of one row, `first..first + count`, at the place of the image where they begin.
#[derive(Clone, Copy)]
struct Tile {
    deep: usize,
    down: usize,
    first: usize,
    count: usize,
}

/// `f(tile, first result)` for the windows of an image.
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

/// `f(place, windows, first pixel)` for each place in the windows of a tile whose row is inside the image: the
/// windows of the tile that have the place inside the image, and the pixel of the first of them. Pixels of
/// windows that follow one another are a stride apart.
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

/// `f(window, pixel)` for a run; strides of 1 and 2 are loops of their own, which are vectorized.
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

/// Pixels of a window inside the image.
fn inside(geometry: &Geometry, axis: usize, window: usize) -> usize {
    let Geometry { image, kernel, stride, dilation, padding, .. } = *geometry;
    let at =
        |place: usize| (window * stride[axis] + place * dilation[axis]) as isize - padding[axis];
    (0..kernel[axis]).filter(|&place| (0..image[axis] as isize).contains(&at(place))).count()
}

/// The number by which the sum of a window is divided.
fn divisor(geometry: &Geometry, counts_padding: bool, window: [usize; 3]) -> f64 {
    let along = |axis: usize| match counts_padding {
        true => geometry.kernel[axis],
        false => inside(geometry, axis, window[axis]),
    };
    (along(0) * along(1) * along(2)) as f64
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
                for i in 0..tile.count {
                    let window = [tile.deep, tile.down, tile.first + i];
                    y[first + i] = E::rounded(sums[i] / divisor(&geometry, counts_padding, window));
                }
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
                for i in 0..tile.count {
                    let window = [tile.deep, tile.down, tile.first + i];
                    parts[i] = E::rounded(
                        g[first + i].wide() / divisor(&geometry, counts_padding, window),
                    );
                }
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
