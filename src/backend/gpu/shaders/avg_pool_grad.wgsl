// a: the upstream gradient. A pixel gets a part of that of every window that has it.
fn element(i: u32) {
    let pixels = volume(image());
    let pixel = place_of(i % pixels, image());
    let start = (i / pixels) * volume(windows());
    var sum = 0.0;
    for (var k = 0u; k < volume(extents()); k++) {
        let window = window_of(pixel, place_of(k, extents()));
        if is_window(window) { sum += a(start + index_of(window, windows())) / divisor(window); }
    }
    write_y(i, sum);
}
