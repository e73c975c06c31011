//! Compiles the C shim with an MPI compiler wrapper, and passes on the linker arguments that `mpicc -show` prints.
//! Without a wrapper, it sets `cfg(no_mpi)`, and `Mpi::start` returns an error.

use std::env;
use std::process::Command;

fn main() {
    for file in ["build.rs", "src/shim.c"] {
        println!("cargo::rerun-if-changed={file}");
    }
    for name in ["MPICC", "DOCS_RS"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    println!("cargo::rustc-check-cfg=cfg(no_mpi)");
    if env::var_os("DOCS_RS").is_some() {
        println!("cargo::rustc-cfg=no_mpi");
        return;
    }
    match compiler() {
        Ok((mpicc, command)) => {
            cc::Build::new().compiler(mpicc).file("src/shim.c").compile("swath_mpi");
            link(&command);
        }
        Err(reason) => {
            println!("cargo::rerun-if-env-changed=PATH");
            println!("cargo::rustc-cfg=no_mpi");
            let remedy = "install Open MPI or MPICH, or set MPICC";
            println!("cargo::warning=mpicc was not found ({reason}): built without MPI; {remedy}");
        }
    }
}

/// Returns the compiler wrapper, and the command that it runs.
///
/// # Errors
/// The reason why there is none. Cross-compilation needs `MPICC`, because `mpicc` finds only the host's library.
fn compiler() -> Result<(String, String), String> {
    let named = env::var("MPICC").ok().filter(|name| !name.is_empty());
    let [host, target] = ["HOST", "TARGET"].map(|name| env::var(name).unwrap_or_default());
    if named.is_none() && host != target {
        return Err(format!("MPICC names no compiler for {target}"));
    }
    let mpicc = named.unwrap_or_else(|| "mpicc".to_owned());
    let output = Command::new(&mpicc).arg("-show").output();
    let output = output.map_err(|error| format!("{mpicc}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{mpicc} -show: {}", output.status));
    }
    let command = String::from_utf8(output.stdout).map_err(|_| format!("{mpicc}: not UTF-8"))?;
    Ok((mpicc, command))
}

/// Passes on libraries, their folders, and linker arguments. Only the first two reach programs of dependents.
fn link(command: &str) {
    let mut for_linker = Vec::new();
    let mut words = command.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
    while let Some(word) = words.next() {
        if let Some(folder) = word.strip_prefix("-L") {
            println!("cargo::rustc-link-search=native={folder}");
        } else if let Some(library) = word.strip_prefix("-l") {
            println!("cargo::rustc-link-lib={library}");
        } else if let Some(list) = word.strip_prefix("-Wl,") {
            for_linker.extend(list.split(','));
        } else if word == "-Xlinker" {
            for_linker.extend(words.next());
        }
    }
    // In order, because `-rpath` must be followed by its folder.
    for word in &for_linker {
        println!("cargo::rustc-link-arg=-Wl,{word}");
    }
    let after = for_linker.iter().skip(1);
    let separate = for_linker.iter().zip(after).filter(|(word, _)| is_rpath(word)).map(|(_, f)| *f);
    let joined = for_linker.iter().filter_map(|word| {
        word.split_once('=').filter(|(option, _)| is_rpath(option)).map(|(_, folder)| folder)
    });
    let folders: Vec<&str> = separate.chain(joined).collect();
    println!("cargo::metadata=RPATH={}", folders.join(":"));
}

fn is_rpath(option: &str) -> bool {
    matches!(option, "-rpath" | "--rpath")
}
