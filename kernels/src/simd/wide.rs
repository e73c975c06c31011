//! Two vectors joined into one of twice the lanes.
//!
//! ```text
//! kernel on S::V:        a1 → b1 → c1 → …   a2 → b2 → c2 → …       one chain after the other
//! kernel on Wide<S>:     a1 a2 → b1 b2 → c1 c2 → …                 every operation twice in a row
//! ```
//!
//! A long kernel is a chain of dependent operations of four cycles each, while a core runs two or
//! more per cycle: it needs several chains at once. A core with a window of a hundred operations
//! reaches only one or two vectors further. Interleaving the vectors' operations does not depend on
//! the window, and loads every constant once for all of them. `Wide<Wide<S>>` is four vectors.

use core::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Sub};

use super::{Float, IntVector, Lanes, Mask, Rows, Token, Vector};
use super::{Isa, Task};

/// The token of joined vectors.
#[derive(Clone, Copy)]
pub(crate) struct Wide<S>(pub S);

/// The two halves, lower lanes first.
#[derive(Clone, Copy)]
pub(crate) struct Two<T>([T; 2]);

/// Defines methods that apply the method of type `$half` to both halves. No closures: they would be
/// functions compiled without the instruction set.
macro_rules! both {
    ($half:ident: $(
        fn $name:ident $(<const $n:ident: i32>)?($first:ident $(: $first_t:ty)? $(, $rest:ident: $t:ty)*)
            -> $output:ty;
    )*) => {$(
        #[inline(always)]
        fn $name $(<const $n: i32>)?($first $(: $first_t)? $(, $rest: $t)*) -> $output {
            Two([
                $half::$name$(::<$n>)?($first.0[0] $(, $rest.0[0])*),
                $half::$name$(::<$n>)?($first.0[1] $(, $rest.0[1])*),
            ])
        }
    )*};
}

macro_rules! operators {
    ($($Trait:ident: fn $method:ident($self:ident $(, $other:ident)?);)*) => {$(
        impl<T: $Trait<Output = T> + Copy> $Trait for Two<T> {
            type Output = Self;
            both! { T: fn $method($self $(, $other: Self)?) -> Self; }
        }
    )*};
}
operators! {
    Add: fn add(self, other);
    Sub: fn sub(self, other);
    Mul: fn mul(self, other);
    Div: fn div(self, other);
    BitAnd: fn bitand(self, other);
    BitOr: fn bitor(self, other);
    BitXor: fn bitxor(self, other);
    Neg: fn neg(self);
    Not: fn not(self);
}

/// True if the masks are tested one by one instead of combined; see `hidden` in `neon.rs`.
const ASKS_APART: bool = cfg!(target_arch = "aarch64");

impl<M: Mask> Mask for Two<M> {
    #[inline(always)]
    fn any(self) -> bool {
        let [low, high] = self.0;
        if const { ASKS_APART } { low.any() | high.any() } else { (low | high).any() }
    }
    #[inline(always)]
    fn all(self) -> bool {
        let [low, high] = self.0;
        if const { ASKS_APART } { low.all() & high.all() } else { (low & high).all() }
    }
}

impl<I: IntVector> IntVector for Two<I> {
    type Mask = Two<I::Mask>;
    both! { I:
        fn shl<const N: i32>(self) -> Self;
        fn shr<const N: i32>(self) -> Self;
        fn eq(self, other: Self) -> Self::Mask;
        fn gt(self, other: Self) -> Self::Mask;
        fn select(self, mask: Self::Mask, other: Self) -> Self;
    }
}

impl<V: Vector> Vector for Two<V> {
    type Elem = V::Elem;
    type Mask = Two<V::Mask>;
    type Int = Two<V::Int>;
    both! { V:
        fn mul_add(self, a: Self, b: Self) -> Self;
        fn neg_mul_add(self, a: Self, b: Self) -> Self;
        fn sqrt(self) -> Self;
        fn abs(self) -> Self;
        fn round_ties_even(self) -> Self;
        fn min_or_other(self, other: Self) -> Self;
        fn max_or_other(self, other: Self) -> Self;
        fn eq(self, other: Self) -> Self::Mask;
        fn lt(self, other: Self) -> Self::Mask;
        fn le(self, other: Self) -> Self::Mask;
        fn is_nan(self) -> Self::Mask;
        fn select(self, mask: Self::Mask, other: Self) -> Self;
        fn to_bits(self) -> Self::Int;
        fn from_bits(bits: Self::Int) -> Self;
        fn scale_by_power_of_two(self, k: Self::Int) -> Self;
    }
    #[inline(always)]
    fn lookup8(table: &[Self::Elem; 8], index: Self::Int, like: Self) -> Self {
        Two([V::lookup8(table, index.0[0], like.0[0]), V::lookup8(table, index.0[1], like.0[1])])
    }
    #[inline(always)]
    fn lookup16(table: &[Self::Elem; 16], index: Self::Int, like: Self) -> Self {
        Two([V::lookup16(table, index.0[0], like.0[0]), V::lookup16(table, index.0[1], like.0[1])])
    }
    #[inline(always)]
    fn lookup32(table: &[Self::Elem; 32], index: Self::Int, like: Self) -> Self {
        Two([V::lookup32(table, index.0[0], like.0[0]), V::lookup32(table, index.0[1], like.0[1])])
    }
    #[inline(always)]
    fn interleave(self, other: Self) -> (Self, Self) {
        let (a, b) = self.0[0].interleave(other.0[0]);
        let (c, d) = self.0[1].interleave(other.0[1]);
        (Two([a, b]), Two([c, d]))
    }
}

/// Joins each pair of vectors into one.
#[inline(always)]
pub(crate) fn join<V: Copy, const N: usize>(low: [V; N], high: [V; N]) -> [Two<V>; N] {
    let mut both = [Two([low[0]; 2]); N];
    let mut i = 0;
    while i < N {
        both[i] = Two([low[i], high[i]]);
        i += 1;
    }
    both
}

impl<S: Token> Token for Wide<S> {
    const ISA: Isa = S::ISA;
    #[inline(always)]
    fn call<T: Task>(self, task: T) -> T::Output {
        self.0.call(task)
    }
    #[inline(always)]
    fn fence(self) {
        self.0.fence();
    }
    #[inline(always)]
    fn prefetch(self, address: *const u8) {
        self.0.prefetch(address);
    }
    #[inline(always)]
    fn prefetch_l2(self, address: *const u8) {
        self.0.prefetch_l2(address);
    }
}

impl<E: Float, S: Lanes<E>> Lanes<E> for Wide<S> {
    type V = Two<S::V>;
    type I = Two<S::I>;
    type M = Two<S::M>;
    const LANES: usize = 2 * S::LANES;

    #[inline(always)]
    fn splat(self, x: E) -> Self::V {
        Two([self.0.splat(x); 2])
    }
    #[inline(always)]
    fn splat_int(self, x: E::Int) -> Self::I {
        Two([self.0.splat_int(x); 2])
    }
    #[inline(always)]
    fn first(self, count: usize) -> Self::M {
        Two([self.0.first(count.min(S::LANES)), self.0.first(count.saturating_sub(S::LANES))])
    }
    intrinsics! { unsafe:
        fn load(self, src: *const E) -> Self::V {
            Two([self.0.load(src), self.0.load(src.add(S::LANES))])
        }
        fn load_f16(self, src: *const u16) -> Self::V {
            Two([self.0.load_f16(src), self.0.load_f16(src.add(S::LANES))])
        }
        fn load_bf16(self, src: *const u16) -> Self::V {
            Two([self.0.load_bf16(src), self.0.load_bf16(src.add(S::LANES))])
        }
        fn load_first(self, src: *const E, count: usize) -> Self::V {
            // With less than one vector, no address beyond the elements is formed.
            match count.checked_sub(S::LANES) {
                None => Two([self.0.load_first(src, count), self.0.splat(E::ZERO)]),
                Some(rest) => Two([self.0.load(src), self.0.load_first(src.add(S::LANES), rest)]),
            }
        }
        fn load_where(self, src: *const E, mask: Self::M) -> Self::V {
            // The second half may begin beyond the memory that the caller promised.
            let high = src.wrapping_add(S::LANES);
            Two([self.0.load_where(src, mask.0[0]), self.0.load_where(high, mask.0[1])])
        }
        fn store(self, dst: *mut E, x: Self::V) -> () {
            self.0.store(dst, x.0[0]);
            self.0.store(dst.add(S::LANES), x.0[1]);
        }
        fn store_streaming(self, dst: *mut E, x: Self::V) -> () {
            self.0.store_streaming(dst, x.0[0]);
            self.0.store_streaming(dst.add(S::LANES), x.0[1]);
        }
        fn store_first(self, dst: *mut E, count: usize, x: Self::V) -> () {
            match count.checked_sub(S::LANES) {
                None => self.0.store_first(dst, count, x.0[0]),
                Some(rest) => {
                    self.0.store(dst, x.0[0]);
                    self.0.store_first(dst.add(S::LANES), rest, x.0[1]);
                }
            }
        }
        fn store_where(self, dst: *mut E, mask: Self::M, x: Self::V) -> () {
            self.0.store_where(dst, mask.0[0], x.0[0]);
            self.0.store_where(dst.wrapping_add(S::LANES), mask.0[1], x.0[1]);
        }
    }
    #[inline(always)]
    fn lookup_rows(self, table: &'static Rows<E>, index: Self::I) -> [Self::V; 8] {
        let low = self.0.lookup_rows(table, index.0[0]);
        let high = self.0.lookup_rows(table, index.0[1]);
        join(low, high)
    }
    #[inline(always)]
    fn map_lanes<const N: usize>(
        self,
        mask: Self::M,
        x: Self::V,
        f: fn(E) -> [E; N],
    ) -> [Self::V; N] {
        let low = self.0.map_lanes(mask.0[0], x.0[0], f);
        let high = self.0.map_lanes(mask.0[1], x.0[1], f);
        join(low, high)
    }
}
