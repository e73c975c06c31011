// Scans a part of a line, by a thread or by a workgroup of 256. In a workgroup, each thread totals a run of elements,
// thread 0 then computes the total before each run, and each thread scans its run from there. `before` is the total of
// the line's earlier parts.
var<workgroup> totals: array<Total, 256>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) number: u32,
) {
    var i = group.x + group.y * p.words[1];
    var thread = number;
    if THREADS == 1u {
        i = i * 256u + number;
        thread = 0u;
    }
    let is_part = i < p.words[0];
    let parts = (p.words[3] + p.words[7] - 1u) / p.words[7];
    let line = i / parts;
    let begin = (i % parts) * p.words[7];
    let n = min(p.words[7], p.words[3] - begin);
    var at = vec2(p.words[6], 0u);
    var rest = line;
    for (var k = 0u; k < p.words[2]; k++) {
        let axis = 8u + 3u * k;
        at += (rest % p.words[axis]) * vec2(p.words[axis + 1u], p.words[axis + 2u]);
        rest /= p.words[axis];
    }
    let size = (n + THREADS - 1u) / THREADS;
    let first = begin + min(thread * size, n);
    let end = select(first, begin + min((thread + 1u) * size, n), is_part);
    var s = before(i - i % parts, select(0u, i % parts, is_part), thread);
    if THREADS > 1u {
        let all = s;
        s = start();
        for (var j = first; j < end; j++) { s = add(s, a(at.x + j * p.words[4])); }
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
        s = add(s, a(at.x + j * p.words[4]));
        write_y(at.y + j * p.words[5], finish(s));
    }
}
