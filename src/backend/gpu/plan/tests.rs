//! Tests of plans without a device: positions computed from the words, as kernels do, against layouts of up to 2³¹
//! elements.

use super::super::shader::{GROUP, Store};
use super::elementwise::{Function, Operand};
use super::matmul::{Product, Products};
use super::reduce::Reduction;
use super::{LARGEST, MAX_GROUPS, Plan, grid_of, index};
use crate::error::Error;
use crate::layout::Layout;
use crate::ops::{BinaryOp, ReduceOp, ScanOp};
use crate::rng::Rng;
use crate::shape::Shape;

const OP: &str = "test";

/// Computes the position of element `i` of operand `k` as the kernels do. The extents and steps begin at `words[from]`.
fn position(
    words: &[u32],
    start: u32,
    from: usize,
    axes: u32,
    width: usize,
    k: usize,
    i: u32,
) -> usize {
    let (mut at, mut rest) = (start, i);
    for axis in 0..axes as usize {
        let axis = from + axis * width;
        at = at.wrapping_add((rest % words[axis]).wrapping_mul(words[axis + 1 + k]));
        rest /= words[axis];
    }
    assert_eq!(rest, 0, "an element beyond the last");
    at as usize
}

/// Draws a view of up to 2³¹ elements: permuted, flipped, broadcast, narrowed.
fn view(rng: &mut Rng) -> Layout {
    let mut below = |n: usize| rng.below(n as u64) as usize;
    let rank = 1 + below(4);
    let most = [1 << 31, 1 << 15, 1290, 215][rank - 1];
    let dims: Vec<usize> = (0..rank)
        .map(|_| [1, 2 + below(3), most / 2 + below(most / 2), 1 + below(most)][below(4)])
        .collect();
    let mut layout = Layout::contiguous(Shape::new(dims));
    for axis in 0..rank {
        let extent = layout.dims()[axis];
        layout = match below(5) {
            0 => layout.flip(axis),
            1 => layout.narrow(OP, axis, extent / 2, extent - extent / 2).unwrap(),
            2 if extent == 1 => {
                let longer = layout.shape().with_axis(axis, Some(3));
                layout.broadcast_to(OP, &longer).unwrap()
            }
            _ => layout,
        };
    }
    let mut axes: Vec<usize> = (0..rank).collect();
    (1..rank).for_each(|i| axes.swap(i, below(i + 1)));
    layout.permute(OP, &axes).unwrap()
}

/// Draws some of `n` elements, with the first and the last among them.
fn some(n: usize, rng: &mut Rng) -> Vec<u32> {
    let drawn = (0..20).map(|_| rng.below(n as u64) as u32);
    [0, n as u32 - 1].into_iter().chain(drawn).collect()
}

fn views() -> impl Iterator<Item = (Layout, Rng)> {
    let mut rng = Rng::seed(7);
    (0..2000).map(move |i| (view(&mut rng), Rng::seed(i)))
}

/// Every element has a thread, and no thread's number wraps.
#[test]
fn grids_cover_every_element_and_no_more_than_a_row() {
    let around = |x: usize| [x.saturating_sub(1), x, x + 1];
    let row = MAX_GROUPS * GROUP;
    for numel in [1, GROUP, row, 3 * row, 1 << 31].into_iter().flat_map(around).chain([LARGEST]) {
        let numel = numel.max(1);
        let (grid, row) = grid_of(numel);
        let threads = u64::from(row) * u64::from(grid[1]);
        assert_eq!(row as usize, grid[0] as usize * GROUP);
        assert!(grid.iter().all(|&x| (1..=MAX_GROUPS as u32).contains(&x)), "{numel}: {grid:?}");
        assert!(threads >= numel as u64 && threads < 1 << 32, "{numel}: {threads}");
        assert!(threads - (numel as u64) < u64::from(row).max(GROUP as u64), "{numel}: {threads}");
    }
}

#[test]
fn elementwise_operands_are_read_at_their_positions() {
    let mut with_axes = 0;
    for (layout, mut rng) in views() {
        let other = Layout::contiguous(*layout.shape());
        let function = Function::Binary(BinaryOp::Add, Store::F32);
        let operands = [Operand::Tensor(&layout), Operand::Tensor(&other)];
        let Some(Plan { words, .. }) = function.plan(OP, layout.shape(), &operands, None).unwrap()
        else {
            continue;
        };
        assert_eq!(words[0] as usize, layout.numel());
        for i in some(layout.numel(), &mut rng) {
            for (k, layout) in [&layout, &other].into_iter().enumerate() {
                let at = match words[2] {
                    0 => (words[7 + k] + i) as usize,
                    axes => position(&words, words[7 + k], 10, axes, 3, k, i),
                };
                assert_eq!(at, layout.position_of(i as usize), "{layout:?}, element {i}");
            }
        }
        with_axes += usize::from(words[2] > 0);
    }
    assert!(with_axes > 500, "{with_axes}");
}

#[test]
fn reductions_go_through_the_elements_of_each_result() {
    for (layout, mut rng) in views() {
        let rank = layout.dims().len();
        let axes: Vec<usize> = (0..rank).filter(|_| rng.below(2) == 0).collect();
        let plans = Reduction::plans(ReduceOp::Sum, Store::F32, &layout, &axes).unwrap();
        let words = &plans.last().unwrap().words;
        let kept = layout.shape().reduced(&axes, true);
        let mut inner = Layout::contiguous(layout.shape().reduced(&axes, true));
        for axis in 0..rank {
            let extent = if axes.contains(&axis) { layout.dims()[axis] } else { 1 };
            inner = Layout::contiguous(inner.shape().with_axis(axis, Some(extent)));
        }
        assert_eq!((words[0] as usize, words[4] as usize), (kept.numel(), inner.numel()));
        // The parts cover all elements.
        let parts = inner.numel().div_ceil(words[7] as usize);
        assert_eq!(plans.len() == 1, parts <= 1);
        assert_eq!(plans[0].words[0] as usize, kept.numel() * parts.max(1));
        assert_eq!(plans[0].words[2..], words[2..], "they differ only in their counts");
        for i in some(kept.numel(), &mut rng).into_iter().take(4) {
            let start = position(words, words[5], 8, words[2], 2, 0, i) as u32;
            for j in some(inner.numel(), &mut rng).into_iter().take(4) {
                let from = 8 + 2 * words[2] as usize;
                let at = position(words, start, from, words[3], 2, 0, j);
                // Kept axes have the index of the result, reduced axes that of the element.
                let (i, j) = (digits(kept.dims(), i as usize), digits(inner.dims(), j as usize));
                let index: Vec<usize> =
                    (0..rank).map(|a| if axes.contains(&a) { j[a] } else { i[a] }).collect();
                assert_eq!(at, layout.position(&index), "{layout:?} over {axes:?}");
            }
        }
    }
}

/// The index of element `i` in row-major order.
fn digits(dims: &[usize], mut i: usize) -> Vec<usize> {
    let mut index = vec![0; dims.len()];
    for axis in (0..dims.len()).rev() {
        index[axis] = i % dims[axis];
        i /= dims[axis];
    }
    index
}

#[test]
fn copies_gathers_and_scans_go_to_their_positions() {
    for (layout, mut rng) in views() {
        let shape = layout.shape();
        let axis = rng.below(shape.ndim() as u64) as usize;
        let whole = Layout::contiguous(*shape);
        let words = index::copy_into(OP, Store::F32, &layout, &whole).unwrap().words;
        for i in some(layout.numel(), &mut rng) {
            let from = position(&words, words[3], 5, words[2], 3, 0, i);
            let to = position(&words, words[4], 5, words[2], 3, 1, i);
            assert_eq!((from, to), (layout.position_of(i as usize), i as usize));
        }

        let words = index::gather(Store::F32, &layout, axis, &whole).unwrap().words;
        assert_eq!(words[3] as usize, shape.dim(axis));
        for i in some(layout.numel(), &mut rng) {
            let entry = rng.below(shape.dim(axis) as u64) as u32;
            let start = position(&words, words[5], 7, words[2], 3, 0, i) as u32;
            let at = start.wrapping_add(entry.wrapping_mul(words[4])) as usize;
            let mut index = digits(shape.dims(), i as usize);
            index[axis] = entry as usize;
            assert_eq!(at, layout.position(&index), "{layout:?} along {axis}");
        }

        let plan = index::scan(ScanOp::Sum, Store::F32, &layout, axis).unwrap();
        let (words, lines) = (plan.words, shape.with_axis(axis, Some(1)));
        let parts = (words[3] as usize).div_ceil(words[7] as usize);
        assert_eq!(words[0] as usize, lines.numel() * parts);
        if parts > 1 {
            // The reduction that computes the totals has the same parts.
            let totals = &Reduction::plans(ReduceOp::Sum, Store::F32, &layout, &[axis]).unwrap()[0];
            assert_eq!((totals.words[0], totals.words[7]), (words[0], words[7]));
        }
        for i in some(lines.numel(), &mut rng) {
            let entry = rng.below(shape.dim(axis) as u64) as u32;
            let mut index = digits(lines.dims(), i as usize);
            index[axis] = entry as usize;
            for (k, (start, layout)) in [(words[6], &layout), (0, &whole)].into_iter().enumerate() {
                let start = position(&words, start, 8, words[2], 3, k, i) as u32;
                let at = start.wrapping_add(entry.wrapping_mul(words[4 + k])) as usize;
                assert_eq!(at, layout.position(&index), "{layout:?} along {axis}");
            }
        }
    }
}

#[test]
fn products_read_their_matrices() {
    for (layout, mut rng) in views() {
        let rank = layout.dims().len();
        if rank < 2 {
            continue;
        }
        let (row, column) = (rank - 2, rank - 1);
        let mut axes: Vec<usize> = (0..rank).collect();
        axes.swap(row, column);
        let other = layout.permute(OP, &axes).unwrap();
        let Products { plans, count: products, parts } =
            match Product::plans(Store::F32, &layout, &other) {
                Ok(products) => products,
                // A grid cannot have that many tiles or results.
                Err(Error::Overflow { .. }) => continue,
                Err(error) => panic!("{error}"),
            };
        let [m, k] = [layout.dims()[row], layout.dims()[column]];
        let count: usize = layout.dims()[..row].iter().product();
        let seen: usize = plans.iter().map(|plan| plan.grid[2] as usize).sum();
        assert_eq!((products, seen), (count, count * parts));
        let words = &plans[0].words;
        assert_eq!([words[0], words[1], words[2]], [m as u32, m as u32, k as u32]);
        for matrix in some(count, &mut rng) {
            let [i, j] = [m, k].map(|n| rng.below(n as u64) as u32);
            let mut index = digits(&layout.dims()[..row], matrix as usize);
            index.extend([i as usize, j as usize]);
            let a = position(words, words[5], 12, words[11], 3, 0, matrix) as u32;
            let a = a.wrapping_add(i.wrapping_mul(words[7])).wrapping_add(j.wrapping_mul(words[8]));
            assert_eq!(a as usize, layout.position(&index), "{layout:?}");
            let b = position(words, words[6], 12, words[11], 3, 1, matrix) as u32;
            let b =
                b.wrapping_add(j.wrapping_mul(words[9])).wrapping_add(i.wrapping_mul(words[10]));
            assert_eq!(b as usize, layout.position(&index), "{layout:?}");
        }
    }
}

/// Positions that do not fit a word are an error; they never wrap.
#[test]
fn larger_tensors_are_an_error() {
    let one = Layout::contiguous(Shape::new([1, 1]));
    let shape = Shape::new([1 << 16, 1 << 16]);
    let repeated = one.broadcast_to(OP, &shape).unwrap();
    let function = Function::Copy(Store::U8);
    let overflows = |found: Option<Error>| matches!(found, Some(Error::Overflow { .. }));
    let plan = function.plan(OP, &shape, &[Operand::Tensor(&repeated)], None);
    assert!(overflows(plan.err()));
    assert!(overflows(Reduction::plans(ReduceOp::Sum, Store::F32, &repeated, &[]).err()));
    assert!(overflows(index::copy_into(OP, Store::F32, &repeated, &repeated).err()));
    assert!(overflows(index::scan(ScanOp::Sum, Store::F32, &Layout::contiguous(shape), 0).err()));
    assert!(overflows(Product::plans(Store::F32, &repeated, &repeated).err()));
}
