//! Extreme values, errors, and independence of layout, batch and threads.

use swath::ops::DropoutMask;
use swath::prelude::*;
use swath::{Attention, CrossEntropy, Reduction};

type T = Tensor<CpuBackend>;

const INF: f32 = f32::INFINITY;

#[test]
fn extreme_logits_give_the_limits_and_nan_propagates() -> Result<()> {
    let softmax = |x: T| x.softmax(-1)?.to_vec::<f32>();
    assert_eq!(softmax(tensor![1e30, 0.0, -1e30])?, [1.0, 0.0, 0.0]);
    assert_eq!(softmax(tensor![-INF, 2.0, 2.0])?, [0.0, 0.5, 0.5]);
    assert_eq!(softmax(tensor![f32::MAX, f32::MAX])?, [0.5, 0.5]);
    assert_eq!(softmax(tensor![f32::MIN])?, [1.0]);
    for row in [tensor![1.0, f32::NAN], tensor![INF, 0.0], tensor![-INF, -INF]] {
        assert!(softmax(row.clone())?.iter().all(|x| x.is_nan()), "{row}");
        assert!(row.log_softmax(0)?.to_vec::<f32>()?.iter().all(|x| x.is_nan()), "{row}");
        let loss = row.cross_entropy(&tensor![i64; 0].reshape(())?, CrossEntropy::default())?;
        assert!(loss.item::<f32>()?.is_nan(), "{row}");
    }
    let y = tensor![1e30, 0.0, -INF].log_softmax(-1)?.to_vec::<f32>()?;
    assert_eq!(y, [0.0, -1e30, -INF]);
    let rows = tensor![[1e30, -1e30], [0.0, -INF]];
    let none = CrossEntropy { reduction: Reduction::None, ..Default::default() };
    assert_eq!(rows.cross_entropy(&tensor![i64; 0, 0], none)?.to_vec::<f32>()?, [0.0, 0.0]);
    assert_eq!(rows.cross_entropy(&tensor![i64; 1, 1], none)?.to_vec::<f32>()?, [2e30, INF]);
    // The target has probability 0, the other logits are finite; with smoothing the mean is −∞ too.
    let row = [-INF, 1.0, 2.0];
    for label_smoothing in [0.0, 0.1, 1.0] {
        let smooth = CrossEntropy { label_smoothing, ..Default::default() };
        for class in [0, 1] {
            let is_right = |loss: f32| match class == 0 || label_smoothing > 0.0 {
                true => loss == INF,
                false => (loss - 1.3132617).abs() < 1e-6,
            };
            let loss = T::from_slice(&row, (1, 3))?.cross_entropy(&tensor![i64; class], smooth)?;
            assert!(is_right(loss.item::<f32>()?), "{label_smoothing}, {class}: {loss}");
            let row = Tensor::<ReferenceBackend>::from_slice(&row, (1, 3))?;
            let smooth = CrossEntropy { label_smoothing, ..Default::default() };
            let loss = row.cross_entropy(&Tensor::from_slice(&[class], 1)?, smooth)?;
            assert!(is_right(loss.item::<f32>()?), "{label_smoothing}, {class}: {loss}");
        }
    }
    let x = tensor![[1e30, -1e30, 0.0], [1.0, f32::NAN, 1.0], [7.0, 7.0, 7.0]];
    let y = x.layer_norm(None, None, 1e-5)?.to_vec::<f32>()?;
    assert!((y[0] - 1.5f32.sqrt()).abs() < 1e-6 && y[1] == -y[0] && y[2] == 0.0, "{y:?}");
    assert!(y[3..6].iter().all(|y| y.is_nan()) && y[6..] == [0.0; 3], "{y:?}");
    let mask = DropoutMask { p: 0.9, seed: 1, stream: 1 };
    let nan = T::full(64, f32::NAN)?.dropout(mask)?.to_vec::<f32>()?;
    assert!(nan.iter().all(|x| x.is_nan()));
    Ok(())
}

/// Neither the number of rows nor the sum of their losses is representable in 16 bits: in f16 both overflow,
/// in bf16 the mean would change if either were rounded.
#[test]
fn a_mean_over_more_rows_than_16_bits_can_count() -> Result<()> {
    let mut targets = vec![0i64; 96_500];
    targets[7] = -1;
    let targets = T::from_vec(targets, 96_500)?;
    let options = CrossEntropy { ignore_index: Some(-1), ..Default::default() };
    for dtype in [DType::F16, DType::BF16] {
        let mean = T::zeros((96_500, 2), dtype)?.cross_entropy(&targets, options)?;
        let ln_2 = T::full((), std::f32::consts::LN_2)?.to_dtype(dtype)?.to_dtype(DType::F32)?;
        assert_eq!(mean.to_dtype(DType::F32)?.item::<f32>()?, ln_2.item::<f32>()?, "{dtype}");
    }
    Ok(())
}

#[test]
fn layer_norm_far_from_zero_keeps_its_precision() -> Result<()> {
    // Elements 10⁶ + k/16: exact in f32, as are the differences from the mean.
    let x: Vec<f32> = (0..64).map(|k| 1e6 + k as f32 / 16.0).collect();
    let y = T::from_slice(&x, (1, 64))?.layer_norm(None, None, 0.0)?.to_vec::<f32>()?;
    let deviation = ((64.0f64 * 64.0 - 1.0) / 12.0).sqrt();
    for (k, y) in y.into_iter().enumerate() {
        let want = (k as f64 - 31.5) / deviation;
        assert!((f64::from(y) - want).abs() <= 3e-7 * want.abs(), "{k}: {y} {want}");
    }
    Ok(())
}

/// Probabilities depend on differences of logits alone, which are exact here.
#[test]
fn gradients_do_not_depend_on_the_offset_of_the_logits() -> Result<()> {
    fn check<B: Backend>() -> Result<()> {
        let tensor = |x: &[f32], shape: &[usize]| {
            Ok::<_, Error>(Tensor::<B>::from_slice(x, shape)?.requires_grad())
        };
        let targets = Tensor::<B>::from_slice(&[0i64], 1)?;
        let of_logits = |offset: f32| -> Result<Vec<f32>> {
            let x = tensor(&[0.25, 0.0, -0.5, 0.125].map(|x| x + offset), &[1, 4])?;
            let loss = x.cross_entropy(&targets, CrossEntropy::default())?;
            loss.backward()?.wrt(&x)?.to_vec()
        };
        let of_values = |size: f32| -> Result<Vec<f32>> {
            let q = tensor(&[size, 1.0], &[1, 2])?;
            let k = tensor(&[size, 0.25, size, 0.0, size, -0.5], &[3, 2])?;
            let v = tensor(&[1.0, 2.0, 3.0], &[3, 1])?;
            let options = Attention { scale: Some(1.0), ..Default::default() };
            let y = q.scaled_dot_product_attention(&k, &v, options)?;
            y.sum(None, false)?.backward()?.wrt(&v)?.to_vec()
        };
        for offset in [-1000.0, 4096.0, 65536.0] {
            assert_eq!(of_logits(offset)?, of_logits(0.0)?, "{}", B::NAME);
        }
        for size in [16.0, 256.0] {
            assert_eq!(of_values(size)?, of_values(0.0)?, "{}", B::NAME);
        }
        Ok(())
    }
    check::<CpuBackend>()?;
    check::<ReferenceBackend>()
}

#[test]
fn empty_inputs_give_empty_outputs() -> Result<()> {
    for shape in [Shape::new([0]), Shape::new([3, 0]), Shape::new([0, 4])] {
        let x = T::zeros(shape, DType::F32)?;
        let n = *x.dims().last().unwrap();
        let parameter = T::zeros(n, DType::F32)?;
        assert_eq!(x.softmax(-1)?.shape(), &shape);
        assert_eq!(x.log_softmax(0)?.shape(), &shape);
        assert_eq!(x.layer_norm(Some(&parameter), Some(&parameter), 1e-5)?.shape(), &shape);
        let tracked = x.requires_grad();
        let y = tracked.layer_norm(None, None, 1e-5)?.softmax(-1)?.sum(None, false)?;
        assert_eq!(y.backward()?.wrt(&tracked)?.shape(), &shape);
    }
    let (logits, targets) = (T::zeros((0, 4), DType::F32)?, T::zeros(0, DType::I64)?);
    let sum = CrossEntropy { reduction: Reduction::Sum, ..Default::default() };
    assert_eq!(logits.cross_entropy(&targets, sum)?.item::<f32>()?, 0.0);
    assert!(logits.cross_entropy(&targets, CrossEntropy::default())?.item::<f32>()?.is_nan());
    Ok(())
}

#[test]
fn errors_name_the_op() {
    let starts = |result: Result<T>, with: &str| {
        let text = result.unwrap_err().to_string();
        assert!(text.starts_with(with), "{text}");
    };
    let x = tensor![[1.0, 2.0], [3.0, 4.0]];
    let integers = tensor![i64; [1, 2]];
    starts(integers.softmax(0), "softmax: ");
    starts(x.log_softmax(2), "log_softmax: ");
    starts(integers.layer_norm(None, None, 0.0), "layer_norm: ");
    starts(x.layer_norm(Some(&tensor![1.0]), None, 0.0), "layer_norm: ");
    starts(x.layer_norm(None, Some(&tensor![f64; 1, 2]), 0.0), "layer_norm: ");
    starts(tensor![1.0].reshape(()).unwrap().layer_norm(None, None, 0.0), "layer_norm: ");
    starts(integers.rms_norm(None, 0.0), "rms_norm: ");
    starts(x.rms_norm(Some(&tensor![1.0]), 0.0), "rms_norm: ");
    starts(x.rms_norm(Some(&tensor![f64; 1, 2]), 0.0), "rms_norm: ");
    starts(tensor![1.0].reshape(()).unwrap().rms_norm(None, 0.0), "rms_norm: ");
    starts(x.dropout(DropoutMask { p: 1.0, seed: 0, stream: 0 }), "dropout: ");
    starts(integers.dropout(DropoutMask { p: 0.5, seed: 0, stream: 0 }), "dropout: ");
    let default = CrossEntropy::default();
    starts(x.cross_entropy(&tensor![i64; 0, 2], default), "cross_entropy: ");
    starts(x.cross_entropy(&tensor![i64; -1, 0], default), "cross_entropy: ");
    starts(x.cross_entropy(&tensor![i64; 0], default), "cross_entropy: ");
    starts(x.cross_entropy(&tensor![0.0, 1.0], default), "cross_entropy: ");
    let smooth = CrossEntropy { label_smoothing: 1.5, ..default };
    starts(x.cross_entropy(&tensor![i64; 0, 1], smooth), "cross_entropy: ");
}

#[test]
fn a_middle_axis_gives_the_same_as_moved_last() -> Result<()> {
    let x = T::randn((3, 40, 5), &mut Rng::seed(3))?;
    let moved = x.permute(&[0, 2, 1])?.contiguous()?;
    for (got, want) in
        [(x.softmax(1)?, moved.softmax(2)?), (x.log_softmax(-2)?, moved.log_softmax(-1)?)]
    {
        assert_eq!(got.permute(&[0, 2, 1])?.to_vec::<f32>()?, want.to_vec::<f32>()?);
    }
    Ok(())
}

#[test]
fn a_row_has_the_same_bits_alone_and_in_a_batch() -> Result<()> {
    let x = T::randn((600, 333), &mut Rng::seed(4))?;
    let w = T::randn(333, &mut Rng::seed(5))?;
    type Function<'a> = &'a dyn Fn(&T) -> Result<T>;
    let functions: [Function; 3] =
        [&|x| x.softmax(-1), &|x| x.log_softmax(-1), &|x| x.layer_norm(Some(&w), Some(&w), 1e-5)];
    for f in functions {
        let all = f(&x)?;
        for row in [0, 1, 299, 599] {
            let alone = f(&x.narrow(0, row, 1)?)?;
            assert_eq!(all.narrow(0, row, 1)?.to_vec::<f32>()?, alone.to_vec::<f32>()?);
        }
    }
    Ok(())
}

#[test]
fn a_dropout_mask_depends_on_the_index_alone() -> Result<()> {
    let mask = DropoutMask { p: 0.5, seed: 77, stream: 3 };
    let x = T::ones((200, 300), DType::F32)?;
    let y = x.dropout(mask)?;
    let kept = y.sum(None, false)?.item::<f32>()? / 2.0;
    assert!((kept - 30_000.0).abs() < 600.0, "{kept} of 60000");
    let again = x.t()?.contiguous()?.t()?.dropout(mask)?;
    assert_eq!(y.to_vec::<f32>()?, again.to_vec::<f32>()?);
    let half = x.to_dtype(DType::F16)?.dropout(mask)?.to_dtype(DType::F32)?;
    assert_eq!(y.to_vec::<f32>()?, half.to_vec::<f32>()?);
    let other = x.dropout(DropoutMask { stream: 4, ..mask })?;
    assert_ne!(y.to_vec::<f32>()?, other.to_vec::<f32>()?);
    Ok(())
}
