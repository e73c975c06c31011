//! How BLAS says a matrix: row-major with a leading dimension, or the transpose of one.

use crate::backend::cpu::matmul::Matrix;

/// A matrix in BLAS's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    /// What is stored row after row is the transpose.
    pub transposed: bool,
    /// Elements from one stored row to the next: at least the length of a stored row, and 1.
    pub leading: usize,
}

/// `None` where BLAS has no words for it: strides of zero, negative ones, or none of 1.
pub(super) fn stored<E>(matrix: &Matrix<'_, E>) -> Option<Stored> {
    let ([rows, cols], [down, right]) = (matrix.shape, matrix.strides);
    // An axis of extent 1 is never stepped along: its stride may be whatever suits.
    let leading = |stride: isize, row_len: usize, stored_rows: usize| {
        let least = row_len.max(1);
        let leading = if stored_rows <= 1 { least } else { usize::try_from(stride).ok()? };
        (leading >= least).then_some(leading)
    };
    let plain = (right == 1 || cols == 1).then(|| leading(down, cols, rows)).flatten();
    let transposed = (down == 1 || rows == 1).then(|| leading(right, rows, cols)).flatten();
    match (plain, transposed) {
        (Some(leading), _) => Some(Stored { transposed: false, leading }),
        (None, Some(leading)) => Some(Stored { transposed: true, leading }),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_become_a_leading_dimension_and_a_transpose_or_nothing() {
        let data = [0f32; 64];
        let says = |shape, strides| {
            stored(&Matrix { data: &data, offset: 32, shape, strides })
                .map(|stored| (stored.transposed, stored.leading))
        };
        assert_eq!(says([2, 3], [3, 1]), Some((false, 3)));
        assert_eq!(says([2, 3], [5, 1]), Some((false, 5)));
        assert_eq!(says([2, 3], [1, 4]), Some((true, 4)));
        // A lone row or column may be said either way, whatever its other stride.
        assert_eq!(says([1, 3], [0, 1]), Some((false, 3)));
        assert_eq!(says([1, 3], [7, 2]), Some((true, 2)));
        assert_eq!(says([3, 1], [2, 0]), Some((false, 2)));
        assert_eq!(says([3, 1], [1, -5]), Some((false, 1)));
        assert_eq!(says([1, 1], [0, 0]), Some((false, 1)));
        for strides in [[2, 2], [-3, 1], [1, -3], [0, 1], [1, 0], [1, 1], [2, 1], [0, 0]] {
            assert_eq!(says([2, 3], strides), None, "{strides:?}");
        }
    }
}
