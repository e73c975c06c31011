use super::functions1;

functions1! {
    floor Floor f32::floor, f64::floor, f64::floor, [(-9.0, 9.0), (-1e17, 1e17)];
    ceil Ceil f32::ceil, f64::ceil, f64::ceil, [(-9.0, 9.0), (-1e17, 1e17)];
    round Round f32::round_ties_even, f64::round_ties_even, f64::round_ties_even,
        [(-9.0, 9.0), (-1e17, 1e17)];
    trunc Trunc f32::trunc, f64::trunc, f64::trunc, [(-9.0, 9.0), (-1e17, 1e17)];
}
