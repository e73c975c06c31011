// C = A B, with any strides.
var<private> from_a: u32;
var<private> from_b: u32;

fn begin(matrix: u32) {
    from_a = p.from_a;
    from_b = p.from_b;
    var rest = matrix;
    for (var i = 0u; i < p.rank; i++) {
        let axis = 3u * i;
        let extent = p.axes[axis];
        from_a += (rest % extent) * p.axes[axis + 1u];
        from_b += (rest % extent) * p.axes[axis + 2u];
        rest /= extent;
    }
}

fn left(row: u32, k: u32) -> f32 { return a(from_a + row * p.row_a + k * p.column_a); }
fn right(k: u32, column: u32) -> f32 { return b(from_b + k * p.row_b + column * p.column_b); }
fn left_runs_down() -> bool { return p.row_a == 1u; }
fn right_runs_down() -> bool { return p.row_b == 1u && p.column_b != 1u; }
fn put(matrix: u32, row: u32, column: u32, x: f32) { write_y((matrix * p.m + row) * p.n + column, x); }
