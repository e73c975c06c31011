//! Digits drawn as strokes: rotated, sheared, scaled and shifted, with pens of different widths, and noisy.

use std::f32::consts::PI;

use swath::prelude::*;

use crate::{Images, Tensor};

/// Pixels along each side of an image.
pub const SIDE: usize = 28;

type Point = [f32; 2];

/// An arc of an ellipse around `center` with the given radii, from one angle to another in half turns, clockwise from
/// the right, as points of a polyline.
fn arc(center: Point, radii: Point, from: f32, to: f32) -> Vec<Point> {
    const PIECES: usize = 12;
    (0..=PIECES)
        .map(|i| {
            let angle = PI * (from + (to - from) * i as f32 / PIECES as f32);
            [center[0] + radii[0] * angle.cos(), center[1] + radii[1] * angle.sin()]
        })
        .collect()
}

/// The strokes of a digit in the square from (-1, -1), at the top left, to (1, 1).
fn strokes(digit: usize) -> Vec<Vec<Point>> {
    match digit {
        0 => vec![arc([0.0, 0.0], [0.6, 0.95], 0.0, 2.0)],
        1 => vec![vec![[-0.35, -0.6], [0.05, -0.95], [0.05, 0.95]]],
        2 => {
            let mut bow = arc([0.0, -0.4], [0.6, 0.55], -1.0, 0.2);
            bow.extend([[-0.6, 0.95], [0.65, 0.95]]);
            vec![bow]
        }
        3 => vec![
            arc([-0.05, -0.47], [0.55, 0.47], -0.9, 0.5),
            arc([-0.05, 0.47], [0.62, 0.47], -0.5, 0.9),
        ],
        4 => vec![vec![[0.1, -0.95], [-0.65, 0.35], [0.65, 0.35]], vec![[0.3, -0.35], [0.3, 0.95]]],
        5 => {
            let mut bow = vec![[0.55, -0.95], [-0.45, -0.95], [-0.5, -0.1]];
            bow.extend(arc([-0.05, 0.35], [0.6, 0.58], -0.75, 0.85));
            vec![bow]
        }
        6 => {
            let mut bow = vec![[0.4, -0.95], [-0.1, -0.6], [-0.5, 0.1]];
            bow.extend(arc([0.0, 0.42], [0.55, 0.52], -1.0, 1.0));
            vec![bow]
        }
        7 => vec![vec![[-0.6, -0.95], [0.6, -0.95], [-0.1, 0.95]]],
        8 => vec![
            arc([0.0, -0.47], [0.48, 0.45], 0.0, 2.0),
            arc([0.0, 0.47], [0.58, 0.48], 0.0, 2.0),
        ],
        _ => {
            let mut bow = arc([0.0, -0.42], [0.55, 0.52], 0.0, 2.0);
            bow.extend([[0.5, 0.1], [0.2, 0.95]]);
            vec![bow]
        }
    }
}

/// How a digit is drawn.
pub struct Pen {
    /// Matrix from the square of the strokes to pixels, row by row.
    pub matrix: [f32; 4],
    /// Center of the digit in pixels.
    pub center: Point,
    /// Half the width of a stroke in pixels.
    pub radius: f32,
}

impl Pen {
    /// A pen for a digit of this height in pixels at the center of a square.
    pub fn upright(side: usize, height: f32) -> Self {
        let middle = side as f32 / 2.0;
        Pen {
            matrix: [height / 2.0, 0.0, 0.0, height / 2.0],
            center: [middle, middle],
            radius: height / 16.0,
        }
    }

    fn random(rng: &mut Rng) -> Self {
        let mut between = |low: f32, high: f32| low + (high - low) * rng.uniform::<f32>();
        let (angle, shear) = (between(-0.4, 0.4), between(-0.3, 0.3));
        let (width, height) = (between(5.0, 9.5), between(6.5, 10.0));
        let (sin, cos) = angle.sin_cos();
        Pen {
            matrix: [
                width * cos,
                height * (shear * cos - sin),
                width * sin,
                height * (shear * sin + cos),
            ],
            center: [14.0 + between(-3.0, 3.0), 14.0 + between(-3.0, 3.0)],
            radius: between(0.7, 1.8),
        }
    }

    /// Draws a digit into an image of `side` rows: 1 on its strokes, 0 elsewhere, and between at their edges.
    pub fn draw(&self, digit: usize, side: usize, pixels: &mut [f32]) {
        let to_pixels = |[x, y]: Point| {
            let [a, b, c, d] = self.matrix;
            [self.center[0] + a * x + b * y, self.center[1] + c * x + d * y]
        };
        for stroke in strokes(digit) {
            let points: Vec<Point> = stroke.into_iter().map(to_pixels).collect();
            for pair in points.windows(2) {
                let reach = self.radius + 1.0;
                let span = |i: usize| {
                    let (low, high) = (pair[0][i].min(pair[1][i]), pair[0][i].max(pair[1][i]));
                    ((low - reach).max(0.0) as usize)
                        ..((high + reach).max(0.0) as usize + 1).min(side)
                };
                for row in span(1) {
                    for column in span(0) {
                        let from =
                            distance([column as f32 + 0.5, row as f32 + 0.5], pair[0], pair[1]);
                        let ink = (self.radius + 0.5 - from).clamp(0.0, 1.0);
                        let pixel = &mut pixels[row * side + column];
                        *pixel = pixel.max(ink);
                    }
                }
            }
        }
    }
}

/// Distance of a point from the line between two points.
fn distance(point: Point, from: Point, to: Point) -> f32 {
    let along = [to[0] - from[0], to[1] - from[1]];
    let offset = [point[0] - from[0], point[1] - from[1]];
    let squared = along[0] * along[0] + along[1] * along[1];
    let part = (offset[0] * along[0] + offset[1] * along[1]) / squared.max(1e-12);
    let part = part.clamp(0.0, 1.0);
    (offset[0] - part * along[0]).hypot(offset[1] - part * along[1])
}

/// Draws random digits.
pub fn draw(count: usize, rng: &mut Rng) -> Result<Images> {
    let (mut pixels, mut digits) = (vec![0f32; count * SIDE * SIDE], Vec::with_capacity(count));
    for image in pixels.chunks_exact_mut(SIDE * SIDE) {
        let digit = rng.below(10) as usize;
        Pen::random(rng).draw(digit, SIDE, image);
        let (ink, noise) = (0.5 + 0.5 * rng.uniform::<f32>(), 0.3 * rng.uniform::<f32>());
        for pixel in image {
            *pixel = (*pixel * ink + noise * rng.normal::<f32>()).clamp(0.0, 1.0);
        }
        digits.push(digit as i64);
    }
    Ok(Images {
        pixels: Tensor::from_vec(pixels, (count, 1, SIDE, SIDE))?,
        digits: Tensor::from_vec(digits, count)?,
    })
}
