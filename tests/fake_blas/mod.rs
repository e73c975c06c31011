//! A BLAS library with faults by choice, opened by its path: what real libraries do not do on the machine
//! that runs the tests. Made by the C compiler that links Rust's programs on Linux.
#![cfg(all(feature = "blas-dynamic", target_os = "linux"))]

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use swath::runtime::{Isa, isa};

/// `tests/fake_blas/NAME.c` as a shared library.
fn made(name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fake_blas/{name}.c"));
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("lib{name}.so"));
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut command = Command::new(compiler);
    command.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source).arg("-ldl");
    let output = command.output().expect("a C compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    library
}

fn fake() -> &'static str {
    static FAKE: OnceLock<String> = OnceLock::new();
    FAKE.get_or_init(|| made("fake").to_str().expect("a path of letters").to_owned())
}

/// What `products_twice` says with these variables: whether it passed, its output and its errors.
fn says(variables: &[(&str, &str)]) -> (bool, String, String) {
    let output = Command::new(env::current_exe().unwrap())
        .args(["products_twice", "--exact", "--nocapture", "--include-ignored"])
        .env_remove("SWATH_BLAS")
        .env_remove("OPENBLAS_CORETYPE")
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_right_library_is_called_on_one_thread() {
    let (success, out, err) = says(&[("SWATH_BLAS", fake()), ("FAKE_CORE", "SapphireRapids")]);
    assert!(success, "{out}{err}");
    assert!(
        out.contains(fake()) && out.contains("9.9.9") && out.contains("SapphireRapids"),
        "{out}"
    );
    assert!(!err.contains("called with"), "{err}");
    assert_eq!(err.matches("fake: loaded").count(), 1, "{err}");
}

#[test]
fn old_kernels_are_exchanged_unless_the_user_chose_them() {
    let better = match isa() {
        Isa::Avx512 => "SkylakeX",
        Isa::Avx2 => "Haswell",
        isa => return println!("SKIPPED: no kernels are old on {isa}"),
    };
    let old = [("SWATH_BLAS", fake()), ("FAKE_CORE", "Sandybridge")];
    let (success, out, err) = says(&old);
    assert!(success, "{out}{err}");
    let loads: Vec<&str> = err.lines().filter(|line| line.starts_with("fake: loaded")).collect();
    let of = |core: &str| format!("fake: loaded, OPENBLAS_CORETYPE={core}");
    assert_eq!(loads, [of(""), of(better)], "{err}");
    assert!(out.contains(better) && out.contains("OPENBLAS_CORETYPE None"), "{out}");
    assert!(!err.contains("swath: "), "{err}");

    let (success, out, err) = says(&[old[0], old[1], ("OPENBLAS_CORETYPE", "Nehalem")]);
    assert!(success, "{out}{err}");
    assert!(out.contains("OPENBLAS_CORETYPE Some(\"Nehalem\")"), "{out}");
    assert_eq!(err.matches("fake: loaded").count(), 1, "{err}");
    assert_eq!(err.matches("OpenBLAS runs its kernels for Nehalem").count(), 1, "{err}");
}

#[test]
fn a_library_that_fails_its_self_test_is_an_error() {
    for (fault, function) in [
        ("beta", "cblas_sgemm"),
        ("gap", "cblas_sgemm"),
        ("reads", "cblas_sgemv"),
        ("dot", "cblas_sdot"),
    ] {
        let (success, out, err) = says(&[("SWATH_BLAS", fake()), ("FAKE_FAULT", fault)]);
        assert!(!success, "{fault}: {out}");
        let text = format!("SWATH_BLAS={}: it failed its self-test: {function}", fake());
        assert!(err.contains(&text), "{fault}: {err}");
    }
}

#[test]
fn a_library_that_returns_early_is_told_of_once_and_called_no_more() {
    let (success, out, err) = says(&[("SWATH_BLAS", fake()), ("FAKE_FAULT", "early")]);
    assert!(success, "{out}{err}");
    let text = "returned from a product without writing its result; the embedded product is used";
    let [before, after] = err.split(text).collect::<Vec<_>>()[..] else { panic!("{err}") };
    let called = "fake: returned early";
    assert!(before.contains(called) && !after.contains(called), "{err}");
}

#[test]
fn without_a_library_one_line_says_so() {
    let hide = made("hide");
    let (success, out, err) = says(&[("LD_PRELOAD", hide.to_str().unwrap())]);
    assert!(success && out.contains("INFO embedded"), "{out}{err}");
    assert_eq!(err.matches("no BLAS library could be opened").count(), 1, "{err}");
    assert_eq!(err.matches("; the embedded product is used").count(), 1, "{err}");
}
