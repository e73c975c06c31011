//! Imports between the parts of the kernels. A part is a file directly under `kernels/src` together with
//! the folder of its name.

use crate::source::Source;
use std::collections::{BTreeMap, BTreeSet};

/// The parts from bottom to top: each may import those before it only.
pub const ORDER: [&str; 23] = [
    "simd",
    "dispatch",
    "output",
    "poison",
    "copy",
    "convert",
    "map",
    "math",
    "fold",
    "reduce",
    "compare",
    "random",
    "optim",
    "integer_gemm",
    "integer_map",
    "scatter",
    "rows",
    "attention",
    "geometry",
    "gemm",
    "pool",
    "api",
    // Items defined in the crate's root; its `pub use` of a part counts as that part.
    "lib",
];

/// Imports of parts by parts, each counted once.
pub struct Imports {
    pub count: usize,
    /// Upward imports: the part, what it imports, and the files in which it does.
    pub upward: Vec<(String, String, BTreeSet<String>)>,
    /// Parts that [`ORDER`] does not list.
    pub unknown: BTreeSet<String>,
}

/// Reads the kernels' files among `sources`. Tests, and code for tests and benchmarks alone, may import
/// everything and do not count.
pub fn imports(sources: &[Source]) -> Imports {
    let place = |part: &str| ORDER.iter().position(|&name| name == part);
    let root = sources.iter().find(|source| source.path == "kernels/src/lib.rs");
    let shown = root.map(exported_by_root).unwrap_or_default();
    let mut files: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    let mut unknown = BTreeSet::new();
    for source in sources {
        let Some(inside) = source.path.strip_prefix("kernels/src/") else { continue };
        let of_tests = inside.ends_with("tests.rs") || inside.contains("/tests/");
        if of_tests || matches!(inside, "lib.rs" | "testing.rs" | "peak.rs") {
            continue;
        }
        let part = inside.split('/').next().unwrap_or(inside).trim_end_matches(".rs");
        if place(part).is_none() {
            unknown.insert(part.to_owned());
        }
        let tests_start = source.code.find("mod tests {").unwrap_or(source.code.len());
        for (at, path) in source.paths() {
            let Some(name) = path.first().filter(|_| at < tests_start) else { continue };
            let is_part = place(name).is_some();
            let imported = match shown.get(name) {
                _ if is_part => name,
                Some(of) => of,
                None => shown.get("*").map_or("lib", String::as_str),
            };
            if imported != part {
                let pair = (part.to_owned(), imported.to_owned());
                files.entry(pair).or_default().insert(source.path.clone());
            }
        }
    }
    let count = files.len();
    let upward = files.into_iter().filter(|((part, imported), _)| place(imported) > place(part));
    let mut upward: Vec<_> = upward.map(|((part, to), files)| (part, to, files)).collect();
    upward.sort_by_key(|(part, imported, _)| (place(part), place(imported)));
    Imports { count, upward, unknown }
}

/// Names that the root exports by `pub use`, each with its part; `*` stands for all names that the root
/// exports from a part without listing them.
fn exported_by_root(root: &Source) -> BTreeMap<String, String> {
    let mut shown = BTreeMap::new();
    for statement in root.code.split("pub use ").skip(1) {
        let statement = statement.split(';').next().unwrap_or_default();
        let words = statement.split(|c: char| !c.is_alphanumeric() && !"_*".contains(c));
        let mut words = words.filter(|word| !word.is_empty());
        let Some(part) = words.next() else { continue };
        shown.extend(words.map(|word| (word.to_owned(), part.to_owned())));
    }
    shown
}
