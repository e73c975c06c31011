//! Text as token ids, split into training and held-out parts.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use swath::prelude::*;

use crate::Failure;
use crate::model::T;

/// A corpus of characters. A token is the index of its character in the sorted vocabulary.
pub struct Corpus {
    vocabulary: Vec<char>,
    pub training: Vec<i64>,
    pub held_out: Vec<i64>,
    files: usize,
}

/// `[batch, context]` inputs, and the characters that follow each of them. Filled anew for each step.
pub struct Batch {
    pub inputs: T,
    pub targets: T,
    starts: Vec<usize>,
}

impl Batch {
    pub fn new(batch: usize, context: usize) -> Result<Self> {
        let zeros = || T::zeros((batch, context), DType::I64);
        Ok(Batch { inputs: zeros()?, targets: zeros()?, starts: vec![0; batch] })
    }

    /// Windows of the text at random places.
    pub fn draw(&mut self, text: &[i64], rng: &mut Rng) -> Result<()> {
        let places = (text.len() - self.inputs.dims()[1]) as u64;
        self.starts.iter_mut().for_each(|start| *start = rng.below(places) as usize);
        self.fill(text)
    }

    /// Windows of the text one after the other, from `first` on; the last one ends with the text.
    pub fn follow(&mut self, text: &[i64], first: usize) -> Result<()> {
        let context = self.inputs.dims()[1];
        let last = text.len() - context - 1;
        for (i, start) in self.starts.iter_mut().enumerate() {
            *start = (first + i * context).min(last);
        }
        self.fill(text)
    }

    fn fill(&mut self, text: &[i64]) -> Result<()> {
        let context = self.inputs.dims()[1];
        for (tensor, shift) in [(&mut self.inputs, 0), (&mut self.targets, 1)] {
            let rows = tensor.as_slice_mut::<i64>()?.chunks_exact_mut(context);
            for (row, &start) in rows.zip(&self.starts) {
                row.copy_from_slice(&text[start + shift..][..context]);
            }
        }
        Ok(())
    }
}

impl Corpus {
    /// Reads files, and the `.rs`, `.md` and `.txt` files of folders; the crate's own source if none are
    /// given.
    ///
    /// Held out is every tenth file by sorted path; of fewer than ten files, the last tenth of their
    /// text. Both parts must hold more than `context` characters.
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
                    "the {name} text has {} characters, at least {} are needed; \
                     give more text with --data",
                    part.len(),
                    context + 2
                )
                .into());
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

    /// The distinct characters, by token.
    pub fn vocabulary(&self) -> &[char] {
        &self.vocabulary
    }

    /// The tokens of a text, or the first character of it that the corpus does not have.
    pub fn encode(&self, text: &str) -> Result<Vec<i64>, char> {
        let token = |c: char| self.vocabulary.binary_search(&c).map(|i| i as i64).map_err(|_| c);
        text.chars().map(token).collect()
    }

    /// What a sample begins with unless told: a line break, or the first character there is.
    pub fn default_prompt(&self) -> Vec<i64> {
        vec![self.vocabulary.binary_search(&'\n').unwrap_or(0) as i64]
    }

    pub fn decode(&self, tokens: &[i64]) -> String {
        tokens.iter().map(|&token| self.vocabulary[token as usize]).collect()
    }

    /// A number that another corpus is unlikely to have.
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

/// The files of these endings below a folder, without hidden folders and build output.
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
