fn row(i: u32, thread: u32) {
    let start = i * p.n;
    let m = best_of_row(start, p.n, thread).x;
    var sum = vec2(0.0);
    for (var j = thread; j < p.n; j += 256u) {
        sum = sum_of(sum, vec2(exponential(a(start + j) - m), 0.0));
    }
    sum = total_pair(sum, thread);
    let log = logarithm_pair(sum);
    for (var j = thread; j < p.n; j += 256u) {
        let d = a(start + j) - m;
        write_y(start + j, select(exponential(d) / sum.x, (d - log.x) - log.y, LOG));
    }
}
