//! Files of PyTorch, `.pt`, `.pth` or `.bin`: the tensors that `torch.save` of a `state_dict`, or of a dictionary with
//! such dictionaries in it, has written since PyTorch 1.6.
//!
//! The file is a zip archive of storages and of a pickle that says which tensors use them. Pickles are programs; this
//! module runs none. It knows the instructions that build numbers, texts, tuples, lists and dictionaries, and of the
//! functions that a pickle may call those that make tensors and ordered dictionaries. Anything else is an error.
//!
//! A tensor is named by the keys of the dictionaries that hold it, joined by dots: `model.head.weight`. Lists and other
//! values are not read.

mod pickle;

use std::collections::BTreeMap;
use std::io::{Cursor, Read as _};
use std::ops::Range;
use std::sync::Arc;

use zip::{CompressionMethod, ZipArchive};

use super::mmap::Map;
use super::store::{Data, File, Info, Metadata, Order};
use super::stored::Stored;
use super::{Place, Problem};
use crate::error::Result;
use pickle::Tensor;

/// Longest pickle.
const MAX_PICKLE: u64 = 256 << 20;

/// Lists the tensors of a mapped archive, whose pickle is `pickle`.
pub(super) fn open(place: Place<'_>, map: Arc<Map>, pickle: &str) -> Result<File> {
    let tensors = list(&map, pickle).map_err(|problem| place.problem(problem))?;
    Ok(File::new(place.path, map, tensors, Metadata::new()))
}

/// The name of the pickle in an archive of PyTorch; `None` in another archive.
pub(super) fn pickle_of(map: &Map) -> Option<String> {
    let archive = ZipArchive::new(Cursor::new(map.bytes())).ok()?;
    let mut names = archive.file_names().filter_map(|name| Some(name.ok()?.into_owned()));
    names.find(|name| name.ends_with("/data.pkl"))
}

fn list(map: &Map, pickle: &str) -> std::result::Result<BTreeMap<String, Info>, Problem> {
    let text = |error: &dyn std::fmt::Display| Problem::from(error.to_string());
    let mut archive = ZipArchive::new(Cursor::new(map.bytes())).map_err(|error| text(&error))?;
    let folder = pickle.strip_suffix("data.pkl").unwrap_or_default().to_owned();
    if let Ok(mut order) = archive.by_name(&format!("{folder}byteorder")) {
        let mut name = String::new();
        order.by_ref().take(16).read_to_string(&mut name).map_err(|error| text(&error))?;
        if name != "little" {
            return Err(
                format!("the numbers are in the byte order `{name}`, not little-endian").into()
            );
        }
    }
    let mut program = Vec::new();
    let mut entry = archive.by_name(pickle).map_err(|error| text(&error))?;
    entry.by_ref().take(MAX_PICKLE + 1).read_to_end(&mut program).map_err(|error| text(&error))?;
    if program.len() as u64 > MAX_PICKLE {
        return Err("the pickle is too long".to_owned().into());
    }
    drop(entry);
    let found = pickle::tensors(&program)?;
    let mut tensors = BTreeMap::new();
    for (name, tensor) in found {
        let wrong = |reason: String| Problem::with(&name, reason);
        let mut range_of = |key: &str| -> std::result::Result<Range<usize>, String> {
            let entry = archive
                .by_name(&format!("{folder}data/{key}"))
                .map_err(|error| error.to_string())?;
            let (start, size) = (entry.data_start(), entry.size() as usize);
            match (start.map(|start| start as usize), entry.compression()) {
                (Some(start), CompressionMethod::Stored)
                    if map.bytes().len().checked_sub(start).is_some_and(|rest| rest >= size) =>
                {
                    Ok(start..start + size)
                }
                _ => Err(format!("the storage `{key}` is compressed or beyond the file")),
            }
        };
        let info = tensor.info(range_of(tensor.key).map_err(wrong)?).map_err(wrong)?;
        if tensors.insert(name.clone(), info).is_some() {
            return Err(wrong("there are two tensors of this name".to_owned()));
        }
    }
    Ok(tensors)
}

impl Tensor<'_> {
    fn info(&self, range: Range<usize>) -> std::result::Result<Info, String> {
        let size = self.dtype.size();
        self.layout.check("load", range.len() / size).map_err(|error| error.to_string())?;
        let (shape, order) = (*self.layout.shape(), Order::default());
        let stored = Stored::Of(self.dtype, self.name);
        if !self.layout.is_contiguous() {
            let range = range.start..range.start + range.len() / size * size;
            return Ok(Info {
                stored,
                shape,
                data: Data::Mapped(range),
                order,
                view: Some(self.layout),
            });
        }
        let bytes = stored.bytes(shape.numel()).ok_or("too many elements")?;
        let start =
            if bytes == 0 { range.start } else { range.start + self.layout.offset() * size };
        Ok(Info { stored, shape, data: Data::Mapped(start..start + bytes), order, view: None })
    }
}
