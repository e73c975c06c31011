// Functions of reductions that depend on the number of elements or on the parameter.
// The magnitude that dominates a p-norm: the smaller one for negative p.
fn further(x: f32, y: f32) -> f32 {
    if bitcast<f32>(p.parameter) < 0.0 { return smaller(x, y); }
    return larger(x, y);
}

fn mean_of(sum: vec2<f32>) -> vec2<f32> { return quotient_of(sum, f32(p.elements)); }

// The number of elements minus ddof, at least 0.
fn degrees() -> f32 { return f32(max(p.elements, p.parameter) - p.parameter); }

// The norm, or the extreme magnitude if that is 0, infinite or NaN and so determines the norm.
fn edge_or(extreme: f32, norm: f32) -> f32 {
    if p.elements == 0u { return norm; }
    if extreme == 0.0 || is_infinite(extreme) || is_nan(extreme) { return extreme; }
    return norm;
}
