//! [`empty`]: models without values, to be loaded.

use std::cell::Cell;

use super::{Visit, Visitor, VisitorMut};
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
/// It can be visited, and so be listed, counted and loaded (`io::Load::fill`), but not computed.
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
/// let mut count = 0;
/// nn::for_each_tensor(&model, |_, tensor, _| count += tensor.numel());
/// assert_eq!(count, 10_000_100_000);
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
    IS_EMPTY.get().then(|| {
        let nan = Tensor::from_data(B::full(Shape::scalar(), Scalar::Float(f64::NAN), dtype)?);
        Ok(nan.expand(*shape)?.requires_grad())
    })
}

impl<B: Backend, M: Visit<B>> Visit<B> for Empty<M> {
    fn visit(&self, visitor: &mut dyn Visitor<B>) {
        self.0.visit(visitor);
    }

    fn visit_mut(&mut self, visitor: &mut dyn VisitorMut<B>) {
        self.0.visit_mut(visitor);
    }
}
