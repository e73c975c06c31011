//! The provider that `build.rs` chooses: it is compiled as it is and run with the variables that cargo sets.
#![cfg(unix)]

use std::path::Path;
use std::process::Command;

#[test]
fn the_first_feature_that_the_target_supports_is_the_provider() {
    let script = Path::new(env!("CARGO_TARGET_TMPDIR")).join("build_script_program");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("build.rs");
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let status =
        Command::new(compiler).args(["--edition", "2024", "-o"]).args([&script, &source]).status();
    assert!(status.unwrap().success());
    // A C compiler that finds every library.
    let run = |features: &[&str], vendor: &str, compiler: &str| {
        let features = features.iter().map(|name| format!("CARGO_FEATURE_{name}"));
        let output = Command::new(&script)
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .envs([("CARGO_CFG_TARGET_VENDOR", vendor), ("CC", compiler)])
            .envs(features.map(|name| (name, "1")))
            .output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    for (features, vendor, provider) in [
        (&["NETLIB", "OPENBLAS", "BLIS"][..], "", "openblas"),
        (&["BLAS_DYNAMIC", "NETLIB"], "", "netlib"),
        (&["ACCELERATE", "BLIS"], "", "blis"),
        (&["ACCELERATE", "BLIS"], "apple", "accelerate"),
    ] {
        let text = run(features, vendor, "echo /found");
        let chosen = format!("cargo::rustc-cfg=blas=\"{provider}\"\n");
        assert!(text.contains(&chosen) && !text.contains("cargo::error"), "{text}");
    }
    assert!(!run(&["SAFETENSORS"], "", "echo").contains("rustc-cfg"));
    // A library that is not found, and one that this system lacks.
    let text = run(&["BLIS"], "", "echo");
    assert!(text.contains("cargo::error=install it (Debian: libblis-dev"), "{text}");
    let text = run(&["ACCELERATE"], "", "echo /found");
    assert!(text.contains("cargo::error=the feature `accelerate` needs Apple's"), "{text}");
}
