//! The element-wise functions: one for every row of the table in `math.rs`, whose macro writes them,
//! and sine with cosine.

pub use crate::math::functions::*;
pub use crate::math::sincos;
