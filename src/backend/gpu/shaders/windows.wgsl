// Windows that slide over images. plan/windows.rs describes the words.
fn three(at: u32) -> vec3<u32> { return vec3(p.axes[at], p.axes[at + 1u], p.axes[at + 2u]); }
fn image() -> vec3<u32> { return three(0u); }
fn extents() -> vec3<u32> { return three(3u); }
fn windows() -> vec3<u32> { return three(6u); }
fn stride() -> vec3<u32> { return three(9u); }
fn dilation() -> vec3<u32> { return three(12u); }
fn padding() -> vec3<u32> { return three(15u); }

fn volume(x: vec3<u32>) -> u32 { return x.x * x.y * x.z; }
fn index_of(at: vec3<u32>, all: vec3<u32>) -> u32 { return (at.x * all.y + at.y) * all.z + at.z; }
fn coordinates(i: u32, all: vec3<u32>) -> vec3<u32> {
    return vec3(i / (all.y * all.z), (i / all.z) % all.y, i % all.z);
}

// The pixel at a tap of a window. Coordinates below 0 wrap, so any coordinate outside the image is at least its extent.
fn pixel_of(window: vec3<u32>, tap: vec3<u32>) -> vec3<u32> {
    return window * stride() + tap * dilation() - padding();
}
fn is_pixel(at: vec3<u32>) -> bool { return all(at < image()); }

// The window that has this pixel at this tap; `windows()` if there is none.
fn window_of(pixel: vec3<u32>, tap: vec3<u32>) -> vec3<u32> {
    let start = pixel + padding() - tap * dilation();
    let window = start / stride();
    if any(window * stride() != start) || any(window >= windows()) { return windows(); }
    return window;
}
fn is_window(at: vec3<u32>) -> bool { return all(at < windows()); }
