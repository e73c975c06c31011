//! Copies against index arithmetic.

use super::*;
use crate::dispatch::{Isa, with_isa};
use crate::testing::unless_miri;
use crate::{Place, fill, with_place};

/// Every `step`-th case under Miri, else all.
fn some<T>(cases: impl IntoIterator<Item = T>, step: usize) -> impl Iterator<Item = T> {
    cases.into_iter().step_by(unless_miri(1, step))
}

#[test]
fn strided_copies_match_indexing() {
    let src: Box<[u16]> = (0..41).collect();
    for stride in -7..=7isize {
        for len in some(0..=41usize, 10) {
            for offset in some(0..41usize, 8) {
                let at = |i: usize| offset as isize + i as isize * stride;
                if len > 0 && !(0..41).contains(&at(len - 1)) {
                    continue;
                }
                let mut dst: Box<[u16]> = vec![99; len].into();
                copy_strided(&src, offset, stride, &mut dst[..]);
                let expected: Vec<u16> = (0..len).map(|i| src[at(i) as usize]).collect();
                assert_eq!(*dst, *expected, "{len} from {offset} by {stride}");
            }
        }
    }
}

#[test]
fn strided_copies_outside_the_source_panic() {
    let cases = [
        (4, 0, 1),
        (1, 3, 1),
        (2, 0, -1),
        (2, 1, 2),
        (3, 0, isize::MAX),
        (3, 2, isize::MIN),
        (2, usize::MAX, 1),
    ];
    for (len, offset, stride) in cases {
        let result = std::panic::catch_unwind(|| {
            copy_strided(&[1u8, 2, 3], offset, stride, &mut vec![0; len][..])
        });
        assert!(result.is_err(), "{len} from {offset} by {stride}");
    }
    copy_strided::<u8>(&[], 5, 7, &mut [0u8; 0][..]);
}

#[test]
fn fill_writes_every_element() {
    for len in some(0..70, 23) {
        let mut y: Box<[i8]> = vec![1; len].into();
        fill(&mut y[..], -3);
        assert!(y.iter().all(|&y| y == -3));
    }
}

/// Checks transposes; `make` returns distinct bits for distinct numbers.
fn check_transpose<T: Plain + PartialEq + std::fmt::Debug>(isa: Isa, make: impl Fn(u64) -> T) {
    let sizes: &[usize] = unless_miri(&[1, 2, 3, 5, 8, 15, 16, 17, 31, 32, 33, 70], &[1, 3, 8]);
    let shapes = sizes.iter().flat_map(|&rows| sizes.iter().map(move |&cols| (rows, cols)));
    let shapes = shapes.flat_map(|shape| [(shape, 0, [0; 2]), (shape, 3, [5; 2])]);
    // More than one tile of rows and of columns, with the result's rows so far apart that they go
    // through the tile's buffer: as few elements of 8 bytes as do.
    let apart = [((129, 2), 0, [0, 1920]), ((9, 33), 1, [1, 116])];
    // Narrow ones that are moved in several parts.
    let long = [((3, 3000), 1, [2, 5]), ((7, 1200), 0, [0, 57])];
    let long = long.into_iter().filter(|_| !cfg!(miri));
    for ((rows, cols), offset, gaps) in
        shapes.chain(long).chain(apart.into_iter().filter(|_| size_of::<T>() == 8))
    {
        let (src_row_stride, dst_row_stride) = (cols + gaps[0], rows + gaps[1]);
        let len = offset + (rows - 1) * src_row_stride + cols;
        let src: Box<[T]> = (0..len as u64).map(&make).collect();
        let untouched = make(1 << 40);
        let shape = Transpose { rows, cols, src_offset: offset, src_row_stride, dst_row_stride };
        for streams in [false, true] {
            let mut dst: Box<[T]> = vec![untouched; (cols - 1) * dst_row_stride + rows].into();
            match streams {
                false => transpose(&src, &mut dst[..], shape),
                true => transpose(&src, &mut Place::streamed(&mut dst), shape),
            }
            for (c, row) in dst.chunks(dst_row_stride).enumerate() {
                for (r, &x) in row[..rows].iter().enumerate() {
                    let expected = src[offset + r * src_row_stride + c];
                    assert_eq!(x, expected, "{shape:?} at {c}, {r} on {isa}");
                }
                assert!(row[rows..].iter().all(|&x| x == untouched), "{shape:?} on {isa}");
            }
        }
    }
}

#[test]
fn transposes_match_indexing_bitwise() {
    for isa in Isa::ALL {
        let ran = with_isa(isa, || {
            // Including signalling NaNs, whose bits arithmetic would change.
            check_transpose::<u32>(isa, |i| 0x7f80_0001 + i as u32);
            check_transpose::<i64>(isa, |i| 0x7ff0_0000_0000_0001 + i as i64);
        });
        if ran.is_none() {
            println!("skipped: this machine lacks {isa}");
        }
    }
    check_transpose::<u16>(Isa::Scalar, |i| i as u16);
    check_transpose::<bool>(Isa::Scalar, |i| i % 3 == 0);
    transpose::<f32>(&[], &mut [0f32; 0][..], Transpose { rows: 0, cols: 9, ..SQUARE });
}

const SQUARE: Transpose =
    Transpose { rows: 4, cols: 4, src_offset: 0, src_row_stride: 4, dst_row_stride: 4 };

#[test]
fn transposes_outside_their_slices_panic() {
    let cases = [
        Transpose { src_offset: 1, ..SQUARE },
        Transpose { src_row_stride: 5, ..SQUARE },
        Transpose { dst_row_stride: 5, ..SQUARE },
        Transpose { dst_row_stride: 3, ..SQUARE },
        Transpose { src_row_stride: usize::MAX, ..SQUARE },
        Transpose { dst_row_stride: usize::MAX / 2, ..SQUARE },
        Transpose { src_offset: usize::MAX, ..SQUARE },
        Transpose { rows: usize::MAX, ..SQUARE },
    ];
    for shape in cases {
        let result = std::panic::catch_unwind(|| transpose(&[0f32; 16], &mut [0.0; 16][..], shape));
        assert!(result.is_err(), "{shape:?}");
    }
}

/// Checks `permute` against its definition, on a source whose elements are all different.
fn check_permute<T: Plain + PartialEq + std::fmt::Debug>(
    make: impl Fn(u64) -> T,
    dims: &[usize],
    strides: &[isize],
) {
    let reach = |sign: isize| -> usize {
        let steps = dims
            .iter()
            .zip(strides)
            .map(|(&dim, &stride)| (dim.max(1) - 1) * (stride * sign).max(0) as usize);
        steps.sum()
    };
    let offset = reach(-1) + 3;
    let src: Box<[T]> = (0..(offset + reach(1) + 1) as u64).map(make).collect();
    let mut expected = vec![offset as isize];
    for (&dim, &stride) in dims.iter().zip(strides) {
        expected = (expected.iter())
            .flat_map(|at| (0..dim).map(move |i| at + i as isize * stride))
            .collect();
    }
    let expected: Vec<T> = expected.into_iter().map(|at| src[at as usize]).collect();
    let shape = Permute { dims, strides, offset };
    let mut dst = vec![src[0]; expected.len()];
    permute(&src, &mut dst, shape);
    assert!(dst == expected, "{shape:?} on {:?}", crate::isa());
    // The elements before and after must not change; the result is not aligned to a line.
    let mut framed = vec![src[1]; expected.len() + 2];
    let end = framed.len() - 1;
    permute(&src, &mut Place::streamed(&mut framed[1..end]), shape);
    assert!(framed[1..end] == expected, "{shape:?} past the caches on {:?}", crate::isa());
    assert!(framed[0] == src[1] && framed[end] == src[1]);
    // The same, aligned to a line.
    let mut lines = vec![src[1]; expected.len() + 64];
    let start = lines.as_ptr().align_offset(64);
    let end = start + expected.len();
    permute(&src, &mut Place::streamed(&mut lines[start..end]), shape);
    assert!(lines[start..end] == expected, "{shape:?} past the caches on {:?}", crate::isa());
    assert!(lines[..start].iter().chain(&lines[end..]).all(|x| *x == src[1]));
}

const LAYOUTS: &[(&[usize], &[isize])] = &[
    (&[], &[]),
    (&[1], &[5]),
    (&[7], &[-3]),
    (&[0, 3], &[1, 1]),
    (&[130], &[1]),
    (&[130], &[-1]),
    (&[200], &[0]),
    (&[40, 70], &[1, 40]),
    (&[70, 40], &[1, -70]),
    (&[40, 70], &[-1, 45]),
    (&[33, 150], &[1, 33]),
    (&[150, 140], &[1, 151]),
    (&[300, 200], &[1, 300]),
    (&[3, 100], &[1, 3]),
    (&[100, 3], &[1, 100]),
    (&[2, 5, 3, 4], &[60, 1, 20, 5]),
    (&[4, 3, 5, 17], &[255, 17, 51, 1]),
    (&[4, 3, 5, 64], &[960, 64, 192, 1]),
    (&[5, 4, 33], &[0, 40, -1]),
    (&[6, 7, 9], &[-2, 18, 126]),
    (&[40, 50], &[2, 80]),
    (&[40, 50], &[100, 2]),
    (&[3, 40, 2, 40], &[3200, 1, 1600, 40]),
    (&[2, 2, 2, 2, 2, 2, 2, 3], &[3, 6, 12, -24, 48, 96, 192, 1]),
    (&[2, 2, 2, 2, 2, 2, 2, 3], &[1, 2, 4, 8, 16, 32, 64, 128]),
    (&[2, 3, 2, 2, 3, 2, 2, 9], &[0, 5, 0, 15, 30, 0, 1, 90]),
    // Matrices with a side too narrow for vectors: many small ones, forwards, backwards and with
    // gaps; long ones, in one piece and in several.
    (&[300, 2, 2], &[4, 1, 2]),
    (&[70, 3, 3], &[9, -1, 3]),
    (&[40, 2, 3], &[-7, 1, 2]),
    (&[3, 40, 4, 4], &[800, 19, 1, 4]),
    (&[50, 2, 3, 2], &[12, 1, 2, 6]),
    (&[9, 3, 16, 2], &[96, 32, 1, 16]),
    (&[20, 2, 17], &[34, 1, 2]),
    (&[5, 90, 7], &[630, 1, 90]),
    (&[9000, 2], &[1, 9001]),
    (&[6, 2, 1500], &[3000, 1, 2]),
    // Units of 2 to 124 bytes: contiguous, backwards, with gaps, repeated.
    (&[20, 30, 2], &[2, 40, 1]),
    (&[150, 40, 3], &[3, 450, 1]),
    (&[3, 10, 7, 5], &[350, 5, 50, 1]),
    (&[30, 20, 8], &[-8, 240, 1]),
    (&[45, 40, 9], &[9, 405, 1]),
    (&[40, 35, 9], &[10, 400, 1]),
    (&[5, 6, 31], &[31, 155, 1]),
    (&[300, 2, 2], &[2, 602, 1]),
    (&[4, 9, 3], &[0, 3, 1]),
    (&[5, 7, 64], &[64, 320, 1]),
    (&[5, 7, 32], &[32, 160, 1]),
    (&[5, 7, 16], &[-16, 80, 1]),
    (&[70, 3], &[1, 0]),
    (&[7, 3], &[1, 0]),
    (&[70, 30], &[1, 0]),
];

/// The same code paths in a form that is cheaper to interpret.
const SMALL_LAYOUTS: &[(&[usize], &[isize])] = &[
    (&[], &[]),
    (&[1], &[5]),
    (&[7], &[-3]),
    (&[0, 3], &[1, 1]),
    (&[130], &[1]),
    (&[7], &[-1]),
    (&[130], &[0]),
    (&[5, 7], &[1, 5]),
    (&[7, 5], &[1, -7]),
    (&[5, 7], &[-1, 8]),
    (&[3, 9], &[1, 3]),
    (&[9, 3], &[1, 9]),
    (&[2, 3, 2, 2], &[12, 1, 6, 3]),
    (&[2, 3, 2, 17], &[102, 17, 51, 1]),
    (&[2, 2, 2, 16], &[64, 16, 32, 1]),
    (&[3, 2, 9], &[0, 12, -1]),
    (&[2, 3, 5], &[-2, 10, 30]),
    (&[2, 33], &[2, 4]),
    (&[33, 2], &[2, 66]),
    (&[33, 2], &[4, 2]),
    (&[2, 3, 2, 5], &[30, 1, 15, 3]),
    (&[20, 2, 2], &[-4, 1, 2]),
    (&[17, 2, 3], &[1, 17, 34]),
    (&[1100, 2], &[1, 1101]),
    (&[2, 2, 2, 2, 2, 2, 2, 3], &[3, 6, 12, -24, 48, 96, 192, 1]),
    (&[2, 2, 2, 3], &[1, 2, 4, 8]),
    (&[2, 3, 2, 3], &[0, 5, 1, 15]),
    (&[3, 4, 2], &[2, 6, 1]),
    (&[2, 3, 9], &[-9, 18, 1]),
    (&[3, 2, 5], &[7, 21, 1]),
    (&[5, 3], &[1, 0]),
];

#[test]
fn permutations_match_indexing_bitwise() {
    for isa in Isa::ALL {
        let ran = with_isa(isa, || {
            for (i, (dims, strides)) in unless_miri(LAYOUTS, SMALL_LAYOUTS).iter().enumerate() {
                // Miri takes two of the four element sizes at once.
                if i % 2 == 0 || !cfg!(miri) {
                    check_permute(|i| i as u8, dims, strides);
                    check_permute(|i| 0x7ff0_0000_0000_0001 + i as i64, dims, strides);
                }
                if i % 2 == 1 || !cfg!(miri) {
                    check_permute(|i| i as i16, dims, strides);
                    check_permute(|i| 0x7f80_0001 + i as u32, dims, strides);
                }
            }
        });
        if ran.is_none() {
            println!("skipped: this machine lacks {isa}");
        }
    }
}

#[test]
fn permutations_that_do_not_fit_panic() {
    let good = Permute { dims: &[2, 3], strides: &[1, 2], offset: 0 };
    let cases = [
        Permute { offset: 1, ..good },
        Permute { dims: &[2, 2], ..good },
        Permute { dims: &[6], ..good },
        Permute { strides: &[1, 3], ..good },
        Permute { strides: &[-1, 2], ..good },
        Permute { strides: &[isize::MAX, isize::MAX], ..good },
        Permute { strides: &[1, isize::MIN], offset: usize::MAX, ..good },
        Permute { dims: &[usize::MAX, 3], ..good },
        Permute { dims: &[1; 9], strides: &[1; 9], offset: 0 },
    ];
    for shape in cases {
        let result = std::panic::catch_unwind(|| permute(&[0u8; 6], &mut [0; 6], shape));
        assert!(result.is_err(), "{shape:?}");
    }
    permute::<f32>(&[], &mut [0.0; 0], Permute { dims: &[0], strides: &[9], offset: 7 });
}

/// Lengths around lines and vectors, from every offset within a line.
#[test]
fn streamed_copies_equal_ordinary_copies() {
    fn check<T: Plain + PartialEq>(make: impl Fn(u64) -> T) {
        let src: Vec<T> = (0..300).map(&make).collect();
        for len in some([0, 1, 7, 15, 16, 31, 63, 64, 65, 127, 128, 200, 255], 4) {
            for offset in some(0..40, 23) {
                let mut dst = [make(999); 300];
                copy_strided(&src, 3, 1, &mut Place::streamed(&mut dst[offset..offset + len]));
                assert!(dst[offset..offset + len] == src[3..3 + len]);
                fill(&mut Place::streamed(&mut dst[offset..offset + len]), make(5));
                assert!(dst[offset..offset + len].iter().all(|x| *x == make(5)));
                let rest = dst[..offset].iter().chain(&dst[offset + len..]);
                assert!(rest.into_iter().all(|x| *x == make(999)));
            }
        }
    }
    for isa in Isa::ALL {
        with_isa(isa, || {
            check(|i| i as u8);
            check(|i| i as u16);
            check(|i| i as u32);
            check(|i| i as i64);
        });
    }
}

#[test]
fn places_stream_if_the_whole_result_is_large() {
    use crate::Output;
    let mut x = [0.0f32; 8];
    let whole = super::stream::STREAM_BYTES / 4;
    for (whole, streams) in [(8, false), (whole - 1, false), (whole, true)] {
        with_place(&mut x, whole, |mut place| {
            assert_eq!(place.streams(), streams);
            assert_eq!(place.range(2..5).streams(), streams);
            place.range(2..5).fill(1.0);
        });
    }
    assert_eq!(x, [0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0]);
}

/// Bits of all exponents, including signalling NaNs.
#[test]
fn halves_are_copied_bitwise() {
    fn check<T: Plain>(of: fn(u16) -> T, bits: fn(T) -> u16) {
        let bits = |x: &[T]| x.iter().map(|&x| bits(x)).collect::<Vec<u16>>();
        let x: Vec<u16> = (0..63u16).map(|i| i.wrapping_mul(1031).wrapping_add(0x7c01)).collect();
        let from: Vec<T> = x.iter().map(|&x| of(x)).collect();
        let mut to = [of(1); 63];
        fill(&mut to[..9], of(0x7f81));
        assert_eq!(bits(&to[..10]), [&[0x7f81; 9][..], &[1]].concat());
        copy_strided(&from, 62, -2, &mut to[..32]);
        assert_eq!(bits(&to[..32]), x.iter().rev().step_by(2).copied().collect::<Vec<_>>());
        let turned: Vec<u16> = (0..63).map(|i| x[i % 9 * 7 + i / 9]).collect();
        let (rows, cols) = (9, 7);
        let shape =
            Transpose { rows, cols, src_offset: 0, src_row_stride: cols, dst_row_stride: rows };
        transpose(&from, &mut to, shape);
        assert_eq!(bits(&to), turned);
        to.fill(of(1));
        permute(&from, &mut to, Permute { dims: &[7, 9], strides: &[1, 7], offset: 0 });
        assert_eq!(bits(&to), turned);
    }
    check(half::f16::from_bits, half::f16::to_bits);
    check(half::bf16::from_bits, half::bf16::to_bits);
}
