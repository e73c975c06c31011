//! The bits of every function on fixed lists of arguments, as SHA-256 in `HASHES.txt`: the same on
//! every instruction set and every machine.
//!
//! `SWATH_BLESS=1 cargo test -p swath-kernels --test kernels hashes::` rewrites the file.

use crate::{calls, functions};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

use crate::calls::Call;
use crate::functions::{Real, of_gradients, of_one_argument, of_two_arguments};
use sha2::{Digest, Sha256};
use swath_kernels::testing::{interval_sample_f64, levels, with_isa};
use swath_kernels::{Arg, Isa};

/// Bit patterns in a list of single arguments; lists of an interval, and of pairs, have a quarter as many.
const COUNT: u32 = 1 << 16;

/// The digest of results, with a single NaN for all NaNs.
fn digest<E: Real>(results: &[E]) -> String {
    let mut hasher = Sha256::new();
    for y in results {
        hasher.update(y.canonical().to_le_bytes());
    }
    text(hasher)
}

fn text(hasher: Sha256) -> String {
    hasher.finalize().iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string cannot fail");
        text
    })
}

/// The lines of all functions for one element type.
fn lines<E: Real>(dtype: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = |name: &str, results: &[E]| {
        lines.push(format!("{name} {dtype} {}", digest(results)));
    };
    for function in of_one_argument() {
        let inside = function.intervals.iter();
        let inside = inside.flat_map(|&(a, b)| interval_sample_f64(a, b, COUNT / 4));
        let x: Vec<E> = E::inputs(COUNT).into_iter().chain(inside.map(E::from_f64)).collect();
        let mut y = vec![E::ZERO; x.len()];
        function.kernel.run([Arg::Slice(&x)], &mut y);
        line(function.name, &y);
    }
    for function in of_two_arguments() {
        let (a, b): (Vec<E>, Vec<E>) =
            functions::pairs::<E>(function, COUNT / 4, 1).into_iter().unzip();
        let mut y = vec![E::ZERO; a.len()];
        function.kernel.run([Arg::Slice(&a), Arg::Slice(&b)], &mut y);
        line(function.name, &y);
    }
    for function in of_gradients() {
        let ordinary = interval_sample_f64(-6.0, 6.0, COUNT / 4).map(E::from_f64);
        let x: Vec<E> = E::inputs(COUNT / 4).into_iter().chain(ordinary).collect();
        let g: Vec<E> = (0..x.len()).map(|i| E::from_f64([1.0, -0.3, 2.7][i % 3])).collect();
        let mut y = vec![E::ZERO; x.len()];
        function.kernel.run([Arg::Slice(&g), Arg::Slice(&x)], &mut y);
        line(function.name, &y);
    }
    lines
}

/// Lengths of the slices of all other functions: tails of every vector, and several blocks of a
/// sum.
fn lengths() -> impl Iterator<Item = usize> {
    (0..=40).chain([65, 127, 130, 1100, 2500])
}

/// The lines of all other functions on each level, each over all calls of a function, and one for each path
/// of a product.
fn lines_of_calls(levels: &[Isa]) -> Vec<Vec<String>> {
    let mut hashers: Vec<BTreeMap<String, Sha256>> = vec![BTreeMap::new(); levels.len()];
    let mut add = |line: String, call: Call| {
        for (&isa, hashers) in levels.iter().zip(&mut hashers) {
            let outputs = call.outputs(isa, 0);
            if !outputs.is_empty() {
                let hasher = hashers.entry(line.clone()).or_default();
                outputs.iter().for_each(|y| hasher.update(y));
            }
        }
    };
    for call in lengths().flat_map(calls::every) {
        add(format!("{} {}", call.function, call.dtype), call);
    }
    for call in calls::paths::calls() {
        let path = call.variant.split(' ').next().unwrap_or_default();
        add(format!("{}/{path} {}", call.function, call.dtype), call);
    }
    let line = |(name, hasher)| format!("{name} {}", text(hasher));
    hashers.into_iter().map(|hashers| hashers.into_iter().map(line).collect()).collect()
}

#[test]
fn every_isa_gives_the_recorded_bits() {
    let path = functions::beside_manifest("HASHES.txt");
    let (mut ran, mut other, levels) = (0, Vec::new(), levels());
    let mut of_calls = lines_of_calls(&levels);
    for isa in Isa::ALL.into_iter().rev() {
        let Some(at) = levels.iter().position(|&level| level == isa) else {
            println!("SKIPPED {isa}: this machine lacks it");
            continue;
        };
        let of_functions = || [lines::<f32>("f32"), lines::<f64>("f64")].concat();
        let mut lines = with_isa(isa, of_functions).expect("the level is available");
        lines.append(&mut of_calls[at]);
        if functions::blessing() && ran == 0 {
            fs::write(&path, lines.join("\n") + "\n").expect("the file can be written");
        }
        let record = fs::read_to_string(&path).expect("HASHES.txt");
        let record: Vec<&str> = record.lines().collect();
        assert_eq!(record.len(), lines.len(), "{isa}: HASHES.txt lists other functions");
        let missing = lines.iter().filter(|line| !record.contains(&line.as_str()));
        other.extend(missing.map(|line| format!("{isa}: {line}")));
        ran += 1;
    }
    assert!(ran > 0 && other.is_empty(), "HASHES.txt lacks {other:#?}");
}
