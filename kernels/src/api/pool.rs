//! Pooling of images: largest elements and means of windows.

use crate::gemm::Geometry;
use crate::pool;
use crate::simd::Float;

/// Panics unless there are as many pixels and windows as a number of whole images has.
#[track_caller]
fn check(name: &str, pixels: usize, windows: usize, geometry: &Geometry) {
    let size = |extents: [usize; 3]| extents.iter().product::<usize>();
    let (image, output) = (size(geometry.image), size(geometry.output));
    let steps = [geometry.stride, geometry.dilation];
    assert!(!steps.iter().flatten().any(|&step| step == 0), "{name}: a step of 0 in {geometry:?}");
    assert!(output > 0, "{name}: no window in {geometry:?}");
    let count = windows / output;
    assert!(
        windows == count * output && pixels == count * image,
        "{name}: {pixels} pixels and {windows} windows are not those of whole images of {geometry:?}"
    );
}

/// The largest pixel of each window of the images `x`, one after the other, and its position in the image; of equal
/// ones the first. A NaN is larger than any number. Pixels of the padding are none. `positions` may be empty.
///
/// ```
/// use swath_kernels::{Geometry, max_pool};
/// let pairs = Geometry {
///     image: [1, 1, 4],
///     kernel: [1, 1, 2],
///     stride: [1, 1, 2],
///     dilation: [1; 3],
///     padding: [0; 3],
///     output: [1, 1, 2],
/// };
/// let (mut y, mut positions) = ([0.0f32; 2], [0; 2]);
/// max_pool(&[1.0, 3.0, 2.0, 2.0], pairs, &mut y, &mut positions);
/// assert_eq!((y, positions), ([3.0, 2.0], [1, 2]));
/// ```
///
/// # Panics
/// If lengths are not those of as many whole images, a window has no pixel, or an image has more than 2³¹ of them.
#[track_caller]
pub fn max_pool<E: Float>(x: &[E], geometry: Geometry, y: &mut [E], positions: &mut [i64]) {
    check("max_pool", x.len(), y.len(), &geometry);
    assert!(
        positions.is_empty() || positions.len() == y.len(),
        "max_pool: {} positions of {} windows",
        positions.len(),
        y.len()
    );
    let pixels: usize = geometry.image.iter().product();
    assert!(i32::try_from(pixels).is_ok(), "max_pool: images of {pixels} pixels");
    for axis in 0..3 {
        let Geometry { image, kernel, stride, dilation, padding, output } = geometry;
        let begin = |window: usize| (window * stride[axis]) as isize - padding[axis];
        // A window that begins in the image has a pixel, one that begins before it perhaps at a later place.
        let has_pixel = |begin: isize| {
            let place = begin.min(0).unsigned_abs().div_ceil(dilation[axis]);
            let pixel = begin + (place * dilation[axis]) as isize;
            place < kernel[axis] && pixel < image[axis] as isize
        };
        let before = (0..output[axis]).take_while(|&window| begin(window) < 0);
        let missing = before.chain([output[axis] - 1]).find(|&window| !has_pixel(begin(window)));
        assert!(
            missing.is_none(),
            "max_pool: window {missing:?} along axis {axis} of {geometry:?} has no pixel"
        );
    }
    pool::largest(x, geometry, y, positions);
}

/// The mean of each window of the images `x`, summed in `f64` in the order of places: over the pixels inside the
/// image or, with `counts_padding`, also over the padding, which is 0 and as wide after the image as before it.
///
/// ```
/// use swath_kernels::{Geometry, avg_pool};
/// let pairs = Geometry {
///     image: [1, 1, 3],
///     kernel: [1, 1, 2],
///     stride: [1, 1, 2],
///     dilation: [1; 3],
///     padding: [0, 0, 1],
///     output: [1, 1, 2],
/// };
/// let mut y = [0.0f32; 2];
/// avg_pool(&[1.0, 3.0, 2.0], pairs, false, &mut y);
/// assert_eq!(y, [1.0, 2.5]);
/// avg_pool(&[1.0, 3.0, 2.0], pairs, true, &mut y);
/// assert_eq!(y, [0.5, 2.5]);
/// ```
///
/// # Panics
/// If lengths are not those of as many whole images.
#[track_caller]
pub fn avg_pool<E: Float>(x: &[E], geometry: Geometry, counts_padding: bool, y: &mut [E]) {
    check("avg_pool", x.len(), y.len(), &geometry);
    pool::mean(x, geometry, counts_padding, y);
}

/// The gradient of [`avg_pool`] by its images, from that of its results, `g`.
///
/// # Panics
/// If lengths are not those of as many whole images.
#[track_caller]
pub fn avg_pool_grad<E: Float>(g: &[E], geometry: Geometry, counts_padding: bool, y: &mut [E]) {
    check("avg_pool_grad", y.len(), g.len(), &geometry);
    pool::mean_grad(g, geometry, counts_padding, y);
}
