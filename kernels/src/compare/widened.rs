//! 16-bit operands, widened to `f32` chunk by chunk.

use crate::convert::Convert;
use crate::map::Arg;

/// Elements widened at once: they stay in the L1 cache.
const CHUNK: usize = 512;

/// Buffers for chunks of `N` operands in `f32`.
pub(super) struct Widened<const N: usize>([[f32; CHUNK]; N]);

impl<const N: usize> Widened<N> {
    pub fn new() -> Self {
        Widened([[0.0; CHUNK]; N])
    }

    /// Calls `f` on chunks of the operands in `f32` and of `y`.
    pub fn each<A: Convert<f32>>(
        &mut self,
        x: [Arg<A>; N],
        y: &mut [u8],
        mut f: impl FnMut([Arg<f32>; N], &mut [u8]),
    ) {
        for (i, y) in y.chunks_mut(CHUNK).enumerate() {
            let range = i * CHUNK..i * CHUNK + y.len();
            let mut pieces = [Arg::Scalar(0.0); N];
            for ((piece, x), wide) in pieces.iter_mut().zip(&x).zip(&mut self.0) {
                *piece = widened(x, range.clone(), wide);
            }
            f(pieces, y);
        }
    }
}

fn widened<'w, A: Convert<f32>>(
    x: &Arg<A>,
    range: core::ops::Range<usize>,
    wide: &'w mut [f32; CHUNK],
) -> Arg<'w, f32> {
    match *x {
        Arg::Slice(x) => {
            let wide = &mut wide[..range.len()];
            A::convert(&x[range], wide);
            Arg::Slice(wide)
        }
        Arg::Scalar(x) => {
            A::convert(&[x], &mut wide[..1]);
            Arg::Scalar(wide[0])
        }
    }
}
