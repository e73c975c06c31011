//! Element-wise functions of one to three operands with any strides.
//!
//! Axes that are contiguous in every operand are merged. If the words cannot hold the remaining axes, the caller makes
//! its operands contiguous.

use smallvec::{SmallVec, smallvec};

use crate::dtype::{Element as _, Scalar};
use crate::error::{Error, Result};
use crate::layout::{Layout, merge_axes};
use crate::ops::{BinaryOp, CompareOp, DropoutMask, NumberTest, TernaryOp, UnaryOp};
use crate::shape::Shape;

use super::super::shader::{Module, OPERANDS, Source, Store};
use super::expressions::{
    binary, comparison, conversion, divisor, integer_binary, integer_unary, is_float, number,
    ternary, test, unary,
};
use super::words::{GridWords, Pack, Words, axes_of, words};
use super::{Plan, check_positions, grid_of, word};

words! {
    /// `rank` is 0 if all operands are contiguous. Operand k is a number if bit k of `numbers` is set; an `I64` takes the
    /// words of a and b.
    ElementWords {
        rank: u32, numbers: u32, number_a: u32, number_b: u32, number_c: u32, from_a: u32, from_b: u32, from_c: u32,
    }
}

words! {
    /// Elements are dropped if their random word is below a bound; the others are multiplied by a scale.
    DropoutWords {
        seed_low: u32, seed_high: u32, stream_low: u32, stream_high: u32, dropped_below: u32, kept_scale: f32,
    }
}

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
                "a * select(p.kept_scale, 0.0, random_word(i) < p.dropped_below)".to_owned()
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
        let dropout = if let Function::Dropout(_) = self { DropoutWords::FIELDS } else { &[] };
        let mut source = Source::new(&[GridWords::FIELDS, ElementWords::FIELDS, dropout], &stores);
        source.result("y", result);
        source.math();
        source.add(shader!("numbers"));
        if stores.contains(&Store::I64) || result == Store::I64 {
            source.add(shader!("numbers_i64"));
        }
        if let Function::Dropout(_) = self {
            source.add(shader!("random"));
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
        source.add(&positions(count));
        let arguments: String = (0..count)
            .map(|k| {
                let (name, store) = (names[k], stores[k]);
                let number = number(store, k);
                let component = ["x", "y", "z"][k];
                source.add(&format!(
                    "fn {name}_at(i: u32) -> {} {{\n    \
                     if (p.numbers & {}u) != 0u {{ return {number}; }}\n    \
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

    /// Returns the dispatch for operands of `shape`; `None` if their layouts have too many axes. A dropout needs a mask.
    ///
    /// # Errors
    /// [`Error::Overflow`] if a position does not fit a word.
    pub fn plan(
        self,
        op: &'static str,
        shape: &Shape,
        operands: &[Operand<'_>],
        mask: Option<DropoutMask>,
    ) -> Result<Option<Plan<Function>>> {
        let (stores, result) = self.stores();
        let numel = shape.numel();
        let grid = grid_of(numel.div_ceil(result.per_thread()));
        let run = Layout::contiguous(*shape);
        let mut layouts = [&run; 3];
        let (mut offsets, mut numbers, mut bits) = ([0; 3], [0; 3], 0);
        for (k, operand) in operands.iter().enumerate() {
            match operand {
                Operand::Tensor(layout) => {
                    layouts[k] = layout;
                    offsets[k] = word(op, shape, layout.offset())?;
                    check_positions(op, layout)?;
                }
                Operand::Number(number) => {
                    bits |= 1 << k;
                    match stores.get(k).copied().unwrap_or(result) {
                        Store::I64 => numbers[..2].copy_from_slice(&halves(number.to_i64() as u64)),
                        store => numbers[k] = word_of(store, *number),
                    }
                }
            }
        }
        let layouts = &layouts[..operands.len()];
        let (rank, axes) = match layouts.iter().all(|layout| layout.is_contiguous()) {
            true => (0, Words::new()),
            false => {
                let nest = merge_axes(layouts);
                (nest.dims().len() as u32, axes_of(op, shape, &nest, layouts.len())?)
            }
        };
        let ([number_a, number_b, number_c], [from_a, from_b, from_c]) = (numbers, offsets);
        let fields = ElementWords {
            rank,
            numbers: bits,
            number_a,
            number_b,
            number_c,
            from_a,
            from_b,
            from_c,
        };
        let mask = mask.map(DropoutWords::of);
        let structs: SmallVec<[&dyn Pack; 2]> =
            [&fields as &dyn Pack].into_iter().chain(mask.iter().map(|mask| mask as _)).collect();
        match Plan::new(self, (op, shape), numel, grid, &structs, &axes) {
            Err(Error::TooManyAxes { .. }) => Ok(None),
            plan => plan.map(Some),
        }
    }
}

/// Returns the function that computes the positions of element i in each of `count` operands.
fn positions(count: usize) -> String {
    let step = |k| if k < count { format!("p.axes[axis + {}u]", k + 1) } else { "0u".into() };
    format!(
        "fn positions(i: u32) -> vec3<u32> {{\n    \
         var at = vec3(p.from_a, p.from_b, p.from_c);\n    \
         if p.rank == 0u {{ return at + vec3(i); }}\n    \
         var rest = i;\n    \
         for (var k = 0u; k < p.rank; k++) {{\n        \
         let axis = k * {}u;\n        \
         let extent = p.axes[axis];\n        \
         at += (rest % extent) * vec3({}, {}, {});\n        \
         rest /= extent;\n    }}\n    return at;\n}}",
        count + 1,
        step(0),
        step(1),
        step(2)
    )
}

/// Returns the word of a number, for stores of one word.
fn word_of(store: Store, number: Scalar) -> u32 {
    match store {
        Store::F32 => f32::from_scalar(number).to_bits(),
        Store::F16 => half::f16::from_f64(number.to_f64()).to_f32().to_bits(),
        Store::I64 | Store::I32 => i32::from_scalar(number).cast_unsigned(),
        Store::U32 => u32::from_scalar(number),
        Store::U8 => u8::from_scalar(number).into(),
        Store::Bool => bool::from_scalar(number).into(),
    }
}

/// Returns the low and the high word.
fn halves(x: u64) -> [u32; 2] {
    [x as u32, (x >> 32) as u32]
}

impl DropoutWords {
    pub fn of(DropoutMask { p, seed, stream }: DropoutMask) -> Self {
        // An element is dropped if its random word is below ⌈p 2^32⌉. If that is 2^32, all are multiplied by 0 instead.
        let ceiling = (p * (1u64 << 32) as f64).ceil() as u64;
        let (dropped_below, kept_scale) = match u32::try_from(ceiling) {
            Ok(below) => (below, (1.0 / (1.0 - p)) as f32),
            Err(_) => (0, 0.0),
        };
        let [[seed_low, seed_high], [stream_low, stream_high]] = [seed, stream].map(halves);
        DropoutWords { seed_low, seed_high, stream_low, stream_high, dropped_below, kept_scale }
    }
}
