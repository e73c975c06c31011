// The total of `count` parts, beginning with part `first`.
var<workgroup> before_parts: array<Total, 256>;

fn before(first: u32, count: u32, thread: u32) -> Total {
    var s = start();
    for (var j = thread; j < count; j += 256u) { s = join(s, parts_data[first + j]); }
    before_parts[thread] = s;
    workgroupBarrier();
    for (var half = 128u; half > 0u; half /= 2u) {
        if thread < half { before_parts[thread] = join(before_parts[thread], before_parts[thread + half]); }
        workgroupBarrier();
    }
    return before_parts[0];
}
