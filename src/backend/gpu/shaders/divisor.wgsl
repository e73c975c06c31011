// The taps of a window that are less than a distance from its first.
fn taps_within(distance: vec3<i32>) -> vec3<i32> {
    let step = vec3<i32>(dilation());
    return clamp((distance + step - 1) / step, vec3<i32>(0), vec3<i32>(extents()));
}

// The number of a window's taps within the image and the padding that is counted.
fn divisor(window: vec3<u32>) -> f32 {
    let first = vec3<i32>(window * stride()) - vec3<i32>(padding());
    let start = -vec3<i32>(vec3(p.front, p.top, p.left));
    let end = vec3<i32>(image() + vec3(p.back, p.bottom, p.right));
    let counts = taps_within(end - first) - taps_within(start - first);
    return f32(counts.x) * f32(counts.y) * f32(counts.z);
}
