//! Convolutions, a pooling and a chain of operations, which are timed alone and beside other crates.

use std::fmt;

/// A convolution of images `[n, c, h, w]` with filters `[o, c / groups, k, k]`. Padding gives the results the
/// extents of the images.
#[derive(Clone, Copy)]
pub struct Convolution {
    pub images: [usize; 4],
    pub filters: [usize; 4],
}

pub const CONVOLUTIONS: [Convolution; 4] = [
    Convolution { images: [8, 32, 56, 56], filters: [64, 32, 3, 3] },
    Convolution { images: [2, 3, 320, 320], filters: [16, 3, 3, 3] },
    Convolution { images: [8, 256, 28, 28], filters: [256, 256, 1, 1] },
    // Depthwise.
    Convolution { images: [8, 256, 28, 28], filters: [256, 1, 3, 3] },
];

/// Images of which the largest pixel of each 2 × 2 window is taken.
pub const POOLED: [usize; 4] = CONVOLUTIONS[0].images;

/// Operations of the chain: multiplications by [`FACTOR`].
pub const NODES: usize = 10_000;
pub const FACTOR: f64 = 0.9999;

impl Convolution {
    /// Returns the number of zeros around the images.
    pub fn padding(&self) -> usize {
        self.filters[2] / 2
    }

    /// Returns the number of groups of channels.
    pub fn groups(&self) -> usize {
        self.images[1] / self.filters[1]
    }

    /// Returns the number of results per channel: windows of all images.
    pub fn windows(&self) -> usize {
        let [n, _, h, w] = self.images;
        n * h * w
    }
}

/// Prints the shapes, such as `8x32x56x56 by 64x32x3x3`.
impl fmt::Display for Convolution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by {}", name_of(self.images), name_of(self.filters))
    }
}

/// Returns the name of a shape, such as `8x32x56x56`.
pub fn name_of(shape: [usize; 4]) -> String {
    shape.map(|extent| extent.to_string()).join("x")
}
