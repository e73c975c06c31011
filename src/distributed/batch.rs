//! [`Batch`]: data that can be split into micro-batches.

use std::ops::Range;

use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// Data that can be split into micro-batches by rows: a tensor along its first axis, a vector or slice, a range of
/// numbers, or a tuple of two or three of these with the same number of rows.
pub trait Batch {
    /// The rows of a micro-batch.
    type Part;

    /// Returns the number of rows.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if there are no rows to count, or the parts of a tuple differ in number.
    fn rows(&self) -> Result<usize>;

    /// Returns these rows.
    ///
    /// # Errors
    /// The error of the operation that takes them.
    fn part(&self, rows: Range<usize>) -> Result<Self::Part>;
}

impl<B: Backend> Batch for Tensor<B> {
    type Part = Tensor<B>;

    fn rows(&self) -> Result<usize> {
        self.dims().first().copied().ok_or_else(|| Error::InvalidArgument {
            op: "mean_gradients",
            reason: "a tensor without axes has no rows".to_owned(),
        })
    }

    fn part(&self, rows: Range<usize>) -> Result<Tensor<B>> {
        self.narrow(0, rows.start, rows.len())
    }
}

impl<T: Clone> Batch for [T] {
    type Part = Vec<T>;

    fn rows(&self) -> Result<usize> {
        Ok(self.len())
    }

    fn part(&self, rows: Range<usize>) -> Result<Vec<T>> {
        Ok(self[rows].to_vec())
    }
}

impl<T: Clone> Batch for Vec<T> {
    type Part = Vec<T>;

    fn rows(&self) -> Result<usize> {
        Ok(self.len())
    }

    fn part(&self, rows: Range<usize>) -> Result<Vec<T>> {
        Ok(self[rows].to_vec())
    }
}

impl Batch for Range<usize> {
    type Part = Range<usize>;

    fn rows(&self) -> Result<usize> {
        Ok(self.len())
    }

    fn part(&self, rows: Range<usize>) -> Result<Range<usize>> {
        Ok(self.start + rows.start..self.start + rows.end)
    }
}

macro_rules! several {
    ($($Name:ident $i:tt),*) => {
        impl<$($Name: Batch),*> Batch for ($($Name,)*) {
            type Part = ($($Name::Part,)*);

            fn rows(&self) -> Result<usize> {
                let rows = [$(self.$i.rows()?),*];
                match rows.iter().all(|&other| other == rows[0]) {
                    true => Ok(rows[0]),
                    false => Err(Error::InvalidArgument {
                        op: "mean_gradients",
                        reason: format!("expected parts with the same number of rows, got {rows:?}"),
                    }),
                }
            }

            fn part(&self, rows: Range<usize>) -> Result<Self::Part> {
                Ok(($(self.$i.part(rows.clone())?,)*))
            }
        }
    };
}
several!(X 0, Y 1);
several!(X 0, Y 1, Z 2);
