//! Even splits.

/// Splits `total` units into the fewest parts of at most `most` units, as even as possible.
///
/// 5 vectors in tiles of at most 4 become 3 + 2, not 4 + 1, because a tile one vector wide reaches
/// half the speed of a wide one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Split {
    parts: usize,
    /// Units in every part; the first `extra` have one more.
    base: usize,
    extra: usize,
}

impl Split {
    #[inline(always)]
    pub(super) fn new(total: usize, most: usize) -> Self {
        if total <= most {
            return Split { parts: (total > 0) as usize, base: total, extra: 0 };
        }
        let parts = total.div_ceil(most);
        Split { parts, base: total / parts, extra: total % parts }
    }

    #[inline(always)]
    pub(super) fn parts(&self) -> usize {
        self.parts
    }

    #[inline(always)]
    pub(super) fn start(&self, part: usize) -> usize {
        part * self.base + part.min(self.extra)
    }

    #[inline(always)]
    pub(super) fn len(&self, part: usize) -> usize {
        self.base + (part < self.extra) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::Split;

    #[test]
    fn parts_are_adjacent_even_and_as_few_as_possible() {
        for most in 1..8 {
            for total in 0..60 {
                let split = Split::new(total, most);
                let mut at = 0;
                for part in 0..split.parts() {
                    assert_eq!(split.start(part), at);
                    assert!((1..=most).contains(&split.len(part)), "{total} by {most}");
                    assert!(split.len(0) - split.len(part) <= 1);
                    at += split.len(part);
                }
                assert_eq!(at, total);
                assert!(split.parts() * most < total + most);
            }
        }
    }
}
