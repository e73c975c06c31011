//! `einsum`: products and sums over named axes.
//!
//! ```text
//! equation.rs   text -> labels of every axis, extents
//! order.rs      which two operands are multiplied next
//! pair.rs       two operands as one matrix product, without copies where strides allow
//! contract.rs   the product, as recorded operations
//! ```

pub(crate) mod contract;
pub(crate) mod equation;
mod order;
mod pair;

use std::borrow::Borrow;

use smallvec::SmallVec;

use super::base::Tensor;
use super::index::borrowed;
use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::shape::Shape;
use contract::{Factor, contract};
use equation::{Equation, Extents, LabelSet, Labels};

/// # Einstein summation
impl<B: Backend> Tensor<B> {
    /// Sum of products over named axes, in Einstein's notation: `"ik,kj->ij"` is a matrix product.
    ///
    /// Each operand has a term that names its axes by letters; upper and lower case differ. Axes
    /// with the same letter are multiplied together. Letters missing in the term after `->` are
    /// summed over. Without `->` the result has the axes of `...`, then the letters that occur
    /// once, in the order of their codes. `...` stands for any number of axes, aligned at the last
    /// and broadcast. A letter twice in one term takes the diagonal. An extent of 1 broadcasts
    /// against another operand. Spaces are ignored.
    ///
    /// | equation | result |
    /// |---|---|
    /// | `"ij->ji"` | transpose |
    /// | `"ii"`, `"ii->i"` | trace, diagonal |
    /// | `"ij->"`, `"ij->j"` | sum, sums of columns |
    /// | `"i,i"`, `"i,j"` | inner and outer product |
    /// | `"bik,bkj->bij"` | batch of matrix products |
    /// | `"bhqd,bhkd->bhqk"` | scores of attention |
    /// | `"...i,...i->..."` | inner products along the last axis |
    /// | `"ab,bc,cd->ad"` | chain of products, in a cheap order |
    ///
    /// Two operands are multiplied by one [`matmul`](Tensor::matmul) of views, without a copy where
    /// strides allow, and inner products by [`dot`](Tensor::dot) of every row. With up to six
    /// operands the order with the fewest multiplications is used, with more a good one. The result
    /// may be a view.
    ///
    /// An axis that is summed and occurs in one operand only (with an extent other than 1) is
    /// summed first, which may overflow where the products do not, beyond 3.4e38. `f16` and `bf16`
    /// are computed in `f32` if such a sum or more than two operands make intermediate results.
    /// Letters of a pair that are summed together are summed in the order of their first occurrence
    /// in the equation, whatever the layout; an operand that is not laid out in that order is
    /// copied.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let (a, b) = (tensor![[1.0, 2.0], [3.0, 4.0]], tensor![[1.0, 0.0], [1.0, 1.0]]);
    /// assert_eq!(Tensor::einsum("ik,kj->ij", &[&a, &b])?.to_vec::<f32>()?, [3.0, 2.0, 7.0, 4.0]);
    /// assert_eq!(Tensor::einsum("ii", &[&a])?.item::<f32>()?, 5.0);
    /// assert_eq!(Tensor::einsum("...i->i...", &[&a])?.to_vec::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`], with the equation and all shapes, if the equation is malformed
    /// or does not fit the operands, if an intermediate result would have more than eight axes or
    /// be too large; [`Error::Overflow`] if the result is too large; [`Error::DTypeMismatch`];
    /// [`Error::UnsupportedDType`] for booleans.
    pub fn einsum<T: Borrow<Tensor<B>>>(equation: &str, operands: &[T]) -> Result<Tensor<B>> {
        B::engine_einsum(equation, &borrowed(operands))
    }

    pub(crate) fn einsum_body(equation: &str, operands: &[&Tensor<B>]) -> Result<Tensor<B>> {
        let op = "einsum";
        let factor = |x: &&Tensor<B>| {
            operands[0].check_dtype(op, x.dtype())?;
            x.summable(op)
        };
        let factors: SmallVec<[Tensor<B>; 4]> =
            operands.iter().map(factor).collect::<Result<_>>()?;
        let operands: SmallVec<[&Tensor<B>; 4]> = factors.iter().collect();
        let given = || {
            let shapes: Vec<String> = operands.iter().map(|x| x.shape().to_string()).collect();
            format!("\"{equation}\" of shapes {}", shapes.join(", "))
        };
        let invalid = |reason: String| {
            let reason = format!("{}: {reason}", given());
            Error::InvalidArgument { op, reason }
        };
        let shapes: SmallVec<[Shape; 4]> = operands.iter().map(|x| *x.shape()).collect();
        let ranks: SmallVec<[usize; 4]> = shapes.iter().map(Shape::ndim).collect();
        let equation = Equation::parse(equation, &ranks).map_err(invalid)?;
        let extents = equation.extents(&shapes).map_err(invalid)?;
        let shape: Shape = equation.output.iter().map(|&label| extents.of(label)).collect();
        shape.validate(op)?;

        if let Some((first, others)) = operands.split_first()
            && shape.numel() > 0
            && operands.iter().any(|x| x.numel() == 0)
        {
            return empty_sum(first, others, shape).map_err(|step| step.in_step_of(op, given));
        }
        contracted(equation, &extents, &operands, shape)
            .map_err(|step| step.in_step_of(op, given))?
            .ok_or_else(|| invalid("every order needs a product of more than 8 axes".to_owned()))
    }
}

/// The contracted operands in `shape`; `None` if every order needs a product of too many axes.
fn contracted<B: Backend>(
    equation: Equation,
    extents: &Extents,
    operands: &[&Tensor<B>],
    shape: Shape,
) -> Result<Option<Tensor<B>>> {
    let sequence = equation.sequence();
    let mut factors: Factors<B> = SmallVec::new();
    for (x, labels) in operands.iter().zip(equation.inputs) {
        let (x, labels) = diagonals(x, labels)?;
        factors.push(Some(Factor::new(&x, &labels)?));
    }
    let output: LabelSet = equation.output.iter().copied().collect();
    widen_steps(&mut factors, output)?;
    let (mut known, mut kept) = (LabelSet::default(), output);
    for set in factors.iter().flatten().map(Factor::set) {
        (known, kept) = (known.union(set), kept.union(known.intersection(set)));
    }
    for slot in &mut factors {
        *slot = slot.take().map(|factor| factor.summed_to(kept)).transpose()?;
    }
    let mut sets: SmallVec<[LabelSet; 8]> = factors.iter().flatten().map(Factor::set).collect();
    let Some(steps) = order::steps(&sets, output, extents) else { return Ok(None) };
    let order: Labels =
        equation.output.iter().copied().filter(|&label| extents.of(label) != 1).collect();
    let last = steps.len().saturating_sub(1);
    for (i, &[a, b]) in steps.iter().enumerate() {
        (sets[a], sets[b]) = Default::default();
        let (Some(a), Some(b)) = (factors[a].take(), factors[b].take()) else { continue };
        let kept = sets.iter().fold(output, |needed, set| needed.union(*set));
        let wanted = (i == last).then_some(order.as_slice());
        let product = contract(&a, &b, kept, wanted, &sequence)?;
        sets.push(product.set());
        factors.push(Some(product));
    }
    let result = factors.pop().flatten().zip(operands.first());
    let rounded = |(result, x): (Factor<B>, &&Tensor<B>)| {
        result.into_tensor(&order, shape)?.to_dtype(x.dtype())
    };
    result.map(rounded).transpose()
}

/// Zeros, the sum of no products, whatever the other operands hold. Each operand takes part with
/// none of its elements, so that all have gradients.
fn empty_sum<B: Backend>(
    first: &Tensor<B>,
    others: &[&Tensor<B>],
    shape: Shape,
) -> Result<Tensor<B>> {
    let none = |x: &Tensor<B>| match x.rank() {
        0 => x.reshape(1)?.narrow(0, 0, 0)?.sum(None, false),
        _ => x.narrow(0, 0, 0)?.sum(None, false),
    };
    let zero = others.iter().try_fold(none(first)?, |zero, x| zero.add(&none(x)?))?;
    zero.broadcast_to(shape)
}

/// Converts 16-bit operands to `F32` if there are intermediate results: products of pairs, or a sum
/// over an axis that one operand alone has. These may leave the range of the dtype where the result
/// does not.
fn widen_steps<B: Backend>(factors: &mut Factors<B>, output: LabelSet) -> Result<()> {
    let others = |i: usize| {
        let others = factors.iter().enumerate().filter(|&(other, _)| other != i);
        others.filter_map(|(_, factor)| factor.as_ref()).fold(output, |all, f| all.union(f.set()))
    };
    let is_summed_alone = |i: usize| {
        factors[i].as_ref().is_some_and(|factor| factor.set().without(others(i)).len() > 0)
    };
    let has_steps = match factors.len() {
        0 | 1 => false,
        2 => (0..2).any(is_summed_alone),
        _ => true,
    };
    if has_steps {
        for factor in factors.iter_mut().flatten() {
            factor.widen()?;
        }
    }
    Ok(())
}

/// Operands and intermediate products; `None` once used.
type Factors<B> = SmallVec<[Option<Factor<B>>; 8]>;

/// Takes the diagonal of axes that have the same label.
fn diagonals<B: Backend>(x: &Tensor<B>, mut labels: Labels) -> Result<(Tensor<B>, Labels)> {
    let mut x = x.clone();
    let repeated = |labels: &Labels| {
        let first =
            |(second, label)| Some((labels[..second].iter().position(|l| l == label)?, second));
        labels.iter().enumerate().find_map(first)
    };
    while let Some((first, second)) = repeated(&labels) {
        x = x.diagonal(first, second)?;
        labels.remove(second);
        let label = labels.remove(first);
        labels.push(label);
    }
    Ok((x, labels))
}
