//! Views, empty and 0-dimensional tensors, bits, large tensors, changes in place.

use std::cell::Cell;
use std::rc::Rc;

use super::{T, at, wide};
use swath::prelude::*;
use swath::testing::{RuleRun, with_rule_hook};

fn arange(shape: impl Into<Shape>) -> T {
    let shape = shape.into();
    T::arange(0.0, shape.numel() as f64, 1.0).unwrap().reshape(shape).unwrap()
}

#[test]
fn parts_and_grids_share_the_storage() -> Result<()> {
    let x = arange((4, 6));
    let offset = |x: &T| x.layout().offset();
    assert_eq!(x.split(2, 1)?.iter().map(offset).collect::<Vec<_>>(), [0, 2, 4]);
    assert_eq!(x.chunk(2, 0)?.iter().map(offset).collect::<Vec<_>>(), [0, 12]);
    assert_eq!(x.unbind(0)?.iter().map(offset).collect::<Vec<_>>(), [0, 6, 12, 18]);
    let diagonal = x.diag(-1)?;
    assert_eq!((offset(&diagonal), diagonal.layout().strides()), (6, &[7][..]));
    assert_eq!(x.movedim(0, 1)?.layout().strides(), [1, 6]);
    let grid = T::meshgrid(&[&arange(3), &arange(2)])?;
    assert_eq!(grid[0].layout().strides(), [1, 0]);
    assert_eq!(x.unsqueeze(0)?.repeat((3, 1, 1))?.layout().strides(), [0, 6, 1]);
    Ok(())
}

#[test]
fn empty_and_0_dimensional_tensors() -> Result<()> {
    let (scalar, empty) = (arange(()), arange((0, 3)));
    assert_eq!(empty.split(2, 0)?.len(), 1);
    assert_eq!(empty.chunk(3, 0)?.len(), 1);
    assert_eq!(empty.unbind(0)?.len(), 0);
    assert_eq!(empty.unbind(1)?[2].dims(), [0]);
    assert_eq!(T::stack(&[&empty, &empty], 1)?.dims(), [0, 2, 3]);
    assert_eq!(empty.repeat((2, 2))?.dims(), [0, 6]);
    assert_eq!(scalar.repeat(())?.rank(), 0);
    assert_eq!(scalar.repeat((2, 3))?.to_vec::<f32>()?, [0.0; 6]);
    assert_eq!(empty.roll([1, 1], [0, 1])?.dims(), [0, 3]);
    assert_eq!(scalar.roll([0i32; 0], Vec::<usize>::new())?.rank(), 0);
    assert_eq!(scalar.movedim(Vec::<usize>::new(), Vec::<usize>::new())?.rank(), 0);
    assert_eq!(empty.tril(0)?.dims(), [0, 3]);
    assert_eq!(empty.diag(0)?.dims(), [0]);
    assert_eq!(arange(0).diag(2)?.to_vec::<f32>()?, [0.0; 4]);
    assert_eq!(arange((2, 3)).diag(9)?.dims(), [0]);
    assert_eq!(arange((2, 3)).diag(isize::MIN)?.dims(), [0]);
    assert_eq!(arange((2, 3)).tril(isize::MIN)?.to_vec::<f32>()?, [0.0; 6]);
    assert_eq!(wide(&arange((2, 3)).triu(isize::MIN)?), wide(&arange((2, 3))));
    assert_eq!(T::meshgrid(&[] as &[T])?.len(), 0);
    assert_eq!(T::meshgrid(&[&empty.slice(s![.., 0])?, &scalar])?[1].dims(), [0, 1]);
    assert_eq!(empty.scatter(1, &at((0, 2), &[]), &arange((0, 2)))?.dims(), [0, 3]);
    assert_eq!(empty.slice_assign(s![.., 1..], &scalar)?.dims(), [0, 3]);
    assert_eq!(scalar.slice_assign(s![], &tensor![7.0].squeeze(0)?)?.item::<f32>()?, 7.0);
    assert_eq!(scalar.index(&[])?.rank(), 0);
    assert_eq!(empty.index(&[None, Some(&at((2, 2), &[0, 1, 2, -1]))])?.dims(), [0, 2, 2]);
    assert_eq!(empty.index_put(&[None, Some(&at(1, &[2]))], &scalar)?.dims(), [0, 3]);
    assert_eq!(scalar.index_put(&[], &arange(()))?.rank(), 0);
    assert_eq!(scalar.masked_select(&tensor![1.0, 0.0, f32::NAN])?.to_vec::<f32>()?, [0.0; 2]);
    assert_eq!(empty.masked_select(&empty)?.dims(), [0]);
    assert_eq!(scalar.nonzero()?.dims(), [0, 0]);
    assert_eq!(tensor![3.0].squeeze(0)?.nonzero()?.dims(), [1, 0]);
    assert_eq!(empty.nonzero()?.dims(), [0, 2]);
    assert_eq!(tensor![-0.0, f32::NAN, 1e-45].nonzero()?.to_vec::<i64>()?, [1, 2]);
    assert_eq!(at::<CpuBackend>((0, 2), &[]).one_hot(0)?.dims(), [0, 2, 0]);
    assert_eq!(at::<CpuBackend>((), &[1]).one_hot(2)?.to_vec::<i64>()?, [0, 1]);
    assert_eq!(T::eye(0, DType::F32)?.dims(), [0, 0]);
    assert_eq!(T::eye((0, 3), DType::F32)?.dims(), [0, 3]);
    assert_eq!(T::eye((2, 0), DType::F32)?.dims(), [2, 0]);
    Ok(())
}

/// NaN with its payload, signed zeros and subnormal numbers.
#[test]
fn elements_are_moved_as_bits() -> Result<()> {
    let bits = [0x7fc0_1234u32, 0xffa0_0001, 0x8000_0000, 0x0000_0001, 0xff80_0000, 0x3f80_0000];
    let x = T::from_vec(bits.map(f32::from_bits).to_vec(), 6)?;
    let bits_of = |x: &T| -> Result<Vec<u32>> {
        Ok(x.to_vec::<f32>()?.into_iter().map(f32::to_bits).collect())
    };
    let zeros = x.zeros_like()?;
    let order = at(6, &[5, 4, 3, 2, 1, 0]);
    let backwards: Vec<u32> = bits.into_iter().rev().collect();
    assert_eq!(bits_of(&zeros.scatter(0, &order, &x)?)?, backwards);
    assert_eq!(bits_of(&x.index(&[Some(&order)])?)?, backwards);
    assert_eq!(bits_of(&zeros.slice_assign(s![..;-1], &x)?)?, backwards);
    assert_eq!(bits_of(&x.roll(-2, 0)?)?, [&bits[2..], &bits[..2]].concat());
    assert_eq!(bits_of(&x.repeat(2)?)?, [bits, bits].concat());
    assert_eq!(bits_of(&T::stack(&[&x, &x], 0)?)?, [bits, bits].concat());
    assert_eq!(bits_of(&x.masked_select(&x.isnan()?)?)?, bits[..2]);
    let rows = x.reshape((2, 3))?;
    assert_eq!(bits_of(&rows.tril(0)?)?, [bits[0], 0, 0, bits[3], bits[4], 0]);
    let padded = x.pad(&[(0, 1)], PadMode::Constant(-0.0))?;
    assert_eq!(bits_of(&padded)?[6], 0x8000_0000);
    // Dropped elements leave nothing, not even NaN.
    assert_eq!(bits_of(&x.slice_assign(s![..2], &tensor![0.0])?)?[..2], [0, 0]);
    Ok(())
}

/// Enough elements for several threads, in rows that begin and end anywhere.
#[test]
fn large_tensors_match_a_loop() -> Result<()> {
    let (rows, cols) = (701, 1307);
    let x = arange((rows, cols));
    let values = x.to_vec::<f32>()?;
    let element = |i: usize, j: usize| values[i % rows * cols + j % cols];
    let expect = |name: &str, y: &T, f: &dyn Fn(usize, usize) -> f32| {
        let (y, width) = (y.to_vec::<f32>().unwrap(), y.dims()[1]);
        for (place, y) in y.into_iter().enumerate() {
            assert_eq!(y, f(place / width, place % width), "{name}: {place}");
        }
    };
    let inside = |i: usize, j: usize, [above, left]: [usize; 2]| {
        (above..above + rows).contains(&i) && (left..left + cols).contains(&j)
    };
    let y = x.roll([300, 1000], [0, 1])?;
    expect("roll", &y, &|i, j| element(i + rows - 300, j + cols - 1000));
    let y = x.roll(5, 0)?;
    expect("roll of rows", &y, &|i, j| element(i + rows - 5, j));
    let y = x.pad(&[(3, 1), (2, 5)], PadMode::Constant(-1.0))?;
    expect("pad", &y, &|i, j| {
        if inside(i, j, [3, 2]) { element(i - 3, j - 2) } else { -1.0 }
    });
    // Threads begin within rows that are copied backwards, and within rows in reverse order.
    let y = x.pad(&[(700, 0), (0, 0)], PadMode::Reflect)?;
    expect("reflected rows", &y, &|i, j| element(i.abs_diff(700), j));
    let y = x.pad(&[(0, 0), (1306, 0)], PadMode::Reflect)?;
    expect("reflected columns", &y, &|i, j| element(i, j.abs_diff(1306)));
    let y = x.repeat((2, 3))?;
    expect("repeat", &y, &element);
    let y = T::stack(&[&x, &x], 1)?.flatten(1, 2)?;
    expect("stack", &y, &element);

    let middle = arange((600, 1200));
    let source = middle.to_vec::<f32>()?;
    let target = |i: usize, j: usize| {
        let is_inside = (50..650).contains(&i) && (7..1207).contains(&j);
        is_inside.then(|| (i - 50) * 1200 + j - 7)
    };
    let y = x.slice_assign(s![50..650, 7..1207], &middle)?;
    expect("slice_assign", &y, &|i, j| target(i, j).map_or(element(i, j), |at| source[at]));
    let flipped = middle.t()?.contiguous()?.t()?.flip(0)?;
    let y = x.slice_assign(s![649..49;-1, 7..1207], &flipped)?;
    expect("slice_assign backwards", &y, &|i, j| {
        target(i, j).map_or(element(i, j), |at| source[at])
    });
    let y = x.slice_assign(s![1..;2, 1..;3], &tensor![-5.0])?;
    expect("slice_assign in steps", &y, &|i, j| {
        if i % 2 == 1 && j % 3 == 1 { -5.0 } else { element(i, j) }
    });
    let long = x.reshape((1, rows * cols))?;
    let y = long.slice_assign(s![.., 10..], &long.narrow(1, 0, rows * cols - 10)?)?;
    expect("slice_assign of one row", &y, &|_, j| values[if j < 10 { j } else { j - 10 }]);

    // Many elements to each target: the last one remains.
    let count = 300_000;
    let targets: Vec<i64> = (0..count as i64).map(|i| i * i % 1000).collect();
    let mut last = vec![-1.0; 1000];
    for (i, &target) in targets.iter().enumerate() {
        last[target as usize] = i as f32;
    }
    let (base, source) = (T::full(1000, -1f32)?, arange(count));
    assert_eq!(base.scatter(0, &at(count, &targets), &source)?.to_vec::<f32>()?, last);
    let put = base.index_put(&[Some(&at(count, &targets))], &source)?;
    assert_eq!(put.to_vec::<f32>()?, last);
    // An index for every element of four columns.
    let index = at::<CpuBackend>((count, 1), &targets);
    let index = index.repeat((1, 4))?;
    let wide = T::full((1000, 4), -1f32)?;
    let source = source.unsqueeze(1)?.broadcast_to((count, 4))?;
    let y = wide.scatter(0, &index, &source)?;
    expect("scatter", &y, &|i, _| last[i]);
    Ok(())
}

#[test]
fn slices_are_set_in_place_where_the_storage_is_not_shared() -> Result<()> {
    let address = |x: &T| x.data().as_slice::<f32>().unwrap().as_ptr();
    let mut x = arange((3, 4));
    let before = address(&x);
    x.set_slice(s![1..;2, ..;-2], &tensor![20.0, 30.0])?;
    assert_eq!(address(&x), before);
    assert_eq!(x.to_vec::<f32>()?[4..8], [4.0, 30.0, 6.0, 20.0]);
    let copy = x.clone();
    x.set_slice(s![0], &tensor![9.0])?;
    assert_eq!(x.to_vec::<f32>()?[..4], [9.0; 4]);
    assert_eq!(copy.to_vec::<f32>()?[..4], [0.0, 1.0, 2.0, 3.0]);
    // A view of shared storage, and one that repeats elements.
    let mut part = copy.narrow(0, 1, 2)?;
    part.set_slice(s![.., 0], &tensor![-1.0])?;
    assert_eq!(part.to_vec::<f32>()?, [-1.0, 30.0, 6.0, 20.0, -1.0, 9.0, 10.0, 11.0]);
    assert_eq!(copy.to_vec::<f32>()?[4], 4.0);
    let mut repeated = tensor![1.0, 2.0].broadcast_to((2, 2))?;
    repeated.set_slice(s![0, 0], &tensor![5.0].squeeze(0)?)?;
    assert_eq!(repeated.to_vec::<f32>()?, [5.0, 2.0, 1.0, 2.0]);
    // A part that outlives the tensor it is of.
    let mut rest = arange((3, 4)).narrow(0, 1, 2)?;
    rest.set_slice(s![1], &tensor![0.0])?;
    assert_eq!(rest.to_vec::<f32>()?, [4.0, 5.0, 6.0, 7.0, 0.0, 0.0, 0.0, 0.0]);
    // With itself as the source.
    let mut own = arange(4);
    let source = own.flip(0)?;
    own.set_slice(s![], &source)?;
    assert_eq!(own.to_vec::<f32>()?, [3.0, 2.0, 1.0, 0.0]);

    let error = own.set_slice(s![..3], &tensor![1.0, 2.0]).unwrap_err().to_string();
    assert_eq!(error, "set_slice: shapes [2] and [3] do not fit");
    assert_eq!(own.to_vec::<f32>()?, [3.0, 2.0, 1.0, 0.0]);
    let mut tracked = own.requires_grad();
    assert!(tracked.set_slice(s![0], &tensor![1.0]).unwrap_err().to_string().contains("tracked"));
    let mut plain = arange(4);
    assert!(plain.set_slice(s![0], &tracked.slice(s![0])?).is_err());
    Ok(())
}

#[test]
fn likenesses_have_the_shape_and_dtype() -> Result<()> {
    for dtype in DType::ALL {
        let x = arange((2, 3)).to_dtype(dtype)?;
        let full = x.full_like(1.0)?;
        assert_eq!((full.dtype(), full.dims(), wide(&full)), (dtype, &[2, 3][..], vec![1.0; 6]));
        let drawn = x.rand_like(2.0..3.0, &mut Rng::seed(5));
        assert_eq!(drawn.is_ok(), dtype.is_float());
        if let Ok(drawn) = drawn {
            assert_eq!((drawn.dtype(), drawn.shape()), (dtype, x.shape()));
            assert!(wide(&drawn).iter().all(|x| (2.0..=3.0).contains(x)));
        }
    }
    let like = arange((2, 3)).rand_like(0.0..1.0, &mut Rng::seed(5))?;
    assert_eq!(wide(&like), wide(&T::rand((2, 3), 0.0..1.0, &mut Rng::seed(5))?));
    Ok(())
}

/// Gradients of integers and masks: the results are not tracked.
#[test]
fn results_without_a_derivative_are_not_tracked() -> Result<()> {
    let x = arange((2, 3)).requires_grad();
    assert!(!x.nonzero()?.is_tracked());
    assert!(!x.full_like(1.0)?.is_tracked());
    assert!(!x.rand_like(0.0..1.0, &mut Rng::seed(1))?.is_tracked());
    assert!(!arange((2, 3)).masked_select(&x)?.is_tracked());
    Ok(())
}

/// The gradient of a part has as many elements as the part, not as the whole.
#[test]
fn gradients_of_many_parts_have_as_many_elements_as_the_whole() -> Result<()> {
    let x = arange((2000, 50)).requires_grad();
    for parts in [x.split(1, 0)?, x.unbind(0)?] {
        let y = T::cat(&parts.iter().collect::<Vec<_>>(), 0)?.square()?.sum(None, false)?;
        let elements = Rc::new(Cell::new(0));
        let counted = Rc::clone(&elements);
        let count = move |run: &mut RuleRun<'_, CpuBackend>| {
            let new: usize = run.gradients.iter().flatten().map(Tensor::numel).sum();
            counted.set(counted.get() + new);
            Ok(())
        };
        let grads = with_rule_hook(count, || y.backward())?;
        assert_eq!(wide(grads.wrt(&x)?), wide(&x.detach().mul(2.0)?));
        let factor = elements.get() / x.numel();
        // Of the sum, the square, the concatenation, and the parts.
        assert!((3..=5).contains(&factor), "{factor} times the elements");
    }
    Ok(())
}
