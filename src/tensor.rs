//! [`Tensor`]: values on a backend and, if tracked, the graph node that records how they were
//! computed.
//!
//! | file | what |
//! |---|---|
//! | `base.rs` | [`Tensor`]: its parts, its properties, tracking |
//! | `create.rs` | tensors from values, ranges, random numbers |
//! | `elementwise.rs` | the op table's methods, scalars, comparisons, `where_cond` |
//! | `arithmetic.rs` | functions composed of those: `logaddexp`, `isclose` |
//! | `operators.rs` | `+ - * /`, `Operand` |
//! | `in_place.rs` | `+= -= *= /=` |
//! | `view.rs` | views, transposition, reshaping |
//! | `movement.rs` | `stack`, `split`, `repeat`, `roll`, triangles and diagonals |
//! | `pad.rs` | `pad` |
//! | `resample.rs` | `interpolate` |
//! | `reduce.rs` | reductions |
//! | `scan.rs` | `cumsum`, `cumprod`, `cummax`, `cummin` |
//! | `order.rs` | `sort`, `topk`, `searchsorted`, `quantile`, `unique` |
//! | `count.rs` | `bincount`, `histogram`, `multinomial` |
//! | `fused.rs` | softmax, cross-entropy, layer norm, rms norm, linear, dropout, attention |
//! | `linalg.rs` | `matmul`, `outer`, `tensordot` |
//! | `einsum.rs` | `einsum` |
//! | `index.rs` | `gather`, `index_select`, `cat` |
//! | `assign.rs` | `scatter`, `slice_assign`, several indices, masks |
//! | `display.rs` | text |
//!
//! Shapes and dtypes are checked here, once. Backends rely on these checks.

mod arithmetic;
mod assign;
mod base;
mod choose;
mod count;
mod create;
mod device;
mod display;
pub(crate) mod einsum;
mod elementwise;
mod exchange;
pub(crate) mod fused;
mod in_place;
mod index;
mod linalg;
mod movement;
mod operators;
mod order;
mod pad;
#[cfg(feature = "pulp")]
mod program;
mod reduce;
mod resample;
mod scan;
mod ternary;
mod view;

pub use base::Tensor;
pub(crate) use display::TextStyle;
pub use exchange::View;
pub(crate) use fused::attention::Attention;
pub(crate) use fused::cross_entropy::CrossEntropy;
pub use linalg::TensordotAxes;
pub use movement::{Shifts, SplitSizes};
pub(crate) use operators::Input;
pub use operators::Operand;
pub use order::QuantileMethod;
pub use pad::PadMode;
pub use resample::Interpolation;
