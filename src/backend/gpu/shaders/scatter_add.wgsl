@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) thread: vec3<u32>) {
    let line = thread.x + thread.y * p.across;
    if line >= p.count { return; }
    var at = vec3(0u, p.from_index, p.from_source);
    var rest = line;
    for (var k = 0u; k < p.rank; k++) {
        let axis = 4u * k;
        at += (rest % p.axes[axis]) * vec3(p.axes[axis + 1u], p.axes[axis + 2u], p.axes[axis + 3u]);
        rest /= p.axes[axis];
    }
    for (var j = p.first; j < p.end; j++) {
        let entry = index(at.y + j * p.step_index);
        if entry < p.extent {
            let to = at.x + entry * p.step_y;
            y_data[to] = y_data[to] + a(at.z + j * p.step_source);
        } else {
            let within = p.within;
            fault((line / within * p.entries + j) * within + line % within);
        }
    }
}
