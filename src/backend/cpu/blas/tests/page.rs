//! The table of layouts in `docs/BLAS.md`, made from the calls that the mock recorded.
//!
//! `SWATH_BLESS=1 cargo test --lib the_page_of_layouts` regenerates it.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use super::*;

const BEGIN: &str = "<!-- Made by src/backend/cpu/blas/tests/page.rs. -->\n";
const END: &str = "<!-- The end of what is made. -->\n";

/// Name and description of an arrangement on the page.
fn description(kind: Arrangement) -> (&'static str, &'static str) {
    match kind {
        Arrangement::Plain => ("plain", "row after row"),
        Arrangement::Transposed => ("transposed", "`x.t()`"),
        Arrangement::Wider => ("part", "rows of a wider matrix, `x.narrow(1, …)`"),
        Arrangement::WiderTransposed => ("part, transposed", "the transpose of such rows"),
        Arrangement::Flipped => ("flipped", "from the last row to the first, `x.flip(0)`"),
        Arrangement::Spread => ("every other", "every other column, `x.slice(s![.., ..;2])`"),
        Arrangement::Repeated => ("repeated", "one row again and again, `x.broadcast_to(…)`"),
    }
}

/// Strides of a matrix `[r, c]` in terms of r and c, deduced from two sizes.
fn strides(kind: Arrangement) -> String {
    let of = |rows, cols| kind.of(rows, cols).0;
    let (first, second) = (of(10, 100), of(11, 1000));
    let letter = |axis: usize| match (first[axis], second[axis]) {
        (10, 11) => "r".to_owned(),
        (100, 1000) => "c".to_owned(),
        (-100, -1000) => "−c".to_owned(),
        (200, 2000) => "2c".to_owned(),
        (15, 16) => "r + 5".to_owned(),
        (105, 1005) => "c + 5".to_owned(),
        (same, other) if same == other => same.to_string(),
        other => unreachable!("{other:?}"),
    };
    format!("[{}, {}]", letter(0), letter(1))
}

/// Reason why BLAS cannot express an arrangement.
fn reason(kind: Arrangement) -> &'static str {
    let ([down, right], ..) = kind.of(19, 21);
    match () {
        () if down == 0 || right == 0 => "a stride of 0",
        () if down < 0 || right < 0 => "a negative stride",
        () if down != 1 && right != 1 => "no stride of 1",
        () => unreachable!("{kind:?} is expressible"),
    }
}

/// Transpose flags of the only call, which reads both operands in place; `None` if there was no call.
fn flags(a_kind: Arrangement, b_kind: Arrangement) -> Option<String> {
    let mut rng = Rng::seed(76);
    let [of_f32, of_f64] = [DType::F32, DType::F64].map(|dtype| {
        let a = operand(a_kind, [17, 19], 1, false, dtype, &mut rng);
        let b = operand(b_kind, [19, 21], 1, false, dtype, &mut rng);
        let (c, records) = mock::with(library(), || CpuBackend::matmul(&a, &b).unwrap());
        check(&c, &a, &b, &format!("{dtype} {a_kind:?} {b_kind:?}"));
        assert!(records.len() <= 1);
        records.first().map(|record| {
            assert!(reads_in_place(record, &a, &b), "{a_kind:?} {b_kind:?}: a copy");
            record.transposed.map(|transposed| if transposed { "T" } else { "N" }).concat()
        })
    });
    assert_eq!(of_f32, of_f64);
    of_f32
}

fn table() -> String {
    let mut page = String::from("\n| name | strides of `[r, c]` | |\n|---|---|---|\n");
    for kind in ALL {
        let (name, meaning) = description(kind);
        writeln!(page, "| {name} | `{}` | {meaning} |", strides(kind)).unwrap();
    }
    page.push_str("\n| A ↓ B → |");
    ALL.iter().for_each(|&kind| write!(page, " {} |", description(kind).0).unwrap());
    page.push_str("\n|---|");
    ALL.iter().for_each(|_| page.push_str("---|"));
    for a in ALL {
        write!(page, "\n| {} |", description(a).0).unwrap();
        for b in ALL {
            // Determine which operand is declined by pairing each with a plain one.
            let declined = |[a, b]: [Arrangement; 2]| flags(a, b).is_none();
            let because =
                match [declined([a, Arrangement::Plain]), declined([Arrangement::Plain, b])] {
                    [false, false] => None,
                    [true, false] => Some(format!("A: {}", reason(a))),
                    [false, true] => Some(format!("B: {}", reason(b))),
                    [true, true] if reason(a) == reason(b) => Some(format!("A, B: {}", reason(a))),
                    [true, true] => Some(format!("A: {}; B: {}", reason(a), reason(b))),
                };
            let cell = match (flags(a, b), because) {
                (Some(flags), None) => format!("**{flags}**"),
                (None, Some(because)) => because,
                other => panic!("{a:?} {b:?}: {other:?}"),
            };
            write!(page, " {cell} |").unwrap();
        }
    }
    page.push_str("\n\n");
    page
}

#[test]
fn the_page_of_layouts_matches_the_recorded_calls() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/BLAS.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the line before the table");
    let (_, after) = rest.split_once(END).expect("the line behind the table");
    let expected = [before, BEGIN, &table(), END, after].concat();
    if std::env::var_os("SWATH_BLESS").is_some_and(|value| value == "1") {
        fs::write(path, expected).unwrap();
        return;
    }
    let lines = page.lines().zip(expected.lines());
    let differs = lines.enumerate().find(|(_, (page, expected))| page != expected);
    assert!(
        page == expected,
        "docs/BLAS.md is outdated: {differs:?}\n\
         `SWATH_BLESS=1 cargo test --lib the_page_of_layouts` regenerates it"
    );
}
