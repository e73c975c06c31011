//! Every function of the table against an independent reference, on every instruction set: a sample
//! of what `exhaustive.rs` measures; `ACCURACY.md` holds the maxima.

use crate::functions::{
    Function1, Function2, PAIRS, Real, of_gradients, of_one_argument, of_two_arguments,
};
use crate::{functions, reference, table};
use swath_kernels::math::{self, ULP_BOUNDS, UlpBound};
use swath_kernels::testing::*;
use swath_kernels::{Arg, Isa};

/// Number of bit patterns for functions of one argument; `PAIRS` is the number of pairs of f32.
const F32_SAMPLE: u32 = 1 << 22;
const F64_SAMPLE: u32 = 1 << 18;

/// Runs `f` on every instruction set and returns its results, after checking that they have the
/// same bits on all.
fn on_every_isa<E: Real>(name: &str, f: impl Fn() -> Vec<E>) -> Vec<E> {
    let mut first: Option<(Isa, Vec<E>)> = None;
    for isa in Isa::ALL.into_iter().rev() {
        let Some(results) = with_isa(isa, &f) else {
            static SKIPPED: std::sync::Once = std::sync::Once::new();
            SKIPPED.call_once(|| println!("{isa} skipped, this machine lacks it"));
            continue;
        };
        if let Some((other, expected)) = &first {
            for (i, (y, expected)) in results.iter().zip(expected).enumerate() {
                let same = y.canonical() == expected.canonical();
                assert!(same, "{name}, element {i}: {y:e} on {isa}, {expected:e} on {other}");
            }
        } else {
            first = Some((isa, results));
        }
    }
    first.expect("every machine has the scalar level").1
}

fn bounds(name: &str) -> &'static UlpBound {
    let row = ULP_BOUNDS.iter().find(|row| row.name == name);
    row.unwrap_or_else(|| panic!("{name} promises no bound"))
}

/// Compares results with references and finds the largest error.
struct Check<'a, E> {
    name: &'a str,
    /// The bound, in floats.
    bound: u64,
    count: usize,
    worst: (u64, E),
}

impl<'a, E: Real> Check<'a, E> {
    fn new(name: &'a str, bound: u32) -> Self {
        Check { name, bound: bound.into(), count: 0, worst: (0, E::ZERO) }
    }

    fn take(&mut self, y: E, expected: E, argument: E, other: &dyn Fn() -> String) {
        let distance = E::distance(y, expected);
        if distance > self.worst.0 {
            self.worst = (distance, argument);
        }
        self.count += 1;
        assert!(
            distance <= self.bound,
            "{}({argument:e}{}) = {y:e}, not {expected:e}: {distance} floats apart",
            self.name,
            other()
        );
    }

    fn report(self) {
        let (name, (distance, at)) = (self.name, self.worst);
        println!("{name}: {distance} floats at {at:e}, of {} inputs", self.count);
    }
}

fn run1<E: Real>(function: &Function1, x: &[E]) -> Vec<E> {
    on_every_isa(function.name, || {
        let mut y = vec![E::ZERO; x.len()];
        function.kernel.run([Arg::Slice(x)], &mut y);
        y
    })
}

fn check1(function: &Function1) {
    let bound = bounds(function.name);
    let table = table::f32_bounds(function.name);
    let mut check = Check::<f32>::new(function.name, bound.f32);
    let inputs: Vec<f32> = f32::inputs(sample(F32_SAMPLE));
    for x in inputs.chunks(1 << 16) {
        for (&x, y) in x.iter().zip(run1(function, x)) {
            let expected = (function.rounded)(x);
            check.take(y, expected, x, &String::new);
            if y.is_finite() && y.to_bits() != expected.to_bits() {
                let exact = (function.wide)(x.into());
                let error = reference::error_in_ulp(y, exact);
                let most = table.of(exact);
                assert!(
                    error <= most,
                    "{}({x:e}): {error} ULP, the table has {most}",
                    function.name
                );
            }
        }
    }
    check.report();

    let mut check = Check::<f64>::new(function.name, bound.f64);
    let inside = function.intervals.iter();
    let inside = inside.flat_map(|&(a, b)| interval_sample_f64(a, b, sample(F64_SAMPLE)));
    let inputs: Vec<f64> = f64::inputs(sample(F64_SAMPLE)).into_iter().chain(inside).collect();
    for x in inputs.chunks(1 << 16) {
        for (&x, y) in x.iter().zip(run1(function, x)) {
            check.take(y, (function.reference)(x), x, &String::new);
        }
    }
    check.report();
}

fn run2<E: Real>(function: &Function2, pairs: &[(E, E)]) -> Vec<E> {
    let (a, b): (Vec<E>, Vec<E>) = pairs.iter().copied().unzip();
    on_every_isa(function.name, || {
        let mut y = vec![E::ZERO; a.len()];
        function.kernel.run([Arg::Slice(&a), Arg::Slice(&b)], &mut y);
        y
    })
}

fn check2(function: &Function2) {
    // Some of the pairs that the table's maxima were found among.
    let step = (PAIRS / sample(PAIRS)) as usize;
    let bound = bounds(function.name);
    let table = table::f32_bounds(function.name);
    let mut check = Check::<f32>::new(function.name, bound.f32);
    let pairs: Vec<(f32, f32)> = functions::pairs(function, PAIRS, step);
    for pairs in pairs.chunks(1 << 16) {
        for (&(a, b), y) in pairs.iter().zip(run2(function, pairs)) {
            let expected = (function.rounded)(a, b);
            check.take(y, expected, a, &|| format!(", {b:e}"));
            if y.is_finite() && y.to_bits() != expected.to_bits() {
                let exact = (function.wide)(a.into(), b.into());
                let error = reference::error_in_ulp(y, exact);
                let (name, most) = (function.name, table.of(exact));
                assert!(error <= most, "{name}({a:e}, {b:e}): {error} ULP, the table has {most}");
            }
        }
    }
    check.report();

    let mut check = Check::<f64>::new(function.name, bound.f64);
    let pairs: Vec<(f64, f64)> = functions::pairs(function, PAIRS / 4, step);
    for pairs in pairs.chunks(1 << 16) {
        for (&(a, b), y) in pairs.iter().zip(run2(function, pairs)) {
            check.take(y, (function.reference)(a, b), a, &|| format!(", {b:e}"));
        }
    }
    check.report();
}

/// Checks all functions, or only those that `SWATH_FUNCTION=exp,log` names.
fn check_all<F: 'static>(
    family: impl Iterator<Item = &'static F>,
    name: fn(&F) -> &str,
    check: fn(&F),
) {
    family.filter(|function| functions::wanted(name(function))).for_each(check);
}

macro_rules! families {
    ($($family:ident)*) => {$(
        #[test]
        fn $family() {
            check_all(functions::$family::ROWS.iter(), |f| f.name, check1);
        }
    )*};
}
families! { arithmetic exponential trigonometric special rounding activation }

#[test]
fn binary() {
    check_all(of_two_arguments(), |f| f.name, check2);
}

#[test]
fn every_function_has_a_row_and_a_bound() {
    let bounded = of_one_argument().map(|f| f.name).chain(of_two_arguments().map(|f| f.name));
    let rows: Vec<&str> = bounded.chain(of_gradients().map(|f| f.name)).collect();
    for name in math::NAMES {
        assert!(rows.contains(name), "{name} has no row under tests/suite/functions/");
        let gradient = of_gradients().any(|f| f.name == *name);
        assert!(gradient || ULP_BOUNDS.iter().any(|row| row.name == *name), "{name}: no bound");
    }
    assert_eq!(rows.len(), math::NAMES.len());
}

/// The documentation before `pub struct KERNEL;`, as one line.
fn contract(sources: &[String], kernel: &str) -> String {
    let item = format!("\npub struct {kernel};");
    let source = sources.iter().find(|text| text.contains(&item));
    let source = source.unwrap_or_else(|| panic!("no file has {item}"));
    let before = source[..source.find(&item).expect("found above")].lines().rev();
    let mut lines: Vec<&str> = before.map_while(|line| line.strip_prefix("///")).collect();
    lines.reverse();
    lines.iter().flat_map(|line| line.split_whitespace()).collect::<Vec<_>>().join(" ")
}

/// Every contract must state the maxima of the page, rounded up to three decimals.
#[test]
fn contracts_state_the_measured_maxima() {
    let read = |path: &std::path::Path| std::fs::read_to_string(path).expect("a source file");
    let names = read(&functions::beside_manifest("src/math.rs"));
    let files = std::fs::read_dir(functions::beside_manifest("src/math")).expect("a folder");
    let files = files.map(|file| file.expect("an entry").path()).filter(|path| path.is_file());
    let sources: Vec<String> = files.map(|path| read(&path)).collect();
    let mut compared = 0;
    for row in table::read() {
        if row.dtype != "f32" || row.normal.ulp <= 0.5 {
            continue;
        }
        let kernel = names.lines().find_map(|line| {
            let rest = line.trim().strip_prefix(row.name.as_str())?.strip_prefix(' ')?;
            rest.split([' ', ';']).next()
        });
        let contract = contract(&sources, kernel.expect("a row in math.rs"));
        let up = |ulp: f64| format!("{:.3}", (ulp * 1e3 - 1e-6).ceil() / 1e3);
        let mut stated = format!("Largest error: {} ULP", up(row.normal.ulp));
        if row.subnormal.ulp > 0.5 {
            stated += &format!(", {} where the result is subnormal", up(row.subnormal.ulp));
        }
        assert!(
            contract.contains(&format!("{stated} (f32, ")),
            "{}: {stated}\n{contract}",
            row.name
        );
        compared += 1;
    }
    assert!(compared > 0, "the page has no rows");
}
