//! Values and gradients beside infinities and NaN. Those of reductions are PyTorch's.

use super::{T, assert_same, floats, values};
use swath::prelude::*;

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

fn gradient<B: Backend>(f: impl Fn(&Tensor<B>) -> Result<Tensor<B>>, x: &[f64]) -> Vec<f64> {
    let x = floats::<B>(x).requires_grad();
    let grads = f(&x).unwrap().sum_all().unwrap().backward().unwrap();
    values(grads.wrt(&x).unwrap())
}

type Row<B> = (&'static str, fn(&Tensor<B>) -> Result<Tensor<B>>, Vec<(Vec<f64>, Vec<f64>)>);

/// `torch.autograd` of PyTorch 2.15 in f64.
fn rows<B: Backend>() -> Vec<Row<B>> {
    let infinite =
        [vec![INF, 1.0, 2.0], vec![INF, INF, 1.0], vec![-INF, 1.0, 2.0], vec![INF, -INF, 1.0]];
    let with = |gradients: [[f64; 3]; 4]| {
        infinite.iter().cloned().zip(gradients.map(|g| g.to_vec())).collect::<Vec<_>>()
    };
    let distances = [[NAN, -INF, -INF], [NAN, NAN, -INF], [NAN, INF, INF], [NAN; 3]];
    let far = [[NAN, 0.0, 0.0], [NAN, NAN, 0.0], [NAN, 0.0, 0.0], [NAN, NAN, 0.0]];
    let p = 1.0 / (1.0 + 1f64.exp());
    let mut sums = with([[NAN, 0.0, 0.0], [NAN, NAN, 0.0], [0.0, p, 1.0 - p], [NAN, 0.0, 0.0]]);
    // 0 rather than PyTorch's NaN: a row that is masked as a whole.
    sums.push((vec![-INF, -INF], vec![0.0, 0.0]));
    vec![
        ("variance", |x| x.variance(None, false, 1), with(distances)),
        ("variance of a population", |x| x.variance(None, false, 0), with(distances)),
        ("std", |x| x.std(None, false, 1), with([[NAN; 3]; 4])),
        ("logsumexp", |x| x.logsumexp(None, false), sums),
        (
            "norm 1/2",
            |x| x.norm(0.5, None, false),
            with([[NAN, INF, INF], [NAN, NAN, INF], [NAN, INF, INF], [NAN, NAN, INF]]),
        ),
        (
            "norm 1",
            |x| x.norm(1.0, None, false),
            with([[1.0; 3], [1.0; 3], [-1.0, 1.0, 1.0], [1.0, -1.0, 1.0]]),
        ),
        ("norm 1.5", |x| x.norm(1.5, None, false), with(far)),
        ("norm 2", |x| x.norm(2.0, None, false), with(far)),
        ("norm 3", |x| x.norm(3.0, None, false), with(far)),
        (
            "norm inf",
            |x| x.norm(INF, None, false),
            with([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [-1.0, 0.0, 0.0], [0.5, -0.5, 0.0]]),
        ),
        (
            "norm -1",
            |x| x.norm(-1.0, None, false),
            vec![(vec![INF, INF, 1.0], vec![0.0, 0.0, 1.0]), (vec![-INF, -INF], vec![NAN, NAN])],
        ),
    ]
}

fn check_reductions<B: Backend>() {
    for (name, f, cases) in rows::<B>() {
        for (x, expected) in cases {
            let found = gradient(f, &x);
            let rounded = |x: &f64| if x.is_finite() { (x * 1e12).round() / 1e12 } else { *x };
            let [found, expected] =
                [found, expected].map(|g| g.iter().map(rounded).collect::<Vec<_>>());
            assert_same(&found, &expected, &format!("{name} of {x:?}"));
        }
    }
}

#[test]
fn gradients_of_reductions_at_infinities_are_those_of_their_formulas() {
    check_reductions::<CpuBackend>();
    check_reductions::<ReferenceBackend>();
}

#[test]
fn gradients_of_logaddexp_at_infinities_are_those_of_its_formula() -> Result<()> {
    let (a, b) = ([INF, INF, 1.0, -INF, -INF, INF], [INF, 1.0, INF, -INF, 1.0, -INF]);
    let (a, b) = (floats::<CpuBackend>(&a).requires_grad(), floats(&b).requires_grad());
    let grads = a.logaddexp(&b)?.sum_all()?.backward()?;
    assert_same(&values(grads.wrt(&a)?), &[NAN, 1.0, 0.0, NAN, 0.0, 1.0], "a");
    assert_same(&values(grads.wrt(&b)?), &[NAN, 0.0, 1.0, NAN, 1.0, 0.0], "b");
    Ok(())
}

/// The modes with weights, each with the two ways to align corners.
fn modes() -> [Interpolation; 4] {
    use Interpolation::{Bicubic, Bilinear};
    let each = |align_corners| [Bilinear { align_corners }, Bicubic { align_corners }];
    let [[a, b], [c, d]] = [each(false), each(true)];
    [a, b, c, d]
}

fn resized<B: Backend>(x: &Tensor<B>, count: usize, mode: Interpolation) -> Result<Tensor<B>> {
    x.reshape((1, 1, 1, x.numel()))?.interpolate([1, count], mode)?.reshape(count)
}

fn check_pixels<B: Backend>() -> Result<()> {
    for far in [INF, -INF, NAN] {
        for mode in modes() {
            let is_corner = matches!(
                mode,
                Interpolation::Bilinear { align_corners: true }
                    | Interpolation::Bicubic { align_corners: true }
            );
            // The middle pixel alone, or, on a corner, the first.
            let x = if is_corner { [2.0, far, far] } else { [far, 2.0, far] };
            let context = format!("{mode:?} beside {far}");
            assert_same(&values(&resized(&floats::<B>(&x), 1, mode)?), &[2.0], &context);
            let slopes = gradient::<B>(|x| resized(x, 1, mode), &x);
            let expected = if is_corner { [1.0, 0.0, 0.0] } else { [0.0, 1.0, 0.0] };
            assert_same(&slopes, &expected, &context);
            // Pixels of weight 0 get nothing of an upstream gradient that is infinite.
            let slopes = gradient::<B>(|x| resized(x, 1, mode)?.mul(far), &x);
            let expected = expected.map(|g| if g == 1.0 { far } else { 0.0 });
            assert_same(&slopes, &expected, &context);
        }
        // Corners that are aligned: 5 pixels of 3, every other one between two.
        for mode in &modes()[2..] {
            let found = values(&resized(&floats::<B>(&[1.0, far, 3.0]), 5, *mode)?);
            assert_same(&[found[0], found[2], found[4]], &[1.0, far, 3.0], &format!("{mode:?}"));
        }
    }
    // Weights that are not 0 do spread infinities.
    let found =
        resized(&floats::<B>(&[1.0, INF]), 4, Interpolation::Bilinear { align_corners: false });
    assert_same(&values(&found?), &[1.0, INF, INF, INF], "quarters");
    Ok(())
}

#[test]
fn pixels_of_weight_zero_have_no_part_in_an_interpolation() -> Result<()> {
    check_pixels::<CpuBackend>()?;
    check_pixels::<ReferenceBackend>()?;
    // Rows and columns at once, 16-bit floats.
    let x = tensor![[f32::INFINITY, 1.0, 1.0], [1.0, 2.0, f32::NAN], [1.0, 1.0, 1.0]];
    let y = x.to_dtype(DType::F16)?.reshape((1, 1, 3, 3))?;
    for mode in &modes()[..2] {
        assert_eq!(values(&y.interpolate([1, 1], *mode)?), [2.0], "{mode:?}");
    }
    Ok(())
}

/// Quantiles at an element alone, products with masks: other weighted sums.
#[test]
fn other_weights_of_zero_do_not_make_nan() -> Result<()> {
    let x = [1.0, 2.0, INF];
    assert_same(&values(&floats::<CpuBackend>(&x).quantile(0.5, 0, false)?), &[2.0], "quantile");
    assert_same(&gradient::<CpuBackend>(|x| x.quantile(0.5, 0, false), &x), &[0.0, 1.0, 0.0], "");
    let mean = |x: &T| x.reshape((1, 1, 3))?.adaptive_avg_pool1d(3);
    assert_same(&values(&mean(&floats(&x))?), &x, "adaptive_avg_pool1d");
    let shrunk = |x: &T| x.pad(&[(-1, -1)], PadMode::Constant(0.0));
    assert_same(&gradient::<CpuBackend>(shrunk, &[INF, 2.0, NAN]), &[0.0, 1.0, 0.0], "pad");
    Ok(())
}
