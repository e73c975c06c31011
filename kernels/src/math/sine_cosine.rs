//! Sine and cosine at once, which share the reduction and most of the polynomials of `trig.rs`.

use core::mem::MaybeUninit;

use super::trig::{TrigConstants, waves};
use crate::map::rows::places;
use crate::map::{MapPair, map_pair};
use crate::output::Output;
use crate::simd::{Float, Lanes};

/// [`Sin`](super::Sin) and [`Cos`](super::Cos) of the same arguments, with the same bits.
struct SinCos;

impl<E: TrigConstants> MapPair<E> for SinCos {
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, x: S::V) -> [S::V; 2] {
        waves(simd, x)
    }
}

/// Element types that [`sincos`] is compiled for.
pub trait Angle: Float {
    #[doc(hidden)]
    #[track_caller]
    fn sincos(x: &[Self], sine: &mut [MaybeUninit<Self>], cosine: &mut [MaybeUninit<Self>]);
}

macro_rules! angles {
    ($($t:ident)*) => {$(
        impl Angle for $t {
            #[track_caller]
            fn sincos(x: &[$t], sine: &mut [MaybeUninit<$t>], cosine: &mut [MaybeUninit<$t>]) {
                map_pair::<$t, SinCos>("sincos", x, sine, cosine);
            }
        }
    )*};
}
angles!(f32 f64);

/// `sine[i] = sin x[i]` and `cosine[i] = cos x[i]` in one pass, with the bits of [`sin`](crate::sin)
/// and [`cos`](crate::cos).
///
/// ```
/// let x = [0.0f32, 1.0];
/// let (mut sine, mut cosine, mut alone) = ([0.0; 2], [0.0; 2], [0.0; 2]);
/// swath_kernels::sincos(&x, &mut sine, &mut cosine);
/// assert_eq!((sine[0], cosine[0]), (0.0, 1.0));
/// swath_kernels::cos(&x, &mut alone);
/// assert_eq!(cosine, alone);
/// swath_kernels::sin(&x, &mut alone);
/// assert_eq!(sine, alone);
/// ```
///
/// # Panics
/// If the lengths differ.
#[track_caller]
pub fn sincos<E: Angle>(
    x: &[E],
    sine: &mut (impl Output<E> + ?Sized),
    cosine: &mut (impl Output<E> + ?Sized),
) {
    E::sincos(x, places(sine), places(cosine));
}
