//! Loops that measure the peak speed of the machine: benchmarks time them beside their subject, on
//! the same instruction set. Not for other use.
//!
//! The loops are written with the vector operations of `simd.rs` and dispatched like
//! kernels, so `SWATH_ISA` applies to a measurement of the peak and to the subject alike.

use core::hint::black_box;

use crate::copy::map_streaming;
use crate::dispatch::run;
use crate::simd::{Float, Lanes, Simd, Task, Vector};

/// Runs `steps` rounds of independent fused multiply-adds; returns the number of floating-point
/// operations, two for each multiply-add.
///
/// The values tend to 1/2, so no subnormal number, infinity or NaN slows a round down.
pub fn fma<E: Float>(steps: usize) -> usize {
    run::<E, _>(Fma { steps })
}

/// Independent chains of multiply-adds with 32 registers: enough to fill the pipelines (latency times
/// throughput is 8 on current x86, 16 on wide ARM cores), few enough to stay in registers beside the
/// two constants.
const CHAINS: usize = 24;
/// [`CHAINS`] with 16 registers.
const CHAINS_IN_16_REGISTERS: usize = 12;

struct Fma {
    steps: usize,
}

impl<E: Float> Task<E> for Fma {
    type Home = Self;
    type Output = usize;

    #[inline(always)]
    fn run<S: Lanes<E>>(self, simd: S) -> usize {
        if S::ISA.has_32_registers() {
            chains::<E, S, CHAINS>(simd, self.steps)
        } else {
            chains::<E, S, CHAINS_IN_16_REGISTERS>(simd, self.steps)
        }
    }
}

/// Runs `N` chains of fused multiply-adds; returns the number of floating-point operations.
#[inline(always)]
fn chains<E: Float, S: Lanes<E>, const N: usize>(simd: S, steps: usize) -> usize {
    let half = simd.splat(black_box(E::from_f64(0.5)));
    let quarter = simd.splat(black_box(E::from_f64(0.25)));
    let mut chains = [simd.splat(black_box(E::ONE)); N];
    for _ in 0..steps {
        for chain in &mut chains {
            *chain = chain.mul_add(half, quarter);
        }
    }
    black_box(chains);
    2 * steps * N * S::LANES
}

/// Reads `x` once. Returns a checksum of its bits, so that no read can be optimised away.
pub fn read(x: &[f32]) -> u32 {
    run(Read { x })
}

struct Read<'a> {
    x: &'a [f32],
}

impl Task for Read<'_> {
    type Home = Self;
    type Output = u32;

    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) -> u32 {
        self.x.iter().fold(0, |sum, x| x.to_bits().wrapping_add(sum))
    }
}

/// Reads `x` and writes `y = -x`, with ordinary stores. The sign is flipped because the compiler
/// would turn a plain copy into a call of `memcpy`, which chooses its own stores.
///
/// # Panics
/// If the lengths differ.
pub fn copy(x: &[f32], y: &mut [f32]) {
    assert_eq!(x.len(), y.len(), "copy: lengths of input and output differ");
    run(Copy { x, y });
}

struct Copy<'a> {
    x: &'a [f32],
    y: &'a mut [f32],
}

impl Task for Copy<'_> {
    type Home = Self;
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) {
        for (y, x) in self.y.iter_mut().zip(self.x) {
            *y = -*x;
        }
    }
}

/// Reads `a` and `b` and writes `y = a + 3b`, with ordinary stores.
///
/// # Panics
/// If the lengths differ.
pub fn triad(a: &[f32], b: &[f32], y: &mut [f32]) {
    assert_eq!([a.len(), b.len()], [y.len(); 2], "triad: lengths of inputs and output differ");
    run(Triad { a, b, y });
}

struct Triad<'a> {
    a: &'a [f32],
    b: &'a [f32],
    y: &'a mut [f32],
}

impl Task for Triad<'_> {
    type Home = Self;
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) {
        for ((y, a), b) in self.y.iter_mut().zip(self.a).zip(self.b) {
            *y = a + 3.0 * b;
        }
    }
}

/// [`copy`] with non-temporal stores, if the instruction set has them.
///
/// # Panics
/// If the lengths differ.
pub fn copy_streaming(x: &[f32], y: &mut [f32]) {
    assert_eq!(x.len(), y.len(), "copy_streaming: lengths of input and output differ");
    run(Streaming { x: [x], y, is_triad: false });
}

/// [`triad`] with non-temporal stores, if the instruction set has them.
///
/// # Panics
/// If the lengths differ.
pub fn triad_streaming(a: &[f32], b: &[f32], y: &mut [f32]) {
    assert_eq!(
        [a.len(), b.len()],
        [y.len(); 2],
        "triad_streaming: lengths of inputs and output differ"
    );
    run(Streaming { x: [a, b], y, is_triad: true });
}

struct Streaming<'a, const N: usize> {
    x: [&'a [f32]; N],
    y: &'a mut [f32],
    /// True for the triad, false for the copy.
    is_triad: bool,
}

impl<const N: usize> Task for Streaming<'_, N> {
    type Home = Self;
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Streaming { x, y, is_triad } = self;
        let three = Lanes::<f32>::splat(simd, 3.0);
        map_streaming(
            simd,
            x,
            y,
            #[inline(always)]
            |x| if is_triad { x[0] + three * x[N - 1] } else { -x[0] },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::with_isa;
    use crate::simd::Isa;

    #[test]
    fn every_loop_is_correct_on_every_instruction_set() {
        let a: Vec<f32> = (0..1000u16).map(f32::from).collect();
        let b = vec![2.0; a.len()];
        for isa in Isa::ALL {
            let mut y = vec![0.0; a.len()];
            let ran = with_isa(isa, || {
                assert_eq!(fma::<f32>(10) % 20, 0);
                assert!(fma::<f64>(1) <= fma::<f32>(1));
                let bits = a.iter().map(|x| u64::from(x.to_bits())).sum::<u64>();
                assert_eq!(u64::from(read(&a)), bits & u64::from(u32::MAX));
                copy(&a, &mut y);
                assert_eq!((y[1], y[999]), (-1.0, -999.0));
                triad(&a, &b, &mut y);
                assert_eq!((y[0], y[999]), (6.0, 1005.0));
                copy_streaming(&a[1..], &mut y[1..]);
                assert!(y[1..].iter().zip(&a[1..]).all(|(y, a)| *y == -a));
                triad_streaming(&a[1..], &b[1..], &mut y[1..]);
                assert!(y[1..].iter().zip(&a[1..]).all(|(y, a)| *y == a + 6.0));
            });
            if ran.is_none() {
                println!("skipped: this machine lacks {isa}");
            }
        }
    }
}
