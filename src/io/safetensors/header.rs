//! What a file says it holds.
//!
//! ```text
//! file    = length of the header (8 bytes, little-endian), header (JSON), data
//! header  = {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, …}
//! ```
//!
//! 1. Nothing is believed: lengths are checked against the file's before memory is asked for, every
//!    tensor's bytes against its shape, and all of them must cover the data once, without gaps.
//! 2. The text is kept and entries are found in it again by their place: a parsed copy of a hostile
//!    header could be several times as large as the file.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Read};

use safetensors::tensor::{Dtype, TensorInfo};
use serde::Deserializer as _;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::dtype::DType;
use crate::shape::{MAX_RANK, Shape};

/// A longer header is refused; that of a model of 100,000 tensors is shorter.
const MAX_HEADER_BYTES: u64 = 8 << 20;

/// Not the name of a tensor.
const METADATA: &str = "__metadata__";

/// Why a file is refused; the tensor at fault, if there is one.
#[derive(Debug)]
pub(super) struct Refused {
    pub tensor: Option<String>,
    pub reason: String,
}

impl Refused {
    pub fn file(reason: impl Into<String>) -> Self {
        Refused { tensor: None, reason: reason.into() }
    }

    fn tensor(name: &str, reason: impl Into<String>) -> Self {
        // A hostile name may be as long as the file.
        let name = name.chars().take(200).collect();
        Refused { tensor: Some(name), reason: reason.into() }
    }
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Refused::file(error.to_string())
    }
}

/// A tensor as the header describes it: checked.
pub(super) struct Entry<'a> {
    pub name: Cow<'a, str>,
    pub dtype: DType,
    pub shape: Shape,
    /// Where its bytes are in the data.
    pub begin: u64,
    pub end: u64,
}

/// A checked header.
pub(super) struct Header {
    text: String,
    /// Where the entries' keys begin and their values end in the text, by rising place of the data.
    places: Vec<[u32; 2]>,
}

impl Header {
    /// Reads and checks the header of a file of `length` bytes; the reader stands at the data then.
    pub fn read(file: &mut impl Read, length: u64) -> Result<Self, Refused> {
        let mut bytes = [0u8; 8];
        if length < 8 {
            return Err(Refused::file(format!(
                "{length} bytes are too few for a safetensors file"
            )));
        }
        file.read_exact(&mut bytes)?;
        let size = u64::from_le_bytes(bytes);
        if size > length - 8 {
            let reason = format!("a header of {size} bytes in a file of {length}");
            return Err(Refused::file(reason));
        }
        if size > MAX_HEADER_BYTES {
            let reason = format!("a header of {size} bytes; at most {MAX_HEADER_BYTES} are read");
            return Err(Refused::file(reason));
        }
        let mut text = vec![0u8; size as usize];
        file.read_exact(&mut text)?;
        let text = String::from_utf8(text)
            .map_err(|_| Refused::file("the header is not text in UTF-8"))?;
        let mut header = Header { places: places(&text)?, text };
        header.check(length - 8 - size)?;
        Ok(header)
    }

    /// The tensors, in the order of their data.
    pub fn entries(&self) -> impl Iterator<Item = Result<Entry<'_>, Refused>> {
        self.places.iter().map(|&place| self.entry(place))
    }

    fn entry(&self, [begin, end]: [u32; 2]) -> Result<Entry<'_>, Refused> {
        let text = &self.text[begin as usize..end as usize];
        let (key, value) = split_pair(text)?;
        let info: TensorInfo = serde_json::from_str(value)
            .map_err(|error| Refused::tensor(&key, format!("its description: {error}")))?;
        let refuse = |reason: String| Refused::tensor(&key, reason);
        let Some(dtype) = dtype_of(info.dtype) else {
            return Err(refuse(format!("dtype {:?} is not supported", info.dtype)));
        };
        if info.shape.len() > MAX_RANK {
            return Err(refuse(format!(
                "{} axes, at most {MAX_RANK} are supported",
                info.shape.len()
            )));
        }
        let product = |total: usize, &dim: &usize| total.checked_mul(dim);
        let bytes = info.shape.iter().try_fold(dtype.size(), product);
        let (begin, end) = info.data_offsets;
        let Some(bytes) = bytes.filter(|&bytes| bytes <= isize::MAX as usize) else {
            return Err(refuse(format!("shape {:?} is beyond memory", info.shape)));
        };
        if begin > end || end - begin != bytes {
            return Err(refuse(format!(
                "bytes {begin}..{end} for shape {:?} of {dtype}, which takes {bytes}",
                info.shape
            )));
        }
        let shape = Shape::from(info.shape);
        Ok(Entry { name: key, dtype, shape, begin: begin as u64, end: end as u64 })
    }

    /// Names differ, and the tensors' bytes follow one another through all of the data.
    fn check(&mut self, data: u64) -> Result<(), Refused> {
        let mut places = std::mem::take(&mut self.places);
        let mut failure = None;
        for &place in &places {
            failure = failure.or(self.entry(place).err());
        }
        if let Some(failure) = failure {
            return Err(failure);
        }
        let by_name = |place: &[u32; 2]| self.entry(*place).map(|entry| entry.name).ok();
        places.sort_unstable_by(|a, b| by_name(a).cmp(&by_name(b)));
        for pair in places.windows(2) {
            if by_name(&pair[0]) == by_name(&pair[1]) {
                let name = by_name(&pair[0]).unwrap_or_default();
                return Err(Refused::tensor(&name, "is there twice"));
            }
        }
        let span = |place: &[u32; 2]| self.entry(*place).map(|e| (e.begin, e.end)).ok();
        places.sort_unstable_by_key(|place| (span(place), *place));
        let mut filled = 0;
        for &place in &places {
            let entry = self.entry(place)?;
            let (begin, end) = (entry.begin, entry.end);
            let reason = match () {
                () if end > data => format!("bytes {begin}..{end} of {data} that the file has"),
                () if begin < filled => {
                    format!("bytes {begin}..{end} overlap those before, which end at {filled}")
                }
                () if begin > filled => {
                    format!("bytes {begin}..{end} leave a gap after {filled}")
                }
                () => {
                    filled = end;
                    continue;
                }
            };
            return Err(Refused::tensor(&entry.name, reason));
        }
        if filled != data {
            return Err(Refused::file(format!(
                "{filled} bytes are described, the file has {data}"
            )));
        }
        self.places = places;
        Ok(())
    }
}

/// The dtypes that both know.
const DTYPES: [(Dtype, DType); 9] = [
    (Dtype::F16, DType::F16),
    (Dtype::BF16, DType::BF16),
    (Dtype::F32, DType::F32),
    (Dtype::F64, DType::F64),
    (Dtype::I64, DType::I64),
    (Dtype::U8, DType::U8),
    (Dtype::BOOL, DType::Bool),
    (Dtype::I32, DType::I32),
    (Dtype::U32, DType::U32),
];

fn dtype_of(dtype: Dtype) -> Option<DType> {
    DTYPES.iter().find(|(theirs, _)| *theirs == dtype).map(|&(_, ours)| ours)
}

/// The format's name of a dtype.
pub(super) fn format_dtype(dtype: DType) -> Dtype {
    let found = DTYPES.iter().find(|(_, ours)| *ours == dtype);
    found.expect("every dtype is in the table").0
}

/// The key and the value of `"key": value`, which was found to be JSON.
fn split_pair(text: &str) -> Result<(Cow<'_, str>, &str), Refused> {
    let bytes = text.as_bytes();
    let mut end = 1;
    while end < bytes.len() && bytes[end] != b'"' {
        end += if bytes[end] == b'\\' { 2 } else { 1 };
    }
    let parts = text.get(..=end).zip(text.get(end + 1..)).and_then(|(key, rest)| {
        let inner = key.strip_prefix('"')?.strip_suffix('"')?;
        let key = match inner.contains('\\') {
            true => Cow::Owned(serde_json::from_str::<String>(key).ok()?),
            false => Cow::Borrowed(inner),
        };
        Some((key, rest.trim_start().strip_prefix(':')?))
    });
    parts.ok_or_else(|| Refused::file("a name in the header is no text"))
}

/// Where the pairs of the header's object are, all but the metadata.
fn places(text: &str) -> Result<Vec<[u32; 2]>, Refused> {
    struct Places<'a> {
        text: &'a str,
        /// As many as there can be: nothing grows, and so nothing is there twice.
        places: Vec<[u32; 2]>,
    }
    impl<'a> Visitor<'a> for Places<'a> {
        type Value = Vec<[u32; 2]>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object of tensors by name")
        }

        fn visit_map<A: MapAccess<'a>>(mut self, mut map: A) -> Result<Self::Value, A::Error> {
            let base = self.text.as_ptr().addr();
            while let Some(key) = map.next_key::<&'a RawValue>()? {
                let value = map.next_value::<&'a RawValue>()?;
                let begin = key.get().as_ptr().addr() - base;
                let end = value.get().as_ptr().addr() - base + value.get().len();
                if key.get().trim_matches('"') != METADATA {
                    self.places.push([begin as u32, end as u32]);
                }
            }
            Ok(self.places)
        }
    }
    // The shortest entry: "":{"dtype":"U8","shape":[],"data_offsets":[0,0]},
    let most = text.len() / 48 + 1;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let visitor = Places { text, places: Vec::with_capacity(most) };
    let places = deserializer
        .deserialize_map(visitor)
        .and_then(|places| deserializer.end().map(|()| places))
        .map_err(|error| Refused::file(format!("the header is not what it should be: {error}")))?;
    Ok(places)
}
