//! No access outside of the operands: each lies against a page that may not be touched.
#![cfg(all(target_os = "linux", not(miri)))]

use std::ffi::{c_int, c_long, c_void};

use swath_kernels::dispatch::with_isa;
use swath_kernels::{Float, Gemm, Isa, MatMut, MatRef, PackedB, Workspace, gemm};

unsafe extern "C" {
    fn mmap(
        at: *mut c_void,
        len: usize,
        protection: c_int,
        flags: c_int,
        file: c_int,
        offset: c_long,
    ) -> *mut c_void;
    fn mprotect(at: *mut c_void, len: usize, protection: c_int) -> c_int;
    fn munmap(at: *mut c_void, len: usize) -> c_int;
}

const READ_WRITE: c_int = 3;
const PRIVATE_ANONYMOUS: c_int = 0x22;

/// A multiple of every page size in use.
const PAGE: usize = 65536;

/// Which end of the elements touches the forbidden page.
#[derive(Clone, Copy, Debug)]
enum Against {
    Start,
    End,
}

/// `len` elements with a forbidden page before and behind the pages they lie in.
struct Guarded<E> {
    base: *mut c_void,
    bytes: usize,
    first: *mut E,
    len: usize,
}

impl<E: Float> Guarded<E> {
    fn new(len: usize, against: Against) -> Self {
        let inside = (len * size_of::<E>()).next_multiple_of(PAGE);
        let bytes = inside + 2 * PAGE;
        // SAFETY: a fresh private mapping; both protected ranges are inside of it; the elements
        // start at the first or end with the last byte between them.
        unsafe {
            let base = mmap(std::ptr::null_mut(), bytes, READ_WRITE, PRIVATE_ANONYMOUS, -1, 0);
            assert!(base as isize != -1);
            assert_eq!(mprotect(base, PAGE, 0), 0);
            assert_eq!(mprotect(base.byte_add(PAGE + inside), PAGE, 0), 0);
            let first = match against {
                Against::Start => base.byte_add(PAGE),
                Against::End => base.byte_add(PAGE + inside - len * size_of::<E>()),
            };
            Guarded { base, bytes, first: first.cast(), len }
        }
    }

    fn elements(&mut self) -> &mut [E] {
        // SAFETY: `len` zeroed elements that only this value reaches.
        unsafe { std::slice::from_raw_parts_mut(self.first, self.len) }
    }
}

impl<E> Drop for Guarded<E> {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`.
        unsafe { munmap(self.base, self.bytes) };
    }
}

fn check<E: Float>([m, k, n]: [usize; 3], [a_t, b_t, c_t]: [bool; 3], beta: f64) {
    let strides = |[rows, cols]: [usize; 2], transposed| {
        if transposed { [1, rows as isize] } else { [cols as isize, 1] }
    };
    for against in [Against::Start, Against::End] {
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
            let [mut a, mut b, mut c] =
                [m * k, k * n, m * n].map(|len| Guarded::<E>::new(len, against));
            a.elements().fill(E::ONE);
            b.elements().fill(E::ONE);
            let product = Gemm {
                a: MatRef::new(a.elements(), 0, [m, k], strides([m, k], a_t)).unwrap(),
                b: MatRef::new(b.elements(), 0, [k, n], strides([k, n], b_t)).unwrap(),
                alpha: E::ONE,
                beta: E::from_f64(beta),
            };
            let out = MatMut::new(c.elements(), 0, [m, n], strides([m, n], c_t)).unwrap();
            with_isa(isa, || gemm(product, out, &mut Workspace::new()).unwrap()).unwrap();
            let k = E::from_f64(k as f64);
            assert!(c.elements().iter().all(|&x| x == k), "{isa}, {against:?}");
        }
    }
}

#[test]
fn nothing_outside_of_the_operands_is_touched() {
    let flags = [false, true];
    for m in [1, 2, 6, 7, 13, 20] {
        for n in [1, 3, 8, 17, 33, 64, 71] {
            for k in [1, 6, 17, 300] {
                for a in flags {
                    for b in flags {
                        check::<f32>([m, k, n], [a, b, false], 0.0);
                        check::<f64>([m, k, n], [a, b, true], 1.0);
                    }
                }
            }
        }
    }
    for b in flags {
        check::<f32>([20, 300, 1100], [true, b, false], 1.0);
    }
}

/// A view whose stride is 0 may have more elements than memory: packing it must not wrap.
#[test]
#[should_panic(expected = "capacity overflow")]
fn packing_more_than_memory_is_refused() {
    let x = [1.0f32];
    let b = MatRef::new(&x, 0, [1 << 31, 1 << 31], [0, 0]).unwrap();
    PackedB::pack(b, &mut Workspace::new());
}
