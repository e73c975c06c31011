// a: the upstream gradient, b: images. Each group is a product [filters, images × windows] times [images × windows,
// channels × taps].
var<private> group_of_channels: u32;

fn begin(matrix: u32) { group_of_channels = matrix; }

fn left(row: u32, k: u32) -> f32 {
    let count = volume(windows());
    let matrix = (k / count) * p.groups + group_of_channels;
    return a((matrix * p.outputs + row) * count + k % count);
}

fn right(k: u32, column: u32) -> f32 {
    let count = volume(windows());
    let taps = volume(extents());
    let pixel = pixel_of(coordinates(k % count, windows()), coordinates(column % taps, extents()));
    if !is_pixel(pixel) { return 0.0; }
    let matrix = (k / count) * p.groups + group_of_channels;
    return b((matrix * p.inputs + column / taps) * volume(image()) + index_of(pixel, image()));
}

fn left_runs_down() -> bool { return false; }
fn right_runs_down() -> bool { return true; }

fn put(matrix: u32, row: u32, column: u32, x: f32) {
    write_y((matrix * p.m + row) * p.n + column, x);
}
