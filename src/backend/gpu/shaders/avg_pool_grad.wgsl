// a: the upstream gradient. Each pixel gets a share of the gradient of every window that contains it.
fn element(i: u32) {
    let pixels = volume(image());
    let pixel = coordinates(i % pixels, image());
    let start = (i / pixels) * volume(windows());
    var sum = 0.0;
    for (var k = 0u; k < volume(extents()); k++) {
        let window = window_of(pixel, coordinates(k, extents()));
        if is_window(window) { sum += a(start + index_of(window, windows())) / divisor(window); }
    }
    write_y(i, sum);
}
