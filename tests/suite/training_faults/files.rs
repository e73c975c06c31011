//! Files that lack counters, and files of other formats.

use std::collections::BTreeMap;
use std::fs;

use super::{T, randn, text};
use crate::support::files::Scratch;
use swath::io::safetensors::{self, Metadata, TrainingState};
use swath::nn::{
    self, BatchNorm2d, Dropout, Kind, MultiHeadAttention, MultiHeadAttentionOptions, Sequential,
    TransformerBlock, TransformerBlockOptions, Visit,
};
use swath::optim::{Sgd, SgdOptions};
use swath::prelude::*;

fn block(seed: u64) -> TransformerBlock {
    let options = TransformerBlockOptions { dropout: 0.5, ..Default::default() };
    TransformerBlock::with_options(4, 2, options, &mut Rng::seed(seed)).unwrap()
}

/// The tensors of a model by path, those of integers apart.
fn tensors(model: &dyn Visit<CpuBackend>) -> [BTreeMap<String, T>; 2] {
    let mut found = [BTreeMap::new(), BTreeMap::new()];
    nn::for_each_tensor(model, |path, x, _| {
        found[usize::from(x.dtype() == DType::I64)].insert(path.to_owned(), x.detach());
    });
    found
}

fn values(tensors: &BTreeMap<String, T>) -> Vec<(String, Vec<f64>)> {
    let value = |x: &T| x.to_dtype(DType::F64).unwrap().to_vec().unwrap();
    tensors.iter().map(|(path, x)| (path.clone(), value(x))).collect()
}

/// Checks that a file without counters is loaded, and leaves those of the model; that others are restored.
fn check(name: &str, saved: &dyn Visit<CpuBackend>, loaded: &mut dyn Visit<CpuBackend>) {
    let folder = Scratch::new(name);
    let [floats, counters] = tensors(saved);
    let [_, own] = tensors(loaded);
    assert!(!counters.is_empty());
    let path = folder.0.join("parameters.safetensors");
    safetensors::save(&path, floats.clone(), &Metadata::new()).unwrap();
    safetensors::load_module(&path, loaded).unwrap();
    assert_eq!(tensors(loaded).each_ref().map(values), [&floats, &own].map(values));
    safetensors::restore_module(loaded, floats.clone()).unwrap();
    // As much of the counters as the file has.
    let (first, counter) = counters.iter().next().unwrap();
    let some = floats.clone().into_iter().chain([(first.clone(), counter.clone())]);
    safetensors::save(&path, some, &Metadata::new()).unwrap();
    safetensors::load_module(&path, loaded).unwrap();
    assert_eq!(values(&tensors(loaded)[1])[0], values(&counters)[0]);
    let mut state = TrainingState::new().with_model(saved);
    state.restore_model(loaded).unwrap();
    assert_eq!(values(&tensors(loaded)[1]), values(&counters));
    // A parameter is not optional, nor are running statistics.
    for missing in floats.keys() {
        let mut rest = floats.clone();
        rest.remove(missing);
        let error = text(safetensors::restore_module(loaded, rest));
        assert!(error.contains(missing) && error.contains("the file has not"), "{error}");
    }
}

#[test]
fn counters_are_optional_in_a_file() -> Result<()> {
    let x = randn((3, 2, 4), 1);
    let saved = block(1);
    saved.forward(&x)?;
    check("counters-of-a-block", &saved, &mut block(2));

    let attention = |seed| {
        let options = MultiHeadAttentionOptions { dropout: 0.5, ..Default::default() };
        MultiHeadAttention::with_options(4, 2, options, &mut Rng::seed(seed)).unwrap()
    };
    let saved = attention(1);
    saved.forward(&x)?;
    check("counters-of-attention", &saved, &mut attention(2));

    let norm = BatchNorm2d::<CpuBackend>::new(3)?;
    norm.forward(&randn((2, 3, 2, 2), 2))?;
    check("counters-of-a-norm", &norm, &mut BatchNorm2d::<CpuBackend>::new(3)?);
    Ok(())
}

#[test]
fn counters_are_visited_as_buffers() -> Result<()> {
    let model: Sequential = Sequential::new().push(Dropout::new(0.5, &mut Rng::seed(1))?);
    let mut seen = Vec::new();
    nn::for_each_tensor(&model, |path, _, kind| seen.push((path.to_owned(), kind)));
    let expected = ["0.seed", "0.step"].map(|path| (path.to_owned(), Kind::Buffer));
    assert_eq!(seen, expected);
    Ok(())
}

#[test]
fn a_training_state_is_restored_without_counters() -> Result<()> {
    let folder = Scratch::new("state-without-counters");
    let (saved, mut loaded) = (block(1), block(2));
    let optimizer: Sgd = Sgd::new(SgdOptions::default())?;
    let path = folder.0.join("state.safetensors");
    TrainingState::new().with_model(&saved).with_optimizer(&optimizer)?.save(&path)?;
    let whole = safetensors::load::<CpuBackend>(&path)?;
    let rest = whole.into_iter().filter(|(name, _)| !name.ends_with(".seed"));
    safetensors::save(&path, rest, &Metadata::new())?;
    let mut optimizer: Sgd = Sgd::new(SgdOptions::default())?;
    TrainingState::load(&path)?.restore(&mut loaded, &mut optimizer)?;
    let [saved, loaded] = [&saved, &loaded].map(|model| values(&tensors(model)[0]));
    assert_eq!(loaded, saved);
    Ok(())
}

#[test]
fn a_name_that_is_given_twice_is_not_saved() -> Result<()> {
    let folder = Scratch::new("state-names");
    let path = folder.file();
    let state =
        TrainingState::<CpuBackend>::new().with_counter("step", 1)?.with_counter("step", 2)?;
    let error = text(state.save(&path));
    assert_eq!(error, "TrainingState::save: there are two tensors of the name `counter.step`");
    assert!(!path.exists());
    Ok(())
}

#[test]
fn files_of_other_formats_are_named() {
    let folder = Scratch::new("other-formats");
    let path = folder.0.join("file.safetensors");
    let open = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        text(safetensors::load::<CpuBackend>(&path))
    };
    for (first, expected) in [
        (
            &b"PK\x03\x04\x00\x00\x08\x08"[..],
            "but a zip archive, such as a PyTorch .pt or .bin file",
        ),
        (b"PK\x03\x04\x00\x00\x08\x08", "safetensors.torch.save_file"),
        (b"\x80\x02\x8a\x0al\xfc\x9cF", "but a pickle, such as an old PyTorch .pt or .bin file"),
        (b"\x80\x04\x95\x1f\x00\x00\x00\x00\x00\x00\x00}", "but a pickle"),
        (b"GGUF\x03\x00\x00\x00", "but a GGUF file"),
        (b"\x93NUMPY\x01\x00v\x00", "but a NumPy .npy file"),
        (b"\x89HDF\r\n\x1a\n\x00", "but an HDF5 file"),
        (b"version https://git-lfs", "but a Git LFS pointer"),
        (b"<!DOCTYPE html>", "but a page of HTML"),
        (b"{\"metadata\": {}}", "but JSON"),
        // A file that was cut.
        (b"{\x00\x00\x00\x00\x00\x00\x00{\"a\":", "a header of 123 bytes does not fit"),
        (b"\x80\x02\x00\x00\x00\x00\x00\x00{\"a\":", "a header of 640 bytes does not fit"),
    ] {
        let error = open(&[first, &[1; 32]].concat());
        assert!(error.contains(expected), "{error}");
        assert!(error.contains("file.safetensors"), "{error}");
    }
}
