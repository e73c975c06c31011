// The maximum, NaN if either is NaN.
fn larger(x: f32, y: f32) -> f32 {
    if is_nan(x) { return x; }
    if is_nan(y) || y > x || (x == y && is_negative(x)) { return y; }
    return x;
}

fn smaller(x: f32, y: f32) -> f32 {
    if is_nan(x) { return x; }
    if is_nan(y) || y < x || (x == y && is_negative(y)) { return y; }
    return x;
}

fn square_of(x: vec2<f32>) -> vec2<f32> { return product_of(x, x); }

// The divisor of the magnitudes: the extreme magnitude, or 1 if that is 0, infinite or NaN.
fn scale_of(extreme: f32) -> f32 {
    if extreme == 0.0 || is_infinite(extreme) || is_nan(extreme) { return 1.0; }
    return extreme;
}

fn finite_or_0(x: f32) -> f32 {
    if is_infinite(x) || is_nan(x) { return 0.0; }
    return x;
}

// A product with a separate exponent, (x + y) 2^z, so that no partial product overflows.
fn scaled_product(s: vec3<f32>, t: vec3<f32>) -> vec3<f32> {
    let a = normalized(s);
    let b = normalized(t);
    let product = product_of(a.xy, b.xy);
    return vec3(product, a.z + b.z);
}

fn normalized(s: vec3<f32>) -> vec3<f32> {
    if s.x == 0.0 || is_nan(s.x) || is_infinite(s.x) { return s; }
    let n = parts(abs(s.x)).n;
    return vec3(scaled(s.x, -i32(n)), scaled(s.y, -i32(n)), s.z + n);
}

fn scaled_far(x: f32, n: i32) -> f32 { return scaled(scaled(x, n / 2), n - n / 2); }
