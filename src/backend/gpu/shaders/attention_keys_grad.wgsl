// Computes the gradients of one key and its value: the sums over queries of q times the gradient of the score, and of g
// times the weight. `attention_queries_grad.wgsl` has the formula.
fn row(r: u32, thread: u32) {
    let depth = p.depth;
    let width = p.width;
    let queries = p.queries;
    let batch = r / p.keys;
    let j = r % p.keys;
    let rows = (p.count / p.keys) * queries;
    let start = first_to_see(j);
    for (var k = thread; k < depth; k += 256u) { first_row[k] = b(r * depth + k); }
    for (var k = thread; k < width; k += 256u) { second_row[k] = c(r * width + k); }
    var key_sums: array<f32, 4>;
    var value_sums: array<f32, 4>;
    for (var first = start; first < queries; first += 256u) {
        workgroupBarrier();
        let i = first + thread;
        var slope = 0.0;
        var weight = 0.0;
        if i < queries {
            let query = batch * queries + i;
            var product = 0.0;
            for (var k = 0u; k < depth; k++) { product += first_row[k] * a(query * depth + k); }
            var upstream = 0.0;
            for (var k = 0u; k < width; k++) { upstream += second_row[k] * g(query * width + k); }
            weight = weight_of(score(product, batch, i, j), statistic(query)) * statistic(rows + query);
            let factor = kept(batch, i, j);
            slope = weight * (upstream * factor - statistic(2u * rows + query)) * p.scale;
            weight *= factor;
        }
        weights[0][thread] = slope;
        weights[1][thread] = weight;
        workgroupBarrier();
        let count = min(queries - first, 256u);
        for (var e = 0u; e < 4u; e++) {
            let threads = p.depth_threads;
            let at = thread % threads + e * threads;
            if at >= depth { break; }
            for (var k = thread / threads; k < count; k += 256u / threads) {
                key_sums[e] += weights[0][k] * a((batch * queries + first + k) * depth + at);
            }
        }
        for (var e = 0u; e < 4u; e++) {
            let threads = p.width_threads;
            let at = thread % threads + e * threads;
            if at >= width { break; }
            for (var k = thread / threads; k < count; k += 256u / threads) {
                value_sums[e] += weights[1][k] * g((batch * queries + first + k) * width + at);
            }
        }
    }
    for (var e = 0u; e < 4u; e++) {
        let of_key = sum_of_parts(key_sums[e], thread, p.depth_threads);
        let of_value = sum_of_parts(value_sums[e], thread, p.width_threads);
        let key_at = thread + e * p.depth_threads;
        let value_at = thread + e * p.width_threads;
        if thread < p.depth_threads && key_at < depth { write_y(r * depth + key_at, of_key); }
        if thread < p.width_threads && value_at < width { write_z(r * width + value_at, of_value); }
    }
}
