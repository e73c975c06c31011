//! `im2col` and `col2im` against each other, and a convolution against its definition.

use swath::ConvOptions;
use swath::prelude::*;

type T = Tensor<CpuBackend>;

/// `⟨im2col(x), y⟩ = ⟨x, col2im(y)⟩`, exact for small integers; with more channels than threads.
#[test]
fn im2col_and_col2im_are_adjoint() -> Result<()> {
    let mut rng = Rng::seed(3);
    let options = ConvOptions::new().stride([2, 1]).padding([1, 2]);
    for dtype in [DType::F32, DType::F64] {
        let small = |x: T| x.mul_scalar(3.0)?.round()?.to_dtype(dtype);
        let x = small(T::randn((4, 33, 21, 30), &mut rng)?)?;
        let columns = x.im2col([3, 4], options)?;
        let y = small(T::randn(*columns.shape(), &mut rng)?)?;
        let of = |x: T| x.sum(None, false)?.to_dtype(DType::F64)?.item::<f64>();
        let (left, right) =
            (of(columns.mul(&y)?)?, of(x.mul(y.col2im([21, 30], [3, 4], options)?)?)?);
        assert_eq!(left, right);
        assert_ne!(left, 0.0);
    }
    Ok(())
}

/// Compares the product of filters and columns with a convolution, element by element.
#[test]
fn a_product_with_the_columns_is_a_convolution() -> Result<()> {
    let [n, c, h, w, m, kh, kw] = [2, 3, 6, 5, 4, 3, 2];
    let x = T::arange(0.0, (n * c * h * w) as f64, 1.0)?.rem(7.0)?.reshape([n, c, h, w])?;
    let weights = T::arange(0.0, (m * c * kh * kw) as f64, 1.0)?.rem(5.0)?;
    let options = ConvOptions::new().stride([2, 1]).padding([1, 0]);
    let [oh, ow] = [3, 4];
    let y = weights.reshape([m, c * kh * kw])?.matmul(&x.im2col([kh, kw], options)?)?;
    assert_eq!(y.shape(), &Shape::new([n, m, oh * ow]));
    let (x, weights, y) = (x.to_vec::<f32>()?, weights.to_vec::<f32>()?, y.to_vec::<f32>()?);
    let mut found = y.into_iter();
    for (image, filter) in (0..n).flat_map(|i| (0..m).map(move |f| (i, f))) {
        for (oy, ox) in (0..oh).flat_map(|oy| (0..ow).map(move |ox| (oy, ox))) {
            let mut sum = 0.0;
            for (i, weight) in weights[filter * c * kh * kw..][..c * kh * kw].iter().enumerate() {
                let (channel, ky, kx) = (i / (kh * kw), i / kw % kh, i % kw);
                let (row, col) = (2 * oy + ky, ox + kx);
                if (1..=h).contains(&row) {
                    sum += weight * x[((image * c + channel) * h + row - 1) * w + col];
                }
            }
            assert_eq!(found.next(), Some(sum), "{image} {filter} {oy} {ox}");
        }
    }
    Ok(())
}

#[test]
fn bad_sizes_are_errors_with_the_shapes() {
    let plain = ConvOptions::new();
    let zeros = |dims: &[usize]| T::zeros(dims, DType::F32).unwrap();
    let integers = T::zeros((1, 4, 9), DType::I64).unwrap();
    let huge = plain.padding(1 << 31);
    let cases: [(Result<T>, &[&str]); 12] = [
        (zeros(&[2, 3, 4]).im2col(2, plain), &["im2col: ", "[2, 3, 4]", "[n, c, h, w]"]),
        (zeros(&[1, 1, 1, 5]).im2col(2, plain), &["im2col: ", "[1, 1, 1, 5]", "[2, 2]"]),
        (zeros(&[1, 1, 5, 5]).im2col([0, 2], plain), &["im2col: ", "[0, 2]"]),
        (zeros(&[1, 1, 5, 5]).im2col(2, plain.stride([0, 1])), &["im2col: ", "[0, 1]"]),
        (zeros(&[1, 1, 5, 5]).im2col(2, huge), &["im2col: ", "too many"]),
        (zeros(&[1, 4]).col2im([3, 3], 2, plain), &["col2im: ", "[1, 4]"]),
        (zeros(&[1, 5, 4]).col2im([3, 3], 2, plain), &["col2im: ", "[1, 5, 4]", "[2, 2]"]),
        (zeros(&[1, 4, 5]).col2im([3, 3], 2, plain), &["col2im: ", "[1, 4, 5]", "[1, 4, 4]"]),
        (zeros(&[1, 4, 5]).col2im([1, 1], 2, plain), &["col2im: ", "[1, 1, 1, 1]"]),
        (zeros(&[1, 4, 5]).col2im([usize::MAX; 2], 2, plain), &["col2im: ", "more elements"]),
        (zeros(&[1, 4, 5]).col2im([3, 3], [2, 0], plain), &["col2im: ", "[2, 0]"]),
        (integers.col2im([4, 4], 2, plain), &["col2im: ", "i64", "[1, 4, 9]"]),
    ];
    for (i, (result, parts)) in cases.into_iter().enumerate() {
        let text = result.err().unwrap_or_else(|| panic!("case {i} is no error")).to_string();
        for part in parts {
            assert!(text.contains(part), "\"{text}\" should contain \"{part}\"");
        }
    }
}
