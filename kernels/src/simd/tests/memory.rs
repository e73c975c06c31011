//! Memory operations and permutations against index arithmetic.

use super::*;

/// Loads, stores and permutations against index arithmetic, for every count.
struct Memory;

impl Memory {
    #[inline(always)]
    fn check<E: Bits, S: Lanes<E>>(simd: S) {
        assert!(S::LANES <= MAX_LANES);
        // NaN bits: moves must not change them.
        let source: Vec<E> = (0..32).map(|i| E::from_u64(E::INFINITY.to_u64() + 1 + i)).collect();
        let bits = |x: &[E]| x.iter().map(|x| x.to_u64()).collect::<Vec<_>>();
        let lanes = |v: S::V| {
            let mut out = vec![E::ZERO; S::LANES];
            // SAFETY: the buffer holds a whole vector.
            unsafe { simd.store(out.as_mut_ptr(), v) };
            bits(&out)
        };
        for offset in 0..16 {
            let x = &source[offset..];
            // SAFETY: 16 elements follow every offset, and a vector has no more (asserted above).
            assert_eq!(lanes(unsafe { simd.load(x.as_ptr()) }), bits(&x[..S::LANES]));
        }
        let halves: Vec<u16> = (0..=u16::MAX).step_by(unless_miri(1, 251)).collect();
        for x in halves.chunks_exact(S::LANES) {
            // SAFETY: the chunk is a whole vector.
            let (loaded_f16, loaded_bf16) =
                unsafe { (lanes(simd.load_f16(x.as_ptr())), lanes(simd.load_bf16(x.as_ptr()))) };
            for (i, &x) in x.iter().enumerate() {
                let expected = [f16::from_bits(x).to_f64(), bf16::from_bits(x).to_f64()];
                for (found, expected) in [loaded_f16[i], loaded_bf16[i]].into_iter().zip(expected) {
                    let same = E::from_f64(expected).to_u64() == found;
                    let both_nan = expected.is_nan() && is_nan::<E>(found);
                    assert!(same || both_nan, "{x:#06x}: {found:#x} on {}", S::ISA);
                }
            }
        }
        for count in 0..S::LANES {
            let exact: Box<[E]> = source[..count].into();
            // SAFETY: the box holds `count` elements.
            let loaded = unsafe { simd.load_first(exact.as_ptr(), count) };
            let mut expected = bits(&exact);
            expected.resize(S::LANES, 0);
            assert_eq!(lanes(loaded), expected, "load_first({count}) on {}", S::ISA);

            let mut out = source[16..].to_vec();
            // SAFETY: the assertion above: `source` holds a vector, `out` 16 elements.
            unsafe {
                let full = simd.load(source.as_ptr());
                simd.store_first(out.as_mut_ptr(), count, full);
            }
            let expected = [&source[..count], &source[16 + count..]].concat();
            assert_eq!(bits(&out), bits(&expected), "store_first({count}) on {}", S::ISA);
        }
        for pattern in (0..0xffff).step_by(unless_miri(97, 9973)).chain([0x5555, 0x8000, 0xffff]) {
            let wanted = |i: usize| pattern >> i & 1 == 1;
            let ones: [E; 16] = core::array::from_fn(|i| if wanted(i) { E::ONE } else { E::ZERO });
            // Inactive lanes may be outside of the box.
            let first = (0..S::LANES).find(|&i| wanted(i)).unwrap_or(S::LANES);
            let end = (first..S::LANES).rfind(|&i| wanted(i)).map_or(first, |i| i + 1);
            let mut exact: Box<[E]> = source[first..end].into();
            // SAFETY: the assertion above, for `ones` and `source`; the box holds all elements from
            // the first true lane to the last.
            let loaded = unsafe {
                let mask = simd.load(ones.as_ptr()).eq(simd.splat(E::ONE));
                let loaded = simd.load_where(exact.as_ptr().wrapping_sub(first), mask);
                let other = simd.load(source[16..].as_ptr());
                simd.store_where(exact.as_mut_ptr().wrapping_sub(first), mask, other);
                lanes(loaded)
            };
            for (i, x) in loaded.into_iter().enumerate() {
                let expected = if wanted(i) { source[i].to_u64() } else { 0 };
                assert_eq!(x, expected, "load_where({pattern:#x}), lane {i} on {}", S::ISA);
            }
            for (i, x) in (first..end).zip(bits(&exact)) {
                let expected = source[if wanted(i) { 16 + i } else { i }].to_u64();
                assert_eq!(x, expected, "store_where({pattern:#x}), lane {i} on {}", S::ISA);
            }
        }
        for count in 0..=S::LANES + 1 {
            let len = count.min(S::LANES);
            let exact: Box<[E]> = source[..len].into();
            let mut out: Box<[E]> = source[16..16 + len].into();
            let mut expected = bits(&exact);
            expected.resize(S::LANES, 0);
            // SAFETY: both boxes hold `count` elements or a vector.
            let loaded = unsafe { simd.load_up_to(exact.as_ptr(), count) };
            assert_eq!(lanes(loaded), expected, "load_up_to({count}) on {}", S::ISA);
            // SAFETY: as above.
            unsafe { simd.store_up_to(out.as_mut_ptr(), count, loaded) };
            assert_eq!(bits(&out), bits(&exact), "store_up_to({count}) on {}", S::ISA);
        }
        for count in
            [0, 1, S::LANES - 1, S::LANES, S::LANES + 1, 1 << (usize::BITS - 31), usize::MAX]
        {
            let mask = lanes(simd.splat(E::ONE).select(simd.first(count), simd.splat(E::ZERO)));
            let ones = mask.iter().take_while(|&&x| x == E::ONE.to_u64()).count();
            assert_eq!(ones, count.min(S::LANES));
            assert!(mask[ones..].iter().all(|&x| x == 0));
        }
        // SAFETY: 16 elements follow both, and a vector has no more (asserted above).
        let (a, b) = unsafe { (simd.load(source.as_ptr()), simd.load(source[16..].as_ptr())) };
        let (low, high) = a.interleave(b);
        if S::LANES > 1 {
            let joined = [lanes(low), lanes(high)].concat();
            for (i, x) in joined.into_iter().enumerate() {
                assert_eq!(x, source[i / 2 + i % 2 * 16].to_u64(), "interleave on {}", S::ISA);
            }
        }
        for start in 0..8 {
            // SAFETY: the buffer starts with a vector, by the assertion above.
            unsafe {
                let mut memory = [E::ZERO; 64];
                let first = memory.as_ptr().align_offset(size_of::<S::V>());
                let expected = [&memory[..first], &source[start..start + S::LANES]].concat();
                simd.store_streaming(
                    memory.as_mut_ptr().add(first),
                    simd.load(source[start..].as_ptr()),
                );
                assert_eq!(bits(&memory[..first + S::LANES]), bits(&expected));
                assert!(memory[first + S::LANES..].iter().all(|x| x.to_u64() == 0));
            }
        }
        match S::LANES {
            16 => Memory::check_transpose::<E, S, 16>(simd),
            8 => Memory::check_transpose::<E, S, 8>(simd),
            4 => Memory::check_transpose::<E, S, 4>(simd),
            2 => Memory::check_transpose::<E, S, 2>(simd),
            _ => Memory::check_transpose::<E, S, 1>(simd),
        }
        let int = E::from_u64(0x0123_4567_89ab_cdef_u64 & E::from_u64(u64::MAX).to_u64());
        assert_eq!(lanes(simd.splat(int)), vec![int.to_u64(); S::LANES]);
    }

    #[inline(always)]
    fn check_transpose<E: Bits, S: Lanes<E>, const N: usize>(simd: S) {
        assert!(S::LANES <= MAX_LANES);
        assert_eq!(N, S::LANES);
        let element = |row: usize, lane: usize| E::INFINITY.to_u64() + (16 * row + lane) as u64;
        let rows: [S::V; N] = core::array::from_fn(|i| {
            let row: [E; 16] = core::array::from_fn(|j| E::from_u64(element(i, j)));
            // SAFETY: the assertion above: the array holds a whole vector.
            unsafe { simd.load(row.as_ptr()) }
        });
        for (i, row) in S::V::transpose(rows).into_iter().enumerate() {
            let mut out = [E::ZERO; 16];
            // SAFETY: as above.
            unsafe { simd.store(out.as_mut_ptr(), row) };
            for (j, x) in out.iter().enumerate().take(N) {
                assert_eq!(x.to_u64(), element(j, i), "row {i}, lane {j} on {}", S::ISA);
            }
        }
    }
}

impl Task for Memory {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        Memory::check::<f32, S>(simd);
        Memory::check::<f64, S>(simd);
        if <S as Lanes<f32>>::LANES <= 8 {
            Memory::check::<f32, Wide<S>>(Wide(simd));
        }
        Memory::check::<f64, Wide<S>>(Wide(simd));
        let source: Vec<f32> = special_values();
        let lanes = <S as Lanes<f64>>::LANES;
        for chunk in source.chunks(lanes) {
            let chunk: Box<[f32]> = chunk.into();
            let mut out = vec![1.0f64; lanes];
            // SAFETY: the box holds as many elements as are read, `out` a whole vector.
            unsafe {
                let wide = if chunk.len() == lanes {
                    simd.load_widened(chunk.as_ptr())
                } else {
                    simd.load_first_widened(chunk.as_ptr(), chunk.len())
                };
                simd.store(out.as_mut_ptr(), wide);
            }
            let mut expected: Vec<f64> = chunk.iter().map(|&x| f64::from(x)).collect();
            expected.resize(lanes, 0.0);
            let same =
                |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
            assert!(out.iter().zip(&expected).all(same), "{out:?}, not {expected:?}");
        }
        let wide: [f64; 16] = core::array::from_fn(|i| 0.1 + i as f64 * 1e-9);
        let mut narrow: Box<[f32]> = vec![0.0; lanes].into();
        assert!(lanes <= MAX_LANES);
        // SAFETY: the assertion above: the array holds a whole vector; the box was made for one.
        unsafe { simd.store_narrowed(narrow.as_mut_ptr(), simd.load(wide.as_ptr())) };
        assert!(narrow.iter().zip(wide).all(|(&x, y)| x == y as f32), "narrow on {}", S::ISA);
    }
}

#[test]
fn memory_operations_match_index_arithmetic() {
    for isa in Isa::ALL {
        if with_isa(isa, || run(Memory)).is_none() {
            println!("skipped: this machine lacks {isa}");
        }
    }
}
