//! Moving elements: strided copies, fills and transposes. Bits are moved, never computed with.
//!
//! ```text
//! transpose: for each tile of 32 x 32, for each block of L x L in it (L lanes):
//!     load L rows
//!     log2(L) times: row[2 i], row[2 i + 1] = interleave(row[i], row[i + L/2])
//!     store L rows
//! ```
//!
//! 1. Each round is a perfect shuffle of the rows' elements: it moves one bit of an element's
//!    column number into its row number, and one back; after log2(L) rounds they have changed
//!    places.
//! 2. A tile touches 32 rows on either side, which the first-level cache and its address
//!    translation hold, so both halves of a cache line are used while it is there.

use core::marker::PhantomData;

use crate::dispatch::ElementTask;
use crate::map::{load_up_to, store_up_to};
use crate::output::Output;
use crate::simd::{Float, Lanes, Vector};

/// Types that are moved as bits: integers and floats of 1, 2, 4 and 8 bytes, and `bool`. Sealed.
pub trait Plain: Copy + Send + Sync + sealed::Sealed + 'static {}

mod sealed {
    pub trait Sealed {}
}

macro_rules! impl_plain {
    ($($t:ty)*) => {$(
        impl sealed::Sealed for $t {}
        impl Plain for $t {}
    )*};
}
impl_plain!(bool u8 i8 u16 i16 u32 i32 f32 u64 i64 f64);

/// Writes `dst[i] = src[offset + i * stride]`.
///
/// ```
/// let mut every_other = [0i64; 3];
/// swath_kernels::copy_strided(&[1, 2, 3, 4, 5, 6], 1, 2, &mut every_other);
/// assert_eq!(every_other, [2, 4, 6]);
/// ```
///
/// # Panics
/// If an element lies outside `src`.
#[track_caller]
pub fn copy_strided<T: Plain>(
    src: &[T],
    offset: usize,
    stride: isize,
    dst: &mut (impl Output<T> + ?Sized),
) {
    let (dst, len) = dst.as_raw();
    let Some(steps) = len.checked_sub(1) else { return };
    let last = isize::try_from(steps)
        .ok()
        .and_then(|steps| steps.checked_mul(stride))
        .and_then(|distance| offset.checked_add_signed(distance));
    assert!(
        offset < src.len() && last.is_some_and(|last| last < src.len()),
        "copy_strided: {len} elements from {offset} with stride {stride} exceed {} elements",
        src.len()
    );
    // SAFETY: the first element read and the last lie inside `src` by the assertion, the others
    // between them; `len` elements of `dst` may be written, and the borrows keep them apart.
    unsafe {
        let src = src.as_ptr().add(offset);
        match stride {
            1 => core::ptr::copy_nonoverlapping(src, dst, len),
            0 => fill_raw(dst, len, src.read()),
            -1 => {
                let first = src.sub(steps);
                for i in 0..len {
                    dst.add(i).write(first.add(steps - i).read());
                }
            }
            _ => {
                for i in 0..len {
                    dst.add(i).write(src.offset(i as isize * stride).read());
                }
            }
        }
    }
}

/// Writes `x` to every element.
///
/// ```
/// let mut y = Box::new_uninit_slice(2);
/// swath_kernels::fill(&mut y[..], true);
/// // SAFETY: both elements have been written.
/// assert_eq!(*unsafe { y.assume_init() }, [true, true]);
/// ```
pub fn fill<T: Plain>(dst: &mut (impl Output<T> + ?Sized), x: T) {
    let (dst, len) = dst.as_raw();
    // SAFETY: an output is valid for writes of its length.
    unsafe { fill_raw(dst, len, x) }
}

/// # Safety
/// `dst` is valid for writes of `len` elements.
#[inline(always)]
unsafe fn fill_raw<T: Copy>(dst: *mut T, len: usize, x: T) {
    for i in 0..len {
        // SAFETY: `i` is below `len`.
        unsafe { dst.add(i).write(x) };
    }
}

/// What [`transpose`] moves, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transpose {
    /// Rows of the source, columns of the result.
    pub rows: usize,
    /// Columns of the source, rows of the result.
    pub cols: usize,
    /// Where the source's first row begins.
    pub src_offset: usize,
    /// From the start of a source row to the next; elements of a row are adjacent.
    pub src_row_stride: usize,
    /// From the start of a result row to the next; at least `rows`.
    pub dst_row_stride: usize,
}

/// Writes the transpose of a row-major matrix: `dst[c * dst_row_stride + r] =
/// src[src_offset + r * src_row_stride + c]` for `r < rows`, `c < cols`, and nothing between.
///
/// ```
/// use swath_kernels::{Transpose, transpose};
///
/// let x = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
/// let mut y = [0.0; 6];
/// let shape =
///     Transpose { rows: 2, cols: 3, src_offset: 0, src_row_stride: 3, dst_row_stride: 2 };
/// transpose(&x, &mut y, shape);
/// assert_eq!(y, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
/// ```
///
/// # Panics
/// If the source or the result exceeds its slice, or rows of the result overlap.
#[track_caller]
pub fn transpose<T: Plain>(src: &[T], dst: &mut (impl Output<T> + ?Sized), shape: Transpose) {
    let Transpose { rows, cols, src_offset, src_row_stride, dst_row_stride } = shape;
    if rows == 0 || cols == 0 {
        return;
    }
    let (dst, dst_len) = dst.as_raw();
    let end = |count: usize, stride: usize, width: usize| {
        (count - 1).checked_mul(stride).and_then(|start| start.checked_add(width))
    };
    let src_end = end(rows, src_row_stride, cols).and_then(|end| end.checked_add(src_offset));
    let dst_end = end(cols, dst_row_stride, rows);
    assert!(
        src_end.is_some_and(|end| end <= src.len()) && dst_end.is_some_and(|end| end <= dst_len),
        "transpose: {shape:?} exceeds {} elements or a result of {dst_len}",
        src.len()
    );
    assert!(
        cols == 1 || dst_row_stride >= rows,
        "transpose: rows of the result overlap: {shape:?}"
    );
    // SAFETY: the source's last row ends inside `src` and the result's inside `dst`.
    unsafe {
        let src = src.as_ptr().add(src_offset);
        // `Plain` types have no padding: as bits they are floats of their size.
        match (size_of::<T>(), align_of::<T>()) {
            (4, 4) => tiles_in_lanes::<f32>(src.cast(), dst.cast(), shape),
            (8, 8) => tiles_in_lanes::<f64>(src.cast(), dst.cast(), shape),
            _ => tiles::<T>(src, dst, shape),
        }
    }
}

/// Rows and columns of a tile.
const TILE: usize = 32;

/// Element by element.
///
/// # Safety
/// The shape's source rows and result rows are there.
unsafe fn tiles<T: Copy>(src: *const T, dst: *mut T, shape: Transpose) {
    for r0 in (0..shape.rows).step_by(TILE) {
        for c0 in (0..shape.cols).step_by(TILE) {
            for c in c0..shape.cols.min(c0 + TILE) {
                for r in r0..shape.rows.min(r0 + TILE) {
                    // SAFETY: row and column are below the shape's.
                    unsafe {
                        let x = src.add(r * shape.src_row_stride + c).read();
                        dst.add(c * shape.dst_row_stride + r).write(x);
                    }
                }
            }
        }
    }
}

/// In blocks of lanes by lanes.
///
/// # Safety
/// The shape's source rows and result rows are there.
unsafe fn tiles_in_lanes<E: Float>(src: *const E, dst: *mut E, shape: Transpose) {
    E::transpose(Tiles { src, dst, shape, borrow: PhantomData });
}

pub struct Tiles<'a, E> {
    src: *const E,
    dst: *mut E,
    shape: Transpose,
    borrow: PhantomData<&'a mut E>,
}

impl<E: Float> ElementTask<E> for Tiles<'_, E> {
    type Output = ();
    #[inline(always)]
    fn run<S: Lanes<E>>(self, simd: S) {
        let Tiles { src, dst, shape, .. } = self;
        if S::LANES == 1 {
            // SAFETY: as `tiles_in_lanes` was promised.
            return unsafe { tiles(src, dst, shape) };
        }
        for r0 in (0..shape.rows).step_by(TILE) {
            for c0 in (0..shape.cols).step_by(TILE) {
                for c in (c0..shape.cols.min(c0 + TILE)).step_by(S::LANES) {
                    for r in (r0..shape.rows.min(r0 + TILE)).step_by(S::LANES) {
                        let (rows, cols) = (shape.rows - r, shape.cols - c);
                        // SAFETY: `rows` rows of `cols` elements are left from here on, of the
                        // result `cols` rows of `rows`.
                        unsafe {
                            let src = src.add(r * shape.src_row_stride + c);
                            let dst = dst.add(c * shape.dst_row_stride + r);
                            if rows >= S::LANES && cols >= S::LANES {
                                block(simd, src, dst, shape, S::LANES, S::LANES);
                            } else {
                                block(simd, src, dst, shape, rows, cols);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Moves a block of up to lanes by lanes elements.
///
/// # Safety
/// `rows` rows of `cols` elements are there, of the result `cols` rows of `rows`.
#[inline(always)]
unsafe fn block<E: Float, S: Lanes<E>>(
    simd: S,
    src: *const E,
    dst: *mut E,
    shape: Transpose,
    rows: usize,
    cols: usize,
) {
    let mut x = [simd.splat(E::ZERO); 16];
    for (r, x) in x.iter_mut().enumerate().take(S::LANES) {
        if r < rows {
            // SAFETY: the row is there.
            *x = unsafe { load_up_to(simd, src.add(r * shape.src_row_stride), cols) };
        }
    }
    for _ in 0..S::LANES.trailing_zeros() {
        let from = x;
        for i in 0..S::LANES / 2 {
            (x[2 * i], x[2 * i + 1]) = from[i].interleave(from[i + S::LANES / 2]);
        }
    }
    for (c, x) in x.iter().enumerate().take(S::LANES) {
        if c < cols {
            // SAFETY: the result's row is there.
            unsafe { store_up_to(simd, dst.add(c * shape.dst_row_stride), rows, *x) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::{Isa, with_isa};

    #[test]
    fn strided_copies_follow_the_index() {
        let src: Box<[u16]> = (0..41).collect();
        for stride in -7..=7isize {
            for len in 0..=41usize {
                for offset in 0..41usize {
                    let at = |i: usize| offset as isize + i as isize * stride;
                    if len > 0 && !(0..41).contains(&at(len - 1)) {
                        continue;
                    }
                    let mut dst: Box<[u16]> = vec![99; len].into();
                    copy_strided(&src, offset, stride, &mut dst[..]);
                    let expected: Vec<u16> = (0..len).map(|i| src[at(i) as usize]).collect();
                    assert_eq!(*dst, *expected, "{len} from {offset} by {stride}");
                }
            }
        }
    }

    #[test]
    fn strided_copies_outside_the_source_panic() {
        let cases = [
            (4, 0, 1),
            (1, 3, 1),
            (2, 0, -1),
            (2, 1, 2),
            (3, 0, isize::MAX),
            (3, 2, isize::MIN),
            (2, usize::MAX, 1),
        ];
        for (len, offset, stride) in cases {
            let result = std::panic::catch_unwind(|| {
                copy_strided(&[1u8, 2, 3], offset, stride, &mut vec![0; len][..])
            });
            assert!(result.is_err(), "{len} from {offset} by {stride}");
        }
        copy_strided::<u8>(&[], 5, 7, &mut [0u8; 0][..]);
    }

    #[test]
    fn fill_writes_every_element() {
        for len in 0..70 {
            let mut y: Box<[i8]> = vec![1; len].into();
            fill(&mut y[..], -3);
            assert!(y.iter().all(|&y| y == -3));
        }
    }

    /// `make` gives distinct bits for distinct numbers.
    fn check_transpose<T: Plain + PartialEq + std::fmt::Debug>(isa: Isa, make: impl Fn(u64) -> T) {
        let sizes = [1, 2, 3, 5, 8, 15, 16, 17, 31, 32, 33, 70];
        for (rows, cols) in sizes.into_iter().flat_map(|r| sizes.map(|c| (r, c))) {
            for (offset, gap) in [(0, 0), (3, 5)] {
                let (src_row_stride, dst_row_stride) = (cols + gap, rows + gap);
                let len = offset + (rows - 1) * src_row_stride + cols;
                let src: Box<[T]> = (0..len as u64).map(&make).collect();
                let untouched = make(1 << 40);
                let mut dst: Box<[T]> = vec![untouched; (cols - 1) * dst_row_stride + rows].into();
                let shape =
                    Transpose { rows, cols, src_offset: offset, src_row_stride, dst_row_stride };
                transpose(&src, &mut dst[..], shape);
                for (i, &x) in dst.iter().enumerate() {
                    let (c, r) = (i / dst_row_stride, i % dst_row_stride);
                    let expected =
                        if r < rows { src[offset + r * src_row_stride + c] } else { untouched };
                    assert_eq!(x, expected, "{shape:?} at {c}, {r} on {isa}");
                }
            }
        }
    }

    #[test]
    fn transposes_follow_the_index_and_keep_bits() {
        for isa in Isa::ALL {
            let ran = with_isa(isa, || {
                // Signalling NaNs among them: arithmetic would change their bits.
                check_transpose::<u32>(isa, |i| 0x7f80_0001 + i as u32);
                check_transpose::<i64>(isa, |i| 0x7ff0_0000_0000_0001 + i as i64);
            });
            if ran.is_none() {
                println!("skipped: this machine lacks {isa}");
            }
        }
        check_transpose::<u16>(Isa::Scalar, |i| i as u16);
        check_transpose::<bool>(Isa::Scalar, |i| i % 3 == 0);
        transpose::<f32>(&[], &mut [0f32; 0][..], Transpose { rows: 0, cols: 9, ..SQUARE });
    }

    const SQUARE: Transpose =
        Transpose { rows: 4, cols: 4, src_offset: 0, src_row_stride: 4, dst_row_stride: 4 };

    #[test]
    fn transposes_outside_their_slices_panic() {
        let cases = [
            Transpose { src_offset: 1, ..SQUARE },
            Transpose { src_row_stride: 5, ..SQUARE },
            Transpose { dst_row_stride: 5, ..SQUARE },
            Transpose { dst_row_stride: 3, ..SQUARE },
            Transpose { src_row_stride: usize::MAX, ..SQUARE },
            Transpose { dst_row_stride: usize::MAX / 2, ..SQUARE },
            Transpose { src_offset: usize::MAX, ..SQUARE },
            Transpose { rows: usize::MAX, ..SQUARE },
        ];
        for shape in cases {
            let result =
                std::panic::catch_unwind(|| transpose(&[0f32; 16], &mut [0.0; 16][..], shape));
            assert!(result.is_err(), "{shape:?}");
        }
    }
}
