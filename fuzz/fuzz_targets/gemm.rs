//! Products of any matrices by the kernels, on every instruction set, against their definition: bit for
//! bit, and no element read or written that is none of theirs.

#![no_main]

mod input;

use std::collections::BTreeSet;

use half::{bf16, f16};
use input::Numbers;
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use swath_kernels::Function as _;
use swath_kernels::dispatch::with_isa;
use swath_kernels::math::{Gelu, Sigmoid};
use swath_kernels::{
    Bias, Epilogue, Factor, Float, Gemm, GemmError, GemmPath, Isa, MatMut, MatRef, PackedB,
    Workspace, gemm,
};

fuzz_target!(|bytes: &[u8]| {
    let mut u = Unstructured::new(bytes);
    // Bytes that end early make an input too: zeros follow.
    let done = match u.int_in_range(0..=12) {
        Ok(0) => views(&mut u),
        Ok(1..=5) => product::<f32>(&mut u),
        Ok(6..=7) => product::<f16>(&mut u),
        Ok(8..=9) => product::<bf16>(&mut u),
        _ => product::<f64>(&mut u),
    };
    done.expect("zeros follow the last byte");
});

/// Views are accepted if each of their elements is in memory, and outputs only if no two are one.
fn views(u: &mut Unstructured<'_>) -> Result<()> {
    let mut data = [0f32; 40];
    let len = u.int_in_range(0..=40)?;
    let mut number = || -> Result<isize> {
        let far = [isize::MAX, isize::MIN, isize::MAX / 2, isize::MIN + 1];
        Ok(if u.ratio(1, 16)? { *u.choose(&far)? } else { isize::from(u.arbitrary::<i8>()?) % 12 })
    };
    let offset = number()?.unsigned_abs();
    let (shape, strides) = ([number()?, number()?], [number()?, number()?]);
    let shape = shape.map(|extent| extent.unsigned_abs() % 7);
    let indices: Vec<i128> = (0..shape[0] * shape[1])
        .map(|at| [at / shape[1], at % shape[1]].map(|i| i as i128))
        .map(|[i, j]| offset as i128 + i * strides[0] as i128 + j * strides[1] as i128)
        .collect();
    let inside = indices.iter().all(|index| (0..len as i128).contains(index));
    let distinct = indices.iter().collect::<BTreeSet<_>>().len() == indices.len();
    let read = MatRef::new(&data[..len], offset, shape, strides).map(|_| ());
    let written = MatMut::new(&mut data[..len], offset, shape, strides).map(|_| ());
    let outside = GemmError::OutOfBounds { offset, shape, strides, len };
    assert_eq!(read, if inside { Ok(()) } else { Err(outside.clone()) });
    match written {
        Ok(()) => assert!(inside && distinct, "{shape:?} {strides:?}"),
        Err(GemmError::Overlap { .. }) => assert!(inside, "{shape:?} {strides:?}"),
        Err(error) => assert!(!inside && error == outside, "{error}"),
    }
    Ok(())
}

/// What matrices hold.
trait Number: Factor {
    fn nearest(x: f64) -> Self;
}

macro_rules! numbers {
    ($($t:ident $nearest:path;)*) => {$(
        impl Number for $t {
            fn nearest(x: f64) -> Self {
                $nearest(x)
            }
        }
    )*};
}
numbers! {
    f16 f16::from_f64;
    bf16 bf16::from_f64;
    f32 Float::from_f64;
    f64 Float::from_f64;
}

/// What products are sums of.
trait Sum: Number<Sum = Self> + Float {
    /// Functions of each element alone.
    const FUNCTIONS: [fn(&mut [Self]); 3];
}

macro_rules! sums {
    ($($t:ident)*) => {$(
        impl Sum for $t {
            const FUNCTIONS: [fn(&mut [$t]); 3] =
                [|z| Gelu::KERNEL.run_in_place([None], z), |z| Sigmoid::KERNEL.run_in_place([None], z), count];
        }
    )*};
}
sums!(f32 f64);

/// Makes numbers of NaNs too, so that memory between elements tells where it was applied.
fn count<E: Float>(values: &mut [E]) {
    for x in values {
        *x = if is_nan(*x) { E::ONE } else { *x + E::ONE };
    }
}

/// A matrix in memory that holds NaN where it has no element.
#[derive(Clone)]
struct Matrix<T> {
    data: Vec<T>,
    offset: usize,
    shape: [usize; 2],
    strides: [isize; 2],
}

impl<T: Number> Matrix<T> {
    fn new(u: &mut Unstructured<'_>, shape: [usize; 2], is_output: bool) -> Result<Self> {
        let inner_is_rows = u.arbitrary::<bool>()?;
        let [inner, outer] = if inner_is_rows { shape } else { [shape[1], shape[0]] };
        let inner_stride: isize = match u.int_in_range(0..=7)? {
            0 => u.int_in_range(2..=4)?,
            1 => u.int_in_range(-3..=-1)?,
            2 if !is_output => 0,
            _ => 1,
        };
        let row = inner.max(1) as isize * inner_stride.abs().max(1);
        let outer_stride = match u.int_in_range(0..=7)? {
            0 => -row,
            1 if !is_output => 0,
            // Elements that several rows share.
            2 if !is_output => u.int_in_range(-2..=2)?,
            3..=4 => row + u.int_in_range(1..=20)?,
            _ => row,
        };
        let (down, right) =
            if inner_is_rows { (inner_stride, outer_stride) } else { (outer_stride, inner_stride) };
        let reach = |extent: usize, stride: isize| (extent as isize - 1).max(0) * stride;
        let reaches = [reach(inner, inner_stride), reach(outer, outer_stride)];
        let low: isize = reaches.iter().map(|reach| reach.min(&0)).sum();
        let high: isize = reaches.iter().map(|reach| reach.max(&0)).sum();
        let (before, after) = (u.int_in_range(0..=3)?, u.int_in_range(0..=3)?);
        let len = (high - low) as usize + 1 + before + after;
        let mut matrix = Matrix {
            data: vec![T::nearest(f64::NAN); len],
            offset: before + low.unsigned_abs(),
            shape,
            strides: [down, right],
        };
        let mut numbers = Numbers::new(u)?;
        for (i, j) in matrix.elements() {
            let index = matrix.index(i, j);
            matrix.data[index] = T::nearest(numbers.next().expect("numbers do not end"));
        }
        Ok(matrix)
    }

    /// With NaN for its elements too.
    fn empty(u: &mut Unstructured<'_>, shape: [usize; 2]) -> Result<Self> {
        let mut matrix = Matrix::new(u, shape, true)?;
        matrix.data.fill(T::nearest(f64::NAN));
        Ok(matrix)
    }

    fn elements(&self) -> impl Iterator<Item = (usize, usize)> + use<T> {
        let [rows, cols] = self.shape;
        (0..rows).flat_map(move |i| (0..cols).map(move |j| (i, j)))
    }

    fn index(&self, i: usize, j: usize) -> usize {
        let [down, right] = self.strides;
        (self.offset as isize + i as isize * down + j as isize * right) as usize
    }

    fn at(&self, i: usize, j: usize) -> T::Sum {
        self.data[self.index(i, j)].widened()
    }

    fn view(&self) -> MatRef<'_, T> {
        MatRef::new(&self.data, self.offset, self.shape, self.strides).expect("a view")
    }

    fn view_mut(&mut self) -> std::result::Result<MatMut<'_, T>, GemmError> {
        MatMut::new(&mut self.data, self.offset, self.shape, self.strides)
    }

    fn describe(&self) -> String {
        format!("{:?} strides {:?} at {}", self.shape, self.strides, self.offset)
    }
}

/// How a product is called.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Call {
    Gemm,
    Packed,
    Epilogue,
}

/// What is done to the elements of a product.
#[derive(Clone)]
struct After<E> {
    bias: Option<Vec<E>>,
    /// Which of [`Sum::FUNCTIONS`].
    function: Option<usize>,
    /// What the function is given.
    sums: Option<Matrix<E>>,
}

impl<E: Sum> After<E> {
    const NOTHING: Self = After { bias: None, function: None, sums: None };

    fn new(u: &mut Unstructured<'_>, [m, n]: [usize; 2]) -> Result<Self> {
        let mut after = Self::NOTHING;
        if u.arbitrary::<bool>()? {
            after.bias = Some(Numbers::new(u)?.map(E::nearest).take(n).collect());
        }
        if !u.ratio(1, 4)? {
            after.function = Some(u.choose_index(E::FUNCTIONS.len())?);
            after.sums = u.arbitrary::<bool>()?.then(|| Matrix::empty(u, [m, n])).transpose()?;
        }
        Ok(after)
    }

    fn describe(&self) -> String {
        let (has_bias, sums) = (self.bias.is_some(), self.sums.as_ref().map(Matrix::describe));
        format!("bias {has_bias}, function {:?}, sums {sums:?}", self.function)
    }
}

/// Equal, or both NaN; zeros with their signs.
fn same<E: Float>(x: E, y: E) -> bool {
    x == y && E::ONE / x == E::ONE / y || is_nan(x) && is_nan(y)
}

fn is_nan<E: Float>(x: E) -> bool {
    x.to_f64().is_nan()
}

/// Element (i, j) of A·B in the order that the product's definition states.
fn definition<T: Number>(a: &Matrix<T>, b: &Matrix<T>, i: usize, j: usize) -> T::Sum {
    let k = a.shape[1];
    let mut ab = T::Sum::ZERO;
    for from in (0..k).step_by(256) {
        let chain = (from..k.min(from + 256))
            .fold(T::Sum::ZERO, |chain, p| a.at(i, p).mul_add(b.at(p, j), chain));
        ab = if from == 0 { chain } else { ab + chain };
    }
    ab
}

/// The elements are these, and what lies between them is as it was.
fn check<E: Sum>(c: &Matrix<E>, expected: &[E], at: impl Fn() -> String) {
    let mut changed = c.data.clone();
    for ((i, j), &expected) in c.elements().zip(expected) {
        let got = c.data[c.index(i, j)];
        assert!(same(got, expected), "{}: ({i}, {j}) is {got:?}, not {expected:?}", at());
        changed[c.index(i, j)] = E::NAN;
    }
    assert!(changed.iter().all(|&x| is_nan(x)), "{}: memory between elements", at());
}

fn product<T: Number<Sum: Sum>>(u: &mut Unstructured<'_>) -> Result<()> {
    let [m, n, k] = input::extents(u, 400_000)?;
    let mut a = Matrix::<T>::new(u, [m, k], false)?;
    let mut b = Matrix::<T>::new(u, [k, n], false)?;
    let mut old = Matrix::<T::Sum>::new(u, [m, n], true)?;
    let call = *u.choose(&[Call::Gemm, Call::Packed, Call::Epilogue, Call::Epilogue])?;
    let (mut alpha, mut beta, mut after) = (T::Sum::ONE, T::Sum::ZERO, After::NOTHING);
    if call == Call::Epilogue {
        after = After::new(u, [m, n])?;
    } else {
        alpha = T::Sum::from_f64(*u.choose(&[1.0, 0.0, -1.0, 0.5, 1.7])?);
        beta = T::Sum::from_f64(*u.choose(&[0.0, 1.0, -0.3])?);
    }
    // What is not to be read would be seen in the result.
    if beta == T::Sum::ZERO {
        old.data.fill(T::Sum::NAN);
    }
    if alpha == T::Sum::ZERO {
        a.data.fill(T::nearest(f64::NAN));
        b.data.fill(T::nearest(f64::NAN));
    }
    let is_nothing = alpha == T::Sum::ZERO || a.shape[1] == 0;
    let sums: Vec<T::Sum> = old
        .elements()
        .map(|(i, j)| {
            let ab = definition(&a, &b, i, j);
            match &after.bias {
                Some(bias) => ab + bias[j],
                None if is_nothing && beta == T::Sum::ZERO => T::Sum::ZERO,
                None if is_nothing => beta * old.at(i, j),
                None if beta == T::Sum::ZERO => alpha * ab,
                None => alpha.mul_add(ab, beta * old.at(i, j)),
            }
        })
        .collect();
    let mut expected = sums.clone();
    if let Some(function) = after.function {
        T::Sum::FUNCTIONS[function](&mut expected);
    }

    for isa in Isa::ALL {
        let (mut c, mut after) = (old.clone(), after.clone());
        let ran = with_isa(isa, || {
            run(&a, &b, (alpha, beta), &mut after, &mut c, call).expect("operands fit");
            // Products of no elements run no kernel.
            swath_kernels::neg(&[0f32], &mut [0f32]);
        });
        if ran.is_none() {
            // This machine lacks the level.
            continue;
        }
        let at = || {
            let ([a, b], c) = ([&a, &b].map(Matrix::describe), c.describe());
            let after = after.describe();
            format!("{isa} {call:?}: A {a}, B {b}, C {c}, alpha {alpha:?}, beta {beta:?}, {after}")
        };
        check(&c, &expected, at);
        if let Some(kept) = &after.sums {
            check(kept, &sums, || format!("the sums of {}", at()));
        }
    }
    Ok(())
}

fn run<T: Number<Sum: Sum>>(
    a: &Matrix<T>,
    b: &Matrix<T>,
    (alpha, beta): (T::Sum, T::Sum),
    after: &mut After<T::Sum>,
    c: &mut Matrix<T::Sum>,
    call: Call,
) -> std::result::Result<GemmPath, GemmError> {
    let c = c.view_mut()?;
    let (a, b) = (a.view(), b.view());
    let workspace = &mut used(a.shape(), b.shape());
    match call {
        Call::Gemm => gemm(Gemm { alpha, beta, ..Gemm::new(a, b) }, c, workspace),
        Call::Packed => {
            let buffer = &mut used(a.shape(), b.shape());
            let b = &PackedB::pack(b, buffer);
            gemm(Gemm { alpha, beta, ..Gemm::new(a, b) }, c, workspace)
        }
        Call::Epilogue => {
            let sums = after.sums.as_mut().map(Matrix::view_mut).transpose()?;
            let function = after.function.map(|function| T::Sum::FUNCTIONS[function]);
            let function = function.as_ref().map(|function| function as _);
            let bias = after.bias.as_deref().map(Bias::PerColumn);
            let epilogue = Epilogue { bias, function, sums };
            gemm(Gemm { epilogue, ..Gemm::new(a, b) }, c, workspace)
        }
    }
}

/// A workspace; if the product is small, one in which another product has left NaNs.
fn used<E: Float + Factor<Sum = E>>([m, k]: [usize; 2], [_, n]: [usize; 2]) -> Workspace<E> {
    let mut workspace = Workspace::new();
    if m * k * n <= 20_000 {
        let nan = [E::NAN];
        let of = |shape| MatRef::new(&nan, 0, shape, [0, 0]).expect("one element for all");
        let mut c = vec![E::NAN; m * n];
        let c = MatMut::row_major(&mut c, [m, n]).expect("a view");
        let product = Gemm { beta: E::ONE, ..Gemm::new(of([m, k]), of([k, n])) };
        gemm(product, c, &mut workspace).expect("operands fit");
    }
    workspace
}
