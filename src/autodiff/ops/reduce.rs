//! Derivatives of reductions.

use smallvec::smallvec;

use crate::autodiff::graph::{InputGradients, Rule, SharedRule, Upstream, shared_rule};
use crate::backend::Backend;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::ReduceOp;
use crate::shape::{AxisSet, Shape};
use crate::tensor::Tensor;

struct ReduceRule<B: Backend> {
    op: ReduceOp,
    shape: Shape,
    axes: AxisSet,
    /// Input and output, where the rule compares them.
    extremes: Option<(Tensor<B>, B::Tensor)>,
}

/// A reduction of `x` over `axes` to `y`.
///
/// Sum and mean spread the gradient evenly over what was added. Max and min give it to the
/// elements that equal the result, split evenly among ties.
pub(crate) fn reduce_rule<B: Backend>(
    op: ReduceOp,
    x: &Tensor<B>,
    axes: AxisSet,
    y: &B::Tensor,
) -> SharedRule<B> {
    let extremes = match op {
        ReduceOp::Sum | ReduceOp::Mean => None,
        ReduceOp::Max | ReduceOp::Min => Some((x.clone(), y.clone())),
    };
    shared_rule(ReduceRule { op, shape: *x.shape(), axes, extremes })
}

impl<B: Backend> Rule<B> for ReduceRule<B> {
    fn backward(&self, upstream: &Upstream<'_, B>, _wanted: &[bool]) -> Result<InputGradients<B>> {
        let kept = self.shape.reduced(&self.axes, true);
        let g = upstream.g.reshape(kept)?;
        let gradient = match (self.op, &self.extremes) {
            (ReduceOp::Sum, _) => g.broadcast_to(self.shape)?,
            (ReduceOp::Mean, _) => {
                let count: usize = self.axes.iter().map(|&axis| self.shape.dims()[axis]).product();
                let share = g.to_dtype(counting(g.dtype()))?.div(count as f64)?;
                share.to_dtype(g.dtype())?.broadcast_to(self.shape)?
            }
            (_, Some((x, y))) => {
                let y = upstream.output(y).reshape(kept)?;
                let chosen = x.eq(&y)?;
                let wide = counting(g.dtype());
                let ties = chosen.sum(Some(&self.axes), true)?.to_dtype(wide)?;
                let share = g.to_dtype(wide)?.div(&ties)?.to_dtype(g.dtype())?;
                let zero = Tensor::zeros(Shape::scalar(), g.dtype())?;
                Tensor::where_cond(&chosen, &share, &zero)?
            }
            (_, None) => g,
        };
        Ok(smallvec![Some(gradient)])
    }
}

/// A float type that holds the number of elements: 16 bits do not.
fn counting(dtype: DType) -> DType {
    if dtype.size() < 4 { DType::F32 } else { dtype }
}
