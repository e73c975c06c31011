//! Kernels in Metal's language as shared objects, compiled by g++ with the headers in `include/`.
//!
//! They are kept in the target directory under a hash of all that they are made of.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use sha2::{Digest, Sha256};
use swath::backend::gpu::testing::Translation;

const HEADERS: [(&str, &str); 3] = [
    ("group.h", include_str!("include/group.h")),
    ("metal_stdlib", include_str!("include/metal_stdlib")),
    ("simd/simd.h", include_str!("include/simd/simd.h")),
];

/// Metal's language has no `double`, so constants are `float`. Kernels are given arrays of unknown length as arrays of
/// one element, so nothing may be concluded from lengths.
const FLAGS: [&str; 11] = [
    "-std=c++20",
    "-O1",
    "-fsingle-precision-constant",
    "-ffp-contract=off",
    "-fno-aggressive-loop-optimizations",
    "-fno-strict-aliasing",
    "-fwrapv",
    "-fno-gnu-unique",
    "-fvisibility=hidden",
    "-fPIC",
    "-w",
];

/// The version of g++; `None` without it.
pub fn compiler() -> Option<&'static str> {
    static VERSION: OnceLock<Option<String>> = OnceLock::new();
    let ask = || {
        let output = Command::new("g++").arg("--version").output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    VERSION.get_or_init(ask).as_deref()
}

fn hash(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize()[..12].iter().map(|byte| format!("{byte:02x}")).collect()
}

fn compile(arguments: &[&str], folder: &Path) -> Result<(), String> {
    let output = Command::new("g++").args(FLAGS).args(arguments).current_dir(folder).output();
    let output = output.map_err(|error| format!("g++: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("g++: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

/// The folder of the headers, with `group.h` compiled, and of the kernels.
fn folder() -> Result<&'static Path, String> {
    static FOLDER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let make = || {
        let mut parts = vec![compiler().unwrap_or_default()];
        parts.extend(FLAGS);
        parts.extend(HEADERS.iter().flat_map(|(name, text)| [*name, *text]));
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("metal").join(hash(&parts));
        if folder.is_dir() {
            return Ok(folder);
        }
        // Made elsewhere and moved, as another process may make it, too.
        let made = folder.with_extension(std::process::id().to_string());
        let failed = |error: std::io::Error| error.to_string();
        fs::create_dir_all(made.join("simd")).map_err(failed)?;
        for (name, text) in HEADERS {
            fs::write(made.join(name), text).map_err(failed)?;
        }
        compile(&["-I.", "-x", "c++-header", "group.h", "-o", "group.h.gch"], &made)?;
        match fs::rename(&made, &folder) {
            Err(_) if folder.is_dir() => fs::remove_dir_all(&made).map_err(failed)?,
            result => result.map_err(failed)?,
        }
        Ok(folder)
    };
    FOLDER.get_or_init(make).as_deref().map_err(Clone::clone)
}

/// The shared object of a kernel, whose function `run` runs a grid.
///
/// # Errors
/// What g++ said.
pub fn shared_object(kernel: &Translation) -> Result<PathBuf, String> {
    let program = program(kernel)?;
    let folder = folder()?;
    let name = format!("{}_{}", kernel.name, hash(&[&program]));
    let object = folder.join(format!("{name}.so"));
    if object.is_file() {
        return Ok(object);
    }
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let unique = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let made = folder.join(format!("{name}.{}.{}.so", unique.0, unique.1));
    let source = made.with_extension("cpp");
    fs::write(&source, program).map_err(|error| error.to_string())?;
    let (from, to) = (source.to_string_lossy(), made.to_string_lossy());
    compile(&["-I.", "-include", "group.h", "-shared", &from, "-o", &to], folder)?;
    fs::rename(&made, &object).map_err(|error| error.to_string())?;
    // What was compiled stays, to be read.
    fs::rename(&source, object.with_extension("cpp")).map_err(|error| error.to_string())?;
    Ok(object)
}

/// The kernel as a program of C++: its text, and a function that gives a thread its arguments by their attributes.
fn program(Translation { text, entry, .. }: &Translation) -> Result<String, String> {
    let start = text.find(&format!("kernel void {entry}(")).ok_or("there is no entry point")?;
    let (signature, _) = text[start..].split_once(") {").ok_or("the entry point has no body")?;
    let attributes = signature.split("[[").skip(1).map(|x| x.split("]]").next().unwrap_or(""));
    let arguments = attributes.map(|attribute| {
        Ok(match attribute {
            "thread_position_in_grid" => "at.in_grid".to_owned(),
            "threadgroup_position_in_grid" => "at.group".to_owned(),
            "thread_position_in_threadgroup" => "at.in_group".to_owned(),
            "thread_index_in_threadgroup" => "at.index".to_owned(),
            _ => match attribute.strip_prefix("buffer(").and_then(|x| x.strip_suffix(')')) {
                Some(index) => format!("Argument{{buffers[{index}]}}"),
                None => return Err(format!("unknown attribute {attribute}")),
            },
        })
    });
    let arguments: Vec<String> = arguments.collect::<Result<_, _>>()?;
    // Variables of a group: one for all its threads, which the thread that runs the group has.
    let lines = text.lines().map(|line| match line.strip_prefix("    threadgroup ") {
        Some(variable) if line.ends_with(';') => format!("    static {variable}\n"),
        _ => format!("{line}\n"),
    });
    let lines: String = lines.collect();
    let has_barriers = text.contains("threadgroup_barrier");
    Ok(format!(
        "namespace program {{\n{lines}}}\n\
         static void run_thread(const Place& at, void* const* buffers) {{\n    program::{entry}({});\n}}\n\
         extern \"C\" __attribute__((visibility(\"default\")))\n\
         bool run(const uint* groups, const uint* threads, void* const* buffers) {{\n    \
         return run_grid(run_thread, {has_barriers}, groups, threads, buffers);\n}}\n",
        arguments.join(", ")
    ))
}
