//! [`SliceItem`]: what the macro `s!` makes; [`AxisPart`]: parts that an axis is assembled of.

use crate::error::{Error, Result};
use crate::shape::Shape;

/// Selection of a slice along one axis, made by [`s!`](crate::s).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SliceItem {
    /// One element; the axis is removed. Negative indices count from the end.
    Index(isize),
    /// `start..end` in steps of `step`. Negative bounds count from the end, and bounds beyond the axis are
    /// clamped to it. A negative step runs backwards from `start` (default: the last element).
    Range {
        /// First index; `None` for the first element in the direction of the step.
        start: Option<isize>,
        /// One past the last index; `None` for all remaining elements.
        end: Option<isize>,
        /// Distance between neighbours; not 0.
        step: isize,
    },
}

impl SliceItem {
    /// First index, number of elements and step along `axis` of `shape`.
    pub(crate) fn resolve(
        self,
        op: &'static str,
        axis: usize,
        shape: &Shape,
    ) -> Result<(usize, usize, isize)> {
        let dim = shape.dim(axis);
        match self {
            SliceItem::Index(index) => {
                let from_front = if index < 0 { index + dim as isize } else { index };
                match usize::try_from(from_front) {
                    Ok(start) if start < dim => Ok((start, 1, 1)),
                    _ => {
                        let index = index as i64;
                        Err(Error::IndexOutOfRange { op, index, axis, shape: *shape })
                    }
                }
            }
            SliceItem::Range { start, end, step } => {
                let (start, len) = range_of(dim, start, end, step).ok_or_else(|| {
                    let reason = "the step of a slice must not be 0".to_owned();
                    Error::InvalidArgument { op, reason }
                })?;
                Ok((start, len, step))
            }
        }
    }

    /// The same range with another step. An index is returned unchanged.
    pub fn step_by(self, step: isize) -> Self {
        match self {
            SliceItem::Range { start, end, .. } => SliceItem::Range { start, end, step },
            index @ SliceItem::Index(_) => index,
        }
    }
}

/// A part of an axis of the result of [`Backend::assemble`](crate::Backend::assemble).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxisPart {
    /// The elements `start, start + step, …` of the operand's axis, `len` of them. The step is 1, -1 (backwards) or
    /// 0 (one element, repeated).
    From {
        /// The first element.
        start: usize,
        /// Number of elements.
        len: usize,
        /// Distance between neighbours.
        step: isize,
    },
    /// So many elements with the fill value.
    Fill(usize),
}

impl AxisPart {
    /// Number of elements.
    pub fn len(&self) -> usize {
        match *self {
            AxisPart::From { len, .. } | AxisPart::Fill(len) => len,
        }
    }

    /// True if the part has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl From<std::ops::RangeFull> for SliceItem {
    fn from(_: std::ops::RangeFull) -> Self {
        SliceItem::Range { start: None, end: None, step: 1 }
    }
}

macro_rules! slice_item_from {
    ($($t:ty)*) => {$(
        impl From<$t> for SliceItem {
            fn from(index: $t) -> Self {
                SliceItem::Index(bound(index))
            }
        }
        impl From<std::ops::Range<$t>> for SliceItem {
            fn from(range: std::ops::Range<$t>) -> Self {
                let (start, end) = (Some(bound(range.start)), Some(bound(range.end)));
                SliceItem::Range { start, end, step: 1 }
            }
        }
        impl From<std::ops::RangeFrom<$t>> for SliceItem {
            fn from(range: std::ops::RangeFrom<$t>) -> Self {
                SliceItem::Range { start: Some(bound(range.start)), end: None, step: 1 }
            }
        }
        impl From<std::ops::RangeTo<$t>> for SliceItem {
            fn from(range: std::ops::RangeTo<$t>) -> Self {
                SliceItem::Range { start: None, end: Some(bound(range.end)), step: 1 }
            }
        }
    )*};
}
slice_item_from!(usize i32 isize);

fn bound<I: TryInto<isize>>(index: I) -> isize {
    index.try_into().unwrap_or(isize::MAX)
}

/// First index and number of elements that NumPy's `start:end:step` selects from `dim`; `None` for a step
/// of 0.
fn range_of(
    dim: usize,
    start: Option<isize>,
    end: Option<isize>,
    step: isize,
) -> Option<(usize, usize)> {
    let dim = dim as isize;
    let clamp = |bound: isize, low: isize, high: isize| {
        let from_front = if bound < 0 { bound.saturating_add(dim) } else { bound };
        from_front.clamp(low, high)
    };
    let (start, span) = match step {
        0 => return None,
        1.. => {
            let start = start.map_or(0, |s| clamp(s, 0, dim));
            (start, end.map_or(dim, |e| clamp(e, 0, dim)) - start)
        }
        _ => {
            let start = start.map_or(dim - 1, |s| clamp(s, -1, dim - 1));
            (start, start - end.map_or(-1, |e| clamp(e, -1, dim - 1)))
        }
    };
    let len = span.max(0).unsigned_abs().div_ceil(step.unsigned_abs());
    Some((start.max(0).unsigned_abs(), len))
}
