//! Exported models. They are read back by this crate, and with
//! `SWATH_ONNX_EXPORT=FOLDER` written there with inputs and outputs, for `check_export.py FOLDER`.

#[path = "../../../examples/train_gpt/model.rs"]
#[allow(dead_code, reason = "the loss is not exported")]
mod gpt;
#[path = "../../../examples/mnist/model.rs"]
mod mnist;

use std::path::{Path, PathBuf};
use std::{env, fs};

use swath::nn::{self, Linear, Module, Sequential, Visit};
use swath::ops::{Activation, BinaryOp, CompareOp, ReduceOp, TernaryOp, UnaryOp};
use swath::prelude::*;
use swath::{Resize, SliceItem};
use swath_onnx::{Export, Model, Trace, copy_values};

type C = Tensor<CpuBackend>;
type Outcome<B> = Result<Vec<Tensor<B>>>;

fn folder() -> Option<PathBuf> {
    env::var_os("SWATH_ONNX_EXPORT").map(PathBuf::from)
}

fn rng() -> Rng {
    Rng::seed(7)
}

/// Values in an interval.
fn uniform(shape: impl Into<Shape>, (low, high): (f64, f64), dtype: DType, rng: &mut Rng) -> C {
    C::rand(shape, low..high, rng).unwrap().to_dtype(dtype).unwrap()
}

fn randn(shape: impl Into<Shape>) -> C {
    C::randn(shape, &mut rng()).unwrap()
}

fn ints(shape: impl Into<Shape>, below: u64) -> C {
    let (shape, mut rng) = (shape.into(), rng());
    C::from_vec((0..shape.numel()).map(|_| rng.below(below) as i64).collect::<Vec<_>>(), shape)
        .unwrap()
}

/// Exports a program, and compares with the CPU by this crate and, by what is written, by ONNX Runtime.
struct Case<'m> {
    name: String,
    export: Export<'m>,
    /// Inputs of several runs, of which the first is traced.
    runs: Vec<Vec<C>>,
}

impl Case<'_> {
    fn check(
        self,
        cpu: impl Fn(&[C]) -> Outcome<CpuBackend>,
        traced: impl Fn(&[Tensor<Trace>]) -> Outcome<Trace>,
    ) {
        let Case { name, export, runs } = self;
        let names: Vec<String> = (0..runs[0].len()).map(|i| format!("x{i}")).collect();
        let inputs: Vec<(&str, C)> =
            names.iter().map(String::as_str).zip(runs[0].iter().cloned()).collect();
        let outputs = ["y0", "y1", "y2", "y3"];
        let program = |x: &[Tensor<Trace>]| Ok(outputs.into_iter().zip(traced(x)?).collect());
        let file = export.name(&name).trace(&inputs, program);
        let file = file.unwrap_or_else(|error| panic!("{name}: {error}"));
        let place = folder().map(|folder| folder.join(&name));
        if let Some(place) = &place {
            fs::create_dir_all(place).unwrap();
            file.save(place.join("model.onnx")).unwrap();
        }
        let model =
            Model::from_owner(file.into_bytes()).unwrap_or_else(|error| panic!("{name}: {error}"));
        for (i, run) in runs.iter().enumerate() {
            let expected = cpu(run).unwrap();
            let save = |path: &Path, x: &C| {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                swath::io::npy::save(path, &x.contiguous().unwrap()).unwrap();
            };
            if let Some(place) = &place {
                let place = place.join(format!("run{i}"));
                run.iter()
                    .zip(&names)
                    .for_each(|(x, name)| save(&place.join(format!("in_{name}.npy")), x));
                let named = outputs.iter().zip(&expected);
                named.for_each(|(name, y)| save(&place.join(format!("out_{name}.npy")), y));
            }
            let found =
                model.run(names.iter().map(String::as_str).zip(run.iter().cloned())).unwrap();
            for (at, expected) in expected.iter().enumerate() {
                let wide = |x: &C| x.to_dtype(DType::F64).unwrap();
                let is_close = wide(&found[at])
                    .isclose(&wide(expected), 1e-4, 1e-5, true)
                    .unwrap()
                    .all(None, false)
                    .unwrap()
                    .item()
                    .unwrap();
                assert!(is_close && found[at].dims() == expected.dims(), "{name} by swath-onnx");
            }
        }
    }
}

fn case(name: impl Into<String>, inputs: Vec<C>) -> Case<'static> {
    Case { name: name.into(), export: Export::new(), runs: vec![inputs] }
}

/// Checks an expression of the inputs on both backends.
macro_rules! check {
    ($case:expr, |$x:ident, $B:ident| $body:expr) => {{
        fn cpu($x: &[C]) -> Outcome<CpuBackend> {
            #[allow(dead_code)]
            type $B = CpuBackend;
            Ok($body.into())
        }
        fn traced($x: &[Tensor<Trace>]) -> Outcome<Trace> {
            #[allow(dead_code)]
            type $B = Trace;
            Ok($body.into())
        }
        $case.check(cpu, traced);
    }};
}

// Behind the macro, which they use.
mod fused;
mod models;

/// Inputs of element-wise operations: odd shapes that broadcast, one of them without axes.
fn element_inputs(domains: &[(f64, f64)], dtype: DType) -> Vec<C> {
    let shapes = [vec![3, 1, 5], vec![2, 1], vec![5]];
    let mut rng = rng();
    domains
        .iter()
        .zip(shapes)
        .map(|(&domain, shape)| uniform(Shape::new(shape), domain, dtype, &mut rng))
        .collect()
}

#[test]
fn element_wise_operations() {
    for &op in UnaryOp::ALL {
        let dtypes = [DType::F32, DType::F16, DType::I64];
        let dtypes =
            dtypes.into_iter().filter(|dtype| dtype.is_float() || op.reference_integer().is_some());
        for dtype in dtypes {
            let inputs = element_inputs(&[op.domain()], dtype);
            let f = |x: &[C]| Ok(vec![C::from_data(CpuBackend::unary(op, x[0].data())?)]);
            let g =
                |x: &[Tensor<Trace>]| Ok(vec![Tensor::from_data(Trace::unary(op, x[0].data())?)]);
            case(format!("unary_{}_{dtype}", op.name()), inputs).check(f, g);
        }
    }
    // Derivatives are not recorded: programs run without recording gradients.
    let is_function = |name: &str| !name.ends_with("_grad");
    for &op in BinaryOp::ALL.iter().filter(|op| is_function(op.name())) {
        for dtype in [DType::F32, DType::I64] {
            if !dtype.is_float() && op.reference_integer().is_none() {
                continue;
            }
            let mut inputs = element_inputs(&op.domain(), dtype);
            if !dtype.is_float() {
                // No divisor is 0.
                inputs[1] = inputs[1]
                    .abs()
                    .unwrap()
                    .add(1)
                    .unwrap()
                    .mul(
                        uniform((2, 1), (-1.5, 1.5), DType::F32, &mut rng())
                            .sign()
                            .unwrap()
                            .to_dtype(dtype)
                            .unwrap(),
                    )
                    .unwrap();
            }
            fn f<B: Backend>(op: BinaryOp, x: &[Tensor<B>]) -> Outcome<B> {
                let shape = Shape::new([3, 2, 5]);
                let [a, b] = [x[0].broadcast_to(shape)?, x[1].broadcast_to(shape)?];
                let both = B::binary(op, a.data(), b.data())?;
                let number = swath::Arg::Scalar(swath::Scalar::Int(2));
                Ok(vec![
                    Tensor::from_data(both),
                    Tensor::from_data(B::binary(op, a.data(), number)?),
                ])
            }
            case(format!("binary_{}_{dtype}", op.name()), inputs).check(|x| f(op, x), |x| f(op, x));
        }
    }
    for &op in TernaryOp::ALL.iter().filter(|op| is_function(op.name())) {
        fn f<B: Backend>(op: TernaryOp, x: &[Tensor<B>]) -> Outcome<B> {
            let shape = Shape::new([3, 2, 5]);
            let [a, b, c] =
                [x[0].broadcast_to(shape)?, x[1].broadcast_to(shape)?, x[2].broadcast_to(shape)?];
            let numbers = [-0.5, 0.75].map(|x| swath::Arg::Scalar(swath::Scalar::Float(x)));
            let [low, high] = numbers;
            let y = B::ternary(op, a.data(), b.data(), c.data())?;
            Ok(vec![Tensor::from_data(y), Tensor::from_data(B::ternary(op, a.data(), low, high)?)])
        }
        case(format!("ternary_{}", op.name()), element_inputs(&op.domain(), DType::F32))
            .check(|x| f(op, x), |x| f(op, x));
    }
    for op in CompareOp::ALL {
        for dtype in [DType::F32, DType::I64, DType::Bool] {
            let inputs = element_inputs(&[(-2.0, 3.0), (-2.0, 3.0)], DType::I64);
            let inputs = inputs.iter().map(|x| x.to_dtype(dtype).unwrap()).collect();
            fn f<B: Backend>(op: CompareOp, x: &[Tensor<B>]) -> Outcome<B> {
                let shape = Shape::new([3, 2, 5]);
                let [a, b] = [x[0].broadcast_to(shape)?, x[1].broadcast_to(shape)?];
                Ok(vec![Tensor::from_data(B::compare(op, a.data(), b.data())?)])
            }
            case(format!("compare_{}_{dtype}", op.name()), inputs)
                .check(|x| f(op, x), |x| f(op, x));
        }
    }
    let special =
        C::from_vec(vec![f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 1.5], 5).unwrap();
    check!(case("tests", vec![special.clone()]), |x, B| [
        x[0].isnan()?,
        x[0].isinf()?,
        x[0].isfinite()?
    ]);
    let near = C::from_vec(
        vec![-1e-4f32, 1e-7, 0.0, 3e-3, -20.0, 30.0, f32::INFINITY, f32::NEG_INFINITY],
        8,
    )
    .unwrap();
    check!(case("expm1_near", vec![near.clone()]), |x, B| [x[0].expm1()?, x[0].abs()?.log1p()?]);
    let points = C::from_vec(vec![0.0f32, 1.0, -1.0, 0.0, -2.0], 5).unwrap();
    let others = C::from_vec(vec![0.0f32, 0.0, 0.0, -1.0, 3.0], 5).unwrap();
    check!(case("angles", vec![points, others]), |x, B| [x[0].atan2(&x[1])?, x[0].hypot(&x[1])?]);
    let inputs = vec![
        ints((4, 1), 2).to_dtype(DType::Bool).unwrap(),
        randn((4, 3)),
        ints(3, 2).to_dtype(DType::Bool).unwrap(),
    ];
    check!(case("where", inputs), |x, B| [
        Tensor::where_cond(&x[0], &x[1], &x[1].neg()?)?,
        Tensor::where_cond(&x[1].relu()?, &x[1], &Tensor::full((), 2.0f32)?)?,
        x[0].logical_and(&x[2])?.logical_or(&x[0].logical_not()?)?.logical_xor(&x[2])?,
        Tensor::where_cond(
            &x[1].gt(0.0)?,
            &x[0].broadcast_to((4, 3))?,
            &x[2].broadcast_to((4, 3))?
        )?,
    ]);
    check!(case("cast", vec![randn((2, 3)), ints((2, 1), 3)]), |x, B| [
        x[0].to_dtype(DType::F64)?,
        x[0].mul(3.0)?.to_dtype(DType::I32)?,
        x[1].to_dtype(DType::Bool)?,
        x[1].to_dtype(DType::F16)?,
    ]);
}

#[test]
fn reductions_scans_and_orders() {
    for (i, op) in ReduceOp::ALL.into_iter().enumerate() {
        for (axes, dtype) in [
            (vec![1], DType::F32),
            (vec![0, 2], DType::F32),
            (vec![], DType::F32),
            (vec![0, 1, 2], DType::I64),
        ] {
            if !dtype.is_float() && op.needs_floats() {
                continue;
            }
            let x = randn((3, 4, 5)).mul(2.0).unwrap().round().unwrap().to_dtype(dtype).unwrap();
            let x = if dtype.is_float() { x.add(randn((3, 4, 5))).unwrap() } else { x };
            fn f<B: Backend>(op: ReduceOp, x: &[Tensor<B>], axes: &[usize]) -> Outcome<B> {
                Ok(vec![Tensor::from_data(B::reduce(op, x[0].data(), axes)?)])
            }
            let name = format!("reduce_{i}_{}_{dtype}_{}", op.name(), axes.len());
            case(name, vec![x]).check(|x| f(op, x, &axes), |x| f(op, x, &axes));
        }
    }
    let bools = ints((3, 4), 2).to_dtype(DType::Bool).unwrap();
    check!(case("reduce_bool", vec![bools]), |x, B| [
        x[0].any(Some(&[1]), false)?,
        x[0].all(Some(&[0]), true)?,
        x[0].sum(None, false)?
    ]);
    let inputs = || vec![randn((3, 5, 2)), ints((2, 7), 4)];
    check!(case("scan", inputs()), |x, B| [
        x[0].cumsum(1)?,
        x[0].cumprod(1)?,
        x[1].cumsum(-1)?,
        x[1].cumprod(-1)?
    ]);
    check!(case("extremum_scan", inputs()), |x, B| {
        let (a, b) = x[0].cummax(1)?;
        let (c, d) = x[1].cummin(-1)?;
        [a, b, c, d]
    });
    check!(case("sort", inputs()), |x, B| {
        let (a, b) = x[0].sort(1, true)?;
        let (c, d) = x[1].sort(-1, false)?;
        [a, b, c, d]
    });
    check!(case("topk", inputs()), |x, B| {
        let (a, b) = x[0].topk(3, 1)?;
        [a, b, x[0].median(1, true)?, x[0].quantile(0.3, 1, false)?]
    });
    check!(case("search", vec![randn(6), randn((2, 3))]), |x, B| {
        let sorted = x[0].sort(0, false)?.0;
        [x[1].searchsorted(&sorted)?, x[1].searchsorted_right(&sorted)?]
    });
    check!(case("statistics", vec![randn((3, 5))]), |x, B| [
        x[0].variance(Some(&[1]), false, 1)?,
        x[0].logsumexp(Some(&[0]), true)?,
        x[0].argmax(1, false)?
    ]);
}

#[test]
fn indices_products_and_views() {
    let inputs = || vec![randn((3, 4, 5)), ints((2, 4, 3), 5), ints(6, 4)];
    check!(case("gather", inputs()), |x, B| [
        x[0].gather(2, &x[1])?,
        x[0].index_select(1, &x[2])?,
        x[0].index_select(1, &x[2].sub(4)?)?
    ]);
    let table = vec![randn((7, 3)), ints((2, 5), 7)];
    check!(case("embedding", table), |x, B| [
        x[0].embedding(&x[1])?,
        x[1].one_hot_as(7, 1, DType::F32)?
    ]);
    check!(case("scatter", vec![randn((3, 4)), ints((3, 1), 4), randn((3, 1))]), |x, B| [
        x[0].scatter(1, &x[1], &x[2])?,
        x[0].scatter_add(1, &x[1], &x[2])?,
        x[0].slice_assign([SliceItem::Index(1), SliceItem::from(1..3)], 7.0)?,
    ]);
    check!(case("cat", vec![randn((3, 4)), randn((3, 1))]), |x, B| [
        Tensor::cat(&[&x[0], &x[1], &x[0].narrow(1, 1, 2)?], 1)?,
        Tensor::stack(&[&x[0], &x[1].expand((3, 4))?], 0)?,
        Tensor::cat(&[&x[0], &Tensor::ones((2, 4), DType::F32)?], 0)?,
    ]);
    check!(
        case("matmul", vec![randn((2, 3, 4, 5)), randn((3, 5, 2)), randn(5), randn((4, 5))]),
        |x, B| [
            x[0].matmul(&x[1])?,
            x[0].matmul(&x[2])?,
            x[3].matmul(&x[1].narrow(0, 1, 1)?.squeeze(0)?)?,
            x[1].t()?.matmul(&x[3].t()?)?,
        ]
    );
    check!(case("einsum", vec![randn((2, 3, 4)), randn((3, 4, 5))]), |x, B| [
        Tensor::einsum("bij,ijk->bk", &[&x[0], &x[1]])?,
        Tensor::einsum("bij,ijk->jbi", &[&x[0], &x[1]])?
    ]);
    check!(case("views", vec![randn((2, 3, 4))]), |x, B| [
        x[0].permute(&[2, 0, 1])?.reshape((4, 6))?.t()?,
        x[0].narrow(1, 1, 2)?.flip(2)?.slice([
            SliceItem::Index(1),
            SliceItem::from(..),
            SliceItem::from(1..3)
        ])?,
        x[0].unsqueeze(1)?.expand((2, 5, 3, 4))?.reshape((10, 3, 4))?.narrow(0, 3, 4)?,
        x[0].flip((0, 1))?.flip((1, 2))?.narrow(2, 1, 3)?,
    ]);
    check!(case("strange_views", vec![randn((3, 3, 7))]), |x, B| [
        x[0].diagonal(0, 1)?,
        x[0].unfold(2, 3, 2)?,
        x[0].slice([
            SliceItem::from(..),
            SliceItem::from(..),
            SliceItem::Range { start: Some(5), end: Some(0), step: -2 }
        ])?,
        x[0].narrow(0, 2, 1)?
            .expand((4, 3, 7))?
            .permute(&[1, 0, 2])?
            .slice([SliceItem::Index(1)])?,
    ]);
    check!(case("pad", vec![randn((2, 3, 4))]), |x, B| [
        x[0].pad(&[(1, 2), (-1, 3)], PadMode::Constant(1.5))?,
        x[0].pad(&[(2, 1)], PadMode::Reflect)?,
        x[0].pad(&[(1, 0), (0, 2)], PadMode::Replicate)?,
        x[0].pad(&[(1, 2)], PadMode::Circular)?,
    ]);
    check!(case("roll", vec![randn((3, 4)), ints((3, 4), 9)]), |x, B| [
        x[0].roll(1, 1)?,
        x[0].tril(0)?,
        x[1].pad(&[(1, 1)], PadMode::Constant(0.0))?,
        x[0].repeat((2, 3))?,
    ]);
    check!(case("constants", vec![randn((2, 3))]), |x, B| [
        Tensor::arange(0.0, 3.0, 1.0)?,
        Tensor::<B>::ones((2, 3), DType::F32)?.matmul(&x[0].t()?)?,
        x[0].clone(),
        x[0].narrow(0, 0, 1)?.expand((4, 3))?,
    ]);
    check!(case("resized", vec![randn((1, 2, 5, 4))]), |x, B| [
        x[0].interpolate([7, 9], Interpolation::Bilinear { align_corners: false })?,
        x[0].resize(&Resize { scale: vec![2.0, 1.5], ..Resize::default() })?,
    ]);
}
