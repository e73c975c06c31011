//! Matrix products.

use half::{bf16, f16};
use swath_kernels::{
    Bias, Epilogue, Factor, Float as _, Function, Gemm, GemmError, GemmPath, MatMut, MatRef,
    PackedB, Stored, Workspace, gemm, math,
};

use super::{Call, Cell, Part, call, changed, input, numbers, output};

pub fn calls(len: usize) -> Vec<Call> {
    let mut calls = Vec::new();
    of_factor::<f32>(&mut calls, len);
    of_factor::<f64>(&mut calls, len);
    of_factor::<f16>(&mut calls, len);
    of_factor::<bf16>(&mut calls, len);
    calls
}

/// Turns errors into panics, which a test can compare.
fn must(result: Result<GemmPath, GemmError>) {
    result.unwrap_or_else(|error| panic!("{error}"));
}

fn of_factor<T: Cell + Factor<Sum: Cell>>(calls: &mut Vec<Call>, len: usize)
where
    T::Sum: Stored,
{
    let (alpha, beta) = (T::Sum::ONE, T::Sum::from_f64(0.5));
    for shape in [[len, 5, 7], [3, len, 9], [2, 6, len]] {
        let [m, k, n]: [usize; 3] = shape;
        let (a, b) = (numbers::<T>(m * k, 1), numbers::<T>(k * n, 2));
        let (a, b) = (input(&a).at_least(), input(&b).at_least());
        for transposed in 0..4usize {
            let variant = format!("{shape:?} {transposed:02b}");
            let c = changed(&numbers::<T::Sum>(m * n, 3)).at_least();
            let run = move |[a, b, c]: [&mut Part<'_>; 3]| {
                must((|| {
                    let (a, b) = matrices(a.of::<T>(), b.of(), shape, transposed)?;
                    let product = Gemm { alpha, beta, ..Gemm::new(a, b) };
                    gemm(product, MatMut::row_major(c.of(), [m, n])?, &mut Workspace::new())
                })());
            };
            let slots = [a.clone(), b.clone(), c.clone()];
            calls.push(call::<T, 3>("gemm", &*variant, slots.clone(), run));
            let run = move |[a, b, c]: [&mut Part<'_>; 3]| {
                must((|| {
                    let (a, b) = matrices(a.of::<T>(), b.of(), shape, transposed)?;
                    let mut buffer = Workspace::new();
                    let packed = PackedB::pack(b, &mut buffer);
                    let product = Gemm { alpha, beta, ..Gemm::new(a, &packed) };
                    gemm(product, MatMut::row_major(c.of(), [m, n])?, &mut Workspace::new())
                })());
            };
            calls.push(call::<T, 3>("gemm_packed", &*variant, slots, run).again());
            let bias = input(&numbers::<T::Sum>(n, 4));
            let run = move |[a, b, bias, c]: [&mut Part<'_>; 4]| {
                must((|| {
                    let (a, b) = matrices(a.of::<T>(), b.of(), shape, transposed)?;
                    let c = MatMut::row_major(c.of(), [m, n])?;
                    gemm(
                        Gemm { epilogue: Bias::PerColumn(bias.of()).into(), ..Gemm::new(a, b) },
                        c,
                        &mut Workspace::new(),
                    )
                })());
            };
            let place = || output::<T::Sum>(m * n).at_least();
            let slots = [a.clone(), b.clone(), bias.clone(), place()];
            calls.push(call::<T, 4>("gemm_bias", &*variant, slots, run));
            let run = move |[a, b, bias, sums, c]: [&mut Part<'_>; 5]| {
                must((|| {
                    let (a, b) = matrices(a.of::<T>(), b.of(), shape, transposed)?;
                    let sums = Some(MatMut::row_major(sums.of(), [m, n])?);
                    let function = &|z: &mut [T::Sum]| math::Relu::KERNEL.run_in_place([None], z);
                    let (bias, function) = (Some(Bias::PerColumn(bias.of())), Some(function as _));
                    let epilogue = Epilogue { bias, function, sums };
                    let c = MatMut::row_major(c.of(), [m, n])?;
                    gemm(Gemm { epilogue, ..Gemm::new(a, b) }, c, &mut Workspace::new())
                })());
            };
            let slots = [a.clone(), b.clone(), bias, place(), place()];
            calls.push(call::<T, 5>("gemm_epilogue", &*variant, slots, run));
        }
    }
}

/// A and B, row-major or transposed.
fn matrices<'a, T: Factor>(
    a: &'a [T],
    b: &'a [T],
    [m, k, n]: [usize; 3],
    transposed: usize,
) -> Result<(MatRef<'a, T>, MatRef<'a, T>), GemmError> {
    let view = |x, [rows, cols]: [usize; 2], transposed| {
        let strides = if transposed { [1, rows as isize] } else { [cols as isize, 1] };
        MatRef::new(x, 0, [rows, cols], strides)
    };
    Ok((view(a, [m, k], transposed & 1 == 1)?, view(b, [k, n], transposed & 2 == 2)?))
}
