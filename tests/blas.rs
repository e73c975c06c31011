//! Matrix products by this build's provider: a BLAS library, linked or opened at run time, or the embedded
//! product.
//!
//! `SWATH_EXPECT_BLAS` names the provider that must run (`openblas`, `blis`, `mkl`, `unknown`, `swath`);
//! `SWATH_ILP64_BLAS` names a library with 64-bit integers, for the feature `blas-dynamic`.

mod fake_blas;

use std::env;
#[cfg(target_os = "linux")]
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use swath::blas::trace::{self, trace};
use swath::prelude::*;
use swath::runtime::set_threads;

type T = Tensor<CpuBackend>;
type R = Tensor<ReferenceBackend>;

/// Runs the test `name` of this program in its own process, with an environment variable set.
fn run_test(name: &str, variable: (&str, &str)) -> Output {
    Command::new(env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture", "--include-ignored"])
        .env(variable.0, variable.1)
        .output()
        .unwrap()
}

fn has_library() -> bool {
    swath::blas::info().provider != "embedded"
}

#[test]
fn the_expected_library_computes_products() -> Result<()> {
    let info = swath::blas::info();
    println!("{info}");
    assert_eq!(info.threads, 1);
    if let Ok(expected) = env::var("SWATH_EXPECT_BLAS") {
        assert_eq!(info.library, expected, "{info}");
        assert_eq!(info.warning, None, "{info}");
        let reports_version = matches!(info.library, "openblas" | "blis" | "mkl" | "swath");
        assert_eq!(!info.version.is_empty(), reports_version, "{info}");
    }
    // A static library has no file.
    let reports_file = cfg!(target_os = "linux") && !cfg!(feature = "openblas-static");
    if reports_file && has_library() {
        let path = Path::new(info.path.as_deref().expect("a file"));
        assert!(path.is_absolute() && path.canonicalize().unwrap() == path, "{info}");
    }
    let (a, b) = (T::ones((200, 300), DType::F32)?, T::ones((300, 100), DType::F64)?);
    for (a, b) in [(&a, &b.to_dtype(DType::F32)?), (&a.to_dtype(DType::F64)?, &b)] {
        let (c, traced) = trace(|| a.matmul(b));
        assert!(c?.to_dtype(DType::F64)?.to_vec::<f64>()?.iter().all(|&x| x == 300.0));
        let is_expected = |path| match path {
            trace::Path::Provider => has_library(),
            trace::Path::Embedded(_) => !has_library(),
            _ => false,
        };
        assert!(traced.len() == 1 && is_expected(traced[0].path), "{traced:?}");
    }
    Ok(())
}

/// Operands in many layouts: row-major, transposed, sliced, flipped, strided, broadcast.
fn operands() -> Result<Vec<(T, T)>> {
    let mut rng = Rng::seed(5);
    let mut normal = |shape: &[usize]| T::randn(shape, &mut rng);
    let mut pairs = Vec::new();
    for (m, k, n) in [(1, 1, 1), (33, 47, 65), (1, 300, 200), (200, 300, 1), (300, 40, 600)] {
        let (a, b) = (normal(&[m, k])?, normal(&[k, n])?);
        pairs.push((a.clone(), normal(&[n, k])?.t()?));
        pairs.push((normal(&[k, m])?.t()?, b.clone()));
        pairs.push((normal(&[m, k + 3])?.narrow(1, 2, k)?, normal(&[k + 3, n])?.narrow(0, 1, k)?));
        pairs.push((a.flip(0)?, b.flip(1)?));
        pairs.push((normal(&[m, 2 * k])?.slice(s![.., ..;2])?, b.clone()));
        pairs.push((a, b));
    }
    pairs.push((normal(&[7, 40, 50])?, normal(&[7, 50, 60])?));
    pairs.push((normal(&[7, 40, 50])?, normal(&[50, 60])?));
    pairs.push((normal(&[40, 50])?, normal(&[7, 60, 50])?.t()?));
    pairs.push((normal(&[3, 1, 20, 30])?, normal(&[4, 30, 20])?));
    Ok(pairs)
}

#[test]
fn products_agree_with_the_reference_backend() -> Result<()> {
    for (a, b) in operands()? {
        for dtype in [DType::F32, DType::F64, DType::BF16] {
            let (a, b) = (a.to_dtype(dtype)?, b.to_dtype(dtype)?);
            let c = a.matmul(&b)?.to_dtype(DType::F64)?;
            let wide = |x: &T| x.to_dtype(DType::F64)?.to_backend::<ReferenceBackend>();
            let (a, b): (R, R) = (wide(&a)?, wide(&b)?);
            let expected = a.matmul(&b)?.to_vec::<f64>()?;
            let size = a.abs()?.matmul(&b.abs()?)?.to_vec::<f64>()?;
            let k = a.shape().dim(a.rank() - 1) as f64;
            // In f64 the reference has rounding errors too; products of bf16 are rounded a second time.
            let u = match dtype {
                DType::F64 => f64::EPSILON,
                DType::F32 => f64::from(f32::EPSILON) / 2.0,
                _ => f64::from(f32::EPSILON),
            };
            let rounding = if dtype == DType::BF16 { 2f64.powi(-8) } else { 0.0 };
            for ((c, expected), size) in c.to_vec::<f64>()?.iter().zip(expected).zip(size) {
                let bound = k * u * size + rounding * expected.abs();
                assert!((c - expected).abs() <= bound, "{dtype} {a:?} {b:?}: {c}, {expected}");
            }
        }
    }
    Ok(())
}

/// Adds products large enough that each thread gets a tile, alone and in batches.
#[test]
fn the_number_of_threads_does_not_change_the_bits() -> Result<()> {
    let mut rng = Rng::seed(6);
    let mut operands = operands()?;
    for [batch, m, k, n] in [
        [1, 512, 512, 512],
        [1, 257, 4000, 511],
        [1, 1, 4096, 4096],
        [2, 512, 512, 512],
        [2, 300, 300, 300],
        [3, 140, 700, 540],
    ] {
        operands.push((T::randn((batch, m, k), &mut rng)?, T::randn((batch, k, n), &mut rng)?));
    }
    for dtype in [DType::F32, DType::F64] {
        for (a, b) in &operands {
            let (a, b) = (a.to_dtype(dtype)?, b.to_dtype(dtype)?);
            let bits = || -> Result<Vec<u64>> {
                let c = a.matmul(&b)?.to_dtype(DType::F64)?.to_vec::<f64>()?;
                Ok(c.into_iter().map(f64::to_bits).collect())
            };
            set_threads(1)?;
            let one = bits()?;
            for threads in [2, 3, 5] {
                set_threads(threads)?;
                let [a, b] = [a.dims(), b.dims()];
                assert!(bits()? == one, "{dtype} {a:?} x {b:?}: {threads} threads");
            }
        }
    }
    Ok(())
}

/// Prints how many threads were busy during a product, by the CPU time of each thread of this process. A
/// library's idle threads may spin for a moment after a call, so only threads with at least a quarter of the
/// largest time count.
#[test]
#[cfg(target_os = "linux")]
#[ignore = "run by another test"]
fn threads_of_a_call() -> Result<()> {
    let times = || -> Vec<(String, f64)> {
        let tasks = fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
        let time = |task: &Path| {
            let text = fs::read_to_string(task.join("schedstat")).unwrap_or_default();
            text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0.0)
        };
        tasks.map(|task| (task.display().to_string(), time(&task))).collect()
    };
    set_threads(1)?;
    let a = T::ones((1500, 1500), DType::F64)?;
    a.matmul(&a)?;
    let before = times();
    for _ in 0..3 {
        a.matmul(&a)?;
    }
    let used = times().into_iter().map(|(task, after)| {
        let start = before.iter().find(|(name, _)| *name == task).map_or(0.0, |it| it.1);
        after - start
    });
    let used: Vec<f64> = used.collect();
    let most = used.iter().copied().fold(0.0, f64::max);
    let busy = used.iter().filter(|&&time| time > most / 4.0).count();
    println!("THREADS {} of {busy}", swath::blas::info().threads);
    Ok(())
}

#[test]
#[cfg(target_os = "linux")]
fn a_call_uses_as_many_threads_as_info_reports() {
    // Variables that libraries read ask for two threads.
    for variable in
        ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "BLIS_NUM_THREADS", "MKL_NUM_THREADS"]
    {
        let output = run_test("threads_of_a_call", (variable, "2"));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && text.contains("THREADS 1 of 1"), "{variable}: {text}");
    }
}

/// Runs in its own process, for the tests below.
#[test]
#[ignore = "run by other tests"]
fn one_product() -> Result<()> {
    let a = T::ones((20, 20), DType::F32)?;
    assert_eq!(a.matmul(&a)?.to_vec::<f32>()?[0], 20.0);
    println!("INFO {}", swath::blas::info());
    Ok(())
}

#[test]
#[ignore = "run by other tests"]
fn info() {
    println!("INFO {}", swath::blas::info());
}

#[test]
fn an_unusable_library_named_by_the_user_is_an_error() {
    if !cfg!(feature = "blas-dynamic") {
        return;
    }
    let run = |path: &str| {
        let output = run_test("one_product", ("SWATH_BLAS", path));
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), text)
    };
    let (success, text) = run("/nowhere/libnothing.so");
    assert!(!success && text.contains("SWATH_BLAS=/nowhere/libnothing.so"), "{text}");
    let output = run_test("info", ("SWATH_BLAS", "/nowhere/libnothing.so"));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("libnothing.so") && text.contains("every product is an error"), "{text}");
    let (success, text) = run("");
    assert!(success, "an empty variable counts as unset: {text}");
    // A library without matrix products.
    let (success, text) = run("libm.so.6");
    assert!(!success && text.contains("has no cblas_sgemm"), "{text}");
    if let Ok(path) = env::var("SWATH_ILP64_BLAS") {
        let (success, text) = run(&path);
        assert!(!success && text.contains("64-bit integers (ILP64)"), "{text}");
    }
}
