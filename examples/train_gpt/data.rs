//! Text as token ids, split into training and held-out parts.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use swath::prelude::*;

use crate::model::T;

/// A corpus of characters. A token is the index of its character in the sorted vocabulary.
pub struct Corpus {
    vocabulary: Vec<char>,
    training: Vec<i64>,
    held_out: Vec<i64>,
    files: usize,
}

/// `[batch, context]` inputs, and the characters that follow each of them.
pub struct Batch {
    pub inputs: T,
    pub targets: T,
}

impl Corpus {
    /// Reads the files, or the crate's own source if there are none.
    ///
    /// Held out is every tenth file by sorted path; of fewer than ten files, the last tenth of their
    /// text. Both parts must hold more than `context` characters.
    pub fn load(files: &[PathBuf], context: usize) -> std::result::Result<Self, String> {
        let mut paths = files.to_vec();
        if paths.is_empty() {
            let root = Path::new(env!("CARGO_MANIFEST_DIR"));
            find_sources(root, &mut paths)
                .map_err(|error| format!("cannot read {}: {error}", root.display()))?;
        }
        paths.sort();
        let mut texts = Vec::with_capacity(paths.len());
        for path in &paths {
            let text = fs::read_to_string(path)
                .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
            texts.push(text.chars().collect::<Vec<char>>());
        }
        let (training, held_out) = split(&texts);
        for (part, name) in [(&training, "training"), (&held_out, "held-out")] {
            if part.len() <= context {
                return Err(format!(
                    "the {name} text has {} characters, at least {} are needed; \
                     give more text with --data",
                    part.len(),
                    context + 1
                ));
            }
        }
        let mut vocabulary = [training.as_slice(), &held_out].concat();
        vocabulary.sort_unstable();
        vocabulary.dedup();
        let encode = |text: &[char]| -> Vec<i64> {
            // Every character is in the vocabulary, which was made of this text.
            text.iter().map(|c| vocabulary.partition_point(|v| v < c) as i64).collect()
        };
        let (training, held_out) = (encode(&training), encode(&held_out));
        Ok(Corpus { vocabulary, training, held_out, files: paths.len() })
    }

    /// Number of distinct characters.
    pub fn vocabulary(&self) -> usize {
        self.vocabulary.len()
    }

    pub fn training_batch(&self, batch: usize, context: usize, rng: &mut Rng) -> Result<Batch> {
        windows(&self.training, batch, context, rng)
    }

    pub fn held_out_batch(&self, batch: usize, context: usize, rng: &mut Rng) -> Result<Batch> {
        windows(&self.held_out, batch, context, rng)
    }

    /// What a sample begins with: a line break, or the first character there is.
    pub fn prompt(&self) -> Vec<i64> {
        let start = self.vocabulary.iter().position(|&c| c == '\n').unwrap_or(0);
        vec![start as i64]
    }

    pub fn decode(&self, tokens: &[i64]) -> String {
        tokens.iter().map(|&token| self.vocabulary[token as usize]).collect()
    }
}

impl fmt::Display for Corpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} files, {} characters to learn from, {} held out, {} distinct",
            self.files,
            self.training.len(),
            self.held_out.len(),
            self.vocabulary.len()
        )
    }
}

fn split(texts: &[Vec<char>]) -> (Vec<char>, Vec<char>) {
    if texts.len() < 10 {
        let text = texts.concat();
        let (training, held_out) = text.split_at(text.len() - text.len() / 10);
        return (training.to_vec(), held_out.to_vec());
    }
    let part = |held_out: bool| {
        let chosen = texts.iter().enumerate().filter(|(i, _)| (i % 10 == 9) == held_out);
        chosen.flat_map(|(_, text)| text.iter().copied()).collect()
    };
    (part(false), part(true))
}

/// Windows at random places.
fn windows(tokens: &[i64], batch: usize, context: usize, rng: &mut Rng) -> Result<Batch> {
    let places = (tokens.len() - context) as u64;
    let starts: Vec<usize> = (0..batch).map(|_| rng.below(places) as usize).collect();
    let gather = |shift: usize| {
        let values = starts.iter().flat_map(|&start| &tokens[start + shift..][..context]);
        T::from_vec(values.copied().collect::<Vec<i64>>(), (batch, context))
    };
    Ok(Batch { inputs: gather(0)?, targets: gather(1)? })
}

/// The `.rs` and `.md` files below a folder, without hidden folders and build output.
fn find_sources(folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if entry.file_type()?.is_dir() {
            if !name.starts_with('.') && name != "target" {
                find_sources(&path, found)?;
            }
        } else if name.ends_with(".rs") || name.ends_with(".md") {
            found.push(path);
        }
    }
    Ok(())
}
