//! Programs that must compile: type inference is easily broken by one more `impl`. Programs that must not
//! compile are `compile_fail` examples in the documentation, which do not depend on the compiler's messages.

mod inference;
mod literals;
