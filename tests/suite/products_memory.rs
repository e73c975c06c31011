//! Products allocate their results and little more: operands are read in place, and temporary copies are made
//! only of operands whose axes are not stored in the order of the sum. This is measured without recycling, so
//! that every buffer is an allocation. With recycling, repeated products allocate nothing.

use swath::ops::Activation;
use swath::prelude::*;
use swath::{ConvOptions, Padding};

use crate::support::{alone, alone_with, counting};

type T = Tensor<CpuBackend>;

/// Handles, recorded operations, and the packed parts of operands. Any operand that could be copied has at
/// least one MiB.
const SLACK: usize = 384 << 10;

const UNPOOLED: &[(&str, &str)] = &[("SWATH_POOL_BYTES", "0")];

fn randn(shape: &[usize]) -> T {
    T::randn(shape, &mut Rng::seed(7)).unwrap()
}

/// A tensor of this shape whose axes are stored in reverse order.
fn permuted(shape: &[usize]) -> T {
    let axes: Vec<usize> = (0..shape.len()).rev().collect();
    let permuted: Vec<usize> = shape.iter().rev().copied().collect();
    randn(&permuted).permute(&axes).unwrap()
}

/// A window into a tensor that has one more element along every axis.
fn window(shape: &[usize]) -> T {
    let wider: Vec<usize> = shape.iter().map(|dim| dim + 1).collect();
    let narrow = |x: T, axis: usize| x.narrow(axis, 1, shape[axis]).unwrap();
    (0..shape.len()).fold(randn(&wider), narrow)
}

fn bytes(x: &T) -> usize {
    x.numel() * size_of::<f32>()
}

/// Checks the peak memory of `f` beyond its results, in its second run: the first one allocates workspaces
/// that are kept.
#[track_caller]
fn check<const N: usize>(name: &str, most: usize, f: impl Fn() -> [T; N]) {
    drop(f());
    let (results, peak) = counting::peak_of(f);
    let size: usize = results.iter().map(bytes).sum();
    println!("{name}: {peak} bytes for results of {size}");
    assert!(peak <= size + most + SLACK, "{name}: {peak} bytes for results of {size}");
}

#[test]
fn einsum_copies_no_operand() {
    alone_with("products_memory::einsum_copies_no_operand", UNPOOLED, || {
        swath::runtime::set_threads(1).unwrap();
        let (matrix, long): (&[usize], &[usize]) = (&[512, 640], &[640, 512]);
        let cases: [(&str, [&[usize]; 2]); 20] = [
            ("ij,jk->ik", [matrix, long]),
            ("ij,jk->ki", [matrix, long]),
            ("ji,jk->ik", [matrix, matrix]),
            ("ij,kj->ik", [matrix, matrix]),
            ("ji,kj->ki", [long, matrix]),
            ("ij,ij->i", [matrix, matrix]),
            ("ij,ij->j", [matrix, matrix]),
            ("ij,ij->ij", [matrix, matrix]),
            ("ij,j->i", [matrix, &[640]]),
            ("ij,i->j", [matrix, &[512]]),
            ("i,j->ij", [&[512], &[640]]),
            ("bik,bkj->bij", [&[4, 256, 320], &[4, 320, 256]]),
            ("bik,bjk->bij", [&[4, 256, 320], &[4, 256, 320]]),
            ("bhqd,bhkd->bhqk", [&[2, 8, 256, 64], &[2, 8, 320, 64]]),
            ("bhqk,bhkd->bhqd", [&[2, 8, 256, 64], &[2, 8, 64, 320]]),
            ("bqhd,bkhd->bhqk", [&[2, 256, 8, 64], &[2, 320, 8, 64]]),
            ("bij,kj->bik", [&[4, 256, 320], &[1024, 320]]),
            ("bij,jk->bik", [&[4, 256, 320], &[320, 1024]]),
            ("bhwc,dc->bdhw", [&[4, 16, 16, 320], &[1024, 320]]),
            ("...i,...i->...", [&[4, 256, 320], &[4, 256, 320]]),
        ];
        for (equation, shapes) in cases {
            for lay in [randn, permuted] {
                let [a, b] = shapes.map(lay);
                check(equation, 0, || [T::einsum(equation, &[&a, &b]).unwrap()]);
            }
        }
        // The sum is over both axes in the order of the letters; operands stored in another order are copied.
        let size = 512 * 640 * size_of::<f32>();
        for (equation, a, b, copies) in [
            ("ij,ij->", randn(matrix), randn(matrix), 0),
            ("ij,ij->", permuted(matrix), permuted(matrix), 2),
            ("ij,ji->", randn(matrix), permuted(long), 0),
            ("ij,ji->", randn(matrix), randn(long), 1),
        ] {
            check(equation, copies * size, || [T::einsum(equation, &[&a, &b]).unwrap()]);
        }
        for equation in ["ij,jk->ik", "bik,bkj->bij", "bij,jk->bik"] {
            let (a, b) = match equation.len() {
                9 => (window(matrix), window(long)),
                _ if equation.contains("bkj") => (window(&[4, 256, 320]), window(&[4, 320, 256])),
                _ => (window(&[4, 256, 320]), window(&[320, 1024])),
            };
            check(equation, 0, || [T::einsum(equation, &[&a, &b]).unwrap()]);
        }
        let square = randn(&[1024, 1024]);
        check("ii->i", 0, || [T::einsum("ii->i", &[&square]).unwrap()]);
        check("ij->ji", 0, || [T::einsum("ij->ji", &[&square]).unwrap().t().unwrap()]);
    });
}

/// Gradients of both factors from that of the product.
fn gradients(a: &T, b: &T, g: &T, f: impl Fn(&T, &T) -> Result<T>) -> [T; 2] {
    let (a, b) = (a.requires_grad(), b.requires_grad());
    let y = f(&a, &b).unwrap();
    assert_eq!(y.dims(), g.dims());
    let mut grads = y.backward_with(g).unwrap();
    [&a, &b].map(|x| grads.remove(x).unwrap())
}

/// Gradient of one factor. A copy of it would be as large as the other gradient, which would hide it in
/// [`gradients`].
fn gradient_of_one(which: usize, a: &T, b: &T, g: &T) -> [T; 1] {
    let mut factors = [a.clone(), b.clone()];
    factors[which] = factors[which].requires_grad();
    let y = factors[0].matmul(&factors[1]).unwrap();
    [y.backward_with(g).unwrap().remove(&factors[which]).unwrap()]
}

#[test]
fn gradients_of_products_take_their_own_memory() {
    alone_with("products_memory::gradients_of_products_take_their_own_memory", UNPOOLED, || {
        swath::runtime::set_threads(1).unwrap();
        let cases: [(&str, [&[usize]; 3]); 9] = [
            ("plain", [&[512, 640], &[640, 512], &[512, 512]]),
            ("batch", [&[4, 256, 320], &[4, 320, 256], &[4, 256, 256]]),
            ("one right side", [&[4, 256, 320], &[320, 1024], &[4, 256, 1024]]),
            ("one right side, rank 3", [&[4, 256, 320], &[1, 320, 1024], &[4, 256, 1024]]),
            ("one right side, rank 4", [&[2, 4, 128, 320], &[320, 1024], &[2, 4, 128, 1024]]),
            ("a batch of one", [&[1, 512, 640], &[640, 512], &[1, 512, 512]]),
            ("matrix and vector", [&[512, 640], &[640], &[512]]),
            ("vector and matrix", [&[640], &[640, 512], &[512]]),
            ("stack and vector", [&[4, 256, 320], &[320], &[4, 256]]),
        ];
        for (name, shapes) in cases {
            let [a, b, g] = shapes.map(randn);
            let y = bytes(&g);
            check(name, y, || gradients(&a, &b, &g, |a, b| a.matmul(b)));
            for which in [0, 1] {
                check(&format!("{name}: {which}"), y, || gradient_of_one(which, &a, &b, &g));
            }
        }
        // A scalar upstream gradient, broadcast by strides of 0.
        let (a, b) = (randn(&[4, 256, 320]), randn(&[320, 1024]));
        let g = T::ones((), DType::F32).unwrap().broadcast_to((4, 256, 1024)).unwrap();
        check("scalar upstream", bytes(&g), || gradients(&a, &b, &g, |a, b| a.matmul(b)));
        // Leading axes stored in another order: both operands are copied.
        let permuted = |cols| randn(&[256, 4, cols]).permute(&[1, 0, 2]).unwrap();
        let (a, g) = (permuted(320), permuted(1024));
        let copies = bytes(&a) + bytes(&g);
        check("permuted", bytes(&g) + copies, || gradients(&a, &b, &g, |a, b| a.matmul(b)));
        // One left side, with right sides and upstream gradients stored side by side.
        let side_by_side = |rows, cols| randn(&[rows, 4, cols]).permute(&[1, 0, 2]).unwrap();
        let (a, b, g) = (randn(&[1024, 320]), side_by_side(320, 256), side_by_side(1024, 256));
        check("one left side", bytes(&g), || gradients(&a, &b, &g, |a, b| a.matmul(b)));
        // Stored one after the other, both are copied; the products are not stored separately.
        let (a, b, g) = (randn(&[1024, 320]), randn(&[4, 320, 256]), randn(&[4, 1024, 256]));
        let copies = bytes(&b) + bytes(&g);
        check("copied side by side", bytes(&g) + copies, || {
            gradients(&a, &b, &g, |a, b| a.matmul(b))
        });
        // One right side for each pair of products.
        let (a, b, g) =
            (randn(&[4, 2, 128, 320]), randn(&[4, 1, 320, 256]), randn(&[4, 2, 128, 256]));
        check("one right side per pair", bytes(&g), || gradients(&a, &b, &g, |a, b| a.matmul(b)));
        for (equation, shapes) in [
            ("bhqd,bhkd->bhqk", [&[2, 8, 256, 64][..], &[2, 8, 320, 64], &[2, 8, 256, 320]]),
            ("bqhd,bkhd->bhqk", [&[2, 256, 8, 64], &[2, 320, 8, 64], &[2, 8, 256, 320]]),
            ("bij,kj->bik", [&[4, 256, 320], &[1024, 320], &[4, 256, 1024]]),
            ("ij,ij->i", [&[512, 640], &[512, 640], &[512]]),
            ("i,j->ij", [&[1024], &[640], &[1024, 640]]),
        ] {
            let [a, b, g] = shapes.map(randn);
            let y = bytes(&g);
            check(equation, y, || gradients(&a, &b, &g, |a, b| T::einsum(equation, &[a, b])));
        }
    });
}

#[test]
fn linear_takes_the_memory_of_its_results() {
    alone_with("products_memory::linear_takes_the_memory_of_its_results", UNPOOLED, || {
        swath::runtime::set_threads(1).unwrap();
        for lead in [&[1024][..], &[4, 256], &[2, 2, 256]] {
            let shape = |last| [lead, &[last]].concat();
            let (x, g) = (randn(&shape(320)), randn(&shape(512)));
            let (w, b) = (randn(&[512, 320]), randn(&[512]));
            check("forwards", 0, || [x.linear(&w, Some(&b)).unwrap()]);
            let (x, w, b) = (x.requires_grad(), w.requires_grad(), b.requires_grad());
            check("both ways", 0, || {
                let y = x.linear(&w, Some(&b)).unwrap();
                let mut grads = y.backward_with(&g).unwrap();
                let [dx, dw, db] = [&x, &w, &b].map(|x| grads.remove(x).unwrap());
                [y, dx, dw, db]
            });
            // A scalar upstream gradient, broadcast by strides of 0.
            let all = T::ones((), DType::F32).unwrap().broadcast_to(shape(512)).unwrap();
            check("scalar upstream", 0, || {
                let y = x.linear(&w, Some(&b)).unwrap();
                let mut grads = y.backward_with(&all).unwrap();
                let [dx, dw, db] = [&x, &w, &b].map(|x| grads.remove(x).unwrap());
                [y, dx, dw, db]
            });
        }
    });
}

#[test]
fn linear_activation_takes_the_memory_of_its_results() {
    let name = "products_memory::linear_activation_takes_the_memory_of_its_results";
    alone_with(name, UNPOOLED, || {
        swath::runtime::set_threads(1).unwrap();
        let (x, g) = (randn(&[4, 256, 320]), randn(&[4, 256, 512]));
        let (w, b) = (randn(&[512, 320]), randn(&[512]));
        let (x_tracked, w_tracked, b_tracked) =
            (x.requires_grad(), w.requires_grad(), b.requires_grad());
        for activation in Activation::ALL.into_iter().filter(|f| f.op().is_some()) {
            let name = format!("{activation:?}");
            check(&name, 0, || [x.linear_activation(&w, Some(&b), activation).unwrap()]);
            // The derivatives of the others are computed from the result.
            use Activation::*;
            let keeps = !matches!(activation, Relu | Sigmoid | Tanh | Relu6);
            let z = if keeps { bytes(&g) } else { 0 };
            let (x, w, b) = (&x_tracked, &w_tracked, &b_tracked);
            let forwards = || x.linear_activation(w, Some(b), activation).unwrap();
            check(&format!("{name}, recorded"), z, || [forwards()]);
            assert!(keeps == (counting::peak_of(forwards).1 > bytes(&g) + bytes(&g) / 2));
            // The gradient of the sums replaces them, and the operands' gradients are computed from it.
            check(&format!("{name}, both ways"), bytes(&g), || {
                let y = forwards();
                let mut grads = y.backward_with(&g).unwrap();
                let [dx, dw, db] = [x, w, b].map(|x| grads.remove(x).unwrap());
                [y, dx, dw, db]
            });
        }
    });
}

#[test]
fn convolutions_take_the_memory_of_their_results() {
    let name = "products_memory::convolutions_take_the_memory_of_their_results";
    alone_with(name, UNPOOLED, || {
        swath::runtime::set_threads(1).unwrap();
        // A band's copy and products.
        let band = 1 << 20;
        // Images, filters, stride along the last axis. Buffers of these sizes are not rounded up.
        let cases: [(&str, [&[usize]; 2], usize); 7] = [
            ("a long signal", [&[1, 128, 65_536], &[128, 128, 3]], 1),
            ("a long signal, stride 2", [&[1, 128, 65_536], &[128, 128, 4]], 2),
            ("one place", [&[1, 128, 65_536], &[128, 128, 1]], 1),
            ("one channel", [&[1, 1, 1 << 21], &[1, 1, 3]], 1),
            ("many channels", [&[1, 8_192, 256], &[16, 8_192, 3]], 1),
            ("a wide image", [&[1, 64, 4, 16_384], &[64, 64, 3, 3]], 1),
            ("many channels of an image", [&[1, 4_096, 16, 32], &[8, 4_096, 3, 3]], 1),
        ];
        for (name, [images, filters], stride) in cases {
            let (x, w) = (randn(images), randn(filters));
            let conv = |x: &T, w: &T| match images.len() {
                3 => {
                    let padding = Padding::Zeros([(filters[2] - 1) / 2]);
                    let options = ConvOptions { stride: [stride], padding, ..Default::default() };
                    x.conv1d(w, None, options).unwrap()
                }
                _ => {
                    let padding = Padding::Zeros([1, 1]);
                    let options =
                        ConvOptions { stride: [1, stride], padding, ..Default::default() };
                    x.conv2d(w, None, options).unwrap()
                }
            };
            check(&format!("{name}, forwards"), band, || [conv(&x, &w)]);
            let tracked = x.requires_grad();
            let g = randn(conv(&x, &w).dims());
            // The filters in the order of the transposed convolution; the result, which the graph keeps.
            check(&format!("{name}, gradient of images"), band + bytes(&w) + bytes(&g), || {
                [conv(&tracked, &w).backward_with(&g).unwrap().remove(&tracked).unwrap()]
            });
            let tracked = w.requires_grad();
            // Sums of pieces of all windows: 4 MiB, or one piece; and the sums in the order of the filters.
            let sums = bytes(&w).max(4 << 20) + bytes(&w);
            check(&format!("{name}, gradient of filters"), band + sums + bytes(&g), || {
                [conv(&x, &tracked).backward_with(&g).unwrap().remove(&tracked).unwrap()]
            });
        }
    });
}

#[test]
fn repeated_products_allocate_nothing() {
    alone("products_memory::repeated_products_allocate_nothing", || {
        let shapes: [&[usize]; 4] = [&[3, 4, 5], &[5, 6], &[1, 5, 6], &[3, 5]];
        let [a, b, c, d] = shapes.map(|shape| randn(shape).requires_grad());
        let products: [(&str, &dyn Fn() -> Result<T>); 7] = [
            ("batch", &|| T::einsum("bij,jk->bik", &[&a, &b])),
            ("matrices and vectors", &|| T::einsum("bij,bj->ib", &[&a, &d])),
            ("three", &|| T::einsum("bij,jk,bj->k", &[&a, &b, &d])),
            ("inner products", &|| T::einsum("bj,bj->b", &[&d, &d])),
            ("matmul", &|| a.matmul(&c)),
            ("tensordot", &|| a.tensordot(&b, 1)),
            ("four", &|| T::einsum("bij,jl,bj,jk->kl", &[&a, &b, &d, &b])),
        ];
        for (name, product) in products {
            let step = || {
                let y = product().unwrap().square().unwrap().sum(None, false).unwrap();
                drop(y.backward().unwrap());
            };
            (0..3).for_each(|_| step());
            let before = counting::calls();
            (0..3).for_each(|_| step());
            assert_eq!(counting::calls() - before, 0, "{name}");
        }
    });
}
