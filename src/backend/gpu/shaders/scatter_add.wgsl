@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) thread: vec3<u32>) {
    let line = thread.x + thread.y * p.words[1];
    if line >= p.words[0] { return; }
    var at = vec3(0u, p.words[8], p.words[9]);
    var rest = line;
    for (var k = 0u; k < p.words[2]; k++) {
        let axis = 12u + 4u * k;
        at += (rest % p.words[axis]) * vec3(p.words[axis + 1u], p.words[axis + 2u], p.words[axis + 3u]);
        rest /= p.words[axis];
    }
    for (var j = p.words[10]; j < p.words[11]; j++) {
        let entry = index(at.y + j * p.words[6]);
        if entry < p.words[4] {
            let to = at.x + entry * p.words[5];
            y_data[to] = y_data[to] + a(at.z + j * p.words[7]);
        } else {
            let within = p.words[30];
            fault((line / within * p.words[3] + j) * within + line % within);
        }
    }
}
