//! Conversions between `f32` and the bits of 16-bit floats, in integer operations that compilers
//! vectorise.
//!
//! 1. *From 16 bits* is exact; a `bf16` is the upper half of an `f32`.
//! 2. *To 16 bits* rounds once, ties to even: adding half an ULP of the result, less one if the
//!    result would be even, makes truncation round; a carry increments the exponent as it should.
//!    Numbers below the smallest normal `f16` are added to 0.5, whose ULP is the subnormal spacing:
//!    the low bits of the sum are the result.

/// Returns the value of a `binary16`.
#[inline(always)]
pub(crate) fn f32_from_f16(bits: u16) -> f32 {
    let (sign, magnitude) = (u32::from(bits & 0x8000) << 16, u32::from(bits & 0x7fff));
    let shifted = magnitude << 13;
    let is_subnormal = magnitude < 0x400;
    let is_special = magnitude >= 0x7c00;
    let bias = if is_special { 2 * (127 - 15) } else { 127 - 15 } + u32::from(is_subnormal);
    // A subnormal's bits are the fraction of a number between 2^-14 and 2^-13.
    let implied = if is_subnormal { f32::from_bits(113 << 23) } else { 0.0 };
    let quiet = if magnitude > 0x7c00 { 1 << 22 } else { 0 };
    let value = f32::from_bits(shifted + (bias << 23)) - implied;
    f32::from_bits(value.to_bits() | quiet | sign)
}

/// Returns the value of a `bf16`.
#[inline(always)]
pub(crate) fn f32_from_bf16(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// Returns the nearest `binary16`, ties to even.
#[inline(always)]
pub(crate) fn f16_from_f32(x: f32) -> u16 {
    let bits = x.to_bits();
    let (sign, magnitude) = (bits >> 16 & 0x8000, bits & 0x7fff_ffff);
    let rounded = (magnitude + 0xfff + (magnitude >> 13 & 1)) >> 13;
    let normal = rounded.wrapping_sub((127 - 15) << 10);
    let small = (f32::from_bits(magnitude) + 0.5).to_bits() - 0.5f32.to_bits();
    let is_small = magnitude < 113 << 23;
    let finite = if is_small { small } else { normal.min(0x7c00) };
    let is_nan = magnitude > 0x7f80_0000;
    let nan = 0x7e00 | (magnitude >> 13 & 0x3ff);
    (sign | if is_nan { nan } else { finite }) as u16
}

/// Returns the nearest `bf16`, ties to even.
#[inline(always)]
pub(crate) fn bf16_from_f32(x: f32) -> u16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1));
    let nan = bits | 1 << 22;
    ((if x.is_nan() { nan } else { rounded }) >> 16) as u16
}
