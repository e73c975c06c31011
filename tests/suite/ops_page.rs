//! Generates `docs/OPS.md` and compares it: names, formulas and rules come from the op table and the registry
//! of `gradcheck`, dtypes and orders from running the ops.
//!
//! `SWATH_BLESS=1 cargo test --test suite ops_page` rewrites the page.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::gradcheck::cases::{T, suite};
use crate::gradcheck::composed::COMPOSED;
use crate::gradcheck::registry::{Kind, RecordedOp, recorded_ops};
use crate::mutation::mutants::mutants;
use swath::ops::{CompareOp, ReduceOp};
use swath::prelude::*;
use swath_kernels::math::ULP_BOUNDS;

const INTRODUCTION: &str = "\
# Ops

Written by `SWATH_BLESS=1 cargo test --test suite ops_page` from the op table (`src/ops/table/`), the
registry of the other ops (`tests/suite/gradcheck/registry.rs`) and the code itself; `cargo test` fails where
the page says something else.

- **gradient**: that of each input, from the gradient `g` of the result. In rows of the op table it is
  the code of the rule: `x`, `a`, `b` are inputs, `y` is the result. What broadcasting repeated is
  summed afterwards, for every op.
- Where an input is NaN, so is the gradient of every activation, `abs` among them, times the upstream gradient. `max`,
  `min`, `maximum`, `minimum` and `clamp` choose an operand, NaN too, which gets the upstream gradient.
- **order 1**, **order 2**: *yes*: the gradient and the gradient of the gradient are those of central
  differences in f64, in every layout and broadcast (`tests/suite/gradcheck.rs`); *0*: so they are, and zero
  almost everywhere.
- **mutants**: ways in which `tests/suite/mutation.rs` makes the rules wrong, each of which is noticed.
- **dtypes**: *floats* are f16, bf16, f32, f64, *integers* are i64, i32, u32, u8, i8, i16, u16, u64; operands have one dtype.
- **ULP**: floats between the result and the correctly rounded one, at most, in f32 and f64, on every
  instruction set; the others promise none.
";

/// Dtypes in which the first case of an op can be computed.
fn dtypes(op: &str) -> String {
    let case = suite(op).swap_remove(0);
    let accepts = |dtype: &DType| {
        let inputs: Vec<T> = case.inputs.iter().map(|x| x.to_dtype(*dtype).unwrap()).collect();
        !matches!(
            (case.f)(&inputs),
            Err(Error::UnsupportedDType { .. } | Error::DTypeMismatch { .. })
        )
    };
    let accepted: Vec<DType> = DType::ALL.into_iter().filter(accepts).collect();
    named(&accepted)
}

fn named(dtypes: &[DType]) -> String {
    if dtypes.len() == DType::ALL.len() {
        return "all".to_owned();
    }
    let (floats, others): (Vec<DType>, Vec<DType>) =
        dtypes.iter().copied().partition(|dtype| dtype.is_float());
    let all_floats = DType::ALL.into_iter().filter(|dtype| dtype.is_float()).count();
    let floats = match floats.len() == all_floats {
        true => vec!["floats".to_owned()],
        false => floats.iter().map(DType::to_string).collect(),
    };
    let is_integer = |dtype: &&DType| dtype.has_arithmetic() && !dtype.is_float();
    let others = match others == DType::ALL.iter().filter(is_integer).copied().collect::<Vec<_>>() {
        true => vec!["integers".to_owned()],
        false => others.iter().map(DType::to_string).collect(),
    };
    floats.into_iter().chain(others).collect::<Vec<_>>().join(", ")
}

/// "yes" or "0" for each of two orders: "0" if all derivatives are zero at the points of the op's cases.
fn orders(op: &str) -> [&'static str; 2] {
    let is_zero = |x: &T| x.abs().unwrap().max(None, false).unwrap().item::<f64>().unwrap() == 0.0;
    let mut found = [false; 2];
    for case in suite(op) {
        let leaves: Vec<T> = case.inputs.iter().map(T::requires_grad).collect();
        let xs: Vec<&T> = leaves.iter().collect();
        let y = (case.f)(&leaves).unwrap_or_else(|error| panic!("{}: {error}", case.name));
        let weights = T::linspace_as(0.5, 1.5, y.numel(), DType::F64).unwrap();
        let y = y.mul(weights.reshape(*y.shape()).unwrap()).unwrap().sum(None, false).unwrap();
        let first = grad(&y, &xs, true).unwrap();
        let wide = |g: &T| g.to_dtype(DType::F64).unwrap();
        found[0] |= first.iter().any(|g| !is_zero(&wide(g)));
        let square = |g: &T| wide(g).square().unwrap().sum(None, false).unwrap();
        let total = first.iter().map(square).reduce(|a, b| a.add(&b).unwrap()).unwrap();
        if total.is_tracked() {
            let second = total.backward().unwrap();
            found[1] |= xs.iter().filter_map(|x| second.get(x)).any(|g| !is_zero(&wide(g)));
        }
    }
    found.map(|found| if found { "yes" } else { "0" })
}

/// Text in a cell of a table.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// Code from `stringify`, with the spaces that rustfmt would leave.
fn code(text: &str) -> String {
    let spaces = [(" .", "."), (" ,", ","), (" ;", ";"), (" ::", "::"), (":: ", "::"), ("& ", "&")];
    let mut text = cell(text);
    for (from, to) in spaces.into_iter().chain([("(- ", "(-")]) {
        text = text.replace(from, to);
    }
    format!("`{text}`")
}

fn row(page: &mut String, op: &RecordedOp, ulp: bool) {
    let is_code = matches!(op.kind, Kind::Unary | Kind::Binary | Kind::Ternary);
    let gradients = op.gradients.iter().map(|&(input, rule)| {
        let rule = if is_code { code(rule) } else { cell(rule) };
        if op.gradients.len() == 1 { rule } else { format!("{input}: {rule}") }
    });
    let gradients: Vec<String> = gradients.collect();
    let [first, second] = orders(op.name);
    let count = mutants().iter().filter(|mutant| mutant.op == op.name).count();
    let (formula, gradients, dtypes) = (cell(op.formula), gradients.join("<br>"), dtypes(op.name));
    write!(
        page,
        "| `{}` | {formula} | {gradients} | {first} | {second} | {count} | {dtypes} |",
        op.name
    )
    .unwrap();
    if ulp {
        let bound = ULP_BOUNDS.iter().find(|bound| bound.name == op.name);
        let bound = bound.map(|bound| format!(" {}, {} ", bound.f32, bound.f64));
        write!(page, "{}|", bound.unwrap_or_else(|| " ".to_owned())).unwrap();
    }
    page.push('\n');
}

fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    let sections = [
        (Kind::Unary, "Functions of one tensor"),
        (Kind::Binary, "Functions of two tensors"),
        (Kind::Ternary, "Functions of three tensors"),
        (Kind::Reduction, "Reductions"),
        (Kind::Fused, "Fused ops"),
        (Kind::Parametric, "Products, selection, indexing, views"),
    ];
    for (kind, title) in sections {
        let ops: Vec<RecordedOp> =
            recorded_ops().into_iter().filter(|op| op.kind == kind).collect();
        if ops.is_empty() {
            continue;
        }
        let ulp = matches!(kind, Kind::Unary | Kind::Binary);
        write!(page, "\n## {title}\n\n").unwrap();
        let twice = ops.iter().filter(|op| op.two_rules).map(|op| format!("`{}`", op.name));
        let twice: Vec<String> = twice.collect();
        if !twice.is_empty() {
            write!(
                page,
                "Of {}\na gradient that will itself be differentiated is recorded in simpler ops: both \
                 ways are checked.\n\n",
                twice.join(", ")
            )
            .unwrap();
        }
        page.push_str("| op | formula | gradient | order 1 | order 2 | mutants | dtypes |");
        page.push_str(if ulp { " ULP |\n" } else { "\n" });
        page.push_str("|---|---|---|---|---|---|---|");
        page.push_str(if ulp { "---|\n" } else { "\n" });
        ops.iter().for_each(|op| row(&mut page, op, ulp));
    }
    page.push_str(
        "\n## Made of the ops above\n\n| method | what | made of | order 1 | order 2 | dtypes |\n",
    );
    page.push_str("|---|---|---|---|---|---|\n");
    for op in COMPOSED {
        let ([first, second], dtypes) = (orders(op.name), dtypes(op.name));
        let (name, formula) = (op.name, cell(op.formula));
        writeln!(page, "| `{name}` | {formula} | {} | {first} | {second} | {dtypes} |", op.ops)
            .unwrap();
    }
    let compare = |dtype: &DType| {
        let x = T::zeros(1, *dtype).unwrap();
        CompareOp::ALL.iter().all(|&op| x.compare(op, &x).is_ok())
    };
    let dtypes: Vec<DType> = DType::ALL.into_iter().filter(compare).collect();
    let names: Vec<String> = CompareOp::ALL.iter().map(|op| format!("`{}`", op.name())).collect();
    let recorded: Vec<&str> = recorded_ops().iter().map(|op| op.name).collect();
    let reductions = ReduceOp::ALL.into_iter().filter(|op| !recorded.contains(&op.name()));
    let reductions: Vec<String> = reductions
        .map(|op| {
            let result = T::ones(1, DType::F32).unwrap().reduce(op, None, false).unwrap();
            format!("`{}` ({})", op.name(), result.dtype())
        })
        .collect();
    write!(
        page,
        "\n## Without a gradient\n\nComparisons give `Bool`: {}, of {}.\nA truth value times a \
         number multiplies as 0 or 1 of the number's dtype.\n\nReductions: {}.\n\nOf integers: \
         `bitwise_and`, `bitwise_or`, `bitwise_xor`, `bitwise_not` (of `Bool` too),\n\
         `bitwise_left_shift`, `bitwise_right_shift`, `gcd`, `lcm`. Of all dtypes: `signbit`,\n\
         `heaviside`, `view_as` (the same bits as another dtype).\n",
        names.join(", "),
        named(&dtypes),
        reductions.join(", "),
    )
    .unwrap();
    page
}

#[test]
fn the_page_of_ops_matches_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/OPS.md");
    let expected = page();
    if std::env::var_os("SWATH_BLESS").is_some_and(|value| value == "1") {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, expected).unwrap();
        return;
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    if found != expected {
        let (found, expected): (Vec<&str>, Vec<&str>) =
            (found.lines().collect(), expected.lines().collect());
        let place = (0..).find(|&i| found.get(i) != expected.get(i)).unwrap_or_default();
        panic!(
            "docs/OPS.md is not what the code says, first in line {}\n   page: {}\n   code: {}\n\
             `SWATH_BLESS=1 cargo test --test suite ops_page` writes it anew",
            place + 1,
            found.get(place).unwrap_or(&"(end)"),
            expected.get(place).unwrap_or(&"(end)"),
        );
    }
}

/// The registry may name only methods that exist, and no text in a cell may break its table.
#[test]
fn every_row_has_as_many_cells_as_its_header() {
    let page = page();
    for table in page.split("\n\n").filter(|part| part.starts_with('|')) {
        let cells = |line: &str| line.replace("\\|", "").matches('|').count();
        let counts: Vec<usize> = table.lines().map(cells).collect();
        assert!(counts.iter().all(|count| *count == counts[0]), "{table}");
    }
}
