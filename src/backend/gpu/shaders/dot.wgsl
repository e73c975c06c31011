fn row(i: u32, thread: u32) {
    let start = i * p.n;
    var sum = vec2(0.0);
    for (var j = thread; j < p.n; j += 256u) {
        sum = sum_of(sum, product_of(vec2(a(start + j), 0.0), vec2(b(start + j), 0.0)));
    }
    sum = total_pair(sum, thread);
    if thread == 0u { write_y(i, sum.x); }
}
