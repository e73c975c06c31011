//! Builds of the examples, for tests that run them as a user does.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds an example in the profile of this test. Returns the path of the program.
pub fn build_example(name: &str) -> PathBuf {
    let this = std::env::current_exe().unwrap();
    let profile = this.parent().and_then(Path::parent).unwrap();
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--example", name, "--target-dir"]);
    build.arg(profile.parent().unwrap()).current_dir(env!("CARGO_MANIFEST_DIR"));
    if profile.ends_with("release") {
        build.arg("--release");
    }
    assert!(build.status().unwrap().success(), "the example {name} does not build");
    profile.join("examples").join(name)
}
