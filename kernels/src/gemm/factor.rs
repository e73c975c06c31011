//! Element types of a product's operands: those of its sums, or 16-bit floats that are widened when
//! read.

use half::{bf16, f16};

use super::matrix::MatRef;
use super::{Blocked, ColumnsOfB, Copied, Pack, PartOfWindows, RowsOfB, Small};
use crate::convert::{f32_from_bf16, f32_from_f16};
use crate::dispatch::run;
use crate::simd::{Float, Isa, Lanes, MAX_LANES};

/// An element type of the operands of a product: `f32` and `f64`, and `f16` and `bf16`, whose
/// products are summed in `f32` with the bits of operands widened in advance. Sealed.
///
/// ```
/// use half::bf16;
/// use swath_kernels::{Gemm, MatMut, MatRef, Workspace, gemm};
/// let a = [1.0, 2.0, 3.0, 4.0].map(bf16::from_f32); // [2, 2]
/// let mut c = [0.0f32; 4];
/// let a = MatRef::row_major(&a, [2, 2])?;
/// gemm(Gemm::new(a, a.t()), MatMut::row_major(&mut c, [2, 2])?, &mut Workspace::new())?;
/// assert_eq!(c, [5.0, 11.0, 11.0, 25.0]);
/// # Ok::<(), swath_kernels::GemmError>(())
/// ```
pub trait Factor: Copy + Send + Sync + 'static + core::fmt::Debug + sealed::Sealed {
    /// The type of the sums.
    type Sum: Float + Factor<Sum = Self::Sum>;
    /// True if it is itself the type of the sums.
    const IS_SUM: bool;
    /// The matrix with the type of the sums, if it has that type.
    #[doc(hidden)]
    fn as_sums<'a>(matrix: MatRef<'a, Self>) -> Option<MatRef<'a, Self::Sum>>;
    /// Returns the same number as the type of the sums.
    fn widened(self) -> Self::Sum;
    /// Reads `LANES` elements.
    ///
    /// # Safety
    /// `src` is valid for reads of `LANES` elements.
    #[doc(hidden)]
    unsafe fn load<S: Lanes<Self::Sum>>(simd: S, src: *const Self) -> S::V;
    /// Reads `LANES` elements, or only `count` if they are fewer; the other lanes are zero.
    ///
    /// # Safety
    /// `src` is valid for reads of `count` elements.
    #[doc(hidden)]
    unsafe fn load_up_to<S: Lanes<Self::Sum>>(simd: S, src: *const Self, count: usize) -> S::V;
    /// Runs the driver's loops on the chosen level. Not generic, so that they are compiled with
    /// this crate and not again in each crate that uses it.
    #[doc(hidden)]
    fn multiply(task: Blocked<'_, Self::Sum>);
    /// [`Factor::multiply`] for small products.
    #[doc(hidden)]
    fn multiply_small(task: &Small<'_, Self>);
    /// [`Factor::multiply`] for few rows of A and a B that is read along its rows.
    #[doc(hidden)]
    fn multiply_rows(task: RowsOfB<'_, Self>);
    /// [`Factor::multiply`] for few rows of A and a B whose columns are contiguous.
    #[doc(hidden)]
    fn multiply_columns(task: ColumnsOfB<'_, Self>);
    /// Packs B; see [`Factor::multiply`].
    #[doc(hidden)]
    fn pack(task: &Pack<'_, Self>) -> Isa;
    /// Copies an operand; see [`Factor::multiply`].
    #[doc(hidden)]
    fn copy(task: &Copied<'_, Self>);
    /// Writes windows of an image; see [`Factor::multiply`].
    #[doc(hidden)]
    fn windows(task: &PartOfWindows<'_, Self>);
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! tasks {
    () => {
        fn multiply(task: Blocked<'_, Self::Sum>) {
            run(task);
        }
        fn multiply_small(task: &Small<'_, Self>) {
            run(task);
        }
        fn multiply_rows(task: RowsOfB<'_, Self>) {
            run(task);
        }
        fn multiply_columns(task: ColumnsOfB<'_, Self>) {
            run(task);
        }
        fn pack(task: &Pack<'_, Self>) -> Isa {
            run(task)
        }
        fn copy(task: &Copied<'_, Self>) {
            run(task);
        }
        fn windows(task: &PartOfWindows<'_, Self>) {
            run(task);
        }
    };
}

macro_rules! sums {
    ($($t:ident)*) => {$(
        impl sealed::Sealed for $t {}
        impl Factor for $t {
            type Sum = $t;
            const IS_SUM: bool = true;
            #[inline(always)]
            fn as_sums<'a>(matrix: MatRef<'a, $t>) -> Option<MatRef<'a, $t>> {
                Some(matrix)
            }
            #[inline(always)]
            fn widened(self) -> $t {
                self
            }
            #[inline(always)]
            unsafe fn load<S: Lanes<$t>>(simd: S, src: *const $t) -> S::V {
                // SAFETY: the caller promises the elements.
                unsafe { simd.load(src) }
            }
            #[inline(always)]
            unsafe fn load_up_to<S: Lanes<$t>>(simd: S, src: *const $t, count: usize) -> S::V {
                // SAFETY: the caller promises the elements.
                unsafe { simd.load_up_to(src, count) }
            }
            tasks!();
        }
    )*};
}
sums!(f32 f64);

macro_rules! halves {
    ($($t:ident $load:ident $widened:ident;)*) => {$(
        impl sealed::Sealed for $t {}
        impl Factor for $t {
            type Sum = f32;
            const IS_SUM: bool = false;
            #[inline(always)]
            fn as_sums<'a>(_: MatRef<'a, $t>) -> Option<MatRef<'a, f32>> {
                None
            }
            #[inline(always)]
            fn widened(self) -> f32 {
                $widened(self.to_bits())
            }
            #[inline(always)]
            unsafe fn load<S: Lanes<f32>>(simd: S, src: *const $t) -> S::V {
                // SAFETY: the caller promises the elements; the type is its bits.
                unsafe { simd.$load(src.cast()) }
            }
            #[inline(always)]
            unsafe fn load_up_to<S: Lanes<f32>>(simd: S, src: *const $t, count: usize) -> S::V {
                const { assert!(S::LANES <= MAX_LANES) };
                if count >= S::LANES {
                    // SAFETY: a whole vector may be read.
                    return unsafe { Self::load(simd, src) };
                }
                let mut lanes = [<$t>::ZERO; MAX_LANES];
                // SAFETY: `count` elements may be read; the array holds a whole vector, as asserted
                // above.
                unsafe {
                    src.copy_to_nonoverlapping(lanes.as_mut_ptr(), count);
                    Self::load(simd, lanes.as_ptr())
                }
            }
            tasks!();
        }
    )*};
}
halves! {
    f16 load_f16 f32_from_f16;
    bf16 load_bf16 f32_from_bf16;
}
