// Converts x like Rust's `as`.
fn i64_of(x: f32) -> i64 {
    if is_nan(x) { return i64(0); }
    if x >= 9223372036854775808.0 { return 9223372036854775807li; }
    if x <= -9223372036854775808.0 { return -9223372036854775807li - 1li; }
    return i64(x);
}
