//! [`Header`]: what a safetensors file says of its tensors, checked before anything is believed.
//!
//! ```text
//! file    length of the header (u64, little-endian) | header (JSON) | data
//! header  {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, …,
//!          "__metadata__": {"key": "value", …}}
//! ```
//!
//! Offsets count from the beginning of the data. In their order tensors touch: no byte belongs to two or
//! to none.
//!
//! 1. JSON is read by a visitor that keeps names and numbers alone, so that a header never becomes a
//!    tree many times its size.
//! 2. What will be kept is added up while reading, and refused where it exceeds what the size of the data
//!    and the header allow: a file cannot make the reader take more memory than the file's size and
//!    1 MiB, whatever it claims.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use smallvec::SmallVec;

use crate::dtype::DType;
use crate::shape::{MAX_RANK, Shape};

/// Texts beside the tensors.
pub type Metadata = BTreeMap<String, String>;

/// The key under which a header holds texts instead of a tensor.
pub(super) const METADATA: &str = "__metadata__";

/// Largest header that is read, as in other implementations.
pub(super) const MAX_BYTES: u64 = 100_000_000;

/// What a tensor costs beside its data and its name: its record here, twice while the list grows, or
/// its handles and allocations later.
const TENSOR_COST: u64 = 640;
/// What a text costs beside its bytes.
const TEXT_COST: u64 = 128;

/// Names in files and in this crate.
const DTYPES: [(&str, DType); 9] = [
    ("F16", DType::F16),
    ("BF16", DType::BF16),
    ("F32", DType::F32),
    ("F64", DType::F64),
    ("I64", DType::I64),
    ("I32", DType::I32),
    ("U32", DType::U32),
    ("U8", DType::U8),
    ("BOOL", DType::Bool),
];

pub(super) fn dtype_name(dtype: DType) -> &'static str {
    DTYPES.iter().find(|(_, known)| *known == dtype).map_or("", |(name, _)| name)
}

/// A tensor of the file.
#[derive(Debug, PartialEq)]
pub(super) struct Entry {
    pub name: String,
    pub dtype: DType,
    pub shape: Shape,
    /// The first byte of the data that is the tensor's, and the first that is not.
    pub range: [u64; 2],
}

#[derive(Debug, Default, PartialEq)]
pub(super) struct Header {
    /// In the order of the data, which they cover without gaps.
    pub entries: Vec<Entry>,
    pub metadata: Metadata,
}

/// What is wrong, and with which tensor.
#[derive(Debug, PartialEq)]
pub(super) struct Problem {
    pub tensor: Option<String>,
    pub reason: String,
}

impl From<String> for Problem {
    fn from(reason: String) -> Self {
        Problem { tensor: None, reason }
    }
}

impl Header {
    /// Reads and checks a header before `data` bytes of data.
    pub fn parse(text: &[u8], data: u64) -> Result<Header, Problem> {
        check_lengths(text, data)?;
        let mut reader = Reader {
            header: Header::default(),
            current: None,
            has_metadata: false,
            left: 900 * 1024 + data / 2,
        };
        let mut json = serde_json::Deserializer::from_slice(text);
        let read = de::Deserializer::deserialize_map(&mut json, &mut reader);
        if let Err(error) = read.and_then(|()| json.end()) {
            return Err(Problem { tensor: reader.current, reason: format!("header: {error}") });
        }
        let mut header = reader.header;
        header.entries.shrink_to_fit();
        header.check(data)?;
        Ok(header)
    }

    /// Sorts the entries by place and checks that each has the size of its shape and that together they
    /// cover the data.
    fn check(&mut self, data: u64) -> Result<(), Problem> {
        let entries = &mut self.entries;
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        if let Some(pair) = entries.windows(2).find(|pair| pair[0].name == pair[1].name) {
            return Err(pair[0].problem("there are two tensors of this name"));
        }
        for entry in entries.iter() {
            entry.check(data)?;
        }
        entries.sort_unstable_by_key(|entry| entry.range);
        let mut end = 0;
        let mut before: Option<&Entry> = None;
        for entry in entries.iter() {
            let [begin, next] = entry.range;
            if begin < end {
                let other = before.map_or("", |before| &before.name);
                let reason = format!("its data, from byte {begin} on, overlaps that of `{other}`");
                return Err(entry.problem(reason));
            }
            if begin > end {
                let reason = format!("bytes {end} to {begin} before its data belong to no tensor");
                return Err(entry.problem(reason));
            }
            (end, before) = (next, Some(entry));
        }
        if end != data {
            let reason = format!("{} bytes after the last tensor belong to none", data - end);
            return Err(reason.into());
        }
        Ok(())
    }
}

impl Entry {
    fn problem(&self, reason: impl Into<String>) -> Problem {
        Problem { tensor: Some(self.name.clone()), reason: reason.into() }
    }

    fn check(&self, data: u64) -> Result<(), Problem> {
        let [begin, end] = self.range;
        // Names nothing but the shape: the tensor is named around it.
        self.shape.validate("load").map_err(|error| self.problem(error.to_string()))?;
        let elements = self.shape.numel() as u64;
        let bytes = elements.checked_mul(self.dtype.size() as u64);
        if bytes.is_none() || end.checked_sub(begin) != bytes {
            let (dtype, shape) = (self.dtype, self.shape);
            let reason = format!(
                "data_offsets [{begin}, {end}] do not hold the elements of {dtype} of shape {shape}"
            );
            return Err(self.problem(reason));
        }
        if end > data {
            let reason = format!(
                "its data ends at byte {end}, but the file has {data} bytes of data: is it truncated?"
            );
            return Err(self.problem(reason));
        }
        Ok(())
    }
}

/// No single text may be so long that unpacking its escapes takes more memory than is granted.
fn check_lengths(text: &[u8], data: u64) -> Result<(), Problem> {
    let longest = 16 * 1024 + data / 8;
    let (mut inside, mut escaped, mut length) = (false, false, 0u64);
    for &byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if inside => escaped = true,
            b'"' => (inside, length) = (!inside, 0),
            _ => {}
        }
        length += 1;
        if inside && length > longest {
            let reason = format!("header: a text of more than {longest} bytes");
            return Err(reason.into());
        }
    }
    Ok(())
}

/// Goes through the header's keys.
struct Reader {
    header: Header,
    /// The tensor that is being read.
    current: Option<String>,
    has_metadata: bool,
    /// Bytes that may still be kept.
    left: u64,
}

impl Reader {
    fn charge<E: de::Error>(&mut self, bytes: u64) -> Result<(), E> {
        let left = self.left.checked_sub(bytes);
        self.left = left.ok_or_else(|| E::custom("more names and texts than the data is worth"))?;
        Ok(())
    }
}

impl<'de> Visitor<'de> for &mut Reader {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of tensors")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(Text(name)) = map.next_key_seed(TextSeed)? {
            if name == METADATA {
                if std::mem::replace(&mut self.has_metadata, true) {
                    return Err(de::Error::custom("`__metadata__` stands twice"));
                }
                map.next_value_seed(MetadataSeed(self))?;
                continue;
            }
            self.charge(TENSOR_COST + name.len() as u64)?;
            self.current = Some(name.into_owned());
            let (dtype, shape, range) = map.next_value_seed(EntrySeed)?;
            let name = self.current.take().unwrap_or_default();
            self.header.entries.push(Entry { name, dtype, shape, range });
        }
        Ok(())
    }
}

/// A text, borrowed from the header where it has no escapes.
struct Text<'a>(Cow<'a, str>);

struct TextSeed;

impl<'de> DeserializeSeed<'de> for TextSeed {
    type Value = Text<'de>;

    fn deserialize<D: de::Deserializer<'de>>(self, json: D) -> Result<Text<'de>, D::Error> {
        json.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for TextSeed {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(text.to_owned())))
    }
}

struct MetadataSeed<'r>(&'r mut Reader);

impl<'de> DeserializeSeed<'de> for MetadataSeed<'_> {
    type Value = ();

    fn deserialize<D: de::Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for MetadataSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of texts as `__metadata__`")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(Text(key)) = map.next_key_seed(TextSeed)? {
            let Text(value) = map.next_value_seed(TextSeed)?;
            self.0.charge(TEXT_COST + (key.len() + value.len()) as u64)?;
            let twice = self.0.header.metadata.insert(key.into_owned(), value.into_owned());
            if twice.is_some() {
                return Err(de::Error::custom("a key of `__metadata__` stands twice"));
            }
        }
        Ok(())
    }
}

struct EntrySeed;

impl<'de> DeserializeSeed<'de> for EntrySeed {
    type Value = (DType, Shape, [u64; 2]);

    fn deserialize<D: de::Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for EntrySeed {
    type Value = (DType, Shape, [u64; 2]);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with dtype, shape and data_offsets")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let (mut dtype, mut shape, mut range) = (None, None, None);
        while let Some(Text(key)) = map.next_key_seed(TextSeed)? {
            let twice = match &*key {
                "dtype" => {
                    let Text(name) = map.next_value_seed(TextSeed)?;
                    let known = DTYPES.iter().find(|(known, _)| *known == name);
                    let unknown = || de::Error::custom(format_args!("no dtype `{name}` here"));
                    dtype.replace(known.ok_or_else(unknown)?.1).is_some()
                }
                "shape" => shape.replace(map.next_value_seed(ShapeSeed)?).is_some(),
                "data_offsets" => range.replace(map.next_value()?).is_some(),
                _ => return Err(de::Error::custom(format_args!("no field `{key}` is known"))),
            };
            if twice {
                return Err(de::Error::custom(format_args!("`{key}` stands twice")));
            }
        }
        let dtype = dtype.ok_or_else(|| de::Error::missing_field("dtype"))?;
        let shape = shape.ok_or_else(|| de::Error::missing_field("shape"))?;
        let range = range.ok_or_else(|| de::Error::missing_field("data_offsets"))?;
        Ok((dtype, shape, range))
    }
}

struct ShapeSeed;

impl<'de> DeserializeSeed<'de> for ShapeSeed {
    type Value = Shape;

    fn deserialize<D: de::Deserializer<'de>>(self, json: D) -> Result<Shape, D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for ShapeSeed {
    type Value = Shape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of extents")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<Shape, S::Error> {
        let mut dims: SmallVec<[usize; MAX_RANK]> = SmallVec::new();
        while let Some(dim) = seq.next_element::<u64>()? {
            if dims.len() == MAX_RANK {
                let reason = format!("more than {MAX_RANK} axes");
                return Err(de::Error::custom(reason));
            }
            dims.push(usize::try_from(dim).map_err(de::Error::custom)?);
        }
        Ok(Shape::new(dims))
    }
}
