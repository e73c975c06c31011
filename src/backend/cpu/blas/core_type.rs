//! Whether OpenBLAS has chosen kernels that are too old for this processor.
//!
//! It knows processors by their model numbers: one that is newer than the library gets the kernels
//! of an ancestor, which may be half as fast (0.3.21 takes those for AVX2 on processors with AVX-512
//! that it does not know). `OPENBLAS_CORETYPE`, read when the library is loaded, chooses others.

use swath_kernels::Isa;

/// Core types of OpenBLAS on x86-64 whose kernels use less than AVX2.
const BEFORE_AVX2: [&str; 20] = [
    "Katmai",
    "Coppermine",
    "Northwood",
    "Prescott",
    "Banias",
    "Core2",
    "Penryn",
    "Dunnington",
    "Nehalem",
    "Sandybridge",
    "Atom",
    "Nano",
    "Athlon",
    "Opteron",
    "Opteron_SSE3",
    "Barcelona",
    "Bobcat",
    "Bulldozer",
    "Piledriver",
    "Steamroller",
];

/// Those whose kernels use AVX2 but not AVX-512.
const AVX2: [&str; 3] = ["Haswell", "Zen", "Excavator"];

/// The core type to choose instead of `chosen` on a processor with the instruction set `isa`.
pub(super) fn better(chosen: &str, isa: Isa) -> Option<&'static str> {
    let is_one_of = |types: &[&str]| types.iter().any(|name| chosen.eq_ignore_ascii_case(name));
    match isa {
        Isa::Avx512 if is_one_of(&BEFORE_AVX2) || is_one_of(&AVX2) => Some("SkylakeX"),
        Isa::Avx2 if is_one_of(&BEFORE_AVX2) => Some("Haswell"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_for_an_older_instruction_set_are_noticed() {
        for (chosen, isa, expected) in [
            ("Haswell", Isa::Avx512, Some("SkylakeX")),
            ("Zen", Isa::Avx512, Some("SkylakeX")),
            ("Prescott", Isa::Avx512, Some("SkylakeX")),
            ("SkylakeX", Isa::Avx512, None),
            ("Cooperlake", Isa::Avx512, None),
            ("SapphireRapids", Isa::Avx512, None),
            ("Zen", Isa::Avx2, None),
            ("Haswell", Isa::Avx2, None),
            ("prescott", Isa::Avx2, Some("Haswell")),
            ("Sandybridge", Isa::Avx2, Some("Haswell")),
            ("neoversen1", Isa::Neon, None),
            ("Prescott", Isa::Scalar, None),
            ("", Isa::Avx512, None),
        ] {
            assert_eq!(better(chosen, isa), expected, "{chosen} on {isa}");
        }
    }
}
