//! What programs write compiles and means what it says: type inference is easily lost to one more
//! `impl`. Programs that must not compile are `compile_fail` examples in the documentation, which do
//! not depend on the compiler's wording.

mod inference;
mod literals;
