//! How element-wise operations are recorded: as a node, or in steps of simpler operations.
//!
//! The steps, for what ONNX lacks, are within 4 units in the last place of `F32` where they do not cancel, as measured
//! with ONNX Runtime, except these: `erfc` is within 2e-6 of its value up to 3 and 1e-5 beyond, also in `F64`; `silu`
//! is as good as the runtime's sigmoid; `atan2` gives NaN for two infinities and takes −0 as 0.

use std::f64::consts::{LN_2, LN_10, PI};

use swath::{DType, Result, Tensor};

use super::record::{Attributes, error, float, int, text};
use super::trace::Trace;

/// A tensor that is traced.
pub type T = Tensor<Trace>;

/// How an operation is recorded.
pub enum Recipe {
    /// A node of so many of the operands.
    Node(&'static str, Attributes, usize),
    /// In steps.
    Steps(Steps),
}

type Steps = fn(&[T]) -> Result<T>;

/// Operations and the operators that they are.
const NODES: &str = "abs Abs, acos Acos, acosh Acosh, add Add, asin Asin, asinh Asinh, atan Atan, \
    atanh Atanh, ceil Ceil, cos Cos, cosh Cosh, div Div, eq Equal, erf Erf, exp Exp, floor Floor, \
    ge GreaterOrEqual, gelu Gelu, gt Greater, isinf IsInf, isnan IsNaN, le LessOrEqual, log Log, \
    lt Less, maximum Max, minimum Min, mish Mish, mul Mul, neg Neg, pow Pow, recip Reciprocal, \
    relu Relu, round Round, sigmoid Sigmoid, sign Sign, sin Sin, sinh Sinh, softplus Softplus, \
    sqrt Sqrt, sub Sub, tan Tan, tanh Tanh";

/// Finds the recipe of an operation on operands of this dtype, some of which may be numbers.
pub fn find(name: &'static str, dtype: DType, numbers: &[Option<f64>]) -> Result<Recipe> {
    use Recipe::{Node, Steps};
    let number = |at: usize| numbers.get(at).copied().flatten();
    // Attributes are `F32`.
    let takes_attributes = matches!(dtype, DType::F32 | DType::F16 | DType::BF16);
    let slope = number(1).filter(|_| takes_attributes && numbers[0].is_none());
    let (is_float, is_bool) = (dtype.is_float(), dtype == DType::Bool);
    Ok(match (name, slope) {
        ("floor" | "ceil" | "round" | "trunc", _) if !is_float => Steps(|x| Ok(x[0].clone())),
        ("relu", _) if !is_float => Steps(|x| x[0].maximum(0)),
        ("lt", _) if is_bool => Steps(|x| x[0].logical_not()?.logical_and(&x[1])),
        ("le", _) if is_bool => Steps(|x| x[0].logical_not()?.logical_or(&x[1])),
        ("gt", _) if is_bool => Steps(|x| x[1].logical_not()?.logical_and(&x[0])),
        ("ge", _) if is_bool => Steps(|x| x[1].logical_not()?.logical_or(&x[0])),
        ("leaky_relu", Some(slope)) => Node("LeakyRelu", vec![float("alpha", slope)], 1),
        ("elu", Some(scale)) => Node("Elu", vec![float("alpha", scale)], 1),
        ("gelu_tanh", _) => Node("Gelu", vec![text("approximate", "tanh")], 1),
        ("selu", _) if takes_attributes => Node("Selu", vec![], 1),
        ("hardsigmoid", _) if takes_attributes => {
            Node("HardSigmoid", vec![float("alpha", 1.0 / 6.0)], 1)
        }
        ("hardswish", _) if takes_attributes => Node("HardSwish", vec![], 1),
        ("rem", _) => Node("Mod", vec![int("fmod", 1)], 2),
        ("remainder", _) if !is_float => Node("Mod", vec![], 2),
        ("clamp", _) if number(1).zip(number(2)).is_some_and(|(low, high)| low <= high) => {
            Node("Clip", vec![], 3)
        }
        _ => {
            match NODES.split(", ").filter_map(|row| row.split_once(' ')).find(|row| row.0 == name)
            {
                Some((_, op)) => Node(op, vec![], 3),
                None => Steps(steps(name)?),
            }
        }
    })
}

/// 1 where the first is negative and the second is not, or the other way round.
fn signs_differ(a: &T, b: &T) -> Result<T> {
    a.lt(0)?.ne(&b.lt(0)?)
}

/// Between two numbers, without them.
fn within(x: &T, low: f64, high: f64) -> Result<T> {
    x.gt(low)?.logical_and(&x.lt(high)?)
}

/// Of `erfc(a) = t e^(p(t) - a²)` with `t = 2 / (2 + a)`, highest power first (Press et al., Numerical Recipes, 6.2).
#[rustfmt::skip]
const ERFC: [f64; 10] = [
    0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806, 0.09678418, 0.37409196, 1.00002368,
    -1.26551223,
];

fn steps(name: &'static str) -> Result<Steps> {
    Ok(match name {
        "ne" => |x| x[0].eq(&x[1])?.logical_not(),
        "isfinite" => |x| x[0].isnan()?.logical_or(&x[0].isinf()?)?.logical_not(),
        "square" => |x| x[0].mul(&x[0]),
        "exp2" => |x| x[0].full_like(2.0)?.pow(&x[0]),
        "exp10" => |x| x[0].full_like(10.0)?.pow(&x[0]),
        "expm1" => |x| x[0].mul(0.5)?.tanh()?.mul(x[0].exp()?.add(1.0)?),
        "log1p" => |x| {
            // The error of u = 1 + x is made again in u - 1.
            let (u, x) = (x[0].add(1.0)?, &x[0]);
            let near = u.log()?.mul(x.div(&u.sub(1.0)?)?)?;
            let near = T::where_cond(&u.eq(1.0)?, x, &near)?;
            T::where_cond(&within(x, -1.0, 1.0)?, &near, &u.log()?)
        },
        "log2" => |x| x[0].log()?.mul(1.0 / LN_2),
        "log10" => |x| x[0].log()?.mul(1.0 / LN_10),
        "erfc" => |x| {
            let a = x[0].abs()?;
            let t = a.affine(0.5, 1.0)?.recip()?;
            let p = ERFC.iter().try_fold(a.zeros_like()?, |sum, &c| sum.mul(&t)?.add(c))?;
            let y = t.mul(p.sub(a.square()?)?.exp()?)?;
            T::where_cond(&x[0].lt(0.0)?, &y.affine(-1.0, 2.0)?, &y)
        },
        "cbrt" => |x| x[0].abs()?.powf(1.0 / 3.0)?.mul(x[0].sign()?),
        "rsqrt" => |x| x[0].sqrt()?.recip(),
        "trunc" => |x| T::where_cond(&x[0].lt(0.0)?, &x[0].ceil()?, &x[0].floor()?),
        "silu" => |x| x[0].mul(x[0].sigmoid()?),
        "log_sigmoid" => |x| x[0].neg()?.softplus()?.neg(),
        "selu" => |x| {
            let (scale, alpha) = (1.050_700_987_355_480_5, 1.673_263_242_354_377_2);
            T::where_cond(&x[0].ge(0.0)?, &x[0], &x[0].expm1()?.mul(alpha)?)?.mul(scale)
        },
        "relu6" => |x| x[0].maximum(0)?.minimum(6),
        "hardsigmoid" => |x| x[0].add(3.0)?.relu6()?.div(6.0),
        "hardswish" => |x| x[0].mul(x[0].hardsigmoid()?),
        "remainder" => |x| {
            let rest = x[0].rem(&x[1])?;
            let is_other = rest.ne(0)?.logical_and(&signs_differ(&rest, &x[1])?)?;
            T::where_cond(&is_other, &rest.add(&x[1])?, &rest)
        },
        "floor_divide" => |x| {
            let (rest, quotient) = (x[0].rem(&x[1])?, x[0].div(&x[1])?);
            let truncated = x[0].sub(&rest)?.div(&x[1])?.round()?;
            let is_above = rest.ne(0)?.logical_and(&signs_differ(&rest, &x[1])?)?;
            let y = T::where_cond(&is_above, &truncated.sub(1)?, &truncated)?;
            T::where_cond(&x[1].eq(0)?, &quotient, &y)
        },
        "atan2" => |x| {
            let (y, x) = (&x[0], &x[1]);
            let half = T::where_cond(&y.lt(0.0)?, &y.full_like(-PI)?, &y.full_like(PI)?)?;
            let angle = y.div(x)?.atan()?;
            let angle = T::where_cond(&x.lt(0.0)?, &angle.add(&half)?, &angle)?;
            angle.masked_fill(&y.eq(0.0)?.logical_and(&x.eq(0.0)?)?, 0.0)
        },
        "hypot" => |x| {
            let (a, b) = (x[0].abs()?, x[1].abs()?);
            let (large, small) = (a.maximum(&b)?, a.minimum(&b)?);
            let y = small.div(&large)?.square()?.add(1.0)?.sqrt()?.mul(&large)?;
            T::where_cond(&large.eq(0.0)?.logical_or(&large.isinf()?)?, &large, &y)
        },
        "xlogy" => |x| {
            let is_zero = x[0].eq(0.0)?.logical_and(&x[1].isnan()?.logical_not()?)?;
            x[0].mul(x[1].log()?)?.masked_fill(&is_zero, 0.0)
        },
        "leaky_relu" => |x| T::where_cond(&x[0].ge(0.0)?, &x[0], &x[0].mul(&x[1])?),
        "elu" => |x| T::where_cond(&x[0].ge(0.0)?, &x[0], &x[1].mul(x[0].expm1()?)?),
        "mul_add" => |x| x[0].mul(&x[1])?.add(&x[2]),
        "clamp" => |x| {
            let raised = T::where_cond(&x[0].lt(&x[1])?, &x[1], &x[0])?;
            T::where_cond(&x[2].lt(&raised)?, &x[2], &raised)
        },
        "lerp" => |x| {
            let d = x[1].sub(&x[0])?;
            let near_b = x[1].sub(&x[2].affine(-1.0, 1.0)?.mul(&d)?)?;
            T::where_cond(&x[2].lt(0.5)?, &x[0].add(&x[2].mul(&d)?)?, &near_b)
        },
        "huber" => |x| {
            let d = x[0].sub(&x[1])?;
            let near = d.clamp(&x[2].neg()?, &x[2])?;
            near.mul(d.sub(near.mul(0.5)?)?)
        },
        _ => return Err(error(format!("{name} cannot be recorded"))),
    })
}
