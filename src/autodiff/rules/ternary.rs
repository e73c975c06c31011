//! The derivatives of ternary ops.

use smallvec::SmallVec;

use super::{Saved, Values, names};
use crate::autodiff::graph::{InputGradients, Rule, SharedRule, Upstream, bytes_of, shared_rule};
use crate::backend::Backend;
use crate::error::Result;
use crate::ops::{TernaryOp, ternary_ops};
use crate::runtime::shared::Shared;
use crate::tensor::Tensor;

macro_rules! ternary_rules {
    ($({
        $(#[$doc:meta])*
        $method:ident, $Variant:ident;
        composite: ($($operand:ident),*) => $composite:expr;
        domain: $a_low:expr, $a_high:expr; $b_low:expr, $b_high:expr; $c_low:expr, $c_high:expr;
        gradient_a: ($($a_parameter:ident),*) => $a_gradient:expr;
        gradient_b: ($($b_parameter:ident),*) => $b_gradient:expr;
        gradient_c: ($($c_parameter:ident),*) => $c_gradient:expr;
    })*) => {
        /// The values that the rules of the three inputs name.
        const fn parameters(op: TernaryOp) -> [&'static [&'static str]; 3] {
            match op {
                $(TernaryOp::$Variant => [
                    &[$(stringify!($a_parameter)),*],
                    &[$(stringify!($b_parameter)),*],
                    &[$(stringify!($c_parameter)),*],
                ],)*
            }
        }

        pub(super) fn gradient<B: Backend>(
            op: TernaryOp,
            input: usize,
            values: &Values<'_, B>,
        ) -> Result<Tensor<B>> {
            match (op, input) {
                $((TernaryOp::$Variant, 0) => {
                    $(let $a_parameter = values.get(stringify!($a_parameter));)*
                    $a_gradient
                })*
                $((TernaryOp::$Variant, 1) => {
                    $(let $b_parameter = values.get(stringify!($b_parameter));)*
                    $b_gradient
                })*
                $((TernaryOp::$Variant, _) => {
                    $(let $c_parameter = values.get(stringify!($c_parameter));)*
                    $c_gradient
                })*
            }
        }
    };
}
ternary_ops!(ternary_rules);

/// True for each of a, b, c and y that a rule of a tracked input names.
pub(crate) fn keeps(op: TernaryOp, tracked: [bool; 3]) -> [bool; 4] {
    let rules = parameters(op);
    [b'a', b'b', b'c', b'y']
        .map(|name| rules.iter().zip(tracked).any(|(rule, tracked)| tracked && names(rule, name)))
}

struct TernaryRule<B: Backend> {
    op: TernaryOp,
    inputs: [Option<Saved<B>>; 3],
    y: Option<Shared<B::Tensor>>,
}

/// Makes the rule of a ternary op from the values that [`keeps`] selects.
pub(crate) fn ternary_rule<B: Backend>(
    op: TernaryOp,
    inputs: [Option<Saved<B>>; 3],
    y: Option<B::Tensor>,
) -> SharedRule<B> {
    shared_rule(TernaryRule { op, inputs, y: y.map(Shared::new) })
}

impl<B: Backend> Rule<B> for TernaryRule<B> {
    fn backward(&self, upstream: &Upstream<'_, B>, wanted: &[bool]) -> Result<InputGradients<B>> {
        let tensor = |i: usize| self.inputs[i].as_ref().map(Saved::tensor).transpose();
        let (a, b, c) = (tensor(0)?, tensor(1)?, tensor(2)?);
        let y = self.y.as_ref().map(|y| upstream.output(y));
        let values = Values {
            g: upstream.g,
            x: None,
            a: a.as_ref(),
            b: b.as_ref(),
            c: c.as_ref(),
            y: y.as_ref(),
        };
        let of_input = |(input, &wanted): (usize, &bool)| {
            wanted.then(|| gradient(self.op, input, &values)).transpose()
        };
        wanted.iter().enumerate().map(of_input).collect::<Result<SmallVec<_>>>()
    }

    fn saved_bytes(&self) -> usize {
        let inputs = self.inputs.each_ref().map(|x| x.as_ref().and_then(Saved::data));
        bytes_of(inputs.into_iter().chain([self.y.as_deref()]))
    }
}
