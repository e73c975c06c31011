//! Fourier transforms and windows: against PyTorch on both backends, against the sums that define them, and what their
//! pages promise.

use std::f64::consts::TAU;

use swath::prelude::*;
use swath::{Axes, FftNorm, FftOptions, StftOptions, Window};

use crate::images::close;
use crate::support::vectors::Vectors;

type T = Tensor<CpuBackend>;

/// The vectors of tests/vectors/make_spectra.py.
fn vectors() -> Vectors {
    Vectors::read(include_str!("../vectors/spectra.txt"))
}

fn wide(x: &T) -> Vec<f64> {
    x.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap()
}

fn along(axes: impl Into<Axes>) -> FftOptions {
    FftOptions::new(axes)
}

/// The call of a case of the vectors.
fn call<B: Backend>(name: &str, xs: &[Tensor<B>]) -> Result<Tensor<B>> {
    let x = &xs[0];
    let frames = |n| StftOptions::<B>::new(n);
    match name {
        "fft" => x.fft(0),
        "fft_padded" => x.fft(along(-1).n(7).norm(FftNorm::Ortho)),
        "ifft_cut" => x.ifft(along(-2).n(3)),
        "ifft_forward" => x.ifft(along(0).norm(FftNorm::Forward)),
        "fft2" => x.fft(along([2, 0]).n([4, 2]).norm(FftNorm::Forward)),
        "rfft" => x.rfft(0),
        "rfft_odd" => x.rfft(along(1).n(5).norm(FftNorm::Forward)),
        "rfft2" => x.rfft(along([-1, -2]).n([2, 5]).norm(FftNorm::Ortho)),
        "irfft" => x.irfft(-1),
        "irfft_odd" => x.irfft(along(0).n(5).norm(FftNorm::Ortho)),
        "irfft2" => x.irfft(along([0, 1]).n([3, 4])),
        "stft" => x.stft(&frames(8)),
        "stft_window" => x.stft(&frames(8).window(&xs[1]).hop_length(3).normalized(true)),
        "stft_left" => x.stft(&frames(8).window(&xs[1]).center(false).onesided(false)),
        "stft_constant" => x.stft(&frames(5).hop_length(2).pad_mode(PadMode::Constant(0.0))),
        "istft" => x.istft(&frames(8), None),
        "istft_window" => x.istft(&frames(8).window(&xs[1]).hop_length(3).normalized(true), None),
        "istft_left" => x.istft(&frames(6).hop_length(2).center(false), None),
        "istft_long" => x.istft(&frames(5).hop_length(2), Some(12)),
        _ => panic!("no case {name}"),
    }
}

const CASES: [(&str, usize); 19] = [
    ("fft", 1),
    ("fft_padded", 1),
    ("ifft_cut", 1),
    ("ifft_forward", 1),
    ("fft2", 1),
    ("rfft", 1),
    ("rfft_odd", 1),
    ("rfft2", 1),
    ("irfft", 1),
    ("irfft_odd", 1),
    ("irfft2", 1),
    ("stft", 1),
    ("stft_window", 2),
    ("stft_left", 2),
    ("stft_constant", 1),
    ("istft", 1),
    ("istft_window", 2),
    ("istft_left", 1),
    ("istft_long", 1),
];

fn check_on<B: Backend>(dtype: DType, tolerance: f64, gradient_tolerance: f64) {
    let vectors = vectors();
    for (name, count) in CASES {
        let get = |part: &str| {
            let x = vectors.get(&format!("{name}/{part}"));
            Tensor::<B>::from_vec(wide(x), *x.shape()).unwrap().to_dtype(dtype).unwrap()
        };
        let xs: Vec<Tensor<B>> = (0..count).map(|i| get(&i.to_string()).requires_grad()).collect();
        let what = |part: &str| format!("{name}, {}, {dtype}, {part}", B::NAME);
        let y = call(name, &xs).unwrap_or_else(|error| panic!("{}: {error}", what("y")));
        assert_eq!(y.dtype(), dtype);
        close(&what("y"), &y, vectors.get(&format!("{name}/y")), tolerance);
        let grads = y.backward_with(&get("g")).unwrap();
        for (i, x) in xs.iter().enumerate() {
            let expected = vectors.get(&format!("{name}/d{i}"));
            close(&what("gradient"), grads.wrt(x).unwrap(), expected, gradient_tolerance);
        }
    }
}

/// Sixteen bits are rounded once: to within half a unit in the last place of the largest value.
#[test]
fn pytorch_transforms_and_their_gradients() {
    for (dtype, tolerance, gradient) in [
        (DType::F64, 1e-12, 1e-12),
        (DType::F32, 5e-7, 5e-6),
        (DType::F16, 2f64.powi(-11), 5e-3),
        (DType::BF16, 2f64.powi(-8), 4e-2),
    ] {
        check_on::<CpuBackend>(dtype, tolerance, gradient);
        check_on::<ReferenceBackend>(dtype, tolerance, gradient);
    }
}

/// `Σ x[j] e^(sign 2πi jk/n)` of complex numbers, for every k.
fn defined(x: &[f64], sign: f64) -> Vec<f64> {
    let n = x.len() / 2;
    let sum = |k: usize| {
        (0..n).fold([0.0, 0.0], |[re, im], j| {
            let (s, c) = (sign * TAU * (j * k % n) as f64 / n as f64).sin_cos();
            [re + x[2 * j] * c - x[2 * j + 1] * s, im + x[2 * j] * s + x[2 * j + 1] * c]
        })
    };
    (0..n).flat_map(sum).collect()
}

fn drawn(shape: impl Into<Shape>, dtype: DType, seed: u64) -> T {
    let shape = shape.into();
    let values = Rng::seed(seed).uniform_vec::<f64>(shape.numel(), -1.0..1.0).unwrap();
    T::from_vec(values, shape).unwrap().to_dtype(dtype).unwrap()
}

/// Fails unless values are as many as expected and within so many roundings of the transform's largest number.
fn near(what: &str, found: &T, expected: &[f64], unit: f64) {
    let found = wide(found);
    assert_eq!(found.len(), expected.len(), "{what}");
    let scale = expected.iter().fold(1e-3f64, |scale, x| scale.max(x.abs()));
    for (i, (x, y)) in found.iter().zip(expected).enumerate() {
        assert!((x - y).abs() <= 16.0 * unit * scale, "{what}, number {i}: {x} instead of {y}");
    }
}

/// All short lengths, primes, powers of two and products, more than the plans that are kept; each along the last axis
/// and, in another layout, along the first one.
#[test]
fn transforms_are_the_sums_that_define_them() {
    let lengths = (1..=36).chain([49, 64, 97, 100, 127, 128, 243, 251, 360, 509, 512, 1009, 1024]);
    for (n, (dtype, unit)) in
        lengths.flat_map(|n| [(n, (DType::F32, 1.2e-7)), (n, (DType::F64, 2.3e-16))])
    {
        let what = |name: &str| format!("{name} of {n}, {dtype}");
        let x = drawn((3, n, 2), dtype, n as u64);
        let rows: Vec<Vec<f64>> = wide(&x).chunks(2 * n).map(<[f64]>::to_vec).collect();
        let of_rows = |sign| rows.iter().flat_map(|row| defined(row, sign)).collect::<Vec<_>>();
        let (forward, inverse) = (of_rows(-1.0), of_rows(1.0));
        let plain = |axis: i32| FftOptions::new(axis).norm(FftNorm::Forward);
        near(&what("fft"), &x.fft(-1).unwrap(), &forward, unit);
        near(&what("ifft"), &x.ifft(plain(-1)).unwrap(), &inverse, unit);
        let columns = x.movedim(1, 0).unwrap().contiguous().unwrap();
        let y = columns.fft(0).unwrap().movedim(0, 1).unwrap();
        near(&what("fft of columns"), &y, &forward, unit);
        assert_eq!(wide(&y), wide(&x.fft(-1).unwrap()), "{}", what("columns"));

        let real = x.narrow(2, 0, 1).unwrap().squeeze(2).unwrap();
        let mut zeros = rows.clone();
        zeros.iter_mut().for_each(|row| row.iter_mut().skip(1).step_by(2).for_each(|im| *im = 0.0));
        let half = |row: &Vec<f64>| defined(row, -1.0)[..2 * (n / 2 + 1)].to_vec();
        let expected: Vec<f64> = zeros.iter().flat_map(half).collect();
        near(&what("rfft"), &real.rfft(-1).unwrap(), &expected, unit);

        // Any spectrum: what its other half would be, and imaginary parts that are not used.
        let spectrum = x.narrow(1, 0, n / 2 + 1).unwrap();
        let hermitian = |row: &Vec<f64>| {
            let mut full = vec![0.0; 2 * n];
            for k in 0..n {
                let (from, sign) = if k <= n / 2 { (k, 1.0) } else { (n - k, -1.0) };
                full[2 * k] = row[2 * from];
                full[2 * k + 1] = if k == 0 || 2 * k == n { 0.0 } else { sign * row[2 * from + 1] };
            }
            defined(&full, 1.0).into_iter().step_by(2).collect::<Vec<_>>()
        };
        let expected: Vec<f64> = rows.iter().flat_map(hermitian).collect();
        near(&what("irfft"), &spectrum.irfft(plain(-1).n(n)).unwrap(), &expected, unit);
        let back = real.rfft(1).unwrap().irfft(FftOptions::new(1).n(n)).unwrap();
        near(&what("there and back"), &back, &wide(&real), unit);
    }
}

/// So they are the same for any number of threads, which share the rows.
#[test]
fn the_bits_of_a_row_do_not_depend_on_its_neighbours() {
    for n in [2usize, 4, 8, 9, 30, 64, 100, 256] {
        let x = drawn((400, n, 2), DType::F32, 7);
        let y = x.fft(1).unwrap();
        let real = x.flatten(1, 2).unwrap();
        let z = real.rfft(1).unwrap();
        for i in [0, 1, 198, 399] {
            let row = |x: &T| wide(&x.narrow(0, i, 1).unwrap());
            assert_eq!(wide(&x.narrow(0, i, 1).unwrap().fft(1).unwrap()), row(&y), "{n}");
            assert_eq!(wide(&real.narrow(0, i, 1).unwrap().rfft(1).unwrap()), row(&z), "{n}");
        }
    }
}

#[test]
fn extents_of_zero_and_one() {
    let zeros = |shape: &[usize]| T::zeros(shape, DType::F32).unwrap();
    assert_eq!(zeros(&[0, 3, 2]).fft(1).unwrap().dims(), [0, 3, 2]);
    assert_eq!(zeros(&[3, 0, 2]).ifft(0).unwrap().dims(), [3, 0, 2]);
    assert_eq!(zeros(&[0, 3]).rfft(1).unwrap().dims(), [0, 2, 2]);
    assert_eq!(zeros(&[0, 3, 2]).irfft(1).unwrap().dims(), [0, 4]);
    assert_eq!(
        zeros(&[0, 2]).fft(FftOptions::new(0).n(3)).unwrap().to_vec::<f32>().unwrap(),
        [0.0; 6]
    );
    assert_eq!(zeros(&[0, 9]).stft(&StftOptions::new(4)).unwrap().dims(), [0, 3, 10, 2]);
    assert_eq!(zeros(&[0, 3, 10, 2]).istft(&StftOptions::new(4), None).unwrap().dims(), [0, 9]);
    let one = tensor![[2.0, -3.0]];
    assert_eq!(one.fft(0).unwrap().to_vec::<f32>().unwrap(), [2.0, -3.0]);
    assert_eq!(one.irfft(FftOptions::new(0).n(1)).unwrap().to_vec::<f32>().unwrap(), [2.0]);
    assert_eq!(tensor![2.0].rfft(-1).unwrap().to_vec::<f32>().unwrap(), [2.0, 0.0]);
    let none: [i32; 0] = [];
    assert_eq!(one.fft(none).unwrap().to_vec::<f32>().unwrap(), [2.0, -3.0]);
    let empty = zeros(&[0, 2]).requires_grad();
    let y = empty.fft(FftOptions::new(0).n(3)).unwrap();
    assert_eq!(y.sum(None, false).unwrap().backward().unwrap().wrt(&empty).unwrap().dims(), [0, 2]);
}

/// What is in memory beside the elements of a view has no part in the result.
#[test]
fn any_layout() {
    let x = drawn((5, 4, 6, 2), DType::F64, 3);
    let views = [
        x.permute(&[2, 1, 0, 3]).unwrap(),
        x.flip([0, 1, 3]).unwrap(),
        x.slice(s![..;2, 1.., ..;-1]).unwrap(),
        x.narrow(1, 0, 1).unwrap().broadcast_to((5, 3, 6, 2)).unwrap(),
    ];
    for view in views {
        for axis in 0..3 {
            let dense = view.contiguous().unwrap();
            assert_eq!(wide(&view.fft(axis).unwrap()), wide(&dense.fft(axis).unwrap()));
            assert_eq!(wide(&view.irfft(axis).unwrap()), wide(&dense.irfft(axis).unwrap()));
            assert_eq!(wide(&view.rfft(axis).unwrap()), wide(&dense.rfft(axis).unwrap()));
        }
    }
}

#[track_caller]
fn fails(result: Result<T>, text: &str) {
    let error = result.expect_err(text).to_string();
    assert!(error.contains(text), "{error}\nwithout: {text}");
}

#[test]
fn bad_arguments_are_errors() {
    let x = tensor![[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]];
    let none: [i32; 0] = [];
    let n = |n: usize| FftOptions::new(0).n(n);
    fails(tensor![1.0].fft(0), "fft: shape [1]: expected a last axis of 2");
    fails(T::zeros((), DType::F32).unwrap().ifft(0), "ifft: shape []: expected a last axis of 2");
    fails(tensor![1.0, 2.0].irfft(0), "irfft: axis 0 is out of range");
    fails(x.fft(1), "fft: axis 1 is out of range");
    fails(x.fft(-2), "fft: axis -2 is out of range");
    fails(x.rfft([1, -1]), "rfft: axis 1 appears twice");
    fails(x.rfft(none), "rfft: expected at least one axis");
    fails(x.fft(n(0)), "fft: expected at least 1 point along axis 0, got 0, of shape [3, 2]");
    fails(x.narrow(0, 0, 0).unwrap().fft(0), "fft: expected at least 1 point");
    fails(x.narrow(0, 0, 1).unwrap().irfft(0), "irfft: expected at least 1 point");
    fails(x.fft(FftOptions::new(0).n([3, 4])), "fft: expected 1 numbers of points, got [3, 4]");
    fails(tensor![i64; [1, 2]].fft(0), "fft: not defined for i64");
    fails(T::zeros([1; 8], DType::F32).unwrap().rfft(0), "rfft: 9 axes");
    for huge in [usize::MAX, usize::MAX / 2, usize::MAX / 16, usize::MAX / 64] {
        for x in [x.clone(), T::zeros((0, 3, 2), DType::F32).unwrap().movedim(0, 1).unwrap()] {
            assert!(x.fft(n(huge)).is_err() || x.numel() == 0);
            assert!(x.rfft(n(huge)).is_err() || x.numel() == 0);
            assert!(x.irfft(n(huge)).is_err() || x.numel() == 0);
        }
        assert!(T::hann_window(huge, true).is_err() && T::rfftfreq(huge, 1.0).is_err());
    }
}

#[test]
fn bad_frames_are_errors() {
    let x = drawn((2, 9), DType::F32, 1);
    let options = || StftOptions::<CpuBackend>::new(4);
    fails(x.unsqueeze(0).unwrap().stft(&options()), "stft: shape [1, 2, 9]: expected signals");
    fails(x.stft(&StftOptions::new(0)), "stft: expected a positive hop_length");
    fails(x.stft(&StftOptions::new(3)), "and a win_length from 1 to n_fft = 3, got 0 and 3");
    fails(x.stft(&options().hop_length(0)), "stft: expected a positive hop_length");
    fails(x.stft(&StftOptions { win_length: Some(5), ..options() }), "got 1 and 5");
    fails(x.stft(&StftOptions::new(10).center(false)), "stft: frames of 10 in padded signals");
    fails(x.stft(&StftOptions::new(40)), "stft: Reflect by 20");
    fails(x.stft(&StftOptions::new(usize::MAX)), "stft: ");
    fails(x.stft(&StftOptions::new(usize::MAX).pad_mode(PadMode::Constant(0.0))), "stft: ");
    fails(x.stft(&options().window(&tensor![[1.0, 2.0]])), "stft: ");
    fails(
        x.stft(&options().window(&tensor![f64; 1.0, 2.0])),
        "stft: dtypes f32 (of shape [2, 9]) and f64 differ",
    );
    fails(tensor![i64; 1, 2, 3].stft(&options()), "stft: not defined for i64");
    let y = x.stft(&options()).unwrap();
    assert_eq!(y.dims(), [2, 3, 10, 2]);
    fails(x.istft(&options(), None), "istft: ");
    fails(y.istft(&StftOptions::new(8), None), "istft: expected 5 frequencies");
    fails(y.istft(&options().onesided(false), None), "istft: expected 4 frequencies");
    fails(y.narrow(2, 0, 0).unwrap().istft(&options(), None), "at least one frame");
    fails(
        y.unsqueeze(0).unwrap().istft(&options(), None),
        "istft: shape [1, 2, 3, 10, 2]: expected",
    );
    fails(y.istft(&options().hop_length(5), None), "hop_length 5 is more than win_length 4");
    let hann = options().window(&T::hann_window(4, true).unwrap()).center(false);
    fails(y.istft(&hann, None), "istft: the squares of the windows add up to less than 1e-11");
    fails(y.istft(&options(), Some(usize::MAX)), "istft: ");
    fails(y.istft(&StftOptions::new(usize::MAX), None), "istft: ");
}

/// The signal again, whatever the window, its place in the frame and the distance of frames.
#[test]
fn istft_inverts_stft() {
    for (dtype, tolerance) in [(DType::F32, 5e-6), (DType::F64, 1e-14)] {
        let x = drawn((3, 101), dtype, 4);
        let window = |n| T::window(Window::Hamming, n, true, dtype).unwrap();
        let options = [
            StftOptions::new(16),
            StftOptions::new(15).hop_length(7).window(&window(11)),
            StftOptions::new(16).hop_length(5).window(&window(16)).onesided(false),
            StftOptions::new(20).window(&window(20)).normalized(true).center(false),
            StftOptions::new(12).pad_mode(PadMode::Circular).hop_length(1),
            StftOptions::new(1).hop_length(1),
            StftOptions::new(2).hop_length(1),
        ];
        for options in options {
            let y = x.stft(&options).unwrap();
            let back = y.istft(&options, None).unwrap();
            let covered = back.dims()[1];
            let expected = x.narrow(1, 0, covered).unwrap();
            assert!(
                covered > 80 && back.allclose(&expected, 0.0, tolerance).unwrap(),
                "{options:?}"
            );
            let short = y.istft(&options, Some(70)).unwrap();
            assert!(short.allclose(&x.narrow(1, 0, 70).unwrap(), 0.0, tolerance).unwrap());
            let long = y.istft(&options, Some(130));
            match options.win_length.is_some_and(|len| len < options.n_fft) {
                // The last frame ends with zeros.
                true => fails(long, "less than 1e-11"),
                false => assert_eq!(wide(&long.unwrap().narrow(1, 125, 5).unwrap()), [0.0; 15]),
            }
            // Spectra of one signal are those of its row.
            let row = x.slice(s![1]).unwrap().stft(&options).unwrap();
            assert_eq!(wide(&row), wide(&y.slice(s![1]).unwrap()));
            assert_eq!(
                wide(&row.istft(&options, None).unwrap()),
                wide(&back.slice(s![1]).unwrap())
            );
        }
    }
}

#[test]
fn pytorch_windows() {
    let vectors = vectors();
    let kinds = [
        ("hann", Window::Hann),
        ("hamming", Window::Hamming),
        ("blackman", Window::Blackman),
        ("kaiser", Window::Kaiser { beta: 6.5 }),
    ];
    for ((name, window), n) in kinds.into_iter().flat_map(|kind| [1, 2, 5, 8].map(|n| (kind, n))) {
        for (periodic, end) in [(false, ""), (true, "_periodic")] {
            let expected = vectors.get(&format!("{name}_{n}{end}"));
            for (dtype, tolerance) in [(DType::F64, 1e-13), (DType::F32, 6e-8), (DType::F16, 5e-4)]
            {
                let x = T::window(window, n, periodic, dtype).unwrap();
                assert_eq!(x.dtype(), dtype);
                close(name, &x, expected, tolerance);
            }
        }
        let symmetric = T::window(window, n, false, DType::F64).unwrap();
        assert_eq!(wide(&symmetric.flip(0).unwrap()), wide(&symmetric), "{name}");
    }
    let named = |x: Result<T>| wide(&x.unwrap());
    let wide_of = |window| named(T::window(window, 9, true, DType::F32));
    assert_eq!(named(T::hann_window(9, true)), wide_of(Window::Hann));
    assert_eq!(named(T::hamming_window(9, true)), wide_of(Window::Hamming));
    assert_eq!(named(T::blackman_window(9, true)), wide_of(Window::Blackman));
    assert_eq!(named(T::kaiser_window(9, true, 3.0)), wide_of(Window::Kaiser { beta: 3.0 }));
    assert_eq!(T::hann_window(0, false).unwrap().dims(), [0]);
    assert_eq!(named(T::kaiser_window(4, false, 0.0)), [1.0; 4]);
    fails(T::window(Window::Hann, 3, true, DType::I64), "window: not defined for i64");
    for beta in [701.0, f64::NAN, f64::INFINITY, -701.0] {
        fails(T::kaiser_window(3, true, beta), "kaiser_window: expected a beta from -700 to 700");
    }
    // By mpmath: besseli(0, 700 sqrt(0.75)) / besseli(0, 700), and that of 0.5.
    let kaiser = |beta| named(T::window(Window::Kaiser { beta }, 5, false, DType::F64))[1];
    for (beta, expected) in [(700.0, 2.005_151_557_528_949e-41), (0.5, 0.984_902_269_883_832_5)] {
        assert!((kaiser(beta) / expected - 1.0).abs() < 1e-12, "{}", kaiser(beta));
    }
}

#[test]
fn frequencies_are_those_of_numpy() {
    let f64s = |x: Result<T>| wide(&x.unwrap());
    assert_eq!(f64s(T::fftfreq_as(5, 0.1, DType::F64)), [0.0, 2.0, 4.0, -4.0, -2.0]);
    assert_eq!(f64s(T::fftfreq(6, 1.0 / 6.0)), [0.0, 1.0, 2.0, -3.0, -2.0, -1.0]);
    assert_eq!(f64s(T::fftfreq(1, 2.0)), [0.0]);
    assert_eq!(f64s(T::fftfreq(0, 2.0)), [0.0; 0]);
    assert_eq!(f64s(T::rfftfreq(5, 0.2)), [0.0, 1.0, 2.0]);
    assert_eq!(f64s(T::rfftfreq_as(6, 0.5, DType::F16)), [0.0, 0.333251953125, 0.66650390625, 1.0]);
    fails(T::fftfreq_as(4, 1.0, DType::I32), "fftfreq: not defined for i32");
    let x = tensor![i64; [0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]];
    let both = x.fftshift([0, -1]).unwrap();
    assert_eq!(both.to_vec::<i64>().unwrap(), [8, 6, 7, 11, 9, 10, 2, 0, 1, 5, 3, 4]);
    assert_eq!(
        both.ifftshift([0, 1]).unwrap().to_vec::<i64>().unwrap(),
        x.to_vec::<i64>().unwrap()
    );
    assert_eq!(T::zeros((0, 2), DType::F32).unwrap().fftshift(0).unwrap().dims(), [0, 2]);
    fails(x.fftshift(2), "fftshift: axis 2 is out of range");
    fails(x.ifftshift([1, 1]), "ifftshift: axis 1 appears twice");
}
