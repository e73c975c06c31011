//! Chooses the BLAS provider that is linked: `cfg(blas = "…")` is the first of [`PROVIDERS`] whose
//! feature is on; without one it is unset, and the embedded product runs. Cargo unifies features, so
//! that two at once are no error: the order below decides.

/// Features of providers, in order of precedence. The crate behind each emits the link line.
const PROVIDERS: [&str; 1] = ["openblas"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let values: Vec<String> = PROVIDERS.iter().map(|name| format!("\"{name}\"")).collect();
    println!("cargo::rustc-check-cfg=cfg(blas, values({}))", values.join(", "));
    let is_on = |name: &&&str| {
        let feature = name.to_uppercase().replace('-', "_");
        std::env::var_os(format!("CARGO_FEATURE_{feature}")).is_some()
    };
    if let Some(provider) = PROVIDERS.iter().find(is_on) {
        println!("cargo::rustc-cfg=blas=\"{provider}\"");
    }
}
