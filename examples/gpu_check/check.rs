//! Compares a device with the CPU.

mod cases;
#[path = "median.rs"]
mod median;

use cases::{Case, Kind};
use median::median;
use swath::backend::gpu::{Context, Driver, Gpu};
use swath::prelude::*;

/// Seconds for each measurement.
const SECONDS: f64 = 0.04;

/// Checks all cases. Returns the number of operations with wrong results.
pub fn run<D: Driver>(
    device: impl Fn() -> Result<&'static Context<D>>,
    quick: bool,
) -> Result<usize> {
    let device = device()?;
    println!("{}: {:?}\n", D::NAME, device.capabilities());
    let sizes: &[usize] =
        if quick { &[64, 4096] } else { &[1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20] };
    print!("{:<34} {:>9}", "operation", "error");
    for size in sizes {
        print!(" {:>17}", format!("n = {size}"));
    }
    println!(" {:>9}", "crossover");
    println!("{:<34} {:>9}", "", "");
    let mut rng = Rng::seed(1);
    let mut wrong = 0;
    for (case, kind) in cases::all(device.capabilities()) {
        let mut worst = 0.0f64;
        let mut times = Vec::new();
        for &size in sizes {
            let inputs = case.inputs(kind, size, &mut rng)?;
            let there: Vec<Tensor<Gpu<D>>> =
                inputs.iter().map(|x| x.to_backend()).collect::<Result<_>>()?;
            worst = worst.max(error_of((case, kind), &inputs, &there)?);
            let cpu = median(SECONDS, || kind.run(case, &inputs))?;
            let gpu = median(SECONDS, || {
                kind.run(case, &there)?;
                device.synchronize()
            })?;
            times.push((size, cpu, gpu));
        }
        let is_wrong = worst > kind.tolerance() || worst.is_nan();
        wrong += usize::from(is_wrong);
        let mark = if is_wrong { " WRONG" } else { "" };
        print!("{:<34} {worst:>9.1e}", case.name(kind));
        for (_, cpu, gpu) in &times {
            print!(" {:>8} {:>8}", micros(*cpu), micros(*gpu));
        }
        let slower = times.iter().rposition(|(_, cpu, gpu)| gpu >= cpu);
        let crossover = match slower {
            None => times.first().map_or("-".to_owned(), |(size, ..)| size.to_string()),
            Some(at) => times.get(at + 1).map_or("-".to_owned(), |(size, ..)| size.to_string()),
        };
        println!(" {crossover:>9}{mark}");
    }
    println!("\ntimes in µs, CPU and device; {wrong} operations are wrong");
    Ok(wrong)
}

fn micros(seconds: f64) -> String {
    format!("{:.1}", 1e6 * seconds)
}

/// Returns the largest difference, relative to the largest magnitude. Two NaN are equal, and so are equal infinities.
fn error_of<B: Backend>(
    (case, kind): (Case, Kind),
    here: &[Tensor<CpuBackend>],
    there: &[Tensor<B>],
) -> Result<f64> {
    let expected = kind.run(case, here)?.to_dtype(DType::F64)?.to_vec::<f64>()?;
    let result: Tensor<CpuBackend> = kind.run(case, there)?.to_backend()?;
    let result = result.to_dtype(DType::F64)?.to_vec::<f64>()?;
    let finite = expected.iter().filter(|x| x.is_finite());
    let scale = finite.fold(1e-30f64, |scale, x| scale.max(x.abs()));
    let mut worst = 0.0f64;
    for (x, y) in result.iter().zip(&expected) {
        if x.to_bits() != y.to_bits() && !(x.is_nan() && y.is_nan()) {
            let error = (x - y).abs() / scale;
            worst = if error.is_nan() { f64::NAN } else { worst.max(error) };
        }
    }
    Ok(worst)
}
