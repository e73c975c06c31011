// `a` clamped to `low` and `high`; `high` if `low` is larger.
fn clamped(a: f32, low: f32, high: f32) -> f32 {
    let raised = select(a, low, a < low);
    return select(raised, high, high < raised);
}
