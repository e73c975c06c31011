//! Finding the operation that makes NaN or infinity: [`detect_anomaly`].
//!
//! ```text
//! forward     record(): the result is not finite, and the operands are     kept, for the next pass or the end
//! backward    walk(): a rule's gradient, added up, is not finite           the pass ends with the error
//! ```
//!
//! A node remembers that an operand or the result was not finite: what its rule makes of that is no anomaly,
//! and nor is what rules make of such a gradient. A pass that begins with a gradient that is not finite is not
//! inspected.

use std::cell::RefCell;

use crate::backend::Backend;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::runtime::on_drop::OnDrop;
use crate::runtime::recording::{DETECTING, has, with_flags};
use crate::tensor::Tensor;

thread_local! {
    /// The first anomaly of this thread.
    static FOUND: RefCell<Option<Error>> = const { RefCell::new(None) };
}

/// Runs `f`; the first recorded operation in it that makes NaN or infinity from finite operands,
/// forwards or backwards, becomes an error that names it.
///
/// An anomaly of the forward pass is the result of the next backward pass, so that no optimizer
/// follows it, and otherwise of the whole. Only operations on tracked tensors are inspected, on the
/// calling thread: an untracked value that is not finite, such as a mask of −∞, is no anomaly, and
/// nor is what is computed from it, in either direction. Each result, operand and gradient is read once
/// more. Of an operation that was recorded before, the operands are taken to have been finite.
///
/// ```
/// use swath::prelude::*;
/// let x = tensor![4.0, 0.0].requires_grad();
/// let error = detect_anomaly(|| x.sqrt()?.sum(None, false)?.backward()).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "sqrt: the gradient of input 0 of shape [2] is inf at index [1], made from finite values"
/// );
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::Anomaly`]; errors of `f`.
pub fn detect_anomaly<R>(f: impl FnOnce() -> Result<R>) -> Result<R> {
    // What an enclosing call has found.
    let mut outer = FOUND.take();
    let _restore = OnDrop(move || FOUND.set(outer.take()));
    let result = with_flags(DETECTING, 0, f);
    FOUND.take().map_or(result, Err)
}

/// True if no element is NaN or infinite, or if that cannot be found out.
pub(crate) fn is_finite<B: Backend>(x: &Tensor<B>) -> bool {
    // A sum of `f32`, which every device has and most programs link, unlike `all` and sums of `i64`.
    let others =
        || x.isfinite()?.logical_not()?.to_dtype(DType::F32)?.sum(None, false)?.item::<f32>();
    others().map_or(true, |others| others == 0.0)
}

/// Returns true if `values`, the result of a recorded operation, and its operands are finite. Keeps the error
/// if the result is the first anomaly.
pub(crate) fn inspect<B: Backend>(
    op: &'static str,
    values: &B::Tensor,
    are_finite: &dyn Fn() -> bool,
) -> bool {
    let y = Tensor::<B>::from_data(values.clone());
    let (is_finite, are_finite) = (is_finite(&y), are_finite());
    if first().is_ok() && !is_finite && are_finite {
        let error = anomaly(op, "the result".to_owned(), &y);
        FOUND.set(error.ok());
    }
    is_finite && are_finite
}

/// The anomaly found so far.
pub(crate) fn first() -> Result<()> {
    match has(DETECTING) {
        true => FOUND.with_borrow(|found| found.clone().map_or(Ok(()), Err)),
        false => Ok(()),
    }
}

/// Fails with the anomaly of `x`, which is not finite, and keeps it.
pub(crate) fn fail<B: Backend>(op: &'static str, what: String, x: &Tensor<B>) -> Result<()> {
    let error = anomaly(op, what, x)?;
    FOUND.set(Some(error.clone()));
    Err(error)
}

/// The error for the first element that is not finite.
fn anomaly<B: Backend>(op: &'static str, what: String, x: &Tensor<B>) -> Result<Error> {
    let host = B::to_host(x.data())?;
    let values = (0..host.len()).filter_map(|i| Some((i, host.get(i)?.to_f64())));
    let (i, value) = values.into_iter().find(|(_, value)| !value.is_finite()).unwrap_or((0, 0.0));
    let strides = x.shape().contiguous_strides();
    let axes = x.dims().iter().zip(strides.as_slice());
    let index: Vec<usize> = axes.map(|(dim, &stride)| i / stride.unsigned_abs() % dim).collect();
    Ok(Error::Anomaly { op, what, shape: *x.shape(), index, value })
}
