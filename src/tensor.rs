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
//! | `numbers.rs` | more functions composed of those: `fmax`, `ldexp`, `logit` |
//! | `special.rs` | special functions: `lgamma`, `i0` |
//! | `integers.rs` | bits, divisors, `view_as` |
//! | `in_place.rs` | `+= -= *= /=` |
//! | `view.rs` | views, transposition, reshaping |
//! | `movement.rs` | `stack`, `split`, `repeat`, `roll`, triangles |
//! | `diagonal.rs` | `diag_embed`, `block_diag`, indices of triangles |
//! | `pad.rs` | `pad` |
//! | `resample.rs` | selections and weighted sums along an axis |
//! | `image.rs` | `interpolate`, `grid_sample`, `roi_align`, `pixel_shuffle` |
//! | `reduce.rs` | reductions |
//! | `reduce_composed.rs` | reductions composed of those: `nansum`, `count_nonzero` |
//! | `scan.rs` | `cumsum`, `cumprod`, `cummax`, `cummin`, `logcumsumexp`, `trapezoid` |
//! | `order.rs` | `sort`, `topk`, `searchsorted` |
//! | `quantile.rs` | `median`, `quantile`, `mode` |
//! | `sets.rs` | `unique`, `isin`, `repeat_interleave`, `diff` |
//! | `count.rs` | `bincount`, `histogram`, `multinomial` |
//! | `fused.rs` | softmax, cross-entropy, layer norm, rms norm, linear, dropout, attention |
//! | `spectra.rs` | Fourier transforms, `stft`, windows |
//! | `linalg.rs` | `matmul`, `outer`, `cross`, `kron`, `tensordot` |
//! | `distance.rs` | `cdist`, `pairwise_distance`, `cosine_similarity` |
//! | `covariance.rs` | `cov`, `corrcoef` |
//! | `powers.rs` | `matrix_power`, `logspace`, `vander` |
//! | `einsum.rs` | `einsum` |
//! | `index.rs` | `gather`, `index_select`, `cat` |
//! | `assign.rs` | `scatter`, `slice_assign`, several indices, masks |
//! | `scatter_reduce.rs` | `scatter_reduce`, `index_reduce` |
//! | `display.rs` | text |
//!
//! Shapes and dtypes are checked here, once. Backends rely on these checks.

mod arithmetic;
mod assign;
mod base;
mod choose;
mod count;
mod covariance;
mod create;
mod device;
mod diagonal;
mod display;
mod distance;
pub(crate) mod einsum;
mod elementwise;
mod exchange;
pub(crate) mod fused;
mod image;
mod in_place;
mod index;
mod integers;
mod linalg;
mod movement;
mod numbers;
mod operators;
mod order;
mod pad;
mod powers;
#[cfg(feature = "pulp")]
mod program;
mod quantile;
mod reduce;
mod reduce_composed;
mod resample;
mod scan;
mod scatter_reduce;
mod sets;
mod special;
#[cfg(feature = "fft")]
mod spectra;
mod ternary;
mod view;

pub use base::Tensor;
pub(crate) use display::TextStyle;
pub use exchange::View;
pub(crate) use fused::attention::Attention;
pub(crate) use fused::cross_entropy::CrossEntropy;
pub use image::{
    AspectRatio, Coordinates, GridMode, GridPadding, ImageSize, Interpolation, NearestMode, Resize,
    ResizeMode,
};
pub use linalg::TensordotAxes;
pub use movement::{Shifts, SplitSizes};
pub(crate) use operators::Input;
pub use operators::Operand;
pub use pad::PadMode;
pub use quantile::QuantileMethod;
pub use scatter_reduce::ReduceMode;
pub use sets::Unique;
#[cfg(feature = "fft")]
pub use spectra::{FftNorm, FftOptions, StftOptions, Window};
