//! Results that are written a row at a time, inside a kernel that has entered its instruction set already.

use core::mem::{MaybeUninit, size_of_val};

use super::rows::places;
use crate::copy::{Fence, LINE, stream_lines, streaming};
use crate::output::Output;
use crate::simd::{Float, Lanes};

/// The result of a function of rows: written through the caches, or past them if they could not hold
/// all of it.
pub(crate) struct Out<'a, E> {
    elements: &'a mut [MaybeUninit<E>],
    streams: bool,
}

/// Elements that lie in the first-level cache until they are moved past the others.
const BUFFER: usize = 4096;

/// Bytes of a row below which its first and last lines, which may be incomplete, cost too much.
const LEAST_BYTES: usize = 1024;

impl<'a, E> Out<'a, E> {
    /// The result, and the fence that has to drop after all is written.
    pub fn new(y: &'a mut (impl Output<E> + ?Sized)) -> (Self, Option<Fence>) {
        let (streams, fence) = streaming(y);
        (Self { elements: places(y), streams }, fence)
    }

    pub fn len(&self) -> usize {
        self.elements.len()
    }

    /// Has `f` write `len` elements from `at` on, and give back what it wrote. Short rows, and those that
    /// no buffer takes, go through the caches always.
    #[inline(always)]
    pub fn write<S: Lanes<E>>(
        &mut self,
        simd: S,
        [at, len]: [usize; 2],
        f: impl for<'y> FnOnce(&'y mut [MaybeUninit<E>]) -> &'y mut [E],
    ) where
        E: Float,
    {
        let place = &mut self.elements[at..][..len];
        let mut buffer = [const { MaybeUninit::uninit() }; BUFFER];
        let buffered = self.streams && len <= BUFFER && size_of_val(place) >= LEAST_BYTES;
        let target = if buffered { &mut buffer[..len] } else { &mut *place };
        let written = f(target);
        assert!(written.len() == len, "{} elements were written, not {len}", written.len());
        if buffered {
            let (from, bytes) = (written.as_ptr().cast(), size_of_val(written));
            // SAFETY: `len` elements have been written to the buffer, and as many may be to the place.
            unsafe { stream_lines::<E, S>(simd, from, place.as_mut_ptr().cast(), bytes, LINE) }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{LayerNormRows, layer_norm_rows, log_softmax_rows, softmax_rows, with_place};

    /// Writes the result as a part of one of so many elements.
    type Function<'a> = &'a dyn Fn(usize, &mut [f32]);

    #[test]
    fn past_the_caches_the_bits_are_the_same() {
        const LARGE: usize = 1 << 30;
        for cols in [1usize, 3, 16, 100, 1024, 2049, super::BUFFER, super::BUFFER + 1] {
            let rows = (3000 / cols).clamp(2, 9);
            let x: Vec<f32> = (0..rows * cols).map(|i| (i as f32 * 0.7).sin() * 5.0).collect();
            // From places on no line of the caches, too.
            for offset in [0, 1, 7] {
                let functions: [Function<'_>; 3] = [
                    &|whole, y| with_place(y, whole, |mut y| softmax_rows(&x, cols, &mut y)),
                    &|whole, y| with_place(y, whole, |mut y| log_softmax_rows(&x, cols, &mut y)),
                    &|whole, y| {
                        let x = LayerNormRows { x: &x, weight: None, bias: None, eps: 1e-5 };
                        let [mut mean, mut deviation] = [0; 2].map(|_| vec![0.0; rows]);
                        with_place(y, whole, |mut y| {
                            layer_norm_rows(x, &mut y, &mut mean, &mut deviation);
                        });
                    },
                ];
                for function in functions {
                    let [mut cached, mut streamed] =
                        [0; 2].map(|_| vec![f32::NAN; offset + x.len()]);
                    function(0, &mut cached[offset..]);
                    function(LARGE, &mut streamed[offset..]);
                    assert!(cached[offset..].iter().all(|y| y.is_finite()));
                    assert_eq!(
                        cached[offset..],
                        streamed[offset..],
                        "{cols} columns from {offset}"
                    );
                    assert!(streamed[..offset].iter().all(|y| y.is_nan()), "before the result");
                }
            }
        }
    }
}
