//! Inner products against the kernel.

use swath::prelude::*;

type T = Tensor<CpuBackend>;

/// The order of additions depends on the length alone, also if threads split the vectors.
#[test]
fn products_have_the_bits_of_the_kernel() -> Result<()> {
    let mut rng = Rng::seed(5);
    for n in [1000, 5000, 300_000, (1 << 20) + 1, 2_000_003] {
        let (a, b) = (T::randn(n, &mut rng)?, T::randn(n, &mut rng)?);
        let want = swath_kernels::dot(&a.to_vec::<f32>()?, &b.to_vec::<f32>()?);
        assert_eq!(a.dot(&b)?.item::<f32>()?.to_bits(), want.to_bits(), "{n}");
        let (a, b) = (a.to_dtype(DType::F64)?, b.to_dtype(DType::F64)?);
        let want = swath_kernels::dot(&a.to_vec::<f64>()?, &b.to_vec::<f64>()?);
        assert_eq!(a.dot(&b)?.item::<f64>()?.to_bits(), want.to_bits(), "{n}");
        let strided = T::cat(&[&a.unsqueeze(1)?, &b.unsqueeze(1)?], 1)?;
        let [a, b] = [0, 1].map(|i| strided.narrow(1, i, 1).and_then(|x| x.squeeze(1)));
        assert_eq!(a?.dot(&b?)?.item::<f64>()?.to_bits(), want.to_bits(), "{n}");
    }
    Ok(())
}

/// A row has the same bits alone, in any layout and among any number of rows.
#[test]
fn rows_have_the_bits_of_vectors() -> Result<()> {
    let mut rng = Rng::seed(6);
    for (rows, n) in [(1000, 3), (70, 1500), (3, 70_000)] {
        let (a, b) = (T::randn((rows, n), &mut rng)?, T::randn((rows, n), &mut rng)?);
        let column_major = |x: &T| x.t()?.contiguous()?.t();
        let want: Vec<f32> = (0..rows)
            .map(|i| a.slice(swath::s![i])?.dot(&b.slice(swath::s![i])?)?.item::<f32>())
            .collect::<Result<_>>()?;
        for (a, b) in [
            (a.clone(), b.clone()),
            (column_major(&a)?, b.clone()),
            (column_major(&a)?, column_major(&b)?),
        ] {
            let found = T::einsum("ij,ij->i", &[&a, &b])?.to_vec::<f32>()?;
            assert!(found.iter().zip(&want).all(|(x, y)| x.to_bits() == y.to_bits()), "{rows} {n}");
        }
    }
    Ok(())
}

#[test]
fn operands_that_do_not_fit_are_errors_with_the_shapes() {
    let zeros = |dims: &[usize]| T::zeros(dims, DType::F32).unwrap();
    let integers = tensor![i64; 1, 2];
    let booleans = integers.to_dtype(DType::Bool).unwrap();
    let cases: [(Result<T>, &[&str]); 7] = [
        (zeros(&[2]).dot(&zeros(&[3])), &["dot: ", "[2]", "[3]"]),
        (zeros(&[2, 2]).dot(&zeros(&[2, 2])), &["dot: ", "[2, 2]", "expected two vectors"]),
        (zeros(&[]).dot(&zeros(&[])), &["dot: ", "[]", "expected two vectors"]),
        (zeros(&[3]).dot(&zeros(&[3, 1])), &["dot: ", "[3]", "[3, 1]", "expected two vectors"]),
        (zeros(&[3]).dot(&zeros(&[1])), &["dot: ", "[3]", "[1]"]),
        (zeros(&[2]).dot(&integers), &["dot: ", "f32", "i64"]),
        (booleans.dot(&booleans), &["dot: ", "bool", "[2]"]),
    ];
    for (result, parts) in cases {
        let text = result.unwrap_err().to_string();
        for part in parts {
            assert!(text.contains(part), "\"{text}\" should contain \"{part}\"");
        }
    }
}

#[test]
fn integers_are_added_as_i64() {
    let (a, b) = (tensor![i64; i64::MAX, 3], tensor![i64; 2, -5]);
    let want = i64::MAX.wrapping_mul(2).wrapping_add(-15);
    assert_eq!(a.dot(&b).unwrap().item::<i64>().unwrap(), want);
    for (dtype, largest) in
        [(DType::U8, 255), (DType::U32, u32::MAX.into()), (DType::I32, i32::MAX.into())]
    {
        let narrow = |x: &T| x.to_dtype(dtype).unwrap();
        let (a, b) = (narrow(&tensor![i64; largest, 7]), narrow(&tensor![i64; 3, 9]));
        let dot = a.dot(&b).unwrap();
        assert_eq!(dot.item::<i64>().unwrap(), 3 * largest + 63, "{dtype}");
        // More elements than are converted at a time, from a strided view.
        let long: Vec<i64> = (0..400_001).map(|i| i % 101).collect();
        let long =
            narrow(&T::from_slice(&long, long.len()).unwrap()).slice(swath::s![..;2]).unwrap();
        let want: i64 = (0..400_001).step_by(2).map(|i| (i % 101) * (i % 101)).sum();
        assert_eq!(long.dot(&long).unwrap().item::<i64>().unwrap(), want, "{dtype}");
    }
    assert_eq!(tensor![i64;].dot(&tensor![i64;]).unwrap().item::<i64>().unwrap(), 0);
}
