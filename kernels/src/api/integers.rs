//! Arithmetic of integers.

use super::same_len;
use crate::integer_map::{ArithmeticInteger, IntegerMap, IntegerOp};
use crate::map::Arg;

/// Writes `y[i] = op(a[i], b[i])` for integers. Sums and products wrap. Returns false if a quotient
/// has no value, because its divisor is 0 or it is too large for the type; the results are then
/// unspecified.
///
/// ```
/// use swath_kernels::{Arg, IntegerOp, integer_map};
/// let mut y = [0; 3];
/// let x = [Arg::Slice(&[7, -7, 8]), Arg::Scalar(2)];
/// assert!(integer_map(IntegerOp::FloorDivide, x, &mut y));
/// assert_eq!(y, [3, -4, 4]);
/// assert!(!integer_map(IntegerOp::Rem, [Arg::Scalar(i32::MIN), Arg::Scalar(-1)], &mut [0]));
/// ```
///
/// # Panics
/// If a slice's length is not that of `y`.
#[track_caller]
pub fn integer_map<T: ArithmeticInteger>(op: IntegerOp, x: [Arg<T>; 2], y: &mut [T]) -> bool {
    for x in &x {
        if let Arg::Slice(x) = x {
            same_len("integer_map", x.len(), y.len());
        }
    }
    T::run(IntegerMap { op, x, y })
}
