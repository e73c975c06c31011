//! `sincos` against `sin` and `cos`; `tan` at arguments whose reduction cancels most.

use swath_kernels::testing::{
    even_sample_f32, even_sample_f64, levels, special_values_f32, ulp_distance_f32, with_isa,
};
use swath_kernels::{cos, sin, sincos, tan};

#[test]
fn sincos_matches_sin_and_cos_bitwise() {
    let ordinary = (0..40).map(|i| i as f32 * 0.37 - 7.0);
    let x: Vec<f32> =
        special_values_f32().into_iter().chain(ordinary).chain(even_sample_f32(80)).collect();
    let wide: Vec<f64> = x.iter().map(|&x| x.into()).chain(even_sample_f64(80)).collect();
    let bits = |x: &[f32]| x.iter().map(|x| if x.is_nan() { 1 } else { x.to_bits() }).collect();
    let bits64 = |x: &[f64]| x.iter().map(|x| if x.is_nan() { 1 } else { x.to_bits() }).collect();
    for isa in levels() {
        with_isa(isa, || {
            for len in 0..=130 {
                let (x, wide) = (&x[..len], &wide[..len]);
                let [mut s, mut c, mut s2, mut c2] = [(); 4].map(|()| vec![5f32; len]);
                sincos(x, &mut s, &mut c);
                sin(x, &mut s2);
                cos(x, &mut c2);
                let pairs: [[Vec<u32>; 2]; 2] = [[bits(&s), bits(&s2)], [bits(&c), bits(&c2)]];
                pairs.iter().for_each(|[got, expected]| assert_eq!(got, expected, "{isa} {len}"));
                let [mut s, mut c, mut s2, mut c2] = [(); 4].map(|()| vec![5f64; len]);
                sincos(wide, &mut s, &mut c);
                sin(wide, &mut s2);
                cos(wide, &mut c2);
                let pairs: [[Vec<u64>; 2]; 2] =
                    [[bits64(&s), bits64(&s2)], [bits64(&c), bits64(&c2)]];
                pairs.iter().for_each(|[got, expected]| assert_eq!(got, expected, "{isa} {len}"));
            }
        });
    }
}

#[test]
#[should_panic(expected = "sincos")]
fn sincos_into_a_short_result_panics() {
    sincos(&[1f32, 2.0], &mut [0.0; 2], &mut [0.0; 1]);
}

#[test]
fn tan_near_multiples_of_half_pi_is_within_one_float() {
    let nearest = (1..70_000).map(|n| (f64::from(n) * std::f64::consts::FRAC_PI_2) as f32);
    let x: Vec<f32> = nearest.flat_map(|x| [x.next_down(), x, -x, x.next_up()]).collect();
    let mut y = vec![0f32; x.len()];
    tan(&x, &mut y);
    for (x, y) in x.into_iter().zip(y) {
        let expected = core_math::tanf(x);
        assert!(ulp_distance_f32(y, expected) <= 1, "tan({x:e}) = {y:e}, not {expected:e}");
    }
}
