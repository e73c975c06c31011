//! The system BLAS, and the only calls into it. The rest of the backend asks [`gemm`], which
//! declines what it cannot or should not do.
//!
//! 1. A matrix is row-major with a leading dimension, or the transpose of one; everything else is
//!    declined and goes to the embedded product.
//! 2. The library is set to one thread before its first use and called from swath's threads.
//! 3. C is cut into tiles of at most [`TILE_ROWS`] x [`TILE_COLS`], one call each. The grid depends
//!    on the shape alone, so the bits do not depend on the threads.

use super::matmul::Matrix;
use crate::blas::BlasInfo;

#[cfg(not(blas = "openblas"))]
mod provider {
    use super::{BlasInfo, Matrix};

    pub(crate) fn info() -> BlasInfo {
        BlasInfo {
            provider: "embedded",
            config: format!("swath {}", env!("CARGO_PKG_VERSION")),
            core: swath_kernels::isa().to_string(),
            threads: 1,
        }
    }

    /// Always declines.
    pub(in crate::backend::cpu) fn gemm<E>(
        _a: &Matrix<'_, E>,
        _b: &Matrix<'_, E>,
        _bias: Option<&[E]>,
        _c: &mut [E],
    ) -> bool {
        false
    }
}

#[cfg(blas = "openblas")]
mod provider {
    use std::ffi::{CStr, c_char, c_int};
    use std::sync::Once;

    use cblas_sys::{CBLAS_LAYOUT, CBLAS_TRANSPOSE, CblasNoTrans, CblasRowMajor, CblasTrans};
    use smallvec::SmallVec;

    use super::{BlasInfo, Matrix};
    use crate::backend::cpu::matmul::Product;
    use crate::backend::cpu::parallel::{self, Cost};
    use crate::dtype::DType;
    use crate::dtype::Element;

    // Links the library.
    use openblas_src as _;

    unsafe extern "C" {
        fn openblas_set_num_threads(threads: c_int);
        fn openblas_get_num_threads() -> c_int;
        fn openblas_get_config() -> *const c_char;
        fn openblas_get_corename() -> *const c_char;
    }

    /// Rows and columns of a tile of C: large enough that packing is paid back (4 % at 256 x 512),
    /// small enough that a product of 512 x 512 feeds two threads.
    const TILE_ROWS: usize = 256;
    const TILE_COLS: usize = 512;

    /// Multiplications below which the embedded product is the faster one: of 16³ it takes
    /// 69 ns where the library takes 77.
    const SMALL: usize = 16 * 16 * 16;

    /// Picoseconds for a multiplication and an addition.
    const COST_PER_TERM: usize = 11;

    fn single_threaded() {
        static ONCE: Once = Once::new();
        // SAFETY: the library's own function for this, declared as in its header; before any
        // product of ours, in this thread alone.
        ONCE.call_once(|| unsafe { openblas_set_num_threads(1) });
    }

    pub(crate) fn info() -> BlasInfo {
        single_threaded();
        let text = |pointer: *const c_char| match pointer.is_null() {
            true => String::new(),
            // SAFETY: not null; the library returns a terminated string that is never freed.
            false => unsafe { CStr::from_ptr(pointer) }.to_string_lossy().trim().to_owned(),
        };
        // SAFETY: functions without arguments, declared as in the library's header.
        let (config, core, threads) =
            unsafe { (openblas_get_config(), openblas_get_corename(), openblas_get_num_threads()) };
        BlasInfo {
            provider: "openblas",
            config: text(config),
            core: text(core),
            threads: usize::try_from(threads).unwrap_or(1),
        }
    }

    /// Dimensions of one call, each checked to fit the library's integer.
    struct Call {
        transpose_a: CBLAS_TRANSPOSE,
        transpose_b: CBLAS_TRANSPOSE,
        lda: c_int,
        ldb: c_int,
        ldc: c_int,
        k: c_int,
    }

    /// How BLAS says a matrix: transposed or not, and the distance of its rows in storage.
    fn describe<E>(matrix: &Matrix<'_, E>) -> Option<(CBLAS_TRANSPOSE, c_int)> {
        let ([rows, cols], [down, right]) = (matrix.shape, matrix.strides);
        // An axis of extent 1 is never stepped along: its stride may be whatever suits.
        let fits = |leading: isize, least: usize, count: usize| {
            let leading = if count == 1 { isize::try_from(least).ok()? } else { leading };
            let wide_enough = usize::try_from(leading).is_ok_and(|leading| leading >= least.max(1));
            if wide_enough { c_int::try_from(leading).ok() } else { None }
        };
        let plain = (right == 1 || cols == 1).then(|| fits(down, cols, rows)).flatten();
        let transposed = (down == 1 || rows == 1).then(|| fits(right, rows, cols)).flatten();
        match (plain, transposed) {
            (Some(leading), _) => Some((CblasNoTrans, leading)),
            (None, Some(leading)) => Some((CblasTrans, leading)),
            (None, None) => None,
        }
    }

    /// Address of an element, which lies in the matrix's slice.
    fn at<E>(matrix: &Matrix<'_, E>, row: usize, col: usize) -> *const E {
        let [down, right] = matrix.strides;
        let shift = row as isize * down + col as isize * right;
        matrix.data.as_ptr().wrapping_add(matrix.offset).wrapping_offset(shift)
    }

    struct Out<E>(*mut E);
    // SAFETY: parts write distinct tiles of an exclusive borrow, see `gemm`.
    unsafe impl<E: Send> Sync for Out<E> {}
    impl<E> Out<E> {
        fn at(&self, offset: usize) -> *mut E {
            self.0.wrapping_add(offset)
        }
    }

    /// C ← A·B (+ bias, added to every row) for a row-major C without gaps; false if declined, then C
    /// is untouched.
    pub(in crate::backend::cpu) fn gemm<E: Product>(
        a: &Matrix<'_, E>,
        b: &Matrix<'_, E>,
        bias: Option<&[E]>,
        c: &mut [E],
    ) -> bool {
        let ([m, k], [k_b, n]) = (a.shape, b.shape);
        if m == 0 || k == 0 || n == 0 || k != k_b || m.checked_mul(n) != Some(c.len()) {
            return false;
        }
        if a.view().is_err() || b.view().is_err() || c_int::try_from(m).is_err() {
            return false;
        }
        let (Some((transpose_a, lda)), Some((transpose_b, ldb))) = (describe(a), describe(b))
        else {
            return false;
        };
        let (Ok(ldc), Ok(k)) = (c_int::try_from(n), c_int::try_from(k)) else { return false };
        // Below this a call costs more than the product.
        if m.saturating_mul(n).saturating_mul(a.shape[1]) < SMALL {
            return false;
        }
        let call = Call { transpose_a, transpose_b, lda, ldb, ldc, k };
        single_threaded();
        let (rows, cols) = (grid(m, TILE_ROWS), grid(n, TILE_COLS));
        let tiles = rows.len() * cols.len();
        let cost = Cost(COST_PER_TERM.saturating_mul(a.shape[1])).times(m * n / tiles);
        let shared = parallel::parts(tiles, cost) > 1;
        let out = Out(c.as_mut_ptr());
        let tile = |index: usize| {
            let ((row, m), (col, n)) = (rows[index / cols.len()], cols[index % cols.len()]);
            // SAFETY: `view` has shown that every element of A and B lies in their slices, so
            // those of rows row..row + m and columns col..col + n do; `describe` gave leading
            // dimensions that address them; C has m·n elements by the check above, rows of `ldc`;
            // tiles of the grid do not overlap. None of the extents is zero, all fit a `c_int`.
            unsafe {
                let corner = out.at(row * ldc as usize + col);
                call_tile(&call, at(a, row, 0), at(b, 0, col), corner, m, n);
                let Some(bias) = bias else { return };
                for i in 0..m {
                    let row = std::slice::from_raw_parts_mut(corner.add(i * ldc as usize), n);
                    row.iter_mut().zip(&bias[col..]).for_each(|(y, &bias)| *y = *y + bias);
                }
            };
        };
        match shared {
            true => parallel::for_each_index(tiles, tile),
            false => (0..tiles).for_each(tile),
        }
        true
    }

    /// Start and length of the tiles of an extent: as few as can be, as even as can be.
    fn grid(extent: usize, most: usize) -> SmallVec<[(usize, usize); 16]> {
        let tiles = extent.div_ceil(most);
        let start = |i| parallel::even_start(extent, tiles, i);
        (0..tiles).map(|i| (start(i), start(i + 1) - start(i))).collect()
    }

    /// # Safety
    /// The tile's operands and result are valid under the call's dimensions.
    unsafe fn call_tile<E: Element>(
        call: &Call,
        a: *const E,
        b: *const E,
        c: *mut E,
        m: usize,
        n: usize,
    ) {
        let Call { transpose_a, transpose_b, lda, ldb, ldc, k } = *call;
        let layout: CBLAS_LAYOUT = CblasRowMajor;
        let (m, n) = (m as c_int, n as c_int);
        // SAFETY: as the caller promised; `E` is the type of the arm by its tag. C is only written:
        // beta is 0.
        unsafe {
            match E::DTYPE {
                DType::F32 => cblas_sys::cblas_sgemm(
                    layout,
                    transpose_a,
                    transpose_b,
                    m,
                    n,
                    k,
                    1.0,
                    a.cast(),
                    lda,
                    b.cast(),
                    ldb,
                    0.0,
                    c.cast(),
                    ldc,
                ),
                DType::F64 => cblas_sys::cblas_dgemm(
                    layout,
                    transpose_a,
                    transpose_b,
                    m,
                    n,
                    k,
                    1.0,
                    a.cast(),
                    lda,
                    b.cast(),
                    ldb,
                    0.0,
                    c.cast(),
                    ldc,
                ),
                dtype => unreachable!("products are of f32 and f64, not {dtype}"),
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_grid_covers_every_index_once_and_depends_on_the_extent_alone() {
            for extent in [1, 255, 256, 257, 1000, 5000] {
                let tiles = grid(extent, TILE_ROWS);
                let mut next = 0;
                for (start, len) in tiles {
                    assert_eq!(start, next);
                    assert!((1..=TILE_ROWS).contains(&len));
                    next += len;
                }
                assert_eq!(next, extent);
            }
        }

        #[test]
        fn strides_that_blas_lacks_are_declined() {
            let data = [0f32; 64];
            let transposed = |matrix: &Matrix<'_, f32>| {
                describe(matrix).map(|(how, leading)| (matches!(how, CblasTrans), leading))
            };
            let matrix = |shape, strides| Matrix { data: &data, offset: 32, shape, strides };
            assert_eq!(transposed(&matrix([2, 3], [5, 1])), Some((false, 5)));
            assert_eq!(transposed(&matrix([2, 3], [1, 4])), Some((true, 4)));
            assert_eq!(transposed(&matrix([1, 3], [0, 1])), Some((false, 3)));
            for strides in [[2, 2], [-3, 1], [0, 1], [1, 0], [1, 1], [2, 1]] {
                assert_eq!(transposed(&matrix([2, 3], strides)), None, "{strides:?}");
            }
        }

        #[test]
        fn the_library_runs_on_one_thread() {
            let info = info();
            assert_eq!((info.provider, info.threads), ("openblas", 1));
            assert!(info.config.contains("OpenBLAS") && !info.core.is_empty(), "{info}");
        }
    }
}

pub(super) use provider::gemm;
pub(crate) use provider::info;
