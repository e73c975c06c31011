//! Files of llama.cpp's format [GGUF](https://github.com/ggml-org/ggml/blob/master/docs/gguf.md), versions 2 and 3:
//! [`File::open`] lists their tensors, [`metadata`] their values.
//!
//! Floats and integers are tensors, quantised blocks are bytes ([`File::bytes`]) of a type that
//! [`Info::dtype_name`](super::Info::dtype_name) names. GGUF lists extents from the innermost; shapes here are row-major
//! as everywhere: a matrix of `[outputs, inputs]`.
//!
//! ```text
//! file    "GGUF" | version | number of tensors | number of values | values | tensors | data
//! value   key | type | content            tensor    name | extents | type | offset in the data
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::mmap::{Map, Part};
use super::store::{Data, File, Info, Listing, Metadata, Order, most_tensors};
use super::stored::{Other, Stored};
use super::{Place, Problem};
use crate::error::Result;
use crate::shape::{MAX_RANK, Shape};

/// Key of the alignment of tensors, in bytes.
const ALIGNMENT: &str = "general.alignment";

/// Deepest nesting of arrays.
const MAX_DEPTH: usize = 8;

/// A value of a GGUF file.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "one variant per type of the format")]
pub enum Value {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    F32(f32),
    U64(u64),
    I64(i64),
    F64(f64),
    Bool(bool),
    Text(String),
    Array(Array),
}

/// An array of values of one type, which stay in the file until they are read.
#[derive(Clone)]
pub struct Array {
    part: Part,
    kind: u32,
    len: u64,
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an array of {} values", self.len)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::U8(x) => x.fmt(f),
            Value::I8(x) => x.fmt(f),
            Value::U16(x) => x.fmt(f),
            Value::I16(x) => x.fmt(f),
            Value::U32(x) => x.fmt(f),
            Value::I32(x) => x.fmt(f),
            Value::F32(x) => x.fmt(f),
            Value::U64(x) => x.fmt(f),
            Value::I64(x) => x.fmt(f),
            Value::F64(x) => x.fmt(f),
            Value::Bool(x) => x.fmt(f),
            Value::Text(x) => x.fmt(f),
            Value::Array(x) => fmt::Debug::fmt(x, f),
        }
    }
}

impl Array {
    /// The number of values.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// True if there are no values.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Reads the values, one after the other.
    pub fn iter(&self) -> impl Iterator<Item = Value> {
        let mut reader = Reader { map: &self.part.map, at: self.part.range.start };
        (0..self.len).map_while(move |_| reader.value(self.kind, 0).ok())
    }
}

/// Reads the values of a file by their keys.
///
/// # Errors
/// [`Error::File`](crate::Error::File).
pub fn metadata(path: impl AsRef<Path>) -> Result<BTreeMap<String, Value>> {
    let place = Place { op: "gguf::metadata", path: path.as_ref() };
    let map = Map::open(place)?;
    let read = || {
        let mut reader = Reader { map: &map, at: 0 };
        let [_, count] = reader.start()?;
        reader.values(count)
    };
    read().map_err(|problem| place.problem(problem))
}

/// Lists the tensors of a mapped file.
pub(super) fn open(place: Place<'_>, map: Arc<Map>) -> Result<File> {
    let listing = list(&map).map_err(|problem| place.problem(problem))?;
    Ok(File::new(place.path, map, listing, texts))
}

/// The values as texts, without arrays.
fn texts(map: &Arc<Map>) -> Metadata {
    let mut reader = Reader { map, at: 0 };
    // The file has been listed before.
    let values = reader.start().map_err(Problem::from).and_then(|[_, count]| reader.values(count));
    let values = values.unwrap_or_default().into_iter();
    let single = values.filter(|(_, value)| !matches!(value, Value::Array(_)));
    single.map(|(key, value)| (key, value.to_string())).collect()
}

/// Lists the tensors, and those of types that are not known, which newer programs may write.
fn list(map: &Arc<Map>) -> std::result::Result<Listing, Problem> {
    let mut reader = Reader { map, at: 0 };
    let [tensor_count, value_count] = reader.start()?;
    let most = most_tensors(map.bytes().len()) as u64;
    if tensor_count.max(value_count) > most {
        return Err(format!("more than {most} tensors or values, for such a file").into());
    }
    let values = reader.values(value_count)?;
    let alignment = match values.get(ALIGNMENT) {
        None => 32,
        Some(Value::U32(alignment)) if alignment.is_power_of_two() => *alignment as usize,
        Some(other) => {
            return Err(format!("{ALIGNMENT} is {other}: expected a power of two").into());
        }
    };
    let mut listing = Listing::default();
    for _ in 0..tensor_count {
        let (name, kind, shape, offset) = reader.tensor()?;
        let Some(stored) = stored(kind) else {
            listing.insert(name, Err(format!("no type of elements has the number {kind}")))?;
            continue;
        };
        let bytes = stored
            .bytes(shape.numel())
            .filter(|_| shape.dims().last().is_none_or(|&n| stored.bytes(n).is_some()));
        let Some(bytes) = bytes else {
            let reason =
                format!("rows of shape {shape} are no whole blocks of type {}", stored.name());
            return Err(Problem::with(&name, reason));
        };
        let data = Data::Mapped(
            offset..offset.checked_add(bytes).ok_or("an offset overflows".to_owned())?,
        );
        let info = Info { stored, shape, data, order: Order::default(), view: None };
        listing.insert(name, Ok(info))?;
    }
    let start = reader.at.next_multiple_of(alignment);
    for (name, info) in &mut listing.tensors {
        let Data::Mapped(range) = &mut info.data else { continue };
        let end = range.end.checked_add(start).filter(|&end| end <= map.bytes().len());
        let Some(end) = end else {
            return Err(Problem::with(name, "its data is beyond the file: is it truncated?"));
        };
        if !range.start.is_multiple_of(alignment) {
            return Err(Problem::with(name, format!("its offset is no multiple of {alignment}")));
        }
        *range = range.start + start..end;
    }
    Ok(listing)
}

/// The type of a number in files.
fn stored(kind: u32) -> Option<Stored> {
    const NAMES: [(u32, &str); 8] = [
        (0, "F32"),
        (1, "F16"),
        (24, "I8"),
        (25, "I16"),
        (26, "I32"),
        (27, "I64"),
        (28, "F64"),
        (30, "BF16"),
    ];
    let known = NAMES.iter().find(|(number, _)| *number == kind);
    let others = || BLOCKS.iter().find(|(number, _)| *number == kind);
    known
        .and_then(|(_, name)| Stored::named(name))
        .or_else(|| others().map(|(_, other)| Stored::Other(other)))
}

/// Blocks of quantised elements, with their numbers.
static BLOCKS: [(u32, Other); 26] = {
    const fn row(number: u32, name: &'static str, elements: usize, bytes: usize) -> (u32, Other) {
        (number, Other { name, block: [elements, bytes], value: None })
    }
    [
        row(2, "Q4_0", 32, 18),
        row(3, "Q4_1", 32, 20),
        row(6, "Q5_0", 32, 22),
        row(7, "Q5_1", 32, 24),
        row(8, "Q8_0", 32, 34),
        row(9, "Q8_1", 32, 36),
        row(10, "Q2_K", 256, 84),
        row(11, "Q3_K", 256, 110),
        row(12, "Q4_K", 256, 144),
        row(13, "Q5_K", 256, 176),
        row(14, "Q6_K", 256, 210),
        row(15, "Q8_K", 256, 292),
        row(16, "IQ2_XXS", 256, 66),
        row(17, "IQ2_XS", 256, 74),
        row(18, "IQ3_XXS", 256, 98),
        row(19, "IQ1_S", 256, 50),
        row(20, "IQ4_NL", 32, 18),
        row(21, "IQ3_S", 256, 110),
        row(22, "IQ2_S", 256, 82),
        row(23, "IQ4_XS", 256, 136),
        row(29, "IQ1_M", 256, 56),
        row(34, "TQ1_0", 256, 54),
        row(35, "TQ2_0", 256, 66),
        row(39, "MXFP4", 32, 17),
        row(40, "NVFP4", 64, 36),
        row(41, "Q1_0", 128, 18),
    ]
};

/// Reads a file from front to back.
struct Reader<'a> {
    map: &'a Arc<Map>,
    at: usize,
}

type Read<T> = std::result::Result<T, String>;

macro_rules! numbers {
    ($($method:ident $t:ty;)*) => {$(
        fn $method(&mut self) -> Read<$t> {
            let bytes = self.take(size_of::<$t>())?;
            Ok(<$t>::from_le_bytes(bytes.try_into().expect("as many bytes were taken")))
        }
    )*};
}

impl<'a> Reader<'a> {
    numbers! { u32 u32; u64 u64; }

    fn take(&mut self, count: usize) -> Read<&'a [u8]> {
        let rest = &self.map.bytes()[self.at..];
        let bytes =
            rest.get(..count).ok_or_else(|| "the file ends within its header".to_owned())?;
        self.at += count;
        Ok(bytes)
    }

    /// Reads magic and version; returns the number of tensors and of values.
    fn start(&mut self) -> Read<[u64; 2]> {
        if self.take(4)? != b"GGUF" {
            return Err("it is no GGUF file".to_owned());
        }
        match self.u32()? {
            2 | 3 => {}
            version => return Err(format!("version {version} of GGUF is not known: 2 and 3 are")),
        }
        let counts = [self.u64()?, self.u64()?];
        // A tensor takes 24 bytes at least, a value 12.
        let rest = (self.map.bytes().len() - self.at) as u64;
        if counts[0] > rest / 24 || counts[1] > rest / 12 {
            return Err(format!(
                "{} tensors and {} values do not fit in the file",
                counts[0], counts[1]
            ));
        }
        Ok(counts)
    }

    fn text(&mut self) -> Read<&'a str> {
        let count = usize::try_from(self.u64()?).map_err(|error| error.to_string())?;
        std::str::from_utf8(self.take(count)?).map_err(|error| error.to_string())
    }

    fn values(&mut self, count: u64) -> std::result::Result<BTreeMap<String, Value>, Problem> {
        let mut values = BTreeMap::new();
        for _ in 0..count {
            let key = self.text()?.to_owned();
            let mut value = || {
                let kind = self.u32()?;
                self.value(kind, 0)
            };
            let value =
                value().map_err(|reason| Problem::from(format!("value `{key}`: {reason}")))?;
            if let Some(_twice) = values.insert(key.clone(), value) {
                return Err(format!("there are two values of the key `{key}`").into());
            }
        }
        Ok(values)
    }

    fn value(&mut self, kind: u32, depth: usize) -> Read<Value> {
        macro_rules! number {
            ($Variant:ident $t:ty) => {{
                let bytes = self.take(size_of::<$t>())?;
                Value::$Variant(<$t>::from_le_bytes(
                    bytes.try_into().expect("as many bytes were taken"),
                ))
            }};
        }
        Ok(match kind {
            0 => number!(U8 u8),
            1 => number!(I8 i8),
            2 => number!(U16 u16),
            3 => number!(I16 i16),
            4 => number!(U32 u32),
            5 => number!(I32 i32),
            6 => number!(F32 f32),
            7 => match self.take(1)?[0] {
                byte @ (0 | 1) => Value::Bool(byte == 1),
                byte => return Err(format!("invalid bool byte {byte}: expected 0 or 1")),
            },
            8 => Value::Text(self.text()?.to_owned()),
            9 => self.array(depth)?,
            10 => number!(U64 u64),
            11 => number!(I64 i64),
            12 => number!(F64 f64),
            _ => return Err(format!("no type of value has the number {kind}")),
        })
    }

    fn array(&mut self, depth: usize) -> Read<Value> {
        if depth == MAX_DEPTH {
            return Err(format!("arrays are nested more than {MAX_DEPTH} deep"));
        }
        let (kind, len) = (self.u32()?, self.u64()?);
        let start = self.at;
        match kind {
            0 | 1 | 2 | 3 | 4 | 5 | 6 | 10 | 11 | 12 => {
                let size = [1, 1, 2, 2, 4, 4, 4, 0, 0, 0, 8, 8, 8][kind as usize];
                let bytes = usize::try_from(len).ok().and_then(|len| len.checked_mul(size));
                self.take(bytes.ok_or("an array is too long")?)?;
            }
            // A text takes 8 bytes at least, an array 12: the loop ends with the file.
            8 => (0..len).try_for_each(|_| self.text().map(drop))?,
            7 | 9 => (0..len).try_for_each(|_| self.value(kind, depth + 1).map(drop))?,
            _ => return Err(format!("no type of value has the number {kind}")),
        }
        let part = Part { map: self.map.clone(), range: start..self.at };
        Ok(Value::Array(Array { part, kind, len }))
    }

    /// Reads name, number of the type, shape and offset of a tensor.
    fn tensor(&mut self) -> std::result::Result<(String, u32, Shape, usize), Problem> {
        let name = self.text()?.to_owned();
        let mut rest = || -> Read<(u32, Shape, usize)> {
            let rank = self.u32()? as usize;
            if rank > MAX_RANK {
                return Err(format!("more than {MAX_RANK} axes"));
            }
            let mut dims = Vec::with_capacity(rank);
            for _ in 0..rank {
                dims.push(usize::try_from(self.u64()?).map_err(|error| error.to_string())?);
            }
            dims.reverse();
            let shape = Shape::from(dims);
            shape.validate("gguf").map_err(|error| error.to_string())?;
            let kind = self.u32()?;
            let offset = usize::try_from(self.u64()?).map_err(|error| error.to_string())?;
            Ok((kind, shape, offset))
        };
        let (kind, shape, offset) = rest().map_err(|reason| Problem::with(&name, reason))?;
        Ok((name, kind, shape, offset))
    }
}
