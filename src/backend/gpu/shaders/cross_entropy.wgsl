// a: logits, `target_of`: classes. Writes the loss, the largest logit and Σ e^(x - largest) - 1 of each row.
fn row(i: u32, thread: u32) {
    let n = p.n;
    let start = i * n;
    let class_ = target_of(i);
    let is_ignored = ignored(i);
    if !is_ignored && class_ >= n && thread == 0u { fault(i); }
    let m = best_of_row(start, p.n, thread);
    var rest = vec2(0.0);
    var sum = vec2(0.0);
    for (var j = thread; j < n; j += 256u) {
        let x = a(start + j);
        if f32(j) != m.y { rest = sum_of(rest, vec2(exponential(x - m.x), 0.0)); }
        sum = sum_of(sum, vec2(x, 0.0));
    }
    rest = total_pair(rest, thread);
    // An infinite logit minus itself is NaN.
    if is_infinite(m.x) { rest = vec2(nan(), 0.0); }
    sum = quotient_of(total_pair(sum, thread), f32(n));
    if thread != 0u { return; }
    var loss = 0.0;
    if !is_ignored {
        let epsilon = p.epsilon;
        let log = logarithm_pair(sum_of(vec2(1.0, 0.0), rest));
        let x = a(start + min(class_, n - 1u));
        var low = product_of(vec2(1.0 - epsilon, 0.0), vec2(x, 0.0));
        if epsilon != 0.0 { low = sum_of(low, product_of(vec2(epsilon, 0.0), sum)); }
        if epsilon == 0.0 { low = vec2(x, 0.0); }
        if epsilon == 1.0 { low = sum; }
        loss = sum_of(log, sum_of(vec2(m.x, 0.0), -low)).x;
    }
    write_y(i, loss);
    write_largest(i, m.x);
    write_rest(i, rest.x);
}
