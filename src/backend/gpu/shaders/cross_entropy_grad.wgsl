// a: the upstream gradient of each row, b: logits, c: the largest logit of each row, d: Σ e^(x - largest) - 1.
fn row(i: u32, thread: u32) {
    let n = p.n;
    let start = i * n;
    let class_ = target_of(i);
    let is_ignored = ignored(i);
    let epsilon = p.epsilon;
    for (var j = thread; j < n; j += 256u) {
        var y = exponential(b(start + j) - c(i)) / (1.0 + d(i)) - epsilon / f32(n);
        if j == class_ { y -= 1.0 - epsilon; }
        write_y(start + j, select(a(i) * y, 0.0, is_ignored));
    }
}
