//! PNG pictures of the results.

use std::path::Path;

use swath::io::image;
use swath::prelude::*;

use crate::digits::{Pen, SIDE};
use crate::{Failure, Images, Tensor};

type Color = [f32; 3];

const WHITE: Color = [1.0; 3];
const BLACK: Color = [0.0; 3];
const GREEN: Color = [0.0, 0.55, 0.2];
const RED: Color = [0.85, 0.1, 0.1];

/// A picture of square cells with a margin between them.
struct Picture {
    width: usize,
    pixels: Vec<Color>,
}

impl Picture {
    fn new([columns, rows]: [usize; 2]) -> Self {
        let (width, height) = (columns * CELL, rows * CELL);
        Picture { width, pixels: vec![WHITE; width * height] }
    }

    /// Blends a color into a cell, pixel by pixel: `ink` has the side of an image.
    fn blend(&mut self, [column, row]: [usize; 2], color: Color, ink: &[f32]) {
        for y in 0..SIDE {
            let first = (row * CELL + MARGIN + y) * self.width + column * CELL + MARGIN;
            for (pixel, &ink) in self.pixels[first..first + SIDE].iter_mut().zip(&ink[y * SIDE..]) {
                *pixel = std::array::from_fn(|i| pixel[i] + (color[i] - pixel[i]) * ink);
            }
        }
    }

    /// Writes a number, right to left from a cell on in smaller digits if it has several.
    fn number(&mut self, cell: [usize; 2], color: Color, number: usize) {
        let mut ink = vec![0.0; SIDE * SIDE];
        let text = number.to_string();
        let step = (SIDE as f32 / (text.len() as f32 + 0.4)).min(12.0);
        let mut pen = Pen::upright(SIDE, (step * 1.4).min(16.0));
        pen.center[0] -= step * (text.len() as f32 - 1.0) / 2.0;
        for digit in text.bytes() {
            pen.draw(usize::from(digit - b'0'), SIDE, &mut ink);
            pen.center[0] += step;
        }
        self.blend(cell, color, &ink);
    }

    fn save(&self, path: &Path) -> Result<(), Failure> {
        let bytes = self.pixels.iter().flatten().map(|x| (x * 255.0).round() as u8).collect();
        let shape = (self.pixels.len() / self.width, self.width, 3);
        Ok(image::save(path, &Tensor::from_vec(bytes, shape)?.permute(&[2, 0, 1])?)?)
    }
}

const MARGIN: usize = 2;
const CELL: usize = SIDE + 2 * MARGIN;

/// Draws the confusion matrix: a row per digit, a column per prediction, the darker the more frequent in its row.
pub fn confusion(counts: &[[usize; 10]; 10], path: &Path) -> Result<(), Failure> {
    let mut picture = Picture::new([11, 11]);
    for (digit, row) in counts.iter().enumerate() {
        picture.number([digit + 1, 0], BLACK, digit);
        picture.number([0, digit + 1], BLACK, digit);
        let total = row.iter().sum::<usize>().max(1);
        for (predicted, &count) in row.iter().enumerate() {
            let cell = [predicted + 1, digit + 1];
            let share = count as f32 / total as f32;
            let color = if predicted == digit { GREEN } else { RED };
            picture.blend(cell, color, &[share.powf(0.4); SIDE * SIDE]);
            if count > 0 {
                picture.number(cell, if share > 0.3 { WHITE } else { BLACK }, count);
            }
        }
    }
    picture.save(path)
}

/// Draws images, each with its prediction to the right: green if it is right, red if not. The wrong ones come first.
pub fn predictions(images: &Images, predicted: &[i64], path: &Path) -> Result<(), Failure> {
    const COLUMNS: usize = 8;
    const ROWS: usize = 8;
    let digits = images.digits.to_vec::<i64>()?;
    let is_wrong = |&i: &usize| digits[i] != predicted[i];
    let wrong = (0..digits.len()).filter(is_wrong).take(COLUMNS * ROWS / 2);
    let right = (0..digits.len()).filter(|i| !is_wrong(i));
    let mut picture = Picture::new([2 * COLUMNS, ROWS]);
    for (cell, i) in wrong.chain(right).take(COLUMNS * ROWS).enumerate() {
        let (column, row) = (2 * (cell % COLUMNS), cell / COLUMNS);
        let ink = images.pixels.narrow(0, i, 1)?.to_vec::<f32>()?;
        picture.blend([column, row], BLACK, &ink);
        let color = if digits[i] == predicted[i] { GREEN } else { RED };
        picture.number([column + 1, row], color, predicted[i] as usize);
    }
    picture.save(path)
}
