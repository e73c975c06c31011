// a: x, b: weight, c: bias. Writes y and, for each row, the mean and 1 / deviation, or 1 / rms.
fn row(i: u32, thread: u32) {
    let n = p.n;
    let start = i * n;
    var mean = vec2(0.0);
    if CENTERED {
        for (var j = thread; j < n; j += 256u) { mean = sum_of(mean, vec2(a(start + j), 0.0)); }
        mean = quotient_of(total_pair(mean, thread), f32(n));
    }
    var squares = vec2(0.0);
    for (var j = thread; j < n; j += 256u) {
        let d = sum_of(vec2(a(start + j), 0.0), -mean);
        squares = sum_of(squares, product_of(d, d));
    }
    let variance = quotient_of(total_pair(squares, thread), f32(n));
    let reciprocal = 1.0 / sqrt(variance.x + p.epsilon);
    if thread == 0u {
        if CENTERED { write_mean(i, mean.x); }
        write_reciprocal(i, reciprocal);
    }
    for (var j = thread; j < n; j += 256u) {
        var z = sum_of(vec2(a(start + j), 0.0), -mean).x * reciprocal;
        if p.has_weight != 0u { z *= b(j); }
        if p.has_bias != 0u { z += c(j); }
        write_y(start + j, z);
    }
}
