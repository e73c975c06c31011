//! Tensors, shapes and dtypes in the formats of the crate serde.
//!
//! ```text
//! tensor    struct Tensor { dtype, shape, data }
//! dtype     its name; shape: a list of extents
//! data      binary formats:          the bytes of the elements in row-major order, little-endian
//!           human-readable formats:  a flat list of numbers; true, false; "NaN", "inf", "-inf"
//! ```
//!
//! Nothing is allocated for a shape: elements are gathered as they come, and then have to be as many as it says.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeSeq, SerializeStruct};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::backend::Backend;
use crate::dtype::{DType, Element, HostData, Scalar, for_dtype};
use crate::shape::{MAX_RANK, Shape};
use crate::tensor::Tensor;

/// The name that the dtype has in messages, such as `f32` (feature `serde`).
impl Serialize for DType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for DType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Named)
    }
}

struct Named;

impl Visitor<'_> for Named {
    type Value = DType;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a dtype, such as f32")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<DType, E> {
        let dtype = DType::ALL.into_iter().find(|dtype| dtype.name() == name);
        dtype.ok_or_else(|| E::invalid_value(de::Unexpected::Str(name), &self))
    }
}

/// The extents (feature `serde`).
impl Serialize for Shape {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.dims())
    }
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Extents)
    }
}

struct Extents;

impl<'de> Visitor<'de> for Extents {
    type Value = Shape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the extents of at most {MAX_RANK} axes")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut extents: A) -> Result<Shape, A::Error> {
        let mut dims = Vec::new();
        while let Some(dim) = extents.next_element()? {
            if dims.len() == MAX_RANK {
                return Err(de::Error::invalid_length(MAX_RANK + 1, &self));
            }
            dims.push(dim);
        }
        Ok(Shape::new(dims))
    }
}

const FIELDS: [&str; 3] = ["dtype", "shape", "data"];

/// A struct of `dtype`, `shape` and `data` (feature `serde`): the bytes of the elements in row-major order,
/// little-endian, in binary formats; a flat list of numbers in human-readable ones, in which NaN and the infinities are
/// the texts `"NaN"`, `"inf"` and `"-inf"`. Numbers of 64 bits come back exactly if the format reads them so:
/// `serde_json` does with its feature `float_roundtrip`. The gradient's graph is not saved.
///
/// ```
/// use swath::cpu::prelude::*;
/// let x = tensor![[1.5, 2.0], [f32::INFINITY, 4.0]];
/// let text = serde_json::to_string(&x).unwrap();
/// assert_eq!(text, r#"{"dtype":"f32","shape":[2,2],"data":[1.5,2.0,"inf",4.0]}"#);
/// let y: Tensor = serde_json::from_str(&text).unwrap();
/// assert_eq!(y.to_vec::<f32>()?, x.to_vec::<f32>()?);
/// # Ok::<(), Error>(())
/// ```
impl<B: Backend> Serialize for Tensor<B> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error;
        let x = self.detach().contiguous().map_err(S::Error::custom)?;
        let readable = serializer.is_human_readable();
        let mut fields = serializer.serialize_struct("Tensor", FIELDS.len())?;
        fields.serialize_field(FIELDS[0], &x.dtype())?;
        fields.serialize_field(FIELDS[1], x.shape())?;
        match (readable, x.as_bytes()) {
            (false, Ok(bytes)) => fields.serialize_field(FIELDS[2], &Bytes(bytes))?,
            _ => {
                let host = B::to_host(x.data()).map_err(S::Error::custom)?;
                match readable {
                    true => fields.serialize_field(FIELDS[2], &Numbers(&host))?,
                    false => {
                        let mut bytes = host.as_bytes().to_vec();
                        crate::dtype::swap_little_endian(x.dtype(), &mut bytes);
                        fields.serialize_field(FIELDS[2], &Bytes(&bytes))?;
                    }
                }
            }
        }
        fields.end()
    }
}

struct Bytes<'a>(&'a [u8]);

impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

struct Numbers<'a>(&'a HostData);

impl Serialize for Numbers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let dtype = self.0.dtype();
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        for_dtype!(dtype, T => for &x in T::host_slice(self.0).unwrap_or(&[]) {
            match x.to_scalar() {
                Scalar::Float(x) if !x.is_finite() => list.serialize_element(&x.to_string()),
                Scalar::Float(x) if dtype == DType::F64 => list.serialize_element(&x),
                // The shortest decimal of the narrower type.
                Scalar::Float(x) => list.serialize_element(&(x as f32)),
                Scalar::Int(x) if dtype == DType::Bool => list.serialize_element(&(x != 0)),
                Scalar::Int(x) => list.serialize_element(&x),
                Scalar::Large(x) => list.serialize_element(&x),
            }?;
        });
        list.end()
    }
}

/// Elements of a dtype that may not be known yet.
enum Elements<'de> {
    Bytes(Cow<'de, [u8]>),
    Numbers(Vec<Number>),
}

/// One element of a list.
#[derive(Clone, Copy)]
enum Number {
    Bool(bool),
    Float(f64),
    Int(i128),
}

impl Number {
    /// The number as an element, if the dtype has it: integers exactly, floats rounded.
    fn to<T: Element>(self) -> Option<T> {
        let is_float = T::DTYPE.is_float();
        let (low, high) = T::DTYPE.integer_range();
        match self {
            Number::Bool(x) => (T::DTYPE == DType::Bool).then(|| T::from_i64(x.into())),
            Number::Float(x) => is_float.then(|| T::from_f64(x)),
            Number::Int(x) => {
                let is_integer = T::DTYPE != DType::Bool && low <= x && x <= high;
                (is_float || is_integer).then(|| T::from_scalar(Scalar::from_i128(x)))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyNumber)
    }
}

struct AnyNumber;

impl Visitor<'_> for AnyNumber {
    type Value = Number;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, true, false, \"NaN\", \"inf\" or \"-inf\"")
    }

    fn visit_bool<E: de::Error>(self, x: bool) -> Result<Number, E> {
        Ok(Number::Bool(x))
    }

    fn visit_i64<E: de::Error>(self, x: i64) -> Result<Number, E> {
        Ok(Number::Int(x.into()))
    }

    fn visit_u64<E: de::Error>(self, x: u64) -> Result<Number, E> {
        Ok(Number::Int(x.into()))
    }

    fn visit_f64<E: de::Error>(self, x: f64) -> Result<Number, E> {
        Ok(Number::Float(x))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Number, E> {
        match text {
            "NaN" => Ok(Number::Float(f64::NAN)),
            "inf" => Ok(Number::Float(f64::INFINITY)),
            "-inf" => Ok(Number::Float(f64::NEG_INFINITY)),
            _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
        }
    }
}

/// Reads elements; true for a human-readable format.
struct Data(bool);

impl<'de> DeserializeSeed<'de> for Data {
    type Value = Elements<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Elements<'de>, D::Error> {
        match self.0 {
            true => deserializer.deserialize_seq(self),
            false => deserializer.deserialize_bytes(self),
        }
    }
}

impl<'de> Visitor<'de> for Data {
    type Value = Elements<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0 { "a list of numbers" } else { "bytes" })
    }

    fn visit_borrowed_bytes<E>(self, bytes: &'de [u8]) -> Result<Elements<'de>, E> {
        Ok(Elements::Bytes(bytes.into()))
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Elements<'de>, E> {
        Ok(Elements::Bytes(bytes.to_vec().into()))
    }

    fn visit_byte_buf<E>(self, bytes: Vec<u8>) -> Result<Elements<'de>, E> {
        Ok(Elements::Bytes(bytes.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Elements<'de>, A::Error> {
        if !self.0 {
            let mut bytes = Vec::new();
            while let Some(byte) = list.next_element()? {
                bytes.push(byte);
            }
            return Ok(Elements::Bytes(bytes.into()));
        }
        let mut numbers = Vec::new();
        while let Some(number) = list.next_element()? {
            numbers.push(number);
        }
        Ok(Elements::Numbers(numbers))
    }
}

impl<'de, B: Backend> Deserialize<'de> for Tensor<B> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Fields { readable: deserializer.is_human_readable(), backend: PhantomData };
        deserializer.deserialize_struct("Tensor", &FIELDS, fields)
    }
}

struct Fields<B> {
    readable: bool,
    backend: PhantomData<B>,
}

impl<B: Backend> Fields<B> {
    fn tensor<E: de::Error>(
        dtype: DType,
        shape: Shape,
        data: Elements<'_>,
    ) -> Result<Tensor<B>, E> {
        let numbers = match data {
            Elements::Bytes(bytes) => {
                return Tensor::from_bytes(dtype, shape, &bytes).map_err(E::custom);
            }
            Elements::Numbers(numbers) => numbers,
        };
        for_dtype!(dtype, T => {
            let elements = numbers.iter().enumerate().map(|(i, number)| {
                let refused = || E::custom(format_args!("element {i} is not of type {dtype}"));
                number.to::<T>().ok_or_else(refused)
            });
            Tensor::from_vec(elements.collect::<Result<Vec<T>, E>>()?, shape).map_err(E::custom)
        })
    }
}

impl<'de, B: Backend> Visitor<'de> for Fields<B> {
    type Value = Tensor<B>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a tensor with the fields {FIELDS:?}")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut fields: A) -> Result<Tensor<B>, A::Error> {
        let missing = |count| de::Error::invalid_length(count, &self);
        let dtype = fields.next_element()?.ok_or_else(|| missing(0))?;
        let shape = fields.next_element()?.ok_or_else(|| missing(1))?;
        let data = fields.next_element_seed(Data(self.readable))?.ok_or_else(|| missing(2))?;
        Self::tensor(dtype, shape, data)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Tensor<B>, A::Error> {
        let (mut dtype, mut shape, mut data) = (None, None, None);
        while let Some(name) = fields.next_key::<Cow<'de, str>>()? {
            let repeated = match FIELDS.iter().position(|field| *field == name) {
                Some(0) => dtype.replace(fields.next_value()?).is_some(),
                Some(1) => shape.replace(fields.next_value()?).is_some(),
                Some(_) => data.replace(fields.next_value_seed(Data(self.readable))?).is_some(),
                None => return Err(de::Error::unknown_field(&name, &FIELDS)),
            };
            if repeated {
                return Err(de::Error::custom(format_args!("the field {name} comes twice")));
            }
        }
        let missing = |i: usize| de::Error::missing_field(FIELDS[i]);
        Self::tensor(
            dtype.ok_or_else(|| missing(0))?,
            shape.ok_or_else(|| missing(1))?,
            data.ok_or_else(|| missing(2))?,
        )
    }
}
