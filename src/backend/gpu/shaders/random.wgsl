// Random word i: lane i mod 4 of Philox4x32-10 (Salmon, Moraes, Dror and Shaw, 2011) with the counter (i / 4, stream).
fn random_word(i: u32) -> u32 {
    var x = vec4(i / 4u, 0u, p.stream_low, p.stream_high);
    var key = vec2(p.seed_low, p.seed_high);
    for (var round = 0; round < 10; round++) {
        let left = upper_product(0xd2511f53u, x.x);
        let right = upper_product(0xcd9e8d57u, x.z);
        x = vec4(right ^ x.y ^ key.x, 0xcd9e8d57u * x.z, left ^ x.w ^ key.y, 0xd2511f53u * x.x);
        key += vec2(0x9e3779b9u, 0xbb67ae85u);
    }
    return x[i % 4u];
}
