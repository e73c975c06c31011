//! Files of PyTorch, `.pt`, `.pth` or `.bin`: the tensors that `torch.save` of a `state_dict`, or of a dictionary with
//! such dictionaries in it, has written since PyTorch 1.6.
//!
//! The file is a zip archive of storages and of a pickle that says which tensors use them. Pickles are programs; this
//! module runs none. It knows the instructions that build numbers, texts, tuples, lists and dictionaries, and of the
//! functions that a pickle may call those that make tensors and ordered dictionaries. A call of any other is not made: what
//! it would return is [unreadable](File::unreadable). An instruction that is not known is an error.
//!
//! A tensor is named by the keys of the dictionaries that hold it, joined by dots: `model.head.weight`. Lists and other
//! values are not read.

mod pickle;

use std::io::Cursor;
use std::ops::Range;
use std::sync::Arc;

use zip::{CompressionMethod, ZipArchive};

use super::mmap::Map;
use super::store::{Data, File, Info, Listing, Metadata, Order, most_tensors};
use super::{Place, Problem};
use crate::error::Result;
use pickle::Tensor;

/// Lists the tensors of a mapped archive, whose pickle is `pickle`.
pub(super) fn open(place: Place<'_>, map: Arc<Map>, pickle: &str) -> Result<File> {
    let listed = list(&map, pickle).map_err(|problem| place.problem(problem))?;
    Ok(File::new(place.path, map, listed, |_| Metadata::new()))
}

/// The name of the pickle in an archive of PyTorch; `None` in another archive.
pub(super) fn pickle_of(map: &Map) -> Option<String> {
    let archive = ZipArchive::new(Cursor::new(map.bytes())).ok()?;
    let mut names = archive.file_names().filter_map(|name| Some(name.ok()?.into_owned()));
    names.find(|name| name.ends_with("/data.pkl"))
}

fn list(map: &Map, pickle: &str) -> std::result::Result<Listing, Problem> {
    let mut archive =
        ZipArchive::new(Cursor::new(map.bytes())).map_err(|error| error.to_string())?;
    let folder = pickle.strip_suffix("data.pkl").unwrap_or_default();
    // The bytes of an entry, which PyTorch does not compress.
    let mut range_of = |name: &str| -> std::result::Result<Range<usize>, String> {
        let entry = archive.by_name(&format!("{folder}{name}"));
        let entry = entry.map_err(|error| format!("`{name}`: {error}"))?;
        let (start, size) = (entry.data_start().unwrap_or(u64::MAX), entry.size() as usize);
        let (start, all) = (start as usize, map.bytes().len());
        let is_inside = all.checked_sub(start).is_some_and(|rest| rest >= size);
        match entry.compression() == CompressionMethod::Stored && is_inside {
            true => Ok(start..start + size),
            false => Err(format!("`{name}` is compressed or beyond the file")),
        }
    };
    if let Ok(order) = range_of("byteorder").map(|range| &map.bytes()[range])
        && order != b"little"
    {
        return Err("the numbers are big-endian, not little-endian".to_owned().into());
    }
    let program = &map.bytes()[range_of("data.pkl")?];
    let most = most_tensors(map.bytes().len());
    let mut listing = Listing::default();
    for (name, tensor) in pickle::tensors(program, most)? {
        let info =
            tensor.and_then(|tensor| tensor.info(range_of(&format!("data/{}", tensor.key))?));
        listing.insert(name, info)?;
    }
    Ok(listing)
}

impl Tensor<'_> {
    fn info(&self, range: Range<usize>) -> std::result::Result<Info, String> {
        let (layout, stored, order) = (self.layout, self.stored, Order::default());
        let (shape, size) = (*layout.shape(), stored.bytes(1).unwrap_or(1));
        layout.check("load", range.len() / size).map_err(|error| error.to_string())?;
        let (range, view) = match layout.is_contiguous() {
            true => {
                let offset = if shape.numel() == 0 { 0 } else { layout.offset() };
                let start = range.start + offset * size;
                (start..start + shape.numel() * size, None)
            }
            false => (range.start..range.start + range.len() / size * size, Some(Box::new(layout))),
        };
        Ok(Info { stored, shape, data: Data::Mapped(range), order, view })
    }
}
