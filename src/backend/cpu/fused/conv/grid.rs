//! Grids of pixels, which the results of a convolution are written to.

use std::ops::Range;

use super::super::super::written::Written;

/// Pixels of an image at a distance of `step` from `start` on, `count` along each axis.
#[derive(Clone, Copy)]
pub(super) struct Grid {
    start: [usize; 3],
    step: [usize; 3],
    count: [usize; 3],
}

impl Grid {
    /// Makes a grid. The step of an axis with a single pixel means nothing, and becomes 1.
    pub fn new(start: [usize; 3], step: [usize; 3], count: [usize; 3]) -> Self {
        let step = std::array::from_fn(|axis| if count[axis] > 1 { step[axis] } else { 1 });
        Grid { start, step, count }
    }

    /// Number of pixels.
    pub fn numel(&self) -> usize {
        self.count.iter().product()
    }

    /// True if it has all pixels of images of these extents, so that its pixels are numbered like theirs.
    pub fn is_dense(&self, image: [usize; 3]) -> bool {
        self.count == image && self.start == [0; 3] && self.step == [1; 3]
    }

    /// Number of its pixels before a pixel of the image, which is numbered row by row.
    pub fn before(&self, [_, height, width]: [usize; 3], pixel: usize) -> usize {
        let (line, x) = (pixel / width, pixel % width);
        let at = [line / height, line % height, x];
        let mut all = 0;
        let mut is_on_grid = true;
        for (axis, &at) in at.iter().enumerate() {
            let from = at.saturating_sub(self.start[axis]);
            let reached = from.div_ceil(self.step[axis]).min(self.count[axis]);
            all = all * self.count[axis] + if is_on_grid { reached } else { 0 };
            is_on_grid &=
                reached < self.count[axis] && self.start[axis] + reached * self.step[axis] == at;
        }
        all
    }

    /// The pixel of an image, numbered row by row.
    pub fn pixel(&self, image: [usize; 3], at: [usize; 3]) -> usize {
        let at: [usize; 3] = std::array::from_fn(|i| self.start[i] + at[i] * self.step[i]);
        (at[0] * image[1] + at[1]) * image[2] + at[2]
    }

    /// Calls `f(image, pixel of the grid, run)` for the columns `first..first + width`, which number the pixels of
    /// the grids of all images one after the other: a run is a range of these columns, from the first one, that
    /// are a step apart in an image.
    pub fn each_run(
        &self,
        image: [usize; 3],
        first: usize,
        width: usize,
        mut f: impl FnMut(usize, [usize; 3], Range<usize>),
    ) {
        let [depth, height, across] = self.count;
        let is_dense = self.is_dense(image);
        let mut at = 0;
        while at < width {
            let column = first + at;
            let (line, x) = (column / across, column % across);
            let (plane, y) = (line / height, line % height);
            let (image, z) = (plane / depth, plane % depth);
            // A dense grid has one run per image, others have one per row.
            let left = match is_dense {
                true => (depth * height * across) - column % (depth * height * across),
                false => across - x,
            };
            let len = left.min(width - at);
            f(image, [z, y, x], at..at + len);
            at += len;
        }
    }

    /// Writes adjacent pixels of a row of the grid to the memory of an image, which begins at the first, and counts
    /// them.
    pub fn write<T: Copy>(&self, pixels: &[T], y: &mut [T], written: &Written) {
        let step = self.step[2];
        match step {
            1 => y[..pixels.len()].copy_from_slice(pixels),
            _ => y.iter_mut().step_by(step).zip(pixels).for_each(|(y, &x)| *y = x),
        }
        written.add(pixels.len().min(y.len().div_ceil(step)));
    }
}
