// Functions that the kernels of attention share. plan/attention.rs describes the words.
var<workgroup> first_row: array<f32, 1024>;
var<workgroup> second_row: array<f32, 1024>;
// Two weights for each of a block of 256 rows.
var<workgroup> weights: array<array<f32, 256>, 2>;

// The score of query i and key j with this inner product; -infinity if the query does not see the key.
fn score(product: f32, batch: u32, i: u32, j: u32) -> f32 {
    if p.causal != 0u && j + p.queries > i + p.keys { return -infinity(); }
    let at = p.from_mask + batch * p.mask_batch + i * p.mask_query + j * p.mask_key;
    return masked(product * p.scale, at);
}

// The factor of dropout for a weight.
fn kept(batch: u32, i: u32, j: u32) -> f32 {
    if !DROPS { return 1.0; }
    let number = (batch * p.queries + i) * p.keys + j;
    return select(p.kept_scale, 0.0, random_word(number) < p.dropped_below);
}

// e^(x - m); 0 for a key that is not seen.
fn weight_of(x: f32, m: f32) -> f32 {
    if x == -infinity() || m == -infinity() { return 0.0; }
    return exponential(x - m);
}

// Number of keys that query i may see.
fn keys_seen(i: u32) -> u32 {
    let all = p.keys;
    if p.causal == 0u { return all; }
    let last = i + all + 1u;
    return min(select(last - p.queries, 0u, last < p.queries), all);
}

// The first query that may see key j.
fn first_to_see(j: u32) -> u32 {
    let past = j + p.queries;
    return select(0u, past - min(past, p.keys), p.causal != 0u);
}

// For each thread t < width, the sum of x over the threads t, t + width, t + 2 width, …
fn sum_of_parts(x: f32, thread: u32, width: u32) -> f32 {
    workgroupBarrier();
    weights[0][thread] = x;
    workgroupBarrier();
    var sum = 0.0;
    for (var at = thread; at < 256u; at += width) { sum += weights[0][at]; }
    return sum;
}
