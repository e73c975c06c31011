//! Where the windows of convolutions and poolings lie in images.
//!
//! ```text
//! pixel(window, tap) = window · stride + tap · dilation − padding       along each axis; outside the image it is 0 or ignored
//! ```
//!
//! Kernels never compute this themselves: they ask which windows see a pixel of the image at a tap
//! ([`Sliding::windows_at`]), or at which taps a window does ([`Sliding::taps_of`]). A [`Geometry`] is checked when it is
//! made, so that no position overflows.

use core::fmt;
use core::ops::Range;

/// Windows that slide along one axis of an image. Methods panic for a stride or dilation of 0, which no [`Geometry`] has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sliding {
    /// Number of pixels of the image.
    pub image: usize,
    /// Number of taps: the pixels of a window.
    pub kernel: usize,
    /// Distance between neighbouring windows in pixels.
    pub stride: usize,
    /// Distance between neighbouring taps in pixels.
    pub dilation: usize,
    /// Number of padding pixels before and after the image; negative where pixels are cut off. Those after it matter
    /// only to a mean that counts them.
    pub padding: [isize; 2],
    /// Number of windows.
    pub windows: usize,
}

impl Default for Sliding {
    /// An axis that images lack: one pixel, which one window sees.
    fn default() -> Self {
        Sliding { image: 1, kernel: 1, stride: 1, dilation: 1, padding: [0; 2], windows: 1 }
    }
}

impl Sliding {
    /// All windows that fit into the padded image, at a stride and a dilation of 1 and without padding.
    pub fn new(image: usize, kernel: usize) -> Self {
        let windows = image.saturating_add(1).saturating_sub(kernel);
        Sliding { image, kernel, windows, ..Sliding::default() }
    }

    /// The pixel that a window sees at a tap, which may lie outside the image.
    #[inline(always)]
    pub fn pixel(&self, window: usize, tap: usize) -> isize {
        (window * self.stride + tap * self.dilation) as isize - self.padding[0]
    }

    /// The windows that see a pixel of the image at a tap.
    #[inline(always)]
    pub fn windows_at(&self, tap: usize) -> Range<usize> {
        inside(self.pixel(0, tap), self.stride, self.windows, self.image)
    }

    /// The taps at which a window sees a pixel of the image.
    #[inline(always)]
    pub fn taps_of(&self, window: usize) -> Range<usize> {
        inside(self.pixel(window, 0), self.dilation, self.kernel, self.image)
    }

    /// Taps between the first and the last at which some of a few adjacent windows see a pixel of the image.
    #[inline(always)]
    pub(crate) fn taps_of_some(&self, windows: &Range<usize>) -> Range<usize> {
        // Later windows see the image at earlier taps.
        self.taps_of(windows.end - 1).start..self.taps_of(windows.start).end
    }

    /// The windows, counted from the first, that see a pixel of the image at one of [`Sliding::taps_of_some`]; `Err` with the
    /// next tap at which some may, if none does.
    #[inline(always)]
    pub(crate) fn windows_among(
        &self,
        tap: usize,
        windows: &Range<usize>,
    ) -> Result<Range<usize>, usize> {
        let all = self.windows_at(tap);
        let [start, end] =
            [all.start, all.end].map(|at| at.clamp(windows.start, windows.end) - windows.start);
        if start < end {
            return Ok(start..end);
        }
        // The window before those that are beyond the image.
        Err(self.taps_of(all.start.saturating_sub(1)).start.max(tap + 1))
    }

    /// The windows that see a pixel of the image at every tap.
    #[inline(always)]
    pub fn whole_windows(&self) -> Range<usize> {
        let [first, last] = [0, self.kernel.saturating_sub(1)].map(|tap| self.windows_at(tap));
        first.start..last.end.max(first.start)
    }

    /// The first window that sees no pixel of the image, if there is one.
    pub fn empty_window(&self) -> Option<usize> {
        if self.windows == 0 || self.taps_of(0).is_empty() {
            return Some(0).filter(|&first| first < self.windows);
        }
        // A window that begins in the image has a pixel, one that begins after it has none. One that begins before it has
        // taps up to the image, as window 0 has more to go: it misses the image if the first tap that is not before the
        // image, which is at the window's beginning modulo the dilation, is after it.
        let windows_before =
            |pixel: isize| (pixel - self.pixel(0, 0)).max(0).unsigned_abs().div_ceil(self.stride);
        let [before, after] = [0, self.image as isize].map(windows_before);
        let start = self.pixel(0, 0).rem_euclid(self.dilation as isize) as usize;
        let missing = self.image.checked_sub(start).filter(|_| self.dilation > self.image);
        let missed = missing.and_then(|to_end| {
            let rest = [to_end, self.dilation - 1 - start].map(|n| n as u128);
            first_multiple((self.stride % self.dilation) as u128, self.dilation as u128, rest)
        });
        let missed = missed.map(|window| window as usize).filter(|&window| window < before);
        missed.or(Some(after)).filter(|&window| window < self.windows)
    }

    /// This axis with its padding as a part of the image.
    pub fn with_padding(self) -> Self {
        let [before, after] = self.padding;
        let image = self.image.saturating_add_signed(before).saturating_add_signed(after);
        Sliding { image, padding: [0; 2], ..self }
    }

    /// This axis with the steps of single windows and taps, which mean nothing, as 1. `Err` with a reason if a step is
    /// 0 or a position may overflow.
    fn checked(mut self) -> Result<Self, &'static str> {
        /// A quarter of the address space, so that sums of positions do not overflow.
        const FARTHEST: usize = isize::MAX as usize / 4;
        for (step, count) in [(&mut self.stride, self.windows), (&mut self.dilation, self.kernel)] {
            match (*step, count) {
                (0, _) => return Err("a stride or dilation is 0"),
                (_, 0 | 1) => *step = 1,
                _ => {}
            }
        }
        let last = |count: usize, step: usize| count.saturating_sub(1).checked_mul(step);
        let reach = || {
            let windows = last(self.windows, self.stride)?;
            let taps = last(self.kernel, self.dilation)?;
            let padding = self.padding.map(isize::unsigned_abs);
            [taps, self.image, self.windows, self.kernel, padding[0], padding[1]]
                .into_iter()
                .try_fold(windows, usize::checked_add)
        };
        match reach().is_some_and(|reach| reach <= FARTHEST) {
            true => Ok(self),
            false => Err("a window lies too far from the image"),
        }
    }
}

/// The smallest `n` for which `n · step` modulo `modulus` is in `low..=high`, where `0 < low <= high < modulus`.
fn first_multiple(step: u128, modulus: u128, [low, high]: [u128; 2]) -> Option<u128> {
    if step == 0 {
        return None;
    }
    let n = low.div_ceil(step);
    if n * step <= high {
        return Some(n);
    }
    // No multiple of the step is between: the modulus is subtracted m times, and m times it is in [-high, -low] modulo the
    // step, where neither end is 0.
    let rest = [step - high % step, step - low % step];
    let m = first_multiple(modulus % step, step, rest)?;
    Some((low + m * modulus).div_ceil(step))
}

/// The indices i < `count` with `0 <= first + i · step < extent`. The step is not 0, and `first + count · step` does not
/// overflow.
#[inline(always)]
fn inside(first: isize, step: usize, count: usize, extent: usize) -> Range<usize> {
    // Steps from `first` to `pixel`, rounded up.
    let steps_to = |pixel: isize| match step {
        1 => (pixel - first).max(0) as usize,
        _ => ((pixel - first).max(0) as usize).div_ceil(step),
    };
    let start = steps_to(0).min(count);
    start..steps_to(extent as isize).clamp(start, count)
}

/// Windows that slide over images along depth, height and width. An axis that images lack is `Sliding::default()`.
///
/// ```
/// use swath_kernels::{Geometry, Sliding};
/// let across = Sliding { padding: [1, 0], ..Sliding::new(4, 3) };
/// let geometry = Geometry::new([Sliding::default(), Sliding::default(), across])?;
/// // The first window begins in the padding.
/// assert_eq!(geometry.axis(2).taps_of(0), 1..3);
/// assert_eq!(geometry.windows(), [1, 1, 2]);
/// # Ok::<(), swath_kernels::GeometryError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    axes: [Sliding; 3],
}

impl Geometry {
    /// Checks the axes. The steps of a single window and of a single tap mean nothing and become 1.
    ///
    /// # Errors
    /// [`GeometryError`] if a step is 0, or if positions or numbers of pixels, taps or windows may overflow.
    pub fn new(axes: [Sliding; 3]) -> Result<Self, GeometryError> {
        let mut geometry = Geometry { axes };
        for (axis, sliding) in geometry.axes.iter_mut().enumerate() {
            *sliding = sliding.checked().map_err(|reason| GeometryError {
                axis,
                sliding: *sliding,
                reason,
            })?;
        }
        for count in [geometry.image(), geometry.kernel(), geometry.windows()] {
            let all = count.iter().try_fold(1usize, |n, &count| n.checked_mul(count));
            if all.is_none_or(|all| isize::try_from(all).is_err()) {
                let reason = "there are too many pixels, taps or windows";
                return Err(GeometryError { axis: 2, sliding: axes[2], reason });
            }
        }
        Ok(geometry)
    }

    /// The windows along an axis.
    #[inline(always)]
    pub fn axis(&self, axis: usize) -> &Sliding {
        &self.axes[axis]
    }

    /// Extents of the image.
    #[inline(always)]
    pub fn image(&self) -> [usize; 3] {
        self.axes.map(|axis| axis.image)
    }

    /// Extents of a window in taps.
    #[inline(always)]
    pub fn kernel(&self) -> [usize; 3] {
        self.axes.map(|axis| axis.kernel)
    }

    /// Distance between neighbouring windows in pixels.
    #[inline(always)]
    pub fn stride(&self) -> [usize; 3] {
        self.axes.map(|axis| axis.stride)
    }

    /// Number of windows along each axis.
    #[inline(always)]
    pub fn windows(&self) -> [usize; 3] {
        self.axes.map(|axis| axis.windows)
    }

    /// Number of taps of a window.
    #[inline(always)]
    pub fn taps(&self) -> usize {
        self.kernel().iter().product()
    }

    /// This geometry with the padding as a part of the image.
    pub fn with_padding(self) -> Self {
        Geometry { axes: self.axes.map(Sliding::with_padding) }
    }
}

/// Windows that cannot slide over an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeometryError {
    /// The axis, 0 for depth.
    pub axis: usize,
    /// Its windows.
    pub sliding: Sliding,
    reason: &'static str,
}

impl fmt::Display for GeometryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sliding { image, kernel, stride, dilation, padding, windows } = self.sliding;
        write!(
            f,
            "{} along axis {} of 3: {image} pixels, padding {padding:?}, {windows} windows of {kernel} taps, stride \
             {stride}, dilation {dilation}",
            self.reason, self.axis
        )
    }
}

impl core::error::Error for GeometryError {}

#[cfg(test)]
mod tests {
    use super::{Sliding, inside};

    /// Every pixel, tried one by one.
    #[test]
    fn ranges_are_those_of_a_search() {
        for first in -9..9 {
            for step in 1..5 {
                for count in 0..7 {
                    for extent in 0..7 {
                        let is_in = |&i: &usize| {
                            (0..extent as isize).contains(&(first + (i * step) as isize))
                        };
                        let found: Vec<usize> = (0..count).filter(is_in).collect();
                        let range = inside(first, step, count, extent);
                        assert_eq!(
                            range.collect::<Vec<_>>(),
                            found,
                            "{first} {step} {count} {extent}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn the_first_window_without_a_pixel_is_that_of_a_search() {
        let extents = (0..4).flat_map(|image| (0..4).map(move |kernel| (image, kernel)));
        let steps = (1..6).flat_map(|stride| (1..8).map(move |dilation| (stride, dilation)));
        let places = (-2..14).flat_map(|padding| (0..9).map(move |windows| (padding, windows)));
        for (image, kernel) in extents {
            for (stride, dilation) in steps.clone() {
                for (padding, windows) in places.clone() {
                    let padding = [padding, 0];
                    let axis = Sliding { image, kernel, stride, dilation, padding, windows };
                    let sees = |window, tap| (0..image as isize).contains(&axis.pixel(window, tap));
                    let found = (0..windows).find(|&w| !(0..kernel).any(|tap| sees(w, tap)));
                    assert_eq!(axis.empty_window(), found, "{axis:?}");
                }
            }
        }
        // Not one window after the other.
        let far = 1 << 40;
        let padding = [far as isize - 1, 0];
        let axis =
            Sliding { image: far - 1, kernel: 2, stride: 1, dilation: far, padding, windows: far };
        assert_eq!(axis.empty_window(), Some(far - 2));
        let shorter = Sliding { image: far - 3, ..axis };
        assert_eq!(shorter.empty_window(), Some(far - 4));
    }

    #[test]
    fn positions_that_may_overflow_are_errors() {
        let far = usize::MAX / 2;
        let plain = Sliding { windows: 2, ..Sliding::new(8, 3) };
        assert!(plain.checked().is_ok());
        for wrong in [
            Sliding { stride: 0, ..plain },
            Sliding { dilation: 0, ..plain },
            Sliding { stride: far, ..plain },
            Sliding { stride: usize::MAX, ..plain },
            Sliding { stride: 3, windows: usize::MAX / 2, ..plain },
            Sliding { dilation: far, ..plain },
            Sliding { padding: [isize::MIN, 0], ..plain },
            Sliding { padding: [0, isize::MAX], ..plain },
            Sliding { image: far, ..plain },
            Sliding { kernel: usize::MAX, ..plain },
        ] {
            assert!(wrong.checked().is_err(), "{wrong:?}");
        }
        // The step of a single window means nothing.
        let single = Sliding { stride: usize::MAX, windows: 1, ..plain }.checked();
        assert_eq!(single.map(|axis| axis.stride), Ok(1));
    }
}
