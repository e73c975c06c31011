//! The row of two-argument kernels.
//!
//! Short kernels have a loop for two slices and one for a value on either side, which stays in a
//! register. Long ones have one loop that reads a value as memory that it does not advance in: the
//! load is lost among their instructions, and their code would be there three times. There vectors take turns, operation
//! by operation: one after the other, a core looks ahead for two or three of them only.

use core::marker::PhantomData;

use super::Map2;
use super::operands::{Elements, Operands, Row, RowKernel, Source, Splat, Stepping};
use super::row_loop::{MapAll, run_row};
use crate::simd::{Float, Lanes, MAX_LANES};

/// A kernel of two arguments as one of `N`.
struct Two<K>(PhantomData<K>);

/// Whether a kernel is long, as [`Map2::UNROLL`] says.
const fn is_long<E: Float, K: Map2<E>>() -> bool {
    K::UNROLL < 4
}

impl<E: Float> Operands<'_, E, 2> {
    #[inline(always)]
    pub fn map<K: Map2<E>>(self) {
        self.run::<Two<K>>();
    }
}

impl<E: Float, K: Map2<E>> MapAll<E, 2> for Two<K> {
    const UNROLL: [usize; 2] = [K::UNROLL, K::UNROLL_32];
    const TAKES_TURNS: bool = is_long::<E, K>();

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [a, b]: [S::V; 2]) -> S::V {
        K::apply(simd, a, b)
    }
    #[inline(always)]
    fn usual<S: Lanes<E>>(simd: S, [a, b]: [S::V; 2]) -> Option<(S::V, S::M)> {
        K::usual(simd, a, b)
    }
}

impl<E: Float, K: Map2<E>> RowKernel<E, 2> for Two<K> {
    type Home = K;

    #[inline(always)]
    unsafe fn row<S: Lanes<E>>(
        simd: S,
        [a, b]: &[Source<E>; 2],
        row: Row,
        [for_a, for_b]: &mut [[E; MAX_LANES]; 2],
        y: *mut E,
        streams: bool,
    ) {
        let len = row.len;
        // SAFETY: as the caller promised; `y` holds the first argument once it has been written.
        unsafe {
            let (mut a, b) = (a.row(simd, row), b.row(simd, row));
            if const { is_long::<E, K>() || S::LANES == 1 } {
                let arguments = (Stepping::new(a, for_a), Stepping::new(b, for_b));
                return run_row::<E, S, Self, 2>(simd, arguments, y, len, streams);
            }
            if let (Source::Value(value), Source::Value(_)) = (a, b) {
                for i in 0..len {
                    y.add(i).write(value);
                }
                a = Source::Memory(y, 0);
            }
            match (a, b) {
                (Source::Memory(a, _), Source::Memory(b, _)) => {
                    run_row::<E, S, Self, 2>(simd, (Elements(a), Elements(b)), y, len, streams);
                }
                (Source::Memory(a, _), Source::Value(b)) => {
                    let arguments = (Elements(a), Splat::new(simd, b));
                    run_row::<E, S, Self, 2>(simd, arguments, y, len, streams);
                }
                (Source::Value(a), Source::Memory(b, _)) => {
                    let arguments = (Splat::new(simd, a), Elements(b));
                    run_row::<E, S, Self, 2>(simd, arguments, y, len, streams);
                }
                _ => unreachable!("values of both were written to memory, a row has no column"),
            }
        }
    }
}
