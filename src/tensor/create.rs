//! Tensors from values, ranges and random numbers.

use std::ops::Range;

use half::{bf16, f16};

use crate::backend::{Backend, check_len};
use crate::dtype::{DType, Element, HostData, Scalar, for_dtype};
use crate::error::{Error, Result, reserved};
use crate::rng::Rng;
use crate::shape::Shape;

use super::base::Tensor;
use super::elementwise::check_scalar;

/// # Creation
impl<B: Backend> Tensor<B> {
    /// Creates a tensor from values in row-major order. Its dtype is that of the Rust type.
    ///
    /// On the CPU, the memory of a vector of more than 16 KiB becomes the tensor's, without a copy.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = Tensor::<CpuBackend>::from_vec(vec![1i64, 2, 3, 4, 5, 6], (2, 3))?;
    /// assert_eq!(x.dtype(), DType::I64);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the number of values is not the number of elements of `shape`.
    pub fn from_vec<T: Element>(values: Vec<T>, shape: impl Into<Shape>) -> Result<Self> {
        let shape = shape.into();
        check_len("from_vec", values.len(), &shape)?;
        Ok(Tensor::from_data(B::adopt_host(T::into_host(values), shape)?))
    }

    /// Like [`from_vec`](Tensor::from_vec), copying from a slice.
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], (2, 2))?;
    /// assert_eq!(x.dims(), [2, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn from_slice<T: Element>(values: &[T], shape: impl Into<Shape>) -> Result<Self> {
        let shape = shape.into();
        check_len("from_slice", values.len(), &shape)?;
        Ok(Tensor::from_data(B::adopt_host(T::into_host(values.to_vec()), shape)?))
    }

    /// Creates a tensor with every element equal to `value`. Its dtype is that of the Rust type.
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// assert_eq!(Tensor::full(2, 0.5f64)?.to_vec::<f64>()?, [0.5, 0.5]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn full<T: Element>(shape: impl Into<Shape>, value: T) -> Result<Self> {
        Tensor::full_scalar("full", shape.into(), value.to_scalar(), T::DTYPE)
    }

    pub(crate) fn full_scalar(
        op: &'static str,
        shape: Shape,
        value: Scalar,
        dtype: DType,
    ) -> Result<Self> {
        shape.validate(op)?;
        Ok(Tensor::from_data(B::full(shape, value, dtype)?))
    }

    /// Creates a tensor with every element equal to `value`, of a dtype that is known at run time.
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// assert_eq!(Tensor::full_as(2, 7, DType::U8)?.to_vec::<u8>()?, [7, 7]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the dtype is one of integers and does not represent `value`.
    pub fn full_as(
        shape: impl Into<Shape>,
        value: impl Into<Scalar>,
        dtype: DType,
    ) -> Result<Self> {
        let (op, shape, value) = ("full_as", shape.into(), value.into());
        check_scalar(op, value, dtype, &shape)?;
        Tensor::full_scalar(op, shape, value, dtype)
    }

    /// Creates a tensor of zeros.
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// assert_eq!(Tensor::zeros((2, 1), DType::F32)?.to_vec::<f32>()?, [0.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn zeros(shape: impl Into<Shape>, dtype: DType) -> Result<Self> {
        Tensor::full_scalar("zeros", shape.into(), Scalar::Int(0), dtype)
    }

    /// Creates a tensor of ones.
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// assert_eq!(Tensor::ones(2, DType::I64)?.to_vec::<i64>()?, [1, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn ones(shape: impl Into<Shape>, dtype: DType) -> Result<Self> {
        Tensor::full_scalar("ones", shape.into(), Scalar::Int(1), dtype)
    }

    /// Creates zeros with the shape and dtype of this tensor.
    ///
    /// ```
    /// use swath::prelude::*;
    /// assert_eq!(tensor![1.0, 2.0].zeros_like()?.to_vec::<f32>()?, [0.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn zeros_like(&self) -> Result<Self> {
        self.filled(*self.shape(), Scalar::Int(0), self.dtype())
    }

    /// Creates ones with the shape and dtype of this tensor.
    ///
    /// ```
    /// use swath::prelude::*;
    /// assert_eq!(tensor![5.0, 2.0].ones_like()?.to_vec::<f32>()?, [1.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn ones_like(&self) -> Result<Self> {
        self.filled(*self.shape(), Scalar::Int(1), self.dtype())
    }

    /// Creates a tensor with the shape and dtype of this one and every element equal to `value`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// assert_eq!(tensor![i64; 1, 2].full_like(7)?.to_vec::<i64>()?, [7, 7]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the elements are integers and `value` is not representable in their dtype.
    pub fn full_like(&self, value: impl Into<Scalar>) -> Result<Self> {
        let value = value.into();
        check_scalar("full_like", value, self.dtype(), self.shape())?;
        self.filled(*self.shape(), value, self.dtype())
    }

    /// A number on the device of this tensor.
    pub(super) fn number(&self, value: Scalar, dtype: DType) -> Result<Self> {
        self.filled(Shape::scalar(), value, dtype)
    }

    fn filled(&self, shape: Shape, value: Scalar, dtype: DType) -> Result<Self> {
        B::beside(self.data(), || B::full(shape, value, dtype)).map(Tensor::from_data)
    }

    /// Creates the identity matrix: `[n, n]` for `3`, `[n, m]` with ones on the main diagonal for `(3, 4)`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = Tensor::<CpuBackend>::eye((2, 3), DType::F32)?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidShape`] unless there are one or two extents; [`Error::Overflow`].
    pub fn eye(shape: impl Into<Shape>, dtype: DType) -> Result<Self> {
        Tensor::eye_with(shape, 0, dtype).map_err(|error| error.named("eye"))
    }

    /// Like [`eye`](Tensor::eye), with ones on diagonal `k`: above the main diagonal, or below if negative.
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// assert_eq!(Tensor::eye_with((2, 3), 1, DType::F32)?.to_vec::<f32>()?, [0., 1., 0., 0., 0., 1.]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn eye_with(shape: impl Into<Shape>, k: isize, dtype: DType) -> Result<Self> {
        let (op, shape) = ("eye_with", shape.into());
        let (rows, cols) = match *shape.dims() {
            [n] => (n, n),
            [rows, cols] => (rows, cols),
            _ => {
                let reason = "expected one or two extents";
                return Err(Error::InvalidShape { op, shape, reason });
            }
        };
        let shape = Shape::new([rows, cols]);
        shape.validate(op)?;
        Tensor::from_scalars(op, shape, dtype, |i| {
            Scalar::Int(i64::from((i / cols).checked_add_signed(k) == Some(i % cols)))
        })
    }

    /// Creates the vector `start, start + step, …` of values before `end`, with dtype `F32`.
    ///
    /// Element i is `start + i * step`, computed in `f64` and rounded once; of an integer dtype it is
    /// exact.
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// assert_eq!(Tensor::arange(0.0, 1.0, 0.25)?.to_vec::<f32>()?, [0.0, 0.25, 0.5, 0.75]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if `step` is 0, if an argument is not finite, or if a value does
    /// not fit an integer dtype.
    pub fn arange(start: f64, end: f64, step: f64) -> Result<Self> {
        Tensor::arange_as(start, end, step, DType::F32)
    }

    /// Like [`arange`](Tensor::arange), with the given dtype.
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// let x = Tensor::arange_as(255., 256., 1., DType::U8)?;
    /// assert_eq!(x.to_vec::<u8>()?, [255]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn arange_as(start: f64, end: f64, step: f64, dtype: DType) -> Result<Self> {
        let op = "arange";
        if !(start.is_finite() && end.is_finite() && step.is_finite()) || step == 0.0 {
            let reason = format!(
                "bounds and step must be finite and step not 0, got {start}, {end}, {step}"
            );
            return Err(Error::InvalidArgument { op, reason });
        }
        let is_exact = !dtype.is_float()
            && [start, step].iter().all(|x| x.fract() == 0.0 && x.abs() <= 2f64.powi(64));
        let count = match is_exact {
            // In `f64` the difference of the bounds may be a step more or less.
            true => {
                let (sign, size) = (step.signum(), step.abs() as u128);
                let span = ((end * sign).ceil() as i128).saturating_sub((start * sign) as i128);
                usize::try_from((span.max(0) as u128).div_ceil(size)).unwrap_or(usize::MAX)
            }
            false => ((end - start) / step).ceil().max(0.0) as usize,
        };
        let shape = Shape::from(count);
        shape.validate(op)?;
        if dtype.is_float() || count == 0 {
            let value = |i: usize| Scalar::Float((i as f64).mul_add(step, start));
            return Tensor::from_scalars(op, shape, dtype, value);
        }
        if count > 1 {
            check_scalar(op, Scalar::Float(start + step.fract()), dtype, &shape)?;
        }
        Tensor::integers(op, shape, dtype, start, step as i128)
    }

    /// Creates a vector of `count` evenly spaced values from `start` to `end`, both included, with
    /// dtype `F32`.
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// assert_eq!(Tensor::linspace(0.0, 1.0, 3)?.to_vec::<f32>()?, [0.0, 0.5, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if a bound is not finite, or if a value is not representable in an
    /// integer dtype.
    pub fn linspace(start: f64, end: f64, count: usize) -> Result<Self> {
        Tensor::linspace_as(start, end, count, DType::F32)
    }

    /// Like [`linspace`](Tensor::linspace), with the given dtype.
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// assert_eq!(Tensor::linspace_as(1.0, 2.0, 2, DType::F64)?.to_vec::<f64>()?, [1.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn linspace_as(start: f64, end: f64, count: usize, dtype: DType) -> Result<Self> {
        let op = "linspace";
        let shape = Shape::from(count);
        shape.validate(op)?;
        if !(start.is_finite() && end.is_finite()) {
            let reason = format!("bounds must be finite, got {start} and {end}");
            return Err(Error::InvalidArgument { op, reason });
        }
        let last = count.saturating_sub(1);
        if !dtype.is_float() && count > 0 {
            let end = if last == 0 { start } else { end };
            for bound in [start, end] {
                check_scalar(op, Scalar::Float(bound), dtype, &shape)?;
            }
            let (span, steps) = (end as i128 - start as i128, last.max(1) as i128);
            if span % steps != 0 {
                let reason = format!(
                    "{count} even steps from {start} to {end} are not all representable in {dtype}"
                );
                return Err(Error::InvalidArgument { op, reason });
            }
            return Tensor::integers(op, shape, dtype, start, span / steps);
        }
        let divisor = last.max(1) as f64;
        // Dividing last, which is exact where the steps are; first where the range is too large for that.
        let (span, step) = (end - start, end / divisor - start / divisor);
        let is_small = (span * divisor).is_finite();
        Tensor::from_scalars(op, shape, dtype, |i| {
            Scalar::Float(match i {
                _ if i == last && i > 0 => end,
                _ if is_small => start + span * i as f64 / divisor,
                _ => (i as f64).mul_add(step, start),
            })
        })
    }

    /// Creates the vector `start, start + step, …` of an integer dtype, of one value or more, all of
    /// which must be representable.
    fn integers(
        op: &'static str,
        shape: Shape,
        dtype: DType,
        start: f64,
        step: i128,
    ) -> Result<Self> {
        check_scalar(op, Scalar::Float(start), dtype, &shape)?;
        let value = |i: usize| (i as i128).saturating_mul(step).saturating_add(start as i128);
        let last = value(shape.numel() - 1);
        let (low, high) = dtype.integer_range();
        match (low..=high).contains(&last) {
            true => check_scalar(op, Scalar::from_i128(last), dtype, &shape)?,
            false => check_scalar(op, Scalar::Float(last as f64), dtype, &shape)?,
        }
        Tensor::from_scalars(op, shape, dtype, |i| Scalar::from_i128(value(i)))
    }

    /// Creates a tensor whose element i is `value(i)`. `shape` has been validated.
    pub(crate) fn from_scalars(
        op: &'static str,
        shape: Shape,
        dtype: DType,
        value: impl Fn(usize) -> Scalar,
    ) -> Result<Self> {
        let count = shape.numel();
        let host: HostData = for_dtype!(dtype, T => {
            let mut values = reserved(op, count).map_err(|error| error.of_shape(&shape))?;
            values.extend((0..count).map(|i| T::from_scalar(value(i))));
            T::into_host(values)
        });
        Ok(Tensor::from_data(B::from_host(host, shape)?))
    }

    /// Draws from the uniform distribution over `range`, whose end is excluded, with dtype `F32`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let mut rng = Rng::seed(42);
    /// let x = Tensor::<CpuBackend>::rand((2, 3), 0.0..1.0, &mut rng)?;
    /// # Ok::<(), Error>(())
    /// ```
    pub fn rand(shape: impl Into<Shape>, range: Range<f64>, rng: &mut Rng) -> Result<Self> {
        let shape = shape.into();
        shape.validate("rand")?;
        let values =
            rng.uniform_vec::<f32>(shape.numel(), range).map_err(|error| error.of_shape(&shape))?;
        Ok(Tensor::from_data(B::adopt_host(HostData::F32(values), shape)?))
    }

    /// Draws from the uniform distribution over `range`, whose end is excluded, with the shape and dtype of this tensor.
    /// The bounds are rounded to the dtype first; numbers of 16 bits are rounded from `f32`, those that would become the
    /// end of the range to the number below it.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![f64; 1, 2, 3].rand_like(-1.0..1.0, &mut Rng::seed(42))?;
    /// assert_eq!((x.dtype(), x.dims()), (DType::F64, &[3][..]));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnsupportedDType`] for integers; [`Error::InvalidArgument`] for an empty range.
    pub fn rand_like(&self, range: Range<f64>, rng: &mut Rng) -> Result<Self> {
        let op = "rand_like";
        self.check_float(op)?;
        let given = range.clone();
        let drawn = || match self.dtype() {
            DType::F64 => {
                Tensor::from_vec(rng.uniform_vec::<f64>(self.numel(), range)?, self.shape())
            }
            DType::F16 => {
                let [from, end] = [range.start, range.end].map(f16::from_f64);
                let largest = f16::from_bits(before(end.to_bits())).to_f64();
                self.rand_rounded(from.to_f64()..end.to_f64(), largest, rng)
            }
            DType::BF16 => {
                let [from, end] = [range.start, range.end].map(bf16::from_f64);
                let largest = bf16::from_bits(before(end.to_bits())).to_f64();
                self.rand_rounded(from.to_f64()..end.to_f64(), largest, rng)
            }
            _ => Tensor::rand(self.shape(), range, rng),
        };
        drawn().map_err(|error| match error {
            // The range was rounded to the dtype.
            Error::InvalidArgument { .. } => {
                let reason = format!("the range {given:?} holds no {}", self.dtype());
                Error::InvalidArgument { op, reason }
            }
            error => error.of_shape(self.shape()).named(op),
        })
    }

    /// Numbers of 16 bits from a range whose bounds have that dtype; `largest` is the last below its end.
    fn rand_rounded(&self, range: Range<f64>, largest: f64, rng: &mut Rng) -> Result<Self> {
        Tensor::rand(self.shape(), range, rng)?.to_dtype(self.dtype())?.minimum(largest)
    }

    /// Draws integers from `range` with equal probabilities, with dtype `I64`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let dice = Tensor::<CpuBackend>::randint((2, 3), 1..7, &mut Rng::seed(42))?;
    /// assert!(dice.to_vec::<i64>()?.iter().all(|die| (1..=6).contains(die)));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the range is empty.
    pub fn randint(shape: impl Into<Shape>, range: Range<i64>, rng: &mut Rng) -> Result<Self> {
        let shape = shape.into();
        shape.validate("randint")?;
        let values =
            rng.integer_vec(shape.numel(), range).map_err(|error| error.of_shape(&shape))?;
        Ok(Tensor::from_data(B::adopt_host(HostData::I64(values), shape)?))
    }

    /// Like [`randint`](Tensor::randint), with the given dtype. Floats are rounded.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let bytes = Tensor::<CpuBackend>::randint_as(4, 0..256, DType::U8, &mut Rng::seed(42))?;
    /// assert_eq!(bytes.dtype(), DType::U8);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the range is empty or holds an integer that does not fit an integer dtype.
    pub fn randint_as(
        shape: impl Into<Shape>,
        range: Range<i64>,
        dtype: DType,
        rng: &mut Rng,
    ) -> Result<Self> {
        let (op, shape) = ("randint", shape.into());
        for bound in [range.start, range.end.saturating_sub(1).max(range.start)] {
            check_scalar(op, Scalar::Int(bound), dtype, &shape)?;
        }
        Tensor::randint(shape, range, rng)?.to_dtype(dtype)
    }

    /// Draws from the standard normal distribution, with dtype `F32`.
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// let mut rng = Rng::seed(42);
    /// let x = Tensor::randn((2, 3), &mut rng)?;
    /// assert_eq!(x.dims(), [2, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn randn(shape: impl Into<Shape>, rng: &mut Rng) -> Result<Self> {
        let shape = shape.into();
        shape.validate("randn")?;
        let values =
            rng.normal_vec::<f32>(shape.numel()).map_err(|error| error.of_shape(&shape))?;
        Ok(Tensor::from_data(B::adopt_host(HostData::F32(values), shape)?))
    }
}

/// The bits of the next smaller 16-bit float.
fn before(bits: u16) -> u16 {
    const SIGN: u16 = 1 << 15;
    match bits {
        0 | SIGN => SIGN | 1,
        _ if bits & SIGN == 0 => bits - 1,
        _ => bits + 1,
    }
}
