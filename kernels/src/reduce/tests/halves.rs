//! Reductions of 16-bit floats.

use half::{bf16, f16};

use super::on_every_isa;
use crate::reduce::*;
use crate::simd::Isa;
use crate::testing::unless_miri;
use crate::*;

/// The elements of a slice as `f32`, by the integer code of the conversion.
fn as_f32<E: Accumulate + Into<f32>>(x: &[E]) -> Vec<f32> {
    x.iter().map(|&x| x.into()).collect()
}

/// 16-bit floats reduce like the `f32` of the same value, each result rounded once.
fn check_halves<E: Accumulate + Into<f32> + Into<f64>>(from_bits: fn(u16) -> E, isa: Isa) {
    // Within 2^-7 of 1, of both signs: products of thousands stay in range.
    let near_one = |bits: u32| {
        let x = 1.0 + f64::from(bits % 5) * 2f64.powi(-8) - 2f64.powi(-7);
        E::rounded(if bits & 64 == 0 { x } else { -x })
    };
    type Fold<'a, A, R> = &'a dyn Fn(&[A]) -> R;
    let lens = unless_miri(
        &[0usize, 1, 2, 5, 7, 8, 15, 16, 17, 31, 130, 1023, 1024, 4100, 9001][..],
        &[0, 3, 18],
    );
    for &len in lens {
        for finite in [true, false] {
            let number = |i: usize| {
                let bits = (i as u32 + 7).wrapping_mul(0x9e37_79b9) >> 11;
                if finite { near_one(bits) } else { from_bits(bits as u16) }
            };
            let x: Vec<E> = (0..len).map(number).collect();
            let y: Vec<E> = (len..2 * len).map(number).collect();
            let (wide, other) = (as_f32(&x), as_f32(&y));
            fn of<R: Reduction<f32>>(reduction: &R, x: &[f32]) -> R::Acc {
                let mut whole = Pairwise::new();
                whole.take(reduction, x);
                whole.finish()
            }
            let mut products = PairwiseSum::new();
            products.push_products(&wide, &other);
            let moments = of(&Variance { ddof: 0 }, &wide);
            let wanted: [(&str, Fold<'_, E, E>, f64); 9] = [
                ("sum", &sum::<E>, of(&Sum, &wide)),
                ("mean", &mean::<E>, of(&Sum, &wide) / len as f64),
                ("dot", &|x| dot(x, &y), products.finish()),
                ("prod", &prod::<E>, of(&Prod, &wide).value()),
                ("variance", &|x| variance(x, 1), moments.variance(1)),
                ("std", &|x| std(x, 0), moments.variance(0).sqrt()),
                ("norm0", &|x| reduce(&Norm0, x), of(&Norm0, &wide)),
                ("norm1", &norm1::<E>, of(&Norm1, &wide)),
                ("norm2", &norm2::<E>, of(&Norm2, &wide).root()),
            ];
            for (name, fold, wanted) in wanted {
                let (found, wanted): (f64, f64) = (fold(&x).into(), E::rounded(wanted).into());
                let same = found.to_bits() == wanted.to_bits() || found.is_nan() && wanted.is_nan();
                assert!(same, "{name} of {len} on {isa}: {found}, not {wanted}");
            }
        }
    }
    for (rows, cols, gap) in unless_miri(
        &[(1usize, 1usize, 0usize), (7, 3, 2), (40, 530, 1), (2600, 9, 2)][..],
        &[(3, 9, 2)],
    ) {
        let stride = cols + gap;
        for finite in [true, false] {
            let number = |i: usize| {
                let bits = (i as u32).wrapping_mul(0x9e37_79b9) >> 9;
                if finite { near_one(bits) } else { from_bits((i * 40_503) as u16) }
            };
            let x: Vec<E> = (0..rows * stride).map(number).collect();
            let column = |c: usize| (0..*rows).map(|r| x[r * stride + c]).collect::<Vec<E>>();
            let mut y = vec![x[0]; *cols];
            type OfColumns<E> = fn(&[E], usize, usize, &mut [E]);
            type OfSlice<E> = fn(&[E]) -> E;
            let folds: [(&str, OfColumns<E>, OfSlice<E>); 8] = [
                ("sum", |x, r, s, y| reduce_columns(&Sum, x, r, s, y), sum),
                ("mean", |x, r, s, y| reduce_columns(&Mean, x, r, s, y), mean),
                ("prod", |x, r, s, y| reduce_columns(&Prod, x, r, s, y), prod),
                (
                    "variance",
                    |x, r, s, y| reduce_columns(&Variance { ddof: 1 }, x, r, s, y),
                    |x| variance(x, 1),
                ),
                ("std", |x, r, s, y| reduce_columns(&Std { ddof: 0 }, x, r, s, y), |x| std(x, 0)),
                ("norm0", |x, r, s, y| reduce_columns(&Norm0, x, r, s, y), |x| reduce(&Norm0, x)),
                ("norm1", |x, r, s, y| reduce_columns(&Norm1, x, r, s, y), norm1),
                ("norm2", |x, r, s, y| reduce_columns(&Norm2, x, r, s, y), norm2),
            ];
            for (name, of_columns, of_slice) in folds {
                of_columns(&x, *rows, stride, &mut y);
                for (c, &y) in y.iter().enumerate() {
                    let (found, wanted): (f64, f64) = (y.into(), of_slice(&column(c)).into());
                    let same =
                        found.to_bits() == wanted.to_bits() || found.is_nan() && wanted.is_nan();
                    assert!(
                        same,
                        "{name}, column {c} of {rows} {cols} on {isa}: {found}, not {wanted}"
                    );
                }
            }
        }
    }
}

#[test]
fn halves_reduce_like_f32_of_the_same_value() {
    on_every_isa(|isa| {
        check_halves::<f16>(f16::from_bits, isa);
        check_halves::<bf16>(bf16::from_bits, isa);
        // Just above the middle between two floats: rounding to `f32` first would lose that.
        let tiny = 2f64.powi(-24);
        let x = [2048.0, 1.0, tiny].map(f16::from_f64);
        assert_eq!(sum(&x), f16::from_f64(2050.0), "{isa}");
        let x = [256.0, 1.0, tiny].map(bf16::from_f64);
        assert_eq!(sum(&x), bf16::from_f64(258.0), "{isa}");
    });
}
