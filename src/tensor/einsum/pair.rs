//! How two operands with labelled axes become one matrix product, or one element-wise product. Knows
//! extents and strides, not tensors.
//!
//! A label is in one of four groups. Those of one operand alone are all in the result: others have been
//! summed before.
//!
//! ```text
//!           in a   in b   in the result
//! batch      ×      ×          ×            one product for each index
//! left       ×                 ×            rows of the product
//! right             ×          ×            columns
//! inner      ×      ×                       what the product sums over
//! ```
//!
//! 1. A group becomes one axis of a matrix if its axes, in some order, lie as one: stride equals extent
//!    times stride of the next. Only the order of falling strides can.
//! 2. Axes of `left` that do not lie as one with the others stay outside the product, where the right
//!    side is repeated by a stride of 0; likewise for `right`. Inside stays what lies densest.
//! 3. The axes of `inner` are summed in one order, whatever the layout, since it decides the bits. An
//!    operand in which they do not lie as one in this order is copied.
//! 4. Without `inner` the product is element-wise, unless every index of `left` meets every one of
//!    `right`: as a matrix product its gradients are matrix products too, that sum as they go.
//! 5. The result may have its axes in any order, which a view puts right. If the last one wanted is of
//!    `left` and there are columns, the operands change places, so that the view lies in order.

use smallvec::SmallVec;

use super::equation::{Label, LabelSet, Labels};
use crate::shape::MAX_RANK;

/// An axis of an operand. Its extent is not 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct LabelledAxis {
    pub label: Label,
    pub extent: usize,
    pub stride: isize,
}

pub(super) type LabelledAxes = SmallVec<[LabelledAxis; MAX_RANK]>;

/// What to do with two operands.
#[derive(Debug, PartialEq)]
pub(super) enum Pair {
    /// Multiply element by element, with axes in this order.
    Elementwise(Labels),
    Product(Product),
}

/// `[lead…, rows, inner] × [lead…, inner, cols] → [lead…, rows, cols]`, each of the last three a group
/// of axes.
#[derive(Debug, PartialEq)]
pub(super) struct Product {
    /// The second operand is on the left.
    pub swapped: bool,
    /// An operand that lacks one is repeated.
    pub lead: Labels,
    pub rows: Labels,
    pub cols: Labels,
    pub inner: Labels,
    /// The axes of `lead` are to be made one, since the product would have too many.
    pub merged_lead: bool,
}

/// Axes by label, of one operand.
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

    /// Labels of a group by falling stride; in their order here where strides are equal.
    fn sorted(&self, group: LabelSet) -> Labels {
        let mut axes: LabelledAxes =
            self.0.iter().copied().filter(|axis| group.contains(axis.label)).collect();
        axes.sort_by_key(|axis| std::cmp::Reverse(axis.stride.unsigned_abs()));
        axes.iter().map(|axis| axis.label).collect()
    }

    /// The axis whose elements are next to each other, or least apart.
    fn nearest(&self) -> Option<Label> {
        let steps = self.0.iter().filter(|axis| axis.stride != 0);
        steps.min_by_key(|axis| axis.stride.unsigned_abs()).map(|axis| axis.label)
    }

    /// True if the two axes lie as one, the first outside the second.
    fn adjoin(&self, outer: Label, inner: Label) -> bool {
        let (Some(outer), Some(inner)) = (self.axis(outer), self.axis(inner)) else { return false };
        isize::try_from(inner.extent)
            .ok()
            .and_then(|extent| inner.stride.checked_mul(extent))
            .is_some_and(|step| step == outer.stride)
    }

    fn lies_as_one(&self, labels: &[Label]) -> bool {
        labels.windows(2).all(|pair| self.adjoin(pair[0], pair[1]))
    }
}

/// Neighbours that `adjoin`: those around `around`, or the most elements; and the labels outside them.
fn run(
    labels: &[Label],
    around: Option<Label>,
    extent: impl Fn(Label) -> usize,
    adjoin: impl Fn(Label, Label) -> bool,
) -> (Labels, Labels) {
    let (mut best, mut best_size, mut start) = (0..0, f64::NEG_INFINITY, 0);
    for end in 1..=labels.len() {
        if end == labels.len() || !adjoin(labels[end - 1], labels[end]) {
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

/// How to multiply `a` and `b`, with the labels of `kept` in the result, in the order of `wanted` if it
/// is known, and those of `inner` in the order of `sequence`.
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
    let order: Labels = match wanted {
        Some(labels) => labels.into(),
        None => {
            let groups = [(&a, batch), (&a, left), (&b, right)];
            let labels = groups.into_iter().flat_map(|(side, group)| {
                let own = side.0.iter().map(|axis| axis.label);
                own.filter(move |&label| group.contains(label))
            });
            labels.collect()
        }
    };
    let empty = LabelSet::default();
    if inner.is_empty() {
        let batch_first = order.iter().take(batch.len()).all(|&label| batch.contains(label));
        if left == empty || right == empty || !batch_first {
            return Pair::Elementwise(order);
        }
    }
    let group = |side: &Side<'_>, group: LabelSet| {
        let sorted = side.sorted(group);
        if !side.lies_as_one(&inner) {
            return (sorted, Labels::new());
        }
        let nearest = side.nearest().filter(|&label| group.contains(label));
        let adjoin = |outer, inner| side.adjoin(outer, inner);
        run(&sorted, nearest, |label| side.extent(label), adjoin)
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

    /// Axes from `"ij"` with their extents and strides.
    fn axes(labels: &str, extents: &[usize], strides: &[isize]) -> LabelledAxes {
        let parts = labels.bytes().zip(extents).zip(strides);
        parts
            .map(|((label, &extent), &stride)| LabelledAxis { label: label - b'a', extent, stride })
            .collect()
    }

    fn rows_major(labels: &str, extents: &[usize]) -> LabelledAxes {
        let strides = crate::shape::Shape::new(extents).contiguous_strides();
        axes(labels, extents, strides.as_slice())
    }

    fn labels(text: &str) -> Labels {
        text.bytes().map(|label| label - b'a').collect()
    }

    fn text(labels: &[Label]) -> String {
        labels.iter().map(|&label| char::from(label + b'a')).collect()
    }

    /// `lead rows cols inner` of a product, with `~` in front where the operands changed places.
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
    fn everyday_products() {
        let rows = |labels, extents: &[usize]| rows_major(labels, extents);
        let ij = rows("ij", &[3, 4]);
        assert_eq!(product(&ij, &rows("jk", &[4, 5]), "ik"), " i k j");
        assert_eq!(product(&ij, &rows("jk", &[4, 5]), "ki"), "~ k i j");
        assert_eq!(product(&ij, &rows("kj", &[5, 4]), "ik"), " i k j");
        assert_eq!(product(&ij, &rows("ij", &[3, 4]), "i"), "i   j");
        // A window of a wider matrix, which is copied.
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
    fn inner_axes_have_one_order_whatever_the_strides() {
        let a = rows_major("ijk", &[6, 4, 5]);
        for b in [axes("kjl", &[5, 4, 7], &[7, 35, 1]), axes("kjl", &[5, 4, 7], &[28, 7, 1])] {
            assert_eq!(product(&a, &b, "il"), " i l jk");
        }
        let turned = axes("ijk", &[6, 4, 5], &[1, 6, 24]);
        assert_eq!(product(&turned, &rows_major("kj", &[5, 4]), "i"), " i  jk");
        // Rows of an operand that is copied are one axis, wherever they lie.
        let a = axes("xjyk", &[2, 4, 3, 5], &[60, 15, 5, 1]);
        assert_eq!(product(&a, &rows_major("jkl", &[4, 5, 7]), "xyl"), " xy l jk");
    }

    #[test]
    fn rows_that_do_not_lie_as_one_stay_outside() {
        // A window: every row of b but the last.
        let a = axes("bij", &[2, 3, 4], &[16, 4, 1]);
        assert_eq!(product(&a, &rows_major("jk", &[4, 5]), "bik"), "b i k j");
        // Both sides, and a batch.
        let a = axes("xbij", &[7, 2, 3, 4], &[32, 16, 4, 1]);
        let b = axes("xjcd", &[7, 4, 2, 5], &[64, 16, 8, 1]);
        assert_eq!(product(&a, &b, "xbicd"), "xbc i d j");
    }

    #[test]
    fn nine_axes_are_made_fewer() {
        let a = rows_major("abcdefgh", &[2; 8]);
        let b = rows_major("abcdefgh", &[2; 8]);
        let kept: LabelSet = labels("abcdefg").into_iter().collect();
        let Pair::Product(found) = pair(&a, &b, kept, None, &labels("abcdefgh")) else {
            panic!("a product")
        };
        assert!(found.merged_lead && text(&found.lead) == "abcdefg" && text(&found.inner) == "h");
    }
}
