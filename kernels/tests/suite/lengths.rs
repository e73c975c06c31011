//! Slices of wrong lengths: every public function panics, naming itself, before it accesses memory.

use crate::{calls, functions};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::calls::{Call, Lengths, Memory, Slot};
use crate::functions::{of_gradients, of_one_argument, of_two_arguments};
use swath_kernels::Arg;

/// The text of the panic in `f`, if any.
fn panic_of(f: impl FnOnce()) -> Option<String> {
    let payload = catch_unwind(AssertUnwindSafe(f)).err()?;
    let text = payload.downcast_ref::<&str>().map(|text| text.to_string());
    Some(text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default())
}

/// A slot with one element more or less.
fn other_length(slot: &Slot, longer: bool) -> Option<Slot> {
    let (size, mut other) = (slot.kind.size(), slot.clone());
    if longer {
        let first = other.content.get(..size).map_or(vec![0; size], <[u8]>::to_vec);
        other.content.extend(first);
    } else {
        other.content.truncate(other.content.len().checked_sub(size)?);
    }
    Some(other)
}

/// The public function, or the reduction, that a call's panic must name.
fn panicking(call: &Call) -> &str {
    match call.function {
        "sums_of_columns" => "sum",
        "magnitudes_of_columns" => "norm1",
        "nonzeros_of_columns" => "norm0",
        "products_of_columns" => "prod",
        "moments_of_columns" => "variance",
        "squares_of_columns" => "norm2",
        "scatter_add_rows_from" => "scatter_add_rows",
        // The variant begins with the name.
        "fold_integer_columns"
        | "end_of_integer_columns"
        | "place_of_integer_columns"
        | "scan_integer_rows"
        | "scan_integer_columns"
        | "with_place"
        | "run_block"
        | "run_block_in_place" => call.variant.split(' ').next().unwrap_or(""),
        function => function,
    }
}

/// True if a panic's text begins with the function's name. Functions of rows and columns, and the
/// other products, may use the name of the operation.
fn names(text: &str, function: &str) -> bool {
    let operation = function.trim_end_matches("_rows").trim_end_matches("_columns");
    let operation = match operation {
        product if product.starts_with("gemm_") => "gemm",
        "push_products" => "dot",
        operation => operation,
    };
    [function, operation]
        .iter()
        .any(|name| text.strip_prefix(name).is_some_and(|rest| rest.starts_with(':')))
}

/// Adds failures to a list; returns the number of panics.
fn check(call: &Call, wrong: &mut Vec<String>) -> usize {
    let mut panics = 0;
    for (i, slot) in call.slots.iter().enumerate() {
        for longer in [false, true] {
            let is_wrong = match slot.lengths {
                Lengths::Exact => true,
                Lengths::AtLeast => !longer,
                Lengths::Any => false,
            };
            let Some(other) = other_length(slot, longer).filter(|_| is_wrong) else { continue };
            let mut slots = call.slots.clone();
            slots[i] = other;
            let bytes = slots.iter().map(|slot| slot.content.len()).max().unwrap_or(0);
            let mut memory = Memory::new(bytes + calls::OFFSETS * 8, slots.len());
            memory.place(&slots, 0);
            let text = panic_of(|| call.run(&mut memory.parts(&slots, 0)));
            if !text.as_ref().is_some_and(|text| names(text, panicking(call))) {
                wrong.push(format!("{}, slice {i}, longer {longer}: {text:?}", call.name()));
            }
            panics += 1;
        }
    }
    panics
}

#[test]
fn wrong_lengths_panic_with_the_function_name() {
    // Silence the thousands of panics expected on this thread; print only the test's own.
    let (silent, loud) = (std::thread::current().id(), std::panic::take_hook());
    let is_silent = Arc::new(AtomicBool::new(true));
    let ends = is_silent.clone();
    std::panic::set_hook(Box::new(move |info| {
        if !is_silent.load(Ordering::Relaxed) || std::thread::current().id() != silent {
            loud(info);
        }
    }));
    let found = panic_of(|| {
        // No other number of rows or columns divides these matrices evenly.
        let lengths: &[usize] = if cfg!(miri) { &[3] } else { &[3, 7, 17, 33] };
        let mut wrong = Vec::new();
        let calls = lengths.iter().flat_map(|&len| calls::every(len));
        let panics: usize = calls.map(|call| check(&call, &mut wrong)).sum();
        assert!(wrong.is_empty(), "{} calls:\n{}", wrong.len(), wrong.join("\n"));
        assert!(panics > 1000 * lengths.len(), "{panics} panics");
        wrong_lengths_of_one_and_two_arguments_panic();
    });
    ends.store(false, Ordering::Relaxed);
    if let Some(text) = found {
        panic!("{text}");
    }
}

fn wrong_lengths_of_one_and_two_arguments_panic() {
    let must = |name: &str, f: &dyn Fn()| {
        let text = panic_of(f).unwrap_or_else(|| panic!("{name}: no panic"));
        assert!(names(&text, name), "{name} panics with {text:?}");
    };
    for (x, y) in [(2, 3), (3, 2), (0, 1), (1, 0), (33, 32)] {
        for function in of_one_argument() {
            let kernel = function.kernel;
            must(function.name, &|| {
                kernel.run([Arg::Slice(&vec![1f32; x])], &mut vec![0.0; y]);
            });
        }
        let all = of_two_arguments().map(|f| (f.name, f.kernel));
        for (name, kernel) in all.chain(of_gradients().map(|f| (f.name, f.kernel))) {
            let (wrong, right) = (vec![1f64; x], vec![1.0; y]);
            let (wrong, right) = (Arg::Slice(&wrong[..]), Arg::Slice(&right[..]));
            must(name, &|| kernel.run([wrong, right], &mut vec![0.0; y]));
            must(name, &|| kernel.run([right, wrong], &mut vec![0.0; y]));
            must(name, &|| kernel.run([Arg::Scalar(1.0), wrong], &mut vec![0.0; y]));
            must(name, &|| kernel.run_in_place([None, Some(wrong)], &mut vec![0.0; y]));
            must(name, &|| kernel.run_in_place([Some(wrong), None], &mut vec![0.0; y]));
        }
    }
}

fn source(name: &str) -> String {
    fs::read_to_string(functions::beside_manifest(name)).expect("a source of this crate")
}

/// The functions that `lib.rs` exports, those of the table in `math.rs` and their row forms, and
/// the methods of a fold that take slices, by name.
fn exported() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for item in source("src/lib.rs").split("\npub use ").skip(1) {
        let item = item.split(';').next().unwrap_or("");
        let words = item.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':' && c != '*');
        let functions = words.filter(|word| {
            !word.contains(':') && word.starts_with(|c: char| c.is_ascii_lowercase())
        });
        names.extend(functions.map(String::from));
    }
    let table = source("src/math.rs");
    let rows = table.rsplit("\nkernels! {").next().expect("the table").split("\n}").next();
    for row in rows.unwrap_or("").lines().map(str::trim).filter(|row| row.ends_with(';')) {
        names.extend(row.split(' ').next().map(String::from));
    }
    for method in source("src/map/kernel.rs").split(" fn run_block").skip(1) {
        names.insert(format!("run_block{}", method.split(['<', '(']).next().unwrap_or("")));
    }
    for method in source("src/reduce/take.rs").split("pub fn push_").skip(1) {
        names.insert(format!("push_{}", method.split(['<', '(']).next().unwrap_or("")));
    }
    names
}

#[test]
fn every_public_function_is_called() {
    let mut called: BTreeSet<String> = calls::every(3).iter().map(|c| c.function.into()).collect();
    called.extend(of_one_argument().map(|f| f.name.to_string()));
    called.extend(of_two_arguments().map(|f| f.name.to_string()));
    called.extend(of_gradients().map(|f| f.name.to_string()));
    // Kinds of operands and epilogues, under labels of their own.
    called.retain(|name| !name.starts_with("gemm_"));
    // Called under the labels of `calls::reductions`.
    called.extend(["reduce", "reduce_columns", "partial_columns"].map(String::from));
    let exported = exported();
    assert!(exported.len() > 120, "{exported:?}");
    let missing: Vec<&String> = exported.difference(&called).collect();
    // Those that run a program's own operations are tested beside them, in `map/program.rs`; the others take no
    // slices.
    let elsewhere = ["isa", "map_block_with", "map_with", "power", "pulp", "try_isa"];
    assert_eq!(missing, elsewhere);
}

#[test]
fn the_readme_names_every_public_function() {
    let (lib, readme) = (source("src/lib.rs"), source("README.md"));
    let names = lib.split("pub use api::{").nth(1).and_then(|list| list.split('}').next());
    let names = names.expect("the functions").split(',').map(str::trim);
    let is_function = |name: &&str| name.starts_with(|c: char| c.is_ascii_lowercase());
    let of_a_family = |name: &str| {
        let is_softmax = name.starts_with("softmax_") || name.starts_with("log_softmax_");
        is_softmax || name == "math::*"
    };
    let named = |name: &&str| readme.contains(&format!("`{name}`"));
    let missing: Vec<&str> =
        names.filter(is_function).filter(|name| !of_a_family(name) && !named(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn products_and_sums_are_called_with_every_element_type() {
    let mut called: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for call in calls::every(3) {
        called.entry(call.function).or_default().insert(call.dtype);
    }
    let source = source("src/api/products.rs");
    let functions = source.lines().filter_map(|line| line.strip_prefix("pub fn "));
    let mut functions: Vec<String> =
        functions.filter_map(|line| Some(line.split_once("<T: Factor>")?.0.to_string())).collect();
    assert_eq!(functions, ["gemm"]);
    for kind in ["bias", "epilogue", "packed", "indirect", "windows", "windows_transposed"] {
        functions.push(format!("gemm_{kind}"));
    }
    for fold in ["sum", "mean", "prod", "variance", "std", "norm0", "norm1", "norm2"] {
        functions.extend([fold.to_string(), format!("{fold}_columns")]);
    }
    functions.push("dot".to_string());
    for function in functions {
        for dtype in ["bf16", "f16", "f32", "f64"] {
            assert!(called[&*function].contains(dtype), "{function} of {dtype} is not called");
        }
    }
}
