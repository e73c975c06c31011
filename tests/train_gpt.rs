//! The example `train_gpt` run as a user does: equal numbers for any number of threads, any instruction set
//! and after interruptions; complete files; errors that explain what is wrong.
#![cfg(unix)]

#[path = "suite/support/example.rs"]
mod example;
#[path = "suite/support/files.rs"]
mod files;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use files::Scratch;
use swath::io::safetensors::{load, load_metadata, save};
use swath::prelude::*;
use swath::runtime::Isa;

/// The program, built at the first call.
fn example() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| example::build_example("train_gpt"))
}

/// A run on a small text, with files in `folder`.
fn command(folder: &Path, arguments: &[&str]) -> Command {
    let text = folder.join("text.txt");
    if !text.exists() {
        let line =
            |i: usize| format!("fn f{}(x: u{}) -> [u8; {}] {{ x }}\n", i % 7, i % 5, i * i % 11);
        std::fs::write(&text, (0..150).map(line).collect::<String>()).unwrap();
    }
    let mut command = Command::new(example());
    command.arg("--data").arg(&text).arg("--out").arg(folder.join("out")).args(arguments);
    command.env_remove("SWATH_ISA").env_remove("SWATH_THREADS");
    command
}

const SMALL: &[&str] = &[
    "--width",
    "16",
    "--layers",
    "1",
    "--heads",
    "2",
    "--context",
    "16",
    "--batch",
    "4",
    "--dropout",
    "0.1",
    "--sample",
    "20",
    "--hash",
];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [SMALL, more].concat()
}

fn output(mut command: Command) -> Output {
    command.output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.clone(), output.stderr.clone()].concat()).into_owned()
}

/// The digest that a run printed.
fn hash(output: &Output) -> String {
    assert!(output.status.success(), "{}", text(output));
    let text = text(output);
    let hash = text.lines().find_map(|line| line.strip_prefix("sha256 "));
    hash.unwrap_or_else(|| panic!("no digest in {text}")).to_owned()
}

#[test]
fn the_digest_does_not_depend_on_threads_or_instruction_set() {
    let scratch = Scratch::new("train-same");
    let run = |threads: &str, isa: Option<Isa>| {
        // Large enough that products are split over threads.
        let sizes = ["--width", "64", "--context", "64", "--batch", "16", "--steps", "5"];
        let mut command = command(&scratch.0, &with(&sizes));
        command.args(["--threads", threads]);
        command.envs(isa.map(|isa| ("SWATH_ISA", isa.name())));
        hash(&output(command))
    };
    let expected = run("1", None);
    for threads in ["2", "3", "7"] {
        assert_eq!(run(threads, None), expected, "{threads} threads");
    }
    for isa in Isa::ALL {
        match isa.is_available() {
            true => assert_eq!(run("2", Some(isa)), expected, "{isa}"),
            false => println!("SKIPPED here: {isa}, this machine lacks it"),
        }
    }
    let sizes = ["--width", "64", "--context", "64", "--batch", "16", "--steps", "5"];
    let mut other_seed = command(&scratch.0, &with(&sizes));
    other_seed.args(["--seed", "43"]);
    let other_seed = output(other_seed);
    assert_ne!(hash(&other_seed), expected);
}

/// Lines of the curve written so far.
fn steps_written(folder: &Path) -> usize {
    let text = std::fs::read_to_string(folder.join("out/history.csv")).unwrap_or_default();
    text.lines().count().saturating_sub(1)
}

/// Steps of a run that is interrupted.
const STEPS: usize = 300;

fn whole_run(folder: &Path) -> Command {
    command(folder, &with(&["--steps", &STEPS.to_string()]))
}

/// Sends a run a signal, `wait` after `steps` of its steps are saved, and returns its output. Starts another
/// run if the first has ended by then, as it may while this process waits for a core.
fn signalled_after(folder: &Path, steps: usize, wait: Duration, signal: &str) -> Output {
    for _ in 0..10 {
        let mut child =
            whole_run(folder).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let start = Instant::now();
        while steps_written(folder) < steps && child.try_wait().unwrap().is_none() {
            assert!(start.elapsed() < Duration::from_secs(120), "the run makes no progress");
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(wait);
        let runs = child.try_wait().unwrap().is_none();
        let id = child.id().to_string();
        if runs {
            assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
        }
        let seen = steps_written(folder);
        let output = child.wait_with_output().unwrap();
        if steps_written(folder) < STEPS {
            assert!(runs, "the run ended by itself: {}", text(&output));
            return output;
        }
        // A step or two may be done before a signal takes effect.
        assert!(!runs || seen > STEPS / 2, "{signal} after {seen} steps: {}", text(&output));
        // No exit code: killed after its last step.
        assert!(matches!(output.status.code(), None | Some(0)), "{}", text(&output));
        std::fs::remove_dir_all(folder.join("out")).unwrap();
    }
    panic!("ten runs had ended before {signal} could be sent after {steps} steps");
}

#[test]
fn a_killed_run_resumes_to_the_same_digest() {
    let whole = Scratch::new("train-whole");
    let expected = hash(&output(whole_run(&whole.0)));
    let mut rng = Rng::seed(u64::from(std::process::id()));
    let scratch = Scratch::new("train-killed");
    let first = 1 + rng.below(150) as usize;
    println!("killed after step {first}");
    signalled_after(&scratch.0, first, Duration::from_millis(rng.below(20)), "-KILL");
    let resumed = output(command(&scratch.0, &["--resume", "--sample", "20", "--hash"]));
    assert!(text(&resumed).contains("going on after step"), "{}", text(&resumed));
    assert_eq!(hash(&resumed), expected);
    let curve =
        |scratch: &Scratch| std::fs::read_to_string(scratch.0.join("out/history.csv")).unwrap();
    assert_eq!(curve(&scratch), curve(&whole));
    assert_eq!(steps_written(&scratch.0), STEPS);
    for file in ["loss.svg", "model.safetensors", "state.safetensors"] {
        let of = |scratch: &Scratch| std::fs::read(scratch.0.join("out").join(file)).unwrap();
        assert_eq!(of(&scratch), of(&whole), "{file}");
    }
}

#[test]
fn ctrl_c_saves_and_prints_the_command_that_resumes() {
    let whole = Scratch::new("train-uninterrupted");
    let expected = hash(&output(whole_run(&whole.0)));
    let scratch = Scratch::new("train-ctrl-c");
    let stopped = signalled_after(&scratch.0, 30, Duration::ZERO, "-INT");
    assert!(stopped.status.success(), "{}", text(&stopped));
    let printed = text(&stopped);
    let at = printed.lines().position(|line| line.starts_with("stopped after step")).unwrap();
    let resume = printed.lines().nth(at + 1).unwrap();
    let steps = printed.lines().nth(at).unwrap().split(' ').nth(3).unwrap().to_owned();
    assert_eq!(steps, steps_written(&scratch.0).to_string(), "{printed}");
    // The arguments follow `--`.
    let arguments: Vec<&str> = resume.split_once(" -- ").unwrap().1.split(' ').collect();
    let mut resumed = Command::new(example());
    assert_eq!(
        hash(&output({
            resumed.args(arguments);
            resumed
        })),
        expected
    );
}

#[test]
fn a_finished_run_resumes_with_more_steps_and_keeps_its_curve() {
    let scratch = Scratch::new("train-more");
    let curve = || std::fs::read_to_string(scratch.0.join("out/history.csv")).unwrap();
    let first = hash(&output(command(&scratch.0, &with(&["--steps", "30"]))));
    let before = curve();
    // Without steps left the result is the same.
    let again = output(command(&scratch.0, &["--resume", "--hash", "--sample", "0"]));
    assert_eq!(hash(&again), first);
    let more = output(command(&scratch.0, &["--resume", "--steps", "40", "--sample", "0"]));
    let printed = text(&more);
    assert!(printed.contains("laid out for 30 steps: it stays 3.0e-4 after them"), "{printed}");
    assert!(curve().starts_with(&before) && steps_written(&scratch.0) == 40, "{printed}");
    let fewer = output(command(&scratch.0, &["--resume", "--steps", "39"]));
    assert_eq!(fewer.status.code(), Some(1));
    assert!(text(&fewer).contains("the saved run has done 40"), "{}", text(&fewer));
}

#[test]
fn a_closed_output_pipe_does_not_stop_a_run() {
    let scratch = Scratch::new("train-pipe");
    let mut child = command(&scratch.0, &with(&["--steps", "20"]))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(steps_written(&scratch.0), 20);
}

#[test]
fn an_invalid_saved_plan_is_refused() {
    let scratch = Scratch::new("train-forged");
    hash(&output(command(&scratch.0, &with(&["--steps", "3"]))));
    let state = scratch.0.join("out/state.safetensors");
    let good = load::<CpuBackend>(&state).unwrap();
    let metadata = load_metadata(&state).unwrap();
    let plan: Vec<f64> = metadata["plan"].split(' ').map(|x| x.parse().unwrap()).collect();
    for index in 0..plan.len() {
        // A dropout of 0 is valid; every other number must not be 0.
        let value = if plan[index] == 0.1 { f64::NAN } else { 0.0 };
        let mut forged = plan.clone();
        forged[index] = value;
        let mut metadata = metadata.clone();
        let forged: Vec<String> = forged.iter().map(f64::to_string).collect();
        metadata.insert("plan".to_owned(), forged.join(" "));
        save(&state, good.clone(), &metadata).unwrap();
        let output = output(command(&scratch.0, &["--resume"]));
        let printed = text(&output);
        let explained = printed.contains("state.safetensors") && !printed.contains("panicked");
        assert!(output.status.code() == Some(1) && explained, "number {index}: {printed}");
    }
}

#[test]
fn invalid_arguments_and_files_are_explained() {
    let scratch = Scratch::new("train-mistakes");
    let fails = |arguments: &[&str], message: &str| {
        let output = output(command(&scratch.0, arguments));
        let text = text(&output);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {text}");
        assert!(text.contains(message) && !text.contains("panicked"), "{arguments:?}: {text}");
    };
    fails(&["--speed", "7"], "--speed");
    fails(&["--steps", "many"], "many");
    fails(&["--steps", "0"], "--steps must be at least 1");
    fails(&["--width", "10", "--heads", "4"], "--heads 4 does not divide --width 10");
    fails(&["--dropout", "1"], "--dropout");
    fails(&["--lr", "-1"], "--lr");
    fails(&["--temperature", "0"], "--temperature");
    fails(&["--data", "no/such/file"], "no/such/file");
    fails(&["--context", "100000"], "characters");
    fails(&["--threads", "0"], "threads");
    fails(&["--prompt", "€"], "no '€'");
    fails(&["--resume"], "no run is saved");

    hash(&output(command(&scratch.0, &with(&["--steps", "3"]))));
    fails(&["--resume", "--width", "32"], "the saved run has --width 16");
    fails(&["--resume", "--seed", "1"], "the saved run has --seed 42");
    fails(&with(&["--lr", "1e30"]), "lower --lr");
    fails(&["--resume", "--data", concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")], "--data");
    let state = scratch.0.join("out/state.safetensors");
    let bytes = std::fs::read(&state).unwrap();
    std::fs::write(&state, &bytes[..bytes.len() - 5]).unwrap();
    fails(&["--resume"], "state.safetensors");
    let help = output(command(&scratch.0, &["--help"]));
    assert!(help.status.success());
    for flag in [
        "--data",
        "--steps",
        "--seed",
        "--resume",
        "--batch",
        "--context",
        "--layers",
        "--heads",
        "--width",
        "--lr",
        "--dropout",
        "--threads",
        "--sample",
        "--prompt",
        "--temperature",
        "--out",
        "--hash",
    ] {
        assert!(text(&help).contains(flag), "{flag}");
    }
}
