// a: the upstream gradient, b: y.
fn row(i: u32, thread: u32) {
    let start = i * p.n;
    var sum = vec2(0.0);
    for (var j = thread; j < p.n; j += 256u) {
        let g = vec2(a(start + j), 0.0);
        if LOG {
            sum = sum_of(sum, g);
        } else {
            sum = sum_of(sum, product_of(g, vec2(b(start + j), 0.0)));
        }
    }
    sum = total_pair(sum, thread);
    for (var j = thread; j < p.n; j += 256u) {
        let g = a(start + j);
        let y = b(start + j);
        write_y(start + j, select(y * ((g - sum.x) - sum.y), g - exponential(y) * sum.x, LOG));
    }
}
