//! Reads and writes the rows of `ACCURACY.md`.

use std::fmt;
use std::fs;

use crate::functions::beside_manifest;

const FILE: &str = "ACCURACY.md";

/// A measured maximum in ULP, and the arguments at which it occurs, as bits or text.
#[derive(Clone, Debug, PartialEq)]
pub struct Worst {
    /// Rounded up to four decimals, so that it is an upper bound.
    pub ulp: f64,
    pub at: String,
}

impl Worst {
    pub fn new(ulp: f64, at: String) -> Worst {
        Worst { ulp: (ulp * 1e4).ceil() / 1e4, at }
    }
}

impl fmt::Display for Worst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.4} | {}", self.ulp, self.at)
    }
}

/// A row: one function for one element type.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub name: String,
    pub dtype: String,
    /// Levels that ran and gave the same bits.
    pub isas: String,
    pub inputs: String,
    pub normal: Worst,
    pub subnormal: Worst,
    /// Share of results that are correctly rounded, in percent.
    pub correct: String,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { name, dtype, isas, inputs, normal, subnormal, correct } = self;
        write!(f, "| {name} | {dtype} | {isas} | {inputs} | {normal} | {subnormal} | {correct} |")
    }
}

impl Row {
    pub fn parse(line: &str) -> Option<Row> {
        let cells: Vec<&str> = line.strip_prefix('|')?.strip_suffix('|')?.split('|').collect();
        let cell = |i: usize| cells[i].trim().to_owned();
        let worst = |i: usize| Some(Worst { ulp: cell(i).parse().ok()?, at: cell(i + 1) });
        if cells.len() != 9 {
            return None;
        }
        Some(Row {
            name: cell(0),
            dtype: cell(1),
            isas: cell(2),
            inputs: cell(3),
            normal: worst(4)?,
            subnormal: worst(6)?,
            correct: cell(8),
        })
    }
}

/// The page's rows.
pub fn read() -> Vec<Row> {
    let page = fs::read_to_string(beside_manifest(FILE)).unwrap_or_default();
    page.lines().filter_map(Row::parse).collect()
}

/// Rewrites the page from its text and rows.
pub fn write(text: &str, rows: &[Row]) {
    let mut page = text.to_owned();
    for row in rows {
        page += &format!("{row}\n");
    }
    fs::write(beside_manifest(FILE), page).expect("the page can be written");
}

/// The bounds of the page for an f32 function.
pub struct Bounds {
    normal: f64,
    subnormal: f64,
}

impl Bounds {
    /// The bound at this exact result.
    pub fn of(&self, exact: f64) -> f64 {
        if exact.abs() < f64::from(f32::MIN_POSITIVE) { self.subnormal } else { self.normal }
    }
}

/// The largest error that f32 functions may have, in ULP, regardless of the page.
pub fn allowed(name: &str) -> f64 {
    match name {
        "neg" | "abs" | "sign" | "square" | "sqrt" | "recip" => 0.5,
        "add" | "sub" | "mul" | "div" | "minimum" | "maximum" | "rem" | "remainder"
        | "leaky_relu" => 0.5,
        "floor" | "ceil" | "round" | "trunc" | "relu" | "relu6" | "pow_half" => 0.5,
        "exp" | "log" | "tanh" | "erf" => 0.7,
        "sin" | "cos" => 0.9,
        "floor_divide" | "xlogy" => 2.0,
        "sigmoid" | "silu" | "gelu" | "gelu_tanh" | "softplus" | "mish" | "log_sigmoid" => 2.0,
        _ => 1.0,
    }
}

/// The maxima of an f32 function, measured on all of its arguments, so that no subset exceeds them.
pub fn f32_bounds(name: &str) -> Bounds {
    let row = read().into_iter().find(|row| row.name == name && row.dtype == "f32");
    let row = row.unwrap_or_else(|| {
        panic!("{name} has no row in ACCURACY.md: tests/suite/exhaustive.rs measures it")
    });
    let most = allowed(name);
    let [normal, subnormal] = [row.normal.ulp, row.subnormal.ulp].map(|ulp| ulp.min(most));
    Bounds { normal, subnormal }
}
