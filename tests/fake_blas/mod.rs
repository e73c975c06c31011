//! A BLAS library with faults by choice: what real libraries do not do on the machine that runs the tests.
//! Made by the C compiler that links Rust's programs on Linux.
#![cfg(all(blas, not(blas = "openblas-static"), target_os = "linux"))]

#[cfg(not(blas = "blas-dynamic"))]
mod linked;
#[cfg(blas = "blas-dynamic")]
mod opened;

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// `tests/fake_blas/NAME.c` as a shared library.
fn made(name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fake_blas/{name}.c"));
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("lib{name}.so"));
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let mut words = compiler.split_whitespace();
    let mut command = Command::new(words.next().expect("a program"));
    command
        .args(words)
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .arg(&source)
        .arg("-ldl");
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
