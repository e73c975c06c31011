//! No access outside of the operands: each lies against a page that may not be touched.
#![cfg(all(target_os = "linux", not(miri)))]

mod guarded;

use guarded::{Against, Guarded};
use swath_kernels::dispatch::with_isa;
use swath_kernels::{Float, Gemm, Isa, MatMut, MatRef, PackedB, Workspace, gemm};

fn check<E: Float>([m, k, n]: [usize; 3], [a_t, b_t, c_t]: [bool; 3], beta: f64) {
    let strides = |[rows, cols]: [usize; 2], transposed| {
        if transposed { [1, rows as isize] } else { [cols as isize, 1] }
    };
    for against in Against::BOTH {
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
