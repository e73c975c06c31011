//! Ops that move elements: against PyTorch and NumPy in every dtype, on backends with kernels and without, and what
//! their pages promise.

#![allow(clippy::reversed_empty_ranges, reason = "slices with negative steps")]

mod behaviour;
mod errors;

use swath::prelude::*;

use crate::minimal::Minimal;
use crate::support::vectors::Vectors;

type T = Tensor<CpuBackend>;

fn wide<B: Backend>(x: &Tensor<B>) -> Vec<f64> {
    x.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap()
}

/// The vectors of tests/vectors/make_movement.py.
fn vectors() -> Vectors {
    Vectors::read(include_str!("../vectors/movement.txt"))
}

/// The tensor with the elements in the order of its axes, or with axes in reverse order, or backwards.
fn arranged<B: Backend>(x: &Tensor<B>, turn: usize) -> Result<Tensor<B>> {
    let axes: Vec<usize> = (0..x.rank()).rev().collect();
    match turn {
        0 => Ok(x.clone()),
        1 => x.permute(&axes)?.contiguous()?.permute(&axes),
        _ => x.flip(axes.as_slice())?.contiguous()?.flip(axes.as_slice()),
    }
}

/// The value of a case and the gradients of its inputs. All are integers that every dtype represents.
fn check_on<B: Backend>(
    vectors: &Vectors,
    name: &str,
    count: usize,
    dtype: DType,
    f: impl Fn(&[Tensor<B>]) -> Result<Tensor<B>>,
) {
    let get = |part: &str| {
        let x = vectors.get(&format!("{name}/{part}"));
        Tensor::<B>::from_vec(wide(x), *x.shape()).unwrap().to_dtype(dtype).unwrap()
    };
    for turn in 0..3 {
        let input = |i: usize| arranged(&get(&i.to_string()), turn).unwrap().requires_grad();
        let xs: Vec<Tensor<B>> = (0..count).map(input).collect();
        let what = |part: &str| format!("{name}, {}, {dtype}, turn {turn}, {part}", B::NAME);
        let same = |part: &str, x: &Tensor<B>| {
            let expected = get(part);
            assert_eq!((x.dtype(), x.shape()), (dtype, expected.shape()), "{}", what(part));
            assert_eq!(wide(x), wide(&expected), "{}", what(part));
        };
        let y = f(&xs).unwrap_or_else(|error| panic!("{}: {error}", what("y")));
        same("y", &y);
        if dtype.is_float() {
            let grads = y.backward_with(&get("g")).unwrap();
            for (i, x) in xs.iter().enumerate() {
                same(&format!("d{i}"), grads.wrt(x).unwrap());
            }
        }
    }
}

/// [`check_on`] every backend and dtype.
macro_rules! check {
    ($($name:expr, $count:expr, $f:expr;)+) => {
        let vectors = vectors();
        $(for dtype in DType::ALL {
            check_on::<CpuBackend>(&vectors, $name, $count, dtype, $f);
            check_on::<ReferenceBackend>(&vectors, $name, $count, dtype, $f);
            check_on::<Minimal>(&vectors, $name, $count, dtype, $f);
        })+
    };
}

/// An index on any backend.
fn at<B: Backend>(shape: impl Into<Shape>, values: &[i64]) -> Tensor<B> {
    Tensor::from_slice(values, shape).unwrap()
}

fn refs<B: Backend>(xs: &[Tensor<B>]) -> Vec<&Tensor<B>> {
    xs.iter().collect()
}

/// The parts in reverse order.
fn reversed<B: Backend>(parts: Result<Vec<Tensor<B>>>, axis: usize) -> Result<Tensor<B>> {
    Tensor::cat(&parts?.iter().rev().collect::<Vec<_>>(), axis)
}

#[test]
fn joining_and_cutting() {
    check! {
        "stack_first", 3, |xs| Tensor::stack(&refs(xs), 0);
        "stack_middle", 2, |xs| Tensor::stack(&refs(xs), 1);
        "stack_last", 2, |xs| Tensor::stack(&refs(xs), -1);
        "stack_scalars", 3, |xs| Tensor::stack(&refs(xs), 0);
        "split", 1, |xs| reversed(xs[0].split(2, 0), 0);
        "split_list", 1, |xs| reversed(xs[0].split([1, 0, 5], -1), 1);
        "chunk", 1, |xs| reversed(xs[0].chunk(3, 1), 1);
        "unbind", 1, |xs| Tensor::stack(&xs[0].unbind(-1)?.iter().rev().collect::<Vec<_>>(), 1);
    }
}

#[test]
fn repeating() {
    check! {
        "repeat", 1, |xs| xs[0].repeat((2, 2));
        "repeat_new_axes", 1, |xs| xs[0].repeat((3, 1, 4));
        "repeat_inner", 1, |xs| xs[0].repeat([1, 3, 1]);
        "repeat_many", 1, |xs| xs[0].repeat((2, 3, 2, 2, 2));
        "repeat_zero", 1, |xs| xs[0].repeat((1, 0));
        "tile", 1, |xs| xs[0].tile(2);
        "tile_more", 1, |xs| xs[0].tile((2, 1, 2));
    }
}

#[test]
fn reordering() {
    check! {
        "roll", 1, |xs| xs[0].roll(2, 0);
        "roll_back", 1, |xs| xs[0].roll(-3, -1);
        "roll_far", 1, |xs| xs[0].roll(-23i64, 0);
        "roll_two", 1, |xs| xs[0].roll([1, -1], [0, 2]);
        "roll_three", 1, |xs| xs[0].roll([4, 1, 7], [-1, 1, 0]);
        "movedim", 1, |xs| xs[0].movedim(0, -1);
        "movedim_two", 1, |xs| xs[0].movedim([3, 0], [0, 2]);
        "flip_two", 1, |xs| xs[0].flip([0, -1]);
    }
}

#[test]
fn triangles_and_diagonals() {
    for k in [-2, -1, 0, 1, 3] {
        check! {
            &format!("tril{k}"), 1, |xs| xs[0].tril(k);
            &format!("triu{k}"), 1, |xs| xs[0].triu(k);
        }
    }
    for k in [-2, 0, 1] {
        check! {
            &format!("diag_of{k}"), 1, |xs| xs[0].diag(k);
            &format!("diag_in{k}"), 1, |xs| xs[0].diag(k);
            &format!("diag_batch{k}"), 1, |xs| xs[0].diag(k);
        }
    }
}

#[test]
fn grids() {
    check! {
        "meshgrid", 2, |xs| Tensor::stack(&refs(&Tensor::meshgrid(&refs(xs))?), 0);
        "meshgrid_xy", 3, |xs| Tensor::stack(&refs(&Tensor::meshgrid_xy(&refs(xs))?), 0);
    }
}

#[test]
fn padding() {
    check! {
        "pad_constant", 1, |xs| xs[0].pad(&[(0, 1), (1, 2)], PadMode::Constant(7.0));
        "pad_crop", 1, |xs| xs[0].pad(&[(2, -3), (-1, 2)], PadMode::Constant(7.0));
        "pad_reflect", 1, |xs| xs[0].pad(&[(2, 3), (4, 1)], PadMode::Reflect);
        "pad_replicate", 1, |xs| xs[0].pad(&[(1, 3), (2, 0)], PadMode::Replicate);
        "pad_circular", 1, |xs| xs[0].pad(&[(1, 3), (4, 2)], PadMode::Circular);
    }
}

#[test]
fn scattering() {
    check! {
        "scatter", 2, |xs| xs[0].scatter(1, &at((2, 3), &[0, 4, 2, 3, 0, 1]), &xs[1]);
        "scatter_twice", 2, |xs| xs[0].scatter(0, &at(5, &[1, 3, 1, 1, 3]), &xs[1]);
        "scatter_rows", 2, |xs| {
            let index = at((4, 1), &[2, 0, 2, 2]).broadcast_to((4, 2))?;
            xs[0].scatter(-2, &index, &xs[1])
        };
        "scatter_columns", 2, |xs| {
            xs[0].scatter(1, &at((2, 2, 2), &[0, 2, 0, 1, 1, 1, 1, 2]), &xs[1])
        };
    }
}

#[test]
fn assigning_slices() {
    check! {
        "slice_assign", 2, |xs| xs[0].slice_assign(s![1..3, ..;4], &xs[1]);
        "slice_assign_index", 2, |xs| xs[0].slice_assign(s![.., -1], &xs[1]);
        "slice_assign_scalar", 2, |xs| xs[0].slice_assign(s![0, 1..3], &xs[1]);
        "slice_assign_row", 2, |xs| xs[0].slice_assign(s![1..], &xs[1]);
        "slice_assign_all", 2, |xs| xs[0].slice_assign(s![], &xs[1]);
        "slice_assign_none", 2, |xs| xs[0].slice_assign(s![.., 3..], &xs[1]);
        // Backwards, so is the source.
        "slice_assign", 2, |xs| xs[0].slice_assign(s![2..0;-1, 4..;-4], &xs[1].flip([0, 1])?);
    }
}

#[test]
fn indexing_several_axes() {
    check! {
        "index_one", 1, |xs| xs[0].index(&[Some(&at(3, &[2, 0, 2]))]);
        "index_negative", 1, |xs| xs[0].index(&[Some(&at(3, &[-1, 0, -4])), None]);
        "index_second", 1, |xs| xs[0].index(&[None, Some(&at(2, &[3, 1]))]);
        "index_matrix", 1, |xs| xs[0].index(&[Some(&at((2, 2), &[0, 2, 1, 1]))]);
        "index_pair", 1, |xs| xs[0].index(&[Some(&at(3, &[0, 2, 1])), Some(&at(3, &[3, 0, 3]))]);
        "index_broadcast", 1, |xs| {
            xs[0].index(&[Some(&at((2, 1), &[0, 2])), Some(&at(3, &[3, 1, 0]))])
        };
        "index_inner_pair", 1, |xs| {
            xs[0].index(&[None, Some(&at(3, &[0, 2, 2])), Some(&at(3, &[1, 1, 3]))])
        };
        "index_apart", 1, |xs| {
            xs[0].index(&[Some(&at(3, &[0, 2, 1])), None, Some(&at(3, &[3, 0, 0]))])
        };
        "index_apart_inner", 1, |xs| {
            xs[0].index(&[None, Some(&at(3, &[0, 2, 1])), None, Some(&at(3, &[3, 0, 0]))])
        };
        "index_single", 1, |xs| xs[0].index(&[Some(&at((), &[1])), Some(&at(2, &[2, 0]))]);
        "index_empty", 1, |xs| xs[0].index(&[Some(&at(0, &[]))]);
    }
}

#[test]
fn putting_elements() {
    check! {
        "index_put_one", 2, |xs| xs[0].index_put(&[Some(&at(3, &[2, -4, 1]))], &xs[1]);
        "index_put_row", 2, |xs| xs[0].index_put(&[Some(&at(3, &[2, -4, 1]))], &xs[1]);
        "index_put_second", 2, |xs| xs[0].index_put(&[None, Some(&at(2, &[3, 1]))], &xs[1]);
        "index_put_pair", 2, |xs| {
            xs[0].index_put(&[Some(&at(3, &[0, 2, 1])), Some(&at(3, &[3, 0, 3]))], &xs[1])
        };
        "index_put_broadcast", 2, |xs| {
            xs[0].index_put(&[Some(&at((2, 1), &[0, 2])), Some(&at(3, &[3, 1, 0]))], &xs[1])
        };
        "index_put_apart", 2, |xs| {
            xs[0].index_put(&[Some(&at(3, &[0, 2, 1])), None, Some(&at(3, &[3, 0, 0]))], &xs[1])
        };
        "index_put_apart_scalar", 2, |xs| {
            let (second, last) = (at(3, &[0, 2, 1]), at(3, &[3, 0, 0]));
            xs[0].index_put(&[None, Some(&second), None, Some(&last)], &xs[1])
        };
        "index_put_twice", 2, |xs| xs[0].index_put(&[Some(&at(5, &[2, 0, 2, 2, 0]))], &xs[1]);
    }
}

#[test]
fn masks() {
    fn mask<B: Backend>() -> Tensor<B> {
        Tensor::from_vec(vec![true, false, true, false, true, true], (2, 3)).unwrap()
    }
    check! {
        "masked_select", 1, |xs| xs[0].masked_select(&mask());
        "masked_select_row", 1, |xs| xs[0].masked_select(&mask().slice(s![0])?.to_dtype(DType::F32)?);
        "masked_select_wider", 1, |xs| xs[0].masked_select(&mask());
        "masked_scatter", 2, |xs| xs[0].masked_scatter(&mask(), &xs[1]);
    }
}

#[test]
fn integers_that_describe_others() {
    fn check_on<B: Backend>(vectors: &Vectors) {
        let same = |name: &str, x: Tensor<B>| {
            let expected = vectors.get(name);
            assert_eq!((x.dtype(), x.shape()), (DType::I64, expected.shape()), "{name}");
            assert_eq!(x.to_vec::<i64>().unwrap(), expected.to_vec::<i64>().unwrap(), "{name}");
        };
        let x = at::<B>((2, 2, 2), &[0, 3, 0, 0, 5, 0, 7, 1]);
        same("nonzero", x.nonzero().unwrap());
        same("nonzero", x.to_dtype(DType::F16).unwrap().nonzero().unwrap());
        same("one_hot", at::<B>((2, 2), &[2, 0, 1, 1]).one_hot(4).unwrap());
        same("eye", Tensor::eye((2, 4), DType::I64).unwrap());
    }
    let vectors = vectors();
    check_on::<CpuBackend>(&vectors);
    check_on::<ReferenceBackend>(&vectors);
    check_on::<Minimal>(&vectors);
}
