//! Derivatives of ops with parameters. The ops are in `tensor/`, in files of the same names.
//! Fused ops and their derivatives are in `tensor/fused/`.

pub(crate) mod arithmetic;
pub(crate) mod index;
mod linear;
pub(crate) mod matmul;
pub(crate) mod reduce;
pub(crate) mod scan;
pub(crate) mod select;
pub(crate) mod view;

pub(crate) use linear::{bilinear, bilinear_with_bias, linear};
