//! What the instruction sets' vectors are declared with.

/// Declares vector types: opaque, so that only the modules of tokens can make one.
macro_rules! vectors {
    ($($(#[$doc:meta])* $v:ident($raw:ty);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $v($raw);
    )*};
}

/// Defines methods whose bodies are intrinsics; `unsafe:` in front makes them `unsafe fn`s over memory.
macro_rules! intrinsics {
    (unsafe: $(
        fn $name:ident($self:ident $(, $arg:ident: $t:ty)*) -> $output:ty $body:block
    )*) => {$(
        #[inline(always)]
        unsafe fn $name($self $(, $arg: $t)*) -> $output {
            // SAFETY: a token is made by detection alone, so the CPU has these instructions; the
            // memory is valid for what they touch, as the caller promised.
            unsafe { $body }
        }
    )*};
    ($(
        fn $name:ident $(<const $n:ident: $n_t:ty>)?($($self:ident $(: $self_t:ty)?),*)
            -> $output:ty $body:block
    )*) => {$(
        #[inline(always)]
        #[allow(unused_unsafe, reason = "AArch64 targets have NEON without asking")]
        fn $name $(<const $n: $n_t>)?($($self $(: $self_t)?),*) -> $output {
            // SAFETY: vectors are made by tokens alone, and a token by detection alone, so the CPU
            // has these instructions; those that read memory read a whole array.
            unsafe { $body }
        }
    )*};
}

/// Implements operators of two vectors by one intrinsic each.
macro_rules! operators {
    ($($v:ident: $($operator:ident $name:ident $intrinsic:path),*;)*) => {$($(
        impl $operator for $v {
            type Output = Self;
            intrinsics! {
                fn $name(self, other: Self) -> Self { Self($intrinsic(self.0, other.0)) }
            }
        }
    )*)*};
}

/// Implements operators of one vector by one expression each.
macro_rules! prefix_operators {
    ($($v:ident: $operator:ident $name:ident |$x:ident| $result:expr;)*) => {$(
        impl $operator for $v {
            type Output = Self;
            intrinsics! {
                fn $name(self) -> Self {
                    let $x = self.0;
                    Self($result)
                }
            }
        }
    )*};
}
