// a: the upstream gradient, b: images. A matrix is a group: [filters, images and windows] times [images and windows,
// channels and places].
var<private> group_of_channels: u32;

fn begin(matrix: u32) { group_of_channels = matrix; }

fn left(row: u32, k: u32) -> f32 {
    let count = volume(windows());
    let matrix = (k / count) * p.words[4] + group_of_channels;
    return a((matrix * p.words[6] + row) * count + k % count);
}

fn right(k: u32, column: u32) -> f32 {
    let count = volume(windows());
    let places = volume(extents());
    let pixel = pixel_of(place_of(k % count, windows()), place_of(column % places, extents()));
    if !is_pixel(pixel) { return 0.0; }
    let matrix = (k / count) * p.words[4] + group_of_channels;
    return b((matrix * p.words[5] + column / places) * volume(image()) + index_of(pixel, image()));
}

fn left_runs_down() -> bool { return false; }
fn right_runs_down() -> bool { return true; }

fn put(matrix: u32, row: u32, column: u32, x: f32) {
    write_y((matrix * p.words[0] + row) * p.words[1] + column, x);
}
