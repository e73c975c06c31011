use super::functions1;
use crate::reference;

functions1! {
    neg Neg |x| f32::from_bits(x.to_bits() ^ 1 << 31), |x| -x,
        |x| f64::from_bits(x.to_bits() ^ 1 << 63), [];
    abs Abs f32::abs, f64::abs, f64::abs, [];
    sign Sign |x| reference::sign(x.into()) as f32, reference::sign, reference::sign, [];
    square Square |x| (f64::from(x) * f64::from(x)) as f32, |x| x * x, |x| x.powi(2), [];
    sqrt Sqrt |x| f64::from(x).sqrt() as f32, f64::sqrt, f64::sqrt, [];
    recip Recip |x| f64::from(x).recip() as f32, f64::recip, f64::recip, [];
}
