//! Matrix products on the calling thread. `gemm.rs` defines the order of additions.

use super::same_len;
use crate::dispatch::run;
use crate::gemm::{
    Epilogue, Factor, Gemm, GemmError, GemmPath, Indirect, MatMut, MatRef, PackedGemm, Windows,
    Workspace,
};
use crate::integer_gemm::IntegerGemm;

/// Computes C ← α·A·B + β·C on this thread and returns the path that computed it. `c` is `[m, n]`;
/// see [the module](mod@crate::gemm) for the order of additions, which is the same on every
/// machine.
///
/// Threads may share a product by splitting C with [`MatMut::split_rows`] and
/// [`MatMut::split_cols`], and A or B to match: the bits stay the same.
///
/// ```
/// use swath_kernels::{Gemm, MatMut, MatRef, Workspace, gemm};
/// let a = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]; // [2, 3]
/// let b = [1.0f32, 0.0, 0.0, 1.0, 1.0, 1.0]; // [3, 2]
/// let mut c = [0.0f32; 4];
/// let product = Gemm {
///     a: MatRef::row_major(&a, [2, 3])?,
///     b: MatRef::row_major(&b, [3, 2])?,
///     alpha: 1.0,
///     beta: 0.0,
/// };
/// gemm(product, MatMut::row_major(&mut c, [2, 2])?, &mut Workspace::new())?;
/// assert_eq!(c, [4.0, 5.0, 10.0, 11.0]);
/// # Ok::<(), swath_kernels::GemmError>(())
/// ```
///
/// # Errors
/// [`GemmError::ShapeMismatch`]; [`GemmError::UninitializedOutput`] if `beta` is not zero and `c`
/// is uninitialised memory.
pub fn gemm<T: Factor>(
    product: Gemm<'_, T>,
    c: MatMut<'_, T::Sum>,
    workspace: &mut Workspace<T::Sum>,
) -> Result<GemmPath, GemmError> {
    crate::gemm::product(product, c, workspace)
}

/// C ← `a`·`b` + `bias`, where `bias` has n elements: [`gemm_epilogue`] without an activation.
///
/// ```
/// use swath_kernels::{MatMut, MatRef, Workspace, gemm_bias};
/// let a = [1.0f32, 2.0, 3.0, 4.0]; // [2, 2]
/// let mut c = [0.0f32; 4];
/// let (a, out) = (MatRef::row_major(&a, [2, 2])?, MatMut::row_major(&mut c, [2, 2])?);
/// gemm_bias(a, a.t(), &[10.0, 20.0], out, &mut Workspace::new())?;
/// assert_eq!(c, [15.0, 31.0, 21.0, 45.0]);
/// # Ok::<(), swath_kernels::GemmError>(())
/// ```
///
/// # Errors
/// [`GemmError::ShapeMismatch`]; [`GemmError::BiasLength`].
pub fn gemm_bias<T: Factor>(
    a: MatRef<'_, T>,
    b: MatRef<'_, T>,
    bias: &[T::Sum],
    c: MatMut<'_, T::Sum>,
    workspace: &mut Workspace<T::Sum>,
) -> Result<GemmPath, GemmError> {
    gemm_epilogue(a, b, Epilogue { bias: Some(bias), activation: None }, c, workspace)
}

/// C ← f(`a`·`b` + bias), with the bias and the function f of `epilogue`. The bias is added while
/// the sums are in registers, and f applied while they are in the cache. The bits are those of
/// [`gemm`] followed by an addition and the function.
///
/// ```
/// use swath_kernels::{
///     Activation, Epilogue, Function, MatMut, MatRef, Workspace, gemm_epilogue, math::Relu,
/// };
/// let a = [1.0f32, 2.0, 3.0, 4.0]; // [2, 2]
/// let (mut c, mut z) = ([0.0f32; 4], [0.0f32; 4]);
/// let (a, out) = (MatRef::row_major(&a, [2, 2])?, MatMut::row_major(&mut c, [2, 2])?);
/// let sums = Some(MatMut::row_major(&mut z, [2, 2])?);
/// let function = &|z: &mut [f32]| Relu::KERNEL.run_in_place([None], z);
/// let activation = Some(Activation { function, sums });
/// let epilogue = Epilogue { bias: Some(&[-10.0, 20.0]), activation };
/// gemm_epilogue(a, a.t(), epilogue, out, &mut Workspace::new())?;
/// assert_eq!(c, [0.0, 31.0, 1.0, 45.0]);
/// assert_eq!(z, [-5.0, 31.0, 1.0, 45.0]);
/// # Ok::<(), swath_kernels::GemmError>(())
/// ```
///
/// # Errors
/// [`GemmError::ShapeMismatch`], also if `sums` has another shape than C;
/// [`GemmError::BiasLength`].
pub fn gemm_epilogue<T: Factor>(
    a: MatRef<'_, T>,
    b: MatRef<'_, T>,
    epilogue: Epilogue<'_, T::Sum>,
    c: MatMut<'_, T::Sum>,
    workspace: &mut Workspace<T::Sum>,
) -> Result<GemmPath, GemmError> {
    crate::gemm::product_with_epilogue(a, b, epilogue, c, workspace)
}

/// [`gemm`] with a B packed once for many products or many threads.
///
/// ```
/// use swath_kernels::{MatMut, MatRef, PackedB, PackedGemm, Workspace, gemm_packed};
/// let b = [1.0f32, 0.0, 0.0, 1.0, 1.0, 1.0]; // [3, 2]
/// let mut buffer = Workspace::new();
/// let packed = PackedB::pack(MatRef::row_major(&b, [3, 2])?, &mut buffer);
/// let a = [1.0f32, 2.0, 3.0];
/// let mut c = [0.0f32; 2];
/// let product =
///     PackedGemm { a: MatRef::row_major(&a, [1, 3])?, b: &packed, alpha: 1.0, beta: 0.0 };
/// gemm_packed(product, MatMut::row_major(&mut c, [1, 2])?, &mut Workspace::new())?;
/// assert_eq!(c, [4.0, 5.0]);
/// # Ok::<(), swath_kernels::GemmError>(())
/// ```
///
/// # Errors
/// The errors of [`gemm`]; [`GemmError::PackedForOtherIsa`] if `b` was packed for another instruction
/// set than the one that runs, which can only happen in tests.
pub fn gemm_packed<T: Factor>(
    product: PackedGemm<'_, T>,
    c: MatMut<'_, T::Sum>,
    workspace: &mut Workspace<T::Sum>,
) -> Result<GemmPath, GemmError> {
    crate::gemm::product_of_packed(product, c, workspace)
}

/// C ← `a`·`windows` + β·C, the convolution of an image with the rows of `a` as filters. The windows are packed
/// from the image, never stored as a matrix.
///
/// ```
/// use swath_kernels::{Geometry, MatMut, MatRef, Sliding, Windows, Workspace, gemm_windows};
/// let pairs = Geometry::new([Sliding::default(), Sliding::default(), Sliding::new(4, 2)])?;
/// // One image of one channel.
/// let x = [1.0f32, 3.0, 2.0, 5.0];
/// let windows = Windows::new(&x, 0, [1, 1], [4, 4, 4, 4, 1], pairs)?;
/// let (differences, mut y) = ([-1.0f32, 1.0], [0.0; 3]);
/// let filters = MatRef::row_major(&differences, [1, 2])?;
/// let c = MatMut::row_major(&mut y, [1, 3])?;
/// gemm_windows(filters, &windows, 0.0, c, &mut Workspace::new())?;
/// assert_eq!(y, [2.0, -1.0, 3.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Those of [`gemm`].
pub fn gemm_windows<T: Factor>(
    a: MatRef<'_, T>,
    windows: &Windows<'_, T>,
    beta: T::Sum,
    c: MatMut<'_, T::Sum>,
    workspace: &mut Workspace<T::Sum>,
) -> Result<(), GemmError> {
    crate::gemm::product_of_windows(a, windows, beta, c, workspace)
}

/// C ← `a`·`b` + β·C for a `b` whose rows are ranges of one slice, such as the places of windows of padded images. The
/// bits are those of [`gemm`].
///
/// ```
/// use swath_kernels::{Indirect, MatMut, MatRef, Workspace, gemm_indirect};
/// // The differences of neighbours.
/// let x = [1.0, 4.0, 9.0, 16.0];
/// let b = Indirect::new(&x, &[0, 1], 3)?;
/// let mut c = [0.0f32; 3];
/// let a = MatRef::row_major(&[-1.0f32, 1.0], [1, 2])?;
/// gemm_indirect(a, &b, 0.0, MatMut::row_major(&mut c, [1, 3])?, &mut Workspace::new())?;
/// assert_eq!(c, [3.0, 5.0, 7.0]);
/// # Ok::<(), swath_kernels::GemmError>(())
/// ```
///
/// # Errors
/// Those of [`gemm`].
pub fn gemm_indirect<T: Factor>(
    a: MatRef<'_, T>,
    b: &Indirect<'_, T::Sum>,
    beta: T::Sum,
    c: MatMut<'_, T::Sum>,
    workspace: &mut Workspace<T::Sum>,
) -> Result<(), GemmError> {
    crate::gemm::product_of_indirect(a, b, beta, c, workspace)
}

/// C ← `a`·`b`ᵀ + β·C for two matrices of windows with as many columns: the gradient of a convolution's weight, with
/// the windows of its input and those of the upstream gradient, one pixel each.
///
/// # Errors
/// Those of [`gemm`].
pub fn gemm_windows_transposed<T: Factor>(
    a: &Windows<'_, T>,
    b: &Windows<'_, T>,
    beta: T::Sum,
    c: MatMut<'_, T::Sum>,
    workspace: &mut Workspace<T::Sum>,
) -> Result<(), GemmError> {
    crate::gemm::product_with_transposed_windows(a, b, beta, c, workspace)
}

/// C ← A·B + C for integers, which wrap. The matrices `a` `[m, k]`, `b` `[k, n]` and `c` `[m, n]` are
/// row-major; `shape` is `[m, k, n]`.
///
/// ```
/// let mut c = [100, 0];
/// swath_kernels::integer_gemm(&[1, 2], &[3, 4, 5, 6], [1, 2, 2], &mut c);
/// assert_eq!(c, [113, 16]);
/// ```
///
/// # Panics
/// If a length is not that of the matrix.
#[track_caller]
pub fn integer_gemm(a: &[i64], b: &[i64], shape: [usize; 3], c: &mut [i64]) {
    let (name, [m, k, n]) = ("integer_gemm", shape);
    let len = usize::saturating_mul;
    same_len(name, a.len(), len(m, k));
    same_len(name, b.len(), len(k, n));
    same_len(name, c.len(), len(m, n));
    if k > 0 && n > 0 {
        run(IntegerGemm { a, b, k, n, c });
    }
}
