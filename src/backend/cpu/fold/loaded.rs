//! Floats as folds read them.

use std::ops::Range;

use bytemuck::Pod;
use half::{bf16, f16};
use swath_kernels::{self as kernels, PairwiseSum};

use super::super::cast::Half;
use super::super::memory::Buffer;
use crate::dtype::Element;

/// Floats. Sums take them as they lie; for what looks at one element after the other 16-bit ones are
/// widened, block by block.
pub trait Loaded: Element<Stored = Self> + Pod + kernels::Accumulate {
    /// What they are compared as.
    type Wide: kernels::Reduce + Pod;
    /// Hands the elements on, all but the last time a whole number of blocks.
    fn feed(x: &[Self], f: impl FnMut(&[Self::Wide]));
    /// The elements as they lie, if they are compared so.
    fn native(x: &[Self]) -> Option<&[Self::Wide]>;
    /// As [`Loaded::native`], to be written.
    fn native_mut(x: &mut [Self]) -> Option<&mut [Self::Wide]>;
    /// Writes what elements are compared as.
    fn widen(x: &[Self], wide: &mut [Self::Wide]);
}

macro_rules! native {
    ($($t:ty)*) => {$(
        impl Loaded for $t {
            type Wide = $t;
            fn feed(x: &[Self], mut f: impl FnMut(&[$t])) {
                f(x);
            }
            fn native(x: &[Self]) -> Option<&[$t]> {
                Some(x)
            }
            fn native_mut(x: &mut [Self]) -> Option<&mut [$t]> {
                Some(x)
            }
            fn widen(x: &[Self], wide: &mut [$t]) {
                wide.copy_from_slice(x);
            }
        }
    )*};
}
native!(f32 f64);

macro_rules! widened {
    ($($t:ty)*) => {$(
        impl Loaded for $t {
            type Wide = f32;
            fn feed(x: &[Self], mut f: impl FnMut(&[f32])) {
                let mut wide = [0f32; PairwiseSum::BLOCK];
                for x in x.chunks(PairwiseSum::BLOCK) {
                    let wide = &mut wide[..x.len()];
                    <$t as Half>::widen(x, wide);
                    f(wide);
                }
            }
            fn native(_x: &[Self]) -> Option<&[f32]> {
                None
            }
            fn native_mut(_x: &mut [Self]) -> Option<&mut [f32]> {
                None
            }
            fn widen(x: &[Self], wide: &mut [f32]) {
                <$t as Half>::widen(x, wide);
            }
        }
    )*};
}
widened!(f16 bf16);

/// Rows and columns that are widened at a time, 64 KiB: with fewer rows `argmax` looks up too often what
/// it found in those before.
const BAND_ROWS: usize = 64;
pub(super) const BAND_COLS: usize = 256;

/// Some rows of some columns, widened and adjacent, after `held` (0 or 1) rows of what was found in the
/// rows before.
pub(super) struct Band<'a, E> {
    pub wide: &'a mut [E],
    pub held: usize,
    pub rows: Range<usize>,
    pub cols: Range<usize>,
}

/// Hands on all rows of some columns, band by band, then those of the next. What `f` leaves in a band's
/// first row is what the next one holds.
pub(super) fn widened_bands<T: Loaded>(
    x: &[T],
    rows: usize,
    stride: usize,
    cols: usize,
    mut f: impl FnMut(Band<'_, T::Wide>),
) {
    let mut wide = Buffer::scratch(BAND_ROWS * BAND_COLS * size_of::<T::Wide>());
    let wide = wide.as_slice_mut::<T::Wide>();
    for first in (0..cols).step_by(BAND_COLS) {
        let cols = first..(first + BAND_COLS).min(cols);
        let (mut row, mut held) = (0, 0);
        while row < rows {
            let band = row..(row + BAND_ROWS - held).min(rows);
            let wide = &mut wide[..(held + band.len()) * cols.len()];
            for (row, wide) in band.clone().zip(wide.chunks_exact_mut(cols.len()).skip(held)) {
                T::widen(&x[row * stride + first..][..cols.len()], wide);
            }
            row = band.end;
            f(Band { wide, held, rows: band, cols: cols.clone() });
            held = 1;
        }
    }
}
