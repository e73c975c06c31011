//! The output of `build.rs` for cargo: it is compiled as it is and run with the environment variables of
//! several machines. It is compiled without features, so it does not call pkg-config for this build.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const LINUX: &str = "x86_64-unknown-linux-gnu";

/// A compiler that finds every library, and one that finds none.
const FINDS_ALL: &str = "echo /found";
const FINDS_NONE: &str = "echo";

/// Folder of `build`, the compiled script, and of `c compiler`, which finds every library.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("build_script");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let compiler = folder.join("c compiler");
        fs::write(&compiler, "#!/bin/sh\necho /found\n").unwrap();
        fs::set_permissions(&compiler, fs::Permissions::from_mode(0o755)).unwrap();
        let output = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
            .args(["--edition", "2024", "-o"])
            .arg(folder.join("build"))
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("build.rs"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        folder
    })
}

/// Output of the build script on Linux, with these features (`blis,netlib`) and variables.
fn run(features: &str, variables: &[(&str, &str)]) -> String {
    let features = features.split(',').map(|name| name.to_uppercase().replace('-', "_"));
    let output = Command::new(folder().join("build"))
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .envs([("HOST", LINUX), ("TARGET", LINUX), ("CARGO_CFG_TARGET_OS", "linux")])
        .envs([("CC", FINDS_NONE), ("PKG_CONFIG", "false")])
        .envs(features.map(|name| (format!("CARGO_FEATURE_{name}"), "1")))
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn has(text: &str, line: &str) -> bool {
    text.lines().any(|of_text| of_text == line)
}

fn errors(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("cargo::error=")).collect()
}

#[test]
fn a_missing_library_is_an_error_that_names_the_packages_to_install() {
    for (feature, names, install) in [
        (
            "mkl",
            ["mkl_rt", ""],
            "Debian: intel-mkl; Fedora: intel-oneapi-mkl-devel; PyPI: mkl and intel-openmp",
        ),
        (
            "openblas",
            ["openblas", ""],
            "Debian: libopenblas-dev; Fedora: openblas-devel; Homebrew: openblas",
        ),
        ("blis", ["blis", ""], "Debian: libblis-dev; Fedora: blis-devel; Homebrew: blis"),
        ("netlib", ["cblas", "blas"], "Debian: libblas-dev; Fedora: blas-devel; Homebrew: lapack"),
    ] {
        let names: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
        for (folder, reason) in [
            (None, "not in the folder SWATH_BLAS_LIB_DIR: the variable is not set"),
            (Some(""), "not in the folder SWATH_BLAS_LIB_DIR: the variable is not set"),
            (Some("/nowhere"), "not in the folder SWATH_BLAS_LIB_DIR=/nowhere"),
            (Some("lib"), "not in the folder SWATH_BLAS_LIB_DIR=lib: not an absolute path"),
        ] {
            let variables: Vec<_> =
                folder.map(|it| ("SWATH_BLAS_LIB_DIR", it)).into_iter().collect();
            let mut expected =
                vec![format!("the feature `{feature}` needs the library {}", names.join(" or "))];
            expected.push(reason.to_owned());
            if folder.is_some_and(|folder| !folder.is_empty()) {
                expected.push(format!("install it there ({install}), or unset SWATH_BLAS_LIB_DIR"));
                // Neither pkg-config nor a compiler that finds every library is run.
                let variables = [variables[0], ("CC", FINDS_ALL)];
                let text = run(feature, &variables);
                assert_eq!(errors(&text), expected);
                assert!(!text.contains("rustc-link"), "{text}");
                continue;
            }
            let packages = if feature == "mkl" { vec!["mkl-sdl", "mkl_rt"] } else { names.clone() };
            expected
                .extend(packages.iter().map(|name| format!("not by pkg-config {name}: not asked")));
            let unknown = |name| format!("not on the linker's path: echo knows no lib{name}");
            expected.extend(names.iter().map(unknown));
            expected
                .push(format!("install it ({install}), or set SWATH_BLAS_LIB_DIR to its folder"));
            assert_eq!(errors(&run(feature, &variables)), expected);
        }
    }
    // Homebrew keeps OpenBLAS out of the linker's path.
    let text = run("openblas", &[("CARGO_CFG_TARGET_OS", "macos")]);
    for folder in ["/opt/homebrew/opt/openblas/lib", "/usr/local/opt/openblas/lib"] {
        assert!(errors(&text).contains(&&*format!("not in the folder {folder}")), "{text}");
    }
}

#[test]
fn the_compiler_is_run_with_its_arguments() {
    let with_space = folder().join("c compiler");
    for compiler in [FINDS_ALL, with_space.to_str().unwrap()] {
        for name in ["CC", "HOST_CC", "CC_x86_64_unknown_linux_gnu", "CC_x86_64-unknown-linux-gnu"]
        {
            let text = run("blis", &[(name, compiler)]);
            assert!(has(&text, "cargo::rustc-link-lib=blis"), "{name}={compiler}: {text}");
            assert!(has(&text, &format!("cargo::rerun-if-env-changed={name}")), "{text}");
        }
    }
}

/// This machine's compiler would find this machine's libraries.
#[test]
fn a_cross_build_runs_only_the_compiler_of_the_target() {
    let cross = ("TARGET", "aarch64-unknown-linux-gnu");
    for name in ["CC", "HOST_CC", "CC_x86_64_unknown_linux_gnu"] {
        let text = run("blis", &[cross, (name, FINDS_ALL)]);
        assert!(!text.contains("rustc-link-lib"), "{name}: {text}");
        let expected = "no C compiler for aarch64-unknown-linux-gnu is named (TARGET_CC)";
        assert!(errors(&text).iter().any(|line| line.ends_with(expected)), "{name}: {text}");
    }
    for name in [
        "CC_aarch64-unknown-linux-gnu",
        "CC_aarch64_unknown_linux_gnu",
        "TARGET_CC",
        "RUSTC_LINKER",
    ] {
        let text = run("blis", &[cross, (name, FINDS_ALL)]);
        assert!(has(&text, "cargo::rustc-link-lib=blis"), "{name}: {text}");
    }
}

#[test]
fn the_named_folder_is_searched_first() {
    for (i, (files, line)) in [
        (&["libblis.so.4", "libblis.a", "libblis.so"][..], "dylib=blis"),
        (&["libblis.so.4", "libblis.a"], "dylib:+verbatim=libblis.so.4"),
        (&["libblis.so.4", "libother.so"], "dylib:+verbatim=libblis.so.4"),
    ]
    .into_iter()
    .enumerate()
    {
        let libraries = folder().join(format!("libraries{i}"));
        fs::create_dir(&libraries).unwrap();
        files.iter().for_each(|file| fs::write(libraries.join(file), "").unwrap());
        let libraries = libraries.to_str().unwrap();
        let text = run("blis", &[("SWATH_BLAS_LIB_DIR", libraries), ("CC", FINDS_ALL)]);
        let links: Vec<&str> = text.lines().filter(|line| line.contains("rustc-link")).collect();
        let search = format!("cargo::rustc-link-search=native={libraries}");
        assert_eq!(links, [search, format!("cargo::rustc-link-lib={line}")]);
        let file = if i == 0 { files[2] } else { files[0] };
        assert!(has(&text, &format!("cargo::rerun-if-changed={libraries}/{file}")), "{text}");
    }
}

#[test]
fn a_dangling_symlink_is_not_a_library() {
    let libraries = folder().join("dangling");
    fs::create_dir(&libraries).unwrap();
    std::os::unix::fs::symlink("nowhere", libraries.join("libblis.so.4")).unwrap();
    let libraries = libraries.to_str().unwrap();
    let text = run("blis", &[("SWATH_BLAS_LIB_DIR", libraries), ("CC", FINDS_ALL)]);
    let expected = format!("not in the folder SWATH_BLAS_LIB_DIR={libraries}");
    assert!(errors(&text).contains(&expected.as_str()) && !text.contains("rustc-link"), "{text}");
    // A dangling symlink or a folder does not hide a library of a later name.
    fs::write(folder().join("dangling/libblis.so.5"), "").unwrap();
    fs::create_dir(folder().join("dangling/libblis.so")).unwrap();
    let text = run("blis", &[("SWATH_BLAS_LIB_DIR", libraries), ("CC", FINDS_ALL)]);
    assert!(has(&text, "cargo::rustc-link-lib=dylib:+verbatim=libblis.so.5"), "{text}");
}

#[test]
fn a_static_library_is_refused() {
    let libraries = folder().join("static");
    fs::create_dir(&libraries).unwrap();
    fs::write(libraries.join("libblis.a"), "").unwrap();
    let libraries = libraries.to_str().unwrap();
    let text = run("blis", &[("SWATH_BLAS_LIB_DIR", libraries), ("CC", FINDS_ALL)]);
    let expected = format!(
        "not in the folder SWATH_BLAS_LIB_DIR={libraries}: libblis.a is static, and could not be kept to one thread"
    );
    assert!(errors(&text).contains(&expected.as_str()) && !text.contains("rustc-link"), "{text}");
}

#[test]
fn the_first_feature_that_the_target_supports_is_the_provider() {
    let apple = [("CARGO_CFG_TARGET_VENDOR", "apple"), ("CC", FINDS_ALL)];
    for (features, variables, provider) in [
        ("netlib,openblas,blis", &apple[1..], "openblas"),
        ("blas-dynamic,netlib", &apple[1..], "netlib"),
        ("accelerate,blis", &apple[1..], "blis"),
        ("accelerate,blis", &apple, "accelerate"),
    ] {
        let text = run(features, variables);
        assert!(errors(&text).is_empty(), "{text}");
        assert!(has(&text, "cargo::rustc-cfg=blas"), "{text}");
        assert!(has(&text, &format!("cargo::rustc-cfg=blas=\"{provider}\"")), "{text}");
        assert!(has(&text, &format!("cargo::rustc-env=SWATH_BLAS_PROVIDER={provider}")), "{text}");
    }
    let text = run("accelerate", &[]);
    let expected = "the feature `accelerate` needs Apple's Accelerate, which other systems lack: choose one of \
                mkl, openblas, openblas-static, blis, netlib, blas-dynamic";
    assert_eq!(errors(&text), [expected]);
    assert!(!run("safetensors", &[]).contains("rustc-cfg"));
}
