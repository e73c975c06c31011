//! Reductions of successive slices, by the folds in progress of `fold/pairwise.rs`.

use super::{Accumulate, Partial, Reduce, Reduction, Sum};
use crate::fold::fold_slices;
use crate::fold::terms::Products;
use crate::fold::{Pairwise, PairwiseSum};

impl<P: Partial> Pairwise<P> {
    /// Takes a slice for a reduction, block by block. It ends a block, so only the last slice may
    /// have a length that is not a multiple of [`PairwiseSum::BLOCK`].
    ///
    /// ```
    /// use swath_kernels::{Pairwise, reduce::Prod};
    ///
    /// let mut product = Pairwise::new();
    /// product.take(&Prod, &[2.0f32, 3.0]);
    /// assert_eq!(product.finish().value(), 6.0);
    /// ```
    pub fn take<E>(&mut self, reduction: &(impl Reduction<E, Acc = P> + ?Sized), x: &[E]) {
        self.take_subtrees(x.len(), |part| reduction.fold(&x[part]));
    }
}

impl PairwiseSum {
    /// Takes a slice for a sum; otherwise like [`Pairwise::take`].
    pub fn push_slice<E: Accumulate>(&mut self, x: &[E]) {
        self.take(&Sum, x);
    }

    /// Takes `e^(x − shift)` of a slice's elements, each rounded to `E`; otherwise like
    /// [`Pairwise::take`].
    pub fn push_exps<E: Reduce>(&mut self, x: &[E], shift: E) {
        E::push_exps(self, x, shift);
    }

    /// Takes the products of two slices' elements; otherwise like [`Pairwise::take`].
    ///
    /// # Panics
    /// If the lengths differ.
    #[track_caller]
    pub fn push_products<E: Accumulate>(&mut self, a: &[E], b: &[E]) {
        assert!(a.len() == b.len(), "dot: the slices have {} and {} elements", a.len(), b.len());
        self.take_subtrees(a.len(), |part| {
            fold_slices::<Products, 1, E>(&a[part.clone()], &b[part])
        });
    }
}
