//! [`Stored`]: the types of elements in files, some of which tensors cannot hold.

use crate::dtype::DType;

/// The type of elements in a file.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stored {
    /// A type of tensors, in row-major order.
    Of(DType, &'static str),
    /// Another type.
    Other(&'static Other),
}

/// A type that tensors cannot hold.
#[derive(Debug)]
pub(super) struct Other {
    pub name: &'static str,
    /// Elements that are stored together, and their bytes.
    pub block: [usize; 2],
    /// The value of a byte, for types of a byte an element.
    pub value: Option<fn(u8) -> f32>,
}

impl Stored {
    pub fn name(self) -> &'static str {
        match self {
            Stored::Of(_, name) => name,
            Stored::Other(other) => other.name,
        }
    }

    pub fn dtype(self) -> Option<DType> {
        match self {
            Stored::Of(dtype, _) => Some(dtype),
            Stored::Other(_) => None,
        }
    }

    /// The bytes of `count` elements; `None` if they are no whole blocks or too many.
    pub fn bytes(self, count: usize) -> Option<usize> {
        let [elements, bytes] = match self {
            Stored::Of(dtype, _) => [1, dtype.size()],
            Stored::Other(other) => other.block,
        };
        (count.is_multiple_of(elements)).then(|| (count / elements).checked_mul(bytes))?
    }

    /// The values of elements that tensors cannot hold; `None` if no conversion is known.
    pub fn decode(self, bytes: &[u8]) -> Option<Vec<f32>> {
        let Stored::Other(Other { value: Some(value), .. }) = self else { return None };
        let values: [f32; 256] = std::array::from_fn(|byte| value(byte as u8));
        Some(bytes.iter().map(|&byte| values[usize::from(byte)]).collect())
    }
}

/// Types of tensors.
const DTYPES: [(&str, DType); 13] = [
    ("F16", DType::F16),
    ("BF16", DType::BF16),
    ("F32", DType::F32),
    ("F64", DType::F64),
    ("I64", DType::I64),
    ("I32", DType::I32),
    ("I16", DType::I16),
    ("I8", DType::I8),
    ("U64", DType::U64),
    ("U32", DType::U32),
    ("U16", DType::U16),
    ("U8", DType::U8),
    ("BOOL", DType::Bool),
];

/// Types that tensors cannot hold. Those of 8 bits are F8_E4M3 (without infinities; NaN where all bits but the sign are
/// ones), F8_E5M2 (as the upper half of an `f16`) and F8_E8M0 (powers of two).
static OTHERS: [Other; 8] = [
    Other { name: "F8_E4M3", block: [1, 1], value: Some(e4m3) },
    Other { name: "F8_E5M2", block: [1, 1], value: Some(e5m2) },
    Other { name: "F8_E8M0", block: [1, 1], value: Some(e8m0) },
    Other { name: "F4", block: [2, 1], value: None },
    Other { name: "F6_E2M3", block: [4, 3], value: None },
    Other { name: "F6_E3M2", block: [4, 3], value: None },
    Other { name: "C64", block: [1, 8], value: None },
    Other { name: "C128", block: [1, 16], value: None },
];

impl Stored {
    /// The type of this name, as safetensors has names.
    pub fn named(name: &str) -> Option<Stored> {
        let known = DTYPES.iter().find(|(known, _)| *known == name);
        let known = known.map(|&(name, dtype)| Stored::Of(dtype, name));
        known.or_else(|| OTHERS.iter().find(|other| other.name == name).map(Stored::Other))
    }
}

/// The name of a type of tensors.
pub(super) fn name_of(dtype: DType) -> &'static str {
    DTYPES.iter().find(|(_, known)| *known == dtype).map_or("", |(name, _)| name)
}

fn e4m3(byte: u8) -> f32 {
    let (exponent, fraction) = (i32::from(byte >> 3 & 15), f32::from(byte & 7) / 8.0);
    let size = match (exponent, byte & 7) {
        (15, 7) => f32::NAN,
        (0, _) => fraction * 2f32.powi(-6),
        _ => (1.0 + fraction) * 2f32.powi(exponent - 7),
    };
    if byte < 128 { size } else { -size }
}

fn e5m2(byte: u8) -> f32 {
    half::f16::from_bits(u16::from(byte) << 8).to_f32()
}

fn e8m0(byte: u8) -> f32 {
    match byte {
        255 => f32::NAN,
        0 => 2f32.powi(-127),
        _ => f32::from_bits(u32::from(byte) << 23),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of the OCP specification of 8-bit floats, table 2, and of its microscaling formats.
    #[test]
    fn values_of_eight_bits_are_those_of_the_specification() {
        type Row = (fn(u8) -> f32, u8, f32);
        let rows: [Row; 14] = [
            (e4m3, 0x7E, 448.0),
            (e4m3, 0x08, 2f32.powi(-6)),
            (e4m3, 0x07, 0.875 * 2f32.powi(-6)),
            (e4m3, 0x01, 2f32.powi(-9)),
            (e4m3, 0x38, 1.0),
            (e4m3, 0xB8, -1.0),
            (e5m2, 0x7B, 57344.0),
            (e5m2, 0x04, 2f32.powi(-14)),
            (e5m2, 0x03, 0.75 * 2f32.powi(-14)),
            (e5m2, 0x01, 2f32.powi(-16)),
            (e5m2, 0x7C, f32::INFINITY),
            (e8m0, 0, 2f32.powi(-127)),
            (e8m0, 127, 1.0),
            (e8m0, 254, 2f32.powi(127)),
        ];
        for (value, byte, expected) in rows {
            assert_eq!(value(byte), expected, "{byte:#x}");
        }
        assert!(e4m3(0x7F).is_nan() && e4m3(0xFF).is_nan() && e8m0(255).is_nan());
        assert!(e5m2(0x7D).is_nan() && e4m3(0x80).is_sign_negative());
    }
}
