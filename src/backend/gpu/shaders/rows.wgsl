// Kernels of rows. A workgroup computes a row of `p.n` elements, and thread t reads elements t, t + 256, …
var<workgroup> row_parts: array<vec2<f32>, 256>;

// The sum of `part` over all threads.
fn total_pair(part: vec2<f32>, thread: u32) -> vec2<f32> {
    workgroupBarrier();
    row_parts[thread] = part;
    workgroupBarrier();
    for (var half = 128u; half > 0u; half /= 2u) {
        if thread < half { row_parts[thread] = sum_of(row_parts[thread], row_parts[thread + half]); }
        workgroupBarrier();
    }
    return row_parts[0];
}

// The largest value of all threads and its index, the first of equal ones; NaN if one is NaN.
fn best(value: f32, index: f32, thread: u32) -> vec2<f32> {
    workgroupBarrier();
    row_parts[thread] = vec2(value, index);
    workgroupBarrier();
    for (var half = 128u; half > 0u; half /= 2u) {
        if thread < half {
            let s = row_parts[thread];
            let t = row_parts[thread + half];
            let is_better = t.x > s.x || (is_nan(t.x) && !is_nan(s.x)) || (t.x == s.x && t.y < s.y);
            if is_better { row_parts[thread] = t; }
        }
        workgroupBarrier();
    }
    return row_parts[0];
}

// The largest value and its index in the row of n elements of `a` that begins at `start`.
fn best_of_row(start: u32, n: u32, thread: u32) -> vec2<f32> {
    var value = -infinity();
    var index = 4294967040.0;
    for (var j = thread; j < n; j += 256u) {
        let x = a(start + j);
        if x > value || (is_nan(x) && !is_nan(value)) || index == 4294967040.0 {
            value = x;
            index = f32(j);
        }
    }
    return best(value, index, thread);
}
