//! The loops that computed a product.

use std::fmt;

/// The loops that computed a product, reported for traces and tests. All give the same bits.
///
/// A and B are those of the loops: if C is stored by columns or is a single column, the product is
/// `Cᵀ = Bᵀ·Aᵀ`, so a matrix by a vector is one row by the transposed matrix. If nothing is
/// multiplied (C is empty, k or alpha is 0), the path is unspecified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GemmPath {
    /// Only tiles, without blocking: one block of k, and a B that fits the near caches.
    Small,
    /// A few rows of A; B is large, or its columns are reversed, and is read in place along its
    /// rows.
    Rows,
    /// A few rows of A by the columns of a B that is stored transposed.
    Columns,
    /// Blocked, with B read in place: few rows of A, or a small B.
    InPlace,
    /// Blocked, with each panel of B packed.
    Blocked,
    /// Blocked, with a B packed in advance.
    Packed,
}

impl fmt::Display for GemmPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            GemmPath::Small => "small",
            GemmPath::Rows => "rows of B",
            GemmPath::Columns => "columns of B",
            GemmPath::InPlace => "blocked, B in place",
            GemmPath::Blocked => "blocked",
            GemmPath::Packed => "blocked, B packed before",
        })
    }
}
