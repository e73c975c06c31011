fn element(i: u32) {
    let count = volume(windows());
    let window = coordinates(i % count, windows());
    let start = (i / count) * volume(image());
    var sum = 0.0;
    for (var k = 0u; k < volume(extents()); k++) {
        let pixel = pixel_of(window, coordinates(k, extents()));
        if is_pixel(pixel) { sum += a(start + index_of(pixel, image())); }
    }
    write_y(i, sum / divisor(window));
}
