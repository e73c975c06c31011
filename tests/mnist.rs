//! The example `mnist` run as a user does: a few steps on digits that it draws, its pictures, and what it says of
//! files that are missing.
#![cfg(unix)]

#[path = "suite/support/example.rs"]
mod example;
#[path = "suite/support/files.rs"]
mod files;

use std::path::Path;
use std::process::{Command, Output};

use files::Scratch;
use swath::io::safetensors::load;
use swath::prelude::*;

fn run(program: &Path, out: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.arg("--out").arg(out).args(arguments);
    command.env_remove("SWATH_ISA").env_remove("SWATH_THREADS");
    command.output().unwrap()
}

/// Width and height in the header of a PNG file.
fn png_size(file: &Path) -> [u32; 2] {
    let bytes = std::fs::read(file).unwrap();
    assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n"), "{} is no PNG file", file.display());
    [16, 20].map(|at| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()))
}

#[test]
fn a_short_run_writes_its_pictures_and_missing_files_are_explained() -> Result<()> {
    let (program, scratch) = (example::build_example("mnist"), Scratch::new("mnist"));
    let out = scratch.0.join("out");
    let output = run(&program, &out, &["--steps", "5", "--threads", "2"]);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));

    let accuracy = printed.lines().find_map(|line| line.split_once(" % of 2000 held-out images"));
    let (percent, _) = accuracy.unwrap_or_else(|| panic!("no accuracy in {printed}"));
    let percent: f64 = percent.parse().unwrap_or_else(|error| panic!("{percent}: {error}"));
    assert!((0.0..=100.0).contains(&percent), "{percent}");
    let loss = printed.lines().find_map(|line| line.strip_prefix("step 5/5: loss "));
    let loss = loss.and_then(|text| text.split(',').next()?.parse::<f64>().ok());
    // A network that knows nothing has the loss ln 10 = 2.3.
    assert!(loss.is_some_and(|loss| loss > 0.0 && loss < 10.0), "{printed}");

    // Eleven cells of 32 pixels on each side; eight pairs by eight.
    assert_eq!(png_size(&out.join("confusion.png")), [352, 352]);
    assert_eq!(png_size(&out.join("predictions.png")), [512, 256]);
    let model = load::<CpuBackend>(out.join("model.safetensors"))?;
    assert!(!model.is_empty());

    let empty = scratch.0.join("no files");
    std::fs::create_dir(&empty).unwrap();
    let output = run(&program, &out, &["--data", empty.to_str().unwrap()]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    for part in ["mnist: ", "train-images-idx3-ubyte", "no files", "downloaded from https://"] {
        assert!(text.contains(part), "{text}");
    }
    Ok(())
}
