//! What programs write compiles and means what it says: type inference is easily lost to one more
//! `impl`. Programs that must not compile are `compile_fail` examples in the documentation, which do
//! not depend on the compiler's wording.

#[test]
fn programs_compile_and_run() {
    trybuild::TestCases::new().pass("tests/ui/*.rs");
}
