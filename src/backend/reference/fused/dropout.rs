//! `dropout`, by the generator's own words.

use smallvec::smallvec;

use super::super::ReferenceTensor;
use super::{check_float, flat, operand, tensor};
use crate::backend::{Results, TensorData, check_mask};
use crate::error::Result;
use crate::ops::DropoutMask;
use crate::rng::{Rng, RngState};

pub(super) fn dropout(
    operands: &[Option<&ReferenceTensor>],
    mask: &DropoutMask,
) -> Result<Results<ReferenceTensor>> {
    let op = "dropout";
    let x = operand(op, operands, 0)?;
    check_float(op, x)?;
    check_mask(op, mask)?;
    let (seed, stream) = (mask.seed, mask.stream);
    let mut rng = Rng::from_state(RngState { seed, stream, position: 0 });
    let y = flat(x).into_iter().map(|x| {
        let is_zero = f64::from(rng.next_u32()) < mask.p * 2f64.powi(32);
        if is_zero { x * 0.0 } else { x / (1.0 - mask.p) }
    });
    let y: Vec<f64> = y.collect();
    Ok(smallvec![tensor(op, *x.shape(), x.dtype, y)?])
}
