// Loads of a reduction's elements. plan/reduce.rs describes the words.

// Position of the first element of result i.
fn base(i: u32) -> u32 {
    var at = p.words[5];
    var rest = i;
    for (var k = 0u; k < p.words[2]; k++) {
        let axis = 8u + 2u * k;
        at += (rest % p.words[axis]) * p.words[axis + 1u];
        rest /= p.words[axis];
    }
    return at;
}

// Element j of the result whose first element is at `start`.
fn element(start: u32, j: u32) -> A {
    var at = start;
    var rest = j;
    for (var k = p.words[2]; k < p.words[2] + p.words[3]; k++) {
        let axis = 8u + 2u * k;
        at += (rest % p.words[axis]) * p.words[axis + 1u];
        rest /= p.words[axis];
    }
    return a(at);
}
