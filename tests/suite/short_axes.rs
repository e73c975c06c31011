//! Softmax, logsumexp and cross-entropy along an axis that is not the last, reductions over several short axes,
//! and the masks of attention's dropout.

use swath::ops::DropoutMask;
use swath::prelude::*;
use swath::{CrossEntropy, Reduction};

type T = Tensor<CpuBackend>;

const FLOATS: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];

/// Lengths and numbers of columns: of the tree's lanes and blocks, of vectors, units and strips.
const LENGTHS: [usize; 16] = [0, 1, 2, 3, 4, 5, 8, 9, 16, 17, 33, 100, 1023, 1024, 1025, 2100];
const BELOW: [usize; 9] = [0, 1, 2, 3, 7, 17, 64, 131, 300];

/// Numbers; with `special`, infinities, NaN, zeros of both signs, and whole columns of −∞.
fn numbers(shape: &[usize], dtype: DType, seed: u64, special: bool) -> Result<T> {
    let shape = Shape::from(shape);
    let x = T::randn(shape, &mut Rng::seed(seed))?.to_dtype(DType::F64)?.mul_scalar(3.0)?;
    if !special || x.numel() == 0 {
        return x.to_dtype(dtype);
    }
    let infinity = f64::INFINITY;
    let odd = [-0.0, -infinity, 0.0, 88.0, -infinity, 1e4, -0.0, f64::NAN, infinity, -1e4];
    let below = *x.dims().last().unwrap_or(&1);
    let mut values = x.to_vec::<f64>()?;
    for (i, value) in values.iter_mut().enumerate() {
        match (i % below) % 5 {
            1 => *value = -infinity,
            3 => *value = if i % 2 == 0 { -0.0 } else { odd[i % odd.len()] },
            4 if i % 7 == 0 => *value = odd[i / 7 % odd.len()],
            _ => {}
        }
    }
    T::from_vec(values, shape)?.to_dtype(dtype)
}

/// Bits, with a single NaN for all NaNs.
fn bits(x: &T) -> Result<Vec<u64>> {
    let values = x.to_dtype(DType::F64)?.to_vec::<f64>()?;
    Ok(values.into_iter().map(|x| if x.is_nan() { u64::MAX } else { x.to_bits() }).collect())
}

/// The values of `f` with axis 1 moved to the end in memory, moved back.
fn on_last_axis(x: &T, f: &dyn Fn(&T) -> Result<T>) -> Result<T> {
    f(&x.movedim(1, -1)?.contiguous()?)?.movedim(-1, 1)
}

/// The result, and the gradient of its product with `g`.
fn with_gradient(x: &T, g: &T, f: &dyn Fn(&T) -> Result<T>) -> Result<[T; 2]> {
    let x = x.detach().requires_grad();
    let y = f(&x)?;
    let gradient = y.backward_with(g)?.get(&x).expect("x is tracked").clone();
    Ok([y.detach(), gradient])
}

#[test]
fn softmax_has_the_bits_of_the_last_axis() -> Result<()> {
    for dtype in FLOATS {
        for (i, len) in LENGTHS.into_iter().enumerate() {
            // Long axes take as many columns as would take long.
            for below in BELOW.into_iter().filter(|below| len * below < 40_000) {
                for special in [false, true] {
                    let above = if len * below < 2000 { 3 } else { 1 };
                    let shape = [above, len, below];
                    let x = numbers(&shape, dtype, i as u64, special)?;
                    let g = numbers(&shape, dtype, 77, special && len % 2 == 0)?;
                    let g_last = g.movedim(1, -1)?.contiguous()?;
                    for log in [false, true] {
                        let f = |x: &T, axis: isize| match log {
                            true => x.log_softmax(axis),
                            false => x.softmax(axis),
                        };
                        let found = with_gradient(&x, &g, &|x| f(x, 1))?;
                        let last = x.movedim(1, -1)?.contiguous()?;
                        let wanted = with_gradient(&last, &g_last, &|x| f(x, -1))?;
                        for (found, wanted) in found.iter().zip(&wanted) {
                            let wanted = wanted.movedim(-1, 1)?;
                            assert_eq!(
                                bits(found)?,
                                bits(&wanted)?,
                                "{dtype} {shape:?}, log {log}, special {special}"
                            );
                        }
                    }
                    let found = x.logsumexp(Some(&[1]), true)?;
                    let wanted = on_last_axis(&x, &|x| x.logsumexp(Some(&[2]), true))?;
                    assert_eq!(bits(&found)?, bits(&wanted)?, "logsumexp of {dtype} {shape:?}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn softmax_reads_any_layout() -> Result<()> {
    let x = numbers(&[4, 5, 6, 7], DType::F32, 3, false)?;
    let views = [
        ("slices", x.slice(s![1..3, ..;2, 1.., 2..5])?),
        ("reversed", x.flip((1, 3))?),
        ("permuted", x.permute(&[3, 1, 0, 2])?),
        ("transposed", x.permute(&[0, 3, 2, 1])?),
        ("repeated", x.narrow(2, 0, 1)?.broadcast_to((4, 5, 6, 7))?),
        ("one repeated along the axis", x.narrow(1, 0, 1)?.broadcast_to((4, 5, 6, 7))?),
    ];
    for (name, view) in views {
        for axis in 0..4 {
            let wanted = view.contiguous()?.movedim(axis, -1)?.contiguous()?;
            for log in [false, true] {
                let f = |x: &T, axis: isize| {
                    if log { x.log_softmax(axis) } else { x.softmax(axis) }
                };
                let wanted = f(&wanted, -1)?.movedim(-1, axis)?;
                let found = f(&view, axis as isize)?;
                assert_eq!(bits(&found)?, bits(&wanted)?, "{name}, axis {axis}");
            }
        }
    }
    Ok(())
}

/// Upstream gradients in any layout, and gradients of gradients.
#[test]
fn softmax_gradients_agree_with_differences() -> Result<()> {
    for log in [false, true] {
        for axis in 0..3 {
            let x = numbers(&[2, 3, 4], DType::F64, 5, false)?;
            let f = |xs: &[T]| {
                let y = if log { xs[0].log_softmax(axis)? } else { xs[0].softmax(axis)? };
                y.permute(&[2, 0, 1])?.mul(&xs[1])?.sum(None, false)
            };
            let weights = numbers(&[4, 2, 3], DType::F64, 6, false)?;
            check_gradients(f, &[&x, &weights], GradCheck::default())?;
        }
    }
    Ok(())
}

fn images() -> Result<(T, T)> {
    let x: Vec<f64> = (0..24).map(|i| f64::from(i * 7 % 11) * 0.5 - 2.5).collect();
    let targets = tensor![i64; 0, 2, 1, 1, 2, 0, 0, 1].reshape((2, 2, 2))?;
    Ok((T::from_vec(x, (2, 3, 2, 2))?, targets))
}

/// Loss, and the gradient at some elements.
fn assert_loss(
    name: &str,
    x: &T,
    loss: impl Fn(&T) -> Result<T>,
    wanted: &[f64],
    gradient: [f64; 6],
) -> Result<()> {
    let x = x.detach().requires_grad();
    let loss = loss(&x)?;
    let close = |a: f64, b: f64| (a - b).abs() < 1e-12;
    let values = loss.to_vec::<f64>()?;
    assert_eq!(values.len(), wanted.len(), "{name}");
    assert!(values.iter().zip(wanted).all(|(&a, &b)| close(a, b)), "{name}: {values:?}");
    let upstream = T::arange_as(1.0, values.len() as f64 + 1.0, 1.0, DType::F64)?;
    let g = loss.backward_with(&upstream.reshape(*loss.shape())?)?;
    let g = g.get(&x).expect("x is tracked").to_vec::<f64>()?;
    let found = [0, 5, 10, 15, 20, 23].map(|i| g[i]);
    assert!(found.iter().zip(gradient).all(|(&a, b)| close(a, b)), "{name}: {found:?}");
    Ok(())
}

/// `torch.nn.functional.cross_entropy` and `nll_loss` of the same numbers.
#[test]
fn losses_of_images_match_torch() -> Result<()> {
    let (x, t) = images()?;
    let weight = T::from_vec(vec![0.5, 2.0, 1.25], 3)?;
    let plain = CrossEntropy::default();
    let rows: [(&str, CrossEntropy<'_>, &[f64], [f64; 6]); 6] = [
        (
            "mean",
            plain,
            &[1.6944505093579467],
            [
                -0.11950168996349277,
                0.003757360946196753,
                0.00906518071009347,
                0.04577402703522503,
                -0.04953138798142177,
                0.07546861201857823,
            ],
        ),
        (
            "none",
            CrossEntropy { reduction: Reduction::None, ..plain },
            &[
                3.1238729583693674,
                0.5045969023422835,
                0.12387295836936733,
                2.58509724636431,
                0.5045969023422835,
                3.1238729583693674,
                0.08509724636430994,
                3.5045969023422834,
            ],
            [
                -0.9560135197079421,
                0.060117775139148046,
                0.21756433704224326,
                2.929537730254402,
                -1.9812555192568708,
                4.8299911691890065,
            ],
        ),
        (
            "ignore",
            CrossEntropy { ignore_index: Some(1), ..plain },
            &[1.4684073935575221],
            [-0.19120270394158845, 0.006011777513914805, 0.0, 0.0, -0.07925022077027484, 0.0],
        ),
        (
            "smooth",
            CrossEntropy { label_smoothing: 0.2, ..plain },
            &[1.7569505093579467],
            [
                -0.1028350232968261,
                -0.004575972387136581,
                0.000731847376760136,
                0.0374406937018917,
                -0.03286472131475511,
                0.0671352786852449,
            ],
        ),
        (
            "weights",
            CrossEntropy { weight: Some(&weight), ..plain },
            &[1.6855048051559152],
            [
                -0.04780067598539711,
                0.003757360946196753,
                0.014504289136149552,
                0.07323844325636006,
                -0.04953138798142177,
                0.12074977922972517,
            ],
        ),
        (
            "weights, ignore, smooth",
            CrossEntropy {
                weight: Some(&weight),
                ignore_index: Some(0),
                label_smoothing: 0.3,
                ..plain
            },
            &[1.610655749519475],
            [
                0.0,
                -0.019108987122121467,
                0.0004383018921561493,
                0.07058719810590536,
                -0.028860456448731493,
                0.11137109301927187,
            ],
        ),
    ];
    for (name, options, loss, gradient) in rows {
        assert_loss(name, &x, |x| x.cross_entropy(&t, options), loss, gradient)?;
        let named = CrossEntropy { axis: Some(1.into()), ..options };
        assert_loss(name, &x, |x| x.cross_entropy(&t, named), loss, gradient)?;
        let nll = |x: &T| x.log_softmax(1)?.nll(&t, options);
        assert_loss(name, &x, nll, loss, gradient)?;
    }
    let ignoring = CrossEntropy { weight: Some(&weight), ignore_index: Some(2), ..plain };
    let gradient = [
        -0.06373423464719614,
        0.0,
        0.019339052181532736,
        0.09765125767514674,
        0.0,
        0.16099970563963356,
    ];
    let nll = |x: &T| x.log_softmax(1)?.nll(&t, ignoring);
    assert_loss("nll", &x, nll, &[2.0791407727604594], gradient)?;
    let loss = nn::loss::cross_entropy(&x, &t)?.item::<f64>()?;
    assert!((loss - 1.6944505093579467).abs() < 1e-15, "{loss}");
    Ok(())
}

#[test]
fn probabilities_of_images_match_torch() -> Result<()> {
    let (x, _) = images()?;
    let weight = T::from_vec(vec![0.5, 2.0, 1.25], 3)?;
    let q: Vec<f64> = (0..24).map(|i| f64::from(i * 5 % 7) + 1.0).collect();
    let q = T::from_vec(q, (2, 3, 2, 2))?;
    let p = q.div(&q.sum_axis(1, true)?)?;
    let along = CrossEntropy { axis: Some(1.into()), ..Default::default() };
    let smooth = CrossEntropy { weight: Some(&weight), label_smoothing: 0.1, ..along };
    let gradient = [
        0.002362279615718868,
        -0.07880571339316624,
        -0.025806745998973504,
        0.03057436924411283,
        0.04972607226384443,
        0.04823134414905343,
    ];
    assert_loss("mean", &x, |x| x.cross_entropy(&p, smooth), &[2.844648705966109], gradient)?;
    let each = CrossEntropy { reduction: Reduction::None, ..along };
    let losses = [
        1.409587244083653,
        1.7045969023422836,
        2.0127618472582562,
        3.835097246364309,
        1.7129302356756169,
        2.0405396250360344,
        3.477954389221453,
        1.7045969023422836,
    ];
    let gradient = [
        -0.02744209113651358,
        -0.6065488915275186,
        -0.4491023296244234,
        -0.27046226974559806,
        1.7687444807431292,
        2.696657835855673,
    ];
    assert_loss("none", &x, |x| x.cross_entropy(&p, each), &losses, gradient)
}

#[test]
fn losses_of_images_have_the_bits_of_rows() -> Result<()> {
    for dtype in FLOATS {
        for (classes, below) in
            [(1, 70), (2, 3), (3, 300), (10, 64), (21, 130), (200, 5), (1100, 2)]
        {
            for special in [false, true] {
                let x = numbers(&[2, classes, below, 1], dtype, 11, special)?;
                let rows = x.movedim(1, -1)?.contiguous()?;
                let class = |i: usize| if i % 5 == 2 { -7 } else { (i * 13 % classes) as i64 };
                let targets: Vec<i64> = (0..2 * below).map(class).collect();
                let targets = T::from_vec(targets, (2, below, 1))?;
                for label_smoothing in [0.0, 0.2, 0.9] {
                    let options = CrossEntropy {
                        label_smoothing,
                        ignore_index: Some(-7),
                        reduction: Reduction::None,
                        ..Default::default()
                    };
                    let g = numbers(&[2, below, 1], dtype, 12, false)?;
                    let by = |x: &T, axis: isize| {
                        let axis = Some(axis.into());
                        x.cross_entropy(&targets, CrossEntropy { axis, ..options })
                    };
                    let name = format!("{dtype} {classes} {below} {label_smoothing} {special}");
                    let found = with_gradient(&x, &g, &|x| by(x, 1))?;
                    let wanted = with_gradient(&rows, &g, &|x| by(x, -1))?;
                    assert_eq!(bits(&found[0])?, bits(&wanted[0])?, "{name}");
                    let wanted = wanted[1].movedim(-1, 1)?;
                    assert_eq!(bits(&found[1])?, bits(&wanted)?, "gradient, {name}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn the_axis_of_classes_follows_from_the_shapes() -> Result<()> {
    let x = numbers(&[2, 3, 3], DType::F32, 1, false)?;
    let t = tensor![i64; [0, 1, 2], [2, 2, 0]];
    let default = CrossEntropy::default();
    let by = |axis: isize| CrossEntropy { axis: Some(axis.into()), ..Default::default() };
    // Where both axes fit, the caller has to say which.
    let loss = |options| x.cross_entropy(&t, options)?.item::<f32>();
    let text = loss(default).unwrap_err().to_string();
    assert!(text.contains("axes 1 and 2 of logits [2, 3, 3] both fit"), "{text}");
    assert!(x.nll(&t, default).is_err());
    assert_eq!(loss(by(-2))?, x.movedim(1, 2)?.cross_entropy(&t, by(2))?.item::<f32>()?);
    assert_ne!(loss(by(2))?, loss(by(1))?);
    // A first axis of classes, and no pixel or no image.
    let first = x.movedim(2, 0)?.contiguous()?;
    assert_eq!(first.cross_entropy(&t, by(0))?.item::<f32>()?, loss(by(2))?);
    for shape in [[0, 3, 2, 2], [2, 3, 0, 2]] {
        let (x, t) = (T::zeros(shape, DType::F32)?, [shape[0], shape[2], shape[3]]);
        let t = T::zeros(t, DType::I64)?;
        assert!(x.cross_entropy(&t, default)?.item::<f32>()?.is_nan());
        let sum = CrossEntropy { reduction: Reduction::Sum, ..default };
        assert_eq!(x.cross_entropy(&t, sum)?.item::<f32>()?, 0.0);
    }
    Ok(())
}

#[test]
fn wrong_losses_of_images_name_shapes_and_axes() -> Result<()> {
    let x = T::zeros((2, 3, 4, 5), DType::F32)?;
    let default = CrossEntropy::default();
    let text = |loss: Result<T>| loss.unwrap_err().to_string();
    let odd = T::zeros((2, 4, 4), DType::I64)?;
    for loss in [x.cross_entropy(&odd, default), x.nll(&odd, default)] {
        let text = text(loss);
        assert!(text.contains("[2, 3, 4, 5]") && text.contains("[2, 4, 4]"), "{text}");
    }
    let t = T::zeros((2, 4, 5), DType::I64)?;
    let weight = T::zeros(4, DType::F32)?;
    let weighted = CrossEntropy { weight: Some(&weight), ..default };
    let wrong = text(x.cross_entropy(&t, weighted));
    assert!(wrong.contains("[2, 3, 4, 5]") && wrong.contains("[4]"), "{wrong}");
    let axis = CrossEntropy { axis: Some(4.into()), ..default };
    assert!(matches!(x.cross_entropy(&t, axis), Err(Error::AxisOutOfRange { axis: 4, .. })));
    let other = CrossEntropy { axis: Some(0.into()), ..default };
    assert!(matches!(x.cross_entropy(&t, other), Err(Error::ShapeMismatch { .. })));
    let beyond = t.add_scalar(3)?;
    let weight = T::ones(3, DType::F32)?;
    for options in [default, CrossEntropy { weight: Some(&weight), ..default }] {
        match x.cross_entropy(&beyond, options) {
            Err(Error::IndexOutOfRange { op: "cross_entropy", index: 3, axis: 1, shape }) => {
                assert_eq!(shape, *x.shape());
            }
            other => panic!("{other:?}"),
        }
    }
    Ok(())
}

#[test]
fn several_short_axes_reduce_like_brute_force() -> Result<()> {
    let dims = [4, 5, 3, 7, 3];
    for dtype in [DType::F16, DType::F32, DType::F64, DType::I64, DType::U8, DType::I32] {
        let x = match dtype.is_float() {
            true => numbers(&dims, dtype, 9, true)?,
            false => {
                numbers(&dims, DType::F64, 9, false)?.abs()?.mul_scalar(9.0)?.to_dtype(dtype)?
            }
        };
        let values = x.to_dtype(DType::F64)?.to_vec::<f64>()?;
        let mut wanted = vec![Vec::new(); 4 * 5 * 7];
        for (i, &value) in values.iter().enumerate() {
            let (last, third) = (i % 3, i / 21 % 3);
            wanted[i / 63 * 7 + i / 3 % 7].push((third, last, value));
        }
        let max = x.max(Some(&[2, 4]), false)?;
        let min = x.min(Some(&[2, 4]), false)?;
        assert_eq!(max.dims(), [4, 5, 7]);
        for (i, elements) in wanted.iter().enumerate() {
            assert_eq!(elements.len(), 9);
            let has_nan = elements.iter().any(|x| x.2.is_nan());
            let largest = elements.iter().map(|x| x.2).fold(f64::NEG_INFINITY, f64::max);
            let least = elements.iter().map(|x| x.2).fold(f64::INFINITY, f64::min);
            for (y, wanted) in [(&max, largest), (&min, least)] {
                let y = y.to_dtype(DType::F64)?.to_vec::<f64>()?[i];
                assert!(
                    if has_nan { y.is_nan() } else { y == wanted },
                    "{dtype} {i}: {y} {wanted}"
                );
            }
        }
        // Sums in the order of the elements.
        let together = x.permute(&[0, 1, 3, 2, 4])?.contiguous()?.reshape((4, 5, 7, 9))?;
        for (found, wanted) in [
            (x.sum(Some(&[2, 4]), false)?, together.sum(Some(&[3]), false)?),
            (x.max(Some(&[4, 2]), false)?, together.max(Some(&[3]), false)?),
            (x.any(Some(&[2, 4]), false)?, together.any(Some(&[3]), false)?),
            (x.all(Some(&[2, 4]), false)?, together.all(Some(&[3]), false)?),
        ] {
            assert_eq!(bits(&found)?, bits(&wanted)?, "{dtype}");
        }
    }
    Ok(())
}

/// Values of one-hot rows show the weights; those that `dropout` of the scores drops are 0.
#[test]
fn attention_drops_what_dropout_drops() -> Result<()> {
    let mask = DropoutMask { p: 0.4, seed: 9, stream: 3 };
    for (t, s) in [(5, 7), (70, 66), (130, 129), (3, 1)] {
        for dtype in [DType::F32, DType::F64] {
            for causal in [false, true] {
                let q = numbers(&[2, 3, t, 4], dtype, 1, false)?;
                let k = numbers(&[2, 3, s, 4], dtype, 2, false)?;
                let v = T::eye((s, s), dtype)?.broadcast_to((2, 3, s, s))?;
                let plain = Attention { causal, ..Default::default() };
                let dropped = Attention { dropout: Some(mask), causal, ..Default::default() };
                let weights = q.scaled_dot_product_attention(&k, &v, plain)?;
                let found = q.scaled_dot_product_attention(&k, &v, dropped)?;
                let factors = T::ones((2, 3, t, s), dtype)?.dropout(mask)?;
                let wanted = weights.mul(&factors)?;
                let (found, wanted) = (
                    found.to_dtype(DType::F64)?.to_vec::<f64>()?,
                    wanted.to_dtype(DType::F64)?.to_vec::<f64>()?,
                );
                for (i, (a, b)) in found.iter().zip(&wanted).enumerate() {
                    assert!((*a == 0.0) == (*b == 0.0), "{t} {s} {causal} at {i}");
                    assert!((a - b).abs() < 1e-5, "{t} {s} {causal} at {i}");
                }
            }
        }
    }
    Ok(())
}
