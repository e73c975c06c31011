//! Conversions: all 65,536 numbers of 16 bits and every case of rounding to them, against a search
//! among all of them and against the `half` crate; machine types against Rust's `as`.

use std::cmp::Ordering;

use half::{bf16, f16};
use swath_kernels::testing::{even_sample_f32, even_sample_f64, special_values_f32, with_isa};
use swath_kernels::{Convert, Isa, Truth, convert, nonzero};

fn on_every_isa(f: impl Fn()) {
    for isa in Isa::ALL {
        if with_isa(isa, &f).is_none() {
            println!("{isa} skipped, this machine lacks it");
        }
    }
}

fn converted<A: Convert<B>, B: Copy + Default>(x: &[A]) -> Vec<B> {
    let mut y = vec![B::default(); x.len()];
    convert(x, &mut y);
    y
}

/// A 16-bit format, by the specification of IEEE 754.
struct Format {
    fraction_bits: u32,
    bias: i32,
}

const F16: Format = Format { fraction_bits: 10, bias: 15 };
const BF16: Format = Format { fraction_bits: 7, bias: 127 };

impl Format {
    fn value(&self, bits: u16) -> f64 {
        let scale = 1u32 << self.fraction_bits;
        let fraction = f64::from(u32::from(bits) & (scale - 1)) / f64::from(scale);
        let exponent = i32::from(bits & 0x7fff) >> self.fraction_bits;
        let special = 0x7fff >> self.fraction_bits;
        let magnitude = match exponent {
            0 => fraction * 2f64.powi(1 - self.bias),
            e if e == special && fraction == 0.0 => f64::INFINITY,
            e if e == special => f64::NAN,
            e => (1.0 + fraction) * 2f64.powi(e - self.bias),
        };
        if bits >> 15 == 1 { -magnitude } else { magnitude }
    }

    fn infinity(&self) -> u16 {
        0x7fff >> self.fraction_bits << self.fraction_bits
    }

    /// The midpoint of a magnitude and the next one; for the largest, the next one is the number that would
    /// follow if the exponent were not limited.
    fn midpoint(&self, bits: u16) -> f64 {
        match bits + 1 == self.infinity() {
            true => self.value(bits) + (self.value(bits) - self.value(bits - 1)) / 2.0,
            false => (self.value(bits) + self.value(bits + 1)) / 2.0,
        }
    }

    /// The bits of the nearest number; `order` compares the magnitude to be rounded with a number.
    fn nearest(&self, negative: bool, order: impl Fn(f64) -> Ordering) -> u16 {
        let (mut low, mut high) = (0, self.infinity());
        while low < high {
            let middle = (low + high) / 2;
            let goes_up = match order(self.midpoint(middle)) {
                Ordering::Less => false,
                Ordering::Equal => middle % 2 == 1,
                Ordering::Greater => true,
            };
            if goes_up { low = middle + 1 } else { high = middle }
        }
        low | u16::from(negative) << 15
    }

    fn nearest_f64(&self, x: f64) -> u16 {
        self.nearest(x.is_sign_negative(), |y| x.abs().partial_cmp(&y).unwrap())
    }

    fn nearest_i64(&self, x: i64) -> u16 {
        let magnitude = x.unsigned_abs();
        self.nearest(x < 0, |y| match magnitude < 1 << 53 {
            true => (magnitude as f64).partial_cmp(&y).unwrap(),
            // Beyond 2^53 midpoints are integers.
            false if y < 2f64.powi(53) => Ordering::Greater,
            false => i128::from(magnitude).cmp(&(y as i128)),
        })
    }
}

#[test]
fn all_16_bit_floats_widen_exactly() {
    let bits: Vec<u16> = (0..=u16::MAX).collect();
    on_every_isa(|| {
        let f16s: Vec<f16> = bits.iter().map(|&bits| f16::from_bits(bits)).collect();
        let bf16s: Vec<bf16> = bits.iter().map(|&bits| bf16::from_bits(bits)).collect();
        let f16s = (F16, converted::<_, f32>(&f16s), converted::<_, f64>(&f16s));
        let bf16s = (BF16, converted::<_, f32>(&bf16s), converted::<_, f64>(&bf16s));
        for (format, narrow, wide) in [f16s, bf16s] {
            for ((&bits, x), wide) in bits.iter().zip(narrow).zip(wide) {
                let expected = format.value(bits);
                let same = |x: f64| x == expected && x.is_sign_negative() == (bits >> 15 == 1);
                let x = f64::from(x);
                assert!(same(x) && same(wide) || expected.is_nan() && x.is_nan() && wide.is_nan());
            }
        }
    });
    for &bits in &bits {
        let (x, y) = (f16::from_bits(bits), bf16::from_bits(bits));
        assert!(x.is_nan() || x.to_f64() == F16.value(bits));
        assert!(y.is_nan() || y.to_f64() == BF16.value(bits));
    }
}

/// Every number of a format, the midpoint of each gap, and the neighbouring `f32` of each.
fn around_every_number(format: &Format) -> Vec<f32> {
    let magnitudes = (0..format.infinity()).flat_map(|bits| {
        let points = [format.value(bits) as f32, format.midpoint(bits) as f32];
        points.map(|x| [x, x.next_down(), x.next_up()]).into_iter().flatten()
    });
    magnitudes.flat_map(|x| [x, -x]).collect()
}

#[test]
fn f32_rounds_to_16_bits_once() {
    let around = around_every_number(&F16).into_iter().chain(around_every_number(&BF16));
    let spread = even_sample_f32(1 << 18).chain(special_values_f32());
    let x: Vec<f32> = around.chain(spread).collect();
    let nearest = |format: &Format, x: f32| match x.is_nan() {
        true => None,
        false => Some(format.nearest_f64(f64::from(x))),
    };
    let expected: Vec<_> = x.iter().map(|&x| (nearest(&F16, x), nearest(&BF16, x))).collect();
    on_every_isa(|| {
        let (f16s, bf16s) = (converted::<_, f16>(&x), converted::<_, bf16>(&x));
        for (((&x, (f16_bits, bf16_bits)), f16), bf16) in
            x.iter().zip(&expected).zip(f16s).zip(bf16s)
        {
            let own = (f16_bits.unwrap_or(0), bf16_bits.unwrap_or(0));
            let found = (f16.to_bits(), bf16.to_bits());
            let both_nan = x.is_nan() && f16.is_nan() && bf16.is_nan();
            assert!(both_nan || found == own, "{x:e}: {found:x?}, not {own:x?}");
            let theirs = (f16::from_f32(x).to_bits(), bf16::from_f32(x).to_bits());
            assert!(both_nan || found == theirs, "{x:e}: {found:x?}, `half` has {theirs:x?}");
        }
    });
}

#[test]
fn wider_types_round_to_16_bits_once() {
    let around = around_every_number(&F16).into_iter().chain(around_every_number(&BF16));
    let near = around.flat_map(|x| {
        let x = f64::from(x);
        [x, x.next_up(), x.next_down()]
    });
    let x: Vec<f64> = near.chain(even_sample_f64(1 << 16)).filter(|x| !x.is_nan()).collect();
    let expected: Vec<[u16; 2]> =
        x.iter().map(|&x| [F16.nearest_f64(x), BF16.nearest_f64(x)]).collect();
    on_every_isa(|| {
        let (f16s, bf16s) = (converted::<_, f16>(&x), converted::<_, bf16>(&x));
        for (((x, expected), f16), bf16) in x.iter().zip(&expected).zip(f16s).zip(bf16s) {
            assert_eq!([f16.to_bits(), bf16.to_bits()], *expected, "{x:e}");
        }
    });
    // Ties of bf16 and of f16, and the integers next to them, at every magnitude.
    let ties = (0..55).flat_map(|shift| [1i64, 3, 129, 257, 0x101 << 4, 0x803].map(|k| k << shift));
    let x: Vec<i64> = ties
        .flat_map(|x| [x, x + 1, x - 1, x + 1024, x - 2048].into_iter().flat_map(|x| [x, -x]))
        .chain([0, i64::MAX, i64::MIN, 65504, 65519, 65520, -65520])
        .collect();
    on_every_isa(|| {
        let (f16s, bf16s) = (converted::<_, f16>(&x), converted::<_, bf16>(&x));
        for ((&x, f16), bf16) in x.iter().zip(f16s).zip(bf16s) {
            assert_eq!(f16.to_bits(), F16.nearest_i64(x), "{x}");
            assert_eq!(bf16.to_bits(), BF16.nearest_i64(x), "{x}");
        }
    });
    let small: Vec<i32> = x.iter().map(|&x| x as i32).collect();
    let f16s = converted::<i32, f16>(&small);
    assert!(small.iter().zip(f16s).all(|(&x, y)| y.to_bits() == F16.nearest_i64(x.into())));
}

/// The integer that a float converts to, by a formula in wider integers.
fn truncated(x: f64, low: i128, high: i128) -> i128 {
    if x.is_nan() { 0 } else { (x.trunc().clamp(-1e30, 1e30) as i128).clamp(low, high) }
}

#[test]
fn floats_to_integers_saturate() {
    let edges = [0.0, 0.5, 0.999, 1.0, 1.5, 127.5, 255.0, 255.9, 256.0, 2147483647.0, 2147483648.0];
    let large = [4294967295.0, 4294967296.0, 9.223372036854775e18, 9.223372036854776e18, 1e300];
    let edges = edges.into_iter().chain(large).flat_map(|x| [x, -x, f64::from(x as f32)]);
    let x: Vec<f64> =
        edges.chain(even_sample_f64(1 << 14)).chain([f64::NAN, f64::INFINITY]).collect();
    let narrow: Vec<f32> = x.iter().map(|&x| x as f32).collect();
    let halves = converted::<f32, f16>(&narrow);
    macro_rules! check {
        ($x:expr => $($t:ident)*) => {$(
            for (&x, y) in $x.iter().zip(converted::<_, $t>(&$x)) {
                let expected = truncated(f64::from(x), $t::MIN.into(), $t::MAX.into());
                assert_eq!(i128::from(y), expected, "{x:e} to {}", stringify!($t));
            }
        )*};
    }
    on_every_isa(|| {
        check!(x => i64 i32 u32 u8);
        check!(narrow => i64 i32 u32 u8);
        check!(halves => i64 i32 u32 u8);
    });
}

#[test]
fn floats_convert_to_the_same_integers_at_every_length() {
    // Each special value occupies every position of a vector in one of the slices.
    let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.9, 255.5, -1e10, 1e10, 3e9, 1e19];
    let x: Vec<f64> =
        (0..150).map(|i| if i % 4 == 1 { i as f64 } else { special[i % 9] }).collect();
    let narrow: Vec<f32> = x.iter().map(|&x| x as f32).collect();
    macro_rules! check {
        ($x:expr, $from:ident => $($t:ident)*) => {$(
            for first in 0..9 {
                for len in 0..=130 {
                    let x = &$x[first..][..len];
                    let expected: Vec<$t> = x.iter().map(|&x| x as $t).collect();
                    assert_eq!(converted::<$from, $t>(x), expected, "{len} to {}", stringify!($t));
                }
            }
        )*};
    }
    on_every_isa(|| {
        check!(x, f64 => i64 i32 u32 u8);
        check!(narrow, f32 => i64 i32 u32 u8);
    });
}

#[test]
fn bytes_convert_to_the_nearest_16_bit_float() {
    let x: Vec<u8> = (0..=255).collect();
    on_every_isa(|| {
        let (f16s, bf16s) = (converted::<_, f16>(&x), converted::<_, bf16>(&x));
        for ((&x, f16), bf16) in x.iter().zip(f16s).zip(bf16s) {
            assert_eq!(f16.to_bits(), F16.nearest_i64(x.into()), "{x}");
            assert_eq!(bf16.to_bits(), BF16.nearest_i64(x.into()), "{x}");
        }
    });
}

#[test]
fn integers_wrap_and_widen_to_the_nearest_float() {
    let x: Vec<i64> = (0..64)
        .flat_map(|shift| [0, 1, -1, 3].map(|d| (0x1_2345_6789_abcd_ef01u128 >> shift) as i64 + d))
        .chain([i64::MIN, i64::MAX, 0, -1, 255, 256])
        .collect();
    on_every_isa(|| {
        for (&x, y) in x.iter().zip(converted::<_, u8>(&x)) {
            assert_eq!(i64::from(y), x.rem_euclid(256));
        }
        for (&x, y) in x.iter().zip(converted::<_, i32>(&x)) {
            let half = 1i128 << 31;
            assert_eq!(i128::from(y), (i128::from(x) + half).rem_euclid(2 * half) - half, "{x}");
        }
        for (&x, y) in x.iter().zip(converted::<_, f32>(&x)) {
            // No other `f32` is nearer.
            let error = |y: f32| (distance(x, y), y.to_bits() & 1);
            assert!(error(y) <= error(y.next_up()) && error(y) <= error(y.next_down()), "{x}");
        }
    });
}

fn distance(x: i64, y: f32) -> i128 {
    // An `f32` near a large integer is an integer; near a small one its fraction is scaled.
    let scale = if x.abs_diff(0) < 1 << 40 { 1 << 30 } else { 1 };
    (i128::from(x) * scale - (f64::from(y) * scale as f64) as i128).abs()
}

#[test]
fn nonzero_is_true_for_everything_but_zeros() {
    fn check<T: Truth>(x: &[T], expected: &[u8]) {
        on_every_isa(|| {
            let mut y = vec![7; x.len()];
            nonzero(x, &mut y);
            assert_eq!(y, expected);
        });
    }
    let x = [0.0f32, -0.0, 1.0, f32::NAN, -f32::INFINITY, 1e-45];
    let expected = [0, 0, 1, 1, 1, 1];
    check(&x, &expected);
    check(&x.map(f64::from), &expected);
    check(&[0u8, 1, 2, 255], &[0, 1, 1, 1]);
    check(&[0i64, 1 << 40, -1], &[0, 1, 1]);
    check(&[0i32, i32::MIN], &[0, 1]);
    check(&[0u32, 1 << 31], &[0, 1]);
    check(&[0x0000, 0x8000, 0x0001, 0x7e00].map(f16::from_bits), &[0, 0, 1, 1]);
    check(&[0x0000, 0x8000, 0x8001, 0x7fc0].map(bf16::from_bits), &[0, 0, 1, 1]);
}

#[test]
fn conversions_are_the_same_at_every_length() {
    let x: Vec<f32> = even_sample_f32(700).filter(|x| !x.is_nan()).collect();
    let halves = converted::<f32, f16>(&x);
    let wide = converted::<f16, f32>(&halves);
    for len in (0..=70).chain([511, 512, 513]) {
        assert_eq!(converted::<f32, f16>(&x[3..][..len]), halves[3..][..len]);
        assert_eq!(converted::<f16, f32>(&halves[3..][..len]), wide[3..][..len]);
        assert_eq!(converted::<f16, i64>(&halves[..len]), converted::<f16, i64>(&halves)[..len]);
    }
}

#[test]
#[should_panic(expected = "convert: the input has 2 elements, the output 3")]
fn lengths_must_agree() {
    convert(&[1.0f32, 2.0], &mut [0u8; 3]);
}
