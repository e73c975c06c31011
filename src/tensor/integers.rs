//! Functions of integers, operators on bits, and tensors seen as other dtypes.

use std::ops::{BitAnd, BitOr, BitXor, Not};

use crate::backend::cpu::{CpuTensor, integers};
use crate::backend::{Arg, Backend, broadcast_pair};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::ops::{IntegerFn, integer_functions};

use super::base::Tensor;
use super::elementwise::check_scalar;
use super::operators::{Input, Operand, or_panic};
use super::special::{from_cpu, on_cpu};

macro_rules! integer_methods {
    ($({
        $(#[$doc:meta])*
        $method:ident, $Variant:ident; ($a:ident, $b:ident) => $value:expr;
        booleans: $booleans:literal; $left:literal, $right:literal, $result:literal
    })*) => {
        /// # Functions of integers
        ///
        /// Element-wise functions of two tensors of integers, or of a tensor and a number; without gradients. Shapes
        /// broadcast; the dtypes must be equal. Floats give [`Error::UnsupportedDType`], as do booleans but
        /// for `bitwise_and`, `bitwise_or`, `bitwise_xor`, `bitwise_not`. They are computed on the CPU.
        impl<B: Backend> Tensor<B> {$(
            $(#[$doc])*
            ///
            #[doc = concat!("```\nuse swath::prelude::*;\nlet a = tensor![i64; ", $left, "];\nassert_eq!(a.",
                stringify!($method), "(", $right, ")?.to_vec::<i64>()?, [", $result, "]);\n# Ok::<(), Error>(())\n```")]
            pub fn $method(&self, rhs: impl Operand<B>) -> Result<Tensor<B>> {
                rhs.with(|rhs| self.of_integers(IntegerFn::$Variant, rhs))
            }
        )*}
    };
}
integer_functions!(integer_methods);

impl<B: Backend> Tensor<B> {
    /// Bits that are not set; of booleans the logical function.
    ///
    /// ```
    /// use swath::prelude::*;
    /// assert_eq!(tensor![i64; 0, 5].bitwise_not()?.to_vec::<i64>()?, [-1, -6]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnsupportedDType`] for floats.
    pub fn bitwise_not(&self) -> Result<Tensor<B>> {
        let op = "bitwise_not";
        self.check_integers(op, true)?;
        let ones = Scalar::Int(if self.dtype() == DType::Bool { 1 } else { -1 });
        let y = integers(IntegerFn::Xor, [Arg::Ref(&on_cpu(self)?), Arg::Scalar(ones)]);
        Ok(Tensor::from_data(from_cpu(&y.map_err(|e| e.named(op))?, self)?))
    }

    fn of_integers(&self, f: IntegerFn, rhs: Input<'_, B>) -> Result<Tensor<B>> {
        let op = f.name();
        self.check_integers(op, f.takes_booleans())?;
        let y = match rhs.tensor() {
            Some(rhs) => {
                self.check_dtype(op, rhs.dtype())?;
                let (a, b) = broadcast_pair::<B>(op, self.data(), rhs.data())?;
                let [a, b] = [Tensor::from_data(a), Tensor::from_data(b)];
                integers(f, [Arg::<CpuTensor>::Owned(on_cpu::<B>(&a)?), Arg::Owned(on_cpu(&b)?)])?
            }
            None => {
                let Arg::Scalar(number) = rhs.into_arg() else {
                    unreachable!("no tensor is a number")
                };
                check_scalar(op, number, self.dtype(), self.shape())?;
                integers(f, [Arg::Ref(&on_cpu(self)?), Arg::Scalar(number)])?
            }
        };
        Ok(Tensor::from_data(from_cpu(&y, self)?))
    }

    fn check_integers(&self, op: &'static str, takes_booleans: bool) -> Result<()> {
        match self.dtype() {
            DType::Bool if takes_booleans => Ok(()),
            dtype if dtype == DType::Bool || dtype.is_float() => {
                Err(Error::UnsupportedDType { op, dtype, shape: *self.shape() })
            }
            _ => Ok(()),
        }
    }

    /// The same bits as elements of another dtype of the same width, in any layout: another handle to the storage on the CPU,
    /// else a copy. It has no gradient.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let bits = tensor![1.0, -2.0].view_as(DType::I32)?;
    /// assert_eq!(bits.to_vec::<i32>()?, [0x3f80_0000, -0x4000_0000]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a dtype of another width, and for `Bool` if an element is neither 0 nor 1.
    pub fn view_as(&self, dtype: DType) -> Result<Tensor<B>> {
        let (op, own) = ("view_as", self.dtype());
        let fail = |reason: String| Err(Error::InvalidArgument { op, reason });
        if own.size() != dtype.size() {
            let (wide, wanted) = (8 * own.size(), 8 * dtype.size());
            return fail(format!(
                "elements of {own} have {wide} bits and those of {dtype} {wanted}; the shape is {}",
                self.shape()
            ));
        }
        if own == dtype {
            return Ok(self.detach());
        }
        let bytes = on_cpu(self)?;
        if dtype == DType::Bool {
            let values = Tensor::<crate::CpuBackend>::from_data(bytes.with_dtype(DType::U8));
            if values.gt(1)?.any(None, false)?.item::<bool>()? {
                return fail(format!("expected bytes 0 and 1 for bool, in shape {}", self.shape()));
            }
        }
        Ok(Tensor::from_data(from_cpu(&bytes.with_dtype(dtype), self)?))
    }

    /// True where the sign bit is set: of negative numbers, -0 and such NaN. The result is `Bool`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// assert_eq!(tensor![-0.0, 2.0].signbit()?.to_vec::<bool>()?, [true, false]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of allocating memory.
    pub fn signbit(&self) -> Result<Tensor<B>> {
        let bits = match self.dtype() {
            DType::F16 | DType::BF16 => self.view_as(DType::I16),
            DType::F32 => self.view_as(DType::I32),
            DType::F64 => self.view_as(DType::I64),
            _ => Ok(self.clone()),
        };
        bits.and_then(|bits| bits.lt(0)).map_err(|e| e.named("signbit"))
    }
}

macro_rules! bit_operators {
    ($($Trait:ident $operator:ident $method:ident;)*) => {$(
        impl<B: Backend, R: Operand<B>> $Trait<R> for Tensor<B> {
            type Output = Tensor<B>;
            #[track_caller]
            fn $operator(self, rhs: R) -> Tensor<B> {
                or_panic(self.$method(rhs))
            }
        }

        impl<B: Backend, R: Operand<B>> $Trait<R> for &Tensor<B> {
            type Output = Tensor<B>;
            #[track_caller]
            fn $operator(self, rhs: R) -> Tensor<B> {
                or_panic(self.$method(rhs))
            }
        }
    )*};
}
bit_operators! {
    BitAnd bitand bitwise_and;
    BitOr bitor bitwise_or;
    BitXor bitxor bitwise_xor;
}

impl<B: Backend> Not for Tensor<B> {
    type Output = Tensor<B>;
    #[track_caller]
    fn not(self) -> Tensor<B> {
        or_panic(self.bitwise_not())
    }
}

impl<B: Backend> Not for &Tensor<B> {
    type Output = Tensor<B>;
    #[track_caller]
    fn not(self) -> Tensor<B> {
        or_panic(self.bitwise_not())
    }
}
