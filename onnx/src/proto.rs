//! The messages of an ONNX file, in the wire format of protocol buffers.
//!
//! Texts and bytes are borrowed from the file. [`message!`] declares a message once, for reading and writing; a field
//! that is not declared is skipped, as the format demands. Numbers of fields and names are those of `onnx.proto`.

use std::borrow::Cow;

/// Why bytes are not a message, without a place.
pub type Result<T> = std::result::Result<T, &'static str>;

/// Messages lie within each other at most so deep: graphs within attributes within nodes within graphs.
const MAX_DEPTH: u32 = 100;

/// The value of a field.
#[derive(Clone, Copy)]
pub enum Wire<'a> {
    Varint(u64),
    Fixed32(u32),
    Fixed64(u64),
    Bytes(Reader<'a>),
}

/// Bytes that are still to be read.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    depth: u32,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes, depth: 0 }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) =
            self.bytes.split_at_checked(count).ok_or("the file ends within a field")?;
        self.bytes = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.take(N).map(|bytes| bytes.try_into().expect("N bytes were taken"))
    }

    fn varint(&mut self) -> Result<u64> {
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            let [byte] = self.array()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err("a number has more than ten bytes")
    }

    /// The next field: its number and value.
    fn field(&mut self) -> Result<Option<(u32, Wire<'a>)>> {
        if self.bytes.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).map_err(|_| "a field has no valid number")?;
        let value = match tag & 7 {
            0 => Wire::Varint(self.varint()?),
            1 => Wire::Fixed64(u64::from_le_bytes(self.array()?)),
            5 => Wire::Fixed32(u32::from_le_bytes(self.array()?)),
            2 => {
                let count = usize::try_from(self.varint()?).map_err(|_| "a field is too long")?;
                Wire::Bytes(Reader { bytes: self.take(count)?, depth: self.depth + 1 })
            }
            _ => return Err("a field has no known type"),
        };
        Ok(Some((number, value)))
    }
}

/// A message: fields with numbers.
pub trait Message<'a>: Default {
    fn read_field(&mut self, number: u32, value: Wire<'a>) -> Result<()>;
    fn write(&self, out: &mut Vec<u8>);

    fn read(mut reader: Reader<'a>) -> Result<Self> {
        let mut message = Self::default();
        if reader.depth > MAX_DEPTH {
            return Err("messages lie too deep within each other");
        }
        while let Some((number, value)) = reader.field()? {
            message.read_field(number, value)?;
        }
        Ok(message)
    }
}

/// What a field holds.
pub trait Field<'a> {
    /// Reads an occurrence of the field: the last one counts, and each adds to a list.
    fn merge(&mut self, value: Wire<'a>) -> Result<()>;
    /// Writes the field, unless it has its default value.
    fn write_as(&self, number: u32, out: &mut Vec<u8>);
}

/// What a list holds.
pub trait Item<'a>: Sized {
    fn read_items(list: &mut Vec<Self>, value: Wire<'a>) -> Result<()>;
    fn write_items(list: &[Self], number: u32, out: &mut Vec<u8>);
}

pub const WRONG: &str = "a field has another type than ONNX says";

fn write_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn write_tag(number: u32, kind: u64, out: &mut Vec<u8>) {
    write_varint(u64::from(number) << 3 | kind, out);
}

pub fn write_bytes(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    write_tag(number, 2, out);
    write_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Bytes and texts: how the bytes become the value.
macro_rules! bytes_field {
    ($($t:ty, $from:expr;)*) => {$(
        impl<'a> Field<'a> for $t {
            fn merge(&mut self, value: Wire<'a>) -> Result<()> {
                let Wire::Bytes(reader) = value else { return Err(WRONG) };
                *self = $from(reader.bytes)?;
                Ok(())
            }

            fn write_as(&self, number: u32, out: &mut Vec<u8>) {
                if !self.is_empty() {
                    write_bytes(number, AsRef::<[u8]>::as_ref(&**self), out);
                }
            }
        }

        impl<'a> Item<'a> for $t {
            fn read_items(list: &mut Vec<Self>, value: Wire<'a>) -> Result<()> {
                let mut item = Self::default();
                item.merge(value)?;
                list.push(item);
                Ok(())
            }

            fn write_items(list: &[Self], number: u32, out: &mut Vec<u8>) {
                // An empty one too: a node's input that is left out.
                list.iter().for_each(|item| write_bytes(number, AsRef::<[u8]>::as_ref(&**item), out));
            }
        }
    )*};
}
bytes_field! {
    Cow<'a, [u8]>, |bytes| Ok::<_, &'static str>(Cow::Borrowed(bytes));
    Cow<'a, str>, |bytes| match std::str::from_utf8(bytes) {
        Ok(text) => Ok(Cow::Borrowed(text)),
        Err(_) => Err("a name is not UTF-8"),
    };
}

/// Numbers: how they are read alone and packed, and how they are written.
macro_rules! number_field {
    ($($t:ty, $kind:literal, $Wire:ident($raw:ident) => $from:expr, $next:expr, $write:expr;)*) => {$(
        impl<'a> Field<'a> for $t {
            fn merge(&mut self, value: Wire<'a>) -> Result<()> {
                let Wire::$Wire($raw) = value else { return Err(WRONG) };
                *self = $from;
                Ok(())
            }

            fn write_as(&self, number: u32, out: &mut Vec<u8>) {
                if *self != <$t>::default() {
                    write_tag(number, $kind, out);
                    $write(*self, out);
                }
            }
        }

        impl<'a> Item<'a> for $t {
            fn read_items(list: &mut Vec<Self>, value: Wire<'a>) -> Result<()> {
                let Wire::Bytes(mut reader) = value else {
                    list.push(<$t>::default());
                    return list.last_mut().expect("a number was pushed").merge(value);
                };
                while !reader.bytes.is_empty() {
                    let $raw = $next(&mut reader)?;
                    list.push($from);
                }
                Ok(())
            }

            fn write_items(list: &[Self], number: u32, out: &mut Vec<u8>) {
                let mut packed = Vec::new();
                list.iter().for_each(|&item| $write(item, &mut packed));
                if !list.is_empty() {
                    write_bytes(number, &packed, out);
                }
            }
        }
    )*};
}
number_field! {
    i64, 0, Varint(raw) => raw as i64, Reader::varint, |x: i64, out| write_varint(x as u64, out);
    u64, 0, Varint(raw) => raw, Reader::varint, write_varint;
    f32, 5, Fixed32(raw) => f32::from_bits(raw), |r: &mut Reader<'_>| r.array().map(u32::from_le_bytes),
        |x: f32, out: &mut Vec<u8>| out.extend_from_slice(&x.to_le_bytes());
    f64, 1, Fixed64(raw) => f64::from_bits(raw), |r: &mut Reader<'_>| r.array().map(u64::from_le_bytes),
        |x: f64, out: &mut Vec<u8>| out.extend_from_slice(&x.to_le_bytes());
}

impl<'a, M: Message<'a>> Field<'a> for Option<Box<M>> {
    fn merge(&mut self, value: Wire<'a>) -> Result<()> {
        let Wire::Bytes(reader) = value else { return Err(WRONG) };
        *self = Some(Box::new(M::read(reader)?));
        Ok(())
    }

    fn write_as(&self, number: u32, out: &mut Vec<u8>) {
        if let Some(message) = self {
            write_message(&**message, number, out);
        }
    }
}

impl<'a, T: Item<'a>> Field<'a> for Vec<T> {
    fn merge(&mut self, value: Wire<'a>) -> Result<()> {
        T::read_items(self, value)
    }

    fn write_as(&self, number: u32, out: &mut Vec<u8>) {
        T::write_items(self, number, out);
    }
}

pub fn write_message<'a>(message: &impl Message<'a>, number: u32, out: &mut Vec<u8>) {
    let mut bytes = Vec::new();
    message.write(&mut bytes);
    write_bytes(number, &bytes, out);
}

/// Declares messages: `number name: type` for each field.
macro_rules! message {
    ($($(#[$doc:meta])* $Name:ident { $($number:literal $field:ident: $t:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default)]
        pub struct $Name<'a> {
            $(pub $field: $t,)*
            /// The lifetime, for messages that borrow nothing.
            pub marker: std::marker::PhantomData<&'a ()>,
        }

        impl<'a> $crate::proto::Message<'a> for $Name<'a> {
            fn read_field(&mut self, number: u32, value: $crate::proto::Wire<'a>) -> $crate::proto::Result<()> {
                match number {
                    $($number => $crate::proto::Field::merge(&mut self.$field, value),)*
                    _ => Ok(()),
                }
            }

            fn write(&self, out: &mut Vec<u8>) {
                $($crate::proto::Field::write_as(&self.$field, $number, out);)*
            }
        }

        impl<'a> $crate::proto::Item<'a> for $Name<'a> {
            fn read_items(list: &mut Vec<Self>, value: $crate::proto::Wire<'a>) -> $crate::proto::Result<()> {
                let $crate::proto::Wire::Bytes(reader) = value else { return Err($crate::proto::WRONG) };
                list.push(<Self as $crate::proto::Message>::read(reader)?);
                Ok(())
            }

            fn write_items(list: &[Self], number: u32, out: &mut Vec<u8>) {
                list.iter().for_each(|message| $crate::proto::write_message(message, number, out));
            }
        }
    )*};
}

pub(crate) use message;

message! {
    /// `ModelProto`.
    Model {
        1 ir_version: i64,
        2 producer: Cow<'a, str>,
        3 producer_version: Cow<'a, str>,
        7 graph: Option<Box<Graph<'a>>>,
        8 operator_sets: Vec<OperatorSet<'a>>,
        14 metadata: Vec<Entry<'a>>,
        25 functions: Vec<Function<'a>>,
    }
    /// `OperatorSetIdProto`.
    OperatorSet {
        1 domain: Cow<'a, str>,
        2 version: i64,
    }
    /// `GraphProto`.
    Graph {
        1 nodes: Vec<Node<'a>>,
        2 name: Cow<'a, str>,
        5 initializers: Vec<Tensor<'a>>,
        11 inputs: Vec<ValueInfo<'a>>,
        12 outputs: Vec<ValueInfo<'a>>,
        13 values: Vec<ValueInfo<'a>>,
        15 sparse_initializers: Vec<Sparse<'a>>,
    }
    /// `NodeProto`.
    Node {
        1 inputs: Vec<Cow<'a, str>>,
        2 outputs: Vec<Cow<'a, str>>,
        3 name: Cow<'a, str>,
        4 op: Cow<'a, str>,
        5 attributes: Vec<Attribute<'a>>,
        7 domain: Cow<'a, str>,
        8 overload: Cow<'a, str>,
    }
    /// `AttributeProto`.
    Attribute {
        1 name: Cow<'a, str>,
        2 float: f32,
        3 int: i64,
        4 bytes: Cow<'a, [u8]>,
        5 tensor: Option<Box<Tensor<'a>>>,
        6 graph: Option<Box<Graph<'a>>>,
        7 floats: Vec<f32>,
        8 ints: Vec<i64>,
        9 texts: Vec<Cow<'a, [u8]>>,
        20 kind: i64,
        21 reference: Cow<'a, str>,
    }
    /// `TensorProto`.
    Tensor {
        1 dims: Vec<i64>,
        2 dtype: i64,
        4 floats: Vec<f32>,
        5 ints: Vec<i64>,
        7 longs: Vec<i64>,
        8 name: Cow<'a, str>,
        9 raw: Cow<'a, [u8]>,
        10 doubles: Vec<f64>,
        11 unsigned: Vec<u64>,
        13 external: Vec<Entry<'a>>,
        14 location: i64,
    }
    /// `SparseTensorProto`.
    Sparse {
        1 values: Option<Box<Tensor<'a>>>,
        2 indices: Option<Box<Tensor<'a>>>,
        3 dims: Vec<i64>,
    }
    /// `StringStringEntryProto`.
    Entry {
        1 key: Cow<'a, str>,
        2 value: Cow<'a, str>,
    }
    /// `ValueInfoProto`.
    ValueInfo {
        1 name: Cow<'a, str>,
        2 kind: Option<Box<Type<'a>>>,
    }
    /// `TypeProto`.
    Type {
        1 tensor: Option<Box<TensorType<'a>>>,
        4 sequence: Option<Box<Element<'a>>>,
        8 sparse: Option<Box<TensorType<'a>>>,
        9 optional: Option<Box<Element<'a>>>,
    }
    /// `TypeProto.Tensor`.
    TensorType {
        1 dtype: i64,
        2 shape: Option<Box<Shape<'a>>>,
    }
    /// `TypeProto.Sequence` and `TypeProto.Optional`.
    Element {
        1 kind: Option<Box<Type<'a>>>,
    }
    /// `TensorShapeProto`.
    Shape {
        1 dims: Vec<Dimension<'a>>,
    }
    /// `TensorShapeProto.Dimension`.
    Dimension {
        1 value: i64,
        2 name: Cow<'a, str>,
    }
    /// `FunctionProto`.
    Function {
        1 name: Cow<'a, str>,
        4 inputs: Vec<Cow<'a, str>>,
        5 outputs: Vec<Cow<'a, str>>,
        6 attributes: Vec<Cow<'a, str>>,
        7 nodes: Vec<Node<'a>>,
        9 operator_sets: Vec<OperatorSet<'a>>,
        10 domain: Cow<'a, str>,
        11 defaults: Vec<Attribute<'a>>,
        13 overload: Cow<'a, str>,
    }
    /// `SequenceProto`, in which tests keep lists of tensors.
    Sequence {
        1 name: Cow<'a, str>,
        3 tensors: Vec<Tensor<'a>>,
    }
}
