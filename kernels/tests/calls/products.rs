//! Matrix products.

use swath_kernels::{
    Activation, Epilogue, Float, Gemm, GemmError, MatMut, MatRef, PackedB, PackedGemm, Unary,
    Workspace, gemm, gemm_bias, gemm_epilogue, gemm_packed, math,
};

use super::{Call, Cell, Part, call, changed, input, numbers, output};

pub fn calls(len: usize) -> Vec<Call> {
    let mut calls = Vec::new();
    of_real::<f32>(&mut calls, len);
    of_real::<f64>(&mut calls, len);
    calls
}

/// Errors as panics, which a test can compare.
fn must(result: Result<(), GemmError>) {
    result.unwrap_or_else(|error| panic!("{error}"));
}

fn of_real<E: Cell + Float>(calls: &mut Vec<Call>, len: usize)
where
    math::Relu: Unary<E>,
{
    for shape in [[len, 5, 7], [3, len, 9], [2, 6, len]] {
        let [m, k, n]: [usize; 3] = shape;
        let (a, b) = (numbers::<E>(m * k, 1), numbers::<E>(k * n, 2));
        let (a, b) = (input(&a).at_least(), input(&b).at_least());
        for transposed in 0..4usize {
            let variant = format!("{shape:?} {transposed:02b}");
            let c = changed(&numbers::<E>(m * n, 3)).at_least();
            let run = move |[a, b, c]: [&mut Part<'_>; 3]| {
                must((|| {
                    let (a, b) = matrices(a.of::<E>(), b.of(), shape, transposed)?;
                    let product = Gemm { a, b, alpha: E::ONE, beta: E::from_f64(0.5) };
                    gemm(product, MatMut::row_major(c.of(), [m, n])?, &mut Workspace::new())
                })());
            };
            let slots = [a.clone(), b.clone(), c.clone()];
            calls.push(call::<E, 3>("gemm", &*variant, slots.clone(), run));
            let run = move |[a, b, c]: [&mut Part<'_>; 3]| {
                must((|| {
                    let (a, b) = matrices(a.of::<E>(), b.of(), shape, transposed)?;
                    let mut buffer = Workspace::new();
                    let packed = PackedB::pack(b, &mut buffer);
                    let product =
                        PackedGemm { a, b: &packed, alpha: E::ONE, beta: E::from_f64(0.5) };
                    gemm_packed(product, MatMut::row_major(c.of(), [m, n])?, &mut Workspace::new())
                })());
            };
            calls.push(call::<E, 3>("gemm_packed", &*variant, slots, run).again());
            let bias = input(&numbers::<E>(n, 4));
            let run = move |[a, b, bias, c]: [&mut Part<'_>; 4]| {
                must((|| {
                    let (a, b) = matrices(a.of::<E>(), b.of(), shape, transposed)?;
                    let c = MatMut::row_major(c.of(), [m, n])?;
                    gemm_bias(a, b, bias.of(), c, &mut Workspace::new())
                })());
            };
            let place = || output::<E>(m * n).at_least();
            let slots = [a.clone(), b.clone(), bias.clone(), place()];
            calls.push(call::<E, 4>("gemm_bias", &*variant, slots, run));
            let run = move |[a, b, bias, sums, c]: [&mut Part<'_>; 5]| {
                must((|| {
                    let (a, b) = matrices(a.of::<E>(), b.of(), shape, transposed)?;
                    let sums = Some(MatMut::row_major(sums.of(), [m, n])?);
                    let activation = Some(Activation { function: math::Relu::run_in_place, sums });
                    let epilogue = Epilogue { bias: Some(bias.of()), activation };
                    let c = MatMut::row_major(c.of(), [m, n])?;
                    gemm_epilogue(a, b, epilogue, c, &mut Workspace::new())
                })());
            };
            let slots = [a.clone(), b.clone(), bias, place(), place()];
            calls.push(call::<E, 5>("gemm_epilogue", &*variant, slots, run));
        }
    }
}

/// A and B, row-major or transposed.
fn matrices<'a, E: Float>(
    a: &'a [E],
    b: &'a [E],
    [m, k, n]: [usize; 3],
    transposed: usize,
) -> Result<(MatRef<'a, E>, MatRef<'a, E>), GemmError> {
    let view = |x, [rows, cols]: [usize; 2], transposed| {
        let strides = if transposed { [1, rows as isize] } else { [cols as isize, 1] };
        MatRef::new(x, 0, [rows, cols], strides)
    };
    Ok((view(a, [m, k], transposed & 1 == 1)?, view(b, [k, n], transposed & 2 == 2)?))
}
