//! Carries out what [`pair`] says on tensors, as recorded operations.

use smallvec::SmallVec;

use super::equation::{Label, LabelSet, Labels};
use super::pair::{LabelledAxes, LabelledAxis, Pair, Product, pair};
use crate::backend::Backend;
use crate::error::Result;
use crate::shape::{AxisSet, Shape};
use crate::tensor::Tensor;

/// A tensor with a distinct label for each axis; none has extent 1.
pub(crate) struct Factor<B: Backend> {
    tensor: Tensor<B>,
    labels: Labels,
    /// Labels of axes of extent 1, which `tensor` lacks.
    ones: LabelSet,
}

impl<B: Backend> Factor<B> {
    /// A tensor with a distinct label for each axis. Axes of extent 1 go away: in a product they repeat
    /// to whatever extent the other factor has.
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

    /// All labels, of axes of extent 1 too.
    fn all(&self) -> LabelSet {
        self.set().union(self.ones)
    }

    /// Repeated along the axes of `kept` that have extent 1 here and more in `other`.
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

    /// In `F32` if it is of 16 bits.
    pub fn widen(&mut self) -> Result<()> {
        self.tensor = self.tensor.widened()?;
        Ok(())
    }

    /// Summed over the axes whose labels are not kept.
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

    /// With its axes in the order of `labels`, in `shape`, which may have axes of extent 1 besides.
    pub fn into_tensor(self, labels: &[Label], shape: Shape) -> Result<Tensor<B>> {
        reshaped(&self.permuted(labels)?, shape)
    }

    /// The axes that `labels` names, in its order; it names them all.
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

    /// The extent of an axis; 1 of one that is not there.
    fn extent(&self, label: Label) -> usize {
        self.own_extent(label).unwrap_or(1)
    }

    /// The extent that an axis has in a product with `other`.
    pub fn extent_with(&self, other: &Self, label: Label) -> usize {
        self.own_extent(label).unwrap_or_else(|| other.extent(label))
    }

    /// The number of elements along these axes.
    fn count(&self, labels: &[Label]) -> usize {
        labels.iter().map(|&label| self.extent(label)).product()
    }

    /// One axis for each label of `lead`, or one for all, of extent 1 where a label is missing (none in
    /// front of all others); then one for each group.
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
/// `sequence`, which names these; those that only one has are kept. Axes are in the order of `wanted`,
/// which names all that are kept and have another extent than 1, if it can be had for nothing.
///
/// `kept` names axes of extent 1 as well, so that which sums are inner products does not depend on
/// extents: a row has the same bits alone as among others.
pub(crate) fn contract<B: Backend>(
    a: &Factor<B>,
    b: &Factor<B>,
    kept: LabelSet,
    wanted: Option<&[Label]>,
    sequence: &[Label],
) -> Result<Factor<B>> {
    let both = a.all().intersection(b.all());
    if kept.intersection(a.all().union(b.all())) == kept.intersection(both) {
        let [a, b] = [a.repeated_as(b, kept)?, b.repeated_as(a, kept)?];
        return paired(&a, &b, kept, wanted, sequence, Kind::Inner);
    }
    paired(a, b, kept, wanted, sequence, Kind::Matrices)
}

/// What a sum of products is.
enum Kind {
    /// A number for every index of axes that both factors have.
    Inner,
    Matrices,
}

fn paired<B: Backend>(
    a: &Factor<B>,
    b: &Factor<B>,
    kept: LabelSet,
    wanted: Option<&[Label]>,
    sequence: &[Label],
    kind: Kind,
) -> Result<Factor<B>> {
    let ones = a.ones.union(b.ones).intersection(kept);
    let (tensor, labels) = match pair(&a.axes(), &b.axes(), kept, wanted, sequence) {
        Pair::Elementwise(labels) => {
            let spread = |x: &Factor<B>| {
                let shape: Shape = labels.iter().map(|&label| x.extent(label)).collect();
                reshaped(&x.permuted(&labels)?, shape)
            };
            (spread(a)?.mul(&spread(b)?)?, labels)
        }
        Pair::Product(product) if product.swapped => multiplied(b, a, &product, kind)?,
        Pair::Product(product) => multiplied(a, b, &product, kind)?,
    };
    let ones = ones.without(labels.iter().copied().collect());
    Ok(Factor { tensor, labels, ones })
}

fn multiplied<B: Backend>(
    a: &Factor<B>,
    b: &Factor<B>,
    product: &Product,
    kind: Kind,
) -> Result<(Tensor<B>, Labels)> {
    let Product { lead, rows, cols, inner, merged_lead: merged, .. } = product;
    let tensor = match kind {
        Kind::Inner => {
            let [left, right] = [a, b].map(|x| x.arranged(lead, *merged, &[inner]));
            left?.dot_rows(&right?)?
        }
        Kind::Matrices => {
            let left = a.arranged(lead, *merged, &[rows, inner])?;
            let right = b.arranged(lead, *merged, &[inner, cols])?;
            match inner.is_empty() {
                true => left.outer_matrices(&right)?,
                false => left.matmul(&right)?,
            }
        }
    };
    let labels: Labels = lead.iter().chain(rows).chain(cols).copied().collect();
    let shape: Shape = labels.iter().map(|&label| a.extent_with(b, label)).collect();
    Ok((reshaped(&tensor, shape)?, labels))
}
