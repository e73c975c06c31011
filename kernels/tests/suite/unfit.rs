//! Calls with drawn arguments, of which many do not fit their slices: a call panics or is an error exactly where an
//! element would be outside, and otherwise gives what its definition gives of the slice alone. Other numbers lie around
//! every slice. The fuzz target `kernels` draws more of them.

mod arguments;

use arguments::{Draw, KINDS};
use swath_kernels::{
    Gemm, Geometry, MatMut, MatRef, Sliding, Windows, Workspace, avg_pool, avg_pool_grad, gemm,
    max_pool,
};

#[test]
fn drawn_calls_use_their_slices_alone() {
    let mut computed = [0; KINDS];
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !arguments::is_expected() {
            hook(info);
        }
    }));
    let calls = if cfg!(miri) { 600 } else { 12_000 };
    for seed in 1..=calls as u64 {
        let mut state = u64::wrapping_mul(seed, 0x9e37_79b9_7f4a_7c15);
        let below = move |n: usize| {
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n
        };
        let (kind, is_computed) = arguments::run(Draw(Box::new(below)));
        computed[kind] += usize::from(is_computed);
    }
    // Each kind is computed and refused.
    let each = calls / KINDS;
    assert!(computed.iter().all(|&n| n > each / 20 && n < each), "{computed:?} of {calls}");
}

/// Windows along one axis of images of 32 pixels, which begin with number 1032.
const LINE: Sliding =
    Sliding { image: 32, kernel: 1, stride: 1, dilation: 1, padding: [0; 2], windows: 16 };

fn geometry(across: Sliding) -> Result<Geometry, swath_kernels::GeometryError> {
    Geometry::new([Sliding::default(), Sliding::default(), across])
}

fn pixels() -> [f32; 64] {
    std::array::from_fn(|i| 1000.0 + i as f32)
}

#[test]
fn windows_beyond_the_address_space_are_errors() {
    for stride in [usize::MAX, usize::MAX - 2, 1 << 63, isize::MAX as usize, 1 << 60] {
        assert!(geometry(Sliding { stride, ..LINE }).is_err(), "{stride}");
        // A negative number of pixels of padding, as a pooling had before windows were checked.
        let before = Sliding { stride, padding: [-45, 0], ..LINE };
        assert!(geometry(before).is_err(), "{stride}");
    }
    for padding in [isize::MIN, isize::MAX, -(1 << 62)] {
        assert!(geometry(Sliding { padding: [padding, 0], ..LINE }).is_err(), "{padding}");
    }
    assert!(geometry(Sliding { windows: usize::MAX, ..LINE }).is_err());
}

/// The first 32 columns of windows from a column on, and rows from a row on.
fn product_of(columns: [usize; 2], rows: [usize; 2]) -> [f32; 32] {
    let (x, one, mut y) = (pixels(), [1.0f32; 2], [0.0; 32]);
    let line = geometry(Sliding { windows: 32, ..LINE }).unwrap();
    let windows = Windows::new(&x[32..], 0, [1, 1], [32, 32, 32, 32, 1], line).unwrap();
    let windows = windows.columns(columns[0], columns[1]).rows(rows[0], rows[1]);
    let a = MatRef::row_major(&one, [1, rows[1]]).unwrap();
    let c = MatMut::row_major(&mut y, [1, columns[1]]).unwrap();
    gemm(Gemm::new(a, &windows), c, &mut Workspace::new()).unwrap();
    y
}

#[test]
#[should_panic(expected = "32 columns from 18446744073709551600 of 32")]
fn columns_that_wrap_panic() {
    product_of([usize::MAX - 15, 32], [0, 1]);
}

#[test]
#[should_panic(expected = "2 rows from 18446744073709551615 of 1")]
fn rows_that_wrap_panic() {
    product_of([0, 32], [usize::MAX, 2]);
}

#[test]
#[should_panic(expected = "has no pixel")]
fn windows_without_a_pixel_panic() {
    // Windows of pixels after the slice.
    let after = geometry(Sliding { padding: [-20, 0], image: 8, ..LINE }).unwrap();
    max_pool(&pixels()[..8], after, &mut [0.0; 16], &mut []);
}

/// Windows of 2³³ taps, most of them in the padding: two windows see one pixel at their last and their first tap, and
/// three see all pixels.
#[test]
fn taps_outside_of_the_image_take_no_time() {
    let (taps, far) = (1usize << 33, 1isize << 33);
    let x = [3.0f32, 7.0, 5.0];
    let one = Sliding {
        image: 1,
        kernel: taps,
        stride: taps - 1,
        padding: [far - 1; 2],
        windows: 2,
        ..LINE
    };
    let all = Sliding {
        image: 3,
        kernel: taps,
        stride: taps / 4,
        padding: [far / 2; 2],
        windows: 3,
        ..LINE
    };
    for (axes, image, means, maxima, at) in [
        ([Sliding::default(), Sliding::default(), one], &x[..1], &[3.0; 2][..], &[3.0; 2][..], 0),
        ([Sliding::default(), Sliding::default(), all], &x, &[5.0, 5.0, 5.0], &[7.0; 3], 1),
        ([one, Sliding::default(), Sliding::default()], &x[..1], &[3.0; 2], &[3.0; 2], 0),
    ] {
        let geometry = Geometry::new(axes).unwrap();
        let (mut y, mut positions) = (vec![0.0; means.len()], vec![-1; means.len()]);
        avg_pool(image, geometry, false, &mut y);
        assert_eq!(y, means, "{geometry:?}");
        max_pool(image, geometry, &mut y, &mut positions);
        assert_eq!((&y[..], &positions[..]), (maxima, &vec![at; y.len()][..]), "{geometry:?}");
        let mut parts = vec![0.0; image.len()];
        avg_pool_grad(&y, geometry, false, &mut parts);
        let total: f32 = maxima.iter().sum::<f32>() / image.len() as f32;
        assert!(parts.iter().all(|part| (part - total).abs() < 1e-5), "{parts:?} {geometry:?}");
    }
}
