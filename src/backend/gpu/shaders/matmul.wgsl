// C = A B. A workgroup computes a tile of TILE x TILE, a thread EACH x EACH of it: rows and columns 16 apart, so that
// neighbouring threads read and write neighbouring elements. The tiles of A and B, 16 deep, lie in workgroup memory.
var<workgroup> tile_a: array<array<f32, TILE>, 16>;
var<workgroup> tile_b: array<array<f32, TILE>, 16>;

@compute @workgroup_size(16, 16)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_id) thread: vec3<u32>,
    @builtin(local_invocation_index) number: u32,
) {
    let m = p.words[0];
    let n = p.words[1];
    let depth = p.words[2];
    let matrix = group.z + p.words[10];
    var from_a = p.words[4];
    var from_b = p.words[5];
    var rest = matrix;
    for (var i = 0u; i < p.words[11]; i++) {
        let axis = 12u + 3u * i;
        let extent = p.words[axis];
        from_a += (rest % extent) * p.words[axis + 1u];
        from_b += (rest % extent) * p.words[axis + 2u];
        rest /= extent;
    }
    let top = group.y * TILE;
    let left = group.x * TILE;
    // Neighbouring threads read along the axis with the smaller step.
    let a_is_transposed = p.words[6] == 1u;
    let b_is_transposed = p.words[8] == 1u && p.words[9] != 1u;
    var sums: array<array<f32, EACH>, EACH>;
    for (var k = 0u; k < depth; k += 16u) {
        for (var i = 0u; i < EACH; i++) {
            let at = number + i * 256u;
            var row = at / 16u;
            var column = at % 16u;
            if a_is_transposed {
                row = at % TILE;
                column = at / TILE;
            }
            var x = 0.0;
            if top + row < m && k + column < depth {
                x = a(from_a + (top + row) * p.words[6] + (k + column) * p.words[7]);
            }
            tile_a[column][row] = x;
            row = at / TILE;
            column = at % TILE;
            if b_is_transposed {
                row = at % 16u;
                column = at / 16u;
            }
            x = 0.0;
            if k + row < depth && left + column < n {
                x = b(from_b + (k + row) * p.words[8] + (left + column) * p.words[9]);
            }
            tile_b[row][column] = x;
        }
        workgroupBarrier();
        for (var i = 0u; i < 16u; i++) {
            for (var y = 0u; y < EACH; y++) {
                let x = tile_a[i][thread.y + 16u * y];
                for (var z = 0u; z < EACH; z++) {
                    sums[y][z] += x * tile_b[i][thread.x + 16u * z];
                }
            }
        }
        workgroupBarrier();
    }
    for (var y = 0u; y < EACH; y++) {
        let row = top + thread.y + 16u * y;
        for (var z = 0u; z < EACH; z++) {
            let column = left + thread.x + 16u * z;
            if row < m && column < n {
                write_y((matrix * m + row) * n + column, sums[y][z]);
            }
        }
    }
}
