//! How far a result may be from the reference's, element by element: a few roundings of the numbers
//! that the op adds up, and one of the result.

use swath::DType;

use crate::support::ulp::{limits, unit_roundoff};

/// Roundings of a dtype.
pub struct Places {
    /// Of the type that the op computes in: `f32` for 16-bit floats.
    pub wide: f64,
    /// Of the result.
    out: f64,
    tiny: f64,
}

impl Places {
    pub fn of(dtype: DType) -> Places {
        let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
        let (wide, out) = (unit_roundoff(wide), unit_roundoff(dtype));
        Places { wide, out, tiny: 2.0 * limits(dtype)[0] }
    }

    /// A result `want` of numbers that are `size` large, together.
    pub fn bound(&self, want: f64, size: f64) -> f64 {
        let finite = |x: f64| if x.is_finite() { x.abs() } else { 0.0 };
        2.0 * self.out * finite(want) + self.wide * finite(size) + self.tiny
    }
}

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

pub fn softmax_grad(p: &Places, g: &[f64], y: &[f64], dx: &[f64]) -> Vec<f64> {
    let along: f64 = g.iter().zip(y).map(|(g, y)| (g * y).abs()).sum();
    let each = g.iter().zip(y).zip(dx);
    each.map(|((g, y), dx)| p.bound(*dx, 4.0 * y.abs() * (g.abs() + along))).collect()
}

pub fn log_softmax_grad(p: &Places, g: &[f64], y: &[f64], dx: &[f64]) -> Vec<f64> {
    let along: f64 = g.iter().map(|g| g.abs()).sum();
    let each = g.iter().zip(y).zip(dx);
    each.map(|((g, y), dx)| p.bound(*dx, 4.0 * (g.abs() + y.exp() * along))).collect()
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

/// What the others than the largest add up to, in `f64`.
pub fn rest(p: &Places, x: &[f64], rest: f64) -> f64 {
    let (each, sum) = exponentials(x);
    let others = each.iter().filter(|[d, _]| *d != 0.0);
    let of_others: f64 = others.map(|[d, e]| e * (d.abs() + 4.0)).sum();
    p.bound(rest, of_others + sum * 2f64.powi(-50) / p.wide)
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

pub struct Normal {
    pub mean: f64,
    pub reciprocal: f64,
}

impl Normal {
    pub fn of(x: &[f64], eps: f64) -> Normal {
        let n = x.len() as f64;
        let mean = x.iter().sum::<f64>() / n;
        let variance = x.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
        Normal { mean, reciprocal: 1.0 / (variance + eps).sqrt() }
    }

    pub fn at(&self, x: f64) -> f64 {
        (x - self.mean) * self.reciprocal
    }
}

fn mean_size(x: &[f64]) -> f64 {
    x.iter().map(|x| x.abs()).sum::<f64>() / x.len() as f64
}

pub fn layer_norm(p: &Places, x: &[f64], eps: f64, weight: &[f64], y: &[f64]) -> Vec<f64> {
    let normal = Normal::of(x, eps);
    let lost = 8.0 * mean_size(x) * normal.reciprocal;
    let each = x.iter().zip(weight).zip(y);
    each.map(|((x, w), y)| p.bound(*y, 4.0 * *y + w * (8.0 * normal.at(*x).abs() + lost))).collect()
}

pub fn mean(p: &Places, x: &[f64], mean: f64) -> f64 {
    2.0 * p.wide * mean.abs() + lost_in_mean(x) + p.tiny
}

pub fn reciprocal_deviation(p: &Places, want: f64) -> f64 {
    16.0 * p.wide * want.abs()
}

/// Half a place of 1 in `f64`.
pub const DOUBLE: f64 = 1.0 / (1u64 << 53) as f64;

/// What the mean of a row loses in `f64`.
pub fn lost_in_mean(x: &[f64]) -> f64 {
    8.0 * DOUBLE * mean_size(x)
}

/// Gradient of a row; `normal` are its x̂, of which `lost` is what their mean loses.
pub fn layer_norm_dx(
    p: &Places,
    h: &[f64],
    normal: &[f64],
    r: f64,
    lost: f64,
    dx: &[f64],
) -> Vec<f64> {
    let n = h.len() as f64;
    let a = mean_size(h);
    let b = h.iter().zip(normal).map(|(h, x)| (h * x).abs()).sum::<f64>() / n;
    let each = h.iter().zip(normal).zip(dx);
    let each = each.map(|((h, x), dx)| {
        let of_mean = r * lost * (b + lost * a + x.abs() * a);
        p.bound(*dx, 8.0 * r * (h.abs() + a + x.abs() * b)) + of_mean
    });
    each.collect()
}

/// What a sum over rows loses in `f64` of its terms' sizes.
pub const SUM: f64 = 64.0 * DOUBLE;

/// A sum over rows, in `f64`, of terms whose sizes sum up to `size`.
pub fn column(p: &Places, size: f64, want: f64) -> f64 {
    p.bound(want, 0.0) + SUM * size
}
