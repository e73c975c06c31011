//! Macros that declare the instruction sets' vectors.

/// Declares vector types with a private field, so that only their module can make one.
macro_rules! vectors {
    ($($(#[$doc:meta])* $v:ident($raw:ty);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $v($raw);
    )*};
}

/// Defines methods whose bodies are intrinsics; with `unsafe:` in front, `unsafe fn`s that access
/// memory.
macro_rules! intrinsics {
    (unsafe: $(
        fn $name:ident($self:ident $(, $arg:ident: $t:ty)*) -> $output:ty $body:block
    )*) => {$(
        #[inline(always)]
        unsafe fn $name($self $(, $arg: $t)*) -> $output {
            // SAFETY: a token is only made by detection, so the CPU has these instructions; the
            // caller promises that the memory they access is valid.
            unsafe { $body }
        }
    )*};
    ($(
        fn $name:ident $(<const $n:ident: $n_t:ty>)?($($self:ident $(: $self_t:ty)?),*)
            -> $output:ty $body:block
    )*) => {$(
        #[inline(always)]
        #[allow(unused_unsafe, reason = "NEON is a baseline feature of AArch64 targets")]
        fn $name $(<const $n: $n_t>)?($($self $(: $self_t)?),*) -> $output {
            // SAFETY: vectors are only made by tokens, and tokens by detection, so the CPU has
            // these instructions; those that read memory read a whole array.
            unsafe { $body }
        }
    )*};
}

/// Implements binary operators on vectors by one intrinsic each.
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

/// Implements unary operators on a vector by one expression each.
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
