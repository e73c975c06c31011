//! Products that threads split along k have the bits of one thread, alone, with a fused function and in
//! gradients. Each is expensive enough to wake sleeping threads for, and a trace proves that its k was
//! split.

use swath::blas::trace::{Path, Traced, trace};
use swath::ops::{Activation, FusedOp};
use swath::prelude::*;
use swath::runtime::set_threads;

use crate::products_bits::{bits, embedded};
use crate::support::{alone, is_full, is_sampled};

type T = Tensor<CpuBackend>;

/// Whole blocks of k and a partial one; one row, one column; more blocks than are held in memory at a time.
const SHAPES: [[usize; 3]; 5] =
    [[32, 16_384, 32], [12, 40_001, 20], [1, 10_300, 1000], [1000, 10_300, 1], [19, 36_000, 100]];

const DTYPES: [DType; 4] = [DType::F32, DType::F64, DType::F16, DType::BF16];

/// Checks that the results of `f` have the same bits on 1, 2, 5 and (with `SWATH_FULL`) 3 threads, and that
/// on several threads `along_k` of its products are split along k.
#[track_caller]
fn check(what: &str, along_k: usize, f: impl Fn() -> Result<Vec<T>>) {
    let on = |threads| {
        set_threads(threads).unwrap();
        let (results, traced) = trace(&f);
        let shared = traced.iter().filter(|it| matches!(it.path, Path::EmbeddedAlongK(_))).count();
        let expected = if threads > 1 { along_k } else { 0 };
        assert!(!embedded() || shared == expected, "{what}, {threads} threads: {traced:?}");
        results.unwrap().iter().map(|x| bits(&x.detach()).unwrap()).collect::<Vec<_>>()
    };
    let one = on(1);
    let all = if is_full() { &[2, 3, 5][..] } else { &[2, 5] };
    for &threads in all {
        assert!(on(threads) == one, "{what}, {threads} threads: other bits than on one");
    }
}

/// By default two dtypes for each shape, and the other two for the next shape.
#[test]
fn products_and_fused_functions_have_the_bits_of_one_thread() {
    alone("along_k::products_and_fused_functions_have_the_bits_of_one_thread", || {
        let mut rng = Rng::seed(111);
        let cases = (0..SHAPES.len()).flat_map(|s| (0..DTYPES.len()).map(move |d| [s, d]));
        for [s, d] in cases.filter(|[s, d]| is_sampled(s + d, 2)) {
            let ([m, k, n], dtype) = (SHAPES[s], DTYPES[d]);
            let mut normal = |shape: &[usize]| -> T {
                T::randn(shape, &mut rng).unwrap().to_dtype(dtype).unwrap()
            };
            let (x, w, bias) = (normal(&[m, k]), normal(&[n, k]), normal(&[n]));
            let name = |what: &str| format!("{what} of [{m}, {k}] and [{k}, {n}], {dtype}");
            // A row-major right side, and a left side stored by columns.
            let (right, left) = (w.t().unwrap().contiguous().unwrap(), x.t().unwrap().contiguous());
            let left = left.unwrap().t().unwrap();
            check(&name("matmul"), 3, || {
                Ok(vec![x.matmul(&right)?, x.matmul(&w.t()?)?, left.matmul(&right)?])
            });
            check(&name("linear"), 2, || Ok(vec![x.linear(&w, None)?, x.linear(&w, Some(&bias))?]));
            for activation in [Activation::Relu, Activation::Gelu] {
                for keep_sums in [false, true] {
                    let of = |bias: Option<&T>| {
                        let (x, weight, bias) = (x.data(), w.data(), bias.map(T::data));
                        let activation = Some(activation);
                        CpuBackend::fused(&FusedOp::Linear {
                            x,
                            weight,
                            bias,
                            activation,
                            keep_sums,
                        })
                    };
                    check(&name(&format!("linear and {activation:?}, {keep_sums}")), 2, || {
                        let all = of(Some(&bias))?.into_iter().chain(of(None)?);
                        Ok(all.map(T::from_data).collect())
                    });
                }
            }
        }
    });
}

/// Gradients of a weight, a sum over many rows, that is used once and twice.
#[test]
fn gradients_have_the_bits_of_one_thread() {
    alone("along_k::gradients_have_the_bits_of_one_thread", || {
        let mut rng = Rng::seed(112);
        for dtype in DTYPES {
            let mut normal = |shape: &[usize]| -> T {
                T::randn(shape, &mut rng).unwrap().to_dtype(dtype).unwrap()
            };
            let (x, w, bias) = (normal(&[16_384, 32]), normal(&[32, 32]), normal(&[32]));
            let (other, w, g) = (normal(&[16_384, 32]), w.requires_grad(), normal(&[16_384, 32]));
            let gradient = |y: T| -> Result<Vec<T>> {
                Ok(vec![y.mul(&g)?.sum(None, false)?.backward()?.wrt(&w)?.clone()])
            };
            check(&format!("a weight's gradient, {dtype}"), 1, || {
                gradient(x.linear_activation(&w, Some(&bias), Activation::Gelu)?)
            });
            check(&format!("a weight's gradient, used twice, {dtype}"), 2, || {
                gradient(x.linear(&w, Some(&bias))?.add(&other.matmul(&w)?)?)
            });
        }
    });
}

/// Runs in a user's rayon pool, whose threads also split each product of a batch.
#[test]
fn a_product_is_added_to_a_sum() {
    if !embedded() {
        println!("SKIPPED: a library's products are added to the sum afterwards");
        return;
    }
    // So many products that their sum, 4 MiB, is added in place, and left sides whose rows cannot be stacked.
    let [batch, groups, k, n] = [35, 3, 2600, 71];
    let pool = rayon::ThreadPoolBuilder::new().num_threads(5).build().unwrap();
    let mut rng = Rng::seed(113);
    let mut normal = |shape: [usize; 4]| T::randn(shape, &mut rng)?.to_dtype(DType::F64);
    let a = normal([1, 1, n, k]).unwrap().broadcast_to((groups, batch, n, k)).unwrap();
    let b = normal([groups, 1, k, n]).unwrap().broadcast_to((groups, batch, k, n)).unwrap();
    let c = normal([groups, batch, n, n]).unwrap();
    let expected = bits(&c.add(a.matmul(&b).unwrap()).unwrap()).unwrap();
    // A copy, so that the storage of the sum is not shared.
    let c = CpuBackend::from_host(CpuBackend::to_host(c.data()).unwrap(), *c.shape()).unwrap();
    let (sum, traced) =
        pool.install(|| trace(|| CpuBackend::matmul_add(a.data(), b.data(), c).unwrap()));
    assert!(matches!(traced[..], [Traced { path: Path::EmbeddedAlongK(_), .. }]), "{traced:?}");
    assert!(bits(&T::from_data(sum)).unwrap() == expected);
}
