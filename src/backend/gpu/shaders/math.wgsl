// Functions of f32. WGSL's own are not accurate enough: on some devices the error of `sin` is 2^-11, and that of `exp`
// 2 + 2|x| units in the last place. Polynomials are from Cephes (Moshier, 1992, single precision) unless a source is
// named. No function relies on a fused multiply-add or on subnormal numbers.

const LN_2: f32 = 0.6931471805599453;
const INFINITY_BITS: u32 = 0x7f800000u;

// WGSL has no infinite or NaN constants. `p.zero` is 0, and makes these run-time values.
fn infinity() -> f32 { return bitcast<f32>(INFINITY_BITS | p.zero); }
fn nan() -> f32 { return bitcast<f32>(0x7fc00000u | p.zero); }

// Returns x, hidden from the optimizer. Many compilers simplify `(a + b) - a` to `b`, without its rounding.
fn opaque(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) ^ p.zero); }

// Bit tests, because drivers may assume that no value is NaN and that `x != x` is false.
fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > INFINITY_BITS; }
fn is_infinite(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) == INFINITY_BITS; }
fn is_negative(x: f32) -> bool { return (bitcast<u32>(x) >> 31u) == 1u; }
fn copy_sign(x: f32, sign: f32) -> f32 {
    return bitcast<f32>((bitcast<u32>(x) & 0x7fffffffu) | (bitcast<u32>(sign) & 0x80000000u));
}

// x · 2^n in two steps, so that neither power overflows.
fn scaled(x: f32, n: i32) -> f32 {
    let half = n / 2;
    return x * bitcast<f32>(u32(half + 127) << 23u) * bitcast<f32>(u32(n - half + 127) << 23u);
}

// (e^r - 1 - r) / r², |r| <= ln 2 / 2.
fn exponential_tail(r: f32) -> f32 {
    var q = 1.9875691500e-4;
    q = q * r + 1.3981999507e-3;
    q = q * r + 8.3334519073e-3;
    q = q * r + 4.1665795894e-2;
    q = q * r + 1.6666665459e-1;
    return q * r + 5.0000001201e-1;
}

// s e^(x + rest), for a sum s and a rest far below 1. Includes the rounding error of e^r.
fn exponential_times(x: f32, rest: f32, s: vec2<f32>) -> f32 {
    if is_nan(x) { return x; }
    let bounded = clamp(x, -105.0, 90.0);
    let n = round(bounded * 1.44269504);
    let r = (bounded - n * 0.693359375) + n * 2.12194440e-4 + rest;
    let above = exponential_tail(r) * r * r + r;
    let e = opaque(1.0 + above);
    return scaled(((above - opaque(e - 1.0)) * s.x + e * s.y) + e * s.x, i32(n));
}

fn exponential_of_sum(x: f32, rest: f32) -> f32 { return exponential_times(x, rest, vec2(1.0, 0.0)); }

fn exponential(x: f32) -> f32 { return exponential_of_sum(x, 0.0); }

fn exponential_2(x: f32) -> f32 {
    if is_nan(x) { return x; }
    let bounded = clamp(x, -151.0, 129.0);
    let n = round(bounded);
    let r = bounded - n;
    var q = 1.535336188319500e-4;
    q = q * r + 1.339887440266574e-3;
    q = q * r + 9.618437357674640e-3;
    q = q * r + 5.550332471162809e-2;
    q = q * r + 2.402264791363012e-1;
    q = q * r + 6.931472028550421e-1;
    return scaled(q * r + 1.0, i32(n));
}

fn exponential_10(x: f32) -> f32 {
    if is_nan(x) { return x; }
    let bounded = clamp(x, -46.0, 39.0);
    let n = round(bounded * 3.32192809);
    let r = (bounded - n * 3.00781250e-1) - n * 2.48745663981195213739e-4;
    var q = 2.063216740311022e-1;
    q = q * r + 5.420251702225484e-1;
    q = q * r + 1.171292686296281;
    q = q * r + 2.034649854009453;
    q = q * r + 2.650948748208892;
    q = q * r + 2.302585167056758;
    return scaled(q * r + 1.0, i32(n));
}

// The exponent n and mantissa of x > 0, between √½ and √2.
struct Parts { n: f32, mantissa: f32 }

fn parts(x: f32) -> Parts {
    var bits = bitcast<u32>(x);
    var bias = 126;
    if bits < 0x00800000u {
        bits = bitcast<u32>(x * 8388608.0);
        bias = 149;
    }
    var n = i32(bits >> 23u) - bias;
    var mantissa = bitcast<f32>((bits & 0x007fffffu) | 0x3f000000u);
    if mantissa < 0.70710678 {
        n -= 1;
        mantissa += mantissa;
    }
    return Parts(f32(n), mantissa);
}

// ln(1 + d) - d for 1 + d between √½ and √2.
fn logarithm_tail(d: f32) -> f32 {
    var q = 7.0376836292e-2;
    q = q * d - 1.1514610310e-1;
    q = q * d + 1.1676998740e-1;
    q = q * d - 1.2420140846e-1;
    q = q * d + 1.4249322787e-1;
    q = q * d - 1.6668057665e-1;
    q = q * d + 2.0000714765e-1;
    q = q * d - 2.4999993993e-1;
    q = q * d + 3.3333331174e-1;
    return q * d * d * d - 0.5 * d * d;
}

// True if the logarithm is an edge case: x itself, -∞ or NaN.
fn has_no_logarithm(x: f32) -> bool { return is_nan(x) || x <= 0.0 || is_infinite(x); }

fn edge_of_logarithm(x: f32) -> f32 {
    if x == 0.0 { return -infinity(); }
    if x < 0.0 { return nan(); }
    return x;
}

fn logarithm(x: f32) -> f32 {
    if has_no_logarithm(x) { return edge_of_logarithm(x); }
    let m = parts(x);
    let d = m.mantissa - 1.0;
    return (d + (logarithm_tail(d) - m.n * 2.12194440e-4)) + m.n * 0.693359375;
}

fn logarithm_2(x: f32) -> f32 {
    if has_no_logarithm(x) { return edge_of_logarithm(x); }
    let m = parts(x);
    let d = m.mantissa - 1.0;
    let tail = logarithm_tail(d);
    // log2(e) - 1
    let more = 0.44269504088896340735992;
    return (((tail * more + d * more) + tail) + d) + m.n;
}

fn logarithm_10(x: f32) -> f32 {
    if has_no_logarithm(x) { return edge_of_logarithm(x); }
    let m = parts(x);
    let d = m.mantissa - 1.0;
    let tail = logarithm_tail(d);
    // log10(2) and log10(e), each as a sum of two parts
    let low = (d + tail) * 7.00731903251827651129e-4 + m.n * 2.48745663981195213739e-4;
    return ((low + tail * 4.3359375e-1) + d * 4.3359375e-1) + m.n * 3.0078125e-1;
}

// ln(1 + x). A factor corrects for the rounding of 1 + x (Kahan; Goldberg 1991, theorem 4).
fn logarithm_of_1_plus(x: f32) -> f32 {
    let u = opaque(1.0 + x);
    if x < -1.0 { return nan(); }
    if u == 1.0 || is_infinite(u) { return x; }
    return logarithm(u) * (x / (u - 1.0));
}

// e^x - 1
fn exponential_minus_1(x: f32) -> f32 {
    if is_nan(x) || x == 0.0 { return x; }
    if abs(x) > 0.35 { return exponential(x) - 1.0; }
    return exponential_tail(x) * x * x + x;
}

fn hyperbolic_sine(x: f32) -> f32 {
    let a = abs(x);
    if a < 1.0 {
        let z = x * x;
        return ((2.03721912945e-4 * z + 8.33028376239e-3) * z + 1.66667160211e-1) * z * x + x;
    }
    let w = exponential(0.5 * a);
    let y = (0.5 * w) * w;
    return copy_sign(y - 0.25 / y, x);
}

fn hyperbolic_cosine(x: f32) -> f32 {
    let w = exponential(0.5 * abs(x));
    let y = (0.5 * w) * w;
    return y + 0.25 / y;
}

fn hyperbolic_tangent(x: f32) -> f32 {
    let a = abs(x);
    if x == 0.0 { return x; }
    if a < 0.625 {
        let z = x * x;
        var q = -5.70498872745e-3;
        q = q * z + 2.06390887954e-2;
        q = q * z - 5.37397155531e-2;
        q = q * z + 1.33314422036e-1;
        q = q * z - 3.33332819422e-1;
        return q * z * x + x;
    }
    if is_nan(x) { return x; }
    return copy_sign(1.0 - 2.0 / (exponential(2.0 * a) + 1.0), x);
}

fn inverse_hyperbolic_sine(x: f32) -> f32 {
    let a = abs(x);
    if a > 1e18 { return copy_sign(logarithm(a) + LN_2, x); }
    return copy_sign(logarithm_of_1_plus(a + a * a / (1.0 + sqrt(a * a + 1.0))), x);
}

fn inverse_hyperbolic_cosine(x: f32) -> f32 {
    if x < 1.0 { return nan(); }
    if x > 1e18 { return logarithm(x) + LN_2; }
    let d = x - 1.0;
    return logarithm_of_1_plus(d + sqrt(d * (d + 2.0)));
}

fn inverse_hyperbolic_tangent(x: f32) -> f32 {
    let a = abs(x);
    if a > 1.0 { return nan(); }
    if a == 1.0 { return copy_sign(infinity(), x); }
    return copy_sign(0.5 * logarithm_of_1_plus(2.0 * a / (1.0 - a)), x);
}

// The upper half of the product of two words.
fn upper_product(a: u32, b: u32) -> u32 {
    let low = (a & 0xffffu) * (b & 0xffffu);
    let middle = (a >> 16u) * (b & 0xffffu) + (low >> 16u);
    let other = (a & 0xffffu) * (b >> 16u) + (middle & 0xffffu);
    return (a >> 16u) * (b >> 16u) + (middle >> 16u) + (other >> 16u);
}

// The bits of 2/π, after one word for the integer part.
const TWO_OVER_PI = array<u32, 8>(
    0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu);

// x = quarter · π/2 + angle, |angle| <= π/4.
struct Turn { quarter: u32, angle: f32 }

fn turn(x: f32) -> Turn {
    let a = abs(x);
    if a < 8000.0 {
        let n = round(x * 0.63661977);
        let angle = ((x - n * 1.5703125) - n * 4.837512969970703e-4) - n * 7.549789954891882e-8;
        return Turn(u32(i32(n)) & 3u, angle);
    }
    // Payne and Hanek (1983): a = mantissa · 2^e with a 24-bit mantissa. Bits of 2/π above 2^-(e - 2) contribute whole
    // turns, so the next 96 bits suffice, and only the last 96 bits of their product with the mantissa matter.
    let mantissa = (bitcast<u32>(a) & 0x007fffffu) | 0x00800000u;
    let start = (bitcast<u32>(a) >> 23u) - 150u + 30u;
    var bits = TWO_OVER_PI;
    var digits = array<u32, 3>();
    for (var i = 0u; i < 3u; i++) {
        let word = start / 32u + i;
        digits[i] = bits[word] << (start % 32u);
        if start % 32u > 0u { digits[i] |= bits[word + 1u] >> (32u - start % 32u); }
    }
    let middle = mantissa * digits[1] + upper_product(mantissa, digits[2]);
    let carry = select(0u, 1u, middle < mantissa * digits[1]);
    let high = mantissa * digits[0] + upper_product(mantissa, digits[1]) + carry;
    return turn_of_product(high, middle, x);
}

// The turn of `top` and `next`, a number of quarters with the binary point after the first two bits.
fn turn_of_product(top: u32, next: u32, x: f32) -> Turn {
    var quarter = top >> 30u;
    var high = (top << 2u) | (next >> 30u);
    var low = next << 2u;
    // A fraction of one half or more becomes a negative angle of the next quarter.
    let is_above = (high >> 31u) == 1u;
    if is_above {
        quarter += 1u;
        low = ~low + 1u;
        high = ~high + select(0u, 1u, low == 0u);
    }
    let fraction = f32(high) * 2.3283064365386963e-10 + f32(low) * 5.421010862427522e-20;
    var angle = fraction * 1.5707964;
    if is_above { angle = -angle; }
    if x < 0.0 { return Turn((0u - quarter) & 3u, -angle); }
    return Turn(quarter & 3u, angle);
}

fn sine_of_angle(x: f32) -> f32 {
    let z = x * x;
    return ((-1.9515295891e-4 * z + 8.3321608736e-3) * z - 1.6666654611e-1) * z * x + x;
}

fn cosine_of_angle(x: f32) -> f32 {
    let z = x * x;
    let q = (2.443315711809948e-5 * z - 1.388731625493765e-3) * z + 4.166664568298827e-2;
    return q * z * z - 0.5 * z + 1.0;
}

// The sine of x plus `more` quarter turns.
fn sine_after(x: f32, more: u32) -> f32 {
    if is_nan(x) || is_infinite(x) { return nan(); }
    let t = turn(x);
    let quarter = (t.quarter + more) & 3u;
    var y = sine_of_angle(t.angle);
    if (quarter & 1u) == 1u { y = cosine_of_angle(t.angle); }
    return select(y, -y, quarter >= 2u);
}

fn sine(x: f32) -> f32 { return select(sine_after(x, 0u), x, x == 0.0); }
fn cosine(x: f32) -> f32 { return sine_after(x, 1u); }
fn tangent(x: f32) -> f32 { return select(sine(x) / cosine(x), x, x == 0.0); }

fn inverse_sine(x: f32) -> f32 {
    let a = abs(x);
    if a > 1.0 || is_nan(x) { return nan(); }
    let is_large = a > 0.5;
    let z = select(x * x, 0.5 * (1.0 - a), is_large);
    let root = select(a, sqrt(z), is_large);
    var q = 4.2163199048e-2;
    q = q * z + 2.4181311049e-2;
    q = q * z + 4.5470025998e-2;
    q = q * z + 7.4953002686e-2;
    q = q * z + 1.6666752422e-1;
    let y = q * z * root + root;
    return copy_sign(select(y, 1.5707964 - (y + y), is_large), x);
}

fn inverse_cosine(x: f32) -> f32 {
    if x < -0.5 { return 3.1415927 - 2.0 * inverse_sine(sqrt(0.5 * (1.0 + x))); }
    if x > 0.5 { return 2.0 * inverse_sine(sqrt(0.5 * (1.0 - x))); }
    return 1.5707964 - (inverse_sine(x) + 4.371139e-8);
}

fn inverse_tangent(x: f32) -> f32 {
    let a = abs(x);
    var start = 0.0;
    var t = a;
    if a > 2.414213562373095 {
        start = 1.5707964;
        t = -1.0 / a;
    } else if a > 0.4142135623730950 {
        start = 0.7853982;
        t = (a - 1.0) / (a + 1.0);
    }
    let z = t * t;
    var q = 8.05374449538e-2;
    q = q * z - 1.38776856032e-1;
    q = q * z + 1.99777106478e-1;
    q = q * z - 3.33329491539e-1;
    let y = q * z * t + t;
    if is_nan(x) { return x; }
    return copy_sign(start + y, x);
}

// The angle of the point (x, y).
fn angle_of(y: f32, x: f32) -> f32 {
    if is_nan(x) || is_nan(y) { return nan(); }
    let small = min(abs(x), abs(y));
    let large = max(abs(x), abs(y));
    var angle = 0.0;
    if is_infinite(small) {
        angle = 0.7853982;
    } else if large > 0.0 {
        angle = inverse_tangent(small / large);
    }
    if abs(y) > abs(x) { angle = 1.5707964 - (angle + 4.371139e-8); }
    if is_negative(x) { angle = 3.1415927 - (angle + 8.742278e-8); }
    return copy_sign(angle, y);
}

fn cube_root(x: f32) -> f32 {
    let a = abs(x);
    if a == 0.0 || is_infinite(x) || is_nan(x) { return x; }
    // Scale subnormal numbers by 2^24, which scales the root by 2^8, and large numbers by 2^-24.
    let factor = select(select(1.0, 5.9604645e-8, a > 1e30), 16777216.0, a < 1.1754944e-38);
    let root = select(select(1.0, 256.0, a > 1e30), 0.00390625, a < 1.1754944e-38);
    let b = a * factor;
    var y = bitcast<f32>(bitcast<u32>(b) / 3u + 0x2a514067u);
    for (var i = 0; i < 3; i++) {
        // Halley's iteration
        let cube = y * y * y;
        y -= y * ((cube - b) / (2.0 * cube + b));
    }
    return copy_sign(y * root, x);
}

fn length_of(a: f32, b: f32) -> f32 {
    if is_infinite(a) || is_infinite(b) { return infinity(); }
    if is_nan(a) || is_nan(b) { return nan(); }
    let larger = max(abs(a), abs(b));
    if larger == 0.0 { return 0.0; }
    let ratio = min(abs(a), abs(b)) / larger;
    return larger * sqrt(1.0 + ratio * ratio);
}

// The exact remainder of truncated division, by long division of the mantissas.
fn remainder(a: f32, b: f32) -> f32 {
    if is_nan(a) || is_nan(b) || is_infinite(a) { return nan(); }
    let x = bitcast<u32>(a) & 0x7fffffffu;
    let y = bitcast<u32>(b) & 0x7fffffffu;
    if y == 0u { return nan(); }
    if is_infinite(b) || x < y { return a; }
    // Exponents of at least 1, and integer mantissas, which are below 2^23 only for subnormal numbers.
    let n = max(x >> 23u, 1u);
    let m = max(y >> 23u, 1u);
    var rest = (x & 0x7fffffu) | select(0u, 0x800000u, x >= 0x800000u);
    let divisor = (y & 0x7fffffu) | select(0u, 0x800000u, y >= 0x800000u);
    for (var i = m; i < n; i++) {
        rest = (rest % divisor) << 1u;
    }
    rest %= divisor;
    // Convert back, to a number with exponent m or below.
    var exponent = m;
    if rest != 0u {
        let shift = min(countLeadingZeros(rest) - 8u, exponent - 1u);
        rest <<= shift;
        exponent -= shift;
    }
    if rest < 0x800000u { exponent = 0u; }
    return bitcast<f32>((bitcast<u32>(a) & 0x80000000u) | (exponent << 23u) | (rest & 0x7fffffu));
}

// The remainder of the quotient rounded down.
fn floored_remainder(a: f32, b: f32) -> f32 {
    let rest = remainder(a, b);
    return select(rest, rest + b, rest != 0.0 && (rest < 0.0) != (b < 0.0));
}

// The quotient rounded down, computed from the exact remainder.
fn floored_quotient(a: f32, b: f32) -> f32 {
    if b == 0.0 || is_nan(a) || is_nan(b) { return a / b; }
    if is_infinite(a) { return nan(); }
    let rest = remainder(a, b);
    let truncated = select(round((a - rest) / b), 0.0, is_infinite(b));
    let is_above = rest != 0.0 && (rest < 0.0) != (b < 0.0);
    let whole = select(truncated, truncated - 1.0, is_above);
    let zero = bitcast<f32>((bitcast<u32>(a) ^ bitcast<u32>(b)) & 0x80000000u);
    return select(whole, zero, whole == 0.0);
}

fn logistic(x: f32) -> f32 {
    let e = exponential(-abs(x));
    return select(1.0, e, x < 0.0) / (1.0 + e);
}

// x σ(v), for x and v of the same sign; -0, the limit, if σ(v) is 0.
fn gate(x: f32, v: f32) -> f32 {
    let s = logistic(v);
    return select(x * s, -0.0, s == 0.0);
}

// The derivative of `gate` by x, for v a function of x with the slope `v_slope`.
fn gate_slope(x: f32, v: f32, v_slope: f32) -> f32 {
    let s = logistic(v);
    if abs(v) > 90.0 { return copy_sign(s, v); }
    return s * (1.0 + x * logistic(-v) * v_slope);
}

// ln(1 + e^x)
fn soft_plus(x: f32) -> f32 {
    return select(x, 0.0, x < 0.0) + logarithm_of_1_plus(exponential(-abs(x)));
}

// Numerator and denominator of tanh(softplus(x)), and e^-|x|.
fn mish_ratio(x: f32) -> vec3<f32> {
    let e = exponential(-abs(x));
    if x < 0.0 { return vec3(e * (2.0 + e), e * (2.0 + e) + 2.0, e); }
    return vec3(1.0 + 2.0 * e, 1.0 + 2.0 * e + 2.0 * e * e, e);
}

fn mish(x: f32) -> f32 {
    let r = mish_ratio(x);
    return select(x * (r.x / r.y), -0.0, r.x == 0.0);
}

fn mish_slope(x: f32) -> f32 {
    let r = mish_ratio(x);
    if abs(x) > 90.0 { return r.x / r.y; }
    let bend = 4.0 * r.z * (1.0 + r.z) * select(r.z, 1.0, x < 0.0);
    return r.x / r.y + x * bend / (r.y * r.y);
}

// Twice the argument u of the tanh in the approximation of gelu, 2 √(2/π) (x + 0.044715 x³), as a sum.
fn gelu_argument(x: f32) -> vec2<f32> {
    let cubic = product_of(exact_product(x, x), vec2(0.044715, 1.5461445e-9));
    let inner = sum_of(vec2(1.0, 0.0), cubic);
    return product_of(product_of(vec2(x, 0.0), inner), vec2(1.5957692, -4.534068e-8));
}

// The derivative of `gelu_argument`.
fn gelu_argument_slope(x: f32) -> f32 { return 1.5957691216057308 * (1.0 + 0.134145 * x * x); }

// `gate` for a sum v.
fn gate_of_sum(x: f32, v: vec2<f32>) -> f32 {
    if is_nan(v.x) { return v.x; }
    let rest = select(v.y, 0.0, abs(v.x) > 100.0);
    let e = exponential_of_sum(-abs(v.x), select(rest, -rest, v.x > 0.0));
    let s = select(1.0, e, v.x < 0.0) / (1.0 + e);
    return select(x * s, -0.0, s == 0.0);
}

// s e^(-factor a²). Splits a into a part with an exact square and a rest, to avoid the rounding error of a².
fn bell_times(a: f32, factor: f32, s: vec2<f32>) -> f32 {
    if is_nan(a) { return a; }
    let b = min(abs(a), 20.0);
    let high = bitcast<f32>(bitcast<u32>(b) & 0xfffff000u);
    let rest = (high - b) * (high + b) * factor;
    if b < 4.0 { return exponential_times(-high * high * factor, rest, s); }
    return exponential(-high * high * factor) * exponential_times(rest, 0.0, s);
}

// (s + t) / x for |s| < t.
fn quotient_of_sum(s: f32, t: f32, x: f32) -> vec2<f32> {
    let sum = opaque(s + t);
    return quotient_of(vec2(sum, s - opaque(sum - t)), x);
}

// e^(x²) erfc(x) for x >= 1, as a sum. From 20 on it is constant, because e^(-x²) is 0 there.
fn scaled_error_complement(a: f32) -> vec2<f32> {
    let x = min(a, 20.0);
    let q = 1.0 / x;
    if x < 2.0 {
        // The series of x e^(x²) erfc(x) at 1/x = 3/4.
        let t = q - 0.75;
        var s = -1.676185126e-2;
        s = s * t + 3.760462345e-2;
        s = s * t - 5.050938641e-2;
        s = s * t + 4.029721902e-2;
        s = s * t + 1.934821706e-2;
        s = s * t - 1.690810128e-1;
        return quotient_of_sum(s * t + 8.489040e-9, 0.46817958, x);
    }
    let y = q * q;
    var s = -1.047766399936249e1;
    s = s * y + 1.297719955372516e1;
    s = s * y - 7.495518717768503;
    s = s * y + 2.921019019210786;
    s = s * y - 1.015265279202700;
    s = s * y + 4.218463358204948e-1;
    s = s * y - 2.820767439740514e-1;
    return quotient_of_sum(s * y, 0.56418951, x);
}

// erf(x), |x| <= 1.
fn error_function_near_0(x: f32) -> f32 {
    let z = x * x;
    var q = 7.853861353153693e-5;
    q = q * z - 8.010193625184903e-4;
    q = q * z + 5.188327685732524e-3;
    q = q * z - 2.685381193529856e-2;
    q = q * z + 1.128358514861418e-1;
    q = q * z - 3.761262582423300e-1;
    return x * (q * z + 1.128379165726710);
}

// 1 - erf(x), 1/2 <= x <= 1, by its series at 3/4. The first term is a sum of two floats.
fn error_complement_near_1(x: f32) -> f32 {
    let t = x - 0.75;
    var q = -1.794584556e-2;
    q = q * t + 2.658287065e-2;
    q = q * t + 5.322369224e-2;
    q = q * t - 1.506756327e-1;
    q = q * t - 2.678855698e-2;
    q = q * t + 4.821981601e-1;
    q = q * t - 6.429310697e-1;
    return 0.28884438 + (q * t - 1.01789266e-8);
}

fn error_complement(x: f32) -> f32 {
    if is_nan(x) { return x; }
    let a = abs(x);
    if x >= 0.5 && x <= 1.0 { return error_complement_near_1(x); }
    if a < 1.0 { return 1.0 - error_function_near_0(x); }
    let y = bell_times(a, 1.0, scaled_error_complement(a));
    return select(y, 2.0 - y, x < 0.0);
}

fn error_function(x: f32) -> f32 {
    if abs(x) < 1.0 || is_nan(x) { return error_function_near_0(x); }
    return copy_sign(1.0 - error_complement(abs(x)), x);
}

fn error_slope(x: f32) -> f32 { return bell_times(x, 1.0, vec2(1.1283792, -5.863538e-8)); }

// The upper tail 1 - Φ(a) of the normal distribution, a >= 0.
fn normal_tail(a: f32) -> f32 {
    let x = opaque(a * 0.70710677);
    if x < 0.5 { return 0.5 * (1.0 - error_function_near_0(x)); }
    if x < 1.0 {
        // Correct for the rounding of a/√2, by the slope of erf.
        let rest = exact_product(a, 0.70710677).y + a * 1.2101617e-8;
        return 0.5 * (error_complement_near_1(x) - 1.1283792 * exponential(-x * x) * rest);
    }
    return bell_times(a, 0.5, 0.5 * scaled_error_complement(x));
}

fn gelu(x: f32) -> f32 {
    if is_nan(x) { return x; }
    let tail = normal_tail(abs(x));
    if tail == 0.0 { return select(x, -0.0, x < 0.0); }
    return x * select(1.0 - tail, tail, x < 0.0);
}

fn gelu_slope(x: f32) -> f32 {
    if is_nan(x) { return x; }
    let a = abs(x);
    let below = select(normal_tail(a) - a * bell_times(a, 0.5, vec2(0.3989423, -1.133517e-8)), 0.0, a > 20.0);
    return select(1.0 - below, below, x < 0.0);
}

// The exact product of two numbers, as a sum (Dekker 1971).
fn exact_product(a: f32, b: f32) -> vec2<f32> {
    let a_high = bitcast<f32>(bitcast<u32>(a) & 0xfffff000u);
    let b_high = bitcast<f32>(bitcast<u32>(b) & 0xfffff000u);
    let a_low = a - a_high;
    let b_low = b - b_high;
    let y = opaque(a * b);
    return vec2(y, a_low * b_low - (((y - a_high * b_high) - a_low * b_high) - a_high * b_low));
}

// ln a of a positive, finite a, as a sum: with s = (m - 1) / (m + 1) for the mantissa m, ln m = 2 s + 2/3 s³ + …
fn exact_logarithm(a: f32) -> vec2<f32> {
    let m = parts(a);
    let above = m.mantissa - 1.0;
    let below = opaque(m.mantissa + 1.0);
    let s = above / below;
    let product = exact_product(s, below);
    let lost = m.mantissa - (below - 1.0);
    let s_rest = ((above - product.x) - product.y - s * lost) / below;
    let z = s * s;
    let tail = s * z * (((0.2222222 * z + 0.28571429) * z + 0.4) * z + 0.66666667);
    let h = opaque(2.0 * s + tail);
    let h_rest = (2.0 * s - h) + tail + 2.0 * s_rest;
    let whole = m.n * 0.693359375;
    let sum = opaque(whole + h);
    let part = opaque(sum - whole);
    let sum_rest = (whole - (sum - part)) + (h - part);
    return vec2(sum, sum_rest + (h_rest - m.n * 2.12194440e-4));
}

// a^b with the special cases of C's pow.
fn power(a: f32, b: f32) -> f32 {
    if b == 0.0 || a == 1.0 { return 1.0; }
    if is_nan(a) || is_nan(b) { return nan(); }
    let m = abs(a);
    if is_infinite(b) {
        if m == 1.0 { return 1.0; }
        return select(0.0, infinity(), (m > 1.0) == (b > 0.0));
    }
    let is_integer = b == trunc(b);
    let is_odd = is_integer && abs(b) < 16777216.0 && (i32(b) & 1) == 1;
    var y = 0.0;
    if m == 0.0 || is_infinite(m) {
        y = select(0.0, infinity(), (m == 0.0) == (b < 0.0));
    } else {
        if a < 0.0 && !is_integer { return nan(); }
        let log = exact_logarithm(m);
        y = b * log.x;
        if abs(y) > 200.0 {
            y = exponential(y);
        } else {
            let product = exact_product(b, log.x);
            y = exponential_of_sum(product.x, product.y + b * log.y);
        }
    }
    return select(y, -y, is_negative(a) && is_odd);
}
