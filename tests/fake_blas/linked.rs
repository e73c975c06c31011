//! The fake library in place of the linked one: it is preloaded, so that the dynamic linker finds its
//! functions first.

use super::{compile, fake, run};

#[test]
fn a_linked_library_that_fails_its_self_test_is_reported_once_and_not_used() {
    let (success, out, err) = run(&[("LD_PRELOAD", fake())]);
    let provider = env!("SWATH_BLAS_PROVIDER");
    assert!(success && out.contains(&format!("INFO {provider}")), "{out}{err}");
    for (fault, reason) in [
        ("gap", "failed its self-test: cblas_sgemm of "),
        ("reads", "failed its self-test: cblas_sgemv of "),
        ("tile", "failed its self-test: cblas_sgemm of "),
        ("terms", "failed its self-test: cblas_sgemm of [40, 40] "),
        ("dot", "failed its self-test: cblas_sdot gave "),
        ("wide", "has 64-bit integers (ILP64)"),
    ] {
        let (success, out, err) = run(&[("LD_PRELOAD", fake()), ("FAKE_FAULT", fault)]);
        assert!(success && out.contains("INFO embedded"), "{fault}: {out}{err}");
        let expected = format!("swath: the BLAS linked by `{provider}` {reason}");
        let lines: Vec<&str> = err.lines().filter(|line| line.starts_with("swath: ")).collect();
        let [line] = lines[..] else { panic!("{fault}: {err}") };
        assert!(line.starts_with(&expected), "{fault}: {line}");
        assert!(line.ends_with("; the embedded product is used"), "{fault}: {line}");
        assert!(out.contains(line.trim_start_matches("swath: ")), "{fault}: {out}");
    }
}

/// The preloaded library defines version functions that are found first; the linked library, which computes,
/// defines others or none.
#[test]
fn version_functions_of_another_library_are_not_called() {
    let other = compile("other");
    let (success, out, err) = run(&[("LD_PRELOAD", other.to_str().unwrap())]);
    assert!(success && err.contains("other: loaded"), "{out}{err}");
    assert!(!out.contains("8.8.8") && err.matches("other: ").count() == 1, "{out}{err}");
    let provider = env!("SWATH_BLAS_PROVIDER");
    let expected = match provider {
        // The reference library reports no version.
        "netlib" => "INFO netlib (unknown".to_owned(),
        _ => format!("INFO {provider} ({provider}, "),
    };
    assert!(out.contains(&expected), "{out}{err}");
}
