//! Carries out what [`pair`] says on tensors, as recorded operations.

use smallvec::SmallVec;

use super::equation::{Label, LabelSet, Labels};
use super::pair::{LabelledAxes, LabelledAxis, ONE_BY_ONE, Pair, Product, pair};
use crate::autodiff::graph::should_record;
use crate::backend::Backend;
use crate::error::Result;
use crate::shape::{AxisSet, Shape};
use crate::tensor::Tensor;

/// A tensor with a distinct label for each axis; none has extent 1.
pub(crate) struct Factor<B: Backend> {
    tensor: Tensor<B>,
    labels: Labels,
}

impl<B: Backend> Factor<B> {
    /// A tensor with a distinct label for each axis. Axes of extent 1 go away: in a product they repeat
    /// to whatever extent the other factor has.
    pub fn new(tensor: &Tensor<B>, labels: &[Label]) -> Result<Self> {
        let axes = || tensor.dims().iter().zip(labels).filter(|&(&dim, _)| dim != 1);
        let labels: Labels = axes().map(|(_, &label)| label).collect();
        let shape: Shape = axes().map(|(&dim, _)| dim).collect();
        Ok(Factor { tensor: reshaped(tensor, shape)?, labels })
    }

    pub fn set(&self) -> LabelSet {
        self.labels.iter().copied().collect()
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
        Ok(Factor { tensor, labels: self.labels.into_iter().filter(|&l| is_kept(l)).collect() })
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
    fn arranged(&self, lead: &[&Labels], merged: bool, groups: &[&Labels]) -> Result<Tensor<B>> {
        let lead: Labels = lead.iter().copied().flatten().copied().collect();
        let axes: Labels = lead.iter().chain(groups.iter().copied().flatten()).copied().collect();
        let mut dims: SmallVec<[usize; 10]> = SmallVec::new();
        match merged {
            true => dims.push(self.count(&lead)),
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

/// The product of two factors, summed over the labels that both have and `kept` lacks; those that only
/// one has are kept. Axes are in the order of `wanted`, which names all that are kept, if it can be had
/// for nothing.
pub(crate) fn contract<B: Backend>(
    a: &Factor<B>,
    b: &Factor<B>,
    kept: LabelSet,
    wanted: Option<&[Label]>,
) -> Result<Factor<B>> {
    match pair(&a.axes(), &b.axes(), kept, wanted) {
        Pair::Elementwise(labels) => {
            let spread = |x: &Factor<B>| {
                let shape: Shape = labels.iter().map(|&label| x.extent(label)).collect();
                reshaped(&x.permuted(&labels)?, shape)
            };
            Ok(Factor { tensor: spread(a)?.mul(&spread(b)?)?, labels })
        }
        Pair::Product(product) if product.swapped => multiplied(b, a, product),
        Pair::Product(product) => multiplied(a, b, product),
    }
}

fn multiplied<B: Backend>(a: &Factor<B>, b: &Factor<B>, product: Product) -> Result<Factor<B>> {
    let Product { summed, lead, rows, cols, inner, merged_lead: merged, .. } = &product;
    let outer = [summed, lead];
    let tensor = if rows.is_empty() && cols.is_empty() {
        let [left, right] = [a, b].map(|x| x.arranged(&outer, *merged, &[inner]));
        sum_leading(left?.dot_rows(&right?)?, summed.len())?
    } else {
        let left = a.arranged(&outer, *merged, &[rows, inner])?;
        let right = b.arranged(&outer, *merged, &[inner, cols])?;
        match inner.is_empty() {
            true => left.outer_matrices(&right)?,
            false => sum_of_products(&left, &right, summed.len())?,
        }
    };
    let labels: Labels = lead.iter().chain(rows).chain(cols).copied().collect();
    let shape: Shape = labels.iter().map(|&label| a.extent_with(b, label)).collect();
    Ok(Factor { tensor: reshaped(&tensor, shape)?, labels })
}

fn sum_leading<B: Backend>(x: Tensor<B>, axes: usize) -> Result<Tensor<B>> {
    let axes: AxisSet = (0..axes).collect();
    if axes.is_empty() { Ok(x) } else { x.sum(Some(&axes), false) }
}

/// `[…, m, k] × […, k, n]`, summed over the first axes, which both have.
fn sum_of_products<B: Backend>(
    left: &Tensor<B>,
    right: &Tensor<B>,
    axes: usize,
) -> Result<Tensor<B>> {
    let lead = left.rank().max(right.rank()) - 2;
    let extent = |axis: usize| {
        let own = |x: &Tensor<B>| {
            let place = (axis + x.rank()).checked_sub(lead + 2);
            place.map_or(1, |axis| x.dims()[axis])
        };
        own(left).max(own(right))
    };
    let matrix = [left.dims()[left.rank() - 2], right.dims()[right.rank() - 1]];
    // What is too large to be counted `matmul` refuses.
    let size = (axes..lead).map(extent).chain(matrix).fold(1, usize::saturating_mul);
    let count: usize = left.dims()[..axes].iter().product();
    if axes == 0 || count == 0 || size < ONE_BY_ONE || should_record(left.dtype(), &[left, right]) {
        return sum_leading(left.matmul(right)?, axes);
    }
    let mut total: Option<B::Tensor> = None;
    for i in 0..left.dims()[0] {
        let at = |x: &Tensor<B>| x.narrow(0, i, 1)?.squeeze(0);
        let product = sum_of_products(&at(left)?, &at(right)?, axes - 1)?.into_data();
        match &mut total {
            Some(total) => B::accumulate_grad(total, &product)?,
            None => total = Some(product),
        }
    }
    total.map_or_else(|| sum_leading(left.matmul(right)?, axes), |sum| Ok(Tensor::from_data(sum)))
}
