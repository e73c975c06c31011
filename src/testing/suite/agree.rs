//! Comparison of a backend's results with the reference backend's.

use std::collections::HashMap;

use crate::testing::suite::Tested;
use crate::testing::suite::ulp::ulp_distance;
use swath::{Backend, DType, Error, HostData, ReferenceBackend, Result, Scalar, TensorData};

pub type Reference = ReferenceBackend;
pub type ReferenceTensor = <ReferenceBackend as Backend>::Tensor;

/// A result, or the error that reading it gives: devices may report an index out of range no sooner.
pub fn settled<B: Backend>(result: Result<B::Tensor>) -> Result<B::Tensor> {
    let result = result?;
    B::to_host(&result)?;
    Ok(result)
}

/// The given dtypes that the backend supports.
pub fn among<B: Tested>(dtypes: &[DType]) -> impl Iterator<Item = DType> {
    dtypes.iter().copied().filter(|dtype| B::DTYPES.contains(dtype))
}

pub fn dtypes<B: Tested>() -> impl Iterator<Item = DType> {
    B::DTYPES.iter().copied()
}

pub fn floats<B: Tested>() -> impl Iterator<Item = DType> {
    dtypes::<B>().filter(|dtype| dtype.is_float())
}

/// Tolerance of an element: it must be within one of the two bounds.
#[derive(Clone, Debug, Default)]
pub struct Tolerance {
    /// Bound in ULP; zeros must agree in sign.
    pub ulp: u64,
    /// Absolute bound of each element; empty if there is none. Zeros of either sign are equal.
    pub absolute: Vec<f64>,
}

impl Tolerance {
    pub const EXACT: Tolerance = Tolerance { ulp: 0, absolute: Vec::new() };

    pub fn ulp(ulp: u64) -> Tolerance {
        Tolerance { ulp, absolute: Vec::new() }
    }

    pub fn absolute(absolute: Vec<f64>) -> Tolerance {
        Tolerance { ulp: 0, absolute }
    }

    fn times(&self, factor: f64) -> Tolerance {
        let absolute = self.absolute.iter().map(|bound| factor * bound).collect();
        Tolerance { ulp: (factor * self.ulp as f64) as u64, absolute }
    }

    fn admits(&self, dtype: DType, i: usize, got: f64, want: f64) -> bool {
        let Some(distance) = ulp_distance(dtype, got, want) else { return false };
        if let Some(&bound) = self.absolute.get(i)
            && (distance == 0 || (got - want).abs() <= bound)
        {
            return true;
        }
        let signs_differ =
            got == 0.0 && want == 0.0 && got.is_sign_negative() != want.is_sign_negative();
        distance <= self.ulp && !signs_differ
    }
}

/// Describes the first element beyond the tolerance.
pub fn first_difference(got: &HostData, want: &HostData, tolerance: &Tolerance) -> Option<String> {
    let dtype = want.dtype();
    if got.dtype() != dtype || got.len() != want.len() {
        let (got_len, want_len) = (got.len(), want.len());
        return Some(format!("expected {want_len} × {dtype}, got {got_len} × {}", got.dtype()));
    }
    if got.as_bytes() == want.as_bytes() {
        return None;
    }
    (0..want.len()).find_map(|i| {
        let (got, want) = (got.get(i)?, want.get(i)?);
        let admitted = match (got, want) {
            (Scalar::Float(got), Scalar::Float(want)) => tolerance.admits(dtype, i, got, want),
            _ => got == want,
        };
        (!admitted).then(|| {
            let values = format!("element {i}: expected {want}, got {got}");
            if !dtype.is_float() {
                return values;
            }
            let apart = match ulp_distance(dtype, got.to_f64(), want.to_f64()) {
                Some(ulp) => format!(", {ulp} ULP apart"),
                None => String::new(),
            };
            let absolute = match tolerance.absolute.get(i) {
                Some(bound) => format!(" or an error of {bound:.1e}"),
                None => String::new(),
            };
            format!("{values}{apart}; allowed: {} ULP{absolute}", tolerance.ulp)
        })
    })
}

/// Collects disagreements, so that one run reports all of them.
#[derive(Default)]
pub struct Disagreements {
    found: Vec<String>,
    compared: usize,
    values: usize,
}

impl Disagreements {
    /// Records a difference in shape, dtype, values or kind of error.
    pub fn compare<B: Tested>(
        &mut self,
        context: impl FnOnce() -> String,
        got: Result<B::Tensor>,
        want: Result<ReferenceTensor>,
        tolerance: &Tolerance,
    ) {
        self.compared += 1;
        let got = settled::<B>(got);
        let difference = match (&got, &want) {
            (Ok(got), Ok(want)) if got.shape() != want.shape() => {
                Some(format!("expected shape {}, got {}", want.shape(), got.shape()))
            }
            (Ok(got), Ok(want)) => {
                self.values += want.numel();
                let (got, want) = (B::to_host(got).unwrap(), Reference::to_host(want).unwrap());
                first_difference(&got, &want, &tolerance.times(B::SLACK))
            }
            (Err(got), Err(want)) => (kind(got) != kind(want))
                .then(|| format!("expected the error \"{want}\", got \"{got}\"")),
            (Ok(_), Err(want)) => Some(format!("expected the error \"{want}\", got a result")),
            (Err(got), Ok(_)) => Some(format!("expected a result, got the error \"{got}\"")),
        };
        self.found.extend(difference.map(|difference| format!("{}: {difference}", context())));
    }

    /// Panics if there are disagreements, with a few of each kind, or if nothing was compared.
    pub fn finish(self) {
        assert!(self.compared > 0 && self.values > 0, "nothing was compared");
        let mut kinds = HashMap::new();
        let few = self.found.iter().filter(|line| {
            let kind = line.splitn(3, ' ').take(2).collect::<Vec<_>>();
            let seen: &mut usize = kinds.entry(kind).or_default();
            *seen += 1;
            *seen <= 3
        });
        let shown = few.take(60).cloned().collect::<Vec<_>>().join("\n");
        let (found, compared) = (self.found.len(), self.compared);
        assert!(found == 0, "{found} of {compared} cases disagree:\n{shown}");
    }
}

/// The variant of an error and the operation that it names.
fn kind(error: &Error) -> (std::mem::Discriminant<Error>, String) {
    let text = error.to_string();
    let op = text.split(':').next().unwrap_or_default().to_owned();
    (std::mem::discriminant(error), op)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::suite::inputs::host;
    use crate::testing::suite::ulp::moved;
    use swath::Shape;

    #[test]
    fn one_wrong_value_is_reported() {
        for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
            let value = |i: usize| host(dtype, [Scalar::Float(0.37 * i as f64 - 5.0)].into_iter());
            let values: Vec<f64> = (0..100).map(|i| value(i).get(0).unwrap().to_f64()).collect();
            let tensor = |values: &[f64]| {
                let data = host(dtype, values.iter().map(|&x| Scalar::Float(x)));
                Reference::from_host(data, values.len().into())
            };
            for position in [0, 1, 50, 99] {
                let mut wrong = values.clone();
                wrong[position] = moved(dtype, wrong[position], 3);
                for (ulp, reported) in [(0, true), (2, true), (3, false)] {
                    let mut seen = Disagreements::default();
                    let tolerance = Tolerance::ulp(ulp);
                    let context = || "meta".to_owned();
                    seen.compare::<Reference>(context, tensor(&wrong), tensor(&values), &tolerance);
                    assert_eq!(seen.found.len(), usize::from(reported), "{dtype} {position} {ulp}");
                }
            }
        }
    }

    #[test]
    fn wrong_kinds_of_results_are_reported() {
        let floats = |values: &[f64]| {
            Reference::from_host(HostData::F64(values.to_vec()), values.len().into())
        };
        let failed =
            |op| Err(Error::UnsupportedDType { op, dtype: DType::Bool, shape: Shape::scalar() });
        let integers = Reference::from_host(HostData::I64(vec![1]), 1.into());
        let cases = [
            (floats(&[0.0]), floats(&[-0.0])),
            (floats(&[f64::NAN]), floats(&[1.0])),
            (floats(&[f64::INFINITY]), floats(&[f64::MAX])),
            (floats(&[1.0]), floats(&[1.0, 1.0])),
            (integers, floats(&[1.0])),
            (failed("exp"), floats(&[1.0])),
            (floats(&[1.0]), failed("exp")),
            (failed("log"), failed("exp")),
        ];
        for (i, (got, want)) in cases.into_iter().enumerate() {
            let mut seen = Disagreements::default();
            let tolerance = Tolerance::ulp(2);
            seen.compare::<Reference>(String::new, got, want, &tolerance);
            assert_eq!(seen.found.len(), 1, "case {i}");
        }
    }

    #[test]
    fn absolute_tolerance_is_inclusive() {
        let (one, more) = (HostData::F64(vec![1.0]), HostData::F64(vec![1.25]));
        assert!(first_difference(&one, &more, &Tolerance::absolute(vec![0.25])).is_none());
        assert!(first_difference(&one, &more, &Tolerance::absolute(vec![0.24])).is_some());
        let nan = HostData::F64(vec![f64::NAN]);
        assert!(first_difference(&nan, &one, &Tolerance::absolute(vec![f64::INFINITY])).is_some());
    }
}
