//! The op tables expanded to functions of slices: kernels for floats, the table's own formulas for
//! integers. A row without a kernel of its name in `swath_kernels::math` does not compile.

use swath_kernels::{Arg as Run, Binary, Block, BlockArg, Place, Unary, math};

use crate::dtype::Element;
use crate::ops::{BinaryOp, UnaryOp, binary_ops, unary_ops};

/// A function of slices, as the tables name it.
#[derive(Clone, Copy)]
pub(super) struct Kernel1<E> {
    /// `y[i] = f(x[i])`.
    pub run: fn(&[E], &mut Place<'_, E>),
    /// `x[i] = f(x[i])`.
    pub in_place: fn(&mut [E]),
    /// As `run`, of many rows.
    pub block: fn(BlockArg<E>, Block, &mut Place<'_, E>),
}

impl<E: Copy> Kernel1<E> {
    fn of<K: Unary<E>>() -> Self {
        Kernel1 {
            run: |x, y| K::run(x, y),
            in_place: K::run_in_place,
            block: |x, shape, y| K::run_block(x, shape, y),
        }
    }
}

/// A function of `N` operands of many rows; `None` is the result's memory.
pub(super) type BlockInPlace<E, const N: usize> = fn([Option<BlockArg<E>>; N], Block, &mut [E]);

/// A function of two slices, as the tables name it.
#[derive(Clone, Copy)]
pub(super) struct Kernel2<E> {
    /// `y[i] = f(a[i], b[i])`.
    pub run: fn(Run<E>, Run<E>, &mut Place<'_, E>),
    /// As `run`, with `a` as the result's memory.
    pub left: fn(&mut [E], Run<E>),
    /// As `run`, with `b` as the result's memory.
    pub right: fn(Run<E>, &mut [E]),
    /// As `run`, of many rows.
    pub block: fn(BlockArg<E>, BlockArg<E>, Block, &mut Place<'_, E>),
    /// As `block`; `None` is the result's memory.
    pub block_in_place: BlockInPlace<E, 2>,
}

impl<E: Copy> Kernel2<E> {
    fn of<K: Binary<E>>() -> Self {
        Kernel2 {
            run: |a, b, y| K::run(a, b, y),
            left: K::run_in_place_left,
            right: K::run_in_place_right,
            block: |a, b, shape, y| K::run_block(a, b, shape, y),
            block_in_place: K::run_block_in_place,
        }
    }
}

macro_rules! unary_kernels {
    ($({
        $(#[$doc:meta])*
        $method:ident, $Variant:ident;
        value: $value:expr;
        integer: ($($integer:expr)?);
        domain: $low:expr, $high:expr;
        gradient: $parameters:tt => $gradient:expr;
    })*) => {
        pub(super) fn unary_kernel<E: Copy>(op: UnaryOp) -> Kernel1<E>
        where
            $(math::$Variant: Unary<E>,)*
        {
            match op {
                $(UnaryOp::$Variant => Kernel1::of::<math::$Variant>(),)*
            }
        }

        /// Runs the integer formula of the op, if it has one.
        pub(super) fn unary_integer<T: Element>(op: UnaryOp, x: &[T], y: &mut [T]) {
            match op {
                $(UnaryOp::$Variant => {
                    $(map1(x, y, $integer);)?
                    let _ = (&x, &y);
                })*
            }
        }
    };
}
unary_ops!(unary_kernels);

macro_rules! binary_kernels {
    ($({
        $(#[$doc:meta])*
        $method:ident, $Variant:ident;
        value: $value:expr;
        integer: ($($integer:expr)?);
        domain: $a_low:expr, $a_high:expr; $b_low:expr, $b_high:expr;
        gradient_a: $a_parameters:tt => $a_gradient:expr;
        gradient_b: $b_parameters:tt => $b_gradient:expr;
    })*) => {
        pub(super) fn binary_kernel<E: Copy>(op: BinaryOp) -> Kernel2<E>
        where
            $(math::$Variant: Binary<E>,)*
        {
            match op {
                $(BinaryOp::$Variant => Kernel2::of::<math::$Variant>(),)*
            }
        }

        /// Runs the integer formula of the op, if it has one; false if it failed somewhere.
        pub(super) fn binary_integer<T: Element>(op: BinaryOp, a: Run<T>, b: Run<T>, y: &mut [T]) -> bool {
            match op {
                $(BinaryOp::$Variant => {
                    $(return map2(a, b, y, $integer);)?
                    #[allow(unreachable_code, reason = "reached where the row has no formula")]
                    false
                })*
            }
        }
    };
}
binary_ops!(binary_kernels);

fn map1<T: Element>(x: &[T], y: &mut [T], f: impl Fn(i64) -> i64) {
    y.iter_mut().zip(x).for_each(|(y, x)| *y = T::from_i64(f(x.to_i64())));
}

fn map2<T: Element>(
    a: Run<T>,
    b: Run<T>,
    y: &mut [T],
    f: impl Fn(i64, i64) -> Option<i64>,
) -> bool {
    let mut failed = false;
    let mut put = |y: &mut T, a: T, b: T| {
        let value = f(a.to_i64(), b.to_i64());
        failed |= value.is_none();
        *y = T::from_i64(value.unwrap_or(0));
    };
    match (a, b) {
        (Run::Slice(a), Run::Slice(b)) => {
            y.iter_mut().zip(a).zip(b).for_each(|((y, &a), &b)| put(y, a, b));
        }
        (Run::Slice(a), Run::Scalar(b)) => y.iter_mut().zip(a).for_each(|(y, &a)| put(y, a, b)),
        (Run::Scalar(a), Run::Slice(b)) => y.iter_mut().zip(b).for_each(|(y, &b)| put(y, a, b)),
        (Run::Scalar(a), Run::Scalar(b)) => y.iter_mut().for_each(|y| put(y, a, b)),
    }
    !failed
}
