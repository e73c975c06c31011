//! Operations on tensors of several layouts: broadcast, transposed, permuted, concatenated. The limit is a
//! copy (one input) or a triad (two inputs) of as many elements.

#[allow(dead_code, reason = "each benchmark uses only a part of the module")]
mod support;

use support::values::values;
use support::{Limit, Suite};
use swath::prelude::*;

type T = Tensor<CpuBackend>;

fn main() -> Result<()> {
    let mut suite = Suite::from_args();
    for threads in [1, 2] {
        small(&mut suite, threads)?;
        large(&mut suite, threads)?;
    }
    suite.finish();
    Ok(())
}

/// Returns a square matrix.
fn matrix(size: usize) -> Result<T> {
    T::from_slice(&values(size * size), (size, size))
}

/// Times tensors of 1024 × 1024 elements.
fn small(suite: &mut Suite, threads: usize) -> Result<()> {
    let n = 1024 * 1024;
    let (a, b) = (matrix(1024)?, matrix(1024)?);
    let row = T::from_slice(&values(1024), 1024)?;
    let (column, row_of_4) = (row.unsqueeze(1)?, row.narrow(0, 0, 4)?);
    let (transposed, flat) = (a.t()?, a.reshape((n / 4, 4))?);
    let left = flat.narrow(1, 0, 1)?.contiguous()?;
    let right = flat.narrow(1, 1, 3)?.contiguous()?;

    let (copy, triad) = (Limit::copy(threads, n), Limit::triad(threads, n));
    let mut group = suite.group_on(threads, "layout_1024")?;
    group.tensor("a + row", copy, || a.add(&row));
    group.tensor("a + column", copy, || a.add(&column));
    group.tensor("a + scalar", copy, || a.add_scalar(0.5));
    group.tensor("a.t() + b", triad, || transposed.add(&b));
    group.tensor("rows of 4 + row", copy, || flat.add(&row_of_4));
    group.tensor("cat of 1 and 3 columns", copy, || Tensor::cat(&[&left, &right], 1));
    Ok(())
}

/// Times tensors of 4096 × 4096 elements.
fn large(suite: &mut Suite, threads: usize) -> Result<()> {
    let n = 4096 * 4096;
    let (a, b) = (matrix(4096)?, matrix(4096)?);
    let (transposed, backwards) = (a.t()?, a.flip(1)?.t()?);
    let images = a.reshape((32, 64, 128, 64))?.permute(&[0, 2, 1, 3])?;
    let flat = a.reshape(n)?;

    let (copy, triad) = (Limit::copy(threads, n), Limit::triad(threads, n));
    let mut group = suite.group_on(threads, "layout_4096")?;
    group.tensor("a.t() + b", triad, || transposed.add(&b));
    group.tensor("a.t() contiguous", copy, || transposed.contiguous());
    let name = "permute(0, 2, 1, 3) [32, 64, 128, 64]";
    group.tensor(name, copy, || images.contiguous());
    for width in [2, 3, 4, 16] {
        let heads = n / (32 * 256 * width);
        let short = flat.narrow(0, 0, 32 * 256 * width * heads)?;
        let short = short.reshape((32, 256, heads, width))?.permute(&[0, 2, 1, 3])?;
        let name = format!("permute(0, 2, 1, 3), runs of {width}");
        group.tensor(&name, copy, || short.contiguous());
    }
    for (rows, cols) in [(3, 65_536), (2, 2), (4, 4)] {
        let matrices = n / (rows * cols);
        let narrow = flat.narrow(0, 0, matrices * rows * cols)?;
        let narrow = narrow.reshape((matrices, rows, cols))?.permute(&[0, 2, 1])?;
        let name = format!("[n, {rows}, {cols}].permute(0, 2, 1)");
        group.tensor(&name, copy, || narrow.contiguous());
    }
    group.tensor("a.flip(1).t() + b", triad, || backwards.add(&b));
    group.tensor("a + b", triad, || a.add(&b));
    Ok(())
}
