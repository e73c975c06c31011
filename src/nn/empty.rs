//! [`empty`]: models without values, to be loaded.

use std::cell::Cell;

use super::{Kind, Visit, for_each_tensor, for_each_tensor_mut};
use crate::backend::Backend;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::runtime::on_drop::OnDrop;
use crate::shape::Shape;
use crate::tensor::Tensor;

thread_local! {
    static IS_EMPTY: Cell<bool> = const { Cell::new(false) };
}

/// A model whose parameters have shapes and dtypes but no values yet: see [`empty`].
///
/// Its tensors can be listed, and it can be loaded (`io::Load::fill`); it cannot be computed or saved before.
#[derive(Debug)]
pub struct Empty<M>(pub(crate) M);

/// Makes a model whose parameters take neither time nor memory, until `io::Load::fill` gives it the values of a
/// file. Within `make`, on this thread, the functions of [`init`](super::init) return parameters without
/// values; other tensors of the model are made as usual.
///
/// ```
/// use swath::nn::{self, Linear};
/// use swath::prelude::*;
///
/// // 40 GB.
/// let model = nn::empty(|| Linear::<CpuBackend>::new(100_000, 100_000, &mut Rng::seed(1)))?;
/// let [(name, shape, _), _] = &model.tensors()[..] else { panic!() };
/// assert_eq!((name.as_str(), shape.numel()), ("weight", 10_000_000_000));
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Those of `make`.
pub fn empty<M>(make: impl FnOnce() -> Result<M>) -> Result<Empty<M>> {
    let before = IS_EMPTY.replace(true);
    let _restore = OnDrop(move || IS_EMPTY.set(before));
    make().map(Empty)
}

/// The parameter that an initializer returns within [`empty`].
pub(super) fn without_values<B: Backend>(shape: &Shape, dtype: DType) -> Option<Result<Tensor<B>>> {
    IS_EMPTY.get().then(|| Ok(Tensor::from_data(nan::<B>(shape, dtype)?).requires_grad()))
}

impl<M> Empty<M> {
    /// Names, shapes and dtypes of the parameters and buffers.
    pub fn tensors<B: Backend>(&self) -> Vec<(String, Shape, DType)>
    where
        M: Visit<B>,
    {
        let mut tensors = Vec::new();
        for_each_tensor(&self.0, |name, x, _| {
            tensors.push((name.to_owned(), *x.shape(), x.dtype()))
        });
        tensors
    }

    /// The model with parameters of a float type, still without values.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for a part of the model that more than one
    /// [`Arc`](std::sync::Arc) holds.
    pub fn to_dtype<B: Backend>(mut self, dtype: DType) -> Result<Self>
    where
        M: Visit<B>,
    {
        for_each_tensor_mut(&mut self.0, |_, x, kind| {
            if matches!(kind, Kind::Parameter) && x.dtype().is_float() {
                *x.data_mut() = nan::<B>(x.shape(), dtype)?;
            }
            Ok(())
        })?;
        Ok(self)
    }
}

/// One NaN for all elements.
fn nan<B: Backend>(shape: &Shape, dtype: DType) -> Result<B::Tensor> {
    let nan = Tensor::<B>::from_data(B::full(Shape::scalar(), Scalar::Float(f64::NAN), dtype)?);
    Ok(nan.expand(*shape)?.data().clone())
}
