//! A BLAS library with selectable faults, which real libraries on the machine of the tests do not have. It is
//! compiled by the C compiler that links Rust programs on Linux.
#![cfg(all(blas, not(blas = "openblas-static"), target_os = "linux"))]

#[cfg(not(blas = "blas-dynamic"))]
mod linked;
#[cfg(blas = "blas-dynamic")]
mod opened;

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Compiles `tests/fake_blas/NAME.c` to a shared library.
fn compile(name: &str) -> PathBuf {
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
    FAKE.get_or_init(|| compile("fake").to_str().expect("a path of letters").to_owned())
}

/// Runs `products_twice` with these variables: whether it passed, its output and its error output.
fn run(variables: &[(&str, &str)]) -> (bool, String, String) {
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
