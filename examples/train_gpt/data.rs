//! Text as token ids, split into training and held-out parts.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use swath::prelude::*;

use crate::Failure;

/// A text as tokens. A token is the index of its character in the sorted vocabulary.
pub struct Corpus {
    vocabulary: Vec<char>,
    pub training: Vec<i64>,
    pub held_out: Vec<i64>,
    files: usize,
}

/// Input tokens `[batch, context]` and target tokens of the same shape: the token that follows each input.
pub struct Batch<B: Backend> {
    pub inputs: Tensor<B>,
    pub targets: Tensor<B>,
}

impl<B: Backend> Batch<B> {
    /// Returns a batch of windows of the text at random positions.
    pub fn draw(text: &[i64], batch: usize, context: usize, rng: &mut Rng) -> Result<Self> {
        let positions = (text.len() - context) as u64;
        Self::at(text, context, (0..batch).map(|_| rng.below(positions) as usize))
    }

    /// Returns a batch of consecutive windows of the text, from `first` on. Windows that would exceed the text are
    /// moved back to end with it.
    pub fn consecutive(text: &[i64], batch: usize, context: usize, first: usize) -> Result<Self> {
        let last = text.len() - context - 1;
        Self::at(text, context, (0..batch).map(|i| (first + i * context).min(last)))
    }

    /// Returns a batch of the windows that start at these tokens; the targets are one token further.
    fn at(text: &[i64], context: usize, starts: impl Iterator<Item = usize>) -> Result<Self> {
        let starts: Vec<usize> = starts.collect();
        let tokens = |shift: usize| {
            let windows = starts.iter().flat_map(|start| &text[start + shift..][..context]);
            Tensor::from_vec(windows.copied().collect(), (starts.len(), context))
        };
        Ok(Batch { inputs: tokens(0)?, targets: tokens(1)? })
    }
}

impl Corpus {
    /// Reads files, and the `.rs`, `.md` and `.txt` files of folders. If none are given, reads this crate's own
    /// source.
    ///
    /// Every tenth file by sorted path is held out. If there are fewer than ten files, the last tenth of their
    /// text is held out. Both parts must have at least `context + 2` characters.
    pub fn load(given: &[PathBuf], context: usize) -> Result<Self, Failure> {
        let mut paths = Vec::new();
        let own = [PathBuf::from(env!("CARGO_MANIFEST_DIR"))];
        let (given, endings): (_, &[&str]) = match given {
            [] => (&own[..], &[".rs", ".md"]),
            _ => (given, &[".rs", ".md", ".txt"]),
        };
        for path in given {
            match path.is_dir() {
                true => find_texts(path, endings, &mut paths)
                    .map_err(|error| format!("cannot read {}: {error}", path.display()))?,
                false => paths.push(path.clone()),
            }
        }
        paths.sort();
        paths.dedup();
        let mut texts = Vec::with_capacity(paths.len());
        for path in &paths {
            let text = fs::read_to_string(path)
                .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
            texts.push(text.chars().collect::<Vec<char>>());
        }
        let (training, held_out) = split(&texts);
        for (part, name) in [(&training, "training"), (&held_out, "held-out")] {
            if part.len() <= context + 1 {
                return Err(format!(
                    "expected at least {} characters of {name} text, got {}; \
                     pass more text with --data",
                    context + 2,
                    part.len()
                )
                .into());
            }
        }
        let mut vocabulary = [training.as_slice(), &held_out].concat();
        vocabulary.sort_unstable();
        vocabulary.dedup();
        let encode = |text: &[char]| -> Vec<i64> {
            // Every character of the text is in the vocabulary.
            text.iter().map(|c| vocabulary.partition_point(|v| v < c) as i64).collect()
        };
        let (training, held_out) = (encode(&training), encode(&held_out));
        Ok(Corpus { vocabulary, training, held_out, files: paths.len() })
    }

    /// Returns the distinct characters; a token is an index into them.
    pub fn vocabulary(&self) -> &[char] {
        &self.vocabulary
    }

    /// Returns the tokens of a text, or as an error its first character that is not in the vocabulary.
    pub fn encode(&self, text: &str) -> Result<Vec<i64>, char> {
        let token = |c: char| self.vocabulary.binary_search(&c).map(|i| i as i64).map_err(|_| c);
        text.chars().map(token).collect()
    }

    /// Returns the default start of a sample: a line break, or the first character of the vocabulary.
    pub fn default_prompt(&self) -> Vec<i64> {
        vec![self.vocabulary.binary_search(&'\n').unwrap_or(0) as i64]
    }

    /// Returns the text of tokens.
    pub fn decode(&self, tokens: &[i64]) -> String {
        tokens.iter().map(|&token| self.vocabulary[token as usize]).collect()
    }

    /// Returns a hash of the vocabulary and the text, by which a resumed run recognises its corpus.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = Sha256::new();
        self.vocabulary.iter().for_each(|&c| hasher.update(u32::from(c).to_le_bytes()));
        for part in [&self.training, &self.held_out] {
            hasher.update((part.len() as u64).to_le_bytes());
            part.iter().for_each(|token| hasher.update(token.to_le_bytes()));
        }
        let digest = hasher.finalize();
        u64::from_le_bytes(std::array::from_fn(|i| digest[i]))
    }
}

impl fmt::Display for Corpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} files, {} training characters, {} held out, {} distinct",
            self.files,
            self.training.len(),
            self.held_out.len(),
            self.vocabulary.len()
        )
    }
}

/// Splits texts into training and held-out parts.
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

/// Finds the files with these endings in a folder and its subfolders, except hidden folders and `target`.
fn find_texts(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if entry.file_type()?.is_dir() {
            if !name.starts_with('.') && name != "target" {
                find_texts(&path, endings, found)?;
            }
        } else if endings.iter().any(|end| name.ends_with(end)) {
            found.push(path);
        }
    }
    Ok(())
}
