//! The header of an array: `\x93NUMPY`, two bytes of a version, the length of a text, and the text, a literal of Python:
//! `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`.

use crate::dtype::DType;
use crate::io::store::{Data, Info, Order};
use crate::io::stored::{Other, Stored};
use crate::shape::{MAX_RANK, Shape};

/// Longest header that is read, as in NumPy.
pub(super) const MAX_BYTES: u64 = 10_000;

const MAGIC: &[u8] = b"\x93NUMPY";

/// Types of arrays without the byte order, and the names that other files give them.
const DTYPES: [(&str, &str, DType); 13] = [
    ("f2", "F16", DType::F16),
    ("V2", "BF16", DType::BF16),
    ("f4", "F32", DType::F32),
    ("f8", "F64", DType::F64),
    ("i8", "I64", DType::I64),
    ("i4", "I32", DType::I32),
    ("u4", "U32", DType::U32),
    ("u1", "U8", DType::U8),
    ("i1", "I8", DType::I8),
    ("i2", "I16", DType::I16),
    ("u2", "U16", DType::U16),
    ("u8", "U64", DType::U64),
    ("b1", "BOOL", DType::Bool),
];

/// Types that tensors cannot hold.
static OTHERS: [(&str, Other); 2] = [
    ("c8", Other { name: "C64", block: [1, 8], value: None }),
    ("c16", Other { name: "C128", block: [1, 16], value: None }),
];

/// An array, as its header describes it.
pub(super) struct Header {
    stored: Stored,
    shape: Shape,
    order: Order,
    /// Bytes of the header.
    length: usize,
    /// Bytes of the elements.
    bytes: usize,
}

/// The header of an array of this dtype and shape. Its length is a multiple of 64, as NumPy's is.
pub(super) fn text(dtype: DType, shape: &Shape) -> Vec<u8> {
    let code = DTYPES.iter().find(|(.., known)| *known == dtype).map_or("", |(code, ..)| code);
    let order = if dtype.size() == 1 || dtype == DType::BF16 { '|' } else { '<' };
    let extents: String = shape.dims().iter().map(|extent| format!("{extent},")).collect();
    let mut text =
        format!("{{'descr': '{order}{code}', 'fortran_order': False, 'shape': ({extents}), }}");
    let length = (10 + text.len() + 1).next_multiple_of(64) - 10;
    text.extend(std::iter::repeat_n(' ', length - 1 - text.len()));
    text.push('\n');
    let length = u16::try_from(length).expect("eight extents are shorter").to_le_bytes();
    [MAGIC, &[1, 0], &length, text.as_bytes()].concat()
}

impl Header {
    /// Reads a header from the beginning of a file.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let version = match bytes.strip_prefix(MAGIC) {
            Some([major, _, rest @ ..]) => (*major, rest),
            _ => return Err("it is no .npy file".to_owned()),
        };
        let (length, start) = match version {
            (1, [a, b, ..]) => (usize::from(u16::from_le_bytes([*a, *b])), 10),
            (2 | 3, [a, b, c, d, ..]) => (u32::from_le_bytes([*a, *b, *c, *d]) as usize, 12),
            (1..=3, _) => return Err("the header is cut off".to_owned()),
            (major, _) => return Err(format!("version {major} of the format is not known")),
        };
        if length as u64 > MAX_BYTES {
            return Err(format!("a header of {length} bytes is too long"));
        }
        let text = bytes.get(start..start + length).ok_or("the header is cut off")?;
        let text = std::str::from_utf8(text).map_err(|_| "the header is no text")?;
        let mut header = Parser(text).header()?;
        header.length = start + length;
        Ok(header)
    }

    /// What a file says of the array that begins at `start` and ends at most at `end`.
    pub fn info(self, start: usize, end: usize) -> Result<Info, String> {
        let (from, bytes) = (start + self.length, self.bytes);
        match end.checked_sub(from) {
            Some(rest) if rest >= bytes => Ok(self.at(Data::Mapped(from..from + bytes))),
            rest => Err(format!(
                "{bytes} bytes of elements do not fit in {}: truncated?",
                rest.unwrap_or(0)
            )),
        }
    }

    /// What a file says of the array that is compressed as an entry of an archive, of `size` bytes.
    pub fn compressed(self, entry: usize, size: u64) -> Result<Info, String> {
        let (skip, bytes) = (self.length, self.bytes);
        if (skip as u64).checked_add(bytes as u64).is_none_or(|all| all > size) {
            return Err(format!("{bytes} bytes of elements do not fit in {size}: truncated?"));
        }
        Ok(self.at(Data::Compressed { entry, skip, bytes }))
    }

    fn at(self, data: Data) -> Info {
        Info { stored: self.stored, shape: self.shape, data, order: self.order, view: None }
    }
}

/// The rest of a text.
struct Parser<'a>(&'a str);

impl<'a> Parser<'a> {
    fn header(&mut self) -> Result<Header, String> {
        let (mut descr, mut is_fortran, mut shape) = (None, None, None);
        self.expect("{")?;
        while !self.takes("}") {
            let key = self.text()?;
            self.expect(":")?;
            let is_new = match key {
                "descr" => descr.replace(self.descr()?).is_none(),
                "fortran_order" => is_fortran.replace(self.truth()?).is_none(),
                "shape" => shape.replace(self.shape()?).is_none(),
                _ => return Err(format!("no field `{key}` is known")),
            };
            if !is_new {
                return Err(format!("`{key}` occurs twice"));
            }
            if !self.takes(",") {
                self.expect("}")?;
                break;
            }
        }
        if !self.0.trim_start().is_empty() {
            return Err("text after the header".to_owned());
        }
        let lacks = |field| move || format!("no `{field}`");
        let (stored, is_big_endian) = descr.ok_or_else(lacks("descr"))?;
        let is_fortran = is_fortran.ok_or_else(lacks("fortran_order"))?;
        let shape: Shape = shape.ok_or_else(lacks("shape"))?;
        shape.validate("npy").map_err(|error| error.to_string())?;
        let bytes = stored.bytes(shape.numel()).filter(|&bytes| bytes <= isize::MAX as usize);
        let bytes = bytes.ok_or_else(|| format!("too many elements: shape {shape}"))?;
        let order = Order { is_fortran, is_big_endian };
        Ok(Header { stored, shape, order, length: 0, bytes })
    }

    /// The type of the elements, and whether it is big-endian.
    fn descr(&mut self) -> Result<(Stored, bool), String> {
        if !self.0.trim_start().starts_with(['\'', '"']) {
            return Err("the elements are records (a structured type), which tensors cannot hold"
                .to_owned());
        }
        let text = self.text()?;
        let (order, code) = text.split_at(text.chars().next().map_or(0, char::len_utf8));
        let known = DTYPES.iter().find(|(known, ..)| *known == code);
        let stored = known.map(|&(_, name, dtype)| Stored::Of(dtype, name));
        let others = || OTHERS.iter().find(|(known, _)| *known == code);
        let stored = stored.or_else(|| others().map(|(_, other)| Stored::Other(other)));
        match (stored, order) {
            (Some(stored), "<" | "|" | "=") => Ok((stored, false)),
            (Some(stored), ">") => Ok((stored, true)),
            _ => Err(format!("the elements have NumPy's type `{text}`, which tensors cannot hold")),
        }
    }

    fn shape(&mut self) -> Result<Shape, String> {
        let mut dims = Vec::new();
        self.expect("(")?;
        while !self.takes(")") {
            if dims.len() == MAX_RANK {
                return Err(format!("more than {MAX_RANK} axes"));
            }
            dims.push(self.number()?);
            if !self.takes(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(Shape::from(dims))
    }

    fn number(&mut self) -> Result<usize, String> {
        let rest = self.0.trim_start();
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (digits, rest) = rest.split_at(end);
        // A long integer of Python 2.
        self.0 = rest.strip_prefix('L').unwrap_or(rest);
        digits.parse().map_err(|_| format!("expected an extent, found `{digits}`"))
    }

    fn truth(&mut self) -> Result<bool, String> {
        if self.takes("True") { Ok(true) } else { self.expect("False").map(|()| false) }
    }

    /// A text in quotes, without escapes.
    fn text(&mut self) -> Result<&'a str, String> {
        let rest = self.0.trim_start();
        let quote =
            rest.chars().next().filter(|c| matches!(c, '\'' | '"')).ok_or("expected a text")?;
        let end = rest[1..].find(quote).ok_or("a text without an end")?;
        self.0 = &rest[end + 2..];
        Ok(&rest[1..=end])
    }

    fn takes(&mut self, token: &str) -> bool {
        match self.0.trim_start().strip_prefix(token) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        match self.takes(token) {
            true => Ok(()),
            false => Err(format!("header: expected `{token}`")),
        }
    }
}
