//! Multiplies two tensors as planned by [`pair`].
//!
//! The gradient of a factor is such a product too, of the upstream gradient and the other factor: its
//! sums have an order of their own, whatever the layouts that the plan follows.

use smallvec::SmallVec;

use super::equation::{Label, LabelSet, Labels};
use super::pair::{LabelledAxes, LabelledAxis, Pair, Product, pair};
use crate::autodiff::graph::{SharedRule, record};
use crate::autodiff::ops::bilinear;
use crate::backend::Backend;
use crate::error::Result;
use crate::shape::{AxisSet, Shape};
use crate::tensor::base::Tensor;

/// A tensor with a distinct label for each axis. No axis has extent 1.
#[derive(Clone)]
pub(crate) struct Factor<B: Backend> {
    tensor: Tensor<B>,
    labels: Labels,
    /// Labels of the axes of extent 1, which `tensor` lacks.
    ones: LabelSet,
}

impl<B: Backend> Factor<B> {
    /// Labels the axes of a tensor, distinctly. Axes of extent 1 are dropped: in a product they
    /// broadcast against the other factor.
    pub fn new(tensor: &Tensor<B>, labels: &[Label]) -> Result<Self> {
        let is_one = |&(&dim, _): &(&usize, &Label)| dim == 1;
        let axes = || tensor.dims().iter().zip(labels);
        let ones = axes().filter(is_one).map(|(_, &label)| label).collect();
        let axes = || axes().filter(|axis| !is_one(axis));
        let labels: Labels = axes().map(|(_, &label)| label).collect();
        let shape: Shape = axes().map(|(&dim, _)| dim).collect();
        Ok(Factor { tensor: reshaped(tensor, shape)?, labels, ones })
    }

    pub fn set(&self) -> LabelSet {
        self.labels.iter().copied().collect()
    }

    /// All labels, including those of axes of extent 1.
    fn all(&self) -> LabelSet {
        self.set().union(self.ones)
    }

    /// Broadcasts along the axes of `kept` that have extent 1 here and more in `other`.
    fn repeated_as(&self, other: &Self, kept: LabelSet) -> Result<Self> {
        let is_missing = |label: &&Label| {
            kept.contains(**label) && self.ones.contains(**label) && other.set().contains(**label)
        };
        let missing: Labels = other.labels.iter().filter(is_missing).copied().collect();
        let own = self.labels.iter().zip(self.tensor.dims()).map(|(&label, &dim)| (label, dim));
        let axes = || missing.iter().map(|&label| (label, other.extent(label))).chain(own.clone());
        let shape: Shape = axes().map(|(_, dim)| dim).collect();
        let tensor = match missing.is_empty() {
            true => self.tensor.clone(),
            false => self.tensor.broadcast_to(shape)?,
        };
        let labels: Labels = axes().map(|(label, _)| label).collect();
        let ones = self.ones.without(labels.iter().copied().collect());
        Ok(Factor { tensor, labels, ones })
    }

    /// Converts 16-bit floats to `F32`.
    pub fn widen(&mut self) -> Result<()> {
        self.tensor = self.tensor.widened()?;
        Ok(())
    }

    /// Sums over the axes whose labels are not in `kept`.
    pub fn summed_to(self, kept: LabelSet) -> Result<Self> {
        let is_kept = |label: Label| kept.contains(label);
        let axes = self.labels.iter().enumerate().filter(|&(_, &label)| !is_kept(label));
        let axes: AxisSet = axes.map(|(axis, _)| axis).collect();
        if axes.is_empty() {
            return Ok(self);
        }
        let tensor = self.tensor.sum(Some(&axes), false)?;
        let labels = self.labels.into_iter().filter(|&label| is_kept(label)).collect();
        Ok(Factor { tensor, labels, ones: self.ones })
    }

    /// The tensor with its axes in the order of `labels`, reshaped to `shape`, which may have more
    /// axes of extent 1.
    pub fn into_tensor(self, labels: &[Label], shape: Shape) -> Result<Tensor<B>> {
        reshaped(&self.permuted(labels)?, shape)
    }

    /// The tensor with its axes in the order of `labels`, which names all of them.
    fn permuted(&self, labels: &[Label]) -> Result<Tensor<B>> {
        let place = |label| self.labels.iter().position(|own| own == label);
        let axes: AxisSet = labels.iter().filter_map(place).collect();
        match axes.iter().enumerate().all(|(to, &from)| to == from) {
            true => Ok(self.tensor.clone()),
            false => self.tensor.permute(&axes),
        }
    }

    fn axes(&self) -> LabelledAxes {
        let layout = self.tensor.layout();
        let parts = self.labels.iter().zip(layout.dims()).zip(layout.strides());
        parts.map(|((&label, &extent), &stride)| LabelledAxis { label, extent, stride }).collect()
    }

    fn own_extent(&self, label: Label) -> Option<usize> {
        let place = self.labels.iter().position(|&own| own == label);
        place.map(|axis| self.tensor.dims()[axis])
    }

    /// The extent of an axis; 1 if there is none of this label.
    fn extent(&self, label: Label) -> usize {
        self.own_extent(label).unwrap_or(1)
    }

    /// The extent of an axis in a product with `other`.
    pub fn extent_with(&self, other: &Self, label: Label) -> usize {
        self.own_extent(label).unwrap_or_else(|| other.extent(label))
    }

    /// The number of elements along these axes.
    fn count(&self, labels: &[Label]) -> usize {
        labels.iter().map(|&label| self.extent(label)).product()
    }

    /// Reshapes the factor for a product: one axis for each label of `lead` (or one for all if
    /// `merged`), of extent 1 where the factor lacks it (none in front of all others), then one for
    /// each group.
    fn arranged(&self, lead: &Labels, merged: bool, groups: &[&Labels]) -> Result<Tensor<B>> {
        let axes: Labels = lead.iter().chain(groups.iter().copied().flatten()).copied().collect();
        let mut dims: SmallVec<[usize; 10]> = SmallVec::new();
        match merged {
            true => dims.push(self.count(lead)),
            false => dims.extend(lead.iter().map(|&label| self.extent(label))),
        }
        let missing = lead.iter().take_while(|label| !self.labels.contains(label)).count();
        let dims = dims.into_iter().skip(if merged { 0 } else { missing });
        let shape: Shape = dims.chain(groups.iter().map(|group| self.count(group))).collect();
        reshaped(&self.permuted(&axes)?, shape)
    }
}

fn reshaped<B: Backend>(x: &Tensor<B>, shape: Shape) -> Result<Tensor<B>> {
    match x.shape() == &shape {
        true => Ok(x.clone()),
        false => x.reshape(shape),
    }
}

/// The product of two factors, summed over the labels that both have and `kept` lacks, in the order of
/// `sequence`, which names these. Labels of a single factor are kept. The axes are in the order of
/// `wanted`, which names all kept labels of extents other than 1, if a view can give that order.
///
/// `kept` names axes of extent 1 as well, so that the choice of inner products does not depend on
/// extents: a row has the same bits alone as in a batch.
pub(crate) fn contract<B: Backend>(
    a: &Factor<B>,
    b: &Factor<B>,
    kept: LabelSet,
    wanted: Option<&[Label]>,
    sequence: &[Label],
) -> Result<Factor<B>> {
    let [left, right] = [a, b].map(|x| Factor { tensor: x.tensor.detach(), ..x.clone() });
    let Factor { tensor, labels, ones } = product(&left, &right, kept, wanted, sequence)?;
    let rule = |_: &B::Tensor| contract_rule([a, b], labels.clone(), ones, sequence);
    let tensor = record("einsum", tensor.into_data(), &[&a.tensor, &b.tensor], rule);
    Ok(Factor { tensor, labels, ones })
}

/// Rule of [`contract`].
fn contract_rule<B: Backend>(
    factors: [&Factor<B>; 2],
    labels: Labels,
    ones: LabelSet,
    sequence: &[Label],
) -> SharedRule<B> {
    let own = factors.map(|x| (x.labels.clone(), x.ones, *x.tensor.shape()));
    // Labels of a single factor come after those of the sequence.
    let mut order: Labels = sequence.into();
    for label in own.iter().flat_map(|(labels, ..)| labels) {
        if !order.contains(label) {
            order.push(*label);
        }
    }
    bilinear(factors.map(|x| &x.tensor), move |upstream, i, other| {
        let g = Factor { tensor: upstream.g.clone(), labels: labels.clone(), ones };
        let ((labels, ones, shape), (theirs, their_ones, _)) = (&own[i], &own[1 - i]);
        let other = Factor { tensor: other.clone(), labels: theirs.clone(), ones: *their_ones };
        // The axes along which the factor was repeated are summed.
        let kept = labels.iter().copied().collect::<LabelSet>();
        let kept = kept.union(ones.without(g.set()));
        contract(&g, &other, kept, Some(labels), &order)?.into_tensor(labels, *shape)
    })
}

/// The values of [`contract`].
fn product<B: Backend>(
    a: &Factor<B>,
    b: &Factor<B>,
    kept: LabelSet,
    wanted: Option<&[Label]>,
    sequence: &[Label],
) -> Result<Factor<B>> {
    let both = a.all().intersection(b.all());
    let is_inner = kept.intersection(a.all().union(b.all())) == kept.intersection(both);
    let repeated;
    let (a, b) = if is_inner {
        repeated = [a.repeated_as(b, kept)?, b.repeated_as(a, kept)?];
        (&repeated[0], &repeated[1])
    } else {
        (a, b)
    };
    let (tensor, labels) = match pair(&a.axes(), &b.axes(), kept, wanted, sequence) {
        Pair::Elementwise(labels) => {
            let expanded = |x: &Factor<B>| {
                let shape: Shape = labels.iter().map(|&label| x.extent(label)).collect();
                reshaped(&x.permuted(&labels)?, shape)
            };
            (expanded(a)?.mul(&expanded(b)?)?, labels)
        }
        Pair::Product(product) if product.swapped => multiplied(b, a, &product, is_inner)?,
        Pair::Product(product) => multiplied(a, b, &product, is_inner)?,
    };
    let ones = a.ones.union(b.ones).intersection(kept);
    let ones = ones.without(labels.iter().copied().collect());
    Ok(Factor { tensor, labels, ones })
}

/// The matrix product, or the inner products of all rows if `is_inner`, and the labels of its axes.
fn multiplied<B: Backend>(
    a: &Factor<B>,
    b: &Factor<B>,
    product: &Product,
    is_inner: bool,
) -> Result<(Tensor<B>, Labels)> {
    let Product { lead, rows, cols, inner, merged_lead: merged, .. } = product;
    let tensor = if is_inner {
        let [left, right] = [a, b].map(|x| x.arranged(lead, *merged, &[inner]));
        left?.dot_rows(&right?)?
    } else {
        let left = a.arranged(lead, *merged, &[rows, inner])?;
        let right = b.arranged(lead, *merged, &[inner, cols])?;
        match inner.is_empty() {
            true => left.outer_matrices(&right)?,
            false => left.matmul(&right)?,
        }
    };
    let labels: Labels = lead.iter().chain(rows).chain(cols).copied().collect();
    let shape: Shape = labels.iter().map(|&label| a.extent_with(b, label)).collect();
    Ok((reshaped(&tensor, shape)?, labels))
}
