//! Philox4x32-10: ten rounds of two multiplications and a swap, each followed by one step of the
//! key along a Weyl sequence.
//!
//! Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC '11. The constants
//! are those of the paper's table.

const MULTIPLIERS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];
const WEYL: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];

#[inline]
pub(super) fn philox4x32_10(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let ([mut a, mut b, mut c, mut d], mut key) = (counter, key);
    for _ in 0..10 {
        let left = u64::from(MULTIPLIERS[0]) * u64::from(a);
        let right = u64::from(MULTIPLIERS[1]) * u64::from(c);
        (a, c) = ((right >> 32) as u32 ^ b ^ key[0], (left >> 32) as u32 ^ d ^ key[1]);
        (b, d) = (right as u32, left as u32);
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    [a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows `philox4x32 10` of `tests/kat_vectors` in Random123: counter, key, result.
    const KNOWN_ANSWERS: [([u32; 4], [u32; 2], [u32; 4]); 3] = [
        ([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
        ([u32::MAX; 4], [u32::MAX; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
        (
            [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
            [0xa409_3822, 0x299f_31d0],
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
        ),
    ];

    #[test]
    fn published_known_answers_are_reproduced() {
        for (counter, key, expected) in KNOWN_ANSWERS {
            assert_eq!(philox4x32_10(counter, key), expected);
        }
    }
}
