// a: filters, b: the upstream gradient. Each group of an image is a product [channels, filters × taps] times
// [filters × taps, pixels].
var<private> from_filters: u32;
var<private> from_windows: u32;

fn begin(matrix: u32) {
    from_filters = (matrix % p.groups) * p.outputs * p.inputs * volume(extents());
    from_windows = matrix * p.outputs * volume(windows());
}

fn left(row: u32, k: u32) -> f32 {
    let taps = volume(extents());
    return a(from_filters + ((k / taps) * p.inputs + row) * taps + k % taps);
}

fn window_at(k: u32, column: u32) -> vec3<u32> {
    return window_of(coordinates(column, image()), coordinates(k % volume(extents()), extents()));
}

fn right(k: u32, column: u32) -> f32 {
    let window = window_at(k, column);
    if !is_window(window) { return 0.0; }
    return b(from_windows + (k / volume(extents())) * volume(windows()) + index_of(window, windows()));
}

fn left_runs_down() -> bool { return false; }
fn right_runs_down() -> bool { return false; }

fn put(matrix: u32, row: u32, column: u32, x: f32) {
    var sum = x;
    if is_nan(sum) {
        // An infinite filter times the 0 of a missing window is NaN: compute the sum again without missing windows.
        sum = 0.0;
        for (var k = 0u; k < p.depth; k++) {
            if is_window(window_at(k, column)) { sum += left(row, k) * right(k, column); }
        }
    }
    write_y((matrix * p.m + row) * p.n + column, sum);
}
