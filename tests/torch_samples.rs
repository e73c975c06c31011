//! PyTorch's own samples of operations beside swath: values and gradients. `tests/vectors/torch_samples.py FOLDER` writes
//! them; `SWATH_TORCH_SAMPLES=FOLDER cargo test --features fft --test torch_samples` compares them.

#[path = "torch_samples/calls.rs"]
mod calls;
#[path = "torch_samples/differences.rs"]
mod differences;
#[path = "torch_samples/sample.rs"]
mod sample;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::Value;
use swath::cpu::prelude::*;
use swath::io::safetensors;

use sample::Call;

#[test]
fn results_and_gradients_are_pytorchs() {
    let Some(folder) = env::var_os("SWATH_TORCH_SAMPLES") else {
        println!("no samples: SWATH_TORCH_SAMPLES names no folder");
        return;
    };
    let wanted = env::var("SWATH_TORCH_OPS").unwrap_or_default();
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "json"));
    files.sort();
    let (mut ops, mut count, mut failed) = (0, 0, Vec::new());
    let (mut explanations, mut all_skipped) = (BTreeMap::new(), 0);
    for file in &files {
        let op = file.file_stem().unwrap().to_str().unwrap();
        if !wanted.is_empty() && !wanted.split_whitespace().any(|name| name == op) {
            continue;
        }
        let (right, wrong) = compare_all(op, file);
        let of = |kind: &str| wrong.iter().filter(|(_, reason)| reason.starts_with(kind)).count();
        let (skipped, explained) = (of("skipped"), of("explained"));
        let differ = wrong.len() - skipped - explained;
        println!(
            "{op}: {right} agree, {explained} are explained, {differ} differ, {skipped} skipped"
        );
        let mut reasons: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for (id, reason) in &wrong {
            let is_explained = reason.starts_with("explained");
            let kind = if is_explained { Some(reason.as_str()) } else { reason.split(':').next() };
            let kind = kind.unwrap_or_default().to_owned();
            let entry = reasons.entry(kind).or_insert((0, *id));
            if entry.0 == 0 && !["skipped", "explained"].iter().any(|kind| reason.starts_with(kind))
            {
                println!("    {id}: {reason}");
            }
            entry.0 += 1;
        }
        for (reason, (count, _)) in reasons {
            println!("    {count} times {reason}");
            if let Some(reason) = reason.strip_prefix("explained, ") {
                *explanations.entry(reason.to_owned()).or_insert(0) += count;
            }
        }
        (ops, count) = (ops + 1, count + right);
        all_skipped += skipped;
        if differ > 0 {
            failed.push(op.to_owned());
        }
    }
    let all_explained: usize = explanations.values().sum();
    println!(
        "{count} samples of {ops} operations agree, {all_explained} differ as explained, {all_skipped} are skipped"
    );
    assert!(failed.is_empty(), "{failed:?}");
    let exceeded = differences::exceeded(&explanations);
    assert!(exceeded.is_empty(), "{exceeded:#?}");
    // Of all of PyTorch 2.15's samples; a call that skips more than it should would show here.
    assert!(
        !wanted.is_empty() || count > 13_000 && all_skipped <= 1683,
        "too few samples are compared"
    );
}

/// Compares the samples of a file: how many agree, and what is wrong with the others.
fn compare_all(op: &str, file: &Path) -> (usize, Vec<(usize, String)>) {
    let samples: Vec<Value> = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let tensors = safetensors::load::<CpuBackend>(file.with_extension("safetensors")).unwrap();
    let (mut right, mut wrong) = (0, Vec::new());
    for (id, sample) in samples.iter().enumerate() {
        match compare(op, id, sample, &tensors) {
            Ok(()) => right += 1,
            Err(reason) => wrong.push((id, reason)),
        }
    }
    (right, wrong)
}

fn compare(
    op: &str,
    id: usize,
    sample: &Value,
    tensors: &BTreeMap<String, Tensor>,
) -> Result<(), String> {
    let call = Call::new(sample, tensors, id, calls::has_axes(op));
    let named = |name: &Value| name.as_str().map(|name| &tensors[name]);
    let results = match calls::call(op, &call) {
        Ok(results) if results.is_empty() => return Err("skipped".to_owned()),
        Ok(results) => results,
        Err(error) => return Err(format!("error: {error} ({})", call.text(sample))),
    };
    let agree = |part: &str, x: &Tensor, expected: &Tensor| match close(x, expected, call.is_f32())
    {
        Ok(()) => Ok(()),
        Err(error) => Err(match differences::reason(op, part, &call) {
            Some(reason) => format!("explained, {reason}"),
            None => format!("{part}: {error} ({})", call.text(sample)),
        }),
    };
    let expected: Vec<&Tensor> =
        sample["results"].as_array().unwrap().iter().filter_map(named).collect();
    if results.len() < expected.len() {
        return Err(format!("{} results instead of {}", results.len(), expected.len()));
    }
    for (at, (result, expected)) in results.iter().zip(&expected).enumerate() {
        let result = &if expected.rank() == 0 { result.reshape(()) } else { Ok(result.clone()) }
            .map_err(|e| format!("result {at}: {e}"))?;
        agree(&format!("result {at}"), result, expected)?;
    }
    let upstream = sample["upstream"].as_array().unwrap();
    let mut loss: Option<Tensor> = None;
    for (result, upstream) in results.iter().zip(upstream) {
        let Some(upstream) = named(upstream).filter(|_| result.is_tracked()) else { continue };
        let part = result
            .reshape(upstream.dims())
            .and_then(|x| x.mul(upstream))
            .and_then(|x| x.to_dtype(DType::F64)?.sum(None, false));
        let part = part.map_err(|e| format!("upstream: {e}"))?;
        loss = Some(match loss {
            Some(loss) => loss.add(&part).unwrap(),
            None => part,
        });
    }
    let Some(gradients) = sample["gradients"].as_array().filter(|list| !list.is_empty()) else {
        return Ok(());
    };
    // A result that depends on no leaf, such as the power 0 of a matrix, has gradients of zero.
    let computed =
        loss.map(|loss| loss.backward().map_err(|e| format!("backward: {e}"))).transpose()?;
    for (at, (leaf, expected)) in call.leaves.iter().zip(gradients).enumerate() {
        let Some(expected) = named(expected) else { continue };
        let zeros = || leaf.detach().zeros_like().unwrap();
        let gradient =
            computed.as_ref().and_then(|all| all.get(leaf)).cloned().unwrap_or_else(zeros);
        agree(&format!("gradient {at}"), &gradient, expected)?;
    }
    Ok(())
}

/// Whether two tensors agree: integers exactly, floats up to rounding of sums as large as the largest elements.
fn close(x: &Tensor, expected: &Tensor, is_f32: bool) -> Result<(), String> {
    if x.dims() != expected.dims() {
        return Err(format!("shape {:?}, expected {:?}", x.dims(), expected.dims()));
    }
    let values = |x: &Tensor| x.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
    let (a, b) = (values(x), values(expected));
    let (relative, absolute) = match expected.dtype() {
        DType::F64 if !is_f32 => (1e-9, 1e-11),
        dtype if dtype.is_float() => (2e-5, 2e-6),
        _ => (0.0, 0.0),
    };
    let largest = b.iter().filter(|b| b.is_finite()).fold(0f64, |most, b| most.max(b.abs()));
    for (i, (&a, &b)) in a.iter().zip(&b).enumerate() {
        let allowed = relative * b.abs() + absolute * largest.max(1.0);
        if !(a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= allowed) {
            return Err(format!("element {i} is {a:e}, expected {b:e}"));
        }
    }
    Ok(())
}
