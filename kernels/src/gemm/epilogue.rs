//! The end of a product: a bias and a function, applied while its elements are in registers or in the cache.

use super::matrix::{GemmError, MatMut};
use crate::simd::Float;

/// Operations on a product after its additions over k.
///
/// ```text
/// Z = alpha · A·B + beta · C + bias
/// C = function(Z)                      on groups of rows, in the cache
/// ```
///
/// The default is none.
pub struct Epilogue<'a, E> {
    /// Added to every row or to every column.
    pub bias: Option<Bias<'a, E>>,
    /// Applied to every element.
    pub function: Option<InPlace<'a, E>>,
    /// A matrix `[m, n]` that also gets Z, which the function's derivative may need.
    pub sums: Option<MatMut<'a, E>>,
}

/// A function that replaces each element by a function of it alone; it is called on runs of any length. For example
/// [`Kernel::run_in_place`](crate::Kernel::run_in_place).
pub type InPlace<'a, E> = &'a (dyn Fn(&mut [E]) + Sync);

/// The bias of a product `[m, n]`.
#[derive(Clone, Copy, Debug)]
pub enum Bias<'a, E> {
    /// n elements, one for each column: they are added to every row.
    PerColumn(&'a [E]),
    /// m elements, one for each row: they are added to every column.
    PerRow(&'a [E]),
}

impl<E> Default for Epilogue<'_, E> {
    #[inline(always)]
    fn default() -> Self {
        Epilogue { bias: None, function: None, sums: None }
    }
}

impl<'a, E> From<Bias<'a, E>> for Epilogue<'a, E> {
    fn from(bias: Bias<'a, E>) -> Self {
        Epilogue { bias: Some(bias), ..Epilogue::default() }
    }
}

impl<E> core::fmt::Debug for Epilogue<'_, E> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Epilogue")
            .field("has_bias", &self.bias.is_some())
            .field("has_function", &self.function.is_some())
            .field("keeps_sums", &self.sums.is_some())
            .finish()
    }
}

impl<'a, E: Copy> Epilogue<'a, E> {
    /// True if there is nothing to do.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.bias.is_none() && self.function.is_none() && self.sums.is_none()
    }

    /// True if there is nothing but, at most, a bias that is added to every row.
    #[inline(always)]
    pub(super) fn is_in_registers(&self) -> bool {
        let is_of_columns = !matches!(self.bias, Some(Bias::PerRow(_)));
        is_of_columns && self.function.is_none() && self.sums.is_none()
    }

    /// Returns the same epilogue with a shorter lifetime.
    pub fn reborrow(&mut self) -> Epilogue<'_, E> {
        Epilogue { sums: self.sums.as_mut().map(MatMut::reborrow), ..*self }
    }

    /// Splits into the epilogues of rows `..at` and rows `at..` of C.
    ///
    /// # Panics
    /// If `at` is beyond the number of rows.
    #[must_use]
    pub fn split_rows(self, at: usize) -> (Self, Self) {
        let (above, below) = self.sums.map(|sums| sums.split_rows(at)).unzip();
        let (bias, bias_below) = match self.bias {
            Some(Bias::PerRow(bias)) => {
                let (bias, below) = bias.split_at(at);
                (Some(Bias::PerRow(bias)), Some(Bias::PerRow(below)))
            }
            bias => (bias, bias),
        };
        let function = self.function;
        (
            Epilogue { bias, function, sums: above },
            Epilogue { bias: bias_below, function, sums: below },
        )
    }

    /// Splits into the epilogues of columns `..at` and columns `at..` of C.
    ///
    /// # Panics
    /// If `at` is beyond the number of columns.
    #[must_use]
    pub fn split_cols(self, at: usize) -> (Self, Self) {
        let (left, right) = self.t().split_rows(at);
        (left.t(), right.t())
    }

    /// The epilogue of Cᵀ.
    #[must_use]
    pub(super) fn t(self) -> Self {
        let bias = self.bias.map(|bias| match bias {
            Bias::PerColumn(bias) => Bias::PerRow(bias),
            Bias::PerRow(bias) => Bias::PerColumn(bias),
        });
        Epilogue { bias, sums: self.sums.map(MatMut::t), ..self }
    }

    /// Takes the bias if it has an element for each column.
    pub(super) fn take_columns(&mut self) -> Option<&'a [E]> {
        let Some(Bias::PerColumn(bias)) = self.bias else { return None };
        self.bias = None;
        Some(bias)
    }

    /// Returns an error unless the epilogue fits C.
    pub(super) fn check(
        &self,
        a: [usize; 2],
        b: [usize; 2],
        c: [usize; 2],
    ) -> Result<(), GemmError> {
        let (len, expected) = match self.bias {
            None => (0, 0),
            Some(Bias::PerRow(bias)) => (bias.len(), c[0]),
            Some(Bias::PerColumn(bias)) => (bias.len(), c[1]),
        };
        if len != expected {
            return Err(GemmError::BiasLength { len, expected });
        }
        match self.sums.as_ref().map(MatMut::shape) {
            Some(shape) if shape != c => Err(GemmError::ShapeMismatch { a, b, c: shape }),
            _ => Ok(()),
        }
    }
}

impl<E: Float> Epilogue<'_, E> {
    /// Applies the epilogue to a C that holds `alpha · A·B + beta · C`, computed by other means than
    /// [`gemm`](crate::gemm()).
    ///
    /// # Errors
    /// [`GemmError::BiasLength`], or [`GemmError::ShapeMismatch`] if `sums` has another shape than C;
    /// [`GemmError::UninitializedOutput`].
    pub fn apply(&mut self, c: MatMut<'_, E>) -> Result<(), GemmError> {
        let shape = c.shape;
        self.check([shape[0], 0], [0, shape[1]], shape)?;
        if !c.initialized {
            return Err(GemmError::UninitializedOutput { c: shape });
        }
        self.finish(c, [0, 0]);
        Ok(())
    }

    /// Applies the epilogue to a part of C that has been written, and whose element (0, 0) is C's at `at`.
    pub(super) fn finish(&mut self, mut part: MatMut<'_, E>, at: [usize; 2]) {
        if self.is_empty() || part.is_empty() {
            return;
        }
        part.initialized = true;
        if let Some(bias) = self.bias {
            for_each_run(part.reborrow(), |[i, j], run| match bias {
                Bias::PerColumn(bias) => {
                    run.iter_mut().zip(&bias[at[1] + j..]).for_each(|(y, &bias)| *y = *y + bias);
                }
                Bias::PerRow(bias) => {
                    let bias = bias[at[0] + i];
                    run.iter_mut().for_each(|y| *y = *y + bias);
                }
            });
        }
        let mut sums = self.sums.as_mut().map(|sums| sums.part(at, part.shape()));
        if part.is_list() && sums.as_ref().is_none_or(MatMut::is_list) {
            (part, sums) = (part.flat(), sums.map(MatMut::flat));
        }
        for_each_run(part, |at, run| {
            if let Some(sums) = &mut sums {
                sums.part(at, [1, run.len()]).write_row(0, run);
            }
            if let Some(function) = self.function {
                function(run);
            }
        });
    }
}

/// Calls `f` on each row, or on each element if the elements of a row are not contiguous, with the position of its
/// first element.
fn for_each_run<E>(mut c: MatMut<'_, E>, mut f: impl FnMut([usize; 2], &mut [E])) {
    let [rows, columns] = c.shape;
    for i in 0..rows {
        if c.strides[1] == 1 {
            f([i, 0], c.row_mut(i));
            continue;
        }
        for j in 0..columns {
            f([i, j], c.part([i, j], [1, 1]).row_mut(0));
        }
    }
}
