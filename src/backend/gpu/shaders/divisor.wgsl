// The number of a window's pixels within the image, or within the padded image.
fn divisor(window: vec3<u32>) -> f32 {
    let margin = vec3<i32>(padding() * p.counts_padding);
    let first = vec3<i32>(window * stride()) - vec3<i32>(padding());
    let last = min(first + vec3<i32>(extents()), vec3<i32>(image()) + margin);
    let counts = last - max(first, -margin);
    return f32(counts.x) * f32(counts.y) * f32(counts.z);
}
