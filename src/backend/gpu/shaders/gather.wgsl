fn element(i: u32) -> A {
    var at = vec2(p.words[5], p.words[6]);
    var rest = i;
    for (var k = 0u; k < p.words[2]; k++) {
        let axis = 7u + 3u * k;
        at += (rest % p.words[axis]) * vec2(p.words[axis + 1u], p.words[axis + 2u]);
        rest /= p.words[axis];
    }
    let entry = index(at.y);
    if entry >= p.words[3] {
        fault(i);
        return A();
    }
    return a(at.x + entry * p.words[4]);
}
