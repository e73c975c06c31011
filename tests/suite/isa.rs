//! Every instruction set and every number of threads gives the same bits, and the tests check which one ran.
//!
//! The level and the number of threads are global, so the test runs this program again with
//! `SWATH_ISA` and `SWATH_THREADS` set and compares the digests that the workers print.

use std::process::Command;

use swath::ops::{
    Activation, BinaryOp, CompareOp, DropoutMask, NumberTest, ReduceOp, ScanOp, TernaryOp, UnaryOp,
    UpdateOp,
};
use swath::prelude::*;
use swath::{ConvOptions, CrossEntropy};

use crate::support::is_full;

type T = Tensor<CpuBackend>;

/// A digest of bits. Each step is a bijection of the state: a single different value always changes the
/// digest, several do except with probability 2^-64.
struct Digest(u64);

impl Digest {
    fn add(&mut self, bits: impl IntoIterator<Item = u64>) {
        for bits in bits {
            self.0 = (self.0 ^ bits).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        }
    }
}

/// Adds every value to the digest; NaNs as one, because their payloads may differ.
fn update(digest: &mut Digest, x: &T) -> Result<()> {
    let x = x.contiguous()?;
    let x = x.data();
    match x.dtype() {
        DType::F32 => {
            let one_nan = |x: &f32| if x.is_nan() { f32::NAN } else { *x }.to_bits();
            digest.add(x.as_slice::<f32>()?.iter().map(|x| u64::from(one_nan(x))));
        }
        DType::F64 => {
            let one_nan = |x: &f64| if x.is_nan() { f64::NAN } else { *x }.to_bits();
            digest.add(x.as_slice::<f64>()?.iter().map(one_nan));
        }
        DType::I64 => digest.add(x.as_slice::<i64>()?.iter().map(|&x| x as u64)),
        _ => return update(digest, &T::from_data(x.clone()).to_dtype(DType::F64)?),
    }
    Ok(())
}

/// Attention with one head and with several, which split the work differently; forwards and backwards.
fn attention(digest: &mut Digest, dtype: DType, t: usize) -> Result<()> {
    for shape in [(1, t, 1, 20), (2, t / 2 + 1, 3, 20)] {
        let mut rng = Rng::seed(11);
        let mut x = || -> Result<T> {
            let x = T::randn(shape, &mut rng)?.to_dtype(dtype)?;
            Ok(x.permute(&[0, 2, 1, 3])?.requires_grad())
        };
        let (q, k, v) = (x()?, x()?, x()?);
        let options = Attention { causal: true, ..Default::default() };
        let y = q.scaled_dot_product_attention(&k, &v, options)?;
        let loss = y.square()?.sum(None, false)?;
        update(digest, &y.detach())?;
        for gradient in grad(&loss, &[&q, &k, &v], false)? {
            update(digest, &gradient)?;
        }
    }
    Ok(())
}

/// Functions of rows forwards and backwards, and steps of the optimizers.
fn fused(digest: &mut Digest, x: &T, y: &T) -> Result<()> {
    let classes = x.dims()[1] as i64;
    let targets: Vec<i64> = (0..x.dims()[0] as i64).map(|i| i * 7 % classes).collect();
    let targets = T::from_vec(targets, x.dims()[0])?;
    let [w, b] = [0, 1].map(|row| y.slice(s![row]).map(|row| row.requires_grad()));
    let (x, w, b) = (x.requires_grad(), w?, b?);
    let options = CrossEntropy { label_smoothing: 0.1, ..Default::default() };
    let mask = DropoutMask { p: 0.2, seed: 1, stream: 2 };
    for activation in [Activation::Silu, Activation::Tanh] {
        let z = x.layer_norm(Some(&w), Some(&b), 1e-5)?.bias_activation(&b, activation)?;
        let z = z.rms_norm(Some(&w), 1e-6)?.dropout(mask)?;
        let logits = z.softmax(0)?.add(&z.log_softmax(-1)?)?;
        let loss = logits.cross_entropy(&targets, options)?;
        update(digest, &loss.detach())?;
        for gradient in grad(&loss, &[&x, &w, &b], false)? {
            update(digest, &gradient)?;
        }
    }
    let sgd = UpdateOp::Sgd {
        rate: 0.1,
        momentum: 0.9,
        dampening: 0.0,
        weight_decay: 0.1,
        nesterov: true,
        first: false,
    };
    let adam = UpdateOp::Adam {
        rate: 0.1,
        betas: [0.9, 0.99],
        eps: 1e-6,
        weight_decay: 0.1,
        decoupled: true,
        step: 5,
    };
    for op in [sgd, adam] {
        let mut parameter = x.data().clone();
        let mut state = vec![y.square()?.data().clone(); op.states()];
        CpuBackend::update(&op, &mut parameter, y.data(), &mut state)?;
        for changed in [parameter].into_iter().chain(state) {
            update(digest, &T::from_data(changed))?;
        }
    }
    Ok(())
}

/// Ops with several results, im2col and col2im, an inner product; forwards and backwards.
fn several_operands(digest: &mut Digest, x: &T, y: &T) -> Result<()> {
    let (x, flat) = (x.requires_grad(), y.flatten(0, -1)?);
    let (sine, cosine) = x.sincos()?;
    let options = ConvOptions::new().stride([1, 2]).padding([1, 0]);
    let columns = sine.unsqueeze(0)?.unsqueeze(0)?.im2col([2, 3], options)?;
    let image = columns.col2im([x.dims()[0], x.dims()[1]], [2, 3], options)?.square()?;
    let product = cosine.flatten(0, -1)?.dot(&flat)?;
    for y in [&sine, &cosine, &columns, &image, &product] {
        update(digest, &y.detach())?;
    }
    let loss = image.sum(None, false)?.add(&product)?;
    update(digest, loss.backward()?.wrt(&x)?)
}

/// Scans along the first, a middle and the last axis; gather, index_select and their adjoints.
fn scans_and_indices(digest: &mut Digest, x: &T) -> Result<()> {
    let (rows, cols) = (x.dims()[0], x.dims()[1]);
    for x in [x.clone(), x.slice(s![..rows / 3 * 3, ..])?.reshape((3, rows / 3, cols))?] {
        for axis in 0..x.rank() {
            for op in [ScanOp::Sum, ScanOp::Product] {
                update(digest, &T::from_data(CpuBackend::scan(op, x.contiguous()?.data(), axis)?))?;
            }
        }
    }
    for (axis, extent) in [rows, cols].into_iter().enumerate() {
        let named = |i: usize| (i * i % 1013 * 7 % extent) as i64;
        let elements = T::from_vec((0..rows * cols).map(named).collect(), (rows, cols))?;
        let parts = T::from_vec((0..2 * extent).map(named).collect(), 2 * extent)?;
        let (each, whole) = (x.gather(axis, &elements)?, x.index_select(axis, &parts)?);
        update(digest, &each)?;
        update(digest, &whole)?;
        if x.dtype() != DType::Bool {
            update(digest, &x.scatter_add(axis, &elements, &each)?)?;
            update(digest, &x.index_add(axis, &parts, &whole)?)?;
        }
    }
    Ok(())
}

/// Order of rows, of columns and of one row that threads share; what is chosen by it, and samples.
fn order(digest: &mut Digest, x: &T) -> Result<()> {
    let rounded = x.mul(8.0)?.round()?;
    for x in [x.clone(), rounded.flatten(0, 1)?, rounded, x.t()?] {
        for axis in 0..x.rank() {
            let sorted = [x.sort(axis, false)?, x.sort(axis, true)?];
            let first = [x.topk(5, axis)?, x.bottomk(30, axis)?, x.cummax(axis)?];
            for (values, indices) in sorted.into_iter().chain(first) {
                update(digest, &values)?;
                update(digest, &indices)?;
            }
            update(digest, &x.quantile(0.3, axis, false)?)?;
        }
        let (values, inverse, counts) = x.unique()?;
        for y in [values, inverse.bincount(0)?, counts, x.histogram(20, -3.0..4.0)?] {
            update(digest, &y)?;
        }
        let weights = x.abs()?;
        update(digest, &weights.multinomial(7, &mut Rng::seed(1))?)?;
        update(digest, &weights.multinomial_distinct(3, &mut Rng::seed(2))?)?;
    }
    Ok(())
}

/// Reductions and scans of integers and booleans.
fn integers(digest: &mut Digest, x: &T) -> Result<()> {
    for dtype in [DType::I64, DType::U8, DType::Bool] {
        let x = match dtype {
            DType::Bool => x.gt(0.0)?,
            _ => x.abs()?.mul_scalar(20.0)?.to_dtype(dtype)?,
        };
        let strided = T::cat(&[&x, &x], 1)?.t()?.slice(s![3..;2, ..;-1])?;
        for op in ReduceOp::ALL {
            for axes in [&[][..], &[0], &[1], &[0, 1]] {
                for input in [&x, &strided] {
                    match input.reduce(op, Some(axes), false) {
                        Err(Error::UnsupportedDType { .. }) => {}
                        reduced => update(digest, &reduced?)?,
                    }
                }
            }
        }
        scans_and_indices(digest, &x)?;
    }
    Ok(())
}

/// Digest of every kind of op, at sizes below or above the thresholds for threads.
fn digest(large: bool) -> Result<String> {
    let mut digest = Digest(0);
    let mut rng = Rng::seed(7);
    let (rows, cols) = if large { (301, 1031) } else { (33, 67) };
    let x = T::randn((rows, cols), &mut rng)?.mul_scalar(3.0)?;
    let y = T::randn((rows, cols), &mut rng)?;
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
        let (x, y) = (x.to_dtype(dtype)?, y.to_dtype(dtype)?);
        let strided = T::cat(&[&x, &y], 1)?.t()?.slice(s![3..;2, ..;-1])?;
        for &op in UnaryOp::ALL {
            update(&mut digest, &x.unary(op)?)?;
            update(&mut digest, &strided.unary(op)?)?;
        }
        for &op in BinaryOp::ALL {
            update(&mut digest, &x.binary(op, &y)?)?;
            update(&mut digest, &x.binary(op, &y.narrow(0, 2, 1)?)?)?;
        }
        for &op in TernaryOp::ALL {
            update(&mut digest, &x.ternary(op, &y, &y.narrow(0, 1, 1)?)?)?;
            update(&mut digest, &x.ternary(op, &y, 0.25)?)?;
        }
        for op in CompareOp::ALL {
            update(&mut digest, &x.round()?.compare(op, &y.round()?)?)?;
        }
        for op in NumberTest::ALL {
            update(&mut digest, &strided.recip()?.test(op)?)?;
        }
        update(&mut digest, &T::where_cond(&x.trunc()?, &x, &y)?)?;
        for dtype in DType::ALL {
            update(&mut digest, &x.mul_scalar(1e3)?.to_dtype(dtype)?)?;
        }
        for op in ReduceOp::ALL {
            for axes in [&[][..], &[0], &[1], &[0, 1]] {
                for input in [&x, &strided] {
                    let reduced = input.reduce(op, Some(axes), false)?;
                    update(&mut digest, &reduced)?;
                }
            }
        }
        update(&mut digest, &x.matmul(&y.t()?)?)?;
        update(&mut digest, &x.t()?.matmul(&y)?)?;
        update(&mut digest, &x.linear(&y, Some(&y.slice(s![.., 0])?))?)?;
        update(&mut digest, &x.softmax(1)?)?;
        fused(&mut digest, &x, &y)?;
        several_operands(&mut digest, &x, &y)?;
        scans_and_indices(&mut digest, &x)?;
        order(&mut digest, &x)?;
        attention(&mut digest, dtype, if large { 600 } else { 70 })?;
    }
    integers(&mut digest, &x)?;
    let w = T::randn((cols, 64), &mut rng)?.requires_grad();
    let loss = x.matmul(&w)?.gelu_tanh()?.log_softmax(-1)?.mean(None, false)?;
    update(&mut digest, loss.backward()?.wrt(&w)?)?;
    Ok(format!("{:016x}", digest.0))
}

/// The test that workers run: prints the level, the number of threads and the digest.
#[test]
#[ignore = "run by the tests below, with the environment they set"]
fn worker() {
    let large = std::env::var_os("SWATH_TEST_LARGE").is_some();
    let digest = digest(large).unwrap();
    let info = swath::runtime::info();
    println!("\nworker: {} {} {digest}", info.isa, info.threads);
}

/// Runs the worker; `Err` holds its output if it failed.
fn run_worker(isa: &str, threads: usize, large: bool) -> std::result::Result<String, String> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "isa::worker", "--ignored", "--nocapture"]);
    command.env("SWATH_ISA", isa).env("SWATH_THREADS", threads.to_string());
    command.env_remove("SWATH_TEST_LARGE");
    if large {
        command.env("SWATH_TEST_LARGE", "1");
    }
    let output = command.output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = stdout.lines().find_map(|line| line.strip_prefix("worker: ").map(str::to_owned));
    line.filter(|_| output.status.success()).ok_or(stdout + &stderr)
}

fn digest_on(isa: &str, threads: usize, large: bool) -> String {
    let line = run_worker(isa, threads, large).unwrap_or_else(|text| panic!("{isa}: {text}"));
    let words: Vec<&str> = line.split(' ').collect();
    assert_eq!(words[0], isa, "the level that ran");
    assert_eq!(words[1], threads.to_string(), "the threads that ran");
    words[2].to_owned()
}

/// The levels of this machine; prints the others as skipped.
fn levels() -> Vec<&'static str> {
    let (have, lack): (Vec<_>, Vec<_>) =
        swath::runtime::Isa::ALL.into_iter().partition(|isa| isa.is_available());
    for isa in lack {
        println!("SKIPPED {isa}: this machine lacks it");
    }
    have.into_iter().map(|isa| isa.name()).collect()
}

#[test]
fn every_instruction_set_gives_the_same_bits() {
    let levels = levels();
    let expected = digest_on(levels[0], 1, false);
    for isa in &levels[1..] {
        assert_eq!(digest_on(isa, 1, false), expected, "{} and {isa} differ", levels[0]);
    }
    // At sizes that would take scalar code too long, with threads.
    if let [_, first, others @ ..] = levels.as_slice()
        && !others.is_empty()
    {
        let expected = digest_on(first, 2, true);
        for isa in others {
            assert_eq!(digest_on(isa, 2, true), expected, "{first} and {isa} differ");
        }
    }
}

#[test]
fn every_number_of_threads_gives_the_same_bits() {
    let best = levels().pop().expect("every machine has the scalar level");
    let expected = digest_on(best, 1, true);
    // By default an odd number of threads, and one that exceeds the number of most parts.
    let all = if is_full() { &[2, 3, 5, 7, 13][..] } else { &[3, 13] };
    for &threads in all {
        assert_eq!(digest_on(best, threads, true), expected, "1 and {threads} threads differ");
    }
}

#[test]
fn an_unavailable_instruction_set_is_an_error_that_names_it() {
    let missing = if cfg!(target_arch = "x86_64") { "neon" } else { "avx512" };
    let text = run_worker(missing, 1, false).unwrap_err();
    assert!(text.contains(&format!("SWATH_ISA={missing}: this machine lacks it")), "{text}");
    let text = run_worker("mmx", 1, false).unwrap_err();
    assert!(text.contains("no such instruction set"), "{text}");
}
