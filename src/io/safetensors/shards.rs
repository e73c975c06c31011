//! Models in several files: the index `model.safetensors.index.json` names the file of each tensor.
//!
//! ```text
//! {"metadata": {"total_size": 4096}, "weight_map": {"name of a tensor": "name of a file beside the index", …}}
//! ```

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};

use super::header::{OnText, Text, TextSeed, TextsSeed, check_lengths};
use super::write;
use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::io::atomic::replace;
use crate::io::{File, MAX_NAME, Metadata, Place};
use crate::tensor::Tensor;

const INDEX: &str = "model.safetensors.index.json";

/// Longest index in bytes, that of a few hundred thousand tensors.
const MAX_INDEX: u64 = 32 << 20;

/// Writes named tensors to a folder, in files of at most `max_bytes` of data each, and an index of them. A tensor that
/// is larger has a file of its own. [`Files::open`](crate::io::Files::open) reads the folder, as other programs do.
///
/// The index is replaced last and atomically: until then the folder has the model that it had. The files of that model
/// are removed afterwards; new files are `model-00001-of-00003.safetensors` and so on, or `model-2-00001-…` where the
/// folder has such a file already.
///
/// ```
/// use swath::io::{Files, safetensors};
/// use swath::prelude::*;
/// # let folder = std::env::temp_dir().join("swath-sharded");
/// let tensors = [("a", tensor![1.0, 2.0]), ("b", tensor![3.0]), ("c", tensor![4.0])];
/// safetensors::save_sharded(&folder, tensors, 8, &Default::default())?;
/// let files = Files::open(&folder)?;
/// assert_eq!(files.iter().count(), 2);
/// assert_eq!(files.get::<CpuBackend>("c")?.to_vec::<f32>()?, [4.0]);
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::File`] if a file cannot be written, [`Error::InvalidArgument`] for a duplicate name, or the name
/// `__metadata__`. New files are then removed.
pub fn save_sharded<B: Backend>(
    folder: impl AsRef<Path>,
    tensors: impl IntoIterator<Item = (impl Into<String>, Tensor<B>)>,
    max_bytes: u64,
    metadata: &Metadata,
) -> Result<()> {
    let folder = folder.as_ref();
    let place = Place { op: "safetensors::save_sharded", path: folder };
    let mut sorted = BTreeMap::new();
    for (name, tensor) in tensors {
        let name = name.into();
        if sorted.insert(name.clone(), tensor).is_some() {
            let reason = format!("there are two tensors of the name `{name}`");
            return Err(Error::InvalidArgument { op: "save_sharded", reason });
        }
    }
    let (mut parts, mut total, mut room) = (Vec::new(), 0, 0);
    for (name, tensor) in sorted {
        let bytes = (tensor.numel() * tensor.dtype().size()) as u64;
        if bytes > room || parts.is_empty() {
            parts.push(Vec::new());
            room = max_bytes;
        }
        room = room.saturating_sub(bytes);
        total += bytes;
        parts.last_mut().expect("a part has been pushed").push((name, tensor));
    }
    fs::create_dir_all(folder).map_err(|error| place.cannot_write(error))?;
    let index = Place { path: &folder.join(INDEX), ..place };
    let listed = || -> Result<BTreeSet<PathBuf>> {
        Ok(open_index(index)?.iter().map(|file| file.path().to_owned()).collect())
    };
    let old = listed().unwrap_or_default();
    let count = parts.len();
    let names = (1..).map(|version| {
        let version = if version == 1 { String::new() } else { format!("{version}-") };
        let name = |i: usize| format!("model-{version}{i:05}-of-{count:05}.safetensors");
        (1..=count).map(name).collect::<Vec<_>>()
    });
    let is_free = |names: &Vec<String>| names.iter().all(|name| !folder.join(name).exists());
    let names = names.into_iter().find(is_free).unwrap_or_default();
    let mut map = serde_json::Map::new();
    let save = || {
        for (part, file) in parts.into_iter().zip(&names) {
            map.extend(part.iter().map(|(name, _)| (name.clone(), file.as_str().into())));
            write(Place { path: &folder.join(file), ..place }, part, metadata)?;
        }
        let text = serde_json::json!({"metadata": {"total_size": total}, "weight_map": map});
        replace(index, |file| {
            file.write_all(format!("{text:#}\n").as_bytes()).map_err(|e| index.cannot_write(e))
        })
    };
    let saved = save();
    // Of both models the one that the index does not name. An error after the index was replaced leaves the new one.
    let named = if index.path.exists() { listed() } else { Ok(BTreeSet::new()) };
    if let Ok(named) = named {
        // Files of other names may be someone else's.
        let is_ours = |file: &PathBuf| {
            let name = file.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with("model-") && name.contains("-of-"))
        };
        let files =
            names.iter().map(|name| folder.join(name)).chain(old.into_iter().filter(is_ours));
        files.filter(|file| !named.contains(file)).for_each(|file| drop(fs::remove_file(file)));
    }
    saved
}

/// Opens the files that [`Files::open`](crate::io::Files::open) finds for a path, sorted by name.
pub(in crate::io) fn open_shards(place: Place<'_>) -> Result<Vec<File>> {
    let path = place.path;
    if !path.is_dir() {
        return match path.extension().is_some_and(|end| end == "json") {
            true => open_index(place),
            false => Ok(vec![File::open(path)?]),
        };
    }
    let index = path.join(INDEX);
    if index.exists() {
        return open_index(Place { path: &index, ..place });
    }
    let failed = |error| place.cannot_read(error);
    let mut files = BTreeSet::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        if file.extension().is_some_and(|end| end == "safetensors") {
            files.insert(file);
        }
    }
    // Of a set of shards that was not written to its end, or not copied, there may be a part.
    let missing = files.iter().find_map(|file| {
        let (start, count) = file.file_stem()?.to_str()?.rsplit_once("-of-")?;
        let (start, _) = start.rsplit_once('-')?;
        let name = |i: usize| format!("{start}-{i:0$}-of-{count}.safetensors", count.len());
        let all = 1..=count.parse::<usize>().ok()?;
        all.map(name).take(files.len() + 1).find(|name| !files.contains(&path.join(name)))
    });
    if let Some(name) = missing {
        return Err(place.error(None, format_args!("{name} is missing, and there is no {INDEX}")));
    }
    match files.is_empty() {
        true => {
            Err(place.error(None, format_args!("the folder has neither {INDEX} nor *.safetensors")))
        }
        false => files.iter().map(File::open).collect(),
    }
}

/// Opens the files of an index, which must be beside it and have the tensors that it says.
fn open_index(place: Place<'_>) -> Result<Vec<File>> {
    let failed = |reason: String| place.error(None, format!("index: {reason}"));
    let size = fs::metadata(place.path).map_err(|error| place.cannot_read(error))?.len();
    if size > MAX_INDEX {
        return Err(failed(format!("{size} bytes are more than {MAX_INDEX}")));
    }
    let text = fs::read(place.path).map_err(|error| place.cannot_read(error))?;
    check_lengths(&text, 0).map_err(failed)?;
    let folder = place.path.parent().unwrap_or(Path::new(""));
    let (mut files, mut problem) = (BTreeMap::<String, File>::new(), None);
    let mut each = |name: &str, file: &str| {
        // Longer names are no file's, and would make long messages.
        if file.len() > MAX_NAME || Path::new(file).file_name() != Some(file.as_ref()) {
            let reason = "expected the name of a file beside the index";
            return Err(place.error(Some(name), reason));
        }
        if !files.contains_key(file) {
            files.insert(file.to_owned(), File::open(folder.join(file))?);
        }
        let reason = |_| place.error(Some(name), format_args!("it is not in {file}"));
        files[file].info(name).map(drop).map_err(reason)
    };
    let mut json = serde_json::Deserializer::from_slice(&text);
    let index = Index(&mut |name, file| {
        each(&name, &file).map_err(|error| {
            problem = Some(error);
            "refused"
        })
    });
    let walked = Deserializer::deserialize_map(&mut json, index).and_then(|()| json.end());
    walked.map_err(|error| problem.unwrap_or_else(|| failed(error.to_string())))?;
    Ok(files.into_values().collect())
}

/// Passes each tensor of an index on with the name of its file: nothing is stored.
struct Index<'r>(&'r mut OnText<'r>);

impl<'de> Visitor<'de> for Index<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with the object `weight_map`")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        let mut has_files = false;
        while let Some(Text(key)) = map.next_key_seed(TextSeed)? {
            if key == "weight_map" {
                has_files = true;
                let mut each = |name: Cow<'_, str>, file: Cow<'_, str>| (self.0)(name, file);
                map.next_value_seed(TextsSeed("`weight_map`", &mut each))
                    .map_err(|error| M::Error::custom(format_args!("`weight_map`: {error}")))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        match has_files {
            true => Ok(()),
            false => Err(M::Error::missing_field("weight_map")),
        }
    }
}
