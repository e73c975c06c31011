// With 256 threads a workgroup computes a line: each thread joins the elements of its part, then thread 0 what comes
// before each part, then each thread goes through its part again. Otherwise a thread computes a line.
var<workgroup> totals: array<Total, 256>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) number: u32,
) {
    let n = p.words[3];
    var line = group.x + group.y * p.words[1];
    var thread = number;
    if THREADS == 1u {
        line = line * 256u + number;
        thread = 0u;
    }
    let is_line = line < p.words[0];
    var at = vec2(p.words[6], 0u);
    var rest = line;
    for (var k = 0u; k < p.words[2]; k++) {
        let axis = 7u + 3u * k;
        at += (rest % p.words[axis]) * vec2(p.words[axis + 1u], p.words[axis + 2u]);
        rest /= p.words[axis];
    }
    let size = (n + THREADS - 1u) / THREADS;
    let first = min(thread * size, n);
    let end = select(first, min(first + size, n), is_line);
    var s = start();
    if THREADS > 1u {
        for (var j = first; j < end; j++) { s = add(s, a(at.x + j * p.words[4])); }
        totals[thread] = s;
        workgroupBarrier();
        if thread == 0u {
            var before = start();
            for (var t = 0u; t < 256u; t++) {
                let part = totals[t];
                totals[t] = before;
                before = join(before, part);
            }
        }
        workgroupBarrier();
        s = totals[thread];
    }
    for (var j = first; j < end; j++) {
        s = add(s, a(at.x + j * p.words[4]));
        write_y(at.y + j * p.words[5], finish(s));
    }
}
