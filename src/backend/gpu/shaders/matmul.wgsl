// C = A B, with any strides.
var<private> from_a: u32;
var<private> from_b: u32;

fn begin(matrix: u32) {
    from_a = p.words[4];
    from_b = p.words[5];
    var rest = matrix;
    for (var i = 0u; i < p.words[10]; i++) {
        let axis = 11u + 3u * i;
        let extent = p.words[axis];
        from_a += (rest % extent) * p.words[axis + 1u];
        from_b += (rest % extent) * p.words[axis + 2u];
        rest /= extent;
    }
}

fn left(row: u32, k: u32) -> f32 { return a(from_a + row * p.words[6] + k * p.words[7]); }
fn right(k: u32, column: u32) -> f32 { return b(from_b + k * p.words[8] + column * p.words[9]); }
fn left_runs_down() -> bool { return p.words[6] == 1u; }
fn right_runs_down() -> bool { return p.words[8] == 1u && p.words[9] != 1u; }
fn put(matrix: u32, row: u32, column: u32, x: f32) { write_y((matrix * p.words[0] + row) * p.words[1] + column, x); }
