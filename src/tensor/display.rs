//! Formats tensors as text, in the layout of NumPy.
//!
//! All numbers have the width of the widest and the decimals of the one that needs the most, at
//! most 4 or as many as the format asks for (`{:.2}`). If magnitudes differ too much for that, or the
//! format asks for it (`{:e}`), all are written with exponents. Of more than 1000 elements only the first
//! and last three along each axis are shown, and only these are read. `{:?}` shows fewer, on one line.

use std::fmt::{self, Write};

use crate::backend::Backend;
use crate::dtype::{DType, HostData, Scalar};
use crate::error::Result;
use crate::shape::{AxisSet, Shape};

use super::base::Tensor;

/// The values; `{:.2}` chooses the number of decimals.
impl<B: Backend> fmt::Display for Tensor<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let style = TextStyle { precision: f.precision(), ..TextStyle::default() };
        f.write_str(&self.text(style))
    }
}

/// The values with exponents; `{:.2e}` chooses the number of decimals.
impl<B: Backend> fmt::LowerExp for Tensor<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let style = TextStyle { precision: f.precision(), exponents: true, short: false };
        f.write_str(&self.text(style))
    }
}

/// Shape, dtype, backend, the recorded operation and the values, of more than 32 the first and last of each axis.
impl<B: Backend> fmt::Debug for Tensor<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let style = TextStyle { precision: f.precision(), exponents: false, short: true };
        f.debug_struct("Tensor")
            .field("shape", self.shape())
            .field("dtype", &self.dtype())
            .field("backend", &B::NAME)
            .field("op", &self.node().map(|node| node.op()))
            .field("values", &format_args!("{}", self.text(style)))
            .finish()
    }
}

/// How values are written.
#[derive(Clone, Copy, Debug, Default)]
pub struct TextStyle {
    precision: Option<usize>,
    /// Exponents in any case.
    exponents: bool,
    /// Few values, on one line.
    short: bool,
}

impl TextStyle {
    /// Largest number of elements that are all shown; 1000 is NumPy's.
    fn full(self) -> usize {
        if self.short { 32 } else { 1000 }
    }

    /// Elements shown at each end of an axis otherwise: NumPy's 3.
    fn edge(self, rank: usize) -> usize {
        if self.short && rank > 2 { 1 } else { 3 }
    }
}

impl<B: Backend> Tensor<B> {
    fn text(&self, style: TextStyle) -> String {
        B::engine_text(self, style).unwrap_or_else(|error| format!("<{error}>"))
    }

    pub(crate) fn text_body(x: &Tensor<B>, style: TextStyle) -> Result<String> {
        let kept = x.detach().ends(style)?;
        Ok(format(&B::to_host(kept.data())?, kept.shape(), x.shape(), style))
    }

    /// Takes the shown ends of every axis, so that a large tensor is not copied for its text.
    fn ends(self, style: TextStyle) -> Result<Self> {
        if self.numel() <= style.full() {
            return Ok(self);
        }
        let edge = style.edge(self.rank());
        let mut kept = self;
        // The longest axis first: less is concatenated along the others.
        let mut axes: Vec<usize> = (0..kept.rank()).collect();
        axes.sort_by_key(|&axis| std::cmp::Reverse(kept.dims()[axis]));
        for axis in axes {
            let dim = kept.dims()[axis];
            if dim > 2 * edge {
                let (first, last) =
                    (kept.narrow(axis, 0, edge)?, kept.narrow(axis, dim - edge, edge)?);
                kept = Tensor::cat(&[&first, &last], axis)?;
            }
        }
        Ok(kept)
    }
}

/// Columns of a line, as in NumPy, unless one element is wider.
const LINE: usize = 75;
/// Decimals at most, unless the format asks for a number, as in NumPy.
const PRECISION: usize = 4;

/// Formats a tensor of `shape` from values in row-major order of `kept`, which is `shape`, or `shape`
/// without the middle of some axes.
fn format(data: &HostData, kept: &Shape, shape: &Shape, style: TextStyle) -> String {
    let (dtype, edge) = (data.dtype(), style.edge(shape.ndim()));
    let strides = kept.contiguous_strides();
    let value = |index: AxisSet| {
        let at = index.iter().enumerate().map(|(axis, &i)| {
            let i = if i < edge { i } else { i + kept.dim(axis) - shape.dim(axis) };
            i * strides.as_slice()[axis] as usize
        });
        data.get(at.sum()).unwrap_or(Scalar::Float(f64::NAN))
    };
    let mut text = if shape.numel() == 0 {
        match shape.ndim() {
            0 | 1 => "[]".to_owned(),
            _ => format!("[], shape={shape}"),
        }
    } else {
        let elided = shape.numel() > style.full();
        let shown = Shown { dims: shape.dims().into(), elided, edge };
        let values: Vec<Scalar> = shown.indices().map(value).collect();
        let words = words(dtype, &values, style);
        let mut lines = Lines { shown: &shown, words: words.iter(), out: String::new() };
        lines.axis(0);
        lines.out
    };
    if style.short {
        return text.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    if dtype != DType::F32 {
        text.push_str(&format!(", dtype={dtype}"));
    }
    text
}

/// The indices that are shown along each axis: all, or both ends.
struct Shown {
    dims: AxisSet,
    elided: bool,
    edge: usize,
}

impl Shown {
    /// Number of indices shown along an axis and, if some are left out, the number before the gap.
    fn along(&self, axis: usize) -> (usize, Option<usize>) {
        match self.dims[axis] {
            dim if self.elided && dim > 2 * self.edge => (2 * self.edge, Some(self.edge)),
            dim => (dim, None),
        }
    }

    /// The indices of the shown elements, in row-major order.
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

/// Arranges words, given in row-major order, in brackets and lines.
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

    /// Writes a comma and as many line breaks as axes end here.
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

    /// Writes the elements of the last axis, broken into lines that leave room for the brackets.
    fn row(&mut self, axis: usize, len: usize, cut: Option<usize>) {
        let width = LINE - (axis + 1);
        let mut column = axis + 1;
        let mut put = |lines: &mut Self, word: &str, first: bool| {
            if !first {
                lines.out.push(',');
                column += 1;
                // Leaves room for the comma or bracket after the word.
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

/// Formats the values, unless the text is short to one width.
fn words(dtype: DType, values: &[Scalar], style: TextStyle) -> Vec<String> {
    let mut words: Vec<String> = match dtype {
        DType::Bool => values.iter().map(|x| (x.to_i64() != 0).to_string()).collect(),
        _ if dtype.is_float() => float_words(dtype, values, style),
        _ if style.exponents => float_words(DType::F64, values, style),
        _ => values.iter().map(Scalar::to_string).collect(),
    };
    let width = match style.short {
        true => 0,
        false => words.iter().map(String::len).max().unwrap_or(0),
    };
    for word in &mut words {
        *word = format!("{word:>width$}");
    }
    words
}

fn float_words(dtype: DType, values: &[Scalar], style: TextStyle) -> Vec<String> {
    let values: Vec<f64> = values.iter().map(|x| x.to_f64()).collect();
    let digits = Digits::new(dtype, &values, style);
    values.iter().map(|&x| digits.word(x)).collect()
}

/// The number format of one tensor.
struct Digits {
    decimals: usize,
    /// Digits of the exponents, if there are any.
    exponent: Option<usize>,
}

impl Digits {
    fn new(dtype: DType, values: &[f64], style: TextStyle) -> Self {
        let finite = || values.iter().copied().filter(|x| x.is_finite());
        let exponent = (style.exponents || needs_exponent(finite())).then(|| {
            let digits = |x: f64| exponent_of(x).unsigned_abs().to_string().len();
            finite().map(digits).max().unwrap_or(0).max(2)
        });
        let decimals = style.precision.unwrap_or_else(|| {
            let needed = finite().map(|x| decimals_of(dtype, x, exponent.is_some())).max();
            needed.unwrap_or(0).clamp(1, PRECISION)
        });
        Digits { decimals, exponent }
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

/// True if a magnitude is at least 1e8, or if there are fractions and magnitudes are below 1e-4 or
/// differ by more than a factor of 1000.
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

/// Number of decimals of the shortest text that parses to the same value of the dtype.
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
