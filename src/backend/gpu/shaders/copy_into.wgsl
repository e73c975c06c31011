@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) thread: vec3<u32>) {
    let i = thread.x + thread.y * p.across;
    if i >= p.count { return; }
    var at = vec2(p.from_x, p.from_y);
    var rest = i;
    for (var k = 0u; k < p.rank; k++) {
        let axis = 3u * k;
        at += (rest % p.axes[axis]) * vec2(p.axes[axis + 1u], p.axes[axis + 2u]);
        rest /= p.axes[axis];
    }
    write_y(at.y, a(at.x));
}
