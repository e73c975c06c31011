//! Chooses the BLAS provider. `cfg(blas = "…")` is the first of [`PROVIDERS`] whose feature is enabled and
//! which the target supports; `cfg(blas)` is set if there is one. Without a provider the embedded product is
//! used. Cargo unifies features, so two at once are no error: the order decides.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Features of providers, in order of precedence.
const PROVIDERS: [&str; 7] =
    ["accelerate", "mkl", "openblas", "openblas-static", "blis", "netlib", "blas-dynamic"];

/// A library that this script finds, with its names for the linker and for pkg-config, in order of preference.
struct Library {
    feature: &'static str,
    names: &'static [&'static str],
    packages: &'static [&'static str],
    install: &'static str,
}

const LIBRARIES: [Library; 4] = [
    Library {
        feature: "mkl",
        names: &["mkl_rt"],
        packages: &["mkl-sdl", "mkl_rt"],
        install: "Debian: intel-mkl; Fedora: intel-oneapi-mkl-devel; PyPI: mkl and intel-openmp",
    },
    Library {
        feature: "openblas",
        names: &["openblas"],
        packages: &["openblas"],
        install: "Debian: libopenblas-dev; Fedora: openblas-devel; Homebrew: openblas",
    },
    Library {
        feature: "blis",
        names: &["blis"],
        packages: &["blis"],
        install: "Debian: libblis-dev; Fedora: blis-devel; Homebrew: blis",
    },
    Library {
        feature: "netlib",
        names: &["cblas", "blas"],
        packages: &["cblas", "blas"],
        install: "Debian: libblas-dev; Fedora: blas-devel; Homebrew: lapack",
    },
];

/// Folders of Homebrew's packages, some of which it keeps out of the linker's path.
const HOMEBREW: [&str; 2] = ["/opt/homebrew/opt", "/usr/local/opt"];
const LIB_DIR: &str = "SWATH_BLAS_LIB_DIR";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={LIB_DIR}");
    // Where tests and examples find the MPI library that the crate swath-mpi was built with.
    for folder in env::var("DEP_SWATH_MPI_RPATH").iter().flat_map(|folders| folders.split(':')) {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{folder}");
    }
    let values: Vec<String> = PROVIDERS.iter().map(|name| format!("\"{name}\"")).collect();
    println!("cargo::rustc-check-cfg=cfg(blas, values(none(), {}))", values.join(", "));
    let is_on = |name: &&&str| {
        let feature = name.to_uppercase().replace('-', "_");
        env::var_os(format!("CARGO_FEATURE_{feature}")).is_some()
    };
    let is_apple = env::var("CARGO_CFG_TARGET_VENDOR").is_ok_and(|vendor| vendor == "apple");
    let exists = |name: &&&str| **name != "accelerate" || is_apple;
    let mut chosen = PROVIDERS.iter().filter(is_on).peekable();
    let is_wanted = chosen.peek().is_some();
    let Some(provider) = chosen.find(exists) else {
        if is_wanted {
            let text =
                "the feature `accelerate` needs Apple's Accelerate, which other systems lack";
            println!("cargo::error={text}: choose one of {}", PROVIDERS[1..].join(", "));
        }
        return;
    };
    println!("cargo::rustc-cfg=blas");
    println!("cargo::rustc-cfg=blas=\"{provider}\"");
    println!("cargo::rustc-env=SWATH_BLAS_PROVIDER={provider}");
    if let Some(library) = LIBRARIES.iter().find(|library| library.feature == *provider)
        && let Err(tried) = link(library)
    {
        for line in tried {
            println!("cargo::error={line}");
        }
    }
}

/// Links the library from the folder `SWATH_BLAS_LIB_DIR`, or else from the first place where it is found.
///
/// # Errors
/// The names and places that were searched and the packages to install, one per line.
fn link(library: &Library) -> Result<(), Vec<String>> {
    let Library { feature, names, packages, install } = library;
    let mut tried =
        vec![format!("the feature `{feature}` needs the library {}", names.join(" or "))];
    match env::var_os(LIB_DIR).filter(|folder| !folder.is_empty()).map(PathBuf::from) {
        None => tried.push(format!("not in the folder {LIB_DIR}: the variable is not set")),
        Some(folder) => match link_from_folder(&folder, names) {
            Ok(()) => return Ok(()),
            Err(why) => {
                tried.push(format!("not in the folder {LIB_DIR}={}{why}", folder.display()));
                tried.push(format!("install it there ({install}), or unset {LIB_DIR}"));
                return Err(tried);
            }
        },
    }
    for name in *packages {
        match probe(name) {
            Ok(()) => return Ok(()),
            Err(reason) => tried.push(format!("not by pkg-config {name}: {reason}")),
        }
    }
    match compiler() {
        Ok(compiler) => {
            for name in *names {
                if knows(&compiler, name) {
                    println!("cargo::rustc-link-lib={name}");
                    return Ok(());
                }
                tried.push(format!("not on the linker's path: {compiler} knows no lib{name}"));
            }
        }
        Err(reason) => tried.push(format!("not on the linker's path: {reason}")),
    }
    if env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "macos") {
        for folder in HOMEBREW {
            let folder = Path::new(folder).join(names[0]).join("lib");
            match link_from_folder(&folder, names) {
                Ok(()) => return Ok(()),
                Err(why) => tried.push(format!("not in the folder {}{why}", folder.display())),
            }
        }
    }
    tried.push(format!("install it ({install}), or set {LIB_DIR} to its folder"));
    Err(tried)
}

/// Links the first of these libraries that `folder` contains.
///
/// # Errors
/// The reason why none can be linked, or an empty string if there is none.
fn link_from_folder(folder: &Path, names: &[&str]) -> Result<(), String> {
    if folder.is_relative() {
        return Err(": not an absolute path".to_owned());
    }
    let Some((file, line)) = names.iter().find_map(|name| shared_library(folder, name)) else {
        let is_static = |name: &&&str| folder.join(format!("lib{name}.a")).is_file();
        let told = |name| format!(": lib{name}.a is static, and could not be kept to one thread");
        return Err(names.iter().find(is_static).map(told).unwrap_or_default());
    };
    println!("cargo::rerun-if-changed={}", folder.join(file).display());
    println!("cargo::rustc-link-search=native={}", folder.display());
    println!("cargo::rustc-link-lib={line}");
    Ok(())
}

/// File name of a shared library in `folder`, with or without a version suffix, and the linker's argument
/// for it.
fn shared_library(folder: &Path, name: &str) -> Option<(String, String)> {
    let plain = [format!("lib{name}.so"), format!("lib{name}.dylib"), format!("{name}.lib")];
    if let Some(file) = plain.into_iter().find(|file| folder.join(file).is_file()) {
        return Some((file, format!("dylib={name}")));
    }
    let files =
        fs::read_dir(folder).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let is_version = |file: &String| file.starts_with(&format!("lib{name}.so."));
    let versioned = files.filter(is_version).filter(|file| folder.join(file).is_file()).min()?;
    Some((versioned.clone(), format!("dylib:+verbatim={versioned}")))
}

/// Links a package by pkg-config.
#[cfg(any(feature = "mkl", feature = "openblas", feature = "blis", feature = "netlib"))]
fn probe(name: &str) -> Result<(), String> {
    pkg_config::probe_library(name).map(drop).map_err(|error| {
        let text = error.to_string();
        text.lines().find(|line| !line.trim().is_empty()).unwrap_or("it failed").trim().to_owned()
    })
}

#[cfg(not(any(feature = "mkl", feature = "openblas", feature = "blis", feature = "netlib")))]
fn probe(_name: &str) -> Result<(), String> {
    Err("not asked".to_owned())
}

/// The C compiler that links Rust programs, with its arguments. For cross-compilation an environment
/// variable must name it, because the host's compiler finds only the host's libraries.
///
/// # Errors
/// No environment variable names a compiler for the target.
fn compiler() -> Result<String, String> {
    let [host, target] = ["HOST", "TARGET"].map(|name| env::var(name).unwrap_or_default());
    let general = if host == target { ["HOST_CC", "CC"] } else { ["TARGET_CC", "RUSTC_LINKER"] };
    let names = [&target, &target.replace('-', "_")].map(|target| format!("CC_{target}"));
    let mut names = names.iter().map(String::as_str).chain(general);
    let named = names.find_map(|name| {
        println!("cargo::rerun-if-env-changed={name}");
        env::var(name).ok()
    });
    let default = || (host == target).then(|| "cc".to_owned());
    named.or_else(default).ok_or_else(|| format!("no C compiler for {target} is named (TARGET_CC)"))
}

/// True if the compiler finds the library.
fn knows(compiler: &str, name: &str) -> bool {
    // Either the path of a program, or a program with arguments (`ccache cc`).
    let is_program = Path::new(compiler).exists();
    let words = if is_program { vec![compiler] } else { compiler.split_whitespace().collect() };
    let Some((program, arguments)) = words.split_first() else { return false };
    ["so", "dylib"].iter().any(|extension| {
        let file = format!("-print-file-name=lib{name}.{extension}");
        let output = Command::new(program).args(arguments).arg(file).output();
        // For an unknown library the compiler prints the file name alone.
        output.is_ok_and(|output| {
            Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_absolute()
        })
    })
}
