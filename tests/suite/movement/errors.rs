//! Arguments that do not fit give errors with the operation and the shapes.

use super::{T, at};
use swath::prelude::*;

fn zeros(shape: impl Into<Shape>) -> T {
    T::zeros(shape, DType::F32).unwrap()
}

fn message<V>(result: Result<V>) -> String {
    result.map(drop).unwrap_err().to_string()
}

#[test]
fn errors_name_the_operation_and_what_does_not_fit() {
    let (x, i) = (zeros((2, 3)), at::<CpuBackend>(2, &[0, 1]));
    let floats = zeros(2);
    let cases: Vec<(Result<T>, &[&str])> = vec![
        (T::stack(&[] as &[T], 0), &["stack: ", "at least one"]),
        (T::stack(&[&x, &floats], 0), &["stack: ", "[2, 3]", "[2]"]),
        (T::stack(&[&floats, &i], 0), &["stack: ", "f32", "i64"]),
        (T::stack(&[&x, &x], 3), &["stack: ", "3", "[2, 3]"]),
        (T::stack(&[&zeros([1; 8])], 0), &["stack: ", "9 axes"]),
        (x.roll(1, 2), &["roll: ", "2", "[2, 3]"]),
        (x.roll([1, 2], 0), &["roll: ", "expected 1 shifts, got 2"]),
        (x.roll([1, 2], [0, -2]), &["roll: ", "axis 0 appears twice", "[2, 3]"]),
        (x.flip([1, 1]), &["flip: ", "axis 1 appears twice", "[2, 3]"]),
        (x.movedim([0, 1], 0), &["movedim: ", "expected 2 positions, got 1"]),
        (x.movedim(0, 2), &["movedim: ", "2", "[2, 3]"]),
        (x.repeat(2), &["repeat: ", "[2, 3]", "1"]),
        (x.repeat([1; 9]), &["repeat: ", "9 axes"]),
        (x.repeat((1 << 40, 1 << 40)), &["repeat: "]),
        (x.tile([1; 9]), &["tile: ", "9 axes"]),
        (floats.tril(0), &["tril: ", "[2]"]),
        (zeros(()).triu(0), &["triu: ", "[]"]),
        (zeros(()).diag(0), &["diag: ", "[]"]),
        (floats.diag(isize::MAX), &["diag: "]),
        (floats.diag(isize::MIN), &["diag: "]),
        (x.scatter(2, &i, &floats), &["scatter: ", "2", "[2, 3]"]),
        (x.scatter(0, &i, &floats), &["scatter: ", "[2, 3]", "[2]"]),
        (floats.scatter(0, &i, &zeros(3)), &["scatter: ", "[2]", "[3]"]),
        (floats.scatter(0, &i, &i), &["scatter: ", "f32", "i64"]),
        (floats.scatter(0, &floats, &floats), &["scatter: ", "f32", "i64"]),
        (floats.scatter(0, &at(2, &[0, 2]), &floats), &["scatter: ", "index 2", "[2]"]),
        (floats.scatter(0, &at(2, &[0, -3]), &floats), &["scatter: ", "index -3", "[2]"]),
        (x.slice_assign(s![2], &floats), &["slice_assign: ", "index 2", "[2, 3]"]),
        (x.slice_assign(s![0], &floats), &["slice_assign: ", "[2]", "[3]"]),
        (x.slice_assign(s![0], zeros((1, 3))), &["slice_assign: ", "[1, 3]", "[3]"]),
        (x.slice_assign(s![.., ..2], &i), &["slice_assign: ", "f32", "i64"]),
        (x.slice_assign(s![.., .., ..], &x), &["slice_assign: ", "2", "[2, 3]"]),
        (x.index(&[None, None, Some(&i)]), &["index: ", "2", "[2, 3]"]),
        (x.index(&[Some(&floats)]), &["index: ", "f32", "i64"]),
        (x.index(&[Some(&at(1, &[2]))]), &["index: ", "index 2", "axis 0", "[2, 3]"]),
        (x.index(&[None, Some(&at(1, &[-4]))]), &["index: ", "index -4", "axis 1", "[2, 3]"]),
        (x.index(&[Some(&i), Some(&at(3, &[0; 3]))]), &["index: ", "[2]", "[3]"]),
        (zeros((2, 0)).index(&[None, Some(&i)]), &["index: ", "index 0", "axis 1", "[2, 0]"]),
        (zeros((3, 0)).index(&[Some(&at(1, &[3]))]), &["index: ", "index 3", "[3, 0]"]),
        (x.index_put(&[Some(&i)], &zeros((3, 3))), &["index_put: ", "[3, 3]", "[2, 3]"]),
        (x.index_put(&[Some(&i)], &i), &["index_put: ", "f32", "i64"]),
        (x.index_put(&[None], &zeros((3, 3))), &["index_put: ", "[3, 3]", "[2, 3]"]),
        (x.index_put(&[Some(&at(1, &[9]))], &floats), &["index_put: ", "index 9", "[2, 3]"]),
        (x.masked_select(&floats), &["masked_select: ", "[2, 3]", "[2]"]),
        (x.masked_scatter(&floats, &x), &["masked_scatter: ", "[2]", "[2, 3]"]),
        (x.masked_scatter(&zeros((3, 2, 3)), &x), &["masked_scatter: "]),
        (
            x.masked_scatter(&x.ones_like().unwrap(), &floats),
            &["masked_scatter: ", "6 elements, got 2"],
        ),
        (i.one_hot(1), &["one_hot: ", "index 1", "[2, 1]"]),
        (i.one_hot(0), &["one_hot: ", "index 0", "[2, 0]"]),
        (at::<CpuBackend>(1, &[-1]).one_hot(3), &["one_hot: ", "index -1"]),
        (floats.one_hot(3), &["one_hot: ", "f32", "i64"]),
        (i.full_like(1.5), &["full_like: ", "1.5", "i64"]),
        (i.rand_like(0.0..1.0, &mut Rng::seed(1)), &["rand_like: ", "i64"]),
        (x.rand_like(1.0..0.0, &mut Rng::seed(1)), &["rand_like: "]),
        (T::eye((2, 3, 4), DType::F32), &["eye: ", "[2, 3, 4]"]),
        (T::eye((), DType::F32), &["eye: ", "[]"]),
        (T::eye((1 << 40, 1 << 40), DType::F32), &["eye: "]),
    ];
    for (result, parts) in cases {
        let text = message(result);
        for part in parts {
            assert!(text.contains(part), "\"{text}\" should contain \"{part}\"");
        }
    }
    let lists: Vec<(Result<Vec<T>>, &[&str])> = vec![
        (x.split(0, 1), &["split: ", "0 elements", "[2, 3]"]),
        (x.split([1, 1], 1), &["split: ", "2 elements", "[2, 3]"]),
        (x.split([usize::MAX, 4], 1), &["split: ", "[2, 3]"]),
        (x.split(2, 2), &["split: ", "2", "[2, 3]"]),
        (x.chunk(0, 1), &["chunk: ", "0 parts", "[2, 3]"]),
        (x.chunk(2, -3), &["chunk: ", "-3", "[2, 3]"]),
        (x.unbind(2), &["unbind: ", "2", "[2, 3]"]),
        (T::meshgrid(&[&x]), &["meshgrid: ", "[2, 3]"]),
        (T::meshgrid(&[&floats; 9]), &["meshgrid: ", "9 axes"]),
    ];
    for (result, parts) in lists {
        let text = message(result);
        for part in parts {
            assert!(text.contains(part), "\"{text}\" should contain \"{part}\"");
        }
    }
}
