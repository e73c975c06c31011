// A tiled product, or one in parts along k, each of which is a matrix of the result. A workgroup computes a tile of
// TILE x TILE. A thread computes EACH x EACH elements, 16 rows and columns apart, so that neighbouring threads access
// neighbouring elements. Workgroup memory holds tiles of both factors, 16 deep. The kernel defines
//   begin(matrix)                   sets up the loads of a matrix
//   left(row, k), right(k, column)  load the factors
//   left_runs_down(), right_runs_down()
//                                   true if the factor is contiguous down its columns rather than along its rows
//   put(matrix, row, column, x)     the epilogue: stores an element
// plan/matmul.rs replaces the names that begin with $: the type of a thread's sums in a row, and these sums by name.
// Without computed indices, they stay in registers.
var<workgroup> tile_a: array<array<f32, TILE>, 16>;
var<workgroup> tile_b: array<array<f32, TILE>, 16>;

@compute @workgroup_size(16, 16)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_id) thread: vec3<u32>,
    @builtin(local_invocation_index) number: u32,
) {
    let m = p.m;
    let n = p.n;
    let depth = p.depth;
    let matrix = group.z + p.first;
    let parts = p.parts;
    begin(matrix / parts);
    // Parts are whole tiles, except the last.
    let size = ((depth + 15u) / 16u + parts - 1u) / parts * 16u;
    let first = (matrix % parts) * size;
    let end = min(first + size, depth);
    let top = group.y * TILE;
    let left_edge = group.x * TILE;
    let a_runs_down = left_runs_down();
    let b_runs_down = right_runs_down();
    $SUMS
    for (var k = first; k < end; k += 16u) {
        for (var i = 0u; i < EACH; i++) {
            let at = number + i * 256u;
            var row = at / 16u;
            var column = at % 16u;
            if a_runs_down {
                row = at % TILE;
                column = at / TILE;
            }
            var x = 0.0;
            if top + row < m && k + column < end { x = left(top + row, k + column); }
            tile_a[column][row] = x;
            row = at / TILE;
            column = at % TILE;
            if b_runs_down {
                row = at % 16u;
                column = at / 16u;
            }
            x = 0.0;
            if k + row < end && left_edge + column < n { x = right(k + row, left_edge + column); }
            tile_b[row][column] = x;
        }
        workgroupBarrier();
        for (var i = 0u; i < 16u; i++) {
            let b = columns(i, thread.x);
            $ADD
        }
        workgroupBarrier();
    }
    var sums = array<$ROW, EACH>($ALL);
    for (var y = 0u; y < EACH; y++) {
        let row = top + thread.y + 16u * y;
        for (var z = 0u; z < EACH; z++) {
            let column = left_edge + thread.x + 16u * z;
            if row < m && column < n { put(matrix, row, column, sums[y]$AT); }
        }
    }
}
