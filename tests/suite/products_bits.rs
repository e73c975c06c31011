//! The bits of matrix products of tensors, as SHA-256 in `tests/vectors/products.txt`: the same for every
//! number of threads, on every instruction set, and for a row alone and in a batch. A BLAS library gives
//! other bits, which do not depend on the number of threads either.
//!
//! `SWATH_BLESS=1 cargo test --test suite products_bits` rewrites the file.

use std::fmt::Write;
use std::{env, fs};

use sha2::{Digest, Sha256};
use swath::blas::trace::{Path, trace};
use swath::nn::Activation;
use swath::prelude::*;
use swath::runtime::{Isa, info, set_threads};

use crate::support::{alone, alone_with, is_full};

type T = Tensor<CpuBackend>;
type Product<'a> = &'a dyn Fn(&T) -> Result<T>;

const RECORD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/products.txt");

pub fn embedded() -> bool {
    swath::blas::info().provider == "embedded"
}

pub fn bits(x: &T) -> Result<Vec<u64>> {
    let values = x.to_dtype(DType::F64)?.to_vec::<f64>()?;
    Ok(values.into_iter().map(f64::to_bits).collect())
}

/// Too few rows and columns to split, so much work that threads split k.
const K_SHARED: [usize; 3] = [32, 16_384, 24];

/// Named products.
fn products(dtype: DType) -> Result<Vec<(&'static str, T)>> {
    let mut rng = Rng::seed(91);
    let mut normal = |shape: &[usize]| T::randn(shape, &mut rng)?.to_dtype(dtype);
    let mut all = Vec::new();
    let mut add = |name, y: Result<T>| y.map(|y| all.push((name, y)));

    let (a, b) = (normal(&[130, 300])?, normal(&[300, 140])?);
    let (a_turned, b_turned) = (normal(&[300, 130])?.t()?, normal(&[140, 300])?.t()?);
    add("plain", a.matmul(&b))?;
    add("right side transposed", a.matmul(&b_turned))?;
    add("left side transposed", a_turned.matmul(&b))?;
    add("both transposed", a_turned.matmul(&b_turned))?;
    add("views", a.flip(1)?.matmul(&b.slice(s![..;-1, 1..;2])?))?;
    add("repeated row", a.narrow(0, 3, 1)?.broadcast_to((60, 300))?.matmul(&b))?;

    let (vector, tall) = (normal(&[700])?, normal(&[700, 300])?);
    add("vector by matrix", vector.matmul(&tall))?;
    add("matrix by vector", tall.t()?.matmul(&vector))?;
    add("few rows", normal(&[7, 520])?.matmul(&normal(&[520, 310])?))?;
    add("few rows by a transpose", normal(&[9, 520])?.matmul(&normal(&[310, 520])?.t()?))?;
    add("small", normal(&[40, 33])?.matmul(&normal(&[33, 50])?))?;
    add("wide", normal(&[20, 40])?.matmul(&normal(&[40, 2100])?))?;

    add("batch", normal(&[9, 33, 47])?.matmul(&normal(&[9, 47, 31])?))?;
    add("batch of small products", normal(&[150, 12, 12])?.matmul(&normal(&[150, 12, 12])?))?;
    add("batch with one right side", normal(&[5, 40, 64])?.matmul(&normal(&[64, 90])?))?;
    add("batch with one left side", normal(&[40, 64])?.matmul(&normal(&[5, 64, 30])?))?;
    let (left, right) = (normal(&[3, 1, 20, 30])?, normal(&[4, 30, 20])?);
    add("batches broadcast", left.matmul(&right))?;

    let (x, w, bias) = (normal(&[6, 70, 270])?, normal(&[90, 270])?, normal(&[90])?);
    add("linear", x.linear(&w, None))?;
    add("linear with a bias", x.linear(&w, Some(&bias)))?;
    add("linear of a vector", x.slice(s![1, 2])?.linear(&w, Some(&bias)))?;
    // Split over the threads by rows, and by columns.
    let (a, b) = (normal(&[300, 520])?, normal(&[520, 260])?);
    add("large", a.matmul(&b))?;
    add("large, the other way", b.t()?.matmul(&a.t()?))?;
    add("large linear", a.linear(&b.t()?, Some(&normal(&[260])?)))?;
    let (a, b) = (normal(&[12, 5000])?, normal(&[20, 5000])?);
    add("long k", a.matmul(&b.t()?))?;
    add("long linear", a.linear(&b, Some(&normal(&[20])?)))?;
    let (a, b) = (normal(&[3, 300, 40])?, normal(&[300, 90])?);
    add("packed right side", a.t()?.matmul(&b))?;

    let (a, b) = (normal(&[8, 40, 90])?, normal(&[8, 90, 50])?);
    let (a_turned, b_turned) = (a.permute(&[1, 0, 2])?, b.permute(&[2, 1, 0])?);
    add("einsum over two axes", T::einsum("sik,skj->ij", &[&a, &b]))?;
    add("einsum of a row", T::einsum("bk,kj->bj", &[&normal(&[1, 700])?, &normal(&[700, 1])?]))?;
    add("tensordot", a_turned.tensordot(&b_turned, ([1, 2], [2, 1])))?;
    let (x, w) = (normal(&[5, 60, 40])?.requires_grad(), normal(&[30, 60])?.requires_grad());
    let grads = w.matmul(&x)?.square()?.sum(None, false)?.backward()?;
    add("gradient of one left side", grads.wrt(&w).cloned())?;
    let grads = x.permute(&[2, 0, 1])?.linear(&w, None)?.square()?.sum(None, false)?.backward()?;
    add("gradient of a weight", grads.wrt(&w).cloned())?;
    add("gradient of linear's input", grads.wrt(&x).cloned())?;

    let [m, k, n] = K_SHARED;
    let (a, b, bias) = (normal(&[m, k])?, normal(&[n, k])?, normal(&[n])?);
    add("k shared", a.matmul(&b.t()?))?;
    add("k shared, linear", a.linear(&b, Some(&bias)))?;
    add("k shared, linear and gelu", a.linear_activation(&b, Some(&bias), Activation::Gelu))?;
    Ok(all)
}

/// A line for each product: name, dtype, hash.
fn lines(threads: usize) -> Result<Vec<String>> {
    set_threads(threads)?;
    let mut lines = Vec::new();
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
        let (products, traced) = trace(|| products(dtype));
        let k_shared: Vec<_> = traced.iter().filter(|it| it.shape == K_SHARED).collect();
        let as_expected = k_shared.len() == 3
            && k_shared.iter().all(|it| match it.path {
                Path::Embedded(_) => threads == 1,
                Path::EmbeddedAlongK(_) => threads > 1,
                _ => false,
            });
        assert!(!embedded() || as_expected, "{threads} threads: {k_shared:?}");
        for (name, y) in products? {
            let mut hasher = Sha256::new();
            bits(&y)?.iter().for_each(|x| hasher.update(x.to_le_bytes()));
            let mut line = format!("{name}: {dtype} ");
            for byte in hasher.finalize() {
                write!(line, "{byte:02x}").expect("writing to a string cannot fail");
            }
            lines.push(line);
        }
    }
    Ok(lines)
}

/// Runs on each level, in its own process. By default only one thread on the portable level, which is a
/// hundred times slower: how threads split work does not depend on the level.
#[test]
#[ignore = "run by the test below, with the environment it sets"]
fn worker() -> Result<()> {
    assert_eq!(Some(info().isa.name()), env::var("SWATH_ISA").ok().as_deref());
    let one = lines(1)?;
    let all = if info().isa == Isa::Scalar && !is_full() { &[][..] } else { &[2, 3, 5] };
    for &threads in all {
        assert_eq!(lines(threads)?, one, "{threads} threads");
    }
    if !embedded() {
        println!("SKIPPED: recorded bits, {} computes products", info().blas);
    } else if env::var_os("SWATH_BLESS").is_some_and(|value| value == "1") {
        fs::write(RECORD, one.join("\n") + "\n").expect("the file can be written");
    } else {
        let record = fs::read_to_string(RECORD).expect("the record");
        assert_eq!(one, record.lines().collect::<Vec<_>>(), "other bits than recorded");
    }
    Ok(())
}

#[test]
fn every_level_and_number_of_threads_gives_the_recorded_bits() {
    for isa in Isa::ALL {
        if isa.is_available() {
            alone_with("products_bits::worker", &[("SWATH_ISA", isa.name())], || {
                panic!("the worker runs in its own process")
            });
        } else {
            println!("SKIPPED {isa}: this machine lacks it");
        }
    }
}

#[test]
fn products_with_one_right_side_have_the_bits_of_each_alone() {
    alone("products_bits::products_with_one_right_side_have_the_bits_of_each_alone", || {
        shared_right_sides().unwrap();
    });
}

/// The rows of the left sides cannot be stacked, so the batch is not one product.
fn shared_right_sides() -> Result<()> {
    // With more threads than the six products, threads would split each product instead.
    swath::runtime::set_threads(2)?;
    let mut rng = Rng::seed(95);
    for dtype in [DType::F32, DType::F64, DType::BF16] {
        let mut normal = |shape: &[usize]| T::randn(shape, &mut rng)?.to_dtype(dtype);
        let left = normal(&[2, 3, 300, 40])?.t()?;
        let (right, weight, bias) = (normal(&[300, 90])?, normal(&[90, 300])?, normal(&[90])?);
        let linear = |x: &T| x.linear_activation(&weight, Some(&bias), Activation::Gelu);
        let products: [Product; 3] = [&|x| x.matmul(&right), &|x| x.matmul(&weight.t()?), &linear];
        for product in products {
            let (together, traced) = trace(|| product(&left));
            let together = together?;
            assert!(!embedded() || traced[0].path == Path::EmbeddedPacked, "{}", traced[0]);
            for (i, j) in [(0, 0), (0, 2), (1, 1)] {
                let alone = product(&left.slice(s![i, j])?)?;
                assert_eq!(bits(&together.slice(s![i, j])?)?, bits(&alone)?, "{dtype} {i} {j}");
            }
        }
    }
    Ok(())
}

#[test]
fn sixteen_bit_floats_add_blocks_of_k_in_the_order_of_f32() -> Result<()> {
    if !embedded() {
        println!("SKIPPED: {} computes products", info().blas);
        return Ok(());
    }
    let mut rng = Rng::seed(93);
    let (x, w) = (T::randn((3, 4096), &mut rng)?, T::randn((64, 4096), &mut rng)?);
    // The second half of k subtracts what the first half adds, so that only rounding errors remain.
    let (x, w) = (T::cat(&[&x, &x], 1)?, T::cat(&[&w, &w.neg()?], 1)?);
    for dtype in [DType::F16, DType::BF16] {
        let (x, w) = (x.to_dtype(dtype)?, w.to_dtype(dtype)?);
        let wide = |x: &T| x.to_dtype(DType::F32);
        let expected = wide(&x)?.matmul(&wide(&w)?.t()?)?.to_dtype(dtype)?;
        assert!(bits(&expected)?.iter().any(|&x| x << 1 != 0));
        for y in [
            x.matmul(&w.t()?)?,
            x.matmul(&w.t()?.contiguous()?)?,
            T::cat(&[&w; 2], 0)?.matmul(&x.t()?)?.narrow(0, 0, 64)?.t()?,
        ] {
            assert!(bits(&y)? == bits(&expected)?, "{dtype}");
        }
    }
    Ok(())
}

#[test]
fn a_row_has_the_same_bits_alone_and_in_batches_of_7_and_4096() -> Result<()> {
    if !embedded() {
        println!("SKIPPED: {} computes products", info().blas);
        return Ok(());
    }
    let mut rng = Rng::seed(92);
    for (k, n) in [(300, 70), (40, 33), (520, 300)] {
        let mut normal = |shape: &[usize]| T::randn(shape, &mut rng);
        let (w, bias) = (normal(&[n, k])?, normal(&[n])?);
        for x in [normal(&[4096, k])?, normal(&[k, 4096])?.t()?] {
            let calls: [Product<'_>; 3] =
                [&|x| x.matmul(&w.t()?), &|x| x.matmul(&w.t()?.contiguous()?), &|x| {
                    x.linear(&w, Some(&bias))
                }];
            for (i, call) in calls.iter().enumerate() {
                let whole = call(&x)?;
                for (from, rows) in [(0, 1), (5, 7), (2047, 1), (2048, 7), (4089, 7), (4095, 1)] {
                    let some = call(&x.narrow(0, from, rows)?)?;
                    let expected = bits(&whole.narrow(0, from, rows)?)?;
                    assert!(bits(&some)? == expected, "[{k}, {n}], call {i}: {rows} from {from}");
                    // The rows as a batch of single rows.
                    let batch = call(&x.narrow(0, from, rows)?.unsqueeze(1)?)?;
                    assert!(bits(&batch)? == expected, "[{k}, {n}], call {i}: batch from {from}");
                }
            }
        }
    }
    Ok(())
}
