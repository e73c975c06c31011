//! Error bounds for each element of a result: a few roundings of the terms that the op adds up, and one of
//! the result. If a derivative reads the op's result, the bound includes the error of that.

use crate::testing::suite::oracle::Rounding;

pub fn softmax(p: &Rounding, x: &[f64], y: &[f64]) -> Vec<f64> {
    let most = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let pairs = x.iter().zip(y);
    pairs.map(|(x, y)| p.bound(*y, y * (6.0 + (x - most).abs()))).collect()
}

pub fn log_softmax(p: &Rounding, x: &[f64], y: &[f64]) -> Vec<f64> {
    let most = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let log = (x.len() as f64).ln();
    let pairs = x.iter().zip(y);
    pairs.map(|(x, y)| p.bound(*y, 2.0 * (x - most).abs() + 2.0 * log + 4.0)).collect()
}

/// `y (g - Σ g y)`, where y has the error that [`softmax`] allows, and is rounded.
pub fn softmax_grad(p: &Rounding, g: &[f64], y: &[f64], dx: &[f64]) -> Vec<f64> {
    let along: f64 = g.iter().zip(y).map(|(g, y)| (g * y).abs()).sum();
    let each = g.iter().zip(y).zip(dx);
    let bound = |((g, y), dx): ((&f64, &f64), &f64)| {
        let of_y = 6.0 - y.max(1e-30).ln() + p.out / p.wide;
        let size = g.abs() + 2.0 * along;
        p.bound(*dx, (4.0 + of_y) * y.abs() * size) + p.tiny * size
    };
    each.map(bound).collect()
}

/// `g - e^y Σ g`, where y has the error that [`log_softmax`] allows.
pub fn log_softmax_grad(p: &Rounding, g: &[f64], y: &[f64], dx: &[f64]) -> Vec<f64> {
    let along: f64 = g.iter().map(|g| g.abs()).sum();
    let log = (g.len() as f64).ln();
    let each = g.iter().zip(y).zip(dx);
    let bound = |((g, y), dx): ((&f64, &f64), &f64)| {
        let of_y = 2.0 * y.abs() + 2.0 * log + y.abs() * p.out / p.wide;
        p.bound(*dx, 4.0 * g.abs() + (8.0 + of_y) * y.exp() * along)
    };
    each.map(bound).collect()
}

pub fn loss(p: &Rounding, x: &[f64], smoothing: f64, loss: f64) -> f64 {
    let largest = x.iter().filter(|x| x.is_finite()).fold(0.0, |a: f64, x| a.max(x.abs()));
    p.bound(loss, 16.0 + 4.0 * smoothing * largest)
}

/// `[x − max, e^(x − max)]` for each element of a row, and the sum of the exponentials.
fn exponentials(x: &[f64]) -> (Vec<[f64; 2]>, f64) {
    let most = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // An element of −∞ contributes nothing, so its difference must stay finite.
    let distance = |x: &f64| (x - most).max(-1e4);
    let each: Vec<_> = x.iter().map(distance).map(|d| [d, d.exp()]).collect();
    let sum = each.iter().map(|[_, e]| e).sum();
    (each, sum)
}

/// For logits of any size, each probability has the relative error of a softmax. So has 1 minus the target's
/// probability, except for the rounding of the sum of the others, which is of `f64`.
pub fn cross_entropy_grad(
    p: &Rounding,
    g: f64,
    x: &[f64],
    target: i64,
    smoothing: f64,
    dx: &[f64],
) -> Vec<f64> {
    let log = (x.len() as f64).ln();
    let (each, sum) = exponentials(x);
    let spread = smoothing / x.len() as f64;
    let slope = |(k, [d, e]): (usize, [f64; 2])| {
        let probability = e / sum;
        let (varies, fixed) = match target == k as i64 {
            true if smoothing < 0.5 => (1.0 - probability, smoothing),
            true => (probability, 1.0 - smoothing + spread),
            false => (probability, spread),
        };
        // At most four ULP of the upstream gradient for any probability.
        (varies * (8.0 + log + d.abs()) + 3.0 * fixed + 2f64.powi(-50) / p.wide).min(4.0)
    };
    let each = each.into_iter().enumerate().map(slope);
    each.zip(dx).map(|(size, dx)| p.bound(*dx, g.abs() * size)).collect()
}

/// Unit roundoff of `f64`.
const DOUBLE: f64 = 1.0 / (1u64 << 53) as f64;

/// Error of an `f64` sum over rows, relative to the sum of magnitudes.
pub const SUM: f64 = 64.0 * DOUBLE;

fn mean_size(x: &[f64]) -> f64 {
    x.iter().map(|x| x.abs()).sum::<f64>() / x.len() as f64
}

/// The map of a row by a norm.
pub struct Normal {
    mean: f64,
    reciprocal: f64,
    /// Error of the result due to rounding the mean in `f64`.
    pub mean_error: f64,
}

impl Normal {
    /// The map of layer norm, or, if not centred, of rms norm.
    pub fn of(x: &[f64], eps: f64, centred: bool) -> Normal {
        let n = x.len() as f64;
        let mean = if centred { x.iter().sum::<f64>() / n } else { 0.0 };
        let variance = x.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
        let reciprocal = 1.0 / (variance + eps).sqrt();
        let mean_error = if centred { 8.0 * DOUBLE * mean_size(x) * reciprocal } else { 0.0 };
        Normal { mean, reciprocal, mean_error }
    }

    pub fn at(&self, x: f64) -> f64 {
        (x - self.mean) * self.reciprocal
    }
}

pub fn norm(p: &Rounding, x: &[f64], normal: &Normal, weight: &[f64], y: &[f64]) -> Vec<f64> {
    let mean_error = normal.mean_error / DOUBLE;
    let each = x.iter().zip(weight).zip(y);
    let each = each.map(|((x, w), y)| {
        let of_row = p.bound(*y, 4.0 * *y + w * (8.0 * normal.at(*x).abs() + mean_error));
        // Intermediate quotients may be subnormal.
        of_row + 8.0 * p.tiny
    });
    each.collect()
}

/// Gradient by a row; `h` is the upstream gradient times the weight.
pub fn norm_dx(p: &Rounding, h: &[f64], x: &[f64], normal: &Normal, dx: &[f64]) -> Vec<f64> {
    let (r, mean_error) = (normal.reciprocal, normal.mean_error);
    let a = mean_size(h);
    let along: f64 = h.iter().zip(x).map(|(h, x)| (h * normal.at(*x)).abs()).sum();
    let b = along / h.len() as f64;
    let each = h.iter().zip(x).zip(dx);
    let each = each.map(|((h, x), dx)| {
        let x = normal.at(*x).abs();
        p.bound(*dx, 8.0 * r * (h.abs() + a + x * b))
            + r * mean_error * (b + mean_error * a + x * a)
    });
    each.collect()
}

/// Sums over rows in `f64`; `sizes` are the sums of the terms' magnitudes, each with `errors` roundings.
pub fn columns(p: &Rounding, sizes: &[f64], errors: f64, want: &[f64]) -> Vec<f64> {
    let each = sizes.iter().zip(want);
    each.map(|(&size, &want)| p.bound(want, errors * size) + SUM * size).collect()
}
