//! Sums in twice the precision of `f64`, rounded once at the end.

/// Sum of the terms, starting from 0 (Neumaier: what each addition rounds away is summed apart).
///
/// An infinite or NaN total is the one that plain addition gives.
pub(super) fn sum(terms: impl IntoIterator<Item = f64>) -> f64 {
    let (mut total, mut lost) = (0.0f64, 0.0);
    for term in terms {
        let next = total + term;
        lost += match total.abs() >= term.abs() {
            true => (total - next) + term,
            false => (term - next) + total,
        };
        total = next;
    }
    if total.is_finite() { total + lost } else { total }
}

/// Sum of the products of the pairs, each product taken exactly: rounded, plus what rounding lost.
pub(super) fn dot(pairs: impl IntoIterator<Item = (f64, f64)>) -> f64 {
    sum(pairs.into_iter().flat_map(|(a, b)| {
        let product = a * b;
        let lost = if product.is_finite() { a.mul_add(b, -product) } else { 0.0 };
        [product, lost]
    }))
}
