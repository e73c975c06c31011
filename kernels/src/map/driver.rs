//! Splits the rows that a kernel runs on. Everything here is decided once per call, not once per
//! vector, and is compiled without an instruction set.
//!
//! | case | what is done |
//! |---|---|
//! | the only argument is a single value | one element is computed, then copied |
//! | a result too large for the caches | chunks computed in L1, written by non-temporal stores |
//! | a long row, all addresses equally misaligned | the first, unaligned elements run alone |
//! | short rows with gaps between them | a later row is prefetched |
//! | 16-bit floats | chunks are widened, computed in `f32` and rounded |

use core::mem::MaybeUninit;
use core::slice::{from_raw_parts, from_raw_parts_mut};

use half::{bf16, f16};

use super::block::{LONGEST_AHEAD, ROWS_AHEAD, prefetch_row};
use super::{Input, Kernel, MAX_RUN, Row, Rows, RunRow};
use crate::convert::convert;
use crate::copy::{LINE, has_streaming_stores, stream};
use crate::dispatch::isa;
use crate::simd::{Float, Isa, MAX_LANES};

/// Element types of element-wise functions: `f32` and `f64`, and `f16` and `bf16`, which are
/// computed in `f32`. Sealed.
pub trait Stored: Copy + Send + Sync + 'static + sealed::Sealed {
    /// Runs a kernel on rows.
    ///
    /// # Safety
    /// See `drive`.
    #[doc(hidden)]
    unsafe fn run<const N: usize>(kernel: &Kernel<N>, rows: &sealed::Rows<'_, Self, N>);
    /// True if kernels are compiled for the type itself.
    #[doc(hidden)]
    const IS_FLOAT: bool;
}

mod sealed {
    /// Rows that other crates can neither make nor inspect.
    pub struct Rows<'a, T, const N: usize>(pub(super) &'a super::Rows<T, N>);
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
    impl Sealed for half::f16 {}
    impl Sealed for half::bf16 {}
}

macro_rules! floats {
    ($($t:ident)*) => {$(
        impl Stored for $t {
            const IS_FLOAT: bool = true;
            unsafe fn run<const N: usize>(kernel: &Kernel<N>, rows: &sealed::Rows<'_, $t, N>) {
                // SAFETY: the caller promises what `drive` requires; `isa` is a level of this
                // machine.
                unsafe { run_rows(kernel.$t[isa() as usize], rows.0) }
            }
        }
    )*};
}
floats!(f32 f64);

macro_rules! halves {
    ($($t:ident)*) => {$(
        impl Stored for $t {
            const IS_FLOAT: bool = false;
            unsafe fn run<const N: usize>(kernel: &Kernel<N>, rows: &sealed::Rows<'_, $t, N>) {
                // SAFETY: the caller promises what `drive` requires.
                unsafe { run_in_f32(kernel, rows.0, convert::<$t, f32>, convert::<f32, $t>) }
            }
        }
    )*};
}
halves!(f16 bf16);

/// Elements per chunk that is widened into a buffer: four buffers of `f32` fit the L1 cache.
const CHUNK: usize = 1024;

/// Elements per chunk written by non-temporal stores: few enough that the processor computes the
/// next chunk meanwhile. `a + b` of 4 Mi `f32` takes 1.02 times as long as a loop that
/// stores directly, with 1024 elements 1.08.
pub(super) const STREAMED: usize = 256;

/// Minimum length of a row that is split so that vectors are aligned. The system's allocator places
/// large vectors 16 bytes off, so that 64-byte accesses touch two cache lines: with the split, add
/// and neg of 1024 to 2048 elements take 0.67 to 0.77 of the time, of 512 elements up to 1.13 (Zen
/// 4, AVX-512).
pub const ALIGNED_FROM: usize = 1024;

/// Rows whose values are spread together: a vector load right after the narrow stores would wait
/// for all of them.
const ROWS_SPREAD: usize = 4;

impl<E: Copy, const N: usize> Rows<E, N> {
    /// The arguments that need prefetching, if any: those with gaps between short rows. The
    /// hardware prefetches along a row only.
    #[inline]
    fn have_gaps(&self) -> Option<[bool; N]> {
        if self.rows <= ROWS_AHEAD || self.len > LONGEST_AHEAD / size_of::<E>() {
            return None;
        }
        let follows = |x: &Input<E>| x.stride == 0 || x.stride == self.len as isize;
        let have_gaps = self.inputs.each_ref().map(|x| !x.is_value && !follows(x));
        have_gaps.contains(&true).then_some(have_gaps)
    }

    /// Prefetches row `r` of the arguments that have gaps.
    #[inline]
    fn prefetch(&self, r: usize, have_gaps: [bool; N]) {
        if r < self.rows {
            for (x, _) in self.inputs.iter().zip(have_gaps).filter(|x| x.1) {
                prefetch_row(x.first.wrapping_offset(r as isize * x.stride), self.len);
            }
        }
    }

    /// The part of `rows` rows of `len` elements that begins at a row and a column.
    #[inline]
    fn part(&self, row: usize, column: usize, rows: usize, len: usize) -> Self {
        let inputs = self.inputs.map(|Input { first, stride, is_value }| {
            let first = first.wrapping_offset(row as isize * stride);
            Input {
                first: if is_value { first } else { first.wrapping_add(column) },
                stride,
                is_value,
            }
        });
        let y = self.y.wrapping_add(row * self.y_stride + column);
        Rows { inputs, y, y_stride: self.y_stride, rows, len }
    }
}

/// Runs a kernel on rows, with non-temporal stores if `streams`.
///
/// # Safety
/// Every argument is valid for reads of its rows, and `y` for writes of its rows. Each argument is
/// `y` itself, row by row, or does not overlap it.
#[inline]
pub(super) unsafe fn drive<T: Stored, const N: usize>(
    kernel: &Kernel<N>,
    rows: Rows<T, N>,
    streams: bool,
) {
    let Rows { ref inputs, y, rows: count, len, .. } = rows;
    let is_single_value = N == 1 && inputs[0].is_value;
    let is_long_row = count == 1 && len >= ALIGNED_FROM;
    // SAFETY: the caller promises this for the rows, and so for parts of them.
    unsafe {
        if is_single_value {
            spread_value(kernel, &rows);
        } else if streams && T::IS_FLOAT && has_streaming_stores() {
            write_streaming(kernel, &rows);
        } else if is_long_row && T::IS_FLOAT && isa() != Isa::Scalar {
            let head = y.align_offset(LINE);
            let lie_alike =
                |x: &Input<T>| x.is_value || (x.first.addr() ^ y.addr()).is_multiple_of(LINE);
            let cut = if head < len && inputs.iter().all(lie_alike) { head } else { 0 };
            if cut > 0 {
                T::run(kernel, &sealed::Rows(&rows.part(0, 0, 1, cut)));
            }
            T::run(kernel, &sealed::Rows(&rows.part(0, cut, 1, len - cut)));
        } else {
            T::run(kernel, &sealed::Rows(&rows));
        }
    }
}

/// Runs a kernel row by row.
///
/// # Safety
/// See [`drive`]; the kernel's level is available.
#[inline]
unsafe fn run_rows<E: Float, const N: usize>(run: RunRow<E, N>, rows: &Rows<E, N>) {
    let Rows { ref inputs, y, y_stride, rows: count, len } = *rows;
    let x = inputs.each_ref().map(|x| (x.first, usize::MAX));
    let mut row = Row { x, y, len };
    let mut values = [const { MaybeUninit::<Values<E>>::uninit() }; N];
    // `drive` computes the single value of a one-argument function only once.
    let has_values = N > 1 && inputs.iter().any(|x| x.is_value);
    let have_gaps = rows.have_gaps();
    let mut r = 0;
    while r < count {
        if has_values {
            // SAFETY: the caller's promise; row `r` exists.
            unsafe { rows.spread_values(r, &mut values, &mut row) };
        }
        if let Some(have_gaps) = have_gaps {
            rows.prefetch(r + ROWS_AHEAD, have_gaps);
        }
        // SAFETY: the caller's promise; buffers of values hold as much as a run reads.
        unsafe { run(&row) };
        r += 1;
        for k in 0..N {
            row.x[k].0 = row.x[k].0.wrapping_offset(inputs[k].stride);
        }
        row.y = row.y.wrapping_add(y_stride);
    }
}

/// Buffers for one argument's values, one per row; a run reads its buffer again and again.
#[repr(align(64))]
struct Values<E>([[E; MAX_RUN]; ROWS_SPREAD]);

impl<E: Float, const N: usize> Rows<E, N> {
    /// Points the arguments that are values to the buffers for row `r`. The buffers are filled at
    /// the first of every [`ROWS_SPREAD`] rows.
    ///
    /// # Safety
    /// See [`drive`]; row `r` exists.
    #[inline(never)]
    unsafe fn spread_values(
        &self,
        r: usize,
        values: &mut [MaybeUninit<Values<E>>; N],
        row: &mut Row<E, N>,
    ) {
        // A run reads no further than the last vector of a short row.
        let spread = self.len.next_multiple_of(MAX_LANES).min(MAX_RUN);
        for k in 0..N {
            let Input { first, stride, is_value: true } = self.inputs[k] else { continue };
            let buffers = values[k].as_mut_ptr().cast::<E>();
            let end = match r % ROWS_SPREAD {
                0 => (r + ROWS_SPREAD).min(self.rows),
                _ => r,
            };
            // SAFETY: the rows exist; the buffers are contiguous, and `spread` is at most the
            // length of one.
            unsafe {
                for r in r..end {
                    let value = first.wrapping_offset(r as isize * stride).read();
                    let buffer = buffers.add(r % ROWS_SPREAD * MAX_RUN);
                    (0..spread).for_each(|i| buffer.add(i).write(value));
                }
                row.x[k] = (buffers.add(r % ROWS_SPREAD * MAX_RUN).cast_const(), 0);
            }
        }
    }
}

/// Computes each row's value once, all of them as one column, and copies it along its row.
///
/// # Safety
/// See [`drive`].
#[inline(never)]
unsafe fn spread_value<T: Stored, const N: usize>(kernel: &Kernel<N>, rows: &Rows<T, N>) {
    if rows.len == 0 {
        return;
    }
    let mut column = rows.part(0, 0, rows.rows, 1);
    column.inputs.iter_mut().for_each(|x| x.is_value = false);
    // SAFETY: the caller's promise; the first element of a row is written before it is read.
    unsafe {
        T::run(kernel, &sealed::Rows(&column));
        for r in 0..rows.rows {
            let first = rows.y.wrapping_add(r * rows.y_stride);
            let value = first.read();
            from_raw_parts_mut(first, rows.len).fill(value);
        }
    }
}

/// Computes chunks in a buffer and copies them to the result by non-temporal stores.
///
/// # Safety
/// See [`drive`].
#[inline(never)]
unsafe fn write_streaming<T: Stored, const N: usize>(kernel: &Kernel<N>, rows: &Rows<T, N>) {
    #[repr(align(64))]
    struct Buffer<T>([MaybeUninit<T>; STREAMED]);
    let mut buffer: Buffer<T> = Buffer([const { MaybeUninit::uninit() }; STREAMED]);
    let have_gaps = rows.have_gaps();
    for r in 0..rows.rows {
        if let Some(have_gaps) = have_gaps {
            rows.prefetch(r + ROWS_AHEAD, have_gaps);
        }
        let mut at = 0;
        while at < rows.len {
            let mut chunk = rows.part(r, at, 1, 0);
            let y = chunk.y;
            // The first chunk ends at the end of a cache line.
            chunk.len = (rows.len - at).min(STREAMED - y.addr() % LINE / size_of::<T>());
            chunk.y = buffer.0.as_mut_ptr().cast();
            // SAFETY: the caller's promise; a chunk fits the buffer, and the kernel writes all of
            // it.
            unsafe {
                T::run(kernel, &sealed::Rows(&chunk));
                stream(chunk.y.cast_const(), y, chunk.len);
            }
            at += chunk.len;
        }
    }
}

/// Runs a kernel in `f32`, chunk by chunk.
///
/// # Safety
/// See [`drive`].
unsafe fn run_in_f32<T: Copy, const N: usize>(
    kernel: &Kernel<N>,
    rows: &Rows<T, N>,
    widen: fn(&[T], &mut [f32]),
    narrow: fn(&[f32], &mut [T]),
) {
    let mut wide = [[0f32; CHUNK]; N];
    // All accesses to the buffers go through this pointer.
    let buffers = wide.as_mut_ptr().cast::<f32>();
    let buffer = |k: usize| buffers.wrapping_add(k * CHUNK);
    let have_gaps = rows.have_gaps();
    for r in 0..rows.rows {
        if let Some(have_gaps) = have_gaps {
            rows.prefetch(r + ROWS_AHEAD, have_gaps);
        }
        for at in (0..rows.len).step_by(CHUNK) {
            let chunk = rows.part(r, at, 1, CHUNK.min(rows.len - at));
            let mut inputs = [Input { first: core::ptr::null(), stride: 0, is_value: false }; N];
            let len = |k: usize| if chunk.inputs[k].is_value { 1 } else { chunk.len };
            for k in 0..N {
                // SAFETY: the caller's promise; the buffer holds a chunk.
                unsafe {
                    let x = from_raw_parts(chunk.inputs[k].first, len(k));
                    widen(x, from_raw_parts_mut(buffer(k), len(k)));
                }
                let is_value = chunk.inputs[k].is_value;
                inputs[k] = Input { first: buffer(k).cast_const(), stride: 0, is_value };
            }
            // The first argument's buffer is also the result's. If that argument is a value,
            // `run_rows` copies it to another buffer first.
            let in_f32 = Rows { inputs, y: buffers, y_stride: 0, rows: 1, len: chunk.len };
            // SAFETY: the buffers hold a chunk, and the caller promises that `y` does.
            unsafe {
                run_rows(kernel.f32[isa() as usize], &in_f32);
                narrow(from_raw_parts(buffers, chunk.len), from_raw_parts_mut(chunk.y, chunk.len));
            }
        }
    }
}
