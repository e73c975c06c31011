//! ONNX's node tests: a sample of 200, and with `SWATH_ONNX_TESTS=FILE` those of another file.
//!
//! `make_node_tests.py FILE` writes all of them, `make_model_cases.py FILE FOLDER` published models with ONNX Runtime's
//! outputs. `SWATH_ONNX_NAMES` limits the cases to those whose names have one of these parts. Each case runs as it is
//! in the file, and rewritten for inference.

use std::{env, fs};

use swath_onnx::cases;

fn run(bytes: &[u8], wanted: &str) -> (usize, Vec<String>) {
    let is_wanted =
        |name: &str| wanted.is_empty() || wanted.split(' ').any(|part| name.contains(part));
    let results = cases::run(bytes, is_wanted).unwrap();
    let count = results.len();
    let fault =
        |(name, result): (String, Result<(), String>)| result.err().map(|e| format!("{name}: {e}"));
    (count, results.into_iter().filter_map(fault).collect())
}

#[test]
fn the_sample_passes() {
    let (count, faults) = run(include_bytes!("data/node.bin"), "");
    assert_eq!((count, faults), (200, vec![]));
}

/// The number that fail is at most `SWATH_ONNX_FAULTS`, 0 by default.
#[test]
fn cases_of_a_file_pass() {
    let Some(file) = env::var_os("SWATH_ONNX_TESTS") else { return };
    let (count, faults) =
        run(&fs::read(file).unwrap(), &env::var("SWATH_ONNX_NAMES").unwrap_or_default());
    for fault in &faults {
        println!("{}", fault.chars().take(300).collect::<String>());
    }
    println!("{} of {count} pass", count - faults.len());
    let most = env::var("SWATH_ONNX_FAULTS").map_or(0, |text| text.parse().unwrap());
    assert!(count > 0 && faults.len() <= most, "{} of {count} fail", faults.len());
}
