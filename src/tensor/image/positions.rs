//! The position of each new element in the old axis, and the weights of the elements around it.
//!
//! ```text
//! position(i)     the element before output i, and how far towards the next it lies
//! nearest(i)      one of the two elements around the position
//! taps            for each output, the elements around the position and their weights
//! ```
//!
//! Without a given scale, positions are quotients of integers, exact before they are rounded.

use crate::error::{Result, reserved};

/// Weights of the elements around a position, of [`Resize`](super::Resize).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum ResizeMode {
    /// One element.
    Nearest(NearestMode),
    /// The two elements around the position, weighted by their nearness.
    #[default]
    Linear,
    /// The four elements around the position, weighted by cubic convolution (Keys, 1981).
    Cubic {
        /// The parameter of the polynomials: -¾ in PyTorch, -½ in TensorFlow, Pillow, and PyTorch's antialiasing.
        a: f64,
    },
}

/// The element that [`ResizeMode::Nearest`] selects. Names are ONNX's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NearestMode {
    /// The nearer one, of two the first: ONNX's `round_prefer_floor`.
    PreferFloor,
    /// The nearer one, of two the second: ONNX's `round_prefer_ceil`.
    PreferCeil,
    /// The one at or before the position.
    Floor,
    /// The one at or after the position.
    Ceil,
}

/// The position of output i of n in an axis of extent e. Names and definitions are those of ONNX's operator `Resize`.
///
/// The scale s is n / e, and the length is n; or, if the scale is given, the length is e · s, not rounded.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Coordinates {
    /// `(i + ½) / s - ½`.
    #[default]
    HalfPixel,
    /// As `HalfPixel`, with the center of the outputs at that of the axis: plus `e / 2 · (1 - n / length)`.
    HalfPixelSymmetric,
    /// As `HalfPixel`, but 0 if the length is at most 1.
    PytorchHalfPixel,
    /// `i · (e - 1) / (length - 1)`: the outermost outputs lie on the outermost elements. 0 if the length is 1.
    AlignCorners,
    /// `i / s`.
    Asymmetric,
    /// `(i + ½) / s`.
    TfHalfPixelForNn,
    /// `(start · (length - 1) + i · (end - start)) · (e - 1) / (length - 1)`, or the center of the region if the length
    /// is at most 1: a region of the axis.
    TfCropAndResize {
        /// Start and end of the region of each resized axis; the first element is at 0, the last at 1.
        roi: Vec<[f64; 2]>,
        /// The result at positions before the first or behind the last element.
        outside: f64,
    },
}

/// A resized axis.
pub(super) struct Along<'a> {
    pub(super) axis: usize,
    pub(super) extent: usize,
    pub(super) count: usize,
    /// The scale, if it is given.
    pub(super) scale: Option<f64>,
    pub(super) coordinates: &'a Coordinates,
    /// The part of the axis for [`Coordinates::TfCropAndResize`].
    pub(super) roi: [f64; 2],
}

impl Along<'_> {
    fn scale(&self) -> f64 {
        self.scale.unwrap_or(self.count as f64 / self.extent as f64)
    }

    /// The element before output `i`, and how far from it towards the next the output lies.
    fn position(&self, i: usize) -> (i128, f64) {
        if self.scale.is_some() || matches!(self.coordinates, Coordinates::TfCropAndResize { .. }) {
            // Beyond these bounds, only the outermost elements have a part.
            let position = self.real_position(i).clamp(-1e18, 1e18);
            return (position.floor() as i128, position - position.floor());
        }
        let [i, extent, count] = [i, self.extent, self.count].map(|number| number as i128);
        let (numerator, denominator) = match self.coordinates {
            Coordinates::AlignCorners => (i * (extent - 1), (count - 1).max(1)),
            Coordinates::Asymmetric => (i * extent, count),
            Coordinates::TfHalfPixelForNn => ((2 * i + 1) * extent, 2 * count),
            Coordinates::PytorchHalfPixel if count == 1 => (0, 1),
            _ => ((2 * i + 1) * extent - count, 2 * count),
        };
        let part = numerator.rem_euclid(denominator) as f64 / denominator as f64;
        (numerator.div_euclid(denominator), part)
    }

    /// The position of output `i` for any scale.
    fn real_position(&self, i: usize) -> f64 {
        let (i, last, scale) = (i as f64, self.extent as f64 - 1.0, self.scale());
        let length = self.scale.map_or(self.count as f64, |scale| scale * self.extent as f64);
        let [start, end] = self.roi;
        match self.coordinates {
            Coordinates::AlignCorners if length == 1.0 => 0.0,
            Coordinates::AlignCorners => i * last / (length - 1.0),
            Coordinates::Asymmetric => i / scale,
            Coordinates::TfHalfPixelForNn => (i + 0.5) / scale,
            Coordinates::PytorchHalfPixel if length <= 1.0 => 0.0,
            Coordinates::HalfPixelSymmetric => {
                let center = (last + 1.0) / 2.0;
                center * (1.0 - self.count as f64 / length) + (i + 0.5) / scale - 0.5
            }
            Coordinates::TfCropAndResize { .. } if length <= 1.0 => (start + end) / 2.0 * last,
            Coordinates::TfCropAndResize { .. } => {
                start * last + i * (end - start) * last / (length - 1.0)
            }
            _ => (i + 0.5) / scale - 0.5,
        }
    }

    /// True if output `i` lies before the first or behind the last element.
    pub(super) fn is_outside(&self, i: usize) -> bool {
        !(0.0..=self.extent as f64 - 1.0).contains(&self.real_position(i))
    }

    /// The element that output `i` is.
    pub(super) fn nearest(&self, i: usize, mode: NearestMode) -> usize {
        let (before, part) = self.position(i);
        let is_next = match mode {
            NearestMode::PreferFloor => part > 0.5,
            NearestMode::PreferCeil => part >= 0.5,
            NearestMode::Floor => false,
            NearestMode::Ceil => part > 0.0,
        };
        self.within(before.saturating_add(is_next.into()))
    }

    fn within(&self, element: i128) -> usize {
        element.clamp(0, self.extent as i128 - 1) as usize
    }

    /// True if output `i` is element `i` for all of them.
    pub(super) fn is_identity(&self) -> bool {
        let is_shifted = matches!(self.coordinates, Coordinates::TfHalfPixelForNn);
        let is_whole = self.roi == [0.0, 1.0] && self.scale.is_none_or(|scale| scale == 1.0);
        self.extent == self.count && !is_shifted && is_whole
    }

    /// The number of elements that have a weight in an output, and for each output these elements and their weights.
    ///
    /// If the axis shrinks, `antialias` stretches the weights by as much. Their sum is then made 1, as it is with
    /// `exclude_outside`, which gives weight 0 to what lies before the first or behind the last element, where that is
    /// repeated otherwise.
    pub(super) fn taps(
        &self,
        op: &'static str,
        mode: ResizeMode,
        antialias: bool,
        exclude_outside: bool,
    ) -> Result<(usize, Vec<(usize, f64)>)> {
        let shrunk = if antialias { self.scale().min(1.0) } else { 1.0 };
        let support = if matches!(mode, ResizeMode::Cubic { .. }) { 2.0 } else { 1.0 };
        let reach = (support / shrunk).ceil() as usize;
        let taps = reach.saturating_mul(2);
        let mut table = reserved(op, taps.saturating_mul(self.count))?;
        for i in 0..self.count {
            let (before, part) = self.position(i);
            let start = table.len();
            for tap in 0..taps {
                let offset = tap as i128 + 1 - reach as i128;
                let element = before.saturating_add(offset);
                let weight = match exclude_outside && element != self.within(element) as i128 {
                    true => 0.0,
                    false => weight(mode, (offset as f64 - part).abs() * shrunk),
                };
                table.push((self.within(element), weight));
            }
            let own = &mut table[start..];
            let sum = own.iter().map(|(_, weight)| weight).sum::<f64>();
            if (antialias || exclude_outside) && sum != 0.0 {
                own.iter_mut().for_each(|(_, weight)| *weight /= sum);
            }
        }
        Ok((taps, table))
    }
}

/// The weight of an element at distance `d`.
fn weight(mode: ResizeMode, d: f64) -> f64 {
    match mode {
        ResizeMode::Cubic { a } if d <= 1.0 => ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0,
        ResizeMode::Cubic { a } if d < 2.0 => ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a,
        ResizeMode::Cubic { .. } => 0.0,
        _ => (1.0 - d).max(0.0),
    }
}
