//! Tensors as text, laid out as NumPy does it.
//!
//! Every number is as wide as the widest and has as many decimals as the one that needs the most,
//! at most 4 or what the format asks for (`{:.2}`). Where magnitudes spread too far for that, all
//! are written with exponents. More than 1000 elements are cut to the first and last three along
//! each axis, and only those are looked at.

use std::fmt::{self, Write};

use crate::backend::Backend;
use crate::dtype::{DType, HostData, Scalar};
use crate::error::Result;
use crate::shape::{AxisSet, Shape};

use super::Tensor;

impl<B: Backend> fmt::Display for Tensor<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match B::engine_text(self, f.precision()) {
            Ok(text) => f.write_str(&text),
            Err(error) => write!(f, "<{error}>"),
        }
    }
}

impl<B: Backend> Tensor<B> {
    pub(crate) fn text_body(x: &Tensor<B>, precision: Option<usize>) -> Result<String> {
        let kept = x.detach().ends()?;
        Ok(format(&B::to_host(kept.data())?, kept.shape(), x.shape(), precision))
    }

    /// Both ends of every axis, if only they are shown: a large tensor is not copied for its text.
    fn ends(self) -> Result<Self> {
        if self.numel() <= FULL {
            return Ok(self);
        }
        let mut kept = self;
        // The longest first: what is joined along the others is small by then.
        let mut axes: Vec<usize> = (0..kept.rank()).collect();
        axes.sort_by_key(|&axis| std::cmp::Reverse(kept.dims()[axis]));
        for axis in axes {
            let dim = kept.dims()[axis];
            if dim > 2 * EDGE {
                let (first, last) =
                    (kept.narrow(axis, 0, EDGE)?, kept.narrow(axis, dim - EDGE, EDGE)?);
                kept = Tensor::cat(&[&first, &last], axis)?;
            }
        }
        Ok(kept)
    }
}

/// Most elements written in full.
const FULL: usize = 1000;
/// Elements at each end of an axis that stay where there are more.
const EDGE: usize = 3;
/// Columns of a line, where the width of one element allows.
const LINE: usize = 75;
/// Decimals where the format asks for none.
const PRECISION: usize = 4;

/// Text of a tensor of `shape` whose values lie in row-major order of `kept`: its own shape, or that
/// with the middle of some axes left out.
pub(crate) fn format(
    data: &HostData,
    kept: &Shape,
    shape: &Shape,
    precision: Option<usize>,
) -> String {
    let strides = kept.contiguous_strides();
    format_with(data.dtype(), shape, precision, &|index| {
        let at = index.iter().enumerate().map(|(axis, &i)| {
            let from_start = i < EDGE;
            let i = if from_start { i } else { i + kept.dim(axis) - shape.dim(axis) };
            i * strides.as_slice()[axis] as usize
        });
        data.get(at.sum()).unwrap_or(Scalar::Float(f64::NAN))
    })
}

/// Text of the values that `get` gives for their indices, asking for those that are shown only.
pub(crate) fn format_with(
    dtype: DType,
    shape: &Shape,
    precision: Option<usize>,
    get: &dyn Fn(&[usize]) -> Scalar,
) -> String {
    let mut text = if shape.numel() == 0 {
        match shape.ndim() {
            0 | 1 => "[]".to_owned(),
            _ => format!("[], shape={shape}"),
        }
    } else {
        let shown = Shown::new(shape);
        let values: Vec<Scalar> = shown.indices().map(|index| get(&index)).collect();
        let words = words(dtype, &values, precision);
        let mut lines = Lines { shown: &shown, words: words.iter(), out: String::new() };
        lines.axis(0);
        lines.out
    };
    if dtype != DType::F32 {
        text.push_str(&format!(", dtype={dtype}"));
    }
    text
}

/// The indices along each axis that are written: all, or both ends.
struct Shown {
    dims: AxisSet,
    elided: bool,
}

impl Shown {
    fn new(shape: &Shape) -> Self {
        Shown { dims: shape.dims().into(), elided: shape.numel() > FULL }
    }

    /// Number of indices written along an axis and, where some are left out, after how many.
    fn along(&self, axis: usize) -> (usize, Option<usize>) {
        match self.dims[axis] {
            dim if self.elided && dim > 2 * EDGE => (2 * EDGE, Some(EDGE)),
            dim => (dim, None),
        }
    }

    /// The indices of the elements written, in row-major order.
    fn indices(&self) -> impl Iterator<Item = AxisSet> {
        let count: usize = (0..self.dims.len()).map(|axis| self.along(axis).0).product();
        (0..count).map(|mut rest| {
            let mut index = self.dims.clone();
            for axis in (0..index.len()).rev() {
                let (len, cut) = self.along(axis);
                let i = rest % len;
                rest /= len;
                let skipped = if cut.is_some_and(|cut| i >= cut) { index[axis] - len } else { 0 };
                index[axis] = i + skipped;
            }
            index
        })
    }
}

/// Puts the words, which are in row-major order, into brackets and lines.
struct Lines<'a> {
    shown: &'a Shown,
    words: std::slice::Iter<'a, String>,
    out: String,
}

impl Lines<'_> {
    fn axis(&mut self, axis: usize) {
        let rank = self.shown.dims.len();
        if axis == rank {
            let word = self.words.next().map_or("", String::as_str);
            self.out.push_str(word);
            return;
        }
        let (len, cut) = self.shown.along(axis);
        self.out.push('[');
        if axis + 1 == rank {
            self.row(axis, len, cut);
        } else {
            for i in 0..len {
                if i > 0 {
                    self.next_line(axis);
                }
                if cut == Some(i) {
                    self.out.push_str("...");
                    self.next_line(axis);
                }
                self.axis(axis + 1);
            }
        }
        self.out.push(']');
    }

    /// A comma, and as many line breaks as axes end here.
    fn next_line(&mut self, axis: usize) {
        self.out.push(',');
        for _ in axis + 1..self.shown.dims.len() {
            self.out.push('\n');
        }
        self.indent(axis);
    }

    fn indent(&mut self, axis: usize) {
        self.out.extend(std::iter::repeat_n(' ', axis + 1));
    }

    /// The elements of the last axis, broken into lines that leave room for the brackets.
    fn row(&mut self, axis: usize, len: usize, cut: Option<usize>) {
        let width = LINE - (axis + 1);
        let mut column = axis + 1;
        let mut put = |lines: &mut Self, word: &str, first: bool| {
            if !first {
                lines.out.push(',');
                column += 1;
                // A word is followed by a comma or by brackets.
                if column + 1 + word.len() > width {
                    lines.out.push('\n');
                    lines.indent(axis);
                    column = axis + 1;
                } else {
                    lines.out.push(' ');
                    column += 1;
                }
            }
            lines.out.push_str(word);
            column += word.len();
        };
        for i in 0..len {
            if cut == Some(i) {
                put(self, "...", false);
            }
            if let Some(word) = self.words.next() {
                put(self, word, i == 0);
            }
        }
    }
}

/// The values as text of one width.
fn words(dtype: DType, values: &[Scalar], precision: Option<usize>) -> Vec<String> {
    let mut words: Vec<String> = match dtype {
        DType::Bool => values.iter().map(|x| (x.to_i64() != 0).to_string()).collect(),
        _ if dtype.is_float() => float_words(dtype, values, precision),
        _ => values.iter().map(|x| x.to_i64().to_string()).collect(),
    };
    let width = words.iter().map(String::len).max().unwrap_or(0);
    for word in &mut words {
        *word = format!("{word:>width$}");
    }
    words
}

fn float_words(dtype: DType, values: &[Scalar], precision: Option<usize>) -> Vec<String> {
    let values: Vec<f64> = values.iter().map(|x| x.to_f64()).collect();
    let style = Style::new(dtype, &values, precision);
    values.iter().map(|&x| style.word(x)).collect()
}

/// How the numbers of one tensor are written.
struct Style {
    decimals: usize,
    /// Digits of the exponent, if there is one.
    exponent: Option<usize>,
}

impl Style {
    fn new(dtype: DType, values: &[f64], precision: Option<usize>) -> Self {
        let finite = || values.iter().copied().filter(|x| x.is_finite());
        let exponent = needs_exponent(finite()).then(|| {
            let digits = |x: f64| exponent_of(x).unsigned_abs().to_string().len();
            finite().map(digits).max().unwrap_or(0).max(2)
        });
        let decimals = precision.unwrap_or_else(|| {
            let needed = finite().map(|x| decimals_of(dtype, x, exponent.is_some())).max();
            needed.unwrap_or(0).clamp(1, PRECISION)
        });
        Style { decimals, exponent }
    }

    fn word(&self, x: f64) -> String {
        let decimals = self.decimals;
        match self.exponent {
            _ if x.is_nan() => "nan".to_owned(),
            Some(digits) if x.is_finite() => {
                let text = format!("{x:.decimals$e}");
                let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
                let (sign, size) = match exponent.strip_prefix('-') {
                    Some(size) => ('-', size),
                    None => ('+', exponent),
                };
                format!("{mantissa}e{sign}{size:0>digits$}")
            }
            _ => format!("{x:.decimals$}"),
        }
    }
}

/// True from 1e8 on, and where fractions are below 1e-4 or differ by more than a factor of 1000.
fn needs_exponent(finite: impl Iterator<Item = f64>) -> bool {
    let (mut low, mut high, mut whole) = (f64::INFINITY, 0f64, true);
    for x in finite.map(f64::abs).filter(|&x| x != 0.0) {
        (low, high) = (low.min(x), high.max(x));
        whole &= x.fract() == 0.0;
    }
    high >= 1e8 || (!whole && (low < 1e-4 || high / low > 1000.0))
}

fn exponent_of(x: f64) -> i32 {
    let text = format!("{x:e}");
    text.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0)
}

/// Decimals of the shortest text that reads back as the same value of the dtype.
fn decimals_of(dtype: DType, x: f64, with_exponent: bool) -> usize {
    let mut text = String::new();
    let written = match (dtype, with_exponent) {
        (DType::F64, false) => write!(text, "{x}"),
        (DType::F64, true) => write!(text, "{x:e}"),
        (_, false) => write!(text, "{}", x as f32),
        (_, true) => write!(text, "{:e}", x as f32),
    };
    debug_assert!(written.is_ok(), "writing to a string does not fail");
    let mantissa = text.split('e').next().unwrap_or("");
    mantissa.split_once('.').map_or(0, |(_, decimals)| decimals.len())
}

#[cfg(test)]
#[path = "display_tests.rs"]
mod tests;
