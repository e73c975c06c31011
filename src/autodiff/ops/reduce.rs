//! Derivatives of reductions.

use smallvec::smallvec;

use crate::autodiff::graph::{InputGradients, Rule, SharedRule, Upstream, bytes_of, shared_rule};
use crate::backend::Backend;
use crate::error::Result;
use crate::ops::ReduceOp;
use crate::shape::{AxisSet, Shape};
use crate::tensor::Tensor;

struct ReduceRule<B: Backend> {
    op: ReduceOp,
    shape: Shape,
    axes: AxisSet,
    /// Input and output, if the rule needs them.
    values: Option<(Tensor<B>, B::Tensor)>,
}

/// Rule of a reduction of `x` over `axes` to `y`. With k the number of elements per result, the
/// gradient of each element is:
///
/// ```text
/// sum, mean        g, g / k
/// prod             g times the product of the others
/// variance, std    2 g (x − mean) / (k − ddof),   (x − mean) / y · g / (k − ddof), 0 where y is 0
/// max, min         g where x equals y, or is NaN, split evenly among ties
/// norm             p = 0: 0      p = 1: g sign(x)      p = ∞, −∞: as max, min of |x|, times sign(x)
///                  else g sign(x) (|x| / y)^(p − 1); 0 where x or y is 0
/// logsumexp        g e^(x − y), as g e^(x − m) / Σ e^(x − m), m the largest of x; 0 where that is −∞
/// ```
///
/// The formulas hold at infinities too, as in PyTorch: ∞ − ∞ and ∞ / ∞ are NaN.
pub(crate) fn reduce_rule<B: Backend>(
    op: ReduceOp,
    x: &Tensor<B>,
    axes: AxisSet,
    y: &B::Tensor,
) -> SharedRule<B> {
    let values = match op {
        ReduceOp::Sum | ReduceOp::Mean => None,
        _ => Some((x.clone(), y.clone())),
    };
    shared_rule(ReduceRule { op, shape: *x.shape(), axes, values })
}

/// Rule of logsumexp, apart from [`reduce_rule`], so that other reductions do not link softmax.
pub(crate) fn log_sum_exp_rule<B: Backend>(
    x: &Tensor<B>,
    axes: AxisSet,
    y: &B::Tensor,
) -> SharedRule<B> {
    let values = Some((x.clone(), y.clone()));
    shared_rule(LogSumExpRule(ReduceRule {
        op: ReduceOp::LogSumExp,
        shape: *x.shape(),
        axes,
        values,
    }))
}

struct LogSumExpRule<B: Backend>(ReduceRule<B>);

impl<B: Backend> Rule<B> for LogSumExpRule<B> {
    fn backward(&self, upstream: &Upstream<'_, B>, _wanted: &[bool]) -> Result<InputGradients<B>> {
        let rule = &self.0;
        rule.gradient(upstream, |g, x, y| rule.log_sum_exp_gradient(g, x, y))
    }

    fn saved_bytes(&self) -> usize {
        self.0.saved_bytes()
    }
}

impl<B: Backend> Rule<B> for ReduceRule<B> {
    fn backward(&self, upstream: &Upstream<'_, B>, _wanted: &[bool]) -> Result<InputGradients<B>> {
        self.gradient(upstream, |g, x, y| match self.op {
            ReduceOp::Prod => g.mul(&self.products_of_others(x)?),
            ReduceOp::Variance { ddof } => {
                self.deviations(x)?.mul(&g.mul(2.0)?.div(self.degrees_of_freedom(ddof))?)
            }
            ReduceOp::Std { ddof } => {
                ratio_times(&self.deviations(x)?, y, &g.div(self.degrees_of_freedom(ddof))?)
            }
            ReduceOp::Norm { p } => self.norm_gradient(p, g, x, y),
            _ => self.split_among(&x.eq(y)?.logical_or(&x.isnan()?)?, g),
        })
    }

    fn saved_bytes(&self) -> usize {
        bytes_of(self.values.iter().flat_map(|(x, y)| [Some(x.data()), Some(y)]))
    }
}

impl<B: Backend> ReduceRule<B> {
    /// The gradient of `x`: of a sum or mean the shares of `g`, else what `of_values` computes from `g`, `x` and `y`.
    fn gradient(
        &self,
        upstream: &Upstream<'_, B>,
        of_values: impl FnOnce(&Tensor<B>, &Tensor<B>, &Tensor<B>) -> Result<Tensor<B>>,
    ) -> Result<InputGradients<B>> {
        let kept = self.shape.reduced(&self.axes, true);
        let dtype = upstream.g.dtype();
        let g = upstream.g.reshape(kept)?;
        let Some((x, y)) = &self.values else {
            let share = match self.op {
                ReduceOp::Mean => {
                    g.to_dtype(dtype.at_least_f32())?.div(self.count())?.to_dtype(dtype)?
                }
                _ => g,
            };
            return Ok(smallvec![Some(share.broadcast_to(self.shape)?)]);
        };
        // `prod` is computed in the widest type, forwards too: partial products may overflow the dtype.
        let wide = match self.op {
            ReduceOp::Prod => B::wide(Some(x.data())),
            _ => dtype.at_least_f32(),
        };
        let (g, x) = (g.to_dtype(wide)?, x.to_dtype(wide)?);
        let y = upstream.output(y).reshape(kept)?.to_dtype(wide)?;
        Ok(smallvec![Some(of_values(&g, &x, &y)?.to_dtype(dtype)?)])
    }

    fn log_sum_exp_gradient(
        &self,
        g: &Tensor<B>,
        x: &Tensor<B>,
        y: &Tensor<B>,
    ) -> Result<Tensor<B>> {
        if self.count() == 0.0 {
            return x.zeros_like();
        }
        // A finite result has finite elements alone, or −∞ beside them.
        if self.axes.len() == 1 && !may_be_infinite(y)? {
            return g.mul(&x.softmax(self.axes[0])?);
        }
        // Not e^(x − y): y is rounded, possibly to 16 bits.
        let mut largest = x.detach().max(Some(&self.axes), true)?;
        let infinite = may_be_infinite(&largest)?;
        if infinite {
            largest = largest.clamp_min(-x.dtype().largest())?;
        }
        let powers = x.sub(&largest)?.exp()?;
        let mut sum = powers.sum(Some(&self.axes), true)?;
        if infinite {
            // Of finite elements beside ∞, the power is 0 and the sum NaN.
            sum = sum.masked_fill(&largest.eq(f64::INFINITY)?, 1.0)?;
        }
        g.mul(&ratio(&powers, &sum)?)
    }

    /// Number of elements per result.
    fn count(&self) -> f64 {
        let count: usize = self.axes.iter().map(|&axis| self.shape.dims()[axis]).product();
        count as f64
    }

    fn degrees_of_freedom(&self, ddof: usize) -> f64 {
        (self.count() - ddof as f64).max(0.0)
    }

    /// `x − mean`, corrected by its own mean: the rounding error of the mean may exceed the
    /// deviations when the mean is far from 0. There is none of an infinite mean.
    fn deviations(&self, x: &Tensor<B>) -> Result<Tensor<B>> {
        let near = x.sub(&x.mean(Some(&self.axes), true)?)?;
        let error = near.mean(Some(&self.axes), true)?;
        near.sub(&filled(&error, &error.isfinite()?.logical_not()?, 0.0)?)
    }

    /// `g` where `chosen`, divided evenly among the chosen elements of each result.
    fn split_among(&self, chosen: &Tensor<B>, g: &Tensor<B>) -> Result<Tensor<B>> {
        let ties = chosen.sum(Some(&self.axes), true)?.to_dtype(g.dtype())?;
        let zero = Tensor::zeros(Shape::scalar(), g.dtype())?;
        Tensor::where_cond(chosen, &g.div(&ties)?, &zero)
    }

    fn norm_gradient(
        &self,
        p: f64,
        g: &Tensor<B>,
        x: &Tensor<B>,
        y: &Tensor<B>,
    ) -> Result<Tensor<B>> {
        if p == 0.0 {
            return Tensor::zeros(self.shape, g.dtype());
        }
        if p == 1.0 {
            return x.sign()?.mul(g)?.masked_fill(&x.eq(0.0)?, 0.0);
        }
        let size = x.abs()?;
        if p.is_infinite() {
            let split = self.split_among(&size.eq(y)?.logical_or(&x.isnan()?)?, g)?;
            return split.mul(&x.sign()?)?.masked_fill(&x.eq(0.0)?, 0.0);
        }
        if p == 2.0 {
            return ratio_times(x, y, g);
        }
        let zero = x.eq(0.0)?.logical_or(&y.eq(0.0)?)?;
        let ratio = filled(&ratio(&size, y)?, &zero, 1.0)?;
        ratio.log()?.mul(p - 1.0)?.exp()?.mul(&x.sign()?)?.mul(g)?.masked_fill(&zero, 0.0)
    }

    /// For each element, the product of the other elements of its result. There is no division, so
    /// any number of elements may be 0.
    ///
    /// ```text
    /// x0       x1       x2       x3       up: products of pairs, of pairs of pairs, … to one element;
    ///    x0·x1             x2·x3          down: the product of the others of an element is that of
    ///            …                        its pair, times its neighbour
    /// ```
    ///
    /// Powers of two are kept apart, since partial products may leave the range.
    fn products_of_others(&self, x: &Tensor<B>) -> Result<Tensor<B>> {
        let rank = self.shape.ndim();
        let kept = (0..rank).filter(|axis| !self.axes.contains(axis));
        let order: AxisSet = kept.chain(self.axes.iter().copied()).collect();
        let mut back = order.clone();
        order.iter().enumerate().for_each(|(to, &from)| back[from] = to);
        let moved = x.permute(&order)?;
        let rows = self.shape.reduced(&self.axes, true).numel();
        let [mut level, mut powers] = near_one(&moved.reshape((rows, self.count() as usize))?)?;
        let mut pairs = Vec::new();
        while level.dims()[1] > 1 {
            if level.dims()[1] % 2 == 1 {
                let one = Tensor::ones((rows, 1), level.dtype())?;
                level = Tensor::cat(&[&level, &one], 1)?;
                powers = Tensor::cat(&[&powers, &one.zeros_like()?], 1)?;
            }
            let split = |x: &Tensor<B>| x.reshape((rows, x.dims()[1] / 2, 2));
            let pair = [split(&level)?, split(&powers)?];
            let side = |x: &Tensor<B>, i: usize| x.narrow(2, i, 1)?.squeeze(2);
            let [product, power] = near_one(&side(&pair[0], 0)?.mul(&side(&pair[0], 1)?)?)?;
            (level, powers) = (product, power.add(&pair[1].sum(Some(&[2]), false)?)?);
            pairs.push(pair);
        }
        let mut others = Tensor::ones(*level.shape(), level.dtype())?;
        let mut powers = others.zeros_like()?;
        for [pair, pair_powers] in pairs.iter().rev() {
            // The level above may be padded by one element.
            let above = |x: &Tensor<B>| x.narrow(1, 0, pair.dims()[1])?.unsqueeze(2);
            let power = pair_powers.flip(2)?.add(&above(&powers)?)?.flatten(1, 2)?;
            let product = pair.flip(2)?.mul(&above(&others)?)?.flatten(1, 2)?;
            let [product, shift] = near_one(&product)?;
            (others, powers) = (product, power.add(&shift)?);
        }
        let all = |x: &Tensor<B>| x.narrow(1, 0, self.count() as usize);
        let products = times_power(&all(&others)?, &all(&powers)?)?;
        products.reshape(*moved.shape())?.permute(&back)
    }
}

/// `x` as a number near 1 and the exponent of a power of two, without a derivative; 0, infinities
/// and NaN as themselves and 0.
fn near_one<B: Backend>(x: &Tensor<B>) -> Result<[Tensor<B>; 2]> {
    let exponent = x.detach().abs()?.log2()?.round()?;
    let exponent = exponent.masked_fill(&exponent.isfinite()?.logical_not()?, 0.0)?;
    Ok([times_power(x, &exponent.neg()?)?, exponent])
}

/// `x · 2^exponent` of an integer. The power may leave the range where the product does not.
fn times_power<B: Backend>(x: &Tensor<B>, exponent: &Tensor<B>) -> Result<Tensor<B>> {
    let half = exponent.mul_scalar(0.5)?.floor()?;
    x.mul(&half.exp2()?)?.mul(&exponent.sub(&half)?.exp2()?)
}

/// Whether an element is infinite. Where only a device can read `x`, it is not waited for: an element may be.
fn may_be_infinite<B: Backend>(x: &Tensor<B>) -> Result<bool> {
    match B::host_bytes(x.data()) {
        Some(_) => Ok(x.isinf()?.to_vec::<bool>()?.contains(&true)),
        None => Ok(true),
    }
}

/// `x` with `value` where `chosen`.
fn filled<B: Backend>(x: &Tensor<B>, chosen: &Tensor<B>, value: f64) -> Result<Tensor<B>> {
    let value = Tensor::full(Shape::scalar(), value)?.to_dtype(x.dtype())?;
    Tensor::where_cond(chosen, &value, x)
}

/// `x / y · g`; 0 where y is 0. In this order because |x| ≤ |y|: x / y is finite where g / y may
/// overflow.
fn ratio_times<B: Backend>(x: &Tensor<B>, y: &Tensor<B>, g: &Tensor<B>) -> Result<Tensor<B>> {
    let is_zero = y.eq(0.0)?;
    x.div(&filled(y, &is_zero, 1.0)?)?.mul(&filled(g, &is_zero, 0.0)?)
}

/// `a / y`; 0 where y is 0.
fn ratio<B: Backend>(a: &Tensor<B>, y: &Tensor<B>) -> Result<Tensor<B>> {
    let is_zero = y.eq(0.0)?;
    let zero = Tensor::zeros(Shape::scalar(), y.dtype())?;
    Tensor::where_cond(&is_zero, &zero, &a.div(&filled(y, &is_zero, 1.0)?)?)
}
