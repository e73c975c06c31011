//! The embedded matrix product: C ← α·A·B + β·C for `f32`, `f64`, and 16-bit floats summed in
//! `f32`, with any strides.
//!
//! # What is computed
//!
//! Every element is, whatever the instruction set, tile, position, strides or number of threads:
//!
//! ```text
//! acc_b = fma(a[k], b[k], … fma(a[1], b[1], fma(a[0], b[0], +0)))   over block b of KC values of k
//! AB    = ((acc_0 + acc_1) + acc_2) + …                             +0 if there is no k
//! C     = beta · C, or +0 if beta = 0   if alpha = 0 or there is no k; A and B are not read
//!         alpha · AB                    if beta = 0; C is not read
//!         fma(alpha, AB, beta · C)      otherwise
//! C     = f(C + bias)                   with an [`Epilogue`]
//! ```
//!
//! So the bits of an element depend only on its row of A, its column of B, alpha, beta and its old
//! value: a row gives the same bits alone as inside a batch, and m and n may be split anywhere.
//! (NaN is NaN, with any payload.) Starting each block at zero, instead of carrying one chain
//! through all of k, costs nothing and is 3.7 times more accurate at k = 4096 (rms error over
//! √Σ(ab)²: one chain 1.13e-6, KC = 512 4.0e-7, **256 3.05e-7**, 128 2.2e-7).
//!
//! # How
//!
//! ```text
//!              n                         LOOP 5  columns of B and C, NC at a time (`cache`)
//!        ┌───────┬─────┐                 LOOP 4    k, KC at a time
//!      k │▒▒▒▒▒▒▒│     │ KC                          pack B [KC, NC] into L2, tile by tile
//!        │       │     │                 LOOP 3      rows, 8·MR at a time: A in place
//!        └───────┴─────┘                 LOOP 2        their tiles with the panel's columns
//!    k       NC                          LOOP 1          k of the block: the micro-kernel
//!  ┌──┬──┐ ┌─┬─┬─┬─┬───┐
//!  │▒▒│  │ │█│ │ │ │   │ MR      A is not packed: each of its MR rows is a sequential stream whose
//! m│  │  │ ├─┴─┴─┴─┤   │         elements are broadcast from memory. That gains 3 to 18 points of the
//!  │  │  │ │       │   │         peak, and saves a buffer and the loop over m (MC) that the literature
//!  └──┴──┘ └───────┴───┘         has between LOOPs 4 and 3.
//!   KC
//! ```
//!
//! LOOP 2 goes down the rows first if a tile of B, KC deep, stays in L1 meanwhile (AVX2, NEON: 2 to
//! 5 points of the peak from 512 up). AVX-512's is too wide for that; there MR rows of A stay. The
//! tile of C is prefetched before LOOP 1.
//!
//! 1. If k is not contiguous in A, 8·MR of its rows are copied before LOOP 2.
//! 2. If B is stored transposed, packing transposes squares in registers. Both copies widen 16-bit
//!    floats: their A is always copied and their B always packed, so these loops only know the type
//!    of the sums.
//! 3. B is read in place, under a mask at its right edge, if packing it would not pay: its rows are
//!    contiguous, and A has few rows or B is small.
//! 4. Partial sums of the blocks of k are kept in C if beta = 0, else in the workspace.
//! 5. If C is stored transposed, Cᵀ = BᵀAᵀ is computed instead.
//! 6. An epilogue is applied to 8·MR rows of a panel as soon as they are finished; the bias of a plain product is
//!    added to the tiles in registers.
//!
//! Products that would not fill these loops have their own, with the same bits:
//!
//! | file | for |
//! |---|---|
//! | `small` | a B that fits the near caches and one block of k: only the tiles; a transposed B is transposed first; 4³ of `f32` is four instructions on one vector |
//! | `rows` | few rows of A and a large B, or a B with reversed columns: reads B along its rows |
//! | `columns` | a few rows of A and a B stored transposed: transposes B in registers |
//!
//! Measured share of the FMA peak, one thread, f32, sizes 64 to 1024: this scheme .88 to .97 (B
//! transposed: .91 at 64); the classic order (A block in L2, B panel in L1) .62 to .83.

mod bounds;
mod cache;
mod columns;
mod driver;
mod epilogue;
mod factor;
mod indirect;
mod matrix;
mod pack;
mod packed;
mod path;
mod rows;
mod small;
mod split;
mod tile;
mod windows;
mod workspace;

pub use epilogue::{Bias, Epilogue, InPlace};
pub use factor::Factor;
pub use indirect::Indirect;
pub use matrix::{GemmError, MatMut, MatRef};
pub use packed::PackedB;
pub use path::GemmPath;
pub(crate) use windows::Part as PartOfWindows;
pub use windows::Windows;
pub use workspace::Workspace;

use crate::simd::Float;
pub(crate) use columns::ColumnsOfB;
pub(crate) use driver::Blocked;
use driver::{OperandB, Operands};
use pack::{A_ROWS, Source};
pub(crate) use pack::{Copied, Pack};
pub(crate) use rows::RowsOfB;
pub(crate) use small::Small;

/// Values of k in one chain of fused multiply-adds. It defines the result, so it is never tuned.
/// 256, 384 and 512 are equally fast; 256 is the most accurate of them.
pub const KC: usize = 256;

/// The most rows of A for which B is read in place: packing would write and read B once more. 16
/// and 24 rows of a B of 128 KiB to 16 MiB take .73 to .9 of the time of packing.
const IN_PLACE_ROWS: usize = 24;

/// The most rows of A for which a packed panel is limited to [`FEW_ROWS_BYTES`]: a shorter panel
/// lets the prefetches of the next one start sooner. 32 to 128 rows take .88 to .96 of the time of
/// whole panels, .7 to .9 for a B stored transposed.
const FEW_ROWS: usize = 256;

/// Bytes of a panel, [`KC`] deep, if A has few rows.
const FEW_ROWS_BYTES: usize = 256 << 10;

/// Bytes of the largest B that is read in place: L1 and a part of L2 (96 x 96 `f32`).
const IN_PLACE_BYTES: usize = 96 * 96 * 4;

/// Vectors in a panel of a B stored transposed if A has few rows: its columns are streamed along
/// all of k, no more at once than the hardware prefetcher follows.
const SKINNY_VECTORS: usize = 2;

/// Rows of C computed at once if partial sums need memory of their own: bounds it to 2 MiB. B is
/// packed again every 512 rows.
const SCRATCH_ROWS: usize = 512;

/// A product: C ← f(`alpha`·`a`·`b` + `beta`·C + bias), with the bias and the function f of `epilogue`.
#[derive(Debug)]
pub struct Gemm<'a, T: Factor> {
    /// A, `[m, k]`.
    pub a: Left<'a, T>,
    /// B, `[k, n]`.
    pub b: Right<'a, T>,
    /// The factor of the product; if zero, A and B are not read.
    pub alpha: T::Sum,
    /// The factor of the old C; if zero, C is not read.
    pub beta: T::Sum,
    /// A bias and a function.
    pub epilogue: Epilogue<'a, T::Sum>,
}

impl<'a, T: Factor> Gemm<'a, T> {
    /// The product `a`·`b`.
    #[inline(always)]
    pub fn new(a: impl Into<Left<'a, T>>, b: impl Into<Right<'a, T>>) -> Self {
        let (alpha, beta) = (T::Sum::ONE, T::Sum::ZERO);
        Gemm { a: a.into(), b: b.into(), alpha, beta, epilogue: Epilogue::default() }
    }
}

/// A of a product.
#[derive(Clone, Copy, Debug)]
pub enum Left<'a, T> {
    /// Elements in memory.
    Matrix(MatRef<'a, T>),
    /// Windows of images, copied from them some rows at a time.
    Windows(&'a Windows<'a, T>),
}

/// B of a product.
#[derive(Clone, Copy, Debug)]
pub enum Right<'a, T: Factor> {
    /// Elements in memory.
    Matrix(MatRef<'a, T>),
    /// A matrix packed once, for many products or many threads.
    Packed(&'a PackedB<'a, T::Sum>),
    /// Windows of images, packed from them panel by panel: a convolution.
    Windows(&'a Windows<'a, T>),
    /// The transpose of such windows.
    WindowsTransposed(&'a Windows<'a, T>),
    /// Rows that are ranges of one slice, read in place.
    Indirect(&'a Indirect<'a, T::Sum>),
}

impl<T> Left<'_, T> {
    /// `[m, k]`.
    pub fn shape(&self) -> [usize; 2] {
        match self {
            Left::Matrix(a) => a.shape,
            Left::Windows(a) => a.shape(),
        }
    }
}

impl<T: Factor> Right<'_, T> {
    /// `[k, n]`.
    pub fn shape(&self) -> [usize; 2] {
        match self {
            Right::Matrix(b) => b.shape,
            Right::Packed(b) => b.shape(),
            Right::Windows(b) => b.shape(),
            Right::WindowsTransposed(b) => {
                let [rows, columns] = b.shape();
                [columns, rows]
            }
            Right::Indirect(b) => b.shape(),
        }
    }
}

macro_rules! operands {
    ($($operand:ident::$variant:ident $from:ty;)*) => {$(
        impl<'a, T: Factor> From<$from> for $operand<'a, T> {
            #[inline(always)]
            fn from(operand: $from) -> Self {
                $operand::$variant(operand)
            }
        }
    )*};
}
operands! {
    Left::Matrix MatRef<'a, T>;
    Left::Windows &'a Windows<'a, T>;
    Right::Matrix MatRef<'a, T>;
    Right::Packed &'a PackedB<'a, T::Sum>;
    Right::Windows &'a Windows<'a, T>;
    Right::Indirect &'a Indirect<'a, T::Sum>;
}

/// Computes a product; an error if the shapes, or the instruction set of a packed B, do not match.
#[inline(always)]
pub(crate) fn product<T: Factor>(
    mut product: Gemm<'_, T>,
    mut c: MatMut<'_, T::Sum>,
    workspace: &mut Workspace<T::Sum>,
) -> Result<GemmPath, GemmError> {
    let Gemm { ref a, ref b, alpha, beta, ref mut epilogue } = product;
    // Tested first: for the smallest products, any other step would be a good part of the time.
    if let (Left::Matrix(a), Right::Matrix(b)) = (a, b)
        && alpha == T::Sum::ONE
        && beta == T::Sum::ZERO
        && epilogue.is_in_registers()
    {
        check(a.shape, b.shape, &c, beta)?;
        epilogue.check(a.shape, b.shape, c.shape)?;
        if Small::fits(a, b, &c) {
            let bias = epilogue.take_columns();
            T::multiply_small(&Small::new(a, b, bias, &mut c, workspace));
            return Ok(GemmPath::Small);
        }
    }
    larger_product(product, c, workspace)
}

/// [`product`] of any size. A separate function, so that the smallest products do not pay for its stack frame.
#[inline(never)]
fn larger_product<'a, T: Factor>(
    product: Gemm<'a, T>,
    mut c: MatMut<'a, T::Sum>,
    workspace: &mut Workspace<T::Sum>,
) -> Result<GemmPath, GemmError> {
    let Gemm { mut a, mut b, mut alpha, beta, mut epilogue } = product;
    check(a.shape(), b.shape(), &c, beta)?;
    epilogue.check(a.shape(), b.shape(), c.shape)?;
    if let Right::Packed(b) = b {
        b.check_isa()?;
    }
    if c.is_empty() {
        return Ok(GemmPath::Blocked);
    }
    if a.shape()[1] == 0 {
        alpha = T::Sum::ZERO;
    }
    if let (Left::Matrix(a), Right::Matrix(b)) = (&mut a, &mut b) {
        let [m, n] = c.shape;
        // Vectors run along the rows of C, so a single column is treated as a row.
        if m > 1 && (n == 1 || c.strides[1] != 1 && c.strides[0] == 1) {
            (*a, *b, c, epilogue) = (b.t(), a.t(), c.t(), epilogue.t());
        }
        // The stride of a single column is never used.
        if c.shape[1] == 1 {
            (b.strides[1], c.strides[1]) = (1, 1);
        }
    }
    // The loops add the bias of a plain product to sums in registers; the epilogue does the rest.
    let is_plain = alpha == T::Sum::ONE && beta == T::Sum::ZERO;
    let bias = if is_plain && c.strides[1] == 1 { epilogue.take_columns() } else { None };
    if let (&Left::Matrix(a), &Right::Matrix(b)) = (&a, &b) {
        if is_plain && Small::fits(&a, &b, &c) {
            multiply_small(a, b, bias, epilogue, c, workspace);
            return Ok(GemmPath::Small);
        }
        // A single column of 16-bit floats can only be widened one by one here, but by whole vectors in
        // `ColumnsOfB`.
        let is_wide = T::IS_SUM || c.shape[1] > 1;
        let reads = alpha != T::Sum::ZERO;
        if reads && c.strides[1] == 1 && is_wide && RowsOfB::pays(&b, c.shape[0]) {
            let sums = c.reborrow();
            T::multiply_rows(RowsOfB::new(a, b, (alpha, beta), bias, sums, workspace));
            epilogue.finish(c, [0, 0]);
            return Ok(GemmPath::Rows);
        }
        if reads && ColumnsOfB::fits(&a, &b, &c) {
            let sums = c.reborrow();
            T::multiply_columns(ColumnsOfB::new(a, b, (alpha, beta), bias, sums, workspace));
            epilogue.finish(c, [0, 0]);
            return Ok(GemmPath::Columns);
        }
    }
    Ok(multiply_blocked(a, b, (alpha, beta), bias, epilogue, c, workspace))
}

/// Computes a product by the loops above.
fn multiply_blocked<T: Factor>(
    a: Left<'_, T>,
    b: Right<'_, T>,
    factors: (T::Sum, T::Sum),
    bias: Option<&[T::Sum]>,
    epilogue: Epilogue<'_, T::Sum>,
    c: MatMut<'_, T::Sum>,
    workspace: &mut Workspace<T::Sum>,
) -> GemmPath {
    let transposed;
    let (source, a_in_place): (&dyn Source<_>, _) = match &a {
        Left::Matrix(a) => (a, T::as_sums(*a)),
        Left::Windows(a) => (*a, None),
    };
    let (b, path) = match &b {
        Right::Matrix(b) => match T::as_sums(*b).filter(|b| is_read_in_place(b, c.shape[0])) {
            Some(b) => (OperandB::InPlace(b), GemmPath::InPlace),
            None => (OperandB::Strided(b), GemmPath::Blocked),
        },
        Right::Packed(b) => (OperandB::Packed(b), GemmPath::Packed),
        Right::Windows(b) => (OperandB::Strided(*b), GemmPath::Blocked),
        Right::WindowsTransposed(b) => {
            transposed = windows::Transposed(**b);
            (OperandB::Strided(&transposed), GemmPath::Blocked)
        }
        Right::Indirect(b) => (OperandB::Indirect(b), GemmPath::InPlace),
    };
    let nc = match b {
        OperandB::Packed(b) => b.nc,
        _ => cache::panel_columns::<T::Sum>(),
    };
    let operands = Operands { a: source, a_in_place, b, k: a.shape()[1], nc };
    T::multiply(Blocked::new(operands, factors, bias, epilogue, c, workspace));
    path
}

/// True if packing a B of sums would not pay: its rows are contiguous, and A has few rows or B is small.
fn is_read_in_place<E>(b: &MatRef<'_, E>, rows: usize) -> bool {
    b.strides[1] == 1 && (rows <= IN_PLACE_ROWS || is_small::<E>(b.shape))
}

/// Max elements of C per block when an epilogue follows: small enough for L2, at the price of
/// transposing B again for each block.
const EPILOGUE_LEN: usize = 1 << 15;

/// Computes a product that [`Small::fits`].
fn multiply_small<T: Factor>(
    a: MatRef<'_, T>,
    b: MatRef<'_, T>,
    bias: Option<&[T::Sum]>,
    mut epilogue: Epilogue<'_, T::Sum>,
    mut c: MatMut<'_, T::Sum>,
    workspace: &mut Workspace<T::Sum>,
) {
    let ([m, n], k) = (c.shape, a.shape[1]);
    let most = if T::IS_SUM && b.strides[1] == 1 { A_ROWS } else { A_ROWS.max(EPILOGUE_LEN / n) };
    let most = if epilogue.is_empty() { m } else { most };
    for top in (0..m).step_by(most) {
        let rows = most.min(m - top);
        let (a, mut c) = (a.part([top, 0], [rows, k]), c.part([top, 0], [rows, n]));
        T::multiply_small(&Small::new(&a, &b, bias, &mut c, workspace));
        epilogue.finish(c, [top, 0]);
    }
}

/// True if all of B stays in L1 and a part of L2.
fn is_small<E>([k, n]: [usize; 2]) -> bool {
    k.saturating_mul(n) <= IN_PLACE_BYTES / size_of::<E>()
}

fn check<E: Float>(
    a: [usize; 2],
    b: [usize; 2],
    c: &MatMut<'_, E>,
    beta: E,
) -> Result<(), GemmError> {
    if a[1] != b[0] || c.shape != [a[0], b[1]] {
        return Err(GemmError::ShapeMismatch { a, b, c: c.shape });
    }
    if !c.initialized && beta != E::ZERO {
        return Err(GemmError::UninitializedOutput { c: c.shape });
    }
    Ok(())
}
