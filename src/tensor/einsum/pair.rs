//! Plans the product of two operands with labelled axes, as one matrix product or one element-wise
//! product. Works on extents and strides, not on tensors.
//!
//! A label is in one of four groups. Labels of one operand alone are all in the result; others have
//! been summed before.
//!
//! ```text
//!           in a   in b   in the result
//! batch      ×      ×          ×            one product for each index
//! left       ×                 ×            rows of the product
//! right             ×          ×            columns
//! inner      ×      ×                       what the product sums over
//! ```
//!
//! 1. A group becomes one axis of a matrix if its axes, in some order, can be merged: each stride
//!    equals extent times stride of the next. Only the order of descending strides can satisfy
//!    this.
//! 2. Axes of `left` that cannot be merged with the others become leading axes of the product,
//!    along which the right operand is repeated by a stride of 0; likewise for `right`. The axes
//!    that are densest in memory stay inside.
//! 3. The axes of `inner` are summed in one order, whatever the layout, since the order decides the
//!    bits. An operand whose axes cannot be merged in this order is copied.
//! 4. Without `inner` the product is element-wise, unless every index of `left` meets every index
//!    of `right`: then it is an outer product, whose gradients are matrix products.
//! 5. The result may have its axes in any order, corrected by a view. If the last wanted axis is of
//!    `left` and there are columns, the operands are swapped, so that the view is contiguous.

use smallvec::SmallVec;

use super::equation::{Label, LabelSet, Labels};
use crate::shape::MAX_RANK;

/// An axis of an operand, of an extent other than 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct LabelledAxis {
    pub label: Label,
    pub extent: usize,
    pub stride: isize,
}

pub(super) type LabelledAxes = SmallVec<[LabelledAxis; MAX_RANK]>;

/// A plan for multiplying two operands.
#[derive(Debug, PartialEq)]
pub(super) enum Pair {
    /// An element-wise product, with axes in this order.
    Elementwise(Labels),
    Product(Product),
}

/// The matrix product `[lead…, rows, inner] × [lead…, inner, cols] → [lead…, rows, cols]`; rows,
/// columns and inner are groups of axes.
#[derive(Debug, PartialEq)]
pub(super) struct Product {
    /// True if the second operand is the left factor.
    pub swapped: bool,
    /// Leading axes; an operand that lacks one is repeated along it.
    pub lead: Labels,
    pub rows: Labels,
    pub cols: Labels,
    pub inner: Labels,
    /// True if the axes of `lead` have to be merged, since the product would have too many.
    pub merged_lead: bool,
}

/// The axes of one operand, by label.
struct Side<'a>(&'a [LabelledAxis]);

impl Side<'_> {
    fn set(&self) -> LabelSet {
        self.0.iter().map(|axis| axis.label).collect()
    }

    fn axis(&self, label: Label) -> Option<&LabelledAxis> {
        self.0.iter().find(|axis| axis.label == label)
    }

    fn extent(&self, label: Label) -> usize {
        self.axis(label).map_or(1, |axis| axis.extent)
    }

    /// Labels of a group by descending stride; ties keep the order of the axes.
    fn sorted(&self, group: LabelSet) -> Labels {
        let mut axes: LabelledAxes =
            self.0.iter().copied().filter(|axis| group.contains(axis.label)).collect();
        axes.sort_by_key(|axis| std::cmp::Reverse(axis.stride.unsigned_abs()));
        axes.iter().map(|axis| axis.label).collect()
    }

    /// The axis of the smallest non-zero stride.
    fn nearest(&self) -> Option<Label> {
        let steps = self.0.iter().filter(|axis| axis.stride != 0);
        steps.min_by_key(|axis| axis.stride.unsigned_abs()).map(|axis| axis.label)
    }

    /// True if the two axes can be merged, the first outside the second.
    fn can_merge(&self, outer: Label, inner: Label) -> bool {
        let (Some(outer), Some(inner)) = (self.axis(outer), self.axis(inner)) else { return false };
        isize::try_from(inner.extent)
            .ok()
            .and_then(|extent| inner.stride.checked_mul(extent))
            .is_some_and(|step| step == outer.stride)
    }

    fn merges_in_order(&self, labels: &[Label]) -> bool {
        labels.windows(2).all(|pair| self.can_merge(pair[0], pair[1]))
    }
}

/// Splits labels into a run of neighbours that can be merged, and the labels outside it. The run is
/// the one with `around`, or the one with the most elements.
fn run(
    labels: &[Label],
    around: Option<Label>,
    extent: impl Fn(Label) -> usize,
    can_merge: impl Fn(Label, Label) -> bool,
) -> (Labels, Labels) {
    let (mut best, mut best_size, mut start) = (0..0, f64::NEG_INFINITY, 0);
    for end in 1..=labels.len() {
        if end == labels.len() || !can_merge(labels[end - 1], labels[end]) {
            let run = &labels[start..end];
            let size = match around.is_some_and(|label| run.contains(&label)) {
                true => f64::INFINITY,
                false => run.iter().map(|&label| extent(label) as f64).product(),
            };
            if size > best_size {
                (best, best_size) = (start..end, size);
            }
            start = end;
        }
    }
    let outside = labels[..best.start].iter().chain(&labels[best.end..]).copied().collect();
    (labels[best].into(), outside)
}

/// The labels of each group in the order of its side.
fn in_groups(groups: [(&Side<'_>, LabelSet); 3]) -> Labels {
    let labels = groups.into_iter().flat_map(|(side, group)| {
        let own = side.0.iter().map(|axis| axis.label);
        own.filter(move |&label| group.contains(label))
    });
    labels.collect()
}

/// Plans the product of `a` and `b`: the labels of `kept` are in the result, in the order of
/// `wanted` if given, and those of `inner` are summed in the order of `sequence`.
pub(super) fn pair(
    a: &[LabelledAxis],
    b: &[LabelledAxis],
    kept: LabelSet,
    wanted: Option<&[Label]>,
    sequence: &[Label],
) -> Pair {
    let last = wanted.and_then(|labels| labels.last());
    let alone = |side: &[LabelledAxis], other: &[LabelledAxis], label: Label| {
        let has = |side: &[LabelledAxis]| side.iter().any(|axis| axis.label == label);
        has(side) && !has(other)
    };
    let swapped =
        last.is_some_and(|&last| alone(a, b, last)) && b.iter().any(|axis| alone(b, a, axis.label));
    let (a, b) = if swapped { (Side(b), Side(a)) } else { (Side(a), Side(b)) };
    let both = a.set().intersection(b.set());
    let batch = both.intersection(kept);
    let (left, right) = (a.set().without(both), b.set().without(both));
    let is_inner = |label: &&Label| both.contains(**label) && !kept.contains(**label);
    let inner: Labels = sequence.iter().filter(is_inner).copied().collect();
    let groups = [(&a, batch), (&a, left), (&b, right)];
    let order: Labels = wanted.map_or_else(|| in_groups(groups), Labels::from);
    let empty = LabelSet::default();
    if inner.is_empty() {
        let batch_first = order.iter().take(batch.len()).all(|&label| batch.contains(label));
        if left == empty || right == empty || !batch_first {
            return Pair::Elementwise(order);
        }
    }
    let group = |side: &Side<'_>, group: LabelSet| {
        let sorted = side.sorted(group);
        if !side.merges_in_order(&inner) {
            return (sorted, Labels::new());
        }
        let nearest = side.nearest().filter(|&label| group.contains(label));
        let can_merge = |outer, inner| side.can_merge(outer, inner);
        run(&sorted, nearest, |label| side.extent(label), can_merge)
    };
    let (rows, rows_outside) = group(&a, left);
    let (cols, cols_outside) = group(&b, right);
    let is_lead = |label: &&Label| {
        batch.contains(**label) || rows_outside.contains(label) || cols_outside.contains(label)
    };
    let lead: Labels = order.iter().filter(is_lead).copied().collect();
    if lead.len() + 2 <= MAX_RANK {
        let merged_lead = false;
        return Pair::Product(Product { swapped, lead, rows, cols, inner, merged_lead });
    }
    let in_order = |set: LabelSet| order.iter().filter(|&&l| set.contains(l)).copied().collect();
    Pair::Product(Product {
        swapped,
        lead: in_order(batch),
        rows: in_order(left),
        cols: in_order(right),
        inner,
        merged_lead: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Axes named by the bytes of `labels`.
    fn axes(labels: &str, extents: &[usize], strides: &[isize]) -> LabelledAxes {
        let parts = labels.bytes().zip(extents).zip(strides);
        parts
            .map(|((label, &extent), &stride)| LabelledAxis { label: label - b'a', extent, stride })
            .collect()
    }

    fn row_major(labels: &str, extents: &[usize]) -> LabelledAxes {
        let strides = crate::shape::Shape::new(extents).contiguous_strides();
        axes(labels, extents, strides.as_slice())
    }

    fn labels(text: &str) -> Labels {
        text.bytes().map(|label| label - b'a').collect()
    }

    fn text(labels: &[Label]) -> String {
        labels.iter().map(|&label| char::from(label + b'a')).collect()
    }

    /// The groups `lead rows cols inner` of a product as text, with a leading `~` if the operands
    /// are swapped.
    fn product(a: &LabelledAxes, b: &LabelledAxes, wanted: &str) -> String {
        let wanted = labels(wanted);
        let sequence: Labels = a.iter().map(|axis| axis.label).collect();
        match pair(a, b, wanted.iter().copied().collect(), Some(&wanted), &sequence) {
            Pair::Elementwise(order) => format!("elementwise {}", text(&order)),
            Pair::Product(p) => {
                let mark = if p.swapped { "~" } else { "" };
                let groups = [&p.lead, &p.rows, &p.cols, &p.inner];
                format!("{mark}{}", groups.map(|group| text(group)).join(" "))
            }
        }
    }

    #[test]
    fn common_products_are_planned_without_leading_axes() {
        let rows = |labels, extents: &[usize]| row_major(labels, extents);
        let ij = rows("ij", &[3, 4]);
        assert_eq!(product(&ij, &rows("jk", &[4, 5]), "ik"), " i k j");
        assert_eq!(product(&ij, &rows("jk", &[4, 5]), "ki"), "~ k i j");
        assert_eq!(product(&ij, &rows("kj", &[5, 4]), "ik"), " i k j");
        assert_eq!(product(&ij, &rows("ij", &[3, 4]), "i"), "i   j");
        // A window of a wider matrix is copied.
        assert_eq!(product(&ij, &axes("ij", &[3, 4], &[9, 1]), ""), "   ij");
        assert_eq!(product(&ij, &rows("ij", &[3, 4]), "ij"), "elementwise ij");
        assert_eq!(product(&ij, &rows("j", &[4]), "ji"), "elementwise ji");
        assert_eq!(product(&ij, &rows("k", &[5]), "ijk"), " ij k ");
        let bij = rows("bij", &[2, 3, 4]);
        assert_eq!(product(&bij, &rows("bjk", &[2, 4, 5]), "bik"), "b i k j");
        assert_eq!(product(&bij, &rows("kj", &[5, 4]), "bik"), " bi k j");
        assert_eq!(product(&bij, &rows("bk", &[2, 5]), "bijk"), "b ij k ");
        assert_eq!(product(&bij, &rows("bk", &[2, 5]), "ijkb"), "elementwise ijkb");
    }

    #[test]
    fn inner_axes_have_the_same_order_for_any_strides() {
        let a = row_major("ijk", &[6, 4, 5]);
        for b in [axes("kjl", &[5, 4, 7], &[7, 35, 1]), axes("kjl", &[5, 4, 7], &[28, 7, 1])] {
            assert_eq!(product(&a, &b, "il"), " i l jk");
        }
        let turned = axes("ijk", &[6, 4, 5], &[1, 6, 24]);
        assert_eq!(product(&turned, &row_major("kj", &[5, 4]), "i"), " i  jk");
        // The rows of an operand that is copied are one axis, whatever their strides.
        let a = axes("xjyk", &[2, 4, 3, 5], &[60, 15, 5, 1]);
        assert_eq!(product(&a, &row_major("jkl", &[4, 5, 7]), "xyl"), " xy l jk");
    }

    #[test]
    fn rows_that_cannot_be_merged_become_leading_axes() {
        // A window: all rows of each b except the last.
        let a = axes("bij", &[2, 3, 4], &[16, 4, 1]);
        assert_eq!(product(&a, &row_major("jk", &[4, 5]), "bik"), "b i k j");
        // Windows on both sides, with a batch axis.
        let a = axes("xbij", &[7, 2, 3, 4], &[32, 16, 4, 1]);
        let b = axes("xjcd", &[7, 4, 2, 5], &[64, 16, 8, 1]);
        assert_eq!(product(&a, &b, "xbicd"), "xbc i d j");
    }

    #[test]
    fn leading_axes_are_merged_where_the_product_would_have_nine() {
        let a = row_major("abcdefgh", &[2; 8]);
        let b = row_major("abcdefgh", &[2; 8]);
        let kept: LabelSet = labels("abcdefg").into_iter().collect();
        let Pair::Product(found) = pair(&a, &b, kept, None, &labels("abcdefgh")) else {
            panic!("a product")
        };
        assert!(found.merged_lead && text(&found.lead) == "abcdefg" && text(&found.inner) == "h");
    }
}
