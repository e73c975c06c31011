//! Prints the figures of the stage `size`, and writes them into `docs/BUILD.md`.
//!
//!     page FIGURES [LABEL]
//!
//! runs in the tree's root. FIGURES is a file of lines `name value`; the lines of the table of
//! `cargo llvm-lines`, if there is one, are in the file that `ir_table` names. Without a label the page
//! is left as it is. With one, the row of that label is replaced, or a row is added; what was not measured
//! this time stays as the row had it, if that is of the same commit.

#[path = "../../tests/tidy/imports.rs"]
mod imports;
#[allow(dead_code, reason = "the rules of the tree use the rest")]
#[path = "../../tests/tidy/source.rs"]
mod source;

use source::Source;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const PAGE: &str = "docs/BUILD.md";
const MAX_LINES: usize = 80;
const FUNCTIONS_SHOWN: usize = 10;
const MISSING: &str = "–";

const HEADINGS: [&str; 17] = [
    "state",
    "commit",
    "clean, s",
    "touched, s",
    "ten, bytes",
    "hundred, bytes",
    "crates",
    "IR lines",
    "functions",
    "kernels/src",
    "src/backend/cpu",
    "kernels/tests",
    "src",
    "tests",
    "upward",
    "imports",
    "candle",
];

const OPENING: &str = "\
# What a build costs

`SWATH_SIZE_LABEL=\"before the change\" bash .ci/run size` measures the tree as it is and adds a row, or
replaces the row of that label; without a label the figures are only printed. With `--full` the same
programs written with candle are built in turn with swath's, so that a ratio compares builds of the same
hour, and each time is the mean of two builds. The programs are in `.ci/size`, the order of the parts in
`tests/tidy/imports.rs`.

- *clean*: seconds of CPU time, user and system of cargo and all compilers that it starts, of a release
  build of `ten.rs` (a product of two matrices, printed) with an empty target folder. The program lies
  outside the workspace and has cargo's own profile, as a user's program would. CPU time is compared, not
  wall time, which depends on how many cores are free.
- *touched*: the same after `touch` of the source of `hundred.rs` (tensors, gradients, layers, an
  optimizer), everything else being built: the median of three. Behind each figure that of candle's
  program, and swath's over it.
- *bytes*: the programs' files as cargo leaves them, with their symbols.
- *crates*: those that are built for `ten.rs`, itself not counted; build dependencies are.
- *IR lines*, *functions*: what rustc hands to LLVM for `swath-kernels`, before any optimization, instances
  of generic functions counted one by one: `cargo llvm-lines --release -p swath-kernels --lib`.
- *kernels/src* to *tests*: lines of Rust that are neither blank nor comment. `src` includes
  `src/backend/cpu`.
- *upward*: of the *imports* between the files and folders directly under `kernels/src`, those by which a
  part imports what stands above it. A pair counts once.
";

type Figures = BTreeMap<String, String>;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let file = arguments.first().expect("the file of figures");
    let mut figures: Figures = read(file)
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect();
    count_sources(&mut figures);
    let table = figures.get("ir_table").map(|file| Instances::read(&read(file)));
    if let Some(table) = &table {
        figures.insert("ir_lines".into(), table.total.0.to_string());
        figures.insert("ir_functions".into(), table.total.1.to_string());
    }
    let label = arguments.get(1).map_or("", String::as_str);
    let new = row(label, &figures);
    for (heading, cell) in HEADINGS.iter().zip(&new).skip(1) {
        println!("{heading:16} {cell}");
    }
    if !label.is_empty() {
        write_page(new, table.as_ref());
    }
}

fn read(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Code lines of the folders, and imports between the kernels' parts.
fn count_sources(figures: &mut Figures) {
    let mut kernels = Vec::new();
    for folder in &HEADINGS[9..14] {
        let mut sources = Vec::new();
        walk(Path::new(folder), &mut sources);
        let beside = format!("{folder}.rs");
        if Path::new(&beside).exists() {
            sources.push(Source::new(&beside, &read(&beside)));
        }
        let is_code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
        let lines = |source: &Source| source.text.lines().filter(is_code).count();
        let total: usize = sources.iter().map(lines).sum();
        figures.insert((*folder).to_owned(), total.to_string());
        if *folder == "kernels/src" {
            kernels = sources;
        }
    }
    let found = imports::imports(&kernels);
    assert!(found.unknown.is_empty(), "not in the order of parts: {:?}", found.unknown);
    for (part, imported, files) in &found.upward {
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        println!("upward: {part} imports {imported} in {}", files.join(", "));
    }
    figures.insert("upward".into(), found.upward.len().to_string());
    figures.insert("imports".into(), found.count.to_string());
}

fn walk(folder: &Path, sources: &mut Vec<Source>) {
    let entries = fs::read_dir(folder).expect("a folder of the tree");
    for path in entries.map(|entry| entry.expect("an entry of the tree").path()) {
        if path.is_dir() {
            walk(&path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push(Source::new(&path.to_string_lossy(), &read(&path)));
        }
    }
}

/// The cells of a row, in the order of the headings.
fn row(label: &str, figures: &Figures) -> Vec<String> {
    let figure = |name: &str| figures.get(name).cloned().unwrap_or(MISSING.into());
    // A figure, and candle's with the ratio where it was measured.
    let beside = |name: &str, peer: &str| {
        let number = |name: &str| figures.get(name).and_then(|text| text.parse::<f64>().ok());
        match (number(name), number(peer)) {
            (Some(own), Some(other)) => {
                format!("{} (candle {}: {:.2})", figure(name), figure(peer), own / other)
            }
            _ => figure(name),
        }
    };
    let mut cells = vec![
        label.to_owned(),
        figure("commit"),
        beside("clean", "candle_clean"),
        beside("touched", "candle_touched"),
        beside("ten_bytes", "candle_ten_bytes"),
        beside("hundred_bytes", "candle_hundred_bytes"),
        beside("crates", "candle_crates"),
        figure("ir_lines"),
        figure("ir_functions"),
    ];
    cells.extend(HEADINGS[9..14].iter().map(|folder| figure(folder)));
    cells.extend([figure("upward"), figure("imports"), figure("candle_version")]);
    cells
}

/// What `cargo llvm-lines` prints: lines and instances of each function, all instances together.
struct Instances {
    total: (u64, u64),
    functions: Vec<(u64, u64, String)>,
}

impl Instances {
    fn read(text: &str) -> Instances {
        let mut instances = Instances { total: (0, 0), functions: Vec::new() };
        for line in text.lines() {
            // The shares, in parentheses, are left out.
            let (mut plain, mut depth, mut numbers) = (String::new(), 0, 0);
            for (i, c) in line.char_indices() {
                match c {
                    '(' if line[i..].starts_with("(TOTAL)") => break,
                    '(' if numbers < 2 => (depth, numbers) = (depth + 1, numbers + 1),
                    ')' if depth > 0 => depth -= 1,
                    _ if depth == 0 => plain.push(c),
                    _ => {}
                }
            }
            let mut words = plain.split_whitespace();
            let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
            let (Some(lines), Some(copies)) = (number(), number()) else { continue };
            if line.ends_with("(TOTAL)") {
                instances.total = (lines, copies);
            } else {
                let name: Vec<&str> = words.collect();
                instances.functions.push((lines, copies, name.join(" ")));
            }
        }
        assert!(instances.total.0 > 0, "no total in the table of cargo llvm-lines");
        instances
    }

    /// Lines and instances by the part of the kernels that a name mentions first, most lines first.
    fn parts(&self) -> Vec<(u64, u64, String)> {
        let mut parts: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for (lines, copies, name) in &self.functions {
            let part = match name.split_once("swath_kernels::") {
                Some((_, rest)) => {
                    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
                    rest[..end.unwrap_or(rest.len())].to_owned()
                }
                None => "the standard library and other crates".to_owned(),
            };
            let sum = parts.entry(part).or_default();
            *sum = (sum.0 + lines, sum.1 + copies);
        }
        let mut parts: Vec<_> =
            parts.into_iter().map(|(part, (lines, copies))| (lines, copies, part)).collect();
        parts.sort_by(|a, b| b.cmp(a));
        parts
    }
}

/// The row's cells that were not measured are those of the page's row of the same label and commit.
fn write_page(mut new: Vec<String>, table: Option<&Instances>) {
    let old = fs::read_to_string(PAGE).unwrap_or_default();
    let is_row =
        |line: &&str| line.starts_with("| ") && line.matches('|').count() == HEADINGS.len() + 1;
    let mut rows: Vec<Vec<String>> = old
        .lines()
        .filter(is_row)
        .skip(1)
        .map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect())
        .collect();
    match rows.iter_mut().find(|row| row[0] == new[0]) {
        Some(row) => {
            if row[1] == new[1] {
                for (cell, before) in new.iter_mut().zip(row.iter()) {
                    if cell == MISSING {
                        cell.clone_from(before);
                    }
                }
            }
            *row = new;
        }
        None => rows.push(new),
    }
    let mut page = format!("{OPENING}\n| {} |\n|---|---|", HEADINGS.join(" | "));
    page += &"---:|".repeat(HEADINGS.len() - 2);
    for row in &rows {
        page += &format!("\n| {} |", row.join(" | "));
    }
    page += "\n";
    match table {
        Some(table) => page += &of_functions(table, &rows),
        // The tables of functions stay as the last measurement left them.
        None => page += old.find("\n## ").map_or("", |at| &old[at..]),
    }
    let lines = page.lines().count();
    assert!(lines <= MAX_LINES, "{PAGE} would have {lines} lines, at most {MAX_LINES}");
    fs::write(PAGE, page).expect("the page can be written");
    println!("{PAGE}: {lines} lines, {} states", rows.len());
}

fn of_functions(table: &Instances, rows: &[Vec<String>]) -> String {
    let last = rows.last().map_or("", |row| &row[0]);
    let mut text = format!("\n## Where the IR lines are, {last}\n\n");
    text += "By the part of the kernels that a function's name mentions first:\n\n";
    text += "| lines | functions | part |\n|---:|---:|---|\n";
    for (lines, copies, part) in table.parts() {
        text += &format!("| {lines} | {copies} | {part} |\n");
    }
    text +=
        &format!("\nThe {FUNCTIONS_SHOWN} functions of most lines, all instances together:\n\n");
    text += "| lines | instances | function |\n|---:|---:|---|\n";
    for (lines, copies, name) in table.functions.iter().take(FUNCTIONS_SHOWN) {
        text += &format!("| {lines} | {copies} | `{name}` |\n");
    }
    text
}
