//! The fake library, opened by its path.

use std::env;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use swath::runtime::{Isa, isa};

use super::{compile, fake, run};

#[test]
fn a_correct_library_is_called_on_one_thread() {
    let (success, out, err) = run(&[("SWATH_BLAS", fake()), ("FAKE_CORE", "SapphireRapids")]);
    assert!(success, "{out}{err}");
    assert!(
        out.contains(fake()) && out.contains("9.9.9") && out.contains("SapphireRapids"),
        "{out}"
    );
    assert!(!err.contains("called with"), "{err}");
    assert_eq!(err.matches("fake: loaded").count(), 1, "{err}");
}

#[test]
fn outdated_kernels_are_reported_once_with_the_remedy() {
    let better = match isa() {
        Isa::Avx512 => "SkylakeX",
        Isa::Avx2 => "Haswell",
        isa => return println!("SKIPPED: no kernels are outdated on {isa}"),
    };
    let old = [("SWATH_BLAS", fake()), ("FAKE_CORE", "Sandybridge")];
    let (success, out, err) = run(&old);
    assert!(success, "{out}{err}");
    let lines: Vec<&str> = err.lines().filter(|line| line.starts_with("swath: ")).collect();
    let [line] = lines[..] else { panic!("{err}") };
    assert!(line.contains("openblas runs kernels for Sandybridge"), "{line}");
    let remedy = format!("OPENBLAS_CORETYPE={better}");
    assert!(line.contains(&remedy), "{line}");
    assert!(out.contains(line.trim_start_matches("swath: ")), "{out}");

    let (success, out, err) = run(&[old[0], old[1], ("OPENBLAS_CORETYPE", better)]);
    assert!(success && out.contains(&format!("core {better}")), "{out}{err}");
    assert!(!err.contains("swath: "), "{err}");
}

#[test]
fn a_library_that_fails_its_self_test_is_an_error() {
    for (fault, reason) in [
        ("gap", "failed its self-test: cblas_sgemm"),
        ("reads", "failed its self-test: cblas_sgemv"),
        ("tile", "failed its self-test: cblas_sgemm"),
        ("terms", "failed its self-test: cblas_sgemm of [40, 40]"),
        ("dot", "failed its self-test: cblas_sdot"),
        ("wide", "has 64-bit integers (ILP64)"),
    ] {
        let (success, out, err) = run(&[("SWATH_BLAS", fake()), ("FAKE_FAULT", fault)]);
        assert!(!success, "{fault}: {out}");
        let text = format!("SWATH_BLAS={}: it {reason}", fake());
        assert!(err.contains(&text), "{fault}: {err}");
    }
}

#[test]
fn a_library_that_returns_early_is_reported_once_and_not_called_again() {
    let (success, out, err) = run(&[("SWATH_BLAS", fake()), ("FAKE_FAULT", "early")]);
    assert!(success, "{out}{err}");
    let text = "returned without writing a product; the embedded product is used";
    let [before, after] = err.split(text).collect::<Vec<_>>()[..] else { panic!("{err}") };
    let called = "fake: returned early";
    assert!(before.contains(called) && !after.contains(called), "{err}");
}

/// The error stream is a full disk.
#[test]
fn a_warning_that_cannot_be_written_does_not_stop_the_product() {
    let status = Command::new(env::current_exe().unwrap())
        .args(["products_twice", "--exact", "--include-ignored"])
        .envs([("SWATH_BLAS", fake()), ("FAKE_FAULT", "early")])
        .stdout(Stdio::null())
        .stderr(File::options().write(true).open("/dev/full").unwrap())
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
fn a_missing_library_is_reported_in_one_line() {
    let hide = compile("hide");
    let (success, out, err) = run(&[("LD_PRELOAD", hide.to_str().unwrap())]);
    assert!(success && out.contains("INFO embedded"), "{out}{err}");
    let lines: Vec<&str> = err.lines().filter(|line| line.starts_with("swath: ")).collect();
    assert_eq!(lines, ["swath: no BLAS library was found; the embedded product is used"], "{err}");
}

/// The provider found after it depends on the machine.
#[test]
fn a_well_known_library_that_fails_its_self_test_is_reported() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("well_known");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::copy(fake(), folder.join("libopenblas.so.0")).unwrap();
    let variables = [
        ("LD_LIBRARY_PATH", folder.to_str().unwrap()),
        ("FAKE_FAULT", "gap"),
        ("FAKE_CORE", "Zen5"),
    ];
    let (success, out, err) = run(&variables);
    assert!(success, "{out}{err}");
    if out.contains("libmkl_rt") {
        return println!("SKIPPED: this machine has MKL, which is tried first");
    }
    let expected = "swath: libopenblas.so.0 is not used: it failed its self-test";
    assert_eq!(err.matches(expected).count(), 1, "{out}{err}");
    assert!(out.contains(expected.trim_start_matches("swath: ")), "{out}");
    // A library that is not installed is not reported.
    assert!(!err.contains("libmkl_rt.so.3 is not used"), "{err}");
}
