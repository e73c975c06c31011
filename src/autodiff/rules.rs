//! Derivative rules of the op table: each row becomes an arm of the functions that its macros expand to.

pub(crate) mod ternary;

use smallvec::smallvec;

use crate::backend::Backend;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
#[cfg(feature = "testing")]
use crate::ops::TernaryOp;
use crate::ops::{BinaryOp, UnaryOp, binary_ops, unary_ops};
use crate::runtime::shared::Shared;
use crate::shape::Shape;
use crate::tensor::Tensor;

use super::graph::{InputGradients, Rule, SharedRule, Upstream, bytes_of, shared_rule};

/// True if a rule's parameter list names `name`. Names are one character.
const fn names(parameters: &[&str], name: u8) -> bool {
    let mut i = 0;
    while i < parameters.len() {
        if parameters[i].as_bytes()[0] == name {
            return true;
        }
        i += 1;
    }
    false
}

/// Values that the parameters of a rule can name: the upstream gradient, the inputs, the output.
struct Values<'a, B: Backend> {
    g: &'a Tensor<B>,
    x: Option<&'a Tensor<B>>,
    a: Option<&'a Tensor<B>>,
    b: Option<&'a Tensor<B>>,
    c: Option<&'a Tensor<B>>,
    y: Option<&'a Tensor<B>>,
}

impl<'a, B: Backend> Values<'a, B> {
    fn get(&self, name: &str) -> &'a Tensor<B> {
        let value = match name {
            "x" => self.x,
            "a" => self.a,
            "b" => self.b,
            "c" => self.c,
            "y" => self.y,
            "g" => Some(self.g),
            _ => None,
        };
        value.expect("a value that its rule names is saved when the op is recorded")
    }
}

macro_rules! unary_rules {
    ($({
        $(#[$doc:meta])*
        $method:ident, $Variant:ident;
        value: $value:expr;
        $(integer: $integer:tt;)?
        domain: $low:expr, $high:expr;
        gradient: ($($parameter:ident),*) => $gradient:expr;
    })*) => {
        /// The values that the rule of an op names.
        const fn unary_parameters(op: UnaryOp) -> &'static [&'static str] {
            match op {
                $(UnaryOp::$Variant => &[$(stringify!($parameter)),*],)*
            }
        }

        fn unary_gradient<B: Backend>(op: UnaryOp, values: &Values<'_, B>) -> Result<Tensor<B>> {
            match op {
                $(UnaryOp::$Variant => {
                    $(let $parameter = values.get(stringify!($parameter));)*
                    $gradient
                })*
            }
        }
    };
}
unary_ops!(unary_rules);

macro_rules! binary_rules {
    ($({
        $(#[$doc:meta])*
        $method:ident, $Variant:ident;
        value: $value:expr;
        $(integer: $integer:tt;)?
        domain: $a_low:expr, $a_high:expr; $b_low:expr, $b_high:expr;
        gradient_a: ($($a_parameter:ident),*) => $a_gradient:expr;
        gradient_b: ($($b_parameter:ident),*) => $b_gradient:expr;
    })*) => {
        /// The values that the rule of input `side` names.
        const fn binary_parameters(op: BinaryOp, side: Side) -> &'static [&'static str] {
            match (op, side) {
                $((BinaryOp::$Variant, Side::A) => &[$(stringify!($a_parameter)),*],)*
                $((BinaryOp::$Variant, Side::B) => &[$(stringify!($b_parameter)),*],)*
            }
        }

        fn binary_gradient<B: Backend>(
            op: BinaryOp,
            side: Side,
            values: &Values<'_, B>,
        ) -> Result<Tensor<B>> {
            match (op, side) {
                $((BinaryOp::$Variant, Side::A) => {
                    $(let $a_parameter = values.get(stringify!($a_parameter));)*
                    $a_gradient
                })*
                $((BinaryOp::$Variant, Side::B) => {
                    $(let $b_parameter = values.get(stringify!($b_parameter));)*
                    $b_gradient
                })*
            }
        }
    };
}
binary_ops!(binary_rules);

/// An input of a binary op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    A,
    B,
}

/// True for (input, output) if the rule names it, so that it must be saved.
pub(crate) fn unary_keeps(op: UnaryOp) -> (bool, bool) {
    let parameters = unary_parameters(op);
    (names(parameters, b'x'), names(parameters, b'y'))
}

struct UnaryRule<B: Backend> {
    op: UnaryOp,
    x: Option<Tensor<B>>,
    /// Behind a pointer: few ops save their output, and a tensor stored inline would enlarge every rule.
    y: Option<Shared<B::Tensor>>,
}

/// Makes the rule of a unary op, saving the input and the output if the rule names them.
pub(crate) fn unary_rule<B: Backend>(op: UnaryOp, x: &Tensor<B>, y: &B::Tensor) -> SharedRule<B> {
    let (keeps_x, keeps_y) = unary_keeps(op);
    shared_rule(UnaryRule {
        op,
        x: keeps_x.then(|| x.clone()),
        y: keeps_y.then(|| Shared::new(y.clone())),
    })
}

impl<B: Backend> Rule<B> for UnaryRule<B> {
    fn backward(&self, upstream: &Upstream<'_, B>, _wanted: &[bool]) -> Result<InputGradients<B>> {
        let y = self.y.as_ref().map(|y| upstream.output(y));
        let (g, x) = (upstream.g, self.x.as_ref());
        let values = Values { g, x, a: None, b: None, c: None, y: y.as_ref() };
        Ok(smallvec![Some(unary_gradient(self.op, &values)?)])
    }

    fn saved_bytes(&self) -> usize {
        bytes_of([self.x.as_ref().map(Tensor::data), self.y.as_deref()])
    }
}

/// An input saved for a rule.
pub(crate) enum Saved<B: Backend> {
    Tensor(Tensor<B>),
    Scalar(Scalar, DType),
}

impl<B: Backend> Saved<B> {
    fn data(&self) -> Option<&B::Tensor> {
        match self {
            Saved::Tensor(tensor) => Some(tensor.data()),
            Saved::Scalar(..) => None,
        }
    }

    fn tensor(&self) -> Result<Tensor<B>> {
        match self {
            Saved::Tensor(tensor) => Ok(tensor.clone()),
            Saved::Scalar(value, dtype) => {
                Ok(Tensor::from_data(B::full(Shape::scalar(), *value, *dtype)?))
            }
        }
    }
}

struct BinaryRule<B: Backend> {
    op: BinaryOp,
    a: Option<Saved<B>>,
    b: Option<Saved<B>>,
    y: Option<Shared<B::Tensor>>,
}

/// True for each of (a, b, y) that a rule of a tracked input names.
pub(crate) fn binary_keeps(op: BinaryOp, a_tracked: bool, b_tracked: bool) -> (bool, bool, bool) {
    let for_a = binary_parameters(op, Side::A);
    let for_b = binary_parameters(op, Side::B);
    let keeps = |name| (a_tracked && names(for_a, name)) || (b_tracked && names(for_b, name));
    (keeps(b'a'), keeps(b'b'), keeps(b'y'))
}

/// Makes the rule of a binary op from the values that [`binary_keeps`] selects.
pub(crate) fn binary_rule<B: Backend>(
    op: BinaryOp,
    a: Option<Saved<B>>,
    b: Option<Saved<B>>,
    y: Option<B::Tensor>,
) -> SharedRule<B> {
    shared_rule(BinaryRule { op, a, b, y: y.map(Shared::new) })
}

impl<B: Backend> Rule<B> for BinaryRule<B> {
    fn backward(&self, upstream: &Upstream<'_, B>, wanted: &[bool]) -> Result<InputGradients<B>> {
        let a = self.a.as_ref().map(Saved::tensor).transpose()?;
        let b = self.b.as_ref().map(Saved::tensor).transpose()?;
        let y = self.y.as_ref().map(|y| upstream.output(y));
        let g = upstream.g;
        let values = Values { g, x: None, a: a.as_ref(), b: b.as_ref(), c: None, y: y.as_ref() };
        let side = |side, wanted: bool| {
            wanted.then(|| binary_gradient(self.op, side, &values)).transpose()
        };
        Ok(smallvec![side(Side::A, wanted[0])?, side(Side::B, wanted[1])?])
    }

    fn saved_bytes(&self) -> usize {
        let [a, b] = [&self.a, &self.b].map(|x| x.as_ref().and_then(Saved::data));
        bytes_of([a, b, self.y.as_deref()])
    }
}

/// Gradient of input number `input` by the rule of the row `op`; `value` returns the value of each name.
#[cfg(feature = "testing")]
pub fn row_gradient<'a, B: Backend>(
    op: &str,
    input: usize,
    value: impl Fn(&str) -> Option<&'a Tensor<B>>,
) -> Result<Tensor<B>> {
    let of = |name| value(name);
    let g = of("g").expect("an upstream gradient");
    let values = Values { g, x: of("x"), a: of("a"), b: of("b"), c: of("c"), y: of("y") };
    if let Some(&op) = UnaryOp::ALL.iter().find(|row| row.name() == op) {
        return unary_gradient(op, &values);
    }
    if let Some(&op) = BinaryOp::ALL.iter().find(|row| row.name() == op) {
        return binary_gradient(op, if input == 0 { Side::A } else { Side::B }, &values);
    }
    let op = TernaryOp::ALL.iter().find(|row| row.name() == op);
    ternary::gradient(*op.expect("a row of the op table"), input, &values)
}
