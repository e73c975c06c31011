//! Reads the text of an image with PP-OCR's models, which find lines and read them.
//!
//! ```text
//! cargo run --release -p swath-onnx --example ocr -- IMAGE --find DET.onnx --read REC.onnx [--picture BOXES.png]
//! ```
//!
//! The models are in the packages `rapidocr-onnxruntime` and `rapidocr` (pip), among others. Lines are printed with
//! their boxes, and with `--picture` the image is written with the boxes drawn.

use std::path::PathBuf;
use std::process::ExitCode;

use swath::cpu::prelude::*;
use swath::io::image::{self, Channels};
use swath::{Interpolation, s};
use swath_onnx::Model;

type Failure = Box<dyn std::error::Error>;

/// The longest side of the image in which lines are searched, and the factor of its sides.
const LONGEST: usize = 960;
const MULTIPLE: usize = 32;
/// A pixel is one of a line if its probability is above this, and a line if the mean of its pixels is above that.
const PIXEL: f32 = 0.3;
const LINE: f32 = 0.5;
/// The models find the core of a line: its area over its circumference times this lies around it.
const MARGIN: f64 = 1.6;
/// The height of a line that is read.
const HEIGHT: usize = 48;

/// A line of text: its left, upper, right and lower end in pixels, the ends excluded.
#[derive(Clone, Copy, Debug)]
struct Area {
    left: usize,
    upper: usize,
    right: usize,
    lower: usize,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ocr: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Failure> {
    use lexopt::prelude::*;
    let (mut parser, mut file) = (lexopt::Parser::from_env(), None::<PathBuf>);
    let (mut finder, mut reader, mut picture) = (None::<PathBuf>, None::<PathBuf>, None::<PathBuf>);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("find") => finder = Some(parser.value()?.into()),
            Long("read") => reader = Some(parser.value()?.into()),
            Long("picture") => picture = Some(parser.value()?.into()),
            Value(path) if file.is_none() => file = Some(path.into()),
            _ => return Err(argument.unexpected().into()),
        }
    }
    let (Some(file), Some(finder), Some(reader)) = (file, finder, reader) else {
        return Err("usage: ocr IMAGE --find DET.onnx --read REC.onnx [--picture BOXES.png]".into());
    };
    let mut pixels: Tensor = image::load(&file, Channels::Rgb)?;
    let (finder, reader) = (Model::open(finder)?, Model::open(reader)?);
    let letters =
        reader.metadata("character").ok_or("the model that reads has no list of letters")?;
    // Class 0 is no letter, and the last one is a space.
    let letters: Vec<&str> = letters.lines().chain([" "]).collect();
    let areas = find(&finder, &pixels)?;
    for area in &areas {
        let (text, certainty) = read(&reader, &letters, &pixels, area)?;
        let Area { left, upper, right, lower } = area;
        println!("{left:5} {upper:5} {right:5} {lower:5}  {certainty:.2}  {text}");
    }
    if let Some(picture) = picture {
        areas.iter().try_for_each(|area| draw(&mut pixels, area))?;
        image::save(picture, &pixels)?;
    }
    Ok(())
}

/// An image as the models expect it: blue, green, red, from -1 to 1.
fn normalized(pixels: &Tensor) -> Result<Tensor> {
    pixels.flip(0)?.to_dtype(DType::F32)?.affine(2.0 / 255.0, -1.0)?.unsqueeze(0)
}

/// The lines of an image, from the top to the bottom.
fn find(model: &Model, pixels: &Tensor) -> Result<Vec<Area>, Failure> {
    let [height, width] = [pixels.dims()[1], pixels.dims()[2]];
    let by = (LONGEST as f64 / height.max(width) as f64).min(1.0);
    let rounded =
        |extent: usize| ((extent as f64 * by / MULTIPLE as f64).round() as usize).max(1) * MULTIPLE;
    let size = [rounded(height), rounded(width)];
    let bilinear = Interpolation::Bilinear { align_corners: false };
    let x = normalized(pixels)?.interpolate(size, bilinear)?;
    let name = model.inputs()[0].name.clone();
    let outputs = model.run([(&*name, x)])?;
    let map = outputs[0].reshape((size[0], size[1]))?;
    let probabilities = map.to_vec::<f32>()?;
    let mut areas: Vec<Area> = components(&probabilities, size[1])
        .into_iter()
        .filter(|component| {
            let sum: f32 = component.iter().map(|&at| probabilities[at]).sum();
            component.len() > 9 && sum / component.len() as f32 > LINE
        })
        .map(|component| {
            let columns = || component.iter().map(|at| at % size[1]);
            let rows = || component.iter().map(|at| at / size[1]);
            let ends = |all: &mut dyn Iterator<Item = usize>| {
                all.fold((usize::MAX, 0), |(least, most), at| (least.min(at), most.max(at + 1)))
            };
            let ((left, right), (upper, lower)) = (ends(&mut columns()), ends(&mut rows()));
            let [w, h] = [right - left, lower - upper].map(|extent| extent as f64);
            let margin = MARGIN * w * h / (2.0 * (w + h));
            let scaled = |at: f64, extent: usize, of: usize| {
                (at * of as f64 / extent as f64).clamp(0.0, of as f64) as usize
            };
            Area {
                left: scaled(left as f64 - margin, size[1], width),
                right: scaled(right as f64 + margin + 1.0, size[1], width),
                upper: scaled(upper as f64 - margin, size[0], height),
                lower: scaled(lower as f64 + margin + 1.0, size[0], height),
            }
        })
        .collect();
    areas.sort_by_key(|area| (area.upper, area.left));
    Ok(areas)
}

/// The pixels above the threshold in groups of neighbours.
fn components(probabilities: &[f32], width: usize) -> Vec<Vec<usize>> {
    let mut is_open: Vec<bool> = probabilities.iter().map(|&p| p > PIXEL).collect();
    let mut found = Vec::new();
    for start in 0..is_open.len() {
        let (mut component, mut stack) = (Vec::new(), vec![start]);
        while let Some(at) = stack.pop() {
            if std::mem::take(&mut is_open[at]) {
                component.push(at);
                let column = at % width;
                stack.extend((column > 0).then(|| at - 1));
                stack.extend((column + 1 < width).then_some(at + 1));
                stack.extend(at.checked_sub(width));
                stack.extend(Some(at + width).filter(|&at| at < is_open.len()));
            }
        }
        if !component.is_empty() {
            found.push(component);
        }
    }
    found
}

/// The text of a line, and how certain it is.
fn read(
    model: &Model,
    letters: &[&str],
    pixels: &Tensor,
    area: &Area,
) -> Result<(String, f32), Failure> {
    let line = pixels.slice(s![.., area.upper..area.lower, area.left..area.right])?;
    let width = (HEIGHT * line.dims()[2]).div_ceil(line.dims()[1]).max(1);
    let bilinear = Interpolation::Bilinear { align_corners: false };
    let x = normalized(&line)?.interpolate([HEIGHT, width], bilinear)?;
    let name = model.inputs()[0].name.clone();
    let outputs = model.run([(&*name, x)])?;
    let scores = outputs[0].squeeze(0)?;
    let (best, scores) =
        (scores.argmax(-1, false)?.to_vec::<i64>()?, scores.max_axis(-1, false)?.to_vec::<f32>()?);
    // A letter is repeated while the line goes on below it, and class 0 stands between two.
    let (mut text, mut certainty, mut count, mut last) = (String::new(), 0.0, 0, 0);
    for (&class, &score) in best.iter().zip(&scores) {
        if class != 0 && class != last {
            text.push_str(letters.get(class as usize - 1).copied().unwrap_or("?"));
            certainty += score;
            count += 1;
        }
        last = class;
    }
    Ok((text, if count > 0 { certainty / count as f32 } else { 0.0 }))
}

/// Draws the edges of an area in red.
fn draw(pixels: &mut Tensor, area: &Area) -> Result<()> {
    let Area { left, upper, right, lower } = *area;
    let red = tensor![u8; 255, 0, 0].reshape((3, 1, 1))?;
    for (rows, columns) in [
        (upper..upper + 1, left..right),
        (lower - 1..lower, left..right),
        (upper..lower, left..left + 1),
        (upper..lower, right - 1..right),
    ] {
        let color = red.expand((3, rows.len(), columns.len()))?;
        pixels.set_slice(s![.., rows, columns], &color)?;
    }
    Ok(())
}
