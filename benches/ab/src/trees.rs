//! The two trees, and the program of rows built against each.

use crate::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs a command in a folder and returns its standard output.
fn run(folder: &Path, program: &str, arguments: &[&str]) -> Result<String, Error> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).stderr(Stdio::inherit());
    let output = command.output()?;
    match output.status.success() {
        true => Ok(String::from_utf8(output.stdout)?.trim().to_owned()),
        false => Err(format!("{program} {} failed", arguments.join(" ")).into()),
    }
}

/// Returns the commit of a tree, and whether it has changes.
pub fn describe(root: &Path) -> Result<String, Error> {
    let commit = run(root, "git", &["rev-parse", "--short=7", "HEAD"])?;
    let changes = run(root, "git", &["status", "--porcelain", "--untracked-files=no"])?;
    Ok(if changes.is_empty() { commit } else { format!("{commit} and changes") })
}

/// Returns a commit's short name, and the folder its files are in.
pub fn check_out(root: &Path, revision: &str) -> Result<(String, PathBuf), Error> {
    let revision = format!("{revision}^{{commit}}");
    let commit = run(root, "git", &["rev-parse", "--short=7", &revision])?;
    let folder = root.join("target/ab").join(format!("tree-{commit}"));
    // Renamed at the end: a folder of that name is complete.
    if !folder.exists() {
        let unfinished = root.join("target/ab/unfinished");
        _ = fs::remove_dir_all(&unfinished);
        fs::create_dir_all(&unfinished)?;
        run(root, "git", &["archive", "--output=target/ab/tree.tar", &commit])?;
        run(&unfinished, "tar", &["-xf", "../tree.tar"])?;
        fs::rename(&unfinished, &folder)?;
    }
    Ok((commit, folder))
}

/// Builds the rows against a tree, with that tree's profile, versions of crates and model of `train_gpt`. Returns the
/// program.
pub fn build(root: &Path, tree: &Path, name: &str) -> Result<PathBuf, Error> {
    let package = root.join("target/ab").join(format!("rows-{name}"));
    fs::create_dir_all(&package)?;
    let manifest = fs::read_to_string(tree.join("Cargo.toml"))?;
    let profile = manifest.split_once("[profile.release]").map_or("", |(_, rest)| rest);
    let profile = profile.split("\n[").next().unwrap_or_default();
    let manifest = format!(
        "[package]\nname = \"rows\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [lib]\nname = \"model\"\npath = {:?}\n\n\
         [[bin]]\nname = \"rows\"\npath = {:?}\n\n\
         [dependencies]\nswath = {{ path = {tree:?} }}\n\n[profile.release]{profile}\n",
        tree.join("examples/train_gpt/model.rs"),
        root.join("benches/ab/rows/main.rs"),
    );
    fs::write(package.join("Cargo.toml"), manifest)?;
    fs::copy(tree.join("Cargo.lock"), package.join("Cargo.lock"))?;
    println!("building the rows against {}", tree.display());
    let cargo = std::env::var("CARGO").unwrap_or("cargo".into());
    run(&package, &cargo, &["build", "--release", "--target-dir", "target"])?;
    Ok(package.join("target/release").join(format!("rows{}", std::env::consts::EXE_SUFFIX)))
}
