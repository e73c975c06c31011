//! Matrix products on the calling thread. `gemm.rs` defines the order of additions.

use super::same_len;
use crate::dispatch::run;
use crate::gemm::{Factor, Gemm, GemmError, GemmPath, MatMut, Workspace};
use crate::integer_gemm::IntegerGemm;

/// Computes a product on this thread and returns the path that computed it. `c` is `[m, n]`; see
/// [the module](mod@crate::gemm) for the order of additions, which is the same on every machine.
///
/// ```
/// use swath_kernels::{Gemm, MatMut, MatRef, Workspace, gemm};
/// let a = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]; // [2, 3]
/// let b = [1.0f32, 0.0, 0.0, 1.0, 1.0, 1.0]; // [3, 2]
/// let (a, b) = (MatRef::row_major(&a, [2, 3])?, MatRef::row_major(&b, [3, 2])?);
/// let (mut c, mut workspace) = ([0.0f32; 4], Workspace::new());
/// gemm(Gemm::new(a, b), MatMut::row_major(&mut c, [2, 2])?, &mut workspace)?;
/// assert_eq!(c, [4.0, 5.0, 10.0, 11.0]);
/// let added = Gemm { beta: 1.0, ..Gemm::new(a, b) };
/// gemm(added, MatMut::row_major(&mut c, [2, 2])?, &mut workspace)?;
/// assert_eq!(c, [8.0, 10.0, 20.0, 22.0]);
/// # Ok::<(), swath_kernels::GemmError>(())
/// ```
///
/// Threads may share a product by splitting C with [`MatMut::split_rows`] and
/// [`MatMut::split_cols`], and A, B and the epilogue to match: the bits stay the same. They may also share
/// one [`PackedB`](crate::PackedB):
///
/// ```
/// # use swath_kernels::{Gemm, MatMut, MatRef, PackedB, Workspace, gemm};
/// # let b = [1.0f32, 0.0, 0.0, 1.0, 1.0, 1.0];
/// let mut buffer = Workspace::new();
/// let packed = PackedB::pack(MatRef::row_major(&b, [3, 2])?, &mut buffer);
/// let (a, mut c) = ([1.0f32, 2.0, 3.0], [0.0f32; 2]);
/// let product = Gemm::new(MatRef::row_major(&a, [1, 3])?, &packed);
/// gemm(product, MatMut::row_major(&mut c, [1, 2])?, &mut Workspace::new())?;
/// assert_eq!(c, [4.0, 5.0]);
/// # Ok::<(), swath_kernels::GemmError>(())
/// ```
///
/// An [`Epilogue`](crate::Epilogue) adds a bias while the sums are in registers, and applies a function while they
/// are in the cache. The bits are those of a product followed by an addition and the function:
///
/// ```
/// # use swath_kernels::{Gemm, MatMut, MatRef, Workspace, gemm};
/// use swath_kernels::{Bias, Epilogue, Function, math::Relu};
/// let a = [1.0f32, 2.0, 3.0, 4.0]; // [2, 2]
/// let (mut c, mut z) = ([0.0f32; 4], [0.0f32; 4]);
/// let epilogue = Epilogue {
///     bias: Some(Bias::PerColumn(&[-10.0, 20.0])),
///     function: Some(&|z: &mut [f32]| Relu::KERNEL.run_in_place([None], z)),
///     sums: Some(MatMut::row_major(&mut z, [2, 2])?),
/// };
/// let a = MatRef::row_major(&a, [2, 2])?;
/// let product = Gemm { epilogue, ..Gemm::new(a, a.t()) };
/// gemm(product, MatMut::row_major(&mut c, [2, 2])?, &mut Workspace::new())?;
/// assert_eq!(c, [0.0, 31.0, 1.0, 45.0]);
/// assert_eq!(z, [-5.0, 31.0, 1.0, 45.0]);
/// # Ok::<(), swath_kernels::GemmError>(())
/// ```
///
/// [`Windows`](crate::Windows) of images as B make a convolution, with the rows of A as filters. They are packed from
/// the images, never stored as a matrix:
///
/// ```
/// # use swath_kernels::{Gemm, MatMut, MatRef, Workspace, gemm};
/// use swath_kernels::{Geometry, Sliding, Windows};
/// let pairs = Geometry::new([Sliding::default(), Sliding::default(), Sliding::new(4, 2)])?;
/// // One image of one channel.
/// let x = [1.0f32, 3.0, 2.0, 5.0];
/// let windows = Windows::new(&x, 0, [1, 1], [4, 4, 4, 4, 1], pairs)?;
/// let (differences, mut y) = ([-1.0f32, 1.0], [0.0; 3]);
/// let product = Gemm::new(MatRef::row_major(&differences, [1, 2])?, &windows);
/// gemm(product, MatMut::row_major(&mut y, [1, 3])?, &mut Workspace::new())?;
/// assert_eq!(y, [2.0, -1.0, 3.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// In an [`Indirect`](crate::Indirect) B, rows are ranges of one slice, such as the taps of windows of padded images:
///
/// ```
/// # use swath_kernels::{Gemm, MatMut, MatRef, Workspace, gemm};
/// use swath_kernels::Indirect;
/// let (x, mut c) = ([1.0f32, 4.0, 9.0, 16.0], [0.0; 3]);
/// let b = Indirect::new(&x, &[0, 1], 3)?;
/// let product = Gemm::new(MatRef::row_major(&[-1.0f32, 1.0], [1, 2])?, &b);
/// gemm(product, MatMut::row_major(&mut c, [1, 3])?, &mut Workspace::new())?;
/// assert_eq!(c, [3.0, 5.0, 7.0]);
/// # Ok::<(), swath_kernels::GemmError>(())
/// ```
///
/// # Errors
/// [`GemmError::ShapeMismatch`] and [`GemmError::BiasLength`] if operands or the epilogue do not fit C;
/// [`GemmError::UninitializedOutput`] if `beta` is not zero and `c` is uninitialised memory;
/// [`GemmError::PackedForOtherIsa`] if `b` was packed for another instruction set than the one that runs,
/// which can only happen in tests.
pub fn gemm<T: Factor>(
    product: Gemm<'_, T>,
    c: MatMut<'_, T::Sum>,
    workspace: &mut Workspace<T::Sum>,
) -> Result<GemmPath, GemmError> {
    crate::gemm::product(product, c, workspace)
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
