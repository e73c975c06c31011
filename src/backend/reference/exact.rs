//! Sums in twice the precision of `f64`, rounded once at the end.

/// Sum of the terms, starting from 0, by Neumaier's algorithm: the rounding errors are summed separately.
///
/// An infinite or NaN total is that of plain addition.
pub(super) fn sum(terms: impl IntoIterator<Item = f64>) -> f64 {
    let (mut total, mut error) = (0.0f64, 0.0);
    for term in terms {
        let next = total + term;
        error += match total.abs() >= term.abs() {
            true => (total - next) + term,
            false => (term - next) + total,
        };
        total = next;
    }
    if total.is_finite() { total + error } else { total }
}

/// Sum of the exact products of the pairs; a product enters as its rounded value and its rounding error.
pub(super) fn dot(pairs: impl IntoIterator<Item = (f64, f64)>) -> f64 {
    sum(pairs.into_iter().flat_map(|(a, b)| {
        let product = a * b;
        let error = if product.is_finite() { a.mul_add(b, -product) } else { 0.0 };
        [product, error]
    }))
}
