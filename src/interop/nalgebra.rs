//! Matrices and vectors of the crate nalgebra.

use bytemuck::Pod;
use nalgebra::{DMatrix, DMatrixView, Dim, Dyn, Matrix, RawStorage, VecStorage};

use super::{ascending, matrix};
use crate::backend::Backend;
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::tensor::{Tensor, View};

/// # Matrices of nalgebra (feature `nalgebra`)
impl<B: Backend> Tensor<B> {
    /// Makes a tensor `[rows, columns]` of a `DMatrix` or `RowDVector`, `[rows]` of a `DVector`, without a copy (see
    /// [`from_vec`](Tensor::from_vec)). nalgebra's matrices are in column-major order, and so is the tensor.
    ///
    /// ```
    /// use nalgebra::{DMatrix, DVector};
    /// use swath::cpu::prelude::*;
    /// let x = Tensor::from_nalgebra(DMatrix::from_row_slice(2, 2, &[1.0, 2.0, 3.0, 4.0]))?;
    /// assert_eq!((x.layout().strides(), x.to_vec::<f64>()?), (&[1, 2][..], vec![1.0, 2.0, 3.0, 4.0]));
    /// assert_eq!(Tensor::from_nalgebra(DVector::from_vec(vec![1.0f32]))?.dims(), [1]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Overflow`] if the elements cannot be counted.
    pub fn from_nalgebra<E, R, C>(matrix: Matrix<E, R, C, VecStorage<E, R, C>>) -> Result<Self>
    where
        E: Element,
        R: Dim,
        C: Dim,
        VecStorage<E, R, C>: RawStorage<E, R, C>,
    {
        let (rows, columns) = matrix.shape();
        let elements: Vec<E> = matrix.data.into();
        match C::try_to_usize() {
            Some(1) => Tensor::from_vec(elements, rows),
            _ => Tensor::from_vec(elements, (columns, rows))?.t(),
        }
    }

    /// Moves the elements of a tensor `[rows, columns]` into a matrix, those of `[rows]` into one column. There is no
    /// copy of a tensor in column-major order for which [`into_vec`](Tensor::into_vec) needs none.
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// let matrix = tensor![[1.0, 2.0], [3.0, 4.0]].into_nalgebra::<f32>()?;
    /// assert_eq!(matrix.determinant(), -2.0);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidShape`] without one or two axes; [`Error::DTypeMismatch`] if `E` is not the tensor's dtype.
    pub fn into_nalgebra<E: Element>(self) -> Result<DMatrix<E>> {
        let x = if self.rank() == 1 { self.detach().unsqueeze(1)? } else { self.detach() };
        drop(self);
        let [rows, columns] = matrix("into_nalgebra", x.layout())?;
        let columns_first = x.t()?;
        drop(x);
        Ok(DMatrix::from_vec(rows, columns, columns_first.into_vec()?))
    }
}

impl<'a, E: Element<Stored = E> + Pod> View<'a, E> {
    /// The elements `[rows, columns]` as a matrix of nalgebra, `[rows]` as one column, without a copy (feature
    /// `nalgebra`).
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// let x = tensor![[1.0, 2.0], [3.0, 4.0]];
    /// assert_eq!(x.view::<f32>()?.nalgebra()?.trace(), 5.0);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidShape`] without one or two axes; [`Error::InvalidArgument`] for negative strides, which nalgebra
    /// does not have.
    pub fn nalgebra(&self) -> Result<DMatrixView<'a, E, Dyn, Dyn>> {
        let op = "nalgebra";
        let (elements, mut layout) = ascending(self);
        if layout.strides() != self.strides() && layout.numel() > 0 {
            let reason = format!(
                "nalgebra has no negative strides, got {:?}: call contiguous()",
                self.strides()
            );
            return Err(Error::InvalidArgument { op, reason });
        }
        if layout.dims().len() == 1 {
            layout = layout.unsqueeze(op, 1)?;
        }
        let [rows, columns] = matrix(op, &layout)?;
        // nalgebra asks for the elements up to the last column, even if no column has one.
        let steps = match layout.numel() {
            0 => [usize::from(rows == 0), usize::from(rows != 0)],
            _ => [0, 1].map(|axis| layout.strides()[axis].unsigned_abs()),
        };
        let [(rows, columns), (down, right)] =
            [(rows, columns), (steps[0], steps[1])].map(|(a, b)| (Dyn(a), Dyn(b)));
        Ok(DMatrixView::from_slice_with_strides_generic(elements, rows, columns, down, right))
    }
}
