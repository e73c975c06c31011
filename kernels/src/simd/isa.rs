//! The instruction sets that kernels are compiled for.

use std::fmt;

#[cfg(target_arch = "aarch64")]
use super::enter::Neon;
#[cfg(target_arch = "x86_64")]
use super::enter::{Avx2, Avx512};

/// An instruction set level that kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Isa {
    /// Portable code, one lane per vector: for correctness, Miri and other CPUs.
    Scalar,
    /// x86-64 with AVX2, FMA and F16C: 256-bit vectors.
    Avx2,
    /// x86-64 with AVX-512 F, BW, CD, DQ, VL: 512-bit vectors.
    Avx512,
    /// AArch64 Advanced SIMD: 128-bit vectors.
    Neon,
}

impl Isa {
    /// Every level, best last.
    pub const ALL: [Isa; 4] = [Isa::Scalar, Isa::Neon, Isa::Avx2, Isa::Avx512];

    /// The name that `SWATH_ISA` takes.
    pub const fn name(self) -> &'static str {
        match self {
            Isa::Scalar => "scalar",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
            Isa::Neon => "neon",
        }
    }

    /// True if the level has 32 vector registers, false if 16.
    pub(crate) const fn has_32_registers(self) -> bool {
        matches!(self, Isa::Avx512 | Isa::Neon)
    }

    /// True if this machine can run it.
    pub fn is_available(self) -> bool {
        match self {
            Isa::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => Avx2::is_available(),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => Avx512::is_available(),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => Neon::is_available(),
            #[allow(unreachable_patterns, reason = "each architecture lacks other levels")]
            _ => false,
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
