// a: filters, b: images, c: bias. Each group of an image is a product [filters, channels × taps] times
// [channels × taps, windows].
var<private> from_filters: u32;
var<private> from_images: u32;
var<private> first_filter: u32;

fn begin(matrix: u32) {
    first_filter = (matrix % p.groups) * p.outputs;
    from_filters = first_filter * p.depth;
    from_images = matrix * p.inputs * volume(image());
}

fn left(row: u32, k: u32) -> f32 { return a(from_filters + row * p.depth + k); }

fn right(k: u32, column: u32) -> f32 {
    let taps = volume(extents());
    let pixel = pixel_of(coordinates(column, windows()), coordinates(k % taps, extents()));
    if !is_pixel(pixel) { return 0.0; }
    return b(from_images + (k / taps) * volume(image()) + index_of(pixel, image()));
}

fn left_runs_down() -> bool { return false; }
fn right_runs_down() -> bool { return false; }

fn put(matrix: u32, row: u32, column: u32, x: f32) {
    var sum = x;
    if p.has_bias != 0u { sum += c(first_filter + row); }
    write_y((matrix * p.m + row) * p.n + column, activation(sum));
}
