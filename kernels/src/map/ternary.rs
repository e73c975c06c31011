//! Three-argument functions, and the row of their kernels.
//!
//! An argument is memory or one value for all elements, which is read as memory that the loop does
//! not advance in.

use core::marker::PhantomData;

use super::operands::{Operands, Row, RowKernel, Source, Stepping};
use super::row_loop::{MapAll, run_row};
use crate::output::Output;
use crate::simd::{Float, Lanes, MAX_LANES};
use crate::{Arg, Block, BlockArg};

/// A three-argument element-wise kernel on lanes.
pub trait Map3<E: Float> {
    /// The kernel. `#[inline(always)]` in every implementation.
    fn apply<S: Lanes<E>>(simd: S, a: S::V, b: S::V, c: S::V) -> S::V;
}

/// A three-argument element-wise function of slices of `E`.
///
/// ```
/// use swath_kernels::{Arg, Ternary, math::MulAdd};
///
/// let mut y = [1.0f32, 2.0, 3.0];
/// MulAdd::run_in_place([Some(Arg::Scalar(10.0)), None, Some(Arg::Slice(&[0.5; 3]))], &mut y);
/// assert_eq!(y, [10.5, 20.5, 30.5]);
/// ```
pub trait Ternary<E> {
    /// The function's name.
    const NAME: &'static str;
    /// `y[i] = f(a[i], b[i], c[i])`.
    ///
    /// # Panics
    /// If a slice's length is not that of `y`.
    #[track_caller]
    fn run<O: Output<E> + ?Sized>(a: Arg<E>, b: Arg<E>, c: Arg<E>, y: &mut O);
    /// As [`Ternary::run`]; an argument that is `None` is what `y` holds.
    ///
    /// # Panics
    /// If a slice's length is not that of `y`.
    #[track_caller]
    fn run_in_place(arguments: [Option<Arg<E>>; 3], y: &mut [E]);
    /// `y[r · stride + k] = f(a[r, k], b[r, k], c[r, k])` for all rows and columns, and nothing between.
    ///
    /// ```
    /// use swath_kernels::{Block, BlockArg, Ternary, math::MulAdd};
    ///
    /// let (a, b, c) = ([1.0f32, 2.0, 3.0, 4.0], [1.0, 10.0], [0.5, 0.25]);
    /// let mut y = [0.0; 4];
    /// let a = BlockArg { data: &a, start: 2, stride: -2, is_value: false };
    /// let column = BlockArg { data: &b, start: 0, stride: 1, is_value: true };
    /// let row = BlockArg { data: &c, start: 0, stride: 0, is_value: false };
    /// MulAdd::run_block(a, column, row, Block { rows: 2, cols: 2, stride: 2 }, &mut y);
    /// assert_eq!(y, [3.5, 4.25, 10.5, 20.25]);
    /// ```
    ///
    /// # Panics
    /// If a row of an argument or of the result exceeds its slice, or rows of the result overlap.
    #[track_caller]
    fn run_block<O: Output<E> + ?Sized>(
        a: BlockArg<E>,
        b: BlockArg<E>,
        c: BlockArg<E>,
        shape: Block,
        y: &mut O,
    );
    /// As [`run_block`](Ternary::run_block); an argument that is `None` is `y` itself.
    ///
    /// # Panics
    /// As [`run_block`](Ternary::run_block).
    #[track_caller]
    fn run_block_in_place(arguments: [Option<BlockArg<E>>; 3], shape: Block, y: &mut [E]);
}

/// A kernel of three arguments as one of `N`.
struct Three<K>(PhantomData<K>);

impl<E: Float> Operands<'_, E, 3> {
    #[inline(always)]
    pub fn map<K: Map3<E>>(self) {
        self.run::<Three<K>>();
    }
}

impl<E: Float, K: Map3<E>> MapAll<E, 3> for Three<K> {
    const UNROLL: [usize; 2] = [2; 2];
    const TAKES_TURNS: bool = false;

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [a, b, c]: [S::V; 3]) -> S::V {
        K::apply(simd, a, b, c)
    }
}

impl<E: Float, K: Map3<E>> RowKernel<E, 3> for Three<K> {
    type Home = K;

    #[inline(always)]
    unsafe fn row<S: Lanes<E>>(
        simd: S,
        [a, b, c]: &[Source<E>; 3],
        row: Row,
        [for_a, for_b, for_c]: &mut [[E; MAX_LANES]; 3],
        y: *mut E,
        streams: bool,
    ) {
        // SAFETY: as the caller promised.
        unsafe {
            let (a, b, c) = (a.row(simd, row), b.row(simd, row), c.row(simd, row));
            let arguments =
                (Stepping::new(a, for_a), Stepping::new(b, for_b), Stepping::new(c, for_c));
            run_row::<E, S, Self, 3>(simd, arguments, y, row.len, streams);
        }
    }
}
