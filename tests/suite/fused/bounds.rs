//! How far a result may be from the reference's, element by element: a few roundings of the numbers
//! that the op adds up, and one of the result. Where a derivative reads the op's result, its errors count too.

use crate::support::oracle::Places;

pub fn softmax(p: &Places, x: &[f64], y: &[f64]) -> Vec<f64> {
    let most = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let pairs = x.iter().zip(y);
    pairs.map(|(x, y)| p.bound(*y, y * (6.0 + (x - most).abs()))).collect()
}

pub fn log_softmax(p: &Places, x: &[f64], y: &[f64]) -> Vec<f64> {
    let most = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let log = (x.len() as f64).ln();
    let pairs = x.iter().zip(y);
    pairs.map(|(x, y)| p.bound(*y, 2.0 * (x - most).abs() + 2.0 * log + 4.0)).collect()
}

/// `y (g - Σ g y)`, of which y has the errors that [`softmax`] admits, and is rounded.
pub fn softmax_grad(p: &Places, g: &[f64], y: &[f64], dx: &[f64]) -> Vec<f64> {
    let along: f64 = g.iter().zip(y).map(|(g, y)| (g * y).abs()).sum();
    let each = g.iter().zip(y).zip(dx);
    let bound = |((g, y), dx): ((&f64, &f64), &f64)| {
        let of_y = 6.0 - y.max(1e-30).ln() + p.out / p.wide;
        let size = g.abs() + 2.0 * along;
        p.bound(*dx, (4.0 + of_y) * y.abs() * size) + p.tiny * size
    };
    each.map(bound).collect()
}

/// `g - e^y Σ g`, likewise.
pub fn log_softmax_grad(p: &Places, g: &[f64], y: &[f64], dx: &[f64]) -> Vec<f64> {
    let along: f64 = g.iter().map(|g| g.abs()).sum();
    let log = (g.len() as f64).ln();
    let each = g.iter().zip(y).zip(dx);
    let bound = |((g, y), dx): ((&f64, &f64), &f64)| {
        let of_y = 2.0 * y.abs() + 2.0 * log + y.abs() * p.out / p.wide;
        p.bound(*dx, 4.0 * g.abs() + (8.0 + of_y) * y.exp() * along)
    };
    each.map(bound).collect()
}

pub fn loss(p: &Places, x: &[f64], smoothing: f64, loss: f64) -> f64 {
    let largest = x.iter().filter(|x| x.is_finite()).fold(0.0, |a: f64, x| a.max(x.abs()));
    p.bound(loss, 16.0 + 4.0 * smoothing * largest)
}

/// Exponentials of a row's distances from its largest, `[x − most, e^it]`, and their sum.
fn exponentials(x: &[f64]) -> (Vec<[f64; 2]>, f64) {
    let most = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // Of −∞ nothing is added, whose distance counts for nothing.
    let distance = |x: &f64| (x - most).max(-1e4);
    let each: Vec<_> = x.iter().map(distance).map(|d| [d, d.exp()]).collect();
    let sum = each.iter().map(|[_, e]| e).sum();
    (each, sum)
}

/// However large the logits are, each probability is relatively as near as a softmax is, and so is what a
/// target's lacks to 1, but for the rounding of the sum that it comes from, which is of `f64`.
pub fn cross_entropy_grad(
    p: &Places,
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
        // Whatever p is, no more than four places of the upstream.
        (varies * (8.0 + log + d.abs()) + 3.0 * fixed + 2f64.powi(-50) / p.wide).min(4.0)
    };
    let each = each.into_iter().enumerate().map(slope);
    each.zip(dx).map(|(size, dx)| p.bound(*dx, g.abs() * size)).collect()
}

/// Half a place of 1 in `f64`.
const DOUBLE: f64 = 1.0 / (1u64 << 53) as f64;

/// What a sum over rows loses in `f64` of its terms' sizes.
pub const SUM: f64 = 64.0 * DOUBLE;

fn mean_size(x: &[f64]) -> f64 {
    x.iter().map(|x| x.abs()).sum::<f64>() / x.len() as f64
}

/// How a norm maps a row.
pub struct Normal {
    mean: f64,
    reciprocal: f64,
    /// What the result loses by the mean's rounding in `f64`.
    pub lost: f64,
}

impl Normal {
    /// Of layer norm, or, not centred, of rms norm.
    pub fn of(x: &[f64], eps: f64, centred: bool) -> Normal {
        let n = x.len() as f64;
        let mean = if centred { x.iter().sum::<f64>() / n } else { 0.0 };
        let variance = x.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
        let reciprocal = 1.0 / (variance + eps).sqrt();
        let lost = if centred { 8.0 * DOUBLE * mean_size(x) * reciprocal } else { 0.0 };
        Normal { mean, reciprocal, lost }
    }

    pub fn at(&self, x: f64) -> f64 {
        (x - self.mean) * self.reciprocal
    }
}

pub fn norm(p: &Places, x: &[f64], normal: &Normal, weight: &[f64], y: &[f64]) -> Vec<f64> {
    let lost = normal.lost / DOUBLE;
    let each = x.iter().zip(weight).zip(y);
    let each = each.map(|((x, w), y)| {
        let of_row = p.bound(*y, 4.0 * *y + w * (8.0 * normal.at(*x).abs() + lost));
        // Quotients on the way may be subnormal.
        of_row + 8.0 * p.tiny
    });
    each.collect()
}

/// Gradient of a row, `h` the upstream gradient times the weight.
pub fn norm_dx(p: &Places, h: &[f64], x: &[f64], normal: &Normal, dx: &[f64]) -> Vec<f64> {
    let (r, lost) = (normal.reciprocal, normal.lost);
    let a = mean_size(h);
    let along: f64 = h.iter().zip(x).map(|(h, x)| (h * normal.at(*x)).abs()).sum();
    let b = along / h.len() as f64;
    let each = h.iter().zip(x).zip(dx);
    let each = each.map(|((h, x), dx)| {
        let x = normal.at(*x).abs();
        p.bound(*dx, 8.0 * r * (h.abs() + a + x * b)) + r * lost * (b + lost * a + x * a)
    });
    each.collect()
}

/// Sums over rows, in `f64`, of terms whose sizes sum up to `sizes`, with so many errors of the working type.
pub fn columns(p: &Places, sizes: &[f64], errors: f64, want: &[f64]) -> Vec<f64> {
    let each = sizes.iter().zip(want);
    each.map(|(&size, &want)| p.bound(want, errors * size) + SUM * size).collect()
}
