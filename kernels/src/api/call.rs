//! One non-generic entry point for the kernels of `f32` and `f64` that have no trait of their own,
//! so that they are compiled once, in this crate, and not again in each crate that uses it.

use crate::attention::{Dots, Weights, WeightsGrad};
use crate::dispatch::run;
use crate::optim::{AdamStep, SgdStep};
use crate::random::{DropoutFactors, DropoutTask};
use crate::reduce::Reduce;
use crate::rows::{
    CrossEntropyColumnsTask, CrossEntropyGradColumnsTask, CrossEntropyGradTask, CrossEntropyTask,
    LayerNormGradTask, LayerNormTask, RmsNormGradTask, RmsNormTask, SoftmaxColumns,
    SoftmaxGradColumns, SoftmaxGradTask, SoftmaxTask,
};

/// Element types of the row functions: `f32` and `f64`. Sealed.
pub trait Rows: Reduce {
    #[doc(hidden)]
    fn run(call: Call<'_, Self>);
}

/// A call with checked arguments; only this crate can construct one.
#[doc(hidden)]
pub struct Call<'a, E>(pub(super) Work<'a, E>);

macro_rules! calls {
    ($($name:ident($Task:ident),)*) => {
        /// The task of a call.
        pub(super) enum Work<'a, E> {
            $($name($Task<'a, E>),)*
        }

        calls!(@of f32: $($name)*);
        calls!(@of f64: $($name)*);
    };
    (@of $t:ident: $($name:ident)*) => {
        impl Rows for $t {
            fn run(call: Call<'_, Self>) {
                match call.0 {
                    $(Work::$name(task) => run(task),)*
                }
            }
        }
    };
}
calls! {
    Softmax(SoftmaxTask),
    SoftmaxGrad(SoftmaxGradTask),
    SoftmaxColumns(SoftmaxColumns),
    SoftmaxGradColumns(SoftmaxGradColumns),
    CrossEntropy(CrossEntropyTask),
    CrossEntropyGrad(CrossEntropyGradTask),
    CrossEntropyColumns(CrossEntropyColumnsTask),
    CrossEntropyGradColumns(CrossEntropyGradColumnsTask),
    LayerNorm(LayerNormTask),
    LayerNormGrad(LayerNormGradTask),
    RmsNorm(RmsNormTask),
    RmsNormGrad(RmsNormGradTask),
    Weights(Weights),
    WeightsGrad(WeightsGrad),
    Dots(Dots),
    Sgd(SgdStep),
    Adam(AdamStep),
    Dropout(DropoutTask),
    DropoutFactors(DropoutFactors),
}
