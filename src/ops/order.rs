//! Ops that order the elements along an axis.

/// Elements along an axis in order. Equal elements keep their order (−0 equals +0), and NaN comes last in either
/// direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OrderOp {
    /// True for the largest element first.
    pub descending: bool,
    /// Number of elements from the first, at most the extent of the axis; `None` for all.
    pub count: Option<usize>,
}

impl OrderOp {
    /// The name of the method, for error messages.
    pub const fn name(self) -> &'static str {
        match (self.count, self.descending) {
            (None, _) => "sort",
            (Some(_), true) => "topk",
            (Some(_), false) => "bottomk",
        }
    }

    /// Extent of the results, for an axis of `n` elements.
    pub const fn extent(self, n: usize) -> usize {
        match self.count {
            Some(count) if count < n => count,
            _ => n,
        }
    }
}

/// The largest or the smallest of some elements: NaN if one is, else the first of equal elements (−0 equals +0).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extremum {
    /// The largest.
    Max,
    /// The smallest.
    Min,
}

impl Extremum {
    /// Both.
    pub const ALL: [Extremum; 2] = [Extremum::Max, Extremum::Min];

    /// The name of the method, for error messages.
    pub const fn name(self) -> &'static str {
        match self {
            Extremum::Max => "cummax",
            Extremum::Min => "cummin",
        }
    }
}
