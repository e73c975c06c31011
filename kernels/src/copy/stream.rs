//! Non-temporal stores, and the fence after them.
//!
//! A store to memory that no cache holds first fetches the line, only to overwrite it: a copy moves
//! three bytes for two. A non-temporal store writes whole lines without fetching them. It also
//! leaves nothing in the caches, so a result that would have stayed there is slower to write and to
//! read.

use core::mem::size_of;
use core::ptr::copy_nonoverlapping;

use crate::dispatch::{Isa, isa, run};
use crate::output::Output;
use crate::simd::{Float, Lanes, Simd, Task};

/// Results of at least this many bytes are written by non-temporal stores.
///
/// Measured by copying three arrays in turn, each into the next, which favours a cache that holds a
/// result. Bandwidth of non-temporal over ordinary stores, on one core and on two that share 32 MiB
/// of last-level cache:
///
/// | MiB | 2 | 4 | 8 | 12 | 16 | 32 | 64 |
/// |---|---|---|---|---|---|---|---|
/// | one | 0.51 | 0.63 | 1.18 | 1.39 | 1.48 | 1.27 | 1.48 |
/// | two | 0.35 | 0.36 | 0.69 | 1.10 | 1.18 | 1.27 | 1.27 |
pub(crate) const STREAM_BYTES: usize = 16 << 20;

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// Makes non-temporal stores visible to other threads when dropped.
///
/// x86 orders ordinary stores, so a flag or a lock that publishes a result does not wait for the
/// write-combining buffers: without the fence another thread could see the flag and old memory. A
/// thread sees its own stores in order.
pub(crate) struct Fence;

impl Drop for Fence {
    fn drop(&mut self) {
        struct Now;
        impl Task for Now {
            type Home = Self;
            type Output = ();
            #[inline(always)]
            fn run<S: Simd>(self, simd: S) {
                simd.fence();
            }
        }
        run(Now);
    }
}

/// True if the instruction set has non-temporal vector stores.
pub(crate) fn has_streaming_stores() -> bool {
    matches!(isa(), Isa::Avx2 | Isa::Avx512)
}

/// True if a result of `whole` elements is written by non-temporal stores.
#[inline(always)]
pub(crate) fn is_streamed<E>(whole: usize) -> bool {
    whole >= STREAM_BYTES / size_of::<E>().max(1)
}

/// Returns true if the output is to be written by non-temporal stores, and the fence if it has none
/// of its own.
#[inline(always)]
pub(crate) fn streaming<E>(out: &mut (impl Output<E> + ?Sized)) -> (bool, Option<Fence>) {
    let large = is_streamed::<E>(out.as_raw().1);
    // No `then_some`: it would make and drop a fence for every small result.
    let fence = if large && !out.streams() { Some(Fence) } else { None };
    (large || out.streams(), fence)
}

/// Copies elements by non-temporal stores.
///
/// # Safety
/// `src` is valid for reads and `dst` for writes of `len` elements, and they do not overlap.
pub(crate) unsafe fn stream<T: Copy>(src: *const T, dst: *mut T, len: usize) {
    run(Stream { src: src.cast(), dst: dst.cast(), bytes: len * size_of::<T>(), step: LINE });
}

/// Writes `x` to every element by non-temporal stores.
///
/// # Safety
/// `dst` is valid for writes of `len` elements.
pub(crate) unsafe fn stream_fill<T: Copy>(dst: *mut T, len: usize, x: T) {
    const { assert!(LINE.is_multiple_of(size_of::<T>())) };
    let line = [x; LINE];
    let aligned = dst.align_offset(LINE).min(len);
    // SAFETY: `aligned <= len`; with a `step` of 0 the rest is copied from one line again and
    // again.
    unsafe {
        for i in 0..aligned {
            dst.add(i).write(x);
        }
        let bytes = (len - aligned) * size_of::<T>();
        run(Stream { src: line.as_ptr().cast(), dst: dst.add(aligned).cast(), bytes, step: 0 });
    }
}

/// Copies bytes by lines of the result, which are read `step` bytes apart.
struct Stream {
    src: *const u8,
    dst: *mut u8,
    bytes: usize,
    step: usize,
}

impl Task for Stream {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        // SAFETY: `stream` and `stream_fill`, which make this task, promise the memory.
        unsafe { stream_lines::<f32, S>(simd, self.src, self.dst, self.bytes, self.step) }
    }
}

/// # Safety
/// `dst` is valid for writes of `bytes` bytes, and `src` for reads of as many, or of one line if
/// `step` is 0 and `dst` starts on a line. They do not overlap.
#[inline(always)]
pub(crate) unsafe fn stream_lines<E: Float, S: Lanes<E>>(
    simd: S,
    src: *const u8,
    dst: *mut u8,
    bytes: usize,
    step: usize,
) {
    // Other instruction sets have no such stores, and a scalar load needs aligned floats.
    let has_them = matches!(S::ISA, Isa::Avx2 | Isa::Avx512);
    if !has_them && step == LINE {
        // SAFETY: the caller promises the bytes.
        return unsafe { copy_nonoverlapping(src, dst, bytes) };
    }
    let vector = S::LANES * size_of::<E>();
    let head = dst.align_offset(LINE).min(bytes);
    let lines = (bytes - head) / LINE;
    let tail = bytes - head - lines * LINE;
    // SAFETY: head, lines and tail are inside of `bytes`; the lines of `dst` are aligned.
    unsafe {
        // A call for no bytes takes as long as two lines.
        if head > 0 {
            copy_nonoverlapping(src, dst, head);
        }
        let (src, dst) = (src.add(head), dst.add(head));
        for line in 0..lines {
            let (from, to) = (src.add(line * step), dst.add(line * LINE));
            if !has_them {
                copy_nonoverlapping(from, to, LINE);
                continue;
            }
            for part in (0..LINE).step_by(vector) {
                let x = simd.load(from.add(part).cast());
                simd.store_streaming(to.add(part).cast(), x);
            }
        }
        if tail > 0 {
            copy_nonoverlapping(src.add(lines * step), dst.add(lines * LINE), tail);
        }
    }
}

/// Writes `y[i] = f([x[0][i], …])`, by non-temporal stores where aligned; `f` is an
/// `#[inline(always)]` closure.
///
/// # Panics
/// If the lengths differ.
#[cfg(feature = "peak")]
#[inline(always)]
pub(crate) fn map_streaming<E: Float, S: Lanes<E>, const N: usize>(
    simd: S,
    x: [&[E]; N],
    y: &mut [E],
    f: impl Fn([S::V; N]) -> S::V,
) {
    assert!(x.iter().all(|x| x.len() == y.len()), "inputs and output differ in length");
    let (len, head) = (y.len(), y.as_ptr().align_offset(LINE).min(y.len()));
    let mut i = 0;
    while i < len {
        let left = if i < head { head } else { len } - i;
        let mut v = [simd.splat(E::ZERO); N];
        // SAFETY: `left` elements are left of every slice; from `head` on `y` is aligned to a line,
        // and the vectors after it are whole.
        unsafe {
            for (v, x) in v.iter_mut().zip(x) {
                *v = simd.load_up_to(x.as_ptr().add(i), left);
            }
            let (y, v) = (y.as_mut_ptr().add(i), f(v));
            if i >= head && left >= S::LANES {
                simd.store_streaming(y, v);
            } else {
                simd.store_up_to(y, left, v);
            }
        }
        i += left.min(S::LANES);
    }
    simd.fence();
}
