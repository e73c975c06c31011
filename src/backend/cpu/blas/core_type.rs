//! Whether a library has chosen kernels that are too old for this processor.
//!
//! Libraries know processors by their model numbers: one that is newer than OpenBLAS gets the kernels
//! of an ancestor, which may be half as fast (0.3.21 takes those for AVX2 on processors with AVX-512
//! that it does not know). `OPENBLAS_CORETYPE`, read when the library is loaded, chooses others.
//!
//! BLIS takes an ancestor's too, or kernels in plain C, a sixth as fast. Its `BLIS_ARCH_TYPE` is left to the user: the numbers
//! differ between versions, and a build without the kernels asked for ends the program.
//!
//! MKL knows Intel's processors alone. All others are "Intel(R) Architecture processors" to it, for which it
//! has kernels for AVX2 at best.

use swath_kernels::Isa;

use super::library::Vendor;

/// Core types of OpenBLAS and BLIS on x86-64 whose kernels use less than AVX2.
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
const AVX2: [&str; 5] = ["Haswell", "Zen", "Zen2", "Zen3", "Excavator"];

/// What MKL calls processors that it does not know.
const UNKNOWN_TO_MKL: &str = "Intel(R) Architecture processors";

/// The core type to choose instead of `chosen` on a processor with the instruction set `isa`.
pub(super) fn better(chosen: &str, isa: Isa) -> Option<&'static str> {
    let is_one_of = |types: &[&str]| types.iter().any(|name| chosen.eq_ignore_ascii_case(name));
    match isa {
        Isa::Avx512 if is_one_of(&BEFORE_AVX2) || is_one_of(&AVX2) => Some("SkylakeX"),
        Isa::Avx2 if is_one_of(&BEFORE_AVX2) => Some("Haswell"),
        _ => None,
    }
}

/// What the user should know of the kernels that a library has chosen.
pub(super) fn warning(vendor: Vendor, core: &str, isa: Isa) -> Option<String> {
    match vendor {
        Vendor::OpenBlas => better(core, isa).map(|better| {
            format!(
                "OpenBLAS runs its kernels for {core} on a processor with {isa}: set \
                 OPENBLAS_CORETYPE={better} before the program starts"
            )
        }),
        Vendor::Blis if core == "generic" && isa != Isa::Scalar => Some(format!(
            "BLIS runs its generic kernels on a processor with {isa}, which it does not know or was \
             not built for: take another build of it, another library or the embedded product"
        )),
        Vendor::Blis if better(core, isa).is_some() => Some(format!(
            "BLIS runs its kernels for {core} on a processor with {isa}: take a newer build of it, \
             another library or the embedded product"
        )),
        Vendor::Mkl if core == UNKNOWN_TO_MKL && isa == Isa::Avx512 => Some(format!(
            "MKL does not know this processor with {isa} and runs kernels for older ones: take \
             another library or the embedded product"
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_that_are_not_the_processors_own_are_told() {
        let text = warning(Vendor::Blis, "generic", Isa::Avx512).unwrap();
        assert!(text.contains("generic kernels on a processor with avx512"), "{text}");
        let text = warning(Vendor::Blis, "zen3", Isa::Avx512).unwrap();
        assert!(text.contains("kernels for zen3 on a processor with avx512"), "{text}");
        for (core, isa) in [("skx", Isa::Avx512), ("zen4", Isa::Avx512), ("zen3", Isa::Avx2)] {
            assert_eq!(warning(Vendor::Blis, core, isa), None, "{core}");
        }
        let text = warning(Vendor::Mkl, UNKNOWN_TO_MKL, Isa::Avx512).unwrap();
        assert!(text.contains("MKL does not know this processor"), "{text}");
        assert_eq!(warning(Vendor::Mkl, UNKNOWN_TO_MKL, Isa::Avx2), None);
        let known = "Intel(R) Advanced Vector Extensions 512 (Intel(R) AVX-512) enabled processors";
        assert_eq!(warning(Vendor::Mkl, known, Isa::Avx512), None);
        assert_eq!(warning(Vendor::Blis, "generic", Isa::Scalar), None);
        assert_eq!(warning(Vendor::Unknown, "generic", Isa::Avx2), None);
        let text = warning(Vendor::OpenBlas, "Haswell", Isa::Avx512).unwrap();
        assert!(text.contains("OPENBLAS_CORETYPE=SkylakeX"), "{text}");
    }

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
