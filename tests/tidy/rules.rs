//! Tests of the checker: each rule reports a violation and its line, and accepts similar code that breaks
//! nothing.

use super::{MAX_LINES, Source, check, imports::imports};

/// Path, text, and part of the violation's message (empty: no violation).
type Row = (&'static str, &'static str, &'static str);

const LAYERS: &[Row] = &[
    ("src/backend/cpu/matmul.rs", "use crate::tensor::Tensor;", "crate::tensor::Tensor"),
    ("src/backend.rs", "use crate::{dtype::DType, autodiff::{self, Op}};", "crate::autodiff::Op"),
    ("src/backend/cpu.rs", "fn f(x: crate::Tensor) {}", "crate::Tensor"),
    ("src/backend/cpu.rs", "use crate::engine::names::*;", ""),
    ("src/backend/any.rs", "use crate::engine::names::*;", "crate::engine::names"),
    ("src/backend/cpu.rs", "fn f(x: swath::Tensor) {}", "crate::Tensor"),
    ("src/backend/cpu.rs", "use crate::prelude::*;", "crate::prelude"),
    ("src/backend/cpu.rs", "use crate::*;", "crate::*"),
    ("src/backend/cpu.rs", "use super::super::tensor;", "crate::tensor"),
    ("src/backend/cpu.rs", "mod tests { use super::super::super::tensor; }", "crate::tensor"),
    ("src/backend/cpu.rs", "macro_rules! m { () => { $crate::tensor::f() } }", "crate::tensor"),
    ("src/backend/cpu.rs", "type Tensor = CpuTensor; fn f() -> Self::Tensor {}", ""),
    ("src/backend/cpu.rs", "// crate::tensor\nconst S: &str = \"crate::tensor\";", ""),
    ("src/backend/cpu.rs", "use crate::shape::Shape; mod t { use super::super::tensor; }", ""),
    ("src/autodiff/record.rs", "use crate::nn::Linear;", "crate::nn::Linear"),
    ("src/ops/table/binary.rs", "value: |x| crate::dtype::f(x);", "crate::dtype::f"),
    ("src/ops.rs", "use super::error::Error;", "crate::error::Error"),
    ("src/ops.rs", "mod tests { use super::*; use crate::ops::sigmoid; }", ""),
    ("kernels/src/map.rs", "use swath::Shape;", "must not depend on swath"),
    ("kernels/src/map.rs", "use swath_kernels::exp;", ""),
    ("src/backend/reference.rs", "use super::cpu;", "shares no code with the CPU"),
    ("src/backend/reference/reduce.rs", "use crate::CpuBackend;", "shares no code with the CPU"),
    ("src/backend/reference.rs", "let y = swath_kernels::exp(x);", "no code with the kernels"),
];

const PLACES: &[Row] = &[
    ("src/layout.rs", "// SAFETY: checked above.\nunsafe { f() }", "`unsafe` here"),
    ("tests/suite/backends.rs", "// SAFETY: checked above.\nunsafe { f() }", "`unsafe` here"),
    ("src/runtime/memory.rs", "// SAFETY: checked above.\nunsafe { f() }", ""),
    ("kernels/src/fold/tree.rs", "// SAFETY: checked above.\nunsafe { f() }", ""),
    ("kernels/src/math/exp.rs", "#![deny(unsafe_op_in_unsafe_fn)]", ""),
    ("kernels/src/gemm/tile.rs", "use std::arch::x86_64::*;", "intrinsics are allowed only"),
    (
        "kernels/src/copy.rs",
        "let x = core::arch::x86_64::_mm_pause();",
        "intrinsics are allowed only",
    ),
    ("kernels/src/simd/avx2.rs", "use core::arch::x86_64::*;", ""),
    ("src/backend/cpu/reduce.rs", "rayon::join(a, b);", "may use rayon"),
    ("src/runtime/parallel.rs", "rayon::join(a, b);", ""),
];

const SAFETY: &[Row] = &[
    ("kernels/src/map.rs", "fn f() {\n    let x = unsafe { g() };\n}", ":2: unsafe without"),
    ("kernels/src/map.rs", "// Fast.\nunsafe { g() };", "unsafe without"),
    ("kernels/src/map.rs", "// SAFETY: in range.\n\nunsafe { g() };", "unsafe without"),
    ("kernels/src/map.rs", "// SAFETY: in range.\nh();\nunsafe { g() };", "unsafe without"),
    ("kernels/src/map.rs", "unsafe impl Send for X {}", "unsafe without"),
    (
        "kernels/src/map.rs",
        "// SAFETY: x is in range,\n// as asserted.\nlet y =\n  unsafe { g() };",
        "",
    ),
    ("kernels/src/map.rs", "// SAFETY: detected.\n#[inline]\nunsafe impl Send for X {}", ""),
    ("kernels/src/map.rs", "/// # Safety\nunsafe fn f();", ""),
];

const LEFTOVERS: &[Row] = &[
    ("src/shape.rs", "fn f() { todo!() }", "todo!"),
    ("src/shape.rs", "fn f() { unimplemented!(\"later\") }", "unimplemented!"),
    ("examples/a.rs", "fn f() {\n\n    dbg!(x);\n}", "examples/a.rs:3: dbg!"),
    ("src/shape.rs", "// todo!\nfn f(todo: bool) { let c = '\"'; !todo }", ""),
    ("README.md", "Run @/home/me/swath/run.sh", "@/home is a path"),
    (".ci/run", "cd @/tmp", "@/tmp is a path"),
    ("src/io.rs", "/// Reads `@/root/data`.", "@/root is a path"),
    ("src/io.rs", "let path = \"@/work/main\";", "@/work is a path"),
    ("README.md", "https://example.com/home/x, $HOME/work/x, ./tmp/x, target/tmp", ""),
    ("README.md", "one-line frame@/workspace", ""),
];

const CFG: &[Row] = &[
    ("src/shape.rs", "#[cfg(target_arch = \"x86_64\")]\nfn f() {}", "cfg(target_arch"),
    ("src/shape.rs", "fn f() { if cfg!(windows) {} }", "cfg(windows)"),
    ("src/shape.rs", "#[cfg_attr(windows, inline)]\nfn f() {}", "cfg(windows) is"),
    ("src/shape.rs", "#[cfg_attr(any(test, unix), inline)]\nfn f() {}", "cfg(any(test, unix))"),
    ("src/shape.rs", "#[cfg_attr(miri, ignore = \"slow\")]\nfn f() {}", ""),
    ("src/shape.rs", "#[cfg(any(test, unix))]\nfn f() {}", "cfg(any(test, unix))"),
    ("src/tensor.rs", "#[cfg(feature = \"openblas\")]\nfn f() {}", "cfg(feature"),
    ("src/shape.rs", "#[cfg(test)]\nmod tests {}", ""),
    ("src/shape.rs", "#[cfg(any(test, feature = \"testing\"))]\nmod t {}", ""),
    ("src/shape.rs", "if cfg!(debug_assertions) {}", ""),
    ("src/shape.rs", "#[cfg(not(test))]\nfn f() {}", ""),
    ("src/backend/cpu/blas.rs", "#[cfg(feature = \"openblas\")]\nfn f() {}", ""),
    ("kernels/src/simd.rs", "#[cfg(target_arch = \"x86_64\")]\nmod avx2;", ""),
];

/// `@@` stands for an `unsafe` block.
const SUMS: &[Row] = &[
    (
        "kernels/src/map.rs",
        "fn f() {\n    assert!(a + n <= x.len());\n    @@\n}",
        ":2: `a + n` may wrap",
    ),
    ("kernels/src/map.rs", "fn f() { @@ if x.len() > (a + 1) {} }", "`(a + 1)` may wrap"),
    (
        "kernels/src/map.rs",
        "fn f() { @@ } fn g() { while ok && rows * cols < n {} }",
        "`rows * cols`",
    ),
    ("kernels/src/map.rs", "fn f() { @@ let fits = n >= 1 << bits; }", "`1 << bits` may wrap"),
    ("kernels/src/map.rs", "fn f() { @@ n >= a * size_of::<T>() }", "`a * size_of::<T>()`"),
    ("kernels/src/map.rs", "fn f() { @@ match a { 1 if a * n < b => 1, _ => 2 } }", "`a * n`"),
    ("kernels/src/map.rs", "fn f() { assert!(a + n <= x.len()); }", ""),
    ("kernels/tests/suite/map.rs", "fn f() { assert!(a + n <= x.len()); @@ }", ""),
    ("kernels/src/map/tests.rs", "fn f() { assert!(a + n <= x.len()); @@ }", ""),
    ("kernels/src/map.rs", "fn f() { @@ if n <= x.len() && a <= x.len() - n {} }", ""),
    (
        "kernels/src/map.rs",
        "fn f() { @@ if a.checked_add(n + 1).is_some_and(|end| end <= n) {} }",
        "",
    ),
    ("kernels/src/map.rs", "fn f() { @@ if x[a + 1] < 2 * LINE && *wanted < *a {} }", ""),
    (
        "kernels/src/map.rs",
        "fn f() { @@ a + v * <S as Lanes<f64>>::LANES; f(a << 1, -> T, a >> 1); }",
        "",
    ),
    ("kernels/src/map.rs", "fn f<T: A<B> + C>(x: V<T>) -> V<T> { @@ a + x.sum::<T>() == b }", ""),
];

#[test]
fn each_rule_reports_violations_and_nothing_else() {
    let rows = [LAYERS, PLACES, SAFETY, LEFTOVERS, CFG, SUMS].concat();
    for &(path, text, expected) in rows.iter() {
        let text = text.replace("@@", "\n// SAFETY: checked.\nunsafe { g() };");
        // `@` in front keeps these rows from being machine paths themselves.
        let (text, expected) = (text.replace("@/", "/"), expected.replace("@/", "/"));
        let found: Vec<String> = check(&Source::new(path, &text))
            .iter()
            .map(|violation| violation.to_string())
            .collect();
        if expected.is_empty() {
            assert!(found.is_empty(), "{path}: {text}\n{found:?}");
        } else {
            assert!(found.iter().any(|line| line.contains(&expected)), "{path}: {text}\n{found:?}");
        }
    }
}

#[test]
fn a_file_may_have_at_most_the_allowed_lines() {
    let text = "fn f() {}\n".repeat(MAX_LINES);
    assert!(check(&Source::new("src/shape.rs", &text)).is_empty());
    let found = check(&Source::new("benches/products.rs", &(text + "\n")));
    assert_eq!(found.len(), 1);
    assert!(found[0].message.contains("501 lines"), "{}", found[0]);
}

#[test]
fn imports_between_parts_count_once_by_the_part_that_defines_a_name() {
    let sources = [
        ("lib.rs", "mod fold; pub use reduce::{Max, sum::Sum}; pub use rows::functions::*;"),
        ("fold.rs", "use crate::simd::A; use crate::Sum; mod tests { use crate::gemm::B; }"),
        ("fold/rows.rs", "use super::scan; use crate::{exp, reduce::C}; use crate::fold::D;"),
        ("math/exp.rs", "// crate::gemm\nuse super::super::map::E; fn f() { crate::map::g() }"),
        ("copy/tests.rs", "use crate::gemm::F;"),
        ("testing.rs", "use crate::gemm::G;"),
        ("else.rs", ""),
    ];
    let sources = sources.map(|(path, text)| Source::new(&format!("kernels/src/{path}"), text));
    let found = imports(&sources);
    let upward: Vec<String> = found
        .upward
        .iter()
        .map(|(part, to, files)| format!("{part} {to} {}", files.len()))
        .collect();
    assert_eq!(upward, ["fold reduce 2", "fold rows 1"]);
    assert_eq!(found.count, 4);
    assert_eq!(Vec::from_iter(found.unknown), ["else"]);
}

#[test]
fn comments_and_literals_are_not_read_as_code() {
    let rows = [
        ("a // b\nc", "a c"),
        ("a /* b /* c */ d */ e", "a e"),
        (r#"f("x\"y", 'z', '\'', b'"', "w")"#, "f b"),
        (r##"f(r"a\", r#"b"c"#, br"d", bar)"##, "f bar"),
        ("fn f<'a>(x: &'a str, c: '\\u{1F600}')", "fn f a x a str c"),
        ("f(\"é\", é)", "f é"),
    ];
    for (text, expected) in rows {
        let source = Source::new("src/a.rs", text);
        assert_eq!(source.code.len(), text.len(), "{text}");
        let words = source.tokens().into_iter().map(|token| token.text);
        let words: Vec<&str> = words
            .filter(|word| word.starts_with(char::is_alphabetic))
            // Prefixes and first letters of raw literals may stay.
            .filter(|word| !["r", "br"].contains(word))
            .collect();
        assert_eq!(words.join(" "), expected, "{text}");
    }
}
