//! Applies "Add an op in three places" and "Add a fused op" of `CONTRIBUTING.md` to a copy of the tree: it
//! must compile, and the tests that the new rows add must run and pass.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A block of code, the file it goes into, and the line it follows (`None`: at the end).
#[derive(Debug)]
struct Change {
    file: String,
    after: Option<String>,
    code: String,
}

/// Reads `At the end of `FILE`:` and `After `LINE` in `FILE`:`, each followed by a block of code.
fn changes(page: &str) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut target: Option<(String, Option<String>)> = None;
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let quoted: Vec<&str> = line.split('`').skip(1).step_by(2).collect();
        match quoted.as_slice() {
            [file] if line.starts_with("At the end of `") => target = Some(((*file).into(), None)),
            [after, file] if line.starts_with("After `") => {
                target = Some(((*file).into(), Some((*after).into())));
            }
            _ => {}
        }
        if line == "```rust" {
            let code: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            let (file, after) = target.take().expect("a block of code follows its place");
            changes.push(Change { file, after, code: code.join("\n") + "\n" });
        }
    }
    changes
}

fn apply(text: &str, change: &Change) -> String {
    let Some(after) = &change.after else { return format!("{text}\n{}", change.code) };
    let mut out = String::new();
    let mut found = 0;
    for line in text.lines() {
        out.push_str(line);
        out.push('\n');
        if line.trim() == after {
            found += 1;
            out.push_str(&change.code);
        }
    }
    assert_eq!(found, 1, "`{after}` should occur once in {}", change.file);
    out
}

/// Copies what a build of the tests needs.
fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        let target = to.join(&name);
        if entry.file_type().unwrap().is_dir() {
            if !name.to_string_lossy().starts_with('.') && name != "target" {
                copy_tree(&entry.path(), &target);
            }
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn the_page_names_files_and_lines_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("CONTRIBUTING.md")).unwrap();
    let changes = changes(&page);
    assert_eq!(changes.len(), 3 + 8);
    for change in &changes {
        apply(&fs::read_to_string(root.join(&change.file)).unwrap(), change);
    }
}

#[test]
#[ignore = "builds a second copy of the crate: cargo test --test contributing -- --ignored"]
fn ops_added_by_the_instructions_are_tested_by_their_rows() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let copy = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("contributing");
    let _ = fs::remove_dir_all(&copy);
    copy_tree(root, &copy);
    let page = fs::read_to_string(root.join("CONTRIBUTING.md")).unwrap();
    for change in changes(&page) {
        let path = copy.join(&change.file);
        let changed = apply(&fs::read_to_string(&path).unwrap(), &change);
        fs::write(path, changed).unwrap();
    }
    // Calls of the methods that the new rows define.
    let path = copy.join("tests/suite/tensor.rs");
    let tests = fs::read_to_string(&path).unwrap()
        + "\n#[test]\nfn softsign_is_there() {\n    \
           let y = tensor![3.0].softsign().unwrap();\n    \
           assert_eq!(y.to_vec::<f32>().unwrap(), [0.75]);\n}\n\
           #[test]\nfn unit_rows_is_there() {\n    \
           let y = tensor![3.0, 4.0].unit_rows().unwrap();\n    \
           assert_eq!(y.to_vec::<f32>().unwrap(), [0.6, 0.8]);\n}\n";
    fs::write(path, tests).unwrap();
    let output = Command::new(env!("CARGO"))
        .current_dir(&copy)
        .env("CARGO_TARGET_DIR", copy.with_extension("target"))
        .env("SWATH_BLESS", "1")
        .args([
            "test",
            "--offline",
            "--test",
            "suite",
            "--",
            "softsign",
            "unit_rows",
            "gradcheck::",
        ])
        .args(["isa::", "backends::", "mutation::", "ops_page::"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    for test in
        ["softsign_is_there", "unit_rows_is_there", "every_unary_row", "every_mutant_is_killed"]
    {
        assert!(text.contains(&format!("{test} ... ok")), "{test} did not run:\n{text}");
    }
    let page = fs::read_to_string(copy.join("docs/OPS.md")).unwrap();
    assert!(page.contains("| `softsign` | Softsign, `x / (1 + \\|x\\|)`. |"), "{page}");
}
