// The logarithm of a sum of two floats, as a sum of two floats.
fn logarithm_pair(x: vec2<f32>) -> vec2<f32> {
    if has_no_logarithm(x.x) { return vec2(logarithm(x.x), 0.0); }
    return sum_of(exact_logarithm(x.x), vec2(x.y / x.x, 0.0));
}
