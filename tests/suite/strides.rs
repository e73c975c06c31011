//! An element's bits do not depend on how it is accessed: by any stride, offset or broadcast, alone or among
//! others.

use swath::ops::{BinaryOp, UnaryOp};
use swath::prelude::*;

type T = Tensor<CpuBackend>;

const FLOATS: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];
const LEN: usize = 1201;

/// Numbers of every class and of many exponents, mixed.
fn values(dtype: DType, seed: f64) -> Result<T> {
    let special = [0.0, -0.0, 1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e-310, 1e-40, 3e-7];
    let number = |i: usize| match i % 7 {
        0 => special[i / 7 % special.len()],
        1 => (i as f64 * 0.61 + seed).sin() * 1e5,
        2 => ((i as f64 * 0.37 + seed).sin() * 80.0).exp() * 1e-20,
        _ => (i as f64 * 1.7 + seed).sin() * 4.0,
    };
    T::from_vec((0..LEN).map(number).collect::<Vec<f64>>(), LEN)?.to_dtype(dtype)
}

/// Bits of the values, with a single NaN for all NaNs.
fn bits(x: &T) -> Result<Vec<u64>> {
    let values = x.to_dtype(DType::F64)?.to_vec::<f64>()?;
    Ok(values.into_iter().map(|x| if x.is_nan() { u64::MAX } else { x.to_bits() }).collect())
}

/// Named views of a tensor of one axis.
fn views(x: &T) -> Result<Vec<(&'static str, T)>> {
    let square = x.narrow(0, 1, 1200)?.reshape((30, 40))?;
    Ok(vec![
        ("stride 1", x.clone()),
        ("an offset", x.narrow(0, 13, LEN - 20)?),
        ("stride 2", x.slice(s![..;2])?),
        ("stride 3", x.slice(s![1..;3])?),
        ("stride -1", x.slice(s![..;-1])?),
        ("stride -3", x.slice(s![..;-3])?),
        ("stride 0", x.narrow(0, 9, 1)?.broadcast_to(77)?),
        ("rows repeated", square.narrow(0, 3, 1)?.broadcast_to((30, 40))?),
        ("columns repeated", square.narrow(1, 5, 1)?.broadcast_to((30, 40))?),
        ("transposed", square.t()?),
    ])
}

#[test]
fn functions_of_one_argument() -> Result<()> {
    for dtype in FLOATS {
        let x = values(dtype, 0.3)?;
        let views = views(&x)?;
        for &op in UnaryOp::ALL {
            let all = x.unary(op)?;
            for i in (0..LEN).step_by(97) {
                let alone = x.narrow(0, i, 1)?.contiguous()?.unary(op)?;
                assert_eq!(bits(&alone)?, bits(&all.narrow(0, i, 1)?)?, "{op:?} {dtype} at {i}");
            }
            for (name, view) in &views {
                let expected = view.contiguous()?.unary(op)?;
                assert_eq!(bits(&view.unary(op)?)?, bits(&expected)?, "{op:?} {dtype}, {name}");
            }
        }
    }
    Ok(())
}

#[test]
fn functions_of_two_arguments() -> Result<()> {
    for dtype in FLOATS {
        let (a, b) = (views(&values(dtype, 0.1)?)?, views(&values(dtype, 0.8)?)?);
        for &op in BinaryOp::ALL {
            for (i, (a_name, a)) in a.iter().enumerate() {
                for (j, (b_name, b)) in b.iter().enumerate() {
                    // Views of one axis are narrowed to the shorter one; views of two have equal shapes.
                    let (a, b) = match (a.rank(), b.rank()) {
                        (1, 1) => {
                            let len = a.numel().min(b.numel());
                            (a.narrow(0, 0, len)?, b.narrow(0, 0, len)?)
                        }
                        (2, 2) if a.shape() == b.shape() => (a.clone(), b.clone()),
                        (2, 2) => (a.clone(), b.t()?),
                        _ => continue,
                    };
                    if (i + 2 * j) % 3 == 2 {
                        continue;
                    }
                    let expected = a.contiguous()?.binary(op, &b.contiguous()?)?;
                    let got = a.binary(op, &b)?;
                    let case = format!("{op:?} {dtype}, {a_name} with {b_name}");
                    assert_eq!(bits(&got)?, bits(&expected)?, "{case}");
                }
            }
        }
    }
    Ok(())
}
