fn element(i: u32) -> A {
    var at = vec2(p.from_x, p.from_index);
    var rest = i;
    for (var k = 0u; k < p.rank; k++) {
        let axis = 3u * k;
        at += (rest % p.axes[axis]) * vec2(p.axes[axis + 1u], p.axes[axis + 2u]);
        rest /= p.axes[axis];
    }
    let entry = index(at.y);
    if entry >= p.extent {
        fault(i);
        return A();
    }
    return a(at.x + entry * p.step);
}
