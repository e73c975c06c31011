//! Matrices of the crate faer.

use bytemuck::Pod;
use faer::{Mat, MatRef};

use super::{ascending, matrix};
use crate::backend::Backend;
use crate::backend::cpu::CpuBackend;
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::tensor::{Tensor, View};

/// # Matrices of faer (feature `faer`)
impl<B: Backend> Tensor<B> {
    /// Copies a matrix into a tensor `[rows, columns]` in column-major order. A copy is needed because the columns of
    /// `faer::Mat` may have gaps between them.
    ///
    /// ```
    /// use faer::mat;
    /// use swath::cpu::prelude::*;
    /// let x = Tensor::from_faer(mat![[1.0, 2.0], [3.0, 4.0]].as_ref())?;
    /// assert_eq!(x.to_vec::<f64>()?, [1.0, 2.0, 3.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Overflow`] if the elements cannot be counted.
    pub fn from_faer<E: Element>(matrix: MatRef<'_, E>) -> Result<Self> {
        let (rows, columns) = matrix.shape();
        let elements = (0..columns).flat_map(|j| matrix.col(j).iter().copied()).collect();
        Tensor::from_vec(elements, (columns, rows))?.t()
    }
}

/// # Matrices of faer (feature `faer`)
impl Tensor<CpuBackend> {
    /// Copies a tensor `[rows, columns]` of any layout into a matrix.
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// let matrix = tensor![[1.0, 2.0], [3.0, 4.0]].to_faer::<f32>()?;
    /// assert_eq!(matrix[(1, 0)], 3.0);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidShape`] without two axes; [`Error::DTypeMismatch`] if `E` is not the tensor's dtype.
    pub fn to_faer<E: Element<Stored = E> + Pod>(&self) -> Result<Mat<E>> {
        let (view, [rows, columns]) = (self.view::<E>()?, matrix("to_faer", self.layout())?);
        Ok(Mat::from_fn(rows, columns, |i, j| view.storage()[view.layout().position(&[i, j])]))
    }
}

impl<'a, E: Element<Stored = E> + Pod> View<'a, E> {
    /// The elements `[rows, columns]` as a matrix of faer, without a copy, if those of each row or of each column are
    /// adjacent, in either direction (feature `faer`).
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// let x = tensor![[1.0, 2.0], [3.0, 4.0]];
    /// assert_eq!(x.view::<f32>()?.faer()?.transpose() * faer::mat![[1.0], [1.0]], faer::mat![[4.0], [6.0]]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidShape`] without two axes; [`Error::InvalidArgument`] if elements are adjacent in neither.
    pub fn faer(&self) -> Result<MatRef<'a, E>> {
        let (elements, layout) = ascending(self);
        let [rows, columns] = matrix("faer", &layout)?;
        let [down, right] = [0, 1].map(|axis| layout.strides()[axis].unsigned_abs());
        let mut matrix = if columns <= 1 || right == 1 {
            MatRef::from_row_major_slice_with_stride(elements, rows, columns, down)
        } else if rows <= 1 || down == 1 {
            MatRef::from_column_major_slice_with_stride(elements, rows, columns, right)
        } else {
            let reason = format!(
                "elements are adjacent neither in rows nor in columns, strides {:?}: call contiguous()",
                self.strides()
            );
            return Err(Error::InvalidArgument { op: "faer", reason });
        };
        if self.strides()[0] < 0 {
            matrix = matrix.reverse_rows();
        }
        if self.strides()[1] < 0 {
            matrix = matrix.reverse_cols();
        }
        Ok(matrix)
    }
}
