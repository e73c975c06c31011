fn element(i: u32) {
    let count = volume(windows());
    let window = coordinates(i % count, windows());
    let start = (i / count) * volume(image());
    var largest = 0.0;
    var position = 0xffffffffu;
    for (var k = 0u; k < volume(extents()); k++) {
        let pixel = pixel_of(window, coordinates(k, extents()));
        if !is_pixel(pixel) { continue; }
        let at = index_of(pixel, image());
        let x = a(start + at);
        if position == 0xffffffffu || x > largest || (is_nan(x) && !is_nan(largest)) {
            largest = x;
            position = at;
        }
    }
    write_y(i, largest);
    write_position(i, position);
}
