//! [`Header`]: the header of a safetensors file, checked before it is used.
//!
//! ```text
//! file    length of the header (u64, little-endian) | header (JSON) | data
//! header  {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, …,
//!          "__metadata__": {"key": "value", …}}
//! ```
//!
//! Offsets count from the beginning of the data. Sorted by offset, the tensors cover the data
//! without gaps or overlaps.
//!
//! 1. JSON is parsed by a visitor that passes on one tensor after the other and stores none: a
//!    malicious header never becomes a tree many times its size. Parsing again is cheaper than
//!    storing.
//! 2. Checks across tensors store 24 bytes per tensor (offsets and a hash of the name), and are
//!    refused if the file has too little data for that. Entries are made only of a header that has
//!    passed all checks.

use std::borrow::Cow;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use smallvec::SmallVec;

use crate::io::stored::Stored;
use crate::io::{Metadata, Problem, shortened};
use crate::shape::{MAX_RANK, Shape};

/// Key of the metadata in a header.
pub(super) const METADATA: &str = "__metadata__";

/// Largest accepted header in bytes, as in other implementations.
pub(super) const MAX_BYTES: u64 = 100_000_000;

/// A tensor as the header describes it.
#[derive(Clone, Debug)]
pub(super) struct Description {
    /// Type and shape, or why they are not known.
    pub contents: Result<(Stored, Shape), String>,
    /// Byte offsets of the begin and the end of the tensor in the data.
    pub range: [u64; 2],
}

/// A header that has passed all checks.
#[derive(Debug)]
pub(super) struct Header<T> {
    text: T,
    count: usize,
}

impl<T: AsRef<[u8]>> Header<T> {
    /// Checks a header that is followed by `data` bytes of data.
    pub fn check(text: T, data: u64) -> Result<Header<T>, Problem> {
        check_lengths(text.as_ref(), data).map_err(|reason| format!("header: {reason}"))?;
        let mut count = 0;
        walk(text.as_ref(), None, &mut |name, tensor| {
            count += 1;
            tensor.check(data).map_err(|reason| Problem::with(name, reason))
        })?;
        let header = Header { text, count };
        header.check_together(data)?;
        Ok(header)
    }

    /// Number of tensors.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Calls `f` for every tensor, in the order of the header, up to the first error.
    pub fn for_each(
        &self,
        f: &mut dyn FnMut(&str, Description) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        walk(self.text.as_ref(), None, f)
    }

    /// Returns all tensors, in the order of the data.
    pub fn into_entries(self) -> Result<Vec<(String, Description)>, Problem> {
        let mut entries = Vec::with_capacity(self.count);
        self.for_each(&mut |name, tensor| {
            entries.push((name.to_owned(), tensor));
            Ok(())
        })?;
        entries.sort_unstable_by_key(|(_, tensor)| tensor.range);
        Ok(entries)
    }

    /// Returns the metadata.
    pub fn metadata(&self) -> Result<Metadata, Problem> {
        metadata(self.text.as_ref())
    }

    /// Checks that names are distinct and that the tensors cover the data without gaps.
    fn check_together(&self, data: u64) -> Result<(), Problem> {
        let room = 400 * 1024 + data / 2;
        if (self.count * size_of::<Span>()) as u64 > room {
            let reason = format!("{} tensors are more than {data} bytes of data need", self.count);
            return Err(reason.into());
        }
        let mut spans = Vec::with_capacity(self.count);
        self.for_each(&mut |name, tensor| {
            spans.push(Span { range: tensor.range, name: hash(name) });
            Ok(())
        })?;
        spans.sort_unstable_by_key(|span| span.name);
        // Distinct names with equal hashes occur in crafted files only, and are refused too.
        if let Some(pair) = spans.windows(2).find(|pair| pair[0].name == pair[1].name) {
            return Err(Problem::with(
                &self.name_of(pair[0]),
                "there are two tensors of this name",
            ));
        }
        spans.sort_unstable_by_key(|span| span.range);
        let (mut end, mut before) = (0, None);
        for &span in &spans {
            let [begin, next] = span.range;
            if begin < end {
                let other = before.map_or(String::new(), |before| self.name_of(before));
                let reason = format!("its data, from byte {begin} on, overlaps that of `{other}`");
                return Err(Problem::with(&self.name_of(span), reason));
            }
            if begin > end {
                let reason = format!("bytes {end} to {begin} before its data belong to no tensor");
                return Err(Problem::with(&self.name_of(span), reason));
            }
            (end, before) = (next, Some(span));
        }
        if end != data {
            let reason = format!("{} bytes after the last tensor belong to none", data - end);
            return Err(reason.into());
        }
        Ok(())
    }

    fn name_of(&self, span: Span) -> String {
        let mut found = String::new();
        // Cannot fail: the header has been parsed before.
        let _ = self.for_each(&mut |name, tensor| {
            if tensor.range == span.range && hash(name) == span.name {
                found = shortened(name);
            }
            Ok(())
        });
        found
    }
}

/// Returns the metadata of a header.
pub(super) fn metadata(text: &[u8]) -> Result<Metadata, Problem> {
    let mut texts = Metadata::new();
    walk(text, Some(&mut texts), &mut |_, _| Ok(()))?;
    Ok(texts)
}

/// The offsets and name hash of a tensor, for checks across tensors.
#[derive(Clone, Copy)]
struct Span {
    range: [u64; 2],
    /// Hash of the name.
    name: u64,
}

fn hash(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

impl Description {
    /// Checks that the offsets match shape and dtype and lie within the data.
    fn check(&self, data: u64) -> Result<(), String> {
        let [begin, end] = self.range;
        let held = end.checked_sub(begin);
        let bytes = match &self.contents {
            Ok((stored, shape)) => {
                // The error names the shape only; the caller adds the tensor.
                shape.validate("load").map_err(|error| error.to_string())?;
                stored.bytes(shape.numel()).map(|bytes| bytes as u64)
            }
            Err(_) => held,
        };
        if held.is_none() || held != bytes {
            let what = match &self.contents {
                Ok((stored, shape)) => format!("{} of shape {shape}", stored.name()),
                Err(reason) => format!("a tensor ({reason})"),
            };
            return Err(format!(
                "data_offsets [{begin}, {end}] do not hold the elements of {what}"
            ));
        }
        if end > data {
            return Err(format!(
                "its data ends at byte {end}, but the file has {data} bytes of data: is it truncated?"
            ));
        }
        Ok(())
    }
}

/// Refuses texts with escapes, and numbers, that are too long to be unpacked within the memory bound.
pub(super) fn check_lengths(text: &[u8], data: u64) -> Result<(), String> {
    let longest = 128 * 1024 + data / 8;
    const DIGITS: usize = 1000;
    let (mut inside, mut escaped, mut escapes, mut length) = (false, false, false, 0u64);
    let mut digits = 0;
    for &byte in text {
        digits = if !inside && byte.is_ascii_digit() { digits + 1 } else { 0 };
        if digits > DIGITS {
            return Err(format!("a number of more than {DIGITS} digits"));
        }
        match byte {
            _ if escaped => escaped = false,
            b'\\' if inside => (escaped, escapes) = (true, true),
            b'"' => (inside, escapes, length) = (!inside, false, 0),
            _ => {}
        }
        length += 1;
        if inside && escapes && length > longest {
            return Err(format!("a text with escapes of more than {longest} bytes"));
        }
    }
    Ok(())
}

/// Parses a header: passes every tensor to `each` and stores metadata in `texts`, if given.
fn walk<'a>(
    text: &'a [u8],
    texts: Option<&'a mut Metadata>,
    each: &'a mut dyn FnMut(&str, Description) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let mut walk = Walk { each, texts, has_metadata: false, current: None, problem: None };
    let mut json = serde_json::Deserializer::from_slice(text);
    let walked = de::Deserializer::deserialize_map(&mut json, &mut walk);
    match walked.and_then(|()| json.end()) {
        Ok(()) => Ok(()),
        Err(error) => Err(walk.problem.unwrap_or_else(|| {
            let reason = format!("header: {error}");
            match &walk.current {
                Some(name) => Problem::with(name, reason),
                None => reason.into(),
            }
        })),
    }
}

struct Walk<'a> {
    each: &'a mut dyn FnMut(&str, Description) -> Result<(), Problem>,
    texts: Option<&'a mut Metadata>,
    has_metadata: bool,
    /// Name of the tensor being parsed.
    current: Option<Cow<'a, str>>,
    /// Error returned by `each`.
    problem: Option<Problem>,
}

impl<'a> Visitor<'a> for &mut Walk<'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of tensors")
    }

    fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(Text(name)) = map.next_key_seed(TextSeed)? {
            if name == METADATA {
                if std::mem::replace(&mut self.has_metadata, true) {
                    return Err(de::Error::custom("`__metadata__` occurs twice"));
                }
                map.next_value_seed(TextsSeed("`__metadata__`", &mut |key, value| {
                    let Some(texts) = self.texts.as_deref_mut() else { return Ok(()) };
                    match texts.insert(key.into_owned(), value.into_owned()) {
                        None => Ok(()),
                        Some(_) => Err("a key of `__metadata__` occurs twice"),
                    }
                }))?;
                continue;
            }
            let name = self.current.insert(name);
            let tensor = map.next_value_seed(EntrySeed)?;
            if let Err(problem) = (self.each)(name, tensor) {
                self.problem = Some(problem);
                return Err(de::Error::custom("refused"));
            }
            self.current = None;
        }
        Ok(())
    }
}

/// A string, borrowed from the header unless it has escapes.
pub(super) struct Text<'a>(pub Cow<'a, str>);

pub(super) struct TextSeed;

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

/// Passes each text of an object on with its key, up to the first error. Errors name the object.
pub(super) struct TextsSeed<'r>(pub &'static str, pub &'r mut OnText<'r>);

pub(super) type OnText<'r> = dyn FnMut(Cow<'_, str>, Cow<'_, str>) -> Result<(), &'static str> + 'r;

impl<'de> DeserializeSeed<'de> for TextsSeed<'_> {
    type Value = ();

    fn deserialize<D: de::Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for TextsSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object of texts as {}", self.0)
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(Text(key)) = map.next_key_seed(TextSeed)? {
            let Text(value) = map.next_value_seed(TextSeed)?;
            (self.1)(key, value).map_err(de::Error::custom)?;
        }
        Ok(())
    }
}

struct EntrySeed;

impl<'de> DeserializeSeed<'de> for EntrySeed {
    type Value = Description;

    fn deserialize<D: de::Deserializer<'de>>(self, json: D) -> Result<Description, D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for EntrySeed {
    type Value = Description;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with dtype, shape and data_offsets")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Description, M::Error> {
        let (mut dtype, mut shape, mut range) = (None, None, None);
        while let Some(Text(key)) = map.next_key_seed(TextSeed)? {
            let twice = match &*key {
                "dtype" => {
                    let Text(name) = map.next_value_seed(TextSeed)?;
                    let unknown = || format!("no type of elements is named {}", shortened(&name));
                    dtype.replace(Stored::named(&name).ok_or_else(unknown)).is_some()
                }
                "shape" => shape.replace(map.next_value_seed(ShapeSeed)?).is_some(),
                "data_offsets" => range.replace(map.next_value()?).is_some(),
                _ => return Err(de::Error::custom(format_args!("no field `{key}` is known"))),
            };
            if twice {
                return Err(de::Error::custom(format_args!("`{key}` occurs twice")));
            }
        }
        let dtype = dtype.ok_or_else(|| de::Error::missing_field("dtype"))?;
        let shape = shape.ok_or_else(|| de::Error::missing_field("shape"))?;
        let range = range.ok_or_else(|| de::Error::missing_field("data_offsets"))?;
        Ok(Description { contents: dtype.and_then(|dtype| Ok((dtype, shape?))), range })
    }
}

struct ShapeSeed;

impl<'de> DeserializeSeed<'de> for ShapeSeed {
    type Value = Result<Shape, String>;

    fn deserialize<D: de::Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for ShapeSeed {
    type Value = Result<Shape, String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of extents")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<Self::Value, S::Error> {
        let (mut dims, mut fits) = (SmallVec::<[usize; MAX_RANK]>::new(), true);
        while let Some(dim) = seq.next_element::<u64>()? {
            fits = dims.len() < MAX_RANK;
            if fits {
                dims.push(usize::try_from(dim).map_err(de::Error::custom)?);
            }
        }
        Ok(if fits { Ok(Shape::new(dims)) } else { Err(format!("more than {MAX_RANK} axes")) })
    }
}
