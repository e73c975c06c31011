// Loads of a reduction's elements. plan/reduce.rs describes the words.

// Position of the first element of result i.
fn base(i: u32) -> u32 {
    var at = p.from_x;
    var rest = i;
    for (var k = 0u; k < p.kept; k++) {
        let axis = 2u * k;
        at += (rest % p.axes[axis]) * p.axes[axis + 1u];
        rest /= p.axes[axis];
    }
    return at;
}

// Element j of the result whose first element is at `start`.
fn element(start: u32, j: u32) -> A {
    var at = start;
    var rest = j;
    for (var k = p.kept; k < p.kept + p.reduced; k++) {
        let axis = 2u * k;
        at += (rest % p.axes[axis]) * p.axes[axis + 1u];
        rest /= p.axes[axis];
    }
    return a(at);
}
