//! Fused ops and optimizer steps: a backend's kernels, or its composites, against the composites on the
//! reference backend in `f64`.

pub mod attention;
mod bounds;
pub mod conv;
pub mod pool;
pub mod reference;
pub mod sincos;
pub mod update;
