//! Tests that change or measure global state.

use std::env;
use std::process::Command;

/// Set in the processes that [`alone`] starts.
const ALONE: &str = "SWATH_TEST_ALONE";

/// Runs the body of the test `name` in its own process, where no other test runs: this program is started
/// again with `name` as its filter.
#[track_caller]
pub fn alone(name: &str, body: impl FnOnce()) {
    alone_with(name, &[], body);
}

/// Like [`alone`], with environment variables.
#[track_caller]
pub fn alone_with(name: &str, variables: &[(&str, &str)], body: impl FnOnce()) {
    if env::var_os(ALONE).is_some() {
        return body();
    }
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", name, "--include-ignored", "--nocapture"]).env(ALONE, "1");
    command.envs(variables.iter().copied());
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    let passed = output.status.success() && text.contains("test result: ok. 1 passed");
    assert!(passed, "{name}, in its own process: {}\n{text}", output.status);
    print!("{text}");
}
