//! [`File`] and [`Files`]: named tensors in memory-mapped files.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::mmap::{Map, Part};
use super::stored::Stored;
use super::{Place, Problem};
use crate::backend::Backend;
use crate::dtype::{DType, IS_LITTLE_ENDIAN};
use crate::error::Result;
use crate::layout::Layout;
use crate::shape::Shape;
use crate::tensor::Tensor;

/// Texts of a file, besides its tensors.
pub type Metadata = BTreeMap<String, String>;

/// Named tensors in a file that is mapped into memory: opening it reads the list of tensors alone, and a tensor is
/// loaded from disk where it is read.
///
/// Tensors keep the file mapped. As with every memory map, nobody may change or shorten the file as long as that is so:
/// values would change under the program, or the system would end it. Replace files instead, as [`replace_file`] does.
///
/// [`replace_file`]: super::replace_file
#[derive(Debug)]
pub struct File {
    path: PathBuf,
    map: Arc<Map>,
    tensors: BTreeMap<String, Info>,
    /// Why other entries cannot be had.
    unreadable: BTreeMap<String, String>,
    /// Read when it is asked for.
    metadata: OnceLock<Metadata>,
    read_metadata: fn(&Arc<Map>) -> Metadata,
    /// Of an archive, for its compressed entries.
    #[cfg(feature = "npy")]
    archive: Option<super::npy::Archive>,
}

/// What a file lists: tensors, and why other entries cannot be had.
#[derive(Default)]
pub(super) struct Listing {
    pub tensors: BTreeMap<String, Info>,
    unreadable: BTreeMap<String, String>,
}

impl Listing {
    /// Adds an entry, whose name must be a new one.
    pub fn insert(
        &mut self,
        name: String,
        info: std::result::Result<Info, String>,
    ) -> std::result::Result<(), Problem> {
        if self.tensors.contains_key(&name) || self.unreadable.contains_key(&name) {
            return Err(Problem::with(&name, "there are two tensors of this name"));
        }
        match info {
            Ok(info) => drop(self.tensors.insert(name, info)),
            Err(reason) => drop(self.unreadable.insert(name, reason)),
        }
        Ok(())
    }
}

/// The number of tensors that a file of this size may list, each of which takes about half a KiB of memory: as many as
/// [`safetensors::load`](super::safetensors::load) accepts.
pub(super) fn most_tensors(bytes: usize) -> usize {
    17_000 + bytes / 512
}

/// What a file says of a tensor.
#[derive(Clone, Debug)]
pub struct Info {
    pub(super) stored: Stored,
    pub(super) shape: Shape,
    pub(super) data: Data,
    /// Where the elements are among those of `data`, if these are not all in order.
    pub(super) view: Option<Box<Layout>>,
    pub(super) order: Order,
}

/// Where the elements are.
#[derive(Clone, Debug)]
pub(super) enum Data {
    /// In these bytes of the file.
    Mapped(Range<usize>),
    /// In an entry of a compressed archive, after `skip` bytes.
    #[cfg_attr(
        not(feature = "npy"),
        allow(dead_code, reason = "the other formats have no archives")
    )]
    Compressed { entry: usize, skip: usize, bytes: usize },
}

/// The order of elements and bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Order {
    /// The first axis is the one with adjacent elements.
    pub is_fortran: bool,
    pub is_big_endian: bool,
}

impl Info {
    /// The type of the elements, if tensors can hold it.
    pub fn dtype(&self) -> Option<DType> {
        self.stored.dtype()
    }

    /// The name of the type in the file: `F32`, `F8_E4M3`, `Q4_0`.
    pub fn dtype_name(&self) -> &'static str {
        self.stored.name()
    }

    /// The shape.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The size, not compressed; of a view that has gaps, that of the storage it is in.
    pub fn bytes(&self) -> usize {
        match &self.data {
            Data::Mapped(range) => range.len(),
            Data::Compressed { bytes, .. } => *bytes,
        }
    }

    /// The shape of the elements as they are stored, of which there are `count`.
    fn stored_shape(&self, count: usize) -> Shape {
        let mut dims = self.shape.dims().to_vec();
        if self.order.is_fortran {
            dims.reverse();
        }
        if self.view.is_some() { Shape::from(count) } else { Shape::from(dims) }
    }

    /// The tensor of the elements as they are stored.
    fn arrange<B: Backend>(&self, x: Tensor<B>) -> Result<Tensor<B>> {
        match &self.view {
            Some(layout) => Ok(Tensor::from_data(B::view(x.data(), **layout)?)),
            None if self.order.is_fortran => x.permute(&(0..x.rank()).rev().collect::<Vec<_>>()),
            None => Ok(x),
        }
    }
}

impl File {
    /// Opens a file of a format whose feature is on: safetensors, GGUF, NumPy's `.npy` and `.npz`, PyTorch's `.pt`.
    ///
    /// ```
    /// use swath::io::{File, safetensors};
    /// use swath::prelude::*;
    /// # let folder = std::env::temp_dir();
    /// let path = folder.join("swath-file.safetensors");
    /// safetensors::save(&path, [("x", tensor![[1.0, 2.0]])], &Default::default())?;
    ///
    /// let file = File::open(&path)?;
    /// assert!(file.names().eq(["x"]));
    /// let info = file.info("x")?;
    /// assert_eq!((info.dtype(), info.shape().dims()), (Some(DType::F32), &[1, 2][..]));
    /// let x: Tensor<CpuBackend> = file.get("x")?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0]);
    /// let x: Tensor<CpuBackend> = file.get_as("x", DType::F64)?;
    /// assert_eq!(x.dtype(), DType::F64);
    /// # std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::File`](crate::Error::File) for a file that cannot be read, is malformed, or is of another format.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let place = Place { op: "File::open", path: path.as_ref() };
        File::of_map(place, Map::open(place)?)
    }

    /// Opens a file whose bytes are in memory, such as those of `include_bytes!`. Errors name it `name`.
    ///
    /// ```
    /// use swath::io::{File, safetensors};
    /// use swath::prelude::*;
    /// # let path = std::env::temp_dir().join("swath-bytes.safetensors");
    /// # safetensors::save(&path, [("x", tensor![1.0])], &Default::default())?;
    /// # let bytes = std::fs::read(&path).unwrap();
    /// let file = File::from_owner("weights", bytes)?;
    /// assert_eq!(file.get::<CpuBackend>("x")?.to_vec::<f32>()?, [1.0]);
    /// # std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`open`](File::open).
    pub fn from_owner(
        name: impl AsRef<Path>,
        bytes: impl AsRef<[u8]> + Send + Sync + 'static,
    ) -> Result<Self> {
        let place = Place { op: "File::from_owner", path: name.as_ref() };
        File::of_map(place, Map::of(bytes))
    }

    fn of_map(place: Place<'_>, map: Arc<Map>) -> Result<Self> {
        match map.bytes() {
            [b'G', b'G', b'U', b'F', ..] => return super::gguf::open(place, map),
            #[cfg(not(feature = "npy"))]
            [0x93, b'N', b'U', b'M', b'P', b'Y', ..] | [b'P', b'K', 3 | 5, 4 | 6, ..] => {
                return Err(place.error(None, "files of NumPy and PyTorch need the feature `npy`"));
            }
            #[cfg(feature = "npy")]
            [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => return super::npy::open(place, map),
            #[cfg(feature = "npy")]
            [b'P', b'K', 3 | 5, 4 | 6, ..] => {
                return match super::pytorch::pickle_of(&map) {
                    Some(pickle) => super::pytorch::open(place, map, &pickle),
                    None => super::npy::open_archive(place, map),
                };
            }
            _ => {}
        }
        super::safetensors::open(place, map)
    }

    pub(super) fn new(
        path: &Path,
        map: Arc<Map>,
        Listing { tensors, unreadable }: Listing,
        read_metadata: fn(&Arc<Map>) -> Metadata,
    ) -> Self {
        File {
            path: path.to_owned(),
            map,
            tensors,
            unreadable,
            metadata: OnceLock::new(),
            read_metadata,
            #[cfg(feature = "npy")]
            archive: None,
        }
    }

    #[cfg(feature = "npy")]
    pub(super) fn with_archive(self, archive: super::npy::Archive) -> Self {
        File { archive: Some(archive), ..self }
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The names of the tensors, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// The names of entries that are no tensors of a known form, such as NumPy's arrays of texts, with the reason.
    pub fn unreadable(&self) -> impl Iterator<Item = (&str, &str)> {
        self.unreadable.iter().map(|(name, reason)| (name.as_str(), reason.as_str()))
    }

    /// The texts of the file.
    pub fn metadata(&self) -> &Metadata {
        self.metadata.get_or_init(|| (self.read_metadata)(&self.map))
    }

    /// What the file says of a tensor.
    ///
    /// # Errors
    /// [`Error::File`](crate::Error::File) if it has no tensor of this name.
    pub fn info(&self, name: &str) -> Result<&Info> {
        self.entry("File::info", name).map(|(_, info)| info)
    }

    /// The bytes of a tensor, as they are in the file or, if it is compressed, in a copy.
    ///
    /// # Errors
    /// [`Error::File`](crate::Error::File) if it has no tensor of this name.
    pub fn bytes(&self, name: &str) -> Result<Cow<'_, [u8]>> {
        let (place, info) = self.entry("File::bytes", name)?;
        self.bytes_of(info).map_err(|reason| place.error(Some(name), reason))
    }

    fn bytes_of(&self, info: &Info) -> std::result::Result<Cow<'_, [u8]>, String> {
        match info.data {
            Data::Mapped(ref range) => Ok(Cow::Borrowed(&self.map.bytes()[range.clone()])),
            #[cfg(feature = "npy")]
            Data::Compressed { entry, skip, bytes } => {
                let archive = self.archive.clone().ok_or("no archive")?;
                super::npy::inflate(archive, entry, skip, bytes).map(Cow::Owned)
            }
            #[cfg(not(feature = "npy"))]
            Data::Compressed { .. } => Err("archives need the feature `npy`".to_owned()),
        }
    }

    /// True if [`get`](File::get) gives a tensor in the file's memory: if its elements have a [`DType`], the machine's
    /// byte order, and an address that is a multiple of their size. Otherwise it is a copy.
    ///
    /// # Errors
    /// [`Error::File`](crate::Error::File) if it has no tensor of this name.
    pub fn is_in_place(&self, name: &str) -> Result<bool> {
        let (_, info) = self.entry("File::is_in_place", name)?;
        let (Some(dtype), Data::Mapped(range)) = (info.dtype(), &info.data) else {
            return Ok(false);
        };
        let start = self.map.bytes()[range.clone()].as_ptr().addr();
        Ok(IS_LITTLE_ENDIAN && !info.order.is_big_endian && start.is_multiple_of(dtype.size()))
    }

    /// A tensor in the file's memory where [`is_in_place`](File::is_in_place) says so, else a copy. On a device with
    /// memory of its own it is a copy.
    ///
    /// # Errors
    /// [`Error::File`](crate::Error::File) if the file has no tensor of this name, if tensors cannot hold its type (see
    /// [`get_as`](File::get_as) and [`bytes`](File::bytes)), or for a byte of a boolean other than 0 and 1.
    pub fn get<B: Backend>(&self, name: &str) -> Result<Tensor<B>> {
        let (place, info) = self.entry("File::get", name)?;
        let Some(dtype) = info.dtype() else {
            let reason = format!(
                "tensors have no elements of type {}: convert with get_as, or read bytes",
                info.dtype_name()
            );
            return Err(place.error(Some(name), reason));
        };
        self.load(name, info, dtype)
    }

    /// The tensor converted to `dtype`: from its own type, or from one that tensors cannot hold.
    ///
    /// # Errors
    /// [`Error::File`](crate::Error::File) as for [`get`](File::get), for types without a conversion.
    pub fn get_as<B: Backend>(&self, name: &str, dtype: DType) -> Result<Tensor<B>> {
        let (place, info) = self.entry("File::get_as", name)?;
        let failed = |error| place.error(Some(name), error);
        if let Some(own) = info.dtype() {
            return self.load(name, info, own)?.to_dtype(dtype).map_err(failed);
        }
        let bytes = self.bytes_of(info).map_err(|reason| place.error(Some(name), reason))?;
        let Some(decoded) = info.stored.decode(&bytes) else {
            let reason = format!("no conversion of type {} to {dtype} is known", info.dtype_name());
            return Err(place.error(Some(name), reason));
        };
        let shape = info.stored_shape(decoded.len());
        let values = Tensor::from_vec(decoded, shape).and_then(|x| info.arrange(x));
        values.and_then(|x| x.to_dtype(dtype)).map_err(failed)
    }

    fn load<B: Backend>(&self, name: &str, info: &Info, dtype: DType) -> Result<Tensor<B>> {
        let place = Place { op: "File::get", path: &self.path };
        let failed = |error| place.error(Some(name), error);
        let shape = info.stored_shape(info.bytes() / dtype.size());
        let mut bytes = self.bytes_of(info).map_err(|reason| place.error(Some(name), reason))?;
        if info.order.is_big_endian {
            bytes.to_mut().chunks_exact_mut(dtype.size()).for_each(<[u8]>::reverse);
        }
        let x = match (&info.data, bytes) {
            (Data::Mapped(range), Cow::Borrowed(_)) => {
                let part = Part { map: self.map.clone(), range: range.clone() };
                Tensor::from_owner_bytes(part, dtype, shape)
            }
            (_, bytes) => Tensor::from_bytes(dtype, shape, &bytes),
        };
        x.and_then(|x| info.arrange(x)).map_err(failed)
    }

    fn entry<'a>(&'a self, op: &'static str, name: &str) -> Result<(Place<'a>, &'a Info)> {
        let place = Place { op, path: &self.path };
        match self.tensors.get(name) {
            Some(info) => Ok((place, info)),
            None => Err(place.error(
                Some(name),
                self.unreadable.get(name).cloned().unwrap_or_else(|| self.lacks(name)),
            )),
        }
    }

    /// Says that there is no tensor of this name, and names those that end alike.
    fn lacks(&self, name: &str) -> String {
        let end = name.rmatch_indices('.').nth(1).map_or(name, |(i, _)| &name[i + 1..]);
        let alike: Vec<&str> = self.names().filter(|other| other.ends_with(end)).take(3).collect();
        match alike.is_empty() {
            true => format!("the file has no such tensor among its {}", self.tensors.len()),
            false => format!("the file has no such tensor, but {}", alike.join(", ")),
        }
    }
}

impl AsRef<[File]> for File {
    fn as_ref(&self) -> &[File] {
        std::slice::from_ref(self)
    }
}

/// Several files of named tensors, such as the shards of one model.
#[derive(Debug)]
pub struct Files(Vec<File>);

impl AsRef<[File]> for Files {
    fn as_ref(&self) -> &[File] {
        &self.0
    }
}

impl Files {
    /// Opens a file, or the files of an index `model.safetensors.index.json` beside it, or those of a folder: of the
    /// index in it if there is one, otherwise all files `*.safetensors`.
    ///
    /// # Errors
    /// [`Error::File`](crate::Error::File) as for [`File::open`]; for an index that is malformed, names files elsewhere
    /// or tensors that its files lack; for a folder without such files; for a tensor in two files.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let place = Place { op: "Files::open", path: path.as_ref() };
        let files = super::safetensors::open_shards(place)?;
        let mut first = BTreeMap::new();
        for file in &files {
            for name in file.names() {
                if let Some(other) = first.insert(name, file.path()) {
                    let reason = format!("it is in {} too", other.display());
                    return Err(Place { path: file.path(), ..place }.error(Some(name), reason));
                }
            }
        }
        Ok(Files(files))
    }

    /// The files.
    pub fn iter(&self) -> impl Iterator<Item = &File> {
        self.0.iter()
    }

    /// The names of all tensors, by file.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(File::names)
    }

    /// The file of a tensor.
    ///
    /// # Errors
    /// [`Error::File`](crate::Error::File) if no file has it.
    pub fn file_of(&self, name: &str) -> Result<&File> {
        let has = |file: &&File| file.tensors.contains_key(name);
        self.0.iter().find(has).ok_or_else(|| match self.0.first() {
            Some(file) => Place { op: "Files::file_of", path: &file.path }
                .error(Some(name), format!("none of {} files has it", self.0.len())),
            None => Place { op: "Files::file_of", path: "no file".as_ref() }
                .error(Some(name), "no files"),
        })
    }

    /// [`File::get`] of the file that has the tensor.
    ///
    /// # Errors
    /// Those of [`File::get`].
    pub fn get<B: Backend>(&self, name: &str) -> Result<Tensor<B>> {
        self.file_of(name)?.get(name)
    }
}
