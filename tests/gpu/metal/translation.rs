//! Kernels in Metal's language.

use swath::backend::gpu::testing::{kernels, translate};
use swath::backend::gpu::{Failure, Module};

/// The parameters of the entry point, one a line.
fn parameters<'a>(text: &'a str, entry: &str) -> Vec<&'a str> {
    let start = text.find(&format!("kernel void {entry}(")).expect("an entry point");
    let signature = text[start..].split_once(") {").expect("a body").0;
    signature.lines().skip(1).map(|line| line.trim_start_matches([' ', ','])).collect()
}

#[test]
fn every_kernel_translates_with_the_bindings_of_its_module() {
    let all = kernels();
    assert!(all.len() > 400, "{} kernels", all.len());
    for module in all {
        let kernel = translate(&module).unwrap_or_else(|failure| panic!("{failure:?}"));
        let name = &module.name;
        assert_eq!(kernel.name, *name);
        assert_eq!(kernel.writes, module.writes, "{name}");
        assert_eq!(kernel.threads.iter().product::<u32>(), 256, "{name}");
        // Every binding is an array without a length.
        assert_eq!(kernel.sizes, (0..module.writes.len()).collect::<Vec<_>>(), "{name}");
        let parameters = parameters(&kernel.text, &kernel.entry);
        let at = |index: usize| {
            let attribute = format!("[[buffer({index})]]");
            let mut found = parameters.iter().filter(|x| x.contains(&attribute));
            let parameter = found.next().unwrap_or_else(|| panic!("{name}: no {attribute}"));
            assert!(found.next().is_none(), "{name}: {attribute} twice");
            *parameter
        };
        for (index, &writes) in module.writes.iter().enumerate() {
            let parameter = at(index);
            assert!(parameter.starts_with("device "), "{name}: {parameter}");
            assert_eq!(!parameter.contains(" const& "), writes, "{name}: {parameter}");
        }
        assert!(at(kernel.words_at()).starts_with("constant P& "), "{name}");
        assert!(at(kernel.sizes_at()).starts_with("constant _mslBufferSizes& "), "{name}");
        assert!(kernel.text.contains("uint fault;"), "{name}");
        let buffers = parameters.iter().filter(|x| x.contains("[[buffer(")).count();
        assert_eq!(buffers, module.writes.len() + 2, "{name}");
        // Memory of a group is in the body.
        assert!(!parameters.iter().any(|x| x.contains("threadgroup ")), "{name}");
        assert!(!kernel.text.contains("double"), "{name}");
    }
}

#[test]
fn memory_of_a_group_is_declared_in_the_body() {
    let module = kernels().into_iter().find(|x| x.name == "matmul_f32_64").expect("a product");
    let kernel = translate(&module).unwrap();
    let body = kernel.text.split("kernel void ").nth(1).expect("an entry point");
    let body = body.split_once(") {\n").expect("a body").1;
    let declared: Vec<&str> = body.lines().take(2).collect();
    assert!(declared.iter().all(|line| line.starts_with("    threadgroup type_")), "{declared:?}");
    assert!(declared.iter().all(|line| line.ends_with(';')), "{declared:?}");
}

fn failure_of(text: &str, bindings: usize) -> String {
    let module =
        Module { name: "bad".to_owned(), text: text.to_owned(), writes: vec![true; bindings] };
    match translate(&module) {
        Err(Failure::Device(reason)) => reason,
        other => panic!("expected a failure, got {other:?}"),
    }
}

#[test]
fn modules_that_cannot_be_translated_are_failures_that_name_the_kernel() {
    const MAIN: &str = "@compute @workgroup_size(1) fn main() {}";
    let binding = "@group(0) @binding(1) var<storage> a: array<f32>;";
    let wide = "@compute @workgroup_size(1) fn main() { var x: f64 = 1.0lf; x = x + x; }";
    let other = format!("{MAIN}\n@compute @workgroup_size(1) fn other() {{}}");
    for (text, bindings, reason) in [
        ("fn main(", 0, "expected"),
        ("fn f() -> f32 { return 1u; }", 0, "error"),
        ("fn f() {}", 0, "expected one entry point, got 0"),
        (other.as_str(), 0, "expected one entry point, got 2"),
        (&format!("{binding}\n{MAIN}"), 1, "expected a binding of group 0 below 1"),
        (MAIN, 30, "expected at most 29 bindings, got 30"),
        (wide, 0, "error"),
    ] {
        let failure = failure_of(text, bindings);
        assert!(failure.starts_with("the kernel bad: "), "{failure}");
        assert!(failure.contains(reason), "{failure}");
    }
}
