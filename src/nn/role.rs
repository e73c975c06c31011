//! Visitors through which [`module!`](crate::module) passes fields with a role. Public for the macro alone.

use std::sync::atomic::AtomicBool;

use super::{Kind, PartId, Visitor, VisitorMut};
use crate::backend::Backend;
use crate::dtype::DType;
use crate::tensor::Tensor;

/// Visits tensors of floats as parameters, whether they are tracked or not.
#[derive(Debug)]
pub struct Parameters<V>(pub V);

/// Visits buffers as counters, and parameters as they are.
#[derive(Debug)]
pub struct Counters<V>(pub V);

/// The kind of a tensor in a field of parameters.
fn declared(dtype: DType, kind: Kind) -> Kind {
    if dtype.is_float() { Kind::Parameter } else { kind }
}

macro_rules! visitors {
    ($($Role:ident: |$visitor:ident, $x:ident, $kind:ident| $visit:expr;)*) => {$(
        impl<'v, B: Backend> Visitor<B> for $Role<&mut (dyn Visitor<B> + 'v)> {
            fn enter(&mut self, name: &str) {
                self.0.enter(name);
            }
            fn leave(&mut self) {
                self.0.leave();
            }
            fn tensor(&mut self, $x: &Tensor<B>, $kind: Kind) {
                let $visitor = &mut *self.0;
                $visit;
            }
            fn counter(&mut self, x: &Tensor<B>) {
                self.0.counter(x);
            }
            fn part(&mut self, id: PartId) {
                self.0.part(id);
            }
            fn training(&mut self, flag: &AtomicBool) {
                self.0.training(flag);
            }
            fn locked(&mut self, reason: &'static str) {
                self.0.locked(reason);
            }
        }

        impl<'v, B: Backend> VisitorMut<B> for $Role<&mut (dyn VisitorMut<B> + 'v)> {
            fn enter(&mut self, name: &str) {
                self.0.enter(name);
            }
            fn leave(&mut self) {
                self.0.leave();
            }
            fn tensor(&mut self, $x: &mut Tensor<B>, $kind: Kind) {
                let $visitor = &mut *self.0;
                $visit;
            }
            fn counter(&mut self, x: &mut Tensor<B>) {
                self.0.counter(x);
            }
            fn locked(&mut self, reason: &'static str) {
                self.0.locked(reason);
            }
        }
    )*};
}
visitors! {
    Parameters: |visitor, x, kind| visitor.tensor(x, declared(x.dtype(), kind));
    Counters: |visitor, x, kind| match kind {
        Kind::Parameter => visitor.tensor(x, kind),
        Kind::Buffer => visitor.counter(x),
    };
}
