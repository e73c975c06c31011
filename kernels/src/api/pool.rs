//! Pooling of images: largest elements and means of windows.

use crate::geometry::Geometry;
use crate::pool;
use crate::simd::Float;

/// Panics unless there are as many pixels and windows as a number of whole images has.
#[track_caller]
fn check(name: &str, pixels: usize, windows: usize, geometry: &Geometry) {
    let size = |extents: [usize; 3]| extents.iter().product::<usize>();
    let (image, output) = (size(geometry.image()), size(geometry.windows()));
    assert!(output > 0, "{name}: no window in {geometry:?}");
    let count = windows / output;
    assert!(
        windows.is_multiple_of(output) && count.checked_mul(image) == Some(pixels),
        "{name}: {pixels} pixels and {windows} windows are not those of whole images of {geometry:?}"
    );
}

/// The largest pixel of each window of the images `x`, one after the other, and its position in the image; of equal
/// ones the first. A NaN is larger than any number. Pixels of the padding are none. `positions` may be empty.
///
/// ```
/// use swath_kernels::{Geometry, Sliding, max_pool};
/// let across = Sliding { stride: 2, windows: 2, ..Sliding::new(4, 2) };
/// let pairs = Geometry::new([Sliding::default(), Sliding::default(), across])?;
/// let (mut y, mut positions) = ([0.0f32; 2], [0; 2]);
/// max_pool(&[1.0, 3.0, 2.0, 2.0], pairs, &mut y, &mut positions);
/// assert_eq!((y, positions), ([3.0, 2.0], [1, 2]));
/// # Ok::<(), swath_kernels::GeometryError>(())
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
    let pixels: usize = geometry.image().iter().product();
    assert!(i32::try_from(pixels).is_ok(), "max_pool: images of {pixels} pixels");
    for number in 0..3 {
        let missing = geometry.axis(number).empty_window();
        assert!(
            missing.is_none(),
            "max_pool: window {missing:?} along axis {number} of {geometry:?} has no pixel"
        );
    }
    pool::largest(x, geometry, y, positions);
}

/// The mean of each window of the images `x`, summed in `f64` in the order of taps: over the pixels inside the
/// image or, with `counts_padding`, also over the padding, which is 0. NaN where there is nothing to count.
///
/// ```
/// use swath_kernels::{Geometry, Sliding, avg_pool};
/// let across = Sliding { stride: 2, padding: [1, 1], windows: 2, ..Sliding::new(3, 2) };
/// let pairs = Geometry::new([Sliding::default(), Sliding::default(), across])?;
/// let mut y = [0.0f32; 2];
/// avg_pool(&[1.0, 3.0, 2.0], pairs, false, &mut y);
/// assert_eq!(y, [1.0, 2.5]);
/// avg_pool(&[1.0, 3.0, 2.0], pairs, true, &mut y);
/// assert_eq!(y, [0.5, 2.5]);
/// # Ok::<(), swath_kernels::GeometryError>(())
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
