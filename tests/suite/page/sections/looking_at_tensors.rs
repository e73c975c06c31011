//! Looking at tensors. Written by `tests/vectors/check_page.py`.

use crate::page::{found, row};
use swath::cpu::prelude::*;

pub fn rows() -> Result<()> {
    let x = tensor![[1.5]];
    row(
        "`x.shape` `x.size()` `x.dims()` `x.shape()`",
        &[found(&(x.dims())), found(&(x.shape()))],
        &["[2]: 1 1", "[2]: 1 1"],
    );
    row("`x.ndim` `x.dim()` `x.rank()`", &[found(&(x.rank()))], &["[]: 2", "[]: 2"]);
    row("`x.size` `x.numel()` `x.numel()`", &[found(&(x.numel()))], &["[]: 1", "[]: 1"]);
    row(
        "`x.astype(np.float64)` `x.double()` `x.to_dtype(DType::F64)?`",
        &[found(&(x.to_dtype(DType::F64)?))],
        &["[1, 1]: 1.5", "[1, 1]: 1.5"],
    );
    row("`x.item()` `x.item::<f32>()?`", &[found(&(x.item::<f32>()?))], &["[]: 1.5"]);
    row(
        "`x.ravel().tolist()` `x.flatten().tolist()` `x.to_vec::<f32>()?`",
        &[found(&(x.to_vec::<f32>()?))],
        &["[1]: 1.5", "[1]: 1.5"],
    );
    Ok(())
}
