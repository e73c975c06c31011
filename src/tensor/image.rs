//! Operations on images that are composed of gathers and weighted sums.
//!
//! | file | what |
//! |---|---|
//! | `resize.rs` | `resize`, `interpolate` |
//! | `positions.rs` | the position of each new element in the old axis, and the weights around it |
//! | `grid.rs` | `grid_sample`, `affine_grid` |
//! | `boxes.rs` | `roi_align`, `nms` |
//! | `channels.rs` | `pixel_shuffle`, `channel_shuffle`, `max_unpool2d`, `local_response_norm` |

mod boxes;
mod channels;
mod grid;
mod positions;
mod resize;

pub use grid::{GridMode, GridPadding};
pub use positions::{Coordinates, NearestMode, ResizeMode};
pub use resize::{AspectRatio, ImageSize, Interpolation, Resize};
