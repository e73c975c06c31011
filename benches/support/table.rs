//! The Markdown tables of shares in docs/PERFORMANCE.md.
//!
//! With `SWATH_BENCH_TABLE=FILE`, a path from the root of the repository, every program writes its rows into
//! FILE, between the marker comments of the machine that `SWATH_BENCH_MACHINE` names. Rows of other programs
//! are kept. Missing markers are added at the end.

use std::path::Path;
use std::{env, fs, io};

use super::{MAX_CHANGE, Row};

/// Cases of the table, in order: the group without its number of threads, a slash and the case.
const CASES: &str = "elementwise_tensor/neg/4194304; elementwise_tensor/exp/4194304; \
    elementwise_tensor/gelu/4194304; reduce/sum; rows/softmax; rows/layer_norm; \
    products_tensor/f32 NN/256; products_tensor/f32 NN/1024; \
    layout_4096/a.t() contiguous; training/gpt";
/// The marker after a table.
const END: &str = "<!-- table: end -->";

/// Writes the rows of [`CASES`] if `SWATH_BENCH_TABLE` is set.
pub fn write(rows: &[Row]) -> io::Result<()> {
    let Some(file) = env::var_os("SWATH_BENCH_TABLE") else { return Ok(()) };
    let machine = env::var("SWATH_BENCH_MACHINE").unwrap_or_default();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
    let page = if file.exists() { fs::read_to_string(&file)? } else { String::new() };
    let begin = format!("<!-- table: {} -->", format!("begin {machine}").trim_end());
    let (before, rest) = page.split_once(&begin).unwrap_or((&page, END));
    let missing = || io::Error::other(format!("expected `{END}` after `{begin}`"));
    let (old, after) = rest.split_once(END).ok_or_else(missing)?;

    let (isa, products) = (swath_kernels::isa(), swath::blas::info().provider);
    let mut table = format!("| case ({isa} kernels, {products} products) ");
    table += "| limit | one thread | two threads |\n|---|---|---|---|\n";
    for case in CASES.split("; ") {
        let (group, id) = case.split_once('/').expect("a group and a case");
        let found = [1, 2].map(|threads| {
            let name = format!("{group}_T{threads}/{id}");
            rows.iter().find(|row| row.name == name || threads == 1 && row.name == case)
        });
        let start = format!("| `{case}` |");
        if let Some(row) = found[0].or(found[1]) {
            let [one, two] = found.map(|row| row.map_or_else(|| "–".to_owned(), cell));
            table += &format!("{start} {} | {one} | {two} |\n", row.limit.name());
        } else if let Some(line) = old.lines().find(|line| line.starts_with(&start)) {
            table += &format!("{line}\n");
        }
    }
    fs::write(file, format!("{before}{begin}\n{table}{END}{after}"))
}

/// Returns the share of a case, marked with `~` if the machine's speed changed during it.
fn cell(row: &Row) -> String {
    let mark = if row.change().abs() > MAX_CHANGE { " ~" } else { "" };
    format!("{:.0} %{mark}", 100.0 * row.share())
}
