// Computes the gradient of one query. Let w be the weight of a key k with value v, g the upstream gradient and d the
// inner product of g and the result. The gradient of the score is w (g v - d), that of the query Σ w (g v - d) k.
fn row(r: u32, thread: u32) {
    let depth = p.depth;
    let width = p.width;
    let rows = p.count;
    let batch = r / p.queries;
    let i = r % p.queries;
    let seen = keys_seen(i);
    let threads = p.depth_threads;
    let column = thread % threads;
    for (var k = thread; k < depth; k += 256u) { first_row[k] = a(r * depth + k); }
    for (var k = thread; k < width; k += 256u) { second_row[k] = g(r * width + k); }
    let m = statistic(r);
    let inverse = statistic(rows + r);
    let d = statistic(2u * rows + r);
    var sums: array<f32, 4>;
    for (var first = 0u; first < seen; first += 256u) {
        workgroupBarrier();
        let j = first + thread;
        var slope = 0.0;
        if j < seen {
            let key = batch * p.keys + j;
            var product = 0.0;
            for (var k = 0u; k < depth; k++) { product += first_row[k] * b(key * depth + k); }
            var upstream = 0.0;
            for (var k = 0u; k < width; k++) { upstream += second_row[k] * c(key * width + k); }
            let weight = weight_of(score(product, batch, i, j), m) * inverse;
            slope = weight * (upstream * kept(batch, i, j) - d) * p.scale;
        }
        weights[0][thread] = slope;
        workgroupBarrier();
        let count = min(seen - first, 256u);
        for (var e = 0u; e < 4u; e++) {
            let at = column + e * threads;
            if at >= depth { break; }
            for (var k = thread / threads; k < count; k += 256u / threads) {
                sums[e] += weights[0][k] * b((batch * p.keys + first + k) * depth + at);
            }
        }
    }
    for (var e = 0u; e < 4u; e++) {
        let total = sum_of_parts(sums[e], thread, threads);
        let at = column + e * threads;
        if thread < threads && at < depth { write_y(r * depth + at, total); }
    }
}
