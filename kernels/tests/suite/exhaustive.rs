//! Measures every function and writes `ACCURACY.md`: f32 functions of one argument on all 2^32
//! inputs, those of two on 2^30 pairs and the hard ones; f64 functions of one argument on 2^24 bit
//! patterns and as many numbers from each of their intervals, those of two on 2^25 pairs. All
//! instruction sets of the machine must give the same bits.
//!
//! ```text
//! cargo test --release -p swath-kernels -- --ignored exhaustive
//! ```
//!
//! * It takes up to 90 minutes on two cores, and can be interrupted: a function is not measured
//!   again while its bits on a sample, and the number of pairs, stay the same (`SWATH_AGAIN=1`
//!   measures it anyway).
//! * The page names the instruction sets of all machines that found the same figures.
//! * `SWATH_FUNCTION=exp,log` measures only these; the others keep their rows.
//! * `SWATH_STRIDE=257` takes every 257th input, for emulators, and compares the maxima with those
//!   on the page instead of writing it.

use crate::{functions, reference, table};
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::functions::{Function1, Function2, Real, of_one_argument, of_two_arguments};
use crate::table::{Row, Worst};
use sha2::{Digest, Sha256};
use swath_kernels::math::ULP_BOUNDS;
use swath_kernels::testing::*;
use swath_kernels::{Arg, Isa};

const TEXT: &str = "\
# Accuracy

Written by `cargo test --release -p swath-kernels -- --ignored exhaustive`. f32 functions of one argument ran on
all 2^32 inputs, those of two on 2^30 pairs spread over all bit patterns and over the intervals where the function is
neither trivial nor out of range, and on pairs known to be hard. f64 functions of one
argument ran on 2^24 bit patterns and 2^24 numbers from each interval, those of two on 2^25 pairs: of bit patterns, but
every second from one of the intervals in turn where the function has any. Every instruction set named computed every
result, with the same bits. NEON runs every 257th of these inputs under an emulator (`.ci/run neon_accuracy`), which
fails where an error exceeds the one here; its bits are those of `HASHES.txt`.

Functions of three arguments are compared with twice their precision (`ternary.rs` in `kernels/tests/suite/`),
derivatives of one argument with slopes in as much (`gradients.rs`): what they promise stands with each of them.

Errors of f32 are in units in the last place of the exact value (its subnormal spacing where it is subnormal): 0.5 is
correct rounding. Those of f64 are counts of floats from the correctly rounded result. The results whose exact value is
subnormal have a column of their own. The class of every result (NaN, infinity, sign of zero) was that of the reference:
CORE-MATH's correctly rounded functions, and formulas in twice the precision for those that it lacks.
`kernels/tests/suite/accuracy.rs` compares a sample of f32 with this table on every run, and one of f64 with `ULP_BOUNDS`.

| function | type | instruction sets | inputs | largest error | at | of subnormal results | at | correctly rounded, % |
|---|---|---|---|---|---|---|---|---|
";

/// Arguments per chunk, measured by one thread.
const CHUNK: usize = 1 << 13;

fn stride() -> u64 {
    std::env::var("SWATH_STRIDE").map_or(1, |s| s.parse().expect("a number"))
}

/// The maxima that a thread, and then all threads, found.
#[derive(Clone, Default)]
struct Found {
    /// Error and key of the arguments, for normal and for subnormal exact values.
    worst: [(f64, u64); 2],
    inputs: u64,
    correct: u64,
}

impl Found {
    fn take(&mut self, subnormal: bool, error: f64, key: u64) {
        let worst = &mut self.worst[usize::from(subnormal)];
        // Of equal errors the smallest key is kept, so that the result does not depend on the order of
        // threads.
        if error > worst.0 || (error == worst.0 && key < worst.1) {
            *worst = (error, key);
        }
    }

    fn join(&mut self, other: &Found) {
        for (i, &(error, key)) in other.worst.iter().enumerate() {
            self.take(i == 1, error, key);
        }
        self.inputs += other.inputs;
        self.correct += other.correct;
    }
}

/// Measures chunks on all cores; `chunk` adds its maxima.
fn measure(chunks: u64, chunk: impl Fn(u64, &mut Found) + Sync) -> Found {
    let next = AtomicU64::new(0);
    let total = Mutex::new(Found::default());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                let mut found = Found::default();
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= chunks {
                        break;
                    }
                    chunk(i, &mut found);
                }
                total.lock().expect("no thread panicked").join(&found);
            });
        }
    });
    total.into_inner().expect("no thread panicked")
}

fn isas() -> impl Iterator<Item = Isa> {
    levels().into_iter().rev()
}

/// Runs `f` into `y` on every instruction set; all must give the same bits.
fn on_every_isa<E: Real>(name: &str, y: &mut [E], again: &mut [E], f: impl Fn(&mut [E])) {
    for (i, isa) in isas().enumerate() {
        let out = if i == 0 { &mut *y } else { &mut *again };
        with_isa(isa, || f(out));
        if i > 0 {
            for (y, other) in y.iter().zip(&*again) {
                assert!(y.canonical() == other.canonical(), "{name}: {y:e}, on {isa} {other:e}");
            }
        }
    }
}

/// Compares an f32 result with the references.
fn compare_f32(
    found: &mut Found,
    key: u64,
    y: f32,
    expected: f32,
    wide: impl Fn() -> f64,
    what: &dyn Fn() -> String,
) {
    found.inputs += 1;
    if y.to_bits() == expected.to_bits() {
        found.correct += 1;
        return;
    }
    assert!(same_class_f32(y, expected), "{} = {y:e}, not {expected:e}", what());
    if y.is_nan() || y.is_infinite() {
        found.correct += 1;
        return;
    }
    let exact = wide();
    let tiny = exact.abs() < f64::from(f32::MIN_POSITIVE);
    found.take(tiny, reference::error_in_ulp(y, exact), key);
}

fn compare_f64(found: &mut Found, key: u64, y: f64, expected: f64, what: &dyn Fn() -> String) {
    found.inputs += 1;
    let distance = ulp_distance_f64(y, expected);
    let right = distance == 0 && same_class_f64(y, expected);
    assert!(right || same_class_f64(y, expected), "{} = {y:e}, not {expected:e}", what());
    found.correct += u64::from(right);
    if distance > 0 {
        let tiny = expected.abs() < f64::MIN_POSITIVE;
        found.take(tiny, distance as f64, key);
    }
}

fn one_f32(function: &Function1) -> Found {
    let stride = stride();
    measure((1u64 << 32).div_ceil(CHUNK as u64 * stride), |chunk, found| {
        let first = chunk * CHUNK as u64 * stride;
        let bits = (0..CHUNK as u64).map(|i| first + i * stride).take_while(|&b| b < 1 << 32);
        let x: Vec<f32> = bits.map(|bits| f32::from_bits(bits as u32)).collect();
        let (mut y, mut again) = (vec![0.0; x.len()], vec![0.0; x.len()]);
        on_every_isa(function.name, &mut y, &mut again, |y| {
            function.kernel.run([Arg::Slice(&x)], y)
        });
        for (&x, &y) in x.iter().zip(&y) {
            let wide = || (function.wide)(x.into());
            let what = || format!("{}({x:e})", function.name);
            compare_f32(found, x.to_bits().into(), y, (function.rounded)(x), wide, &what);
        }
    })
}

/// Argument number `i`: bit patterns, then each interval in turn.
fn one_f64(function: &Function1) -> Found {
    let per_list = (1u64 << 24) / stride();
    let lists = 1 + function.intervals.len() as u64;
    let chunks_per_list = per_list.div_ceil(CHUNK as u64);
    measure(chunks_per_list * lists, |chunk, found| {
        let (list, first) = (chunk / chunks_per_list, chunk % chunks_per_list * CHUNK as u64);
        let x: Vec<f64> = (first..first + CHUNK as u64)
            .map(|i| match list.checked_sub(1) {
                None => f64::from_bits(scattered(i)),
                Some(interval) => {
                    let (low, high) = function.intervals[interval as usize];
                    low + (high - low) * unit(scattered(i))
                }
            })
            .collect();
        let (mut y, mut again) = (vec![0.0; x.len()], vec![0.0; x.len()]);
        on_every_isa(function.name, &mut y, &mut again, |y| {
            function.kernel.run([Arg::Slice(&x)], y)
        });
        for (&x, &y) in x.iter().zip(&y) {
            let what = || format!("{}({x:e})", function.name);
            compare_f64(found, x.to_bits(), y, (function.reference)(x), &what);
        }
    })
}

/// The golden-ratio sequence over all 64-bit numbers.
fn scattered(i: u64) -> u64 {
    i.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// A second sequence, by the square root of two.
fn scattered_again(i: u64) -> u64 {
    i.wrapping_mul(0x6a09_e667_f3bc_c909)
}

/// The number in 0..1 given by the first bits.
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// Pair number `i` for `f64`; `None` stands for a pair of bit patterns.
fn in_interval(function: &Function2, i: u64) -> Option<(f64, f64)> {
    let count = function.intervals.len() as u64;
    if count == 0 || i.is_multiple_of(2) {
        return None;
    }
    let [a, b] = function.intervals[(i / 2 % count) as usize];
    let number = |(low, high): (f64, f64), bits| low + (high - low) * unit(bits);
    Some((number(a, scattered(i)), number(b, scattered_again(i))))
}

fn two_f32(function: &Function2) -> Found {
    let pairs = (1u64 << 30) / stride();
    let chunks = pairs / CHUNK as u64;
    // The last chunk holds the special and hard pairs, and the sample of every test run.
    measure(chunks + 1, |chunk, found| {
        let first = chunk * CHUNK as u64;
        let pairs: Vec<(f32, f32)> = if chunk == chunks {
            functions::pairs(function, functions::PAIRS, 1)
        } else {
            let pair = |i: u64| match in_interval(function, i) {
                Some((a, b)) => (a as f32, b as f32),
                None => {
                    let number = |bits: u64| f32::from_bits((bits >> 32) as u32);
                    (number(scattered(i)), number(scattered_again(i)))
                }
            };
            (first..first + CHUNK as u64).map(pair).collect()
        };
        let (a, b): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
        let (mut y, mut again) = (vec![0.0; a.len()], vec![0.0; a.len()]);
        on_every_isa(function.name, &mut y, &mut again, |y| {
            function.kernel.run([Arg::Slice(&a), Arg::Slice(&b)], y);
        });
        for ((&a, &b), &y) in a.iter().zip(&b).zip(&y) {
            let key = u64::from(a.to_bits()) << 32 | u64::from(b.to_bits());
            let wide = || (function.wide)(a.into(), b.into());
            let what = || format!("{}({a:e}, {b:e})", function.name);
            compare_f32(found, key, y, (function.rounded)(a, b), wide, &what);
        }
    })
}

/// Pair number `i` for f64. A key is too small for both arguments, so it is the number of the pair.
fn pair_f64(function: &Function2, i: u64) -> (f64, f64) {
    let bits = || (f64::from_bits(scattered(i)), f64::from_bits(scattered_again(i)));
    in_interval(function, i).unwrap_or_else(bits)
}

fn two_f64(function: &Function2) -> Found {
    let chunks = (1u64 << 25) / stride() / CHUNK as u64;
    measure(chunks, |chunk, found| {
        let keys = chunk * CHUNK as u64..(chunk + 1) * CHUNK as u64;
        let pairs = keys.clone().map(|i| pair_f64(function, i));
        let (a, b): (Vec<f64>, Vec<f64>) = pairs.unzip();
        let (mut y, mut again) = (vec![0.0; a.len()], vec![0.0; a.len()]);
        on_every_isa(function.name, &mut y, &mut again, |y| {
            function.kernel.run([Arg::Slice(&a), Arg::Slice(&b)], y);
        });
        for (key, ((&a, &b), &y)) in keys.zip(a.iter().zip(&b).zip(&y)) {
            let what = || format!("{}({a:e}, {b:e})", function.name);
            compare_f64(found, key, y, (function.reference)(a, b), &what);
        }
    })
}

/// A digest of the results on a sample; while it stays the same, earlier measurements are valid.
fn fingerprint<E: Real>(results: &[E]) -> String {
    let mut hasher = Sha256::new();
    results.iter().for_each(|y| hasher.update(y.canonical().to_le_bytes()));
    format!("{:x}", hasher.finalize())
}

/// The row of one function and element type, measured or kept from an earlier run.
fn row(
    name: &str,
    dtype: &str,
    fingerprint: &str,
    measure: impl FnOnce() -> Found,
    argument: impl Fn(u64) -> String,
) -> Row {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("exhaustive");
    fs::create_dir_all(&folder).expect("the target folder is writable");
    let file = folder.join(format!("{name}-{dtype}-{}", stride()));
    let again = std::env::var_os("SWATH_AGAIN").is_some();
    if let Ok(text) = fs::read_to_string(&file)
        && let Some((print, line)) = text.split_once('\n')
        && print == fingerprint
        && !again
    {
        println!("{line}  (measured before)");
        return Row::parse(line.trim()).expect("a row written by this program");
    }
    let found = measure();
    let worst = |(error, key): (f64, u64), least: f64| match error > 0.0 {
        true => Worst::new(error, argument(key)),
        // Correctly rounded throughout.
        false => Worst::new(least, "all".to_owned()),
    };
    let least = if dtype == "f32" { 0.5 } else { 0.0 };
    let share = 100.0 * found.correct as f64 / found.inputs as f64;
    let row = Row {
        name: name.to_owned(),
        dtype: dtype.to_owned(),
        isas: isas().map(Isa::name).collect::<Vec<_>>().join(" "),
        inputs: found.inputs.to_string(),
        normal: worst(found.worst[0], least),
        subnormal: worst(found.worst[1], least),
        // Rounded down: 100 means always.
        correct: format!("{:.4}", (share * 1e4).floor() / 1e4),
    };
    println!("{row}");
    fs::write(&file, format!("{fingerprint}\n{row}\n")).expect("the target folder is writable");
    row
}

fn rows1(function: &Function1) -> [Row; 2] {
    let name = function.name;
    let sample = f32::inputs(1 << 16);
    let mut y = vec![0.0; sample.len()];
    function.kernel.run([Arg::Slice(&sample)], &mut y);
    let narrow = row(
        name,
        "f32",
        &fingerprint(&y),
        || one_f32(function),
        |key| format!("{:e}", f32::from_bits(key as u32)),
    );
    let sample = f64::inputs(1 << 16);
    let mut y = vec![0.0; sample.len()];
    function.kernel.run([Arg::Slice(&sample)], &mut y);
    let wide = row(
        name,
        "f64",
        &fingerprint(&y),
        || one_f64(function),
        |key| format!("{:e}", f64::from_bits(key)),
    );
    [narrow, wide]
}

fn rows2(function: &Function2) -> [Row; 2] {
    fn sample<E: Real>(function: &Function2) -> String {
        let (a, b): (Vec<E>, Vec<E>) =
            functions::pairs::<E>(function, 1 << 14, 1).into_iter().unzip();
        let mut y = vec![E::ZERO; a.len()];
        function.kernel.run([Arg::Slice(&a), Arg::Slice(&b)], &mut y);
        format!("{} {}", fingerprint(&y), functions::PAIRS)
    }
    let name = function.name;
    let narrow = row(
        name,
        "f32",
        &sample::<f32>(function),
        || two_f32(function),
        |key| {
            let number = |bits: u64| f32::from_bits(bits as u32);
            format!("{:e}, {:e}", number(key >> 32), number(key))
        },
    );
    let wide = row(
        name,
        "f64",
        &sample::<f64>(function),
        || two_f64(function),
        |key| {
            let (a, b) = pair_f64(function, key);
            format!("{a:e}, {b:e}")
        },
    );
    [narrow, wide]
}

/// Checks that a row is within its promised bounds.
fn assert_kept(row: &Row) {
    let worst = row.normal.ulp.max(row.subnormal.ulp);
    let most = match row.dtype.as_str() {
        "f32" => table::allowed(&row.name),
        // In floats from the correctly rounded result.
        _ => {
            let promised = ULP_BOUNDS.iter().find(|bound| bound.name == row.name);
            f64::from(promised.expect("a bound").f64)
        }
    };
    assert!(worst <= most, "{row}: more than {most}");
}

/// The row, with the instruction sets of the page's row added if its figures are equal, measured on other
/// machines.
fn with_other_machines(mut row: Row, page: &[Row]) -> Row {
    let same = |other: &&Row| Row { isas: row.isas.clone(), ..(*other).clone() } == row;
    if let Some(other) = page.iter().find(same) {
        let names: Vec<&str> = row.isas.split(' ').chain(other.isas.split(' ')).collect();
        let levels = Isa::ALL.into_iter().rev().map(Isa::name);
        row.isas = levels.filter(|name| names.contains(name)).collect::<Vec<_>>().join(" ");
    }
    row
}

/// The page must state the numbers of f64 arguments of its rows.
#[test]
fn the_page_states_the_number_of_arguments() {
    let page = fs::read_to_string(functions::beside_manifest("ACCURACY.md")).expect("the page");
    assert!(page.starts_with(TEXT), "the page's text is another than the one here");
    let rows = table::read();
    let inputs = |name: &str| {
        let row = rows.iter().find(|row| row.name == name && row.dtype == "f64");
        row.unwrap_or_else(|| panic!("{name} has no row")).inputs.parse::<u64>().expect("a number")
    };
    for function in of_one_argument() {
        let lists = 1 + function.intervals.len() as u64;
        assert_eq!(inputs(function.name), lists << 24, "{}", function.name);
    }
    for function in of_two_arguments() {
        assert_eq!(inputs(function.name), 1 << 25, "{}", function.name);
        let of_bits = (0..1 << 10).filter(|&i| in_interval(function, i).is_none()).count();
        let expected = if function.intervals.is_empty() { 1 << 10 } else { 1 << 9 };
        assert_eq!(of_bits, expected, "{}", function.name);
    }
}

#[test]
#[ignore = "up to 90 minutes in release"]
fn exhaustive() {
    let before = table::read();
    let mut rows = Vec::new();
    let mut keep = |name: &str, measured: &dyn Fn() -> [Row; 2]| {
        if functions::wanted(name) {
            let measured = measured().map(|row| with_other_machines(row, &before));
            measured.iter().for_each(assert_kept);
            rows.extend(measured);
        } else {
            rows.extend(before.iter().filter(|row| row.name == name).cloned());
        }
        if stride() == 1 {
            let known =
                |row: &&Row| !rows.iter().any(|r| (&r.name, &r.dtype) == (&row.name, &row.dtype));
            let rest: Vec<Row> = before.iter().filter(known).cloned().collect();
            table::write(TEXT, &[rows.clone(), rest].concat());
        }
    };
    of_one_argument().for_each(|function| keep(function.name, &|| rows1(function)));
    of_two_arguments().for_each(|function| keep(function.name, &|| rows2(function)));
    if stride() == 1 {
        table::write(TEXT, &rows);
        return;
    }
    for row in &rows {
        let page = before.iter().find(|r| (&r.name, &r.dtype) == (&row.name, &row.dtype));
        let page = page.unwrap_or_else(|| panic!("{}: no row on the page", row.name));
        assert!(
            row.normal.ulp <= page.normal.ulp && row.subnormal.ulp <= page.subnormal.ulp,
            "{row}"
        );
    }
}
