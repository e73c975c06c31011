// Computes one query: the running maximum m of its scores, the sum of the weights and the weighted sum of the values,
// both relative to m (Milakov and Gimelshein 2018).
fn row(r: u32, thread: u32) {
    let depth = p.depth;
    let width = p.width;
    let batch = r / p.queries;
    let i = r % p.queries;
    let seen = keys_seen(i);
    let threads = p.width_threads;
    let column = thread % threads;
    for (var k = thread; k < depth; k += 256u) { first_row[k] = a(r * depth + k); }
    var m = -infinity();
    var sum = vec2(0.0);
    var sums: array<f32, 4>;
    for (var first = 0u; first < seen; first += 256u) {
        workgroupBarrier();
        let j = first + thread;
        var x = -infinity();
        if j < seen {
            let start = (batch * p.keys + j) * depth;
            var product = 0.0;
            for (var k = 0u; k < depth; k++) { product += first_row[k] * b(start + k); }
            x = score(product, batch, i, j);
        }
        let larger = best(x, 0.0, thread).x;
        let new_m = select(larger, m, is_nan(m) || (m >= larger && !is_nan(larger)));
        let factor = weight_of(m, new_m);
        m = new_m;
        let weight = weight_of(x, m);
        weights[0][thread] = weight * kept(batch, i, j);
        sum = sum_of(product_of(sum, vec2(factor, 0.0)), total_pair(vec2(weight, 0.0), thread));
        let count = min(seen - first, 256u);
        for (var e = 0u; e < 4u; e++) {
            let at = column + e * threads;
            if at >= width { break; }
            var total = sums[e] * factor;
            for (var k = thread / threads; k < count; k += 256u / threads) {
                total += weights[0][k] * c((batch * p.keys + first + k) * width + at);
            }
            sums[e] = total;
        }
    }
    let is_unseen = m == -infinity();
    for (var e = 0u; e < 4u; e++) {
        let total = sum_of_parts(sums[e], thread, threads);
        let at = column + e * threads;
        if thread < threads && at < width { write_y(r * width + at, select(total / sum.x, 0.0, is_unseen)); }
    }
    if thread == 0u {
        write_largest(r, m);
        write_inverse(r, select(1.0 / sum.x, 0.0, is_unseen));
    }
}
