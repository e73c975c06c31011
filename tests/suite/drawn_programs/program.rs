//! A program drawn from bytes. After each step the reference backend gets the CPU's values, so that differences
//! do not add up, and the CPU keeps its own layout.

use std::panic::{AssertUnwindSafe, catch_unwind};

use swath::Scalar;
use swath::prelude::*;

use super::calls::{CALLS, Call, Close, DTYPES, Others, Params};
use super::draw::Draw;

type T = Tensor<CpuBackend>;
type R = Tensor<ReferenceBackend>;

/// Elements of a program's tensors: what is larger is dropped.
const MAX_NUMEL: usize = 2000;

/// What the programs so far have computed.
#[derive(Debug)]
pub struct Seen {
    pub values: usize,
    pub errors: usize,
    /// Results of each row.
    rows: Vec<usize>,
}

impl Default for Seen {
    fn default() -> Self {
        Seen { values: 0, errors: 0, rows: vec![0; CALLS.len()] }
    }
}

impl Seen {
    /// Names of the rows that were never computed.
    #[allow(dead_code, reason = "the fuzz target does not count")]
    pub fn without_a_value(&self) -> Vec<&'static str> {
        let draw = Params::new(&mut Draw(&[]), &[]);
        let missing = self.rows.iter().zip(CALLS).filter(|(count, _)| **count == 0);
        missing.map(|(_, call)| (call.name)(&draw)).collect()
    }
}

/// Runs the program that the bytes describe.
pub fn run(bytes: &[u8], seen: &mut Seen) {
    let mut draw = Draw(bytes);
    let mut tensors: Vec<T> = Vec::new();
    for _ in 0..3 {
        let (dtype, dims) = (draw.choose(&DTYPES), draw.dims());
        let x = new(&mut draw, dtype, &dims);
        tensors.push(if draw.once_in(4) { x.requires_grad() } else { x });
    }
    for _ in 0..6 {
        let row = draw.below(CALLS.len());
        let x = match (CALLS[row].others.image_axes(), draw.once_in(4)) {
            (Some(axes), false) => {
                let dtype = draw.choose(&[DType::F32, DType::F64, DType::BF16]);
                let dims: Vec<usize> =
                    (0..axes + 2).map(|_| draw.choose(&[2, 4, 1, 3, 6])).collect();
                new(&mut draw, dtype, &dims)
            }
            _ => tensors[draw.below(tensors.len())].clone(),
        };
        let params = Params::new(&mut draw, x.dims());
        let (a, b) = others(&mut draw, CALLS[row].others, &x, &params, &tensors);
        let operands = [&x, &a, &b];
        match step(&CALLS[row], &operands, &params) {
            Ok(results) => {
                seen.values += 1;
                seen.rows[row] += 1;
                tensors.extend(results.into_iter().filter(|y| y.numel() <= MAX_NUMEL));
            }
            Err(()) => seen.errors += 1,
        }
    }
    for y in &tensors {
        differentiate(y, &tensors[..3]);
    }
}

/// A tensor of drawn values, sometimes a view.
fn new(draw: &mut Draw<'_>, dtype: DType, dims: &[usize]) -> T {
    let values = draw.values(dtype, dims.iter().product()).expect("a vector of values");
    let x = values.reshape(dims).expect("as many elements");
    let view = match draw.below(4) {
        0 if x.rank() >= 2 => x.t().and_then(|x| x.contiguous()).and_then(|x| x.t()),
        1 if x.rank() >= 1 => x.flip(0).and_then(|x| x.contiguous()).and_then(|x| x.flip(0)),
        _ => Ok(x),
    };
    view.expect("a view of the same shape")
}

/// The second and third operand.
fn others(draw: &mut Draw<'_>, kind: Others, x: &T, params: &Params, tensors: &[T]) -> (T, T) {
    let (dtype, dims) = (x.dtype(), x.dims());
    if draw.once_in(8) {
        let mut any = || tensors[draw.below(tensors.len())].clone();
        return (any(), any());
    }
    let like = |draw: &mut Draw<'_>| {
        let mut dims = dims.to_vec();
        for dim in &mut dims {
            if draw.once_in(8) {
                *dim = 1;
            }
        }
        new(draw, dtype, &dims)
    };
    let axis = (params.axis.rem_euclid(dims.len().max(1) as isize)) as usize;
    let extent = dims.get(axis).copied().unwrap_or(1).min(100);
    let indices = |draw: &mut Draw<'_>, dims: &[usize]| {
        let last = extent + usize::from(draw.once_in(10));
        let values =
            (0..dims.iter().product()).map(|_| draw.below(last) as i64).collect::<Vec<_>>();
        T::from_vec(values, dims).expect("as many elements")
    };
    match kind {
        Others::Like => (like(draw), like(draw)),
        Others::Mask => (new(draw, DType::Bool, dims), like(draw)),
        Others::Places => {
            let mut dims = dims.to_vec();
            if let Some(dim) = dims.get_mut(axis) {
                *dim = draw.below(5);
            }
            (indices(draw, &dims), new(draw, dtype, &dims))
        }
        Others::Indices => {
            let len = if draw.once_in(2) { extent } else { draw.below(5) };
            (indices(draw, &[len]), like(draw))
        }
        Others::Classes => {
            let rows = &dims[..dims.len().saturating_sub(1)];
            let classes = dims.last().copied().unwrap_or(1);
            let values =
                (0..rows.iter().product()).map(|_| draw.below(classes) as i64).collect::<Vec<_>>();
            (T::from_vec(values, rows).expect("as many elements"), like(draw))
        }
        Others::Images1 | Others::Images2 => {
            let channels = dims.get(1).copied().unwrap_or(1);
            let mut filters = vec![draw.below(4), channels / params.sizes[2].clamp(1, 64)];
            filters.extend(dims.iter().skip(2).map(|_| draw.choose(&[2, 1, 3, 0])));
            (new(draw, dtype, &filters), like(draw))
        }
        Others::Weight | Others::Filter => {
            let (k, n) = (dims.last().copied().unwrap_or(1), draw.below(5));
            let matrix = if kind == Others::Weight { [k, n] } else { [n, k] };
            (new(draw, dtype, &matrix), new(draw, dtype, &[n]))
        }
    }
}

/// Runs a call on both backends and compares.
fn step(call: &Call, operands: &[&T; 3], params: &Params) -> Result<Vec<T>, ()> {
    let name = (call.name)(params);
    let context = || {
        let shapes = operands.map(|x| format!("{} {:?}", x.dtype(), x.layout()));
        format!("{name} of {shapes:?} with {params:?}")
    };
    let ran = catch_unwind(AssertUnwindSafe(|| (call.cpu)(operands, params)));
    let got = ran.unwrap_or_else(|_| panic!("{} panicked", context()));
    let moved = operands.map(|x| x.detach().to_backend::<ReferenceBackend>().expect("a copy"));
    let want = (call.reference)(&[&moved[0], &moved[1], &moved[2]], params);
    match (got, want) {
        (Ok(got), Ok(want)) => {
            assert_eq!(got.len(), want.len(), "{}", context());
            for (got, want) in got.iter().zip(&want) {
                if let Err(difference) = compare(got, want, call.close, operands) {
                    panic!("{}: {difference}", context());
                }
            }
            Ok(got)
        }
        (Err(got), Err(want)) => {
            let text = got.to_string();
            assert!(text.starts_with(name), "{}: the error does not name it: {text}", context());
            let kinds = [&got, &want].map(std::mem::discriminant);
            assert_eq!(kinds[0], kinds[1], "{}: {got}; the reference: {want}", context());
            Err(())
        }
        (Ok(_), Err(want)) => panic!("{}: no error, but the reference's: {want}", context()),
        (Err(got), Ok(_)) => panic!("{}: an error: {got}", context()),
    }
}

/// Compares shape, dtype and values.
fn compare(got: &T, want: &R, close: Close, operands: &[&T; 3]) -> Result<(), String> {
    if got.shape() != want.shape() || got.dtype() != want.dtype() {
        let (got, want) = ((got.shape(), got.dtype()), (want.shape(), want.dtype()));
        return Err(format!("expected {want:?}, got {got:?}"));
    }
    if close == Close::Any {
        return Ok(());
    }
    let (got, want) = (CpuBackend::to_host(got.data()), ReferenceBackend::to_host(want.data()));
    let (got, want) = (got.expect("values"), want.expect("values"));
    let dtype = got.dtype();
    let (unit, largest) = match dtype {
        DType::F16 => (2f64.powi(-11), 65504.0),
        DType::BF16 => (2f64.powi(-8), 3.39e38),
        DType::F32 => (2f64.powi(-24), f64::from(f32::MAX)),
        _ => (2f64.powi(-53), f64::MAX),
    };
    // The largest finite value of an operand, and how many there are.
    let (mut scale, mut count) = (1.0f64, 1.0f64);
    for x in operands {
        let values = x.to_dtype(DType::F64).and_then(|x| x.to_vec::<f64>()).expect("values");
        count = count.max(values.len() as f64);
        scale = values.iter().map(|x| x.abs()).filter(|x| x.is_finite()).fold(scale, f64::max);
    }
    let error = match close {
        Close::Exact | Close::Any => 0.0,
        Close::Elements => 16.0 * unit,
        Close::Sums => 16.0 * unit * (count + 4.0),
    };
    for i in 0..got.len() {
        let (got, want) = (got.get(i).expect("an element"), want.get(i).expect("an element"));
        let (Scalar::Float(got), Scalar::Float(want)) = (got, want) else {
            if got != want {
                return Err(format!("element {i}: expected {want}, got {got}"));
            }
            continue;
        };
        if got == want || got.is_nan() && want.is_nan() {
            continue;
        }
        // Beyond these, the order of operations decides between overflow and a number.
        if close == Close::Sums && scale * scale * count > largest / 4.0 {
            continue;
        }
        let near_overflow = got.abs().min(want.abs()) > 0.99 * largest;
        let allowed =
            error * want.abs().max(if close == Close::Sums { scale * scale } else { scale });
        let is_near = (got - want).abs() <= allowed;
        if !near_overflow && !is_near {
            return Err(format!(
                "element {i}: expected {want:e}, got {got:e}; allowed {allowed:e}"
            ));
        }
    }
    Ok(())
}

/// Differentiates a result: each of the leaves that it depends on has a gradient of its shape.
fn differentiate(y: &T, leaves: &[T]) {
    if !y.is_tracked() || !y.dtype().is_float() {
        return;
    }
    let options = Backward { retain_graph: true, ..Backward::default() };
    let run = catch_unwind(AssertUnwindSafe(|| y.sum(None, false)?.backward_opts(options)));
    let gradients = match run {
        Ok(Ok(gradients)) => gradients,
        Ok(Err(error)) => panic!("backward of {y:?}: {error}"),
        Err(_) => panic!("backward of {y:?} panicked"),
    };
    for leaf in leaves.iter().filter(|leaf| leaf.is_tracked()) {
        if let Some(gradient) = gradients.get(leaf) {
            assert_eq!(gradient.shape(), leaf.shape(), "gradient of {y:?}");
            assert_eq!(gradient.dtype(), leaf.dtype(), "gradient of {y:?}");
        }
    }
}
