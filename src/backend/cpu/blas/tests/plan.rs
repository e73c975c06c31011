//! Tests of the conversion of matrices to BLAS's terms and of the grid.

use crate::backend::cpu::blas::plan::{Grid, Part, stored};
use crate::backend::cpu::matmul::Matrix;

#[test]
fn strides_become_a_leading_dimension_and_a_transpose_or_none() {
    let data = [0f32; 64];
    let stored_as = |shape, strides| {
        stored(&Matrix { data: &data, offset: 32, shape, strides })
            .map(|stored| (stored.transposed, stored.leading))
    };
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
fn the_grid_covers_every_element_once() {
    for [m, k, n] in [[1, 1, 1], [255, 300, 513], [1000, 70, 5000], [3, 99, 1], [700, 700, 900]] {
        for tiles in [1, 5, 6, 64] {
            let grid = Grid::new([m, k, n], tiles);
            assert!(grid.tiles() <= tiles);
            let mut covered = vec![0; m * n];
            for index in 0..grid.tiles() {
                let [(row, rows), (col, cols)]: [Part; 2] = grid.tile(index);
                for i in row..row + rows {
                    covered[i * n + col..][..cols].iter_mut().for_each(|times| *times += 1);
                }
            }
            assert!(covered.iter().all(|&times| times == 1), "[{m}, {k}, {n}] {tiles}");
        }
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
        assert_eq!(Grid::new(shape, tiles).parts, expected, "{shape:?} {tiles}");
    }
}
