//! Infinite values and NaN in images, filters and gradients.

use super::*;

/// Checks that NaN and infinities are at the same places, and that other elements are close.
fn alike(what: &str, x: &T, expected: &R, tolerance: f64) {
    let (x, expected) = (wide(x), wide(expected));
    let finite = expected.iter().filter(|x| x.is_finite());
    let scale = finite.fold(1.0f64, |scale, x| scale.max(x.abs()));
    for (i, (&x, &y)) in x.iter().zip(&expected).enumerate() {
        let is_alike = if y.is_finite() { (x - y).abs() <= tolerance * scale } else { x == y };
        assert!(is_alike || x.is_nan() && y.is_nan(), "{what}, element {i}: {x} instead of {y}");
    }
}

/// Pixels, filters and upstream gradients that are infinite or NaN meet no zero that the definition lacks.
#[test]
fn infinities_and_nan_spread_as_in_the_composites() -> Result<()> {
    let mut draw = Draw(Rng::seed(18));
    let mut infinite = 0;
    for i in 0..240 {
        let (dtype, tolerance) = DTYPES[i % 4];
        let groups = draw.of(&[1, 1, 2]);
        let (n, c, o) = (draw.of(&[1, 3]), groups * draw.of(&[1, 3]), groups * draw.of(&[1, 2]));
        let stride = [1 + draw.below(3), 1 + draw.below(3)];
        let dilation = [1 + draw.below(2), 1 + draw.below(2)];
        let [h, w, kh, kw] = [7, 18, 4, 4].map(|most| 1 + draw.below(most));
        let zeros = [draw.below(3), draw.below(3)];
        let is_transposed = draw.below(2) == 0;
        let specials = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        // Each operand has special values in a third of all cases.
        let special = |shape: Shape, draw: &mut Draw| -> Result<T> {
            let mut x = wide(&draw.tensor::<CpuBackend>(shape, dtype)?);
            for _ in 0..draw.of(&[0, 0, 1, 2]) {
                let at = draw.below(x.len());
                x[at] = draw.of(&specials);
            }
            T::from_vec(x, shape)?.to_dtype(dtype)
        };
        let x = special(Shape::new([n, c, h, w]), &mut draw)?;
        let filters = if is_transposed { [c, o / groups] } else { [o, c / groups] };
        let weight = special(Shape::new([filters[0], filters[1], kh, kw]), &mut draw)?;
        fn run<B: Backend>(
            x: &Tensor<B>,
            w: &Tensor<B>,
            [stride, dilation, zeros]: [[usize; 2]; 3],
            groups: usize,
            is_transposed: bool,
        ) -> Result<Tensor<B>> {
            if is_transposed {
                let (padding, output_padding) = (zeros, [0; 2]);
                let options =
                    ConvTransposeOptions { stride, padding, output_padding, dilation, groups };
                return x.conv_transpose2d(w, None, options);
            }
            let options = ConvOptions { stride, padding: Padding::Zeros(zeros), dilation, groups };
            x.conv2d(w, None, options)
        }
        let options = [stride, dilation, zeros];
        let what = format!(
            "{i}: {dtype} {} {} {options:?} {groups} {is_transposed}",
            x.shape(),
            weight.shape()
        );
        let (x, weight) = (x.requires_grad(), weight.requires_grad());
        let (plain_x, plain_weight) =
            (reference(&x).requires_grad(), reference(&weight).requires_grad());
        let Ok(y) = run(&x, &weight, options, groups, is_transposed) else { continue };
        let expected = run(&plain_x, &plain_weight, options, groups, is_transposed)?;
        alike(&what, &y, &expected, tolerance);
        let g = special(*y.shape(), &mut draw)?;
        let grads = y.backward_with(&g)?;
        let plain = expected.backward_with(&reference(&g))?;
        for (name, x, plain_x) in [("x", &x, &plain_x), ("weight", &weight, &plain_weight)] {
            let what = format!("{what}, gradient of {name}");
            alike(&what, grads.wrt(x)?, plain.wrt(plain_x)?, tolerance);
        }
        infinite += usize::from(wide(&expected).iter().any(|y| !y.is_finite()));
    }
    assert!(infinite > 60, "{infinite}");
    Ok(())
}

#[test]
fn an_infinite_filter_reaches_the_pixels_of_its_windows_alone() -> Result<()> {
    let x = T::ones((1, 1, 2, 2), DType::F32)?;
    let mut filter = vec![1.0f32; 9];
    filter[0] = f32::INFINITY;
    let w = T::from_vec(filter, (1, 1, 3, 3))?;
    let y = x.conv_transpose2d(&w, None, ConvTransposeOptions::default())?;
    let inf = f32::INFINITY;
    let expected = [inf, inf, 2.0, 1.0, inf, inf, 4.0, 2.0, 2.0, 4.0, 4.0, 2.0, 1.0, 2.0, 2.0, 1.0];
    assert_eq!(y.to_vec::<f32>()?, expected);
    // Channels of finite filters keep their bits, as do phases of the stride without infinite elements.
    let mut rng = Rng::seed(19);
    let x = T::randn((2, 5, 9, 11), &mut rng)?;
    let plain = T::randn((5, 3, 3, 3), &mut rng)?;
    let mut values = plain.to_vec::<f32>()?;
    // Input 2, output 1, place [0, 0]: pixels of even rows and columns.
    values[(2 * 3 + 1) * 9] = f32::INFINITY;
    let infinite = T::from_vec(values, *plain.shape())?;
    let options = ConvTransposeOptions { stride: [2, 2], ..Default::default() };
    let [expected, y] = [plain, infinite].map(|w| x.conv_transpose2d(&w, None, options).unwrap());
    let [h, w] = [y.dims()[2], y.dims()[3]];
    let mut infinities = 0;
    for (i, (a, b)) in bits(&expected).into_iter().zip(bits(&y)).enumerate() {
        let (channel, row, column) = (i / (h * w) % 3, i / w % h, i % w);
        if channel != 1 || row % 2 == 1 || column % 2 == 1 {
            assert_eq!(a, b, "{i}");
        } else {
            infinities += usize::from(f32::from_bits(b).is_infinite());
        }
    }
    assert_eq!(infinities, 2 * 9 * 11);
    Ok(())
}

/// Rows of windows lie apart in the copies of images; what is between them is no part of any window.
#[test]
fn an_infinite_pixel_changes_the_gradient_of_its_filter_alone() -> Result<()> {
    let mut rng = Rng::seed(16);
    let x = T::randn((2, 3, 9, 20), &mut rng)?;
    let w = T::randn((3, 1, 3, 3), &mut rng)?;
    let g = T::randn((2, 3, 9, 20), &mut rng)?;
    let mut values = x.to_vec::<f32>()?;
    // Image 0, channel 1, row 4, the last column.
    values[20 * (9 + 4) + 19] = f32::INFINITY;
    let infinite = T::from_vec(values, *x.shape())?;
    let padding = Padding::Zeros([1, 1]);
    let options = ConvOptions { groups: 3, padding, ..Default::default() };
    let gradient = |x: &T| -> Result<Vec<f32>> {
        let w = w.requires_grad();
        x.conv2d(&w, None, options)?.backward_with(&g)?.wrt(&w)?.to_vec::<f32>()
    };
    let plain = reference(&w).requires_grad();
    let grads =
        reference(&infinite).conv2d(&plain, None, options)?.backward_with(&reference(&g))?;
    let expected = grads.wrt(&plain)?.to_vec::<f64>()?;
    let (without, with) = (gradient(&x)?, gradient(&infinite)?);
    for i in 0..27 {
        let (x, y) = (without[i], with[i]);
        if i / 9 != 1 {
            assert_eq!(x.to_bits(), y.to_bits(), "{i}");
        } else if expected[i].is_finite() {
            assert!((x - y).abs() <= 1e-4, "{i}: {y} instead of {x}");
        } else {
            assert_eq!(f64::from(y), expected[i], "{i}");
        }
    }
    assert!(expected.iter().any(|x| x.is_infinite()));
    Ok(())
}
