//! The fake in place of the library that was linked: it is preloaded, so that its functions are the first of
//! their names.

use super::{fake, made, says};

#[test]
fn a_linked_library_that_fails_its_self_test_is_told_of_once_and_not_used() {
    let (success, out, err) = says(&[("LD_PRELOAD", fake())]);
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
        let (success, out, err) = says(&[("LD_PRELOAD", fake()), ("FAKE_FAULT", fault)]);
        assert!(success && out.contains("INFO embedded"), "{fault}: {out}{err}");
        let told = format!("swath: the BLAS linked by `{provider}` {reason}");
        let lines: Vec<&str> = err.lines().filter(|line| line.starts_with("swath: ")).collect();
        let [line] = lines[..] else { panic!("{fault}: {err}") };
        assert!(line.starts_with(&told), "{fault}: {line}");
        assert!(line.ends_with("; the embedded product is used"), "{fault}: {line}");
        assert!(out.contains(line.trim_start_matches("swath: ")), "{fault}: {out}");
    }
}

/// Its names come first in the process; the library that computes has others of its own, or none.
#[test]
fn functions_of_a_library_that_is_not_called_are_not_taken() {
    let other = made("other");
    let (success, out, err) = says(&[("LD_PRELOAD", other.to_str().unwrap())]);
    assert!(success && err.contains("other: loaded"), "{out}{err}");
    assert!(!out.contains("8.8.8") && err.matches("other: ").count() == 1, "{out}{err}");
    let provider = env!("SWATH_BLAS_PROVIDER");
    let own = match provider {
        // The reference says nothing of itself.
        "netlib" => "INFO netlib (unknown".to_owned(),
        _ => format!("INFO {provider} ({provider}, "),
    };
    assert!(out.contains(&own), "{out}{err}");
}
