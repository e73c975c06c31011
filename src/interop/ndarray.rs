//! Arrays of the crate ndarray.

use bytemuck::Pod;
use ndarray::{ArrayBase, ArrayD, ArrayViewD, Axis, Data, Dimension, IxDyn, ShapeBuilder};

use super::ascending;
use crate::backend::Backend;
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::shape::Shape;
use crate::tensor::{Tensor, View};

/// # Arrays of ndarray (feature `ndarray`)
impl<B: Backend> Tensor<B> {
    /// Makes a tensor of an array, with its shape and strides. There is no copy of an owned array, nor of an
    /// `ArcArray` or `CowArray` that alone has its elements; other arrays are copied. The memory of an array in
    /// row-major order is then the tensor's own, as by [`from_vec`](Tensor::from_vec); that of another is only read, as
    /// by [`from_owner`](Tensor::from_owner).
    ///
    /// ```
    /// use ndarray::array;
    /// use swath::cpu::prelude::*;
    /// let x = Tensor::from_ndarray(array![[1.0, 2.0], [3.0, 4.0]].reversed_axes())?;
    /// assert_eq!((x.layout().strides(), x.to_vec::<f64>()?), (&[1, 2][..], vec![1.0, 3.0, 2.0, 4.0]));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::TooManyAxes`] for more than [`MAX_RANK`](crate::MAX_RANK) axes.
    pub fn from_ndarray<E, S, D>(array: ArrayBase<S, D>) -> Result<Self>
    where
        E: Element,
        S: Data<Elem = E>,
        D: Dimension,
    {
        let op = "from_ndarray";
        let shape = Shape::new(array.shape());
        shape.validate(op)?;
        let array = array.into_owned();
        let (in_order, strides) = (array.is_standard_layout(), array.strides().to_vec());
        let (elements, offset) = array.into_raw_vec_and_offset();
        match in_order && elements.len() == shape.numel() {
            true => Tensor::from_vec(elements, shape),
            false => Tensor::from_owner_strided(elements, shape, &strides, offset.unwrap_or(0)),
        }
    }

    /// Moves the elements into an array in row-major order, without a copy where [`into_vec`](Tensor::into_vec) needs
    /// none.
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// let array = tensor![[1.0, 2.0], [3.0, 4.0]].into_ndarray::<f32>()?;
    /// assert_eq!(array.into_dimensionality::<ndarray::Ix2>().unwrap().row(1).to_vec(), [3.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::DTypeMismatch`] if `E` is not the tensor's dtype.
    pub fn into_ndarray<E: Element>(self) -> Result<ArrayD<E>> {
        let dims = IxDyn(self.dims());
        ArrayD::from_shape_vec(dims, self.into_vec()?)
            .map_err(|error| refused("into_ndarray", &error))
    }
}

impl<'a, E: Element<Stored = E> + Pod> View<'a, E> {
    /// The elements as an array of ndarray, of any layout, without a copy (feature `ndarray`).
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// let x = tensor![[1.0, 2.0], [3.0, 4.0]].flip(1)?;
    /// assert_eq!(x.view::<f32>()?.ndarray()?, ndarray::array![[2.0, 1.0], [4.0, 3.0]].into_dyn());
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if ndarray does not accept the layout.
    pub fn ndarray(&self) -> Result<ArrayViewD<'a, E>> {
        let (elements, layout) = ascending(self);
        // Without elements ndarray wants no steps.
        let step = |step: &isize| if elements.is_empty() { 0 } else { step.unsigned_abs() };
        let steps: Vec<usize> = layout.strides().iter().map(step).collect();
        let shape = IxDyn(layout.dims()).strides(IxDyn(&steps));
        let array = ArrayViewD::from_shape(shape, elements);
        let mut array = array.map_err(|error| refused("ndarray", &error))?;
        for (axis, _) in self.strides().iter().enumerate().filter(|(_, step)| **step < 0) {
            array.invert_axis(Axis(axis));
        }
        Ok(array)
    }
}

fn refused(op: &'static str, error: &ndarray::ShapeError) -> Error {
    Error::InvalidArgument { op, reason: error.to_string() }
}
