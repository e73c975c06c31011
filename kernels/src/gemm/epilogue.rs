//! Operations on a product's elements while they are in the cache: a bias and an activation.

use super::matrix::{GemmError, MatMut};
use crate::simd::Float;

/// Operations on a product after its additions over k.
///
/// ```text
/// Z = A·B + bias            in registers, added to every row
/// C = activation(Z)         on groups of rows, in the cache
/// ```
#[derive(Debug)]
pub struct Epilogue<'a, E> {
    /// The bias, n elements, added to every row.
    pub bias: Option<&'a [E]>,
    /// The activation, applied to every element.
    pub activation: Option<Activation<'a, E>>,
}

/// A function applied to each element of a product.
pub struct Activation<'a, E> {
    /// Replaces each element by a function of it alone; it is called on runs of any length. For
    /// example [`Kernel::run_in_place`](crate::Kernel::run_in_place).
    pub function: &'a (dyn Fn(&mut [E]) + Sync),
    /// A matrix `[m, n]` that also gets the function's inputs, which its derivative may need.
    pub sums: Option<MatMut<'a, E>>,
}

impl<E> core::fmt::Debug for Activation<'_, E> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Activation")
            .field("keeps_sums", &self.sums.is_some())
            .finish_non_exhaustive()
    }
}

impl<E> Epilogue<'_, E> {
    /// Returns an error unless the epilogue fits C.
    pub(super) fn check(
        &self,
        a: [usize; 2],
        b: [usize; 2],
        c: [usize; 2],
    ) -> Result<(), GemmError> {
        let columns = c[1];
        if let Some(len) = self.bias.map(<[E]>::len).filter(|&len| len != columns) {
            return Err(GemmError::BiasLength { len, columns });
        }
        let sums = self.activation.as_ref().and_then(|activation| activation.sums.as_ref());
        if let Some(shape) = sums.map(MatMut::shape).filter(|&shape| shape != c) {
            return Err(GemmError::ShapeMismatch { a, b, c: shape });
        }
        Ok(())
    }
}

impl<E: Float> Epilogue<'_, E> {
    /// Applies the activation to a C that holds its sums.
    pub(super) fn activate(self, c: MatMut<'_, E>) {
        if let Some(mut activation) = self.activation {
            activation.finish(c, [0, 0]);
        }
    }
}

impl<E: Float> Activation<'_, E> {
    /// The activation of Cᵀ.
    #[must_use]
    pub(super) fn t(self) -> Self {
        Activation { sums: self.sums.map(MatMut::t), ..self }
    }

    /// The activations of rows `..at` and rows `at..` of C.
    pub(super) fn split_rows(self, at: usize) -> (Self, Self) {
        let (above, below) = self.sums.map(|sums| sums.split_rows(at)).unzip();
        let function = self.function;
        (Activation { function, sums: above }, Activation { function, sums: below })
    }

    /// Applies the activation to a part of C that holds its sums, and whose element (0, 0) is C's
    /// at `at`.
    pub(super) fn finish(&mut self, mut part: MatMut<'_, E>, at: [usize; 2]) {
        let function = self.function;
        part.initialized = true;
        let mut sums = self.sums.as_mut().map(|sums| sums.part(at, part.shape()));
        let are_lists = part.is_list() && sums.as_ref().is_none_or(MatMut::is_list);
        if are_lists {
            (part, sums) = (part.flat(), sums.map(MatMut::flat));
        }
        let [rows, columns] = part.shape();
        for i in 0..rows {
            if part.strides()[1] == 1 {
                let row = part.row_mut(i);
                if let Some(sums) = &mut sums {
                    sums.write_row(i, row);
                }
                function(row);
                continue;
            }
            for j in 0..columns {
                let mut element = part.part([i, j], [1, 1]);
                let element = element.row_mut(0);
                if let Some(sums) = &mut sums {
                    sums.part([i, j], [1, 1]).write_row(0, element);
                }
                function(element);
            }
        }
    }
}
