//! What targets draw from the bytes of an input.

#![allow(dead_code, reason = "each target draws some of it")]

use libfuzzer_sys::arbitrary::{Result, Unstructured};

/// A number below `n`; 0 when the input has ended.
pub fn below(u: &mut Unstructured<'_>, n: usize) -> usize {
    u.int_in_range(0..=n.max(1) - 1).unwrap_or(0)
}

/// An extent: none, a few, on both sides of what tiles, panels and blocks of k are multiples of, or
/// hundreds.
fn extent(u: &mut Unstructured<'_>) -> Result<usize> {
    const EDGES: [usize; 12] = [6, 8, 12, 16, 24, 32, 48, 64, 96, 256, 512, 1024];
    Ok(match u.int_in_range(0..=9)? {
        0 => 0,
        1..=3 => u.int_in_range(1..=7)?,
        4..=6 => u.int_in_range(1..=70)?,
        7..=8 => *u.choose(&EDGES)? + u.int_in_range(0..=2)? - 1,
        _ => u.int_in_range(71..=1100)?,
    })
}

/// m, n and k: at most `most` terms, operands and result as many elements; or one to three rows or columns
/// by a matrix of more than half a MiB, which products stream.
pub fn extents(u: &mut Unstructured<'_>, most: usize) -> Result<[usize; 3]> {
    if most > 20_000 && u.ratio(1, 8)? {
        let few = u.int_in_range(1..=3)?;
        let (long, other) = (u.int_in_range(260..=520)?, u.int_in_range(270..=510)?);
        let [m, n] = if u.arbitrary::<bool>()? { [few, other] } else { [other, few] };
        return Ok([m, n, long]);
    }
    let mut extents = [extent(u)?, extent(u)?, extent(u)?];
    while extents.iter().map(|&extent| extent.max(1)).product::<usize>() > most {
        let largest = extents.iter_mut().max().expect("three extents");
        *largest = largest.div_ceil(2);
    }
    Ok(extents)
}

/// The numbers of a matrix, from a seed: a generator of their own (xorshift64*), since an input's bytes
/// would not suffice.
#[derive(Clone, Debug)]
pub struct Numbers {
    state: u64,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Between −1 and 1.
    Ordinary,
    /// Small integers, which cancel exactly.
    Integers,
    /// Between ±2⁻⁴⁰ and ±2⁴⁰.
    Scattered,
    /// Ordinary ones with zeros, infinities and NaNs among them.
    Special,
}

impl Numbers {
    pub fn new(u: &mut Unstructured<'_>) -> Result<Numbers> {
        let kinds = [Kind::Ordinary, Kind::Integers, Kind::Scattered, Kind::Special];
        let kind = kinds[u.int_in_range(0..=3)?];
        Ok(Numbers { state: u64::from(u.arbitrary::<u16>()?) << 1 | 1, kind })
    }

    fn bits(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

impl Iterator for Numbers {
    type Item = f64;

    fn next(&mut self) -> Option<f64> {
        let bits = self.bits();
        let unit = (bits >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
        Some(match self.kind {
            Kind::Ordinary => unit,
            Kind::Integers => (unit * 9.0).round(),
            Kind::Scattered => unit * 2f64.powi((bits & 63).min(40) as i32 * 2 - 40),
            Kind::Special => match bits & 127 {
                0 => f64::INFINITY,
                1 => f64::NEG_INFINITY,
                2 => f64::NAN,
                3..=9 => 0.0,
                10..=16 => -0.0,
                _ => unit,
            },
        })
    }
}
