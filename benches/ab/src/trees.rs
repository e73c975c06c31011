//! The two trees, and the program of rows built against each.

use crate::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn git(root: &Path, arguments: &[&str]) -> Result<String, Error> {
    let output = Command::new("git").args(arguments).current_dir(root).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("git {}: {said}", arguments.join(" ")).into());
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// The commit of a tree, and whether it has changes.
pub fn describe(root: &Path) -> Result<String, Error> {
    let commit = git(root, &["rev-parse", "--short=7", "HEAD"])?;
    let changes = git(root, &["status", "--porcelain", "--untracked-files=no"])?;
    Ok(if changes.is_empty() { commit } else { format!("{commit} and changes") })
}

/// A commit's short name, and the folder its files are in.
pub fn check_out(root: &Path, revision: &str) -> Result<(String, PathBuf), Error> {
    let commit = git(root, &["rev-parse", "--short=7", &format!("{revision}^{{commit}}")])?;
    let folder = root.join("target/ab").join(format!("tree-{commit}"));
    // Renamed at the end: a folder of that name is complete.
    if !folder.exists() {
        let unfinished = root.join("target/ab/unfinished");
        _ = fs::remove_dir_all(&unfinished);
        fs::create_dir_all(&unfinished)?;
        let mut archive = Command::new("git")
            .args(["archive", "--format=tar", &commit])
            .current_dir(root)
            .stdout(Stdio::piped())
            .spawn()?;
        let files = archive.stdout.take().ok_or("git archive has no output")?;
        let unpacked =
            Command::new("tar").arg("-x").current_dir(&unfinished).stdin(files).status()?;
        if !archive.wait()?.success() || !unpacked.success() {
            return Err(format!("{commit} cannot be checked out into {}", folder.display()).into());
        }
        fs::rename(&unfinished, &folder)?;
    }
    Ok((commit, folder))
}

/// Builds the rows against a tree, with that tree's profile and versions of crates; the program.
pub fn build(root: &Path, tree: &Path, name: &str) -> Result<PathBuf, Error> {
    let package = root.join("target/ab").join(format!("rows-{name}"));
    fs::create_dir_all(&package)?;
    let manifest = format!(
        "[package]\nname = \"rows\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [[bin]]\nname = \"rows\"\npath = {:?}\n\n\
         [dependencies]\nswath = {{ path = {tree:?} }}\nswath-kernels = {{ path = {:?} }}\n\n{}",
        root.join("benches/ab/rows/main.rs"),
        tree.join("kernels"),
        release_profile(&fs::read_to_string(tree.join("Cargo.toml"))?),
    );
    fs::write(package.join("Cargo.toml"), manifest)?;
    fs::copy(tree.join("Cargo.lock"), package.join("Cargo.lock"))?;
    println!("building the rows against {}", tree.display());
    let built = Command::new(std::env::var("CARGO").unwrap_or("cargo".into()))
        .args(["build", "--release", "--target-dir", "target"])
        .current_dir(&package)
        .status()?;
    if !built.success() {
        return Err(format!("the rows cannot be built against {}", tree.display()).into());
    }
    Ok(package.join("target/release").join(format!("rows{}", std::env::consts::EXE_SUFFIX)))
}

/// The section `[profile.release]` of a manifest.
fn release_profile(manifest: &str) -> String {
    let lines = manifest.lines().skip_while(|line| line.trim() != "[profile.release]");
    let section = lines.enumerate().take_while(|(i, line)| *i == 0 || !line.starts_with('['));
    section.map(|(_, line)| format!("{line}\n")).collect()
}
