//! `matmul` and `linear` of tensors by the CPU backend against the reference backend: |error| ≤
//! (k + 2)·u·(|A||B|) for operands of any shape that are views of other tensors; a row alone has the
//! bits of the row in the whole; shapes that do not fit are errors that name them.

#![no_main]

mod input;

use input::Numbers;
use libfuzzer_sys::arbitrary::{self, Unstructured};
use libfuzzer_sys::fuzz_target;
use swath::SliceItem;
use swath::prelude::*;

type T = Tensor<CpuBackend>;
type R = Tensor<ReferenceBackend>;

/// Terms of most inputs' products, which the reference backend adds exactly.
const TERMS: usize = 30_000;

fuzz_target!(|bytes: &[u8]| {
    let mut u = Unstructured::new(bytes);
    let case = Case::new(&mut u).expect("zeros follow the last byte");
    if let Err(error) = case.check() {
        panic!("{case:?}: {error}");
    }
});

/// A tensor as a view of another one.
#[derive(Debug)]
struct View {
    /// Dimensions of the tensor that owns the memory.
    base: Vec<usize>,
    /// Its axes in the order that the view has them in.
    order: Vec<usize>,
    axes: Vec<Walk>,
    dims: Vec<usize>,
    numbers: Numbers,
}

/// How a view goes along an axis of its base.
#[derive(Clone, Copy, Debug)]
enum Walk {
    Whole,
    Flipped,
    /// Every so manyth index, backwards if negative.
    Steps(isize),
    /// A part, from this index on.
    Part(usize),
    /// One index, again and again.
    Repeated,
}

impl View {
    fn new(u: &mut Unstructured<'_>, dims: Vec<usize>) -> arbitrary::Result<View> {
        let (mut axes, mut extents) = (Vec::new(), Vec::new());
        for &dim in &dims {
            let (axis, extent) = match u.int_in_range(0..=9)? {
                0 => (Walk::Flipped, dim),
                1 => {
                    let step = *u.choose(&[2isize, 3, -2])?;
                    let gap = step.unsigned_abs();
                    (Walk::Steps(step), dim * gap - u.int_in_range(0..=gap - 1)?.min(dim))
                }
                2 => {
                    let before = u.int_in_range(0..=3)?;
                    (Walk::Part(before), before + dim + u.int_in_range(0..=3)?)
                }
                3 => (Walk::Repeated, 1),
                _ => (Walk::Whole, dim),
            };
            axes.push(axis);
            extents.push(extent);
        }
        let rank = dims.len();
        let mut order: Vec<usize> = (0..rank).collect();
        match u.int_in_range(0..=4)? {
            0..=1 if rank >= 2 => order.swap(rank - 1, rank - 2),
            2 => (1..rank).try_for_each(|i| {
                order.swap(i, u.int_in_range(0..=i)?);
                Ok(())
            })?,
            _ => {}
        }
        let mut base = vec![0; rank];
        order.iter().zip(extents).for_each(|(&axis, extent)| base[axis] = extent);
        Ok(View { base, order, axes, dims, numbers: Numbers::new(u)? })
    }

    /// The view of a tensor of the shape `base`.
    fn of<B: Backend>(&self, base: &Tensor<B>) -> Result<Tensor<B>> {
        let mut x = base.permute(&self.order)?;
        for (axis, (&view, &dim)) in self.axes.iter().zip(&self.dims).enumerate() {
            x = match view {
                Walk::Whole => x,
                Walk::Flipped => x.flip(axis)?,
                Walk::Steps(step) => {
                    let all = SliceItem::Range { start: None, end: None, step: 1 };
                    let mut items = vec![all; axis];
                    items.push(SliceItem::Range { start: None, end: None, step });
                    x.slice(items)?
                }
                Walk::Part(from) => x.narrow(axis, from, dim)?,
                Walk::Repeated => {
                    let mut dims = x.dims().to_vec();
                    dims[axis] = dim;
                    x.broadcast_to(dims)?
                }
            };
        }
        assert_eq!(x.dims(), self.dims, "{self:?}");
        Ok(x)
    }

    /// The tensor, and the same numbers on the reference backend.
    fn make(&self, dtype: DType) -> Result<(T, R)> {
        let len = self.base.iter().product();
        let numbers: Vec<f64> = self.numbers.clone().take(len).collect();
        let base = T::from_vec(numbers, self.base.clone())?.to_dtype(dtype)?;
        let rounded = base.to_dtype(DType::F64)?.to_vec::<f64>()?;
        let reference = R::from_vec(rounded, self.base.clone())?;
        Ok((self.of(&base)?, self.of(&reference)?))
    }
}

#[derive(Debug)]
enum Call {
    Matmul,
    Linear,
    /// With a bias.
    Biased(View),
}

#[derive(Debug)]
struct Case {
    dtype: DType,
    call: Call,
    a: View,
    b: View,
}

impl Case {
    fn new(u: &mut Unstructured<'_>) -> arbitrary::Result<Case> {
        let dtype = *u.choose(&[DType::F32, DType::F64, DType::F16, DType::BF16])?;
        let call = u.int_in_range(0..=3)?;
        let mut batch = Vec::new();
        for _ in 0..[0, 0, 1, 1, 2, 3][u.int_in_range(0..=5)?] {
            batch.push([2, 1, 3, 5, 0, 9][u.int_in_range(0..=5)?]);
        }
        let most = TERMS / batch.iter().product::<usize>().max(1);
        let [m, n, mut k] = input::extents(u, most)?;
        let mut dims = |own: [usize; 2]| -> arbitrary::Result<Vec<usize>> {
            let from = u.int_in_range(0..=batch.len())?;
            let mut dims = batch[if u.ratio(1, 3)? { from } else { 0 }..].to_vec();
            for dim in &mut dims {
                if u.ratio(1, 4)? {
                    *dim = 1;
                }
            }
            dims.extend(own);
            // A vector, or a lone number.
            let cut = if u.ratio(1, 16)? { u.int_in_range(0..=dims.len())? } else { 0 };
            Ok(dims.split_off(cut))
        };
        let a = dims([m, k])?;
        let b = match call {
            0..=1 => dims([k, n])?,
            _ => vec![n, k],
        };
        let (mut a, mut b) = (a, b);
        // Something that does not fit, perhaps.
        if u.ratio(1, 8)? {
            let dims = if u.arbitrary::<bool>()? { &mut a } else { &mut b };
            if let Some(dim) = dims.last_mut() {
                *dim += 1;
                k += 1;
            }
        }
        let bias = if u.ratio(1, 16)? { k } else { b.first().copied().unwrap_or(k) };
        let (a, b) = (View::new(u, a)?, View::new(u, b)?);
        let call = match call {
            0..=1 => Call::Matmul,
            2 => Call::Linear,
            _ => Call::Biased(View::new(u, vec![bias])?),
        };
        Ok(Case { dtype, call, a, b })
    }

    /// The shape of the result, if the operands fit.
    fn expected_dims(&self) -> Option<Vec<usize>> {
        let (a, b) = (&self.a.dims, &self.b.dims);
        if !matches!(self.call, Call::Matmul) {
            let (&k, lead) = a.split_last()?;
            let fits = b.len() == 2 && b[1] == k;
            let bias_fits = !matches!(&self.call, Call::Biased(bias) if bias.dims != [b[0]]);
            return (fits && bias_fits).then(|| [lead, &[b[0]]].concat());
        }
        let (a_lead, a_own) = a.split_at(a.len().saturating_sub(2));
        let (b_lead, b_own) = b.split_at(b.len().saturating_sub(2));
        let rows = &a_own[..a_own.len().checked_sub(1)?];
        let (inner, columns) = match *b_own {
            [k] => (k, &[][..]),
            [k, _] => (k, &b_own[1..]),
            _ => return None,
        };
        let batch = (1..=a_lead.len().max(b_lead.len())).rev().map(|back| {
            let at = |lead: &[usize]| lead.len().checked_sub(back).map_or(1, |axis| lead[axis]);
            match (at(a_lead), at(b_lead)) {
                (x, y) if x == y || y == 1 => Some(x),
                (1, y) => Some(y),
                _ => None,
            }
        });
        let batch: Vec<usize> = batch.collect::<Option<_>>()?;
        (inner == *a_own.last()?).then(|| [&batch, rows, columns].concat())
    }

    fn run<B: Backend>(
        &self,
        a: &Tensor<B>,
        b: &Tensor<B>,
        bias: Option<&Tensor<B>>,
    ) -> Result<Tensor<B>> {
        match self.call {
            Call::Matmul => a.matmul(b),
            Call::Linear | Call::Biased(_) => a.linear(b, bias),
        }
    }

    fn check(&self) -> Result<()> {
        let (a, a_wide) = self.a.make(self.dtype)?;
        let (b, b_wide) = self.b.make(self.dtype)?;
        let biases = match &self.call {
            Call::Biased(bias) => Some(bias.make(self.dtype)?),
            _ => None,
        };
        let (bias, bias_wide) = biases.unzip();
        let result = self.run(&a, &b, bias.as_ref());
        let expected = self.run(&a_wide, &b_wide, bias_wide.as_ref());
        let Some(dims) = self.expected_dims() else {
            return self.check_errors([result.err(), expected.err()]);
        };
        let (result, expected) = (result?, expected?);
        assert_eq!((result.dims(), result.dtype()), (&*dims, self.dtype), "{self:?}");
        assert_eq!(expected.dims(), dims, "{self:?}");
        self.check_values(&result, &expected, [&a_wide, &b_wide], bias_wide.as_ref())?;
        if swath::blas::info().provider == "embedded" {
            self.check_row(&result, &a, &b, bias.as_ref())?;
        }
        Ok(())
    }

    /// Both backends tell the operation and the shapes that do not fit, with one voice.
    fn check_errors(&self, errors: [Option<Error>; 2]) -> Result<()> {
        for error in errors {
            let Some(Error::ShapeMismatch { op, lhs, rhs }) = error else {
                panic!("{self:?}: {error:?} instead of an error of shapes");
            };
            let (a, b) = (&*self.a.dims, &*self.b.dims);
            match &self.call {
                Call::Biased(bias) if (lhs.dims(), rhs.dims()) == (b, &*bias.dims) => {}
                _ => assert_eq!((lhs.dims(), rhs.dims()), (a, b), "{self:?}"),
            }
            assert_eq!(op, if matches!(self.call, Call::Matmul) { "matmul" } else { "linear" });
        }
        Ok(())
    }

    fn check_values(
        &self,
        result: &T,
        expected: &R,
        [a, b]: [&R; 2],
        bias: Option<&R>,
    ) -> Result<()> {
        // Unit roundoffs of the sums and of the result.
        let (u, rounding) = match self.dtype {
            DType::F64 => (f64::EPSILON / 2.0, 0.0),
            DType::F32 => (f64::from(f32::EPSILON) / 2.0, 0.0),
            DType::F16 => (f64::from(f32::EPSILON) / 2.0, 2f64.powi(-11)),
            _ => (f64::from(f32::EPSILON) / 2.0, 2f64.powi(-8)),
        };
        let k = self.a.dims.last().copied().unwrap_or_default() as f64;
        let bias = bias.map(|bias| bias.abs()).transpose()?;
        let (a, b) = (a.abs()?, b.abs()?);
        let size = self.run(&a, &b, bias.as_ref())?.to_vec::<f64>()?;
        let expected = expected.to_vec::<f64>()?;
        let result = result.to_dtype(DType::F64)?.to_vec::<f64>()?;
        for (i, (&got, &expected)) in result.iter().zip(&expected).enumerate() {
            let agree = if !size[i].is_finite() {
                got.is_nan() && expected.is_nan() || got == expected
            } else if size[i] > self.largest() {
                true
            } else {
                let bound = ((k + 2.0) * u + 1.01 * rounding) * size[i] + self.smallest();
                (got - expected).abs() <= bound
            };
            assert!(agree, "{self:?}: element {i} is {got}, not {expected}");
        }
        Ok(())
    }

    /// Sums up to here cannot overflow.
    fn largest(&self) -> f64 {
        match self.dtype {
            DType::F16 => 60_000.0,
            DType::F64 => f64::MAX / 2.0,
            _ => f64::from(f32::MAX) / 2.0,
        }
    }

    /// What roundings below the normal numbers add.
    fn smallest(&self) -> f64 {
        match self.dtype {
            DType::F16 => 2f64.powi(-23),
            DType::F64 => 1e-300,
            _ => 1e-37,
        }
    }

    /// The last row of A alone.
    fn check_row(&self, result: &T, a: &T, b: &T, bias: Option<&T>) -> Result<()> {
        let (rank, matrices) = (a.rank(), b.rank() == 2 && a.rank() >= 2);
        if !matrices || result.numel() == 0 {
            return Ok(());
        }
        let last = |x: &T| -> Result<T> {
            (0..rank - 1).try_fold(x.clone(), |x, axis| x.narrow(axis, x.dims()[axis] - 1, 1))
        };
        let alone = self.run(&last(a)?, b, bias)?;
        let bits = |x: &T| -> Result<Vec<u64>> {
            let one_nan = |x: f64| if x.is_nan() { f64::NAN } else { x }.to_bits();
            Ok(x.to_dtype(DType::F64)?.to_vec::<f64>()?.into_iter().map(one_nan).collect())
        };
        assert_eq!(bits(&alone)?, bits(&last(result)?)?, "{self:?}: the last row alone");
        Ok(())
    }
}
