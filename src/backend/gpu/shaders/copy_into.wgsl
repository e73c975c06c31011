@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) thread: vec3<u32>) {
    let i = thread.x + thread.y * p.words[1];
    if i >= p.words[0] { return; }
    var at = vec2(p.words[3], p.words[4]);
    var rest = i;
    for (var k = 0u; k < p.words[2]; k++) {
        let axis = 5u + 3u * k;
        at += (rest % p.words[axis]) * vec2(p.words[axis + 1u], p.words[axis + 2u]);
        rest /= p.words[axis];
    }
    write_y(at.y, a(at.x));
}
