//! Tests of the conversion of matrices to BLAS's terms and of the grid.

use crate::backend::cpu::blas::plan::{grid, stored};

#[test]
fn strides_become_a_leading_dimension_and_a_transpose_or_none() {
    let stored_as =
        |shape, strides| stored(shape, strides).map(|stored| (stored.transposed, stored.leading));
    assert_eq!(stored_as([2, 3], [3, 1]), Some((false, 3)));
    assert_eq!(stored_as([2, 3], [5, 1]), Some((false, 5)));
    assert_eq!(stored_as([2, 3], [1, 4]), Some((true, 4)));
    // A single row or column has two representations, whatever its other stride.
    assert_eq!(stored_as([1, 3], [0, 1]), Some((false, 3)));
    assert_eq!(stored_as([1, 3], [7, 2]), Some((true, 2)));
    assert_eq!(stored_as([3, 1], [2, 0]), Some((false, 2)));
    assert_eq!(stored_as([3, 1], [1, -5]), Some((false, 1)));
    assert_eq!(stored_as([1, 1], [0, 0]), Some((false, 1)));
    for strides in [[2, 2], [-3, 1], [1, -3], [0, 1], [1, 0], [1, 1], [2, 1], [0, 0]] {
        assert_eq!(stored_as([2, 3], strides), None, "{strides:?}");
    }
}

#[test]
fn products_are_cut_for_every_core_while_tiles_are_large() {
    let grids = [
        ([1024, 1024, 1024], 1, (1, 1)),
        ([1024, 1024, 1024], 2, (2, 1)),
        ([1024, 1024, 1024], 4, (2, 2)),
        ([1024, 1024, 1024], 6, (3, 2)),
        ([1024, 1024, 1024], 64, (8, 4)),
        ([4096, 1024, 1024], 4, (4, 1)),
        ([1024, 1024, 4096], 4, (1, 4)),
        // A vector, a product too small for two tiles, and one with short sums.
        ([1, 4096, 4096], 2, (1, 2)),
        ([128, 128, 128], 8, (1, 1)),
        ([1024, 2, 1024], 8, (1, 1)),
    ];
    for (shape, tiles, expected) in grids {
        assert_eq!(grid(shape, tiles), expected, "{shape:?} {tiles}");
    }
}
