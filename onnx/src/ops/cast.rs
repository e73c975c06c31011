//! Conversions of dtypes.

use swath::{Backend, DType};

use super::Rows;
use crate::error::{Error, Result};
use crate::row::Default::{Int, Required, Text};
use crate::row::{Call, Default, Row, one, row};
use crate::weights;

/// The dtype of an attribute that has a number of ONNX's element types.
pub(super) fn dtype<B: Backend>(call: &Call<'_, B>, name: &str) -> Result<DType> {
    let code = call.int(name)?;
    // Integers of 2 and 4 bits are read as those of 8, whose range is another one.
    let found = weights::dtype(code).filter(|_| !matches!(code, 21 | 22 | 25 | 26));
    found.ok_or_else(|| {
        Error::Unsupported(vec![format!("tensors of type {}", weights::type_name(code))])
    })
}

/// Attributes that only conversions to floats of 8 bits use.
const SATURATE: (&str, Default) = ("saturate", Int(1));
const ROUND_MODE: (&str, Default) = ("round_mode", Text("up"));

impl<B: Backend> Rows<B> {
    pub const CAST: &'static [Row<B>] = &[
        // ONNX leaves floats beyond the range of an integer dtype undefined: they become the nearest bound, and NaN 0.
        row("Cast", 6, &[("to", Required), SATURATE, ROUND_MODE], |c| {
            one(c.tensor(0)?.to_dtype(dtype(c, "to")?))
        }),
        row("CastLike", 15, &[SATURATE, ROUND_MODE], |c| {
            one(c.tensor(0)?.to_dtype(c.tensor(1)?.dtype()))
        }),
        row("BitCast", 26, &[("to", Required)], |c| one(c.tensor(0)?.view_as(dtype(c, "to")?))),
    ];
}
