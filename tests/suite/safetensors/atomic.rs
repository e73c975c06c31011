//! A save that fails or is killed leaves the last valid file unchanged.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use swath::io::safetensors::{Metadata, load, save};
use swath::prelude::*;

use super::T;
use crate::support::files::Scratch;

/// Path of the file that the child process writes, and whether it writes it repeatedly.
const PATH: &str = "SWATH_TEST_SAVE_PATH";
const FOREVER: &str = "SWATH_TEST_SAVE_FOREVER";

fn filled(value: f32) -> [(&'static str, T); 2] {
    // 1.5 MiB: more than one write.
    [("a", T::full((256, 1024), value).unwrap()), ("b", T::full(128 << 10, value).unwrap())]
}

fn save_filled(path: &Path, value: f32) -> Result<()> {
    save(path, filled(value), &Metadata::new())
}

/// The value of all elements of the file.
fn value_of(path: &Path) -> f32 {
    let tensors = load::<CpuBackend>(path).expect("a complete file");
    let mut values = tensors.values().flat_map(|tensor| tensor.to_vec::<f32>().unwrap());
    let first = values.next().unwrap();
    assert!(values.all(|value| value == first), "a mixture of two saves");
    first
}

/// The name of [`child`] as a filter of tests.
fn child_name() -> String {
    let (_program, module) = module_path!().split_once("::").unwrap();
    format!("{module}::child")
}

/// The code of the child process; does nothing if the variables are not set.
#[test]
fn child() {
    let Some(path) = std::env::var_os(PATH) else { return };
    let path = Path::new(&path);
    if std::env::var_os(FOREVER).is_some() {
        for i in 1u32.. {
            save_filled(path, i as f32).unwrap();
        }
    }
    let error = save_filled(path, 2.0).expect_err("the file exceeds the size limit").to_string();
    assert!(error.contains("cannot write") && error.contains("model"), "{error}");
}

fn child_command(program: &str, path: &Path) -> Command {
    let mut command = Command::new(program);
    command.env(PATH, path).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn this_program() -> String {
    std::env::current_exe().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn a_save_without_space_changes_nothing_and_leaves_no_files() {
    let folder = Scratch::new("tensors-no-room");
    let path = folder.0.join("model");
    save_filled(&path, 1.0).unwrap();
    // Limits files to about 100 KiB, and ignores the signal that would end the process.
    let script = r#"trap '' XFSZ; ulimit -f 200; exec "$0" --exact "$1""#;
    let mut command = child_command("sh", &path);
    match command.args(["-c", script, &this_program(), &child_name()]).status() {
        Ok(status) => assert!(status.success(), "the child: {status}"),
        Err(error) => return eprintln!("SKIPPED: a_save_without_room: no sh: {error}"),
    }
    assert_eq!(value_of(&path), 1.0);
    assert_eq!(folder.names(), ["model"]);
}

#[test]
fn a_killed_save_leaves_a_complete_file() {
    let folder = Scratch::new("tensors-killed");
    let path = folder.0.join("model");
    for round in 0..12 {
        save_filled(&path, 0.0).unwrap();
        let mut child = child_command(&this_program(), &path)
            .args(["--exact", &child_name()])
            .env(FOREVER, "1")
            .spawn()
            .unwrap();
        let start = Instant::now();
        while value_of(&path) == 0.0 {
            assert!(start.elapsed() < Duration::from_secs(60), "the child has saved nothing");
        }
        // Kills the child during a save; each takes a few milliseconds.
        std::thread::sleep(Duration::from_micros(3_137 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(value_of(&path) > 0.0);
    }
    let unexpected = |name: &&String| name != &"model" && !name.starts_with(".swath-");
    assert_eq!(folder.names().iter().filter(unexpected).count(), 0);
    // Leftovers of killed processes do not prevent a save.
    save_filled(&path, 7.0).unwrap();
    assert_eq!(value_of(&path), 7.0);
}

#[test]
fn a_path_that_cannot_be_written_is_an_error_that_names_it() {
    let folder = Scratch::new("tensors-no-place");
    let error = save_filled(&folder.0.join("no/such/model"), 1.0).unwrap_err().to_string();
    assert!(error.contains("no/such/model"), "{error}");
    fs::create_dir(folder.0.join("taken")).unwrap();
    let error = save_filled(&folder.0.join("taken"), 1.0).unwrap_err().to_string();
    assert!(error.contains("taken"), "{error}");
    assert_eq!(folder.names(), ["taken"]);
}

#[test]
fn an_error_of_the_writer_keeps_the_old_content() {
    let folder = Scratch::new("tensors-writer");
    let path = folder.0.join("text");
    swath::io::replace_file(&path, |file| write!(file, "old")).unwrap();
    let error = swath::io::replace_file(&path, |file| {
        write!(file, "new")?;
        Err(std::io::Error::other("out of ideas"))
    });
    assert!(error.unwrap_err().to_string().contains("out of ideas"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    assert_eq!(folder.names(), ["text"]);
}

#[cfg(unix)]
#[test]
fn a_private_file_stays_private_while_it_is_replaced() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let folder = Scratch::new("tensors-private");
    let path = folder.0.join("secret");
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
    fs::write(&path, "old").unwrap();
    for (old, new) in [(0o600, 0o600), (0o640, 0o640), (0o444, 0o444), (0o4755, 0o755)] {
        fs::set_permissions(&path, fs::Permissions::from_mode(old)).unwrap();
        swath::io::replace_file(&path, |file| {
            let name = folder.names().into_iter().find(|name| name.ends_with(".tmp")).unwrap();
            assert_eq!(mode(&folder.0.join(name)), 0o600, "while it is written");
            write!(file, "new")
        })
        .unwrap();
        assert_eq!(mode(&path), new);
    }
    // A new file has the permissions of any other.
    let (other, plain) = (folder.0.join("other"), folder.0.join("plain"));
    swath::io::replace_file(&other, |file| write!(file, "new")).unwrap();
    fs::write(&plain, "new").unwrap();
    assert_eq!(mode(&other), mode(&plain));
}

#[cfg(unix)]
#[test]
fn links_are_followed_even_to_a_file_that_does_not_exist() {
    use std::os::unix::fs::symlink;
    let folder = Scratch::new("tensors-links");
    let at = |name: &str| folder.0.join(name);
    fs::create_dir(at("later")).unwrap();
    symlink("later/target", at("link")).unwrap();
    symlink(at("link"), at("second")).unwrap();
    for text in ["first", "second"] {
        swath::io::replace_file(at("second"), |file| write!(file, "{text}")).unwrap();
        assert_eq!(fs::read_to_string(at("later/target")).unwrap(), text);
    }
    assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
    assert_eq!(folder.names(), ["later", "link", "second"]);
    symlink("b", at("a")).unwrap();
    symlink("a", at("b")).unwrap();
    let error = swath::io::replace_file(at("a"), |file| write!(file, "x")).unwrap_err();
    assert!(error.to_string().contains("symbolic links"), "{error}");
    assert!(fs::symlink_metadata(at("a")).unwrap().is_symlink());
}
