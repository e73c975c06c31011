//! Which of the loops computed a product.

use std::fmt;

/// The loops that computed a product, told for traces and tests: the bits are the same whichever it was.
///
/// A and B are those of the loops: where C is stored by columns, or is a lone column, the product is
/// `Cᵀ = Bᵀ·Aᵀ`, and a matrix by a vector is one row by the transposed matrix. Where nothing is multiplied
/// (C is empty, k or alpha is 0) it may be any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GemmPath {
    /// Tiles with no loops around them: one block of k, and a B that stays near.
    Small,
    /// A few rows of A by the rows of a large B as they lie, or of one in reverse.
    Rows,
    /// A few rows of A by the columns of a B that is stored transposed.
    Columns,
    /// Blocked, B read where it lies: few rows of A, or a small B.
    InPlace,
    /// Blocked, each panel of B packed.
    Blocked,
    /// Blocked, by a B that was packed before.
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
