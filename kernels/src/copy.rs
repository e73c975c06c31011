//! Moving elements: strided copies, fills, transposes, permutations. Bits are moved
//! unchanged.
//!
//! | file | contents |
//! |---|---|
//! | `strided.rs` | one run: any stride into contiguous elements, fills |
//! | `transpose.rs` | blocks of lanes by lanes in registers, tiles of blocks |
//! | `narrow.rs` | transposes of matrices with a side too narrow for vectors |
//! | `permute.rs` | any layout of any rank into contiguous elements |
//! | `unit.rs` | copies of a few bytes at any address |
//! | `stream.rs` | non-temporal stores |

mod narrow;
mod permute;
mod stream;
mod strided;
#[cfg(test)]
mod tests;
mod transpose;
mod unit;

use half::{bf16, f16};

pub use permute::Permute;
pub(crate) use permute::permute;
#[cfg(feature = "peak")]
pub(crate) use stream::map_streaming;
pub(crate) use stream::{Fence, LINE, has_streaming_stores, is_streamed, stream, streaming};
pub(crate) use strided::copy_strided;
pub use transpose::{Transpose, transpose};

/// Types that are moved as bits: integers and floats of 1, 2, 4 and 8 bytes, and `bool`. Sealed.
pub trait Plain: Copy + Send + Sync + sealed::Sealed + 'static {}

mod sealed {
    pub trait Sealed {}
}

macro_rules! impl_plain {
    ($($t:ty)*) => {$(
        impl sealed::Sealed for $t {}
        impl Plain for $t {}
    )*};
}
impl_plain!(bool u8 i8 u16 i16 f16 bf16 u32 i32 f32 u64 i64 f64);
