//! Kernels that a program defines on pulp's vectors: `map_with`, `zip_with` and `simd_op`.

use swath::prelude::*;
use swath::pulp::Simd;
use swath::{AnyBackend, Arg, Device, SimdBackend, SimdOp};

type T = Tensor<CpuBackend>;

/// x / (1 + |x|).
#[derive(Clone)]
struct Softsign;

impl SimdOp<1> for Softsign {
    const NAME: &'static str = "softsign";

    #[inline(always)]
    fn f32s<S: Simd>(&self, simd: S, [x]: [S::f32s; 1]) -> S::f32s {
        simd.div_f32s(x, simd.add_f32s(simd.splat_f32s(1.0), simd.abs_f32s(x)))
    }

    #[inline(always)]
    fn f64s<S: Simd>(&self, simd: S, [x]: [S::f64s; 1]) -> S::f64s {
        simd.div_f64s(x, simd.add_f64s(simd.splat_f64s(1.0), simd.abs_f64s(x)))
    }
}

/// √|a - b| where a < b, else a · b.
struct Mixed;

impl SimdOp<2> for Mixed {
    const NAME: &'static str = "mixed";
    const IS_CHEAP: bool = true;

    #[inline(always)]
    fn f32s<S: Simd>(&self, simd: S, [a, b]: [S::f32s; 2]) -> S::f32s {
        let root = simd.sqrt_f32s(simd.abs_f32s(simd.sub_f32s(a, b)));
        simd.select_f32s(simd.less_than_f32s(a, b), root, simd.mul_f32s(a, b))
    }

    #[inline(always)]
    fn f64s<S: Simd>(&self, simd: S, [a, b]: [S::f64s; 2]) -> S::f64s {
        let root = simd.sqrt_f64s(simd.abs_f64s(simd.sub_f64s(a, b)));
        simd.select_f64s(simd.less_than_f64s(a, b), root, simd.mul_f64s(a, b))
    }
}

fn softsign<B: Backend>(x: &Tensor<B>) -> Result<Tensor<B>> {
    x.div(x.abs()?.add_scalar(1.0)?)
}

fn mixed<B: Backend>(a: &Tensor<B>, b: &Tensor<B>) -> Result<Tensor<B>> {
    a.lt(b)?.select(&a.sub(b)?.abs()?.sqrt()?, &a.mul(b)?)
}

/// Bits of the values, with a single NaN for all NaNs.
fn bits(x: &T) -> Result<Vec<u64>> {
    let values = x.to_dtype(DType::F64)?.to_vec::<f64>()?;
    Ok(values.into_iter().map(|x| if x.is_nan() { u64::MAX } else { x.to_bits() }).collect())
}

/// Numbers of every class.
fn numbers(len: usize, dtype: DType, seed: usize) -> Result<T> {
    let special = [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e-310, 1e-40, -3e38];
    let number = |i: usize| match (i + seed) % 5 {
        0 => special[i / 5 % special.len()],
        _ => ((i * 7 + seed) as f64 * 0.61).sin() * 20.0,
    };
    T::from_vec((0..len).map(number).collect::<Vec<f64>>(), len)?.to_dtype(dtype)
}

/// The values on the reference backend, which shares no code with the kernels.
fn reference(x: &T) -> Result<Tensor<ReferenceBackend>> {
    x.to_backend()
}

fn views(x: &T) -> Result<Vec<(&'static str, T)>> {
    let n = x.numel();
    let square = x.narrow(0, 1, 30 * 40)?.reshape((30, 40))?;
    Ok(vec![
        ("contiguous", x.clone()),
        ("an offset", x.narrow(0, 13, n - 20)?),
        ("stride 3", x.slice(s![1..;3])?),
        ("stride -2", x.slice(s![..;-2])?),
        ("stride 0", x.narrow(0, 9, 1)?.broadcast_to(77)?),
        ("rows repeated", square.narrow(0, 3, 1)?.broadcast_to((30, 40))?),
        ("columns repeated", square.narrow(1, 5, 1)?.broadcast_to((30, 40))?),
        ("transposed", square.t()?),
        ("three axes", square.reshape((5, 6, 40))?.permute(&[2, 0, 1])?),
        ("columns", square.narrow(1, 3, 5)?),
        ("empty", square.narrow(1, 3, 0)?),
        ("one", square.narrow(1, 3, 1)?.narrow(0, 2, 1)?),
        ("scalar", x.narrow(0, 8, 1)?.reshape(())?),
    ])
}

#[test]
fn any_layout_gives_the_values_of_the_reference_backend() -> Result<()> {
    for dtype in [DType::F32, DType::F64] {
        for (name, x) in views(&numbers(1301, dtype, 1)?)? {
            let y = x.map_with(Softsign)?;
            assert_eq!((y.shape(), y.dtype()), (x.shape(), dtype), "{name}");
            let expected = softsign(&reference(&x)?)?.to_backend::<CpuBackend>()?;
            assert_eq!(bits(&y)?, bits(&expected)?, "{name} {dtype}");
        }
    }
    Ok(())
}

#[test]
fn two_operands_of_any_layout_broadcast() -> Result<()> {
    for dtype in [DType::F32, DType::F64] {
        let (a, b) = (numbers(1301, dtype, 1)?, numbers(1301, dtype, 3)?);
        for ((name, a), (_, b)) in views(&a)?.into_iter().zip(views(&b)?) {
            let mut pairs = vec![(a.clone(), b.clone())];
            if a.rank() == 2 && a.numel() > 1 {
                pairs.push((a.clone(), b.narrow(0, 1, 1)?));
                pairs.push((a.narrow(1, 0, a.dims()[1].min(1))?, b.clone()));
                pairs.push((a.flip(0)?, b.flip(1)?));
            }
            for (a, b) in pairs {
                let y = a.zip_with(&b, &Mixed)?;
                let expected = mixed(&reference(&a)?, &reference(&b)?)?;
                assert_eq!(bits(&y)?, bits(&expected.to_backend()?)?, "{name} {dtype}");
                let y = a.zip_with(0.5, &Mixed)?;
                let half = Tensor::full((), 0.5f64)?.to_dtype(dtype)?;
                assert_eq!(bits(&y)?, bits(&mixed(&reference(&a)?, &half)?.to_backend()?)?);
            }
        }
    }
    Ok(())
}

/// Vectors have up to 16 lanes; every length ends in another part of one.
#[test]
fn an_elements_bits_depend_on_its_value_alone() -> Result<()> {
    for dtype in [DType::F32, DType::F64] {
        let (a, b) = (numbers(70, dtype, 0)?, numbers(70, dtype, 2)?);
        let (ones, pairs) = (bits(&a.map_with(Softsign)?)?, bits(&a.zip_with(&b, Mixed)?)?);
        for start in 0..3 {
            for len in 0..=70 - start {
                let (a, b) = (a.narrow(0, start, len)?, b.narrow(0, start, len)?);
                let end = start + len;
                assert_eq!(bits(&a.map_with(Softsign)?)?, ones[start..end], "{start}..{end}");
                assert_eq!(bits(&a.zip_with(&b, Mixed)?)?, pairs[start..end], "{start}..{end}");
            }
        }
    }
    Ok(())
}

/// A result of more than 16 MiB is written by non-temporal stores, in parts by several threads.
#[test]
fn large_results_are_those_of_small_ones() -> Result<()> {
    let len = (4 << 20) + 20_077;
    let x = numbers(len, DType::F32, 1)?;
    let y = x.map_with(Softsign)?;
    let rows = x.narrow(0, 0, 2051 * 2050)?.reshape((2051, 2050))?;
    let (column, row) = (rows.narrow(1, 3, 1)?, rows.narrow(0, 5, 1)?);
    let sum = rows.slice(s![.., 1..])?.zip_with(&column, Mixed)?;
    for at in [0, 1, 1021, len / 2 + 5, len - 300] {
        let part = x.narrow(0, at, 300)?.contiguous()?.map_with(Softsign)?;
        assert_eq!(bits(&y.narrow(0, at, 300)?)?, bits(&part)?, "at {at}");
    }
    for r in [0, 1, 1000, 2050] {
        let of_row = |x: &T| x.narrow(0, r, 1)?.contiguous();
        let part = of_row(&rows.slice(s![.., 1..])?)?.zip_with(&of_row(&column)?, Mixed)?;
        assert_eq!(bits(&sum.narrow(0, r, 1)?)?, bits(&part)?, "row {r}");
    }
    let outer = column.zip_with(&row, Mixed)?;
    let part = column.narrow(0, 77, 1)?.zip_with(&row, Mixed)?;
    assert_eq!(bits(&outer.narrow(0, 77, 1)?)?, bits(&part)?);
    Ok(())
}

fn address(x: &T) -> Result<*const f32> {
    Ok(x.as_slice::<f32>()?.as_ptr())
}

#[test]
fn an_owned_operand_that_nothing_shares_gives_its_memory() -> Result<()> {
    let x = numbers(1000, DType::F32, 1)?;
    let (expected, before) = (bits(&x.map_with(Softsign)?)?, bits(&x)?);
    let shared = x.clone();
    let y = x.clone().into_map_with(Softsign)?;
    assert_ne!(address(&y)?, address(&x)?);
    assert_eq!((bits(&y)?, bits(&shared)?), (expected.clone(), before));
    drop(shared);
    let at = address(&x)?;
    let y = x.into_map_with(Softsign)?;
    assert_eq!((address(&y)?, bits(&y)?), (at, expected));

    let (a, b) = (numbers(1000, DType::F32, 1)?, numbers(1000, DType::F32, 3)?);
    let (expected, at) = (bits(&a.zip_with(&b, Mixed)?)?, address(&b)?);
    let y = a.zip_with(b, Mixed)?;
    assert_eq!((address(&y)?, bits(&y)?), (at, expected));
    // A view of a part is not overwritten, nor is an operand that broadcasts.
    let b = numbers(1000, DType::F32, 3)?;
    let whole = bits(&b)?;
    let expected = bits(&a.narrow(0, 5, 900)?.zip_with(&b.narrow(0, 7, 900)?, Mixed)?)?;
    let y = a.narrow(0, 5, 900)?.zip_with(b.narrow(0, 7, 900)?, Mixed)?;
    assert_eq!((bits(&y)?, bits(&b)?), (expected, whole));
    let row = numbers(40, DType::F32, 2)?;
    let expected = bits(&a.reshape((25, 40))?.zip_with(&row, Mixed)?)?;
    assert_eq!(bits(&a.reshape((25, 40))?.zip_with(row, Mixed)?)?, expected);
    Ok(())
}

#[test]
fn errors_name_the_operation() -> Result<()> {
    for dtype in DType::ALL.iter().filter(|dtype| !matches!(dtype, DType::F32 | DType::F64)) {
        let x = T::ones((2, 3), *dtype)?;
        let error = x.map_with(Softsign).unwrap_err();
        let Error::UnsupportedDType { op: "softsign", dtype: named, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(named, *dtype);
        let text = error.to_string();
        assert!(text.contains("softsign") && text.contains(&dtype.to_string()), "{text}");
        assert!(x.into_map_with(Softsign).is_err());
    }
    let x = T::ones((2, 3), DType::F32)?;
    let error = x.zip_with(&T::ones((2, 4), DType::F32)?, Mixed).unwrap_err();
    assert!(matches!(error, Error::ShapeMismatch { op: "mixed", .. }), "{error}");
    let error = x.zip_with(&T::ones((2, 3), DType::F64)?, Mixed).unwrap_err();
    assert!(matches!(error, Error::DTypeMismatch { op: "mixed", .. }), "{error}");
    let error = CpuBackend::simd_op(&Mixed, [Arg::Scalar(1.0.into()), Arg::Scalar(2.0.into())]);
    assert!(matches!(error, Err(Error::InvalidArgument { op: "mixed", .. })));
    let error =
        CpuBackend::simd_op(&Mixed, [x.data().into(), T::ones(3, DType::F32)?.data().into()]);
    assert!(matches!(error, Err(Error::ShapeMismatch { op: "mixed", .. })));
    Ok(())
}

#[test]
fn a_tracked_operand_is_an_error_and_loses_no_gradient() -> Result<()> {
    let (x, c) = (tensor![1.0, 2.0].requires_grad(), tensor![3.0, 4.0]);
    let results = [
        ("softsign", x.map_with(Softsign)),
        ("softsign", x.square()?.into_map_with(Softsign)),
        ("mixed", x.zip_with(&c, Mixed)),
        ("mixed", c.zip_with(&x, Mixed)),
    ];
    for (name, result) in results {
        let error = result.unwrap_err();
        assert!(matches!(error, Error::NoGradient { op, .. } if op == name), "{error}");
        assert!(error.to_string().contains("CustomOp"), "{error}");
    }
    let y = no_grad(|| x.map_with(Softsign))?;
    assert!(!y.is_tracked());
    assert_eq!(bits(&y)?, bits(&x.detach().map_with(Softsign)?)?);
    Ok(())
}

type Data = <CpuBackend as Backend>::Tensor;

impl CustomOp<CpuBackend> for Softsign {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn forward(&self, xs: &[&Data]) -> Result<Data> {
        CpuBackend::simd_op(self, [xs[0].into()])
    }

    fn backward(&self, xs: &[&T], _: &T, g: &T) -> Result<Vec<Option<T>>> {
        Ok(vec![Some(g.div(xs[0].abs()?.add_scalar(1.0)?.square()?)?)])
    }
}

#[test]
fn a_custom_op_gives_a_kernel_its_gradient() -> Result<()> {
    let x = tensor![f64; -3.0, -0.4, 0.7, 5.0];
    let options = GradCheck { order: 2, ..Default::default() };
    check_gradients(|xs: &[T]| T::apply(&Softsign, &[&xs[0]]), &[&x], options)
}

#[test]
fn the_cpu_computes_and_other_backends_refuse() -> Result<()> {
    let x = numbers(50, DType::F32, 1)?;
    let error = reference(&x)?.map_with(Softsign).unwrap_err();
    assert!(
        matches!(error, Error::Unsupported { op: "softsign", backend: "reference" }),
        "{error}"
    );
    let any = |device| x.to_backend::<AnyBackend>()?.to_device(device);
    let cpu = any(Device::Cpu)?;
    let y = cpu.map_with(Softsign)?;
    assert_eq!(y.device(), Device::Cpu);
    assert_eq!(bits(&y.to_backend()?)?, bits(&x.map_with(Softsign)?)?);
    let y = cpu.zip_with(&cpu, Mixed)?.into_map_with(Softsign)?;
    let expected = x.zip_with(&x, Mixed)?.into_map_with(Softsign)?;
    assert_eq!(bits(&y.to_backend()?)?, bits(&expected)?);
    let elsewhere = any(Device::Reference)?;
    for result in [elsewhere.map_with(Softsign), cpu.zip_with(&elsewhere, Mixed)] {
        let error = result.unwrap_err();
        assert!(matches!(error, Error::Unsupported { backend: "reference", .. }), "{error}");
    }
    Ok(())
}
