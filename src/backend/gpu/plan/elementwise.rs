//! Element-wise functions of one to three operands with any strides.
//!
//! ```text
//! words   0  elements of the result                             4..7   operands that are numbers
//!         1  threads in a row of the grid                       8..11  offset of each operand
//!         2  axes, 0 if all operands are contiguous             11..   for each axis, the innermost first:
//!         3  bit k: operand k is a number                              extent, step of each operand
//! ```
//!
//! Dropout reads words 4..8 (seed, stream), 9 (threshold), 10 (scale).
//!
//! Axes that are contiguous in every operand are merged. If the words cannot hold the remaining axes, the caller makes
//! its operands contiguous.

use smallvec::{SmallVec, smallvec};

use crate::dtype::{Element as _, Scalar};
use crate::error::Result;
use crate::layout::{Layout, merge_axes};
use crate::ops::{BinaryOp, CompareOp, DropoutMask, NumberTest, TernaryOp, UnaryOp};
use crate::shape::Shape;

use super::super::shader::{Module, OPERANDS, Source, Store, WORDS};
use super::expressions::{
    binary, comparison, conversion, divisor, integer_binary, integer_unary, is_float, number,
    ternary, test, unary,
};
use super::{Plan, Words, grid_of, step, word};

/// First word of the offsets, and of the axes.
const OFFSETS: usize = 8;
const AXES: usize = 11;

/// An element-wise function, with the stores of its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Function {
    Unary(UnaryOp, Store),
    Binary(BinaryOp, Store),
    Ternary(TernaryOp, Store),
    Compare(CompareOp, Store),
    Test(NumberTest, Store),
    /// The second operand where the first (a mask with the first store) is not 0, else the third.
    Select(Store, Store),
    Cast(Store, Store),
    Copy(Store),
    /// A constant, the only operand.
    Fill(Store),
    /// Dropout. [`put_mask`] writes its words.
    Dropout(Store),
}

/// An operand of a dispatch.
#[derive(Clone, Copy, Debug)]
pub enum Operand<'a> {
    Tensor(&'a Layout),
    Number(Scalar),
}

impl Function {
    /// Returns the stores of the operands, and of the result.
    fn stores(self) -> (SmallVec<[Store; 3]>, Store) {
        match self {
            Function::Unary(_, x) | Function::Copy(x) | Function::Dropout(x) => (smallvec![x], x),
            Function::Binary(_, x) => (smallvec![x; 2], x),
            Function::Ternary(_, x) => (smallvec![x; 3], x),
            Function::Compare(_, x) => (smallvec![x; 2], Store::Bool),
            Function::Test(_, x) => (smallvec![x], Store::Bool),
            Function::Select(mask, x) => (smallvec![mask, x, x], x),
            Function::Cast(x, y) => (smallvec![x], y),
            Function::Fill(x) => (smallvec![], x),
        }
    }

    /// True if the kernel can report faults.
    pub fn has_faults(self) -> bool {
        matches!(self, Function::Binary(op, store) if op.divides_integers() && !is_float(store))
    }

    /// Returns a name for messages, such as `exp_f32`.
    pub fn name(self) -> String {
        match self {
            Function::Unary(op, x) => format!("{}_{}", op.name(), x.name()),
            Function::Binary(op, x) => format!("{}_{}", op.name(), x.name()),
            Function::Ternary(op, x) => format!("{}_{}", op.name(), x.name()),
            Function::Compare(op, x) => format!("{}_{}", op.name(), x.name()),
            Function::Test(op, x) => format!("{}_{}", op.name(), x.name()),
            Function::Select(mask, x) => format!("where_{}_{}", mask.name(), x.name()),
            Function::Cast(x, y) => format!("cast_{}_{}", x.name(), y.name()),
            Function::Copy(x) => format!("copy_{}", x.name()),
            Function::Fill(x) => format!("fill_{}", x.name()),
            Function::Dropout(x) => format!("dropout_{}", x.name()),
        }
    }

    /// Returns the result as an expression of `a`, `b` and `c`, in its working type; `None` if the function is not
    /// defined for the store.
    fn expression(self) -> Option<String> {
        Some(match self {
            Function::Unary(op, x) if is_float(x) => unary(op).to_owned(),
            Function::Unary(op, x) => integer_unary(op, x)?,
            Function::Binary(op, x) if is_float(x) => binary(op).to_owned(),
            Function::Binary(op, _) => integer_binary(op)?.to_owned(),
            Function::Ternary(op, x) if is_float(x) => ternary(op).to_owned(),
            Function::Ternary(..) => return None,
            Function::Compare(op, x) => format!("u32({})", comparison(op, is_float(x))),
            Function::Test(op, x) => test(op, x).to_owned(),
            Function::Select(mask, _) if is_float(mask) => {
                "select(c, b, a != 0.0 || is_nan(a))".to_owned()
            }
            Function::Select(mask, _) => format!("select(c, b, a != {}(0))", mask.working()),
            Function::Cast(x, y) => conversion(x, y),
            Function::Copy(_) => "a".to_owned(),
            Function::Fill(x) => number(x, 0),
            Function::Dropout(_) => {
                "a * select(bitcast<f32>(p.words[10]), 0.0, random_word(i) < p.words[9])".to_owned()
            }
        })
    }

    pub fn is_defined(self) -> bool {
        match self {
            Function::Unary(op, x) => is_float(x) || integer_unary(op, x).is_some(),
            Function::Binary(op, x) => is_float(x) || integer_binary(op).is_some(),
            Function::Ternary(_, x) => is_float(x),
            _ => true,
        }
    }

    /// Returns the kernel's text. The function must be defined for its store.
    pub fn module(self) -> Module {
        let (stores, result) = self.stores();
        let expression = self.expression().unwrap_or_default();
        let mut source = Source::new(&stores);
        source.result("y", result);
        source.math();
        source.add(include_str!("../shaders/numbers.wgsl"));
        if stores.contains(&Store::I64) || result == Store::I64 {
            source.add(include_str!("../shaders/numbers_i64.wgsl"));
        }
        if let Function::Dropout(_) = self {
            source.add(include_str!("../shaders/random.wgsl"));
        }
        let count = stores.len();
        let has_faults = self.has_faults();
        if has_faults {
            source.faults();
            source.add(&divisor(stores[0]));
        }
        let names = &OPERANDS[..count];
        let parameters: String = names
            .iter()
            .zip(&stores)
            .map(|(name, x)| format!("{name}: {}, ", x.working()))
            .collect();
        let working = result.working();
        source.add(&format!("fn f({parameters}i: u32) -> {working} {{ return {expression}; }}"));
        // The position of element i in each operand.
        let steps: Vec<String> = (0..3)
            .map(|k| if k < count { format!("p.words[axis + {}u]", k + 1) } else { "0u".into() })
            .collect();
        source.add(&format!(
            "fn positions(i: u32) -> vec3<u32> {{\n    \
             var at = vec3(p.words[{OFFSETS}], p.words[{}], p.words[{}]);\n    \
             if p.words[2] == 0u {{ return at + vec3(i); }}\n    \
             var rest = i;\n    \
             for (var k = 0u; k < p.words[2]; k++) {{\n        \
             let axis = {AXES}u + k * {}u;\n        \
             let extent = p.words[axis];\n        \
             at += (rest % extent) * vec3({});\n        \
             rest /= extent;\n    }}\n    return at;\n}}",
            OFFSETS + 1,
            OFFSETS + 2,
            count + 1,
            steps.join(", ")
        ));
        let arguments: String = (0..count)
            .map(|k| {
                let (name, store) = (names[k], stores[k]);
                let number = number(store, k);
                let component = ["x", "y", "z"][k];
                source.add(&format!(
                    "fn {name}_at(i: u32) -> {} {{\n    \
                     if (p.words[3] & {}u) != 0u {{ return {number}; }}\n    \
                     return {name}(i);\n}}",
                    store.working(),
                    1 << k
                ));
                format!("{name}_at(at.{component}), ")
            })
            .collect();
        source.add(&format!(
            "fn element(i: u32) -> {working} {{\n    let at = positions(i);\n    \
             return f({arguments}i);\n}}"
        ));
        source.each_word(result, "element");
        source.finish(self.name())
    }

    /// Returns the dispatch for operands of `shape`; `None` if their layouts have too many axes.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a position does not fit a word.
    pub fn plan(
        self,
        op: &'static str,
        shape: &Shape,
        operands: &[Operand<'_>],
    ) -> Result<Option<Plan<Function>>> {
        let (_, result) = self.stores();
        let numel = shape.numel();
        let threads = numel.div_ceil(result.per_thread());
        let (grid, row) = grid_of(threads);
        let mut words = Words::from_elem(0, WORDS);
        (words[0], words[1]) = (word(op, shape, numel)?, row);
        let run = Layout::contiguous(*shape);
        let mut layouts = [&run; 3];
        for (k, operand) in operands.iter().enumerate() {
            match operand {
                Operand::Tensor(layout) => {
                    layouts[k] = layout;
                    words[OFFSETS + k] = word(op, shape, layout.offset())?;
                    let last = layout.extent(op)?.map_or(0, |(_, last)| last);
                    word(op, shape, last)?;
                }
                Operand::Number(number) => {
                    words[3] |= 1 << k;
                    self.put_number(&mut words, k, *number);
                }
            }
        }
        let layouts = &layouts[..operands.len()];
        if layouts.iter().all(|layout| layout.is_contiguous()) {
            return Ok(Some(Plan { kernel: self, words, grid }));
        }
        let nest = merge_axes(layouts);
        let dims = nest.dims();
        let width = operands.len() + 1;
        if AXES + width * dims.len() > WORDS - 2 {
            return Ok(None);
        }
        words[2] = dims.len() as u32;
        for (k, axis) in (0..dims.len()).rev().enumerate() {
            let at = AXES + k * width;
            words[at] = word(op, shape, dims[axis])?;
            for i in 0..operands.len() {
                words[at + 1 + i] = step(op, shape, nest.strides(i)[axis])?;
            }
        }
        Ok(Some(Plan { kernel: self, words, grid }))
    }

    /// Writes an operand that is a number into the words.
    fn put_number(self, words: &mut Words, k: usize, number: Scalar) {
        let (stores, result) = self.stores();
        match stores.get(k).copied().unwrap_or(result) {
            Store::F32 => words[4 + k] = f32::from_scalar(number).to_bits(),
            Store::F16 => {
                let x = half::f16::from_f64(number.to_f64());
                words[4 + k] = x.to_f32().to_bits();
            }
            Store::I64 => {
                let x = number.to_i64();
                (words[4], words[5]) = (x as u32, (x >> 32) as u32);
            }
            Store::I32 => words[4 + k] = i32::from_scalar(number).cast_unsigned(),
            Store::U32 => words[4 + k] = u32::from_scalar(number),
            Store::U8 => words[4 + k] = u8::from_scalar(number).into(),
            Store::Bool => words[4 + k] = bool::from_scalar(number).into(),
        }
    }
}

/// Writes the words of a dropout.
pub fn put_mask(words: &mut Words, DropoutMask { p, seed, stream }: DropoutMask) {
    // An element is dropped if its random word is below ⌈p 2^32⌉. If that is 2^32, all are multiplied by 0 instead.
    let ceiling = (p * (1u64 << 32) as f64).ceil() as u64;
    let (below, scale) = match u32::try_from(ceiling) {
        Ok(below) => (below, (1.0 / (1.0 - p)) as f32),
        Err(_) => (0, 0.0),
    };
    let halves = |x: u64| [x as u32, (x >> 32) as u32];
    words[4..6].copy_from_slice(&halves(seed));
    words[6..8].copy_from_slice(&halves(stream));
    words[9..11].copy_from_slice(&[below, scale.to_bits()]);
}
