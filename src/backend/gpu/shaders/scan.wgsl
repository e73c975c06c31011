// Scans a part of a line, by a thread or by a workgroup of 256. In a workgroup, each thread totals a run of elements,
// thread 0 then computes the total before each run, and each thread scans its run from there. `before` is the total of
// the line's earlier parts.
var<workgroup> totals: array<Total, 256>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) number: u32,
) {
    var i = group.x + group.y * p.across;
    var thread = number;
    if THREADS == 1u {
        i = i * 256u + number;
        thread = 0u;
    }
    let is_part = i < p.count;
    let parts = (p.entries + p.part - 1u) / p.part;
    let line = i / parts;
    let begin = (i % parts) * p.part;
    let n = min(p.part, p.entries - begin);
    var at = vec2(p.from_x, 0u);
    var rest = line;
    for (var k = 0u; k < p.rank; k++) {
        let axis = 3u * k;
        at += (rest % p.axes[axis]) * vec2(p.axes[axis + 1u], p.axes[axis + 2u]);
        rest /= p.axes[axis];
    }
    let size = (n + THREADS - 1u) / THREADS;
    let first = begin + min(thread * size, n);
    let end = select(first, begin + min((thread + 1u) * size, n), is_part);
    var s = before(i - i % parts, select(0u, i % parts, is_part), thread);
    if THREADS > 1u {
        let all = s;
        s = start();
        for (var j = first; j < end; j++) { s = add(s, a(at.x + j * p.step_x)); }
        totals[thread] = s;
        workgroupBarrier();
        if thread == 0u {
            var before = all;
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
        s = add(s, a(at.x + j * p.step_x));
        write_y(at.y + j * p.step_y, finish(s));
    }
}
