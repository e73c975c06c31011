// Double-float arithmetic: a number is a sum of two floats, and the second is the rounding error of the first (Dekker
// 1971, Knuth 1969).

fn sum_of(x: vec2<f32>, y: vec2<f32>) -> vec2<f32> {
    let high = opaque(x.x + y.x);
    if is_nan(high) || is_infinite(high) { return vec2(high, 0.0); }
    let part = opaque(high - x.x);
    let rest = (x.x - (high - part)) + (y.x - part) + (x.y + y.y);
    let sum = opaque(high + rest);
    return vec2(sum, rest - (sum - high));
}

fn product_of(x: vec2<f32>, y: vec2<f32>) -> vec2<f32> {
    let product = exact_product(x.x, y.x);
    if is_nan(product.x) || is_infinite(product.x) { return vec2(product.x, 0.0); }
    let rest = product.y + (x.x * y.y + x.y * y.x);
    let high = opaque(product.x + rest);
    return vec2(high, rest - (high - product.x));
}

fn quotient_of(x: vec2<f32>, y: f32) -> vec2<f32> {
    let first = x.x / y;
    if is_nan(first) || is_infinite(first) { return vec2(first, 0.0); }
    let back = exact_product(first, y);
    return sum_of(vec2(first, 0.0), vec2(((x.x - back.x) - back.y + x.y) / y, 0.0));
}
