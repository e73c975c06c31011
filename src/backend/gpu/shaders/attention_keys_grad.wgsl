// Computes the gradients of one key and its value: the sums over queries of q times the gradient of the score, and of g
// times the weight. `attention_queries_grad.wgsl` has the formula.
fn row(r: u32, thread: u32) {
    let depth = p.words[8];
    let width = p.words[11];
    let queries = p.words[2];
    let batch = r / p.words[3];
    let j = r % p.words[3];
    let rows = (p.words[0] / p.words[3]) * queries;
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
            slope = weight * (upstream * factor - statistic(2u * rows + query)) * bitcast<f32>(p.words[12]);
            weight *= factor;
        }
        weights[0][thread] = slope;
        weights[1][thread] = weight;
        workgroupBarrier();
        let count = min(queries - first, 256u);
        for (var e = 0u; e < 4u; e++) {
            let threads = p.words[19];
            let at = thread % threads + e * threads;
            if at >= depth { break; }
            for (var k = thread / threads; k < count; k += 256u / threads) {
                key_sums[e] += weights[0][k] * a((batch * queries + first + k) * depth + at);
            }
        }
        for (var e = 0u; e < 4u; e++) {
            let threads = p.words[18];
            let at = thread % threads + e * threads;
            if at >= width { break; }
            for (var k = thread / threads; k < count; k += 256u / threads) {
                value_sums[e] += weights[1][k] * g((batch * queries + first + k) * width + at);
            }
        }
    }
    for (var e = 0u; e < 4u; e++) {
        let of_key = sum_of_parts(key_sums[e], thread, p.words[19]);
        let of_value = sum_of_parts(value_sums[e], thread, p.words[18]);
        let key_at = thread + e * p.words[19];
        let value_at = thread + e * p.words[18];
        if thread < p.words[19] && key_at < depth { write_y(r * depth + key_at, of_key); }
        if thread < p.words[18] && value_at < width { write_z(r * width + value_at, of_value); }
    }
}
