//! Rules of the source tree: which layer may use which, where `unsafe`, `cfg`, `std::arch` and threads are
//! allowed, how long a file may be, which macros must not be left behind. The rules are data, each with the
//! reason that a violation prints; the checker is tested on snippets that break them.

#[path = "tidy/imports.rs"]
mod imports;
#[path = "tidy/source.rs"]
mod source;
#[path = "tidy/sums.rs"]
mod sums;

use source::{Source, Token};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

const MAX_LINES: usize = 500;

/// Prefixes of paths.
type Files = &'static [&'static str];

/// Modules of their own crate that files may name, by the first segment after `crate::`.
struct Layer {
    files: Files,
    /// Takes the path of the file and the name.
    may_name: fn(&str, &str) -> bool,
    reason: &'static str,
}

const ABOVE_BACKENDS: [&str; 9] =
    ["tensor", "autodiff", "engine", "Tensor", "nn", "optim", "io", "prelude", "*"];

/// The trait `Backend` and its implementation for the CPU, which have the methods of `src/engine.rs`.
const WITH_ENGINE: [&str; 2] = ["src/backend.rs", "src/backend/cpu.rs"];

const LAYERS: [Layer; 4] = [
    Layer {
        files: &["src/backend"],
        may_name: |file, name| match name {
            "engine" => WITH_ENGINE.contains(&file),
            name => !ABOVE_BACKENDS.contains(&name),
        },
        reason: "backends must not depend on tensors and autodiff",
    },
    Layer {
        files: &["src/autodiff"],
        may_name: |_, name| !matches!(name, "nn" | "optim" | "io" | "prelude" | "*"),
        reason: "autodiff must not depend on nn, optim and io",
    },
    Layer {
        files: &["src/runtime/"],
        // Threads pass on the recording of a trace, which is in `blas`, to the work that they take up.
        may_name: |_, name| matches!(name, "runtime" | "error" | "dtype" | "shape" | "blas"),
        reason: "threads and memory must not depend on backends",
    },
    Layer {
        files: &["src/ops"],
        may_name: |_, name| name == "ops",
        reason: "the op table is pure data and may name crate::ops alone",
    },
];

/// A token that is allowed only in some files.
struct Place {
    word: &'static str,
    /// Where the rule holds.
    within: Files,
    except: Files,
    reason: &'static str,
}

const UNSAFE_PLACES: Files = &[
    "kernels/src/simd",
    "kernels/src/attention",
    "kernels/src/map",
    "kernels/src/fold",
    "kernels/src/dispatch",
    "kernels/src/copy",
    "kernels/src/gemm",
    "kernels/src/pool",
    "src/backend/cpu/blas",
    "src/runtime/memory",
    "src/runtime/parallel",
    "src/backend/gpu/driver/metal/objc.rs",
    "src/runtime/shared.rs",
    "src/io/mmap.rs",
    "src/interop/dlpack.rs",
    // Calls of MPI.
    "mpi/src",
    // Guard pages and uninitialised memory.
    "kernels/tests/",
    // Kernels that were compiled to shared objects.
    "tests/gpu/metal/shim.rs",
    // A global allocator.
    "tests/suite/support/counting.rs",
    // The same in a fuzz target.
    "fuzz/fuzz_targets/files.rs",
    // A consumer of DLPack, and a library that Python calls.
    "tests/interop",
    "examples/dlpack/",
    // Foreign functions of other libraries.
    "benches/peers/",
];

const PLACES: [Place; 8] = [
    Place {
        word: "unsafe",
        within: &[""],
        except: UNSAFE_PLACES,
        reason: "unsafe is allowed only in the files that UNSAFE_PLACES in tests/tidy.rs lists",
    },
    Place {
        word: "rayon",
        within: &["src/", "kernels/"],
        except: &[
            "src/runtime/parallel",
            "src/backend/cpu/tests.rs",
            "src/backend/cpu/blas/tests.rs",
            "src/runtime.rs",
        ],
        reason: "only src/runtime/parallel.rs may use rayon",
    },
    Place {
        word: "swath",
        within: &["kernels/"],
        except: &[],
        reason: "the kernels crate must not depend on swath",
    },
    Place {
        word: "cpu",
        within: &["src/backend/reference"],
        except: &[],
        reason: "the reference backend shares no code with the CPU backend",
    },
    Place {
        word: "CpuBackend",
        within: &["src/backend/reference"],
        except: &[],
        reason: "the reference backend shares no code with the CPU backend",
    },
    Place {
        word: "swath_kernels",
        within: &["src/backend/reference"],
        except: &[],
        reason: "the reference backend shares no code with the kernels",
    },
    Place {
        word: "std::arch",
        within: &[""],
        except: &["kernels/src/simd"],
        reason: "intrinsics are allowed only in kernels/src/simd/",
    },
    Place {
        word: "core::arch",
        within: &[""],
        except: &["kernels/src/simd"],
        reason: "intrinsics are allowed only in kernels/src/simd/",
    },
];

const FORBIDDEN_MACROS: [&str; 3] = ["todo", "unimplemented", "dbg"];

/// Files in which any `cfg` is allowed. Elsewhere code is the same on every machine and in every build.
const CFG_PLACES: Files = &[
    "build.rs",
    // The backends that were built, for `--device`.
    "examples/",
    "kernels/src/dispatch",
    "kernels/src/simd",
    "src/backend.rs",
    "src/backend/any",
    "src/backend/cpu/blas",
    "src/backend/gpu",
    "src/runtime/memory/huge_pages.rs",
    "src/lib.rs",
    // Which libraries arrays are exchanged with.
    "src/interop.rs",
    // Which formats of files are read.
    "src/io.rs",
    "src/io/store.rs",
    // Owner and permissions of files.
    "src/io/atomic.rs",
    // A build without MPI, and the transport of a build with it.
    "mpi/src/shim.rs",
    "src/distributed",
    // Which backends are tested: those that were built.
    "src/testing/suite/mod.rs",
    "tests/",
    "kernels/tests/",
];

/// Predicates of `cfg` that are allowed anywhere: they depend on the build, not on the machine.
const CFG_ANYWHERE: [&str; 10] = [
    "test",
    "doctest",
    "miri",
    "debug_assertions",
    "feature = \"fft\"",
    "feature = \"testing\"",
    "feature = \"testing-suite\"",
    "feature = \"peak\"",
    "feature = \"pulp\"",
    "any(test, feature = \"testing\")",
];

/// Sums, products and shifts in comparisons beside `unsafe` that are allowed: file, text, why it cannot wrap.
const WRAPPING_SUMS: [(&str, &str, &str); 0] = [];

/// First folders of absolute paths that exist on one machine only.
const MACHINE_FOLDERS: [&str; 5] = ["home", "root", "work", "tmp", "Users"];

struct Violation {
    path: String,
    line: usize,
    message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

fn starts_with_any(path: &str, files: Files) -> bool {
    files.iter().any(|start| path.starts_with(start))
}

fn check(source: &Source) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut report = |at: usize, message: String| {
        found.push(Violation { path: source.path.clone(), line: source.line(at), message });
    };
    check_machine_paths(source, &mut report);
    if source.is_rust() {
        let lines = source.text.lines().count();
        if lines > MAX_LINES {
            report(source.text.len(), format!("{lines} lines; at most {MAX_LINES} a file"));
        }
        let tokens = source.tokens();
        check_layers(source, &mut report);
        check_places(source, &tokens, &mut report);
        check_macros(&tokens, &mut report);
        check_cfg(source, &tokens, &mut report);
        check_safety_comments(source, &tokens, &mut report);
        check_sums(source, &tokens, &mut report);
    }
    found
}

fn check_layers(source: &Source, report: &mut impl FnMut(usize, String)) {
    for layer in LAYERS.iter().filter(|layer| starts_with_any(&source.path, layer.files)) {
        for (at, path) in source.paths() {
            if path.first().is_some_and(|name| !(layer.may_name)(&source.path, name)) {
                report(at, format!("names crate::{}; {}", path.join("::"), layer.reason));
            }
        }
    }
}

fn check_places(source: &Source, tokens: &[Token], report: &mut impl FnMut(usize, String)) {
    for place in &PLACES {
        let applies = starts_with_any(&source.path, place.within);
        if !applies || starts_with_any(&source.path, place.except) {
            continue;
        }
        let words =
            place.word.split_inclusive("::").flat_map(|part| match part.strip_suffix("::") {
                Some(word) => vec![word, "::"],
                None => vec![part],
            });
        let words: Vec<&str> = words.collect();
        for window in tokens.windows(words.len()) {
            if window.iter().map(|token| token.text).eq(words.iter().copied()) {
                report(window[0].start, format!("`{}` here: {}", place.word, place.reason));
            }
        }
    }
}

fn check_macros(tokens: &[Token], report: &mut impl FnMut(usize, String)) {
    for pair in tokens.windows(2) {
        if FORBIDDEN_MACROS.contains(&pair[0].text) && pair[1].text == "!" {
            report(pair[0].start, format!("{}! must not be left in the tree", pair[0].text));
        }
    }
}

fn check_cfg(source: &Source, tokens: &[Token], report: &mut impl FnMut(usize, String)) {
    if starts_with_any(&source.path, CFG_PLACES) {
        return;
    }
    for (i, token) in tokens.iter().enumerate() {
        let text = |i: usize| tokens.get(i).map_or("", |token| token.text);
        let open = match token.text {
            "cfg" if text(i + 1) == "(" => i + 1,
            "cfg" if text(i + 1) == "!" && text(i + 2) == "(" => i + 2,
            "cfg_attr" if text(i + 1) == "(" => i + 1,
            _ => continue,
        };
        let mut depth = 0usize;
        let close = tokens[open..].iter().find(|token| {
            depth = match token.text {
                "(" => depth + 1,
                ")" => depth - 1,
                _ => depth,
            };
            depth == 0
        });
        let end = close.map_or(source.text.len(), |token| token.start);
        let end = if token.text == "cfg_attr" { first_comma(&tokens[open..], end) } else { end };
        let predicate = source.text[tokens[open].start + 1..end].trim();
        let positive = predicate.strip_prefix("not(").and_then(|rest| rest.strip_suffix(')'));
        if !CFG_ANYWHERE.contains(&positive.unwrap_or(predicate)) {
            let places = CFG_PLACES.join(", ");
            report(token.start, format!("cfg({predicate}) is allowed only in {places}"));
        }
    }
}

/// The first comma inside the parentheses that the tokens begin with, or else `end`.
fn first_comma(tokens: &[Token], end: usize) -> usize {
    let mut depth = 0usize;
    let comma = tokens.iter().find(|token| {
        depth = match token.text {
            "(" => depth + 1,
            ")" => depth.saturating_sub(1),
            _ => depth,
        };
        depth == 1 && token.text == ","
    });
    comma.map_or(end, |token| token.start.min(end))
}

/// Every `unsafe` block and `unsafe impl` has a comment with `SAFETY:` on its line or above the
/// statement that contains it.
fn check_safety_comments(
    source: &Source,
    tokens: &[Token],
    report: &mut impl FnMut(usize, String),
) {
    let lines: Vec<&str> = source.text.lines().collect();
    for pair in tokens.windows(2) {
        if pair[0].text != "unsafe" || !matches!(pair[1].text, "{" | "impl") {
            continue;
        }
        let line = source.line(pair[0].start) - 1;
        let is_comment = |line: usize| lines[line].trim_start().starts_with("//");
        let mut above = line;
        while above > 0 && !is_comment(above - 1) {
            let end = lines[above - 1].trim_end().chars().next_back();
            let attribute = lines[above - 1].trim_start().starts_with("#[");
            if !attribute && end.is_none_or(|end| matches!(end, ';' | '{' | '}' | ',')) {
                break;
            }
            above -= 1;
        }
        let mut explained = lines[line].contains("SAFETY:");
        while above > 0 && is_comment(above - 1) {
            above -= 1;
            explained |= lines[above].contains("SAFETY:");
        }
        if !explained {
            report(pair[0].start, "unsafe without a `// SAFETY:` comment above it".into());
        }
    }
}

fn check_sums(source: &Source, tokens: &[Token], report: &mut impl FnMut(usize, String)) {
    let is_test = source.path.ends_with("tests.rs") || source.path.contains("/tests/");
    if is_test || !starts_with_any(&source.path, &["kernels/src/", "src/", "mpi/src/"]) {
        return;
    }
    for (at, sum) in sums::wrapping_sides(&source.code, tokens) {
        if !WRAPPING_SUMS.iter().any(|(path, allowed, _)| (*path, *allowed) == (&source.path, sum))
        {
            report(at, format!("`{sum}` {}", sums::REASON));
        }
    }
}

fn check_machine_paths(source: &Source, report: &mut impl FnMut(usize, String)) {
    let text = source.text.as_bytes();
    let part_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.~/*)}]$@".contains(&byte);
    for folder in MACHINE_FOLDERS {
        let pattern = format!("/{folder}");
        for (at, _) in source.text.match_indices(&pattern) {
            let before = at.checked_sub(1).map(|i| text[i]);
            let after = text.get(at + pattern.len());
            // `Users` and `tmp` may also begin a longer name; a folder name ends here.
            let ends = after.is_none_or(|&byte| !byte.is_ascii_alphanumeric() && byte != b'_');
            if ends && !before.is_some_and(part_of_name) {
                report(at, format!("{pattern} is a path of one machine"));
            }
        }
    }
}

/// Files that git lists, or all files if there is no repository.
fn tree() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    let listed = root.join(".git").exists().then(|| {
        let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
        Command::new("git").args(list).current_dir(root).output()
    });
    match listed {
        Some(Ok(output)) if output.status.success() => {
            let names = output.stdout.split(|&byte| byte == 0).filter(|name| !name.is_empty());
            paths.extend(names.map(|name| PathBuf::from(&*String::from_utf8_lossy(name))));
        }
        _ => walk(root, Path::new(""), &mut paths),
    }
    let mut sources = Vec::new();
    for path in paths {
        // Skips files that are deleted but still listed, or not text.
        if let Ok(text) = std::fs::read_to_string(root.join(&path)) {
            let path = path.to_string_lossy().replace('\\', "/");
            sources.push(Source::new(&path, &text));
        }
    }
    sources
}

fn walk(root: &Path, folder: &Path, paths: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(root.join(folder)).expect("a folder of the tree");
    for entry in entries {
        let entry = entry.expect("an entry of the tree");
        let name = entry.file_name();
        if name == "target" || name == ".git" {
            continue;
        }
        let path = folder.join(name);
        if entry.file_type().expect("the entry's type").is_dir() {
            walk(root, &path, paths);
        } else {
            paths.push(path);
        }
    }
}

#[test]
fn the_tree_follows_the_rules() {
    let sources = tree();
    assert!(sources.iter().any(|source| source.path == "src/lib.rs"), "the tree was not read");
    let violations: Vec<String> =
        sources.iter().flat_map(check).map(|violation| violation.to_string()).collect();
    assert!(violations.is_empty(), "{} violations\n{}", violations.len(), violations.join("\n"));
}

#[test]
fn no_part_of_the_kernels_imports_a_higher_one() {
    let found = imports::imports(&tree());
    assert!(found.unknown.is_empty(), "not in imports::ORDER: {:?}", found.unknown);
    println!("{} of {} imports run upwards", found.upward.len(), found.count);
    let upward: Vec<String> = found
        .upward
        .iter()
        .map(|(part, imported, files)| format!("{part} imports {imported} in {files:?}"))
        .collect();
    assert!(upward.is_empty(), "{}", upward.join("\n"));
}

#[path = "tidy/rules.rs"]
mod rules;
