//! The element-wise functions: one for every row of the table in `math.rs`, written by its macro,
//! and `sincos`.

pub use crate::math::functions::*;
pub use crate::math::sincos;
