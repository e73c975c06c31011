// a: the upstream gradient g, b: x, c: weight, d: 1 / deviation or 1 / rms. Writes the normalized x, z, and the
// gradient of x: (h - mean(h) - z mean(h z)) / deviation, with h = g weight.
fn row(i: u32, thread: u32) {
    let n = p.n;
    let start = i * n;
    let reciprocal = d(i);
    var mean = vec2(0.0);
    if CENTERED {
        for (var j = thread; j < n; j += 256u) { mean = sum_of(mean, vec2(b(start + j), 0.0)); }
        mean = quotient_of(total_pair(mean, thread), f32(n));
    }
    var sum = vec2(0.0);
    var product = vec2(0.0);
    for (var j = thread; j < n; j += 256u) {
        var h = a(start + j);
        if p.has_weight != 0u { h *= c(j); }
        let z = sum_of(vec2(b(start + j), 0.0), -mean).x * reciprocal;
        write_z(start + j, z);
        sum = sum_of(sum, vec2(h, 0.0));
        product = sum_of(product, product_of(vec2(h, 0.0), vec2(z, 0.0)));
    }
    if CENTERED { sum = quotient_of(total_pair(sum, thread), f32(n)); } else { sum = vec2(0.0); }
    product = quotient_of(total_pair(product, thread), f32(n));
    for (var j = thread; j < n; j += 256u) {
        var h = a(start + j);
        if p.has_weight != 0u { h *= c(j); }
        let z = sum_of(vec2(b(start + j), 0.0), -mean).x * reciprocal;
        write_y(start + j, (h - sum.x - z * product.x) * reciprocal);
    }
}
