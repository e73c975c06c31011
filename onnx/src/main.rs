//! The command `swath-onnx`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use swath::cpu::prelude::*;
use swath::io::npy;
use swath_onnx::{Extent, Kind, Model, Port, Prepare, RULES, Value};

const USAGE: &str = "\
usage: swath-onnx COMMAND MODEL [OPTIONS]

commands
  inspect   inputs, outputs, operators and parameters; with --plan what is computed
  run       computes the outputs and prints them, or saves them with --output
  bench     measures runs, after --warm-up of them
  check     compares the outputs with those saved by another program: --expect NAME=FILE.npy

options
  --input [NAME=]FILE.npy   an input, of NumPy's form; by order if it has no name
  --image [NAME=]FILE       an image as an input [1, 3, height, width], from 0 to 1
  --size NAME=NUMBER        bench: an extent of inputs that are not given, which are drawn at random
  --output FOLDER           where outputs are saved, as NAME.npy
  --expect NAME=FILE.npy    an expected output
  --tolerance NUMBER        largest difference allowed, relative to the largest element; 1e-4
  --without RULE            does not make this rewrite: see --plan
  --runs NUMBER             number of runs that are measured; 20
  --warm-up NUMBER          number of runs before; 3
  --threads NUMBER          number of threads
  --plan                    prints the nodes as they are computed";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("swath-onnx: {error}");
            ExitCode::FAILURE
        }
    }
}

type Failure = Box<dyn std::error::Error>;

struct Args {
    command: String,
    model: PathBuf,
    inputs: Vec<(Option<String>, Tensor)>,
    sizes: Vec<(String, usize)>,
    expected: Vec<(String, PathBuf)>,
    output: Option<PathBuf>,
    prepare: Prepare,
    tolerance: f64,
    runs: usize,
    warm_up: usize,
    plan: bool,
}

/// `NAME=VALUE`, or a value without a name.
fn named(text: &str) -> (Option<String>, &str) {
    text.split_once('=').map_or((None, text), |(name, value)| (Some(name.to_owned()), value))
}

fn arguments() -> Result<Args, Failure> {
    use lexopt::prelude::*;
    let mut parser = lexopt::Parser::from_env();
    let mut words = Vec::new();
    let mut args = Args {
        command: String::new(),
        model: PathBuf::new(),
        inputs: Vec::new(),
        sizes: Vec::new(),
        expected: Vec::new(),
        output: None,
        prepare: Prepare::all(),
        tolerance: 1e-4,
        runs: 20,
        warm_up: 3,
        plan: false,
    };
    let pair = |text: String| -> Result<(String, String), Failure> {
        let (name, value) =
            text.split_once('=').ok_or_else(|| format!("expected NAME=…, got {text:?}"))?;
        Ok((name.to_owned(), value.to_owned()))
    };
    while let Some(argument) = parser.next()? {
        match argument {
            Long("help") | Short('h') => {
                println!("{USAGE}");
                std::process::exit(0);
            }
            Long("input") => {
                let text = parser.value()?.string()?;
                let (name, file) = named(&text);
                args.inputs.push((name, npy::load(file)?));
            }
            Long("image") => {
                let text = parser.value()?.string()?;
                let (name, file) = named(&text);
                args.inputs.push((name, picture(file.as_ref())?));
            }
            Long("size") => {
                let (name, number) = pair(parser.value()?.string()?)?;
                args.sizes.push((name, number.parse()?));
            }
            Long("expect") => {
                let (name, file) = pair(parser.value()?.string()?)?;
                args.expected.push((name, file.into()));
            }
            Long("output") => args.output = Some(parser.value()?.into()),
            Long("without") => {
                let name = parser.value()?.string()?;
                if !RULES.iter().any(|rule| rule.name == name) {
                    let names: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
                    return Err(
                        format!("no rewrite {name:?}; there are {}", names.join(", ")).into()
                    );
                }
                args.prepare = args.prepare.without(&name);
            }
            Long("tolerance") => args.tolerance = parser.value()?.parse()?,
            Long("runs") => args.runs = parser.value()?.parse::<usize>()?.max(1),
            Long("warm-up") => args.warm_up = parser.value()?.parse()?,
            Long("threads") => swath::runtime::set_threads(parser.value()?.parse()?)?,
            Long("plan") => args.plan = true,
            Value(word) => words.push(word),
            _ => return Err(argument.unexpected().into()),
        }
    }
    let Ok([command, model]) = <[_; 2]>::try_from(words) else {
        return Err(format!("expected a command and a model\n\n{USAGE}").into());
    };
    args.command = command.string()?;
    args.model = model.into();
    Ok(args)
}

/// An image as `[1, 3, height, width]`, from 0 to 1.
fn picture(file: &Path) -> Result<Tensor, Failure> {
    let image: Tensor = swath::io::image::load(file, swath::io::image::Channels::Rgb)?;
    Ok(image.to_dtype(DType::F32)?.div(255.0)?.unsqueeze(0)?)
}

/// An input of the shape that the model says, drawn at random.
fn drawn(port: &Port, sizes: &[(String, usize)]) -> Result<Tensor, Failure> {
    let Kind::Tensor(dtype, Some(extents)) = &port.kind else {
        return Err(format!("input {port}: give it with --input").into());
    };
    let extent = |extent: &Extent| match extent {
        Extent::Known(extent) => Ok(*extent),
        Extent::Named(name) => {
            let given = sizes.iter().find(|(own, _)| own == name).map(|(_, size)| *size);
            given.ok_or_else(|| {
                format!("input {port}: give the extent with --size {name}=…, or the input")
            })
        }
    };
    let shape = extents.iter().map(extent).collect::<Result<Vec<usize>, _>>()?;
    Ok(Tensor::rand(&shape[..], 0.0..1.0, &mut Rng::seed(1))?.to_dtype(*dtype)?)
}

fn run() -> Result<(), Failure> {
    let args = arguments()?;
    let start = Instant::now();
    let model = Model::open(&args.model)?.with(args.prepare.clone());
    let opened = start.elapsed();
    if args.command == "inspect" {
        println!("{}", model.summary());
        if args.plan {
            println!("{}", model.plan());
        }
        return Ok(());
    }
    if !["run", "bench", "check"].contains(&&*args.command) {
        return Err(format!("no command {:?}\n\n{USAGE}", args.command).into());
    }
    let mut inputs: Vec<(String, Tensor)> = Vec::new();
    let mut unnamed = Vec::new();
    for (name, x) in args.inputs {
        match name {
            Some(name) => inputs.push((name, x)),
            None => unnamed.push(x),
        }
    }
    let mut unnamed = unnamed.into_iter();
    for port in model.inputs().iter().filter(|port| !port.has_default) {
        if !inputs.iter().any(|(name, _)| *name == port.name) {
            let x = match unnamed.next() {
                Some(x) => x,
                None if args.command == "bench" => drawn(port, &args.sizes)?,
                None => return Err(format!("input {port}: give it with --input").into()),
            };
            inputs.push((port.name.clone(), x));
        }
    }
    if unnamed.next().is_some() {
        return Err("there are more inputs than the model has".into());
    }
    let compute = || model.run(inputs.iter().map(|(name, x)| (&**name, x.clone())));
    if args.plan {
        println!("{}", model.plan());
    }
    let outputs = compute()?;
    if args.command == "bench" {
        for _ in 1..args.warm_up {
            compute()?;
        }
        let mut times = Vec::new();
        for done in 0..args.runs {
            let start = Instant::now();
            compute()?;
            times.push(start.elapsed());
            eprint!("\r{} of {} runs", done + 1, args.runs);
        }
        times.sort();
        eprintln!();
        let [least, median, most] = [0, times.len() / 2, times.len() - 1].map(|at| times[at]);
        println!("opened in {opened:.2?}; a run takes {median:.2?} ({least:.2?} to {most:.2?})");
        return Ok(());
    }
    for (name, value) in outputs.iter() {
        match value {
            Value::Tensor(x) => {
                println!("{name}: {} {}\n{x}", x.dtype(), x.shape());
                if let Some(folder) = &args.output {
                    std::fs::create_dir_all(folder)?;
                    npy::save(folder.join(format!("{}.npy", name.replace('/', "_"))), x)?;
                }
            }
            Value::Sequence(list) => println!("{name}: {} tensors", list.len()),
        }
    }
    let mut failed = Vec::new();
    for (name, file) in &args.expected {
        let expected: Tensor = npy::load(file)?;
        let result =
            outputs.get(name).ok_or_else(|| format!("no output {name:?} that is a tensor"))?;
        let largest =
            expected.to_dtype(DType::F64)?.abs()?.max_all()?.item::<f64>()?.max(f64::MIN_POSITIVE);
        let pair = [result, &expected].map(|x| swath_onnx::Value::Tensor(x.clone()));
        match swath_onnx::cases::compare(&pair[0], &pair[1], 0.0, args.tolerance * largest) {
            Ok(()) => println!("{name} agrees"),
            Err(error) => failed.push(format!("{name}: {error}")),
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("; ").into()) }
}
