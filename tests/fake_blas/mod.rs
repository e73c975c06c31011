//! How a library is found, refused and reported, with libraries that the C compiler makes of the files beside
//! this one. Each case runs in its own process.
#![cfg(all(blas, not(blas = "openblas-static"), target_os = "linux"))]

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const FAILED: &str =
    "failed its self-test: cblas_sgemm of [2, 3] and [3, 4] returned without writing";

/// Compiles `tests/fake_blas/NAME.c` to a shared library.
fn compile(name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fake_blas/{name}.c"));
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("lib{name}.so"));
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let mut words = compiler.split_whitespace();
    let mut command = Command::new(words.next().expect("a program"));
    command.args(words).args(["-shared", "-fPIC", "-O1", "-fno-builtin", "-o"]);
    let output = command.arg(&library).arg(&source).arg("-ldl").output().expect("a C compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    library
}

/// Runs the test `one_product` with a variable: whether it passed, its output, and the lines that swath wrote to its
/// error output.
fn run(name: &str, value: &Path) -> (bool, String, Vec<String>) {
    let output = Command::new(env::current_exe().unwrap())
        .args(["one_product", "--exact", "--nocapture", "--include-ignored"])
        .env_remove("SWATH_BLAS")
        .env(name, value)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let [out, error] = [text(&output.stdout), text(&output.stderr)];
    let lines = error.lines().filter(|line| line.starts_with("swath: ")).map(str::to_owned);
    (output.status.success(), format!("{out}{error}"), lines.collect())
}

#[cfg(blas = "blas-dynamic")]
#[test]
fn a_library_named_by_the_user_that_fails_its_self_test_is_an_error() {
    let broken = compile("broken");
    let (success, text, _) = run("SWATH_BLAS", &broken);
    let expected = format!("SWATH_BLAS={}: it {FAILED}", broken.display());
    assert!(!success && text.contains(&expected), "{text}");
}

#[cfg(blas = "blas-dynamic")]
#[test]
fn a_missing_library_is_reported_in_one_line() {
    let (success, text, lines) = run("LD_PRELOAD", &compile("hide"));
    assert!(success && text.contains("INFO embedded"), "{text}");
    assert_eq!(lines, ["swath: no BLAS library was found; the embedded product is used"], "{text}");
}

/// The provider found after it depends on the machine.
#[cfg(blas = "blas-dynamic")]
#[test]
fn a_well_known_library_that_fails_its_self_test_is_reported() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("well_known");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::copy(compile("broken"), folder.join("libopenblas.so.0")).unwrap();
    let (success, text, lines) = run("LD_LIBRARY_PATH", &folder);
    assert!(success, "{text}");
    if text.contains("libmkl_rt") {
        return println!("SKIPPED: this machine has MKL, which is tried first");
    }
    let expected = format!("swath: libopenblas.so.0 is not used: it {FAILED}");
    assert!(lines.iter().filter(|line| line.starts_with(&expected)).count() == 1, "{text}");
}

/// The preloaded library stands in place of the linked one, because its functions are found first.
#[cfg(not(blas = "blas-dynamic"))]
#[test]
fn a_linked_library_that_fails_its_self_test_is_reported_once_and_not_used() {
    let (success, text, lines) = run("LD_PRELOAD", &compile("broken"));
    assert!(success && text.contains("INFO embedded"), "{text}");
    let [line] = &lines[..] else { panic!("{text}") };
    let expected = format!("swath: the BLAS linked by `{}` {FAILED}", env!("SWATH_BLAS_PROVIDER"));
    assert!(
        line.starts_with(&expected) && line.ends_with("; the embedded product is used"),
        "{line}"
    );
}

/// The preloaded library defines version functions that are found first; the linked library, which computes,
/// defines others or none.
#[cfg(not(blas = "blas-dynamic"))]
#[test]
fn version_functions_of_another_library_are_not_called() {
    let (success, text, _) = run("LD_PRELOAD", &compile("other"));
    assert!(success && !text.contains("8.8.8") && text.matches("other: ").count() == 1, "{text}");
    let provider = env!("SWATH_BLAS_PROVIDER");
    let expected = match provider {
        // The reference library reports no version.
        "netlib" => "INFO netlib (unknown".to_owned(),
        _ => format!("INFO {provider} ({provider}, "),
    };
    assert!(text.contains(&expected), "{text}");
}
