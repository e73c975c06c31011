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
//!         f(AB + bias)                  with an [`Epilogue`]: the bias is added to every row,
//!                                       then f applied to every element
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
//! 6. An activation is applied to 8·MR rows of a panel as soon as they are finished.
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

pub use epilogue::{Activation, Epilogue};
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
pub(crate) use driver::Piece;
use driver::{OperandB, Operands, Product};
use pack::A_ROWS;
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

/// C ← `alpha`·`a`·`b` + `beta`·C.
#[derive(Clone, Copy, Debug)]
pub struct Gemm<'a, T: Factor> {
    /// A, `[m, k]`.
    pub a: MatRef<'a, T>,
    /// B, `[k, n]`.
    pub b: MatRef<'a, T>,
    /// The factor of the product; if zero, A and B are not read.
    pub alpha: T::Sum,
    /// The factor of the old C; if zero, C is not read.
    pub beta: T::Sum,
}

/// C ← `alpha`·`a`·`b` + `beta`·C with a packed B.
#[derive(Clone, Copy, Debug)]
pub struct PackedGemm<'a, T: Factor> {
    /// A, `[m, k]`.
    pub a: MatRef<'a, T>,
    /// B, `[k, n]`.
    pub b: &'a PackedB<'a, T::Sum>,
    /// The factor of the product; if zero, A and B are not read.
    pub alpha: T::Sum,
    /// The factor of the old C; if zero, C is not read.
    pub beta: T::Sum,
}

/// Computes C ← alpha · A·B + beta · C; an error if the shapes do not match.
#[inline(always)]
pub(crate) fn product<T: Factor>(
    product: Gemm<'_, T>,
    mut c: MatMut<'_, T::Sum>,
    workspace: &mut Workspace<T::Sum>,
) -> Result<GemmPath, GemmError> {
    let Gemm { ref a, ref b, alpha, beta } = product;
    check(a.shape, b.shape, &c, beta)?;
    // Tested first: for the smallest products, any other step would be a good part of the time.
    if alpha == T::Sum::ONE && beta == T::Sum::ZERO && Small::fits(a, b, &c) {
        T::multiply_small(&Small::new(a, b, None, &mut c, workspace));
        return Ok(GemmPath::Small);
    }
    Ok(multiply_any_layout(*a, *b, (alpha_of(a, alpha), beta), None, c, workspace))
}

/// Returns the caller's alpha, or 0 if k is 0.
fn alpha_of<T: Factor>(a: &MatRef<'_, T>, alpha: T::Sum) -> T::Sum {
    if a.shape[1] == 0 { T::Sum::ZERO } else { alpha }
}

/// Computes C ← f(alpha · A·B + beta · C) for either storage order of C; shapes were checked. A
/// separate function, so that the smallest products do not pay for its stack frame.
#[inline(never)]
fn multiply_any_layout<'a, T: Factor>(
    mut a: MatRef<'a, T>,
    mut b: MatRef<'a, T>,
    factors: (T::Sum, T::Sum),
    mut activation: Option<Activation<'a, T::Sum>>,
    mut c: MatMut<'a, T::Sum>,
    workspace: &mut Workspace<T::Sum>,
) -> GemmPath {
    let [m, n] = c.shape;
    // Vectors run along the rows of C, so a single column is treated as a row.
    if m > 1 && (n == 1 || c.strides[1] != 1 && c.strides[0] == 1) {
        (a, b, c) = (b.t(), a.t(), c.t());
        activation = activation.map(Activation::t);
    }
    // The stride of a single column is never used.
    if c.shape[1] == 1 {
        (b.strides[1], c.strides[1]) = (1, 1);
    }
    multiply(a, b, factors, Epilogue { bias: None, activation }, c, workspace)
}

/// Computes C ← f(alpha · A·B + beta · C), or f(A·B + bias) with a bias; shapes were checked.
fn multiply<'a, T: Factor>(
    a: MatRef<'a, T>,
    b: MatRef<'a, T>,
    (alpha, beta): (T::Sum, T::Sum),
    epilogue: Epilogue<'a, T::Sum>,
    mut c: MatMut<'a, T::Sum>,
    workspace: &mut Workspace<T::Sum>,
) -> GemmPath {
    let few_rows = (1..=IN_PLACE_ROWS).contains(&c.shape[0]);
    let has_runs = b.strides[1] == 1;
    // A single column of 16-bit floats can only be widened one by one here, but by whole vectors in
    // `ColumnsOfB`.
    let is_wide = T::IS_SUM || c.shape[1] > 1;
    let reads = alpha != T::Sum::ZERO;
    if alpha == T::Sum::ONE && beta == T::Sum::ZERO && Small::fits(&a, &b, &c) {
        multiply_small(a, b, epilogue, c, workspace);
        GemmPath::Small
    } else if reads && c.strides[1] == 1 && is_wide && RowsOfB::pays(&b, c.shape[0]) {
        let sums = c.reborrow();
        let product = RowsOfB::new(a, b, (alpha, beta), epilogue.bias, sums, workspace);
        T::multiply_rows(product);
        epilogue.activate(c);
        GemmPath::Rows
    } else if reads && ColumnsOfB::fits(&a, &b, &c) {
        let sums = c.reborrow();
        let product = ColumnsOfB::new(a, b, (alpha, beta), epilogue.bias, sums, workspace);
        T::multiply_columns(product);
        epilogue.activate(c);
        GemmPath::Columns
    } else {
        let (operand, path) = match T::as_sums(b) {
            Some(b) if has_runs && (few_rows || is_small::<T>(b.shape)) => {
                (OperandB::InPlace(b), GemmPath::InPlace)
            }
            _ => (OperandB::Strided(&b), GemmPath::Blocked),
        };
        let nc = cache::panel_columns::<T::Sum>();
        Product { a, b: operand, nc, alpha, beta, epilogue, c }.run(workspace);
        path
    }
}

/// Max elements of C per block when an activation follows: small enough for L2, at the price of
/// transposing B again for each block.
const ACTIVATED_LEN: usize = 1 << 15;

/// [`multiply`] for products that [`Small::fits`].
fn multiply_small<'a, T: Factor>(
    mut a: MatRef<'a, T>,
    b: MatRef<'a, T>,
    Epilogue { bias, mut activation }: Epilogue<'a, T::Sum>,
    mut c: MatMut<'a, T::Sum>,
    workspace: &mut Workspace<T::Sum>,
) {
    let most = if T::IS_SUM && b.strides[1] == 1 { 0 } else { ACTIVATED_LEN / c.shape[1].max(1) };
    while let Some(whole) = activation.take() {
        let rows = c.shape[0].min(most.max(A_ROWS));
        let (a_above, a_below) = a.split_rows(rows);
        let (mut c_above, c_below) = c.split_rows(rows);
        let (mut above, below) = whole.split_rows(rows);
        T::multiply_small(&Small::new(&a_above, &b, bias, &mut c_above, workspace));
        above.finish(c_above, [0, 0]);
        if c_below.shape[0] == 0 {
            return;
        }
        (a, c, activation) = (a_below, c_below, Some(below));
    }
    T::multiply_small(&Small::new(&a, &b, bias, &mut c, workspace));
}

/// True if all of B stays in L1 and a part of L2.
fn is_small<E>([k, n]: [usize; 2]) -> bool {
    k.saturating_mul(n) <= IN_PLACE_BYTES / size_of::<E>()
}

/// Computes C ← f(`a`·`b` + bias); an error if the shapes do not match.
#[inline(always)]
pub(crate) fn product_with_epilogue<T: Factor>(
    a: MatRef<'_, T>,
    b: MatRef<'_, T>,
    epilogue: Epilogue<'_, T::Sum>,
    mut c: MatMut<'_, T::Sum>,
    workspace: &mut Workspace<T::Sum>,
) -> Result<GemmPath, GemmError> {
    check(a.shape, b.shape, &c, T::Sum::ZERO)?;
    epilogue.check(a.shape, b.shape, c.shape)?;
    let Epilogue { bias, activation } = epilogue;
    if activation.is_none() && Small::fits(&a, &b, &c) {
        T::multiply_small(&Small::new(&a, &b, bias, &mut c, workspace));
        return Ok(GemmPath::Small);
    }
    if c.is_empty() {
        return Ok(GemmPath::Blocked);
    }
    let (zero, one) = (T::Sum::ZERO, T::Sum::ONE);
    Ok(match bias {
        None => multiply_any_layout(a, b, (one, zero), activation, c, workspace),
        Some(bias) if bias.len() > 1 && c.strides[1] == 1 => {
            let epilogue = Epilogue { bias: Some(bias), activation };
            multiply(a, b, (one, zero), epilogue, c, workspace)
        }
        // Here vectors run down the columns of C; fma(1, AB, 1 · bias) has the same bits.
        Some(bias) => {
            c.fill_rows(bias);
            multiply_any_layout(a, b, (one, one), activation, c, workspace)
        }
    })
}

/// Computes C ← alpha · A·B + beta · C; an error if the shapes or the instruction set do not match.
#[inline(always)]
pub(crate) fn product_of_packed<T: Factor>(
    product: PackedGemm<'_, T>,
    c: MatMut<'_, T::Sum>,
    workspace: &mut Workspace<T::Sum>,
) -> Result<GemmPath, GemmError> {
    let PackedGemm { a, b, alpha, beta } = product;
    let alpha = alpha_of(&a, alpha);
    check(a.shape, b.shape(), &c, beta)?;
    b.check_isa()?;
    let epilogue = Epilogue { bias: None, activation: None };
    let nc = b.nc;
    Product { a, b: OperandB::Packed(b), nc, alpha, beta, epilogue, c }.run(workspace);
    Ok(GemmPath::Packed)
}

/// Computes C ← A·windows + beta · C; an error if the shapes do not match.
pub(crate) fn product_of_windows<T: Factor>(
    a: MatRef<'_, T>,
    windows: &Windows<'_, T>,
    beta: T::Sum,
    c: MatMut<'_, T::Sum>,
    workspace: &mut Workspace<T::Sum>,
) -> Result<(), GemmError> {
    check(a.shape, windows.shape(), &c, beta)?;
    multiply_by(a, OperandB::Strided(windows), beta, c, workspace);
    Ok(())
}

/// Computes C ← A·B + beta · C with a B of rows at offsets; an error if the shapes do not match.
pub(crate) fn product_of_indirect<T: Factor>(
    a: MatRef<'_, T>,
    b: &Indirect<'_, T::Sum>,
    beta: T::Sum,
    c: MatMut<'_, T::Sum>,
    workspace: &mut Workspace<T::Sum>,
) -> Result<(), GemmError> {
    check(a.shape, b.shape(), &c, beta)?;
    multiply_by(a, OperandB::Indirect(b), beta, c, workspace);
    Ok(())
}

/// Computes C ← A·B + beta · C; shapes were checked.
fn multiply_by<'a, T: Factor>(
    a: MatRef<'a, T>,
    b: OperandB<'a, T::Sum>,
    beta: T::Sum,
    c: MatMut<'a, T::Sum>,
    workspace: &mut Workspace<T::Sum>,
) {
    let (alpha, nc) = (alpha_of(&a, T::Sum::ONE), cache::panel_columns::<T::Sum>());
    let epilogue = Epilogue { bias: None, activation: None };
    Product { a, b, nc, alpha, beta, epilogue, c }.run(workspace);
}

/// Computes C ← windows·Bᵀ + beta · C with two matrices of windows; an error if the shapes do not match.
pub(crate) fn product_with_transposed_windows<T: Factor>(
    a: &Windows<'_, T>,
    b: &Windows<'_, T>,
    beta: T::Sum,
    c: MatMut<'_, T::Sum>,
    workspace: &mut Workspace<T::Sum>,
) -> Result<(), GemmError> {
    let ([m, k], [n, k_b]) = (a.shape(), b.shape());
    check([m, k], [k_b, n], &c, beta)?;
    if c.is_empty() {
        return Ok(());
    }
    let alpha = if k == 0 { T::Sum::ZERO } else { T::Sum::ONE };
    let (epilogue, nc) =
        (Epilogue { bias: None, activation: None }, cache::panel_columns::<T::Sum>());
    let (b, scratch) = (windows::Transposed(*b), k > KC && beta != T::Sum::ZERO);
    let operands = Operands { a, a_in_place: None, b: OperandB::Strided(&b) };
    T::multiply(operands.piece(k, nc, (alpha, beta), epilogue, c, scratch, workspace));
    Ok(())
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
