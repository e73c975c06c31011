//! Views are new layouts of the same storage. Each is checked against the same movement of elements of an
//! explicit array, whose index is computed with neither strides nor layouts.

use std::collections::HashSet;

use proptest::prelude::*;
use proptest::sample::subsequence;
use swath::{
    Backend, CpuBackend, Error, Layout, MAX_RANK, ReferenceBackend, Shape, SliceItem, Strides,
    broadcast_index, broadcast_shape, merge_axes, s,
};

/// An explicit array: the storage position of every element in row-major order.
#[derive(Clone, Debug, PartialEq)]
struct Array {
    dims: Vec<usize>,
    positions: Vec<usize>,
}

impl Array {
    fn of(layout: &Layout) -> Array {
        Array { dims: layout.dims().to_vec(), positions: layout.positions().collect() }
    }

    fn get(&self, index: &[usize]) -> usize {
        assert_eq!(index.len(), self.dims.len());
        self.positions[index.iter().zip(&self.dims).fold(0, |at, (&i, &dim)| at * dim + i)]
    }

    /// The array of these extents whose element at `index` is this array's element at `from(index)`.
    fn gather(&self, dims: Vec<usize>, from: impl Fn(&[usize]) -> Vec<usize>) -> Array {
        let positions = indices(&dims).iter().map(|index| self.get(&from(index))).collect();
        Array { dims, positions }
    }
}

fn indices(dims: &[usize]) -> Vec<Vec<usize>> {
    dims.iter().fold(vec![vec![]], |prefixes, &dim| {
        let grown = |prefix: Vec<usize>| (0..dim).map(move |i| [prefix.as_slice(), &[i]].concat());
        prefixes.into_iter().flat_map(grown).collect()
    })
}

/// Layouts of up to 5 axes of up to 4 elements: contiguous, permuted, flipped, narrowed and stepped,
/// broadcast, and, where the storage allows, with arbitrary strides.
fn layouts() -> impl Strategy<Value = Layout> {
    let axis = (0usize..=4, -9isize..=9);
    let free = prop::collection::vec(axis, 0..=5).prop_map(|axes| {
        let (dims, strides): (Vec<_>, Vec<_>) = axes.into_iter().unzip();
        Layout::new(Shape::new(dims), Strides::new(strides), 200).expect("200 > 5 axes * 3 * 9")
    });
    let dims = prop::collection::vec(prop_oneof![1 => 0usize..=1, 6 => 2usize..=4], 0..=5);
    let axes = prop::collection::vec((0usize..6, any::<bool>(), 0isize..=4, 1isize..=2), 5);
    let dense = (dims, axes).prop_map(|(dims, axes)| {
        let mut layout = Layout::contiguous(Shape::new(&dims));
        let mut order: Vec<usize> = (0..dims.len()).collect();
        order.sort_by_key(|&axis| axes[axis].0 / 3);
        layout = layout.permute("permute", &order).unwrap();
        let start = |&(cut, _, start, _): &(usize, bool, isize, isize)| {
            if cut == 0 { Some(start) } else { None }
        };
        let items: Vec<SliceItem> = (axes.iter().take(dims.len()))
            .map(|axis| SliceItem::Range { start: start(axis), end: None, step: axis.3 })
            .collect();
        layout = layout.slice("slice", &items).unwrap();
        for (axis, cut) in axes.iter().enumerate().take(dims.len()) {
            if cut.1 {
                layout = layout.flip(axis);
            }
        }
        layout
    });
    prop_oneof![free, dense]
}

/// A layout of at least one axis and one of its axes.
fn layout_and_axis() -> impl Strategy<Value = (Layout, usize)> {
    let with_axes = layouts().prop_filter("an axis", |layout| layout.shape().ndim() > 0);
    with_axes.prop_flat_map(|layout| (Just(layout), 0..layout.shape().ndim()))
}

/// Shapes with `numel` elements.
fn shapes_of(numel: usize, max_rank: usize) -> Vec<Vec<usize>> {
    if max_rank == 0 {
        return if numel == 1 { vec![vec![]] } else { vec![] };
    }
    let mut shapes = if numel == 1 { vec![vec![]] } else { vec![] };
    for dim in (1..=numel).filter(|dim| numel.is_multiple_of(*dim)) {
        for rest in shapes_of(numel / dim, max_rank - 1) {
            shapes.push([&[dim], rest.as_slice()].concat());
        }
    }
    shapes
}

/// The strides that give these positions, if there are any. Each stride is the difference between the
/// positions of two neighbours, so there is only one candidate.
fn strides_for(array: &Array) -> Option<Vec<isize>> {
    let origin = vec![0; array.dims.len()];
    let first = array.get(&origin) as isize;
    let strides = (0..array.dims.len()).map(|axis| {
        let mut neighbour = origin.clone();
        neighbour[axis] = 1;
        if array.dims[axis] > 1 { array.get(&neighbour) as isize - first } else { 0 }
    });
    let strides: Vec<isize> = strides.collect();
    let fits = indices(&array.dims).iter().all(|index| {
        let steps = index.iter().zip(&strides).map(|(&i, &stride)| i as isize * stride);
        first + steps.sum::<isize>() == array.get(index) as isize
    });
    fits.then_some(strides)
}

/// Indices of NumPy's `start:end:step`, taken one by one from the start until the end or the edge.
fn walk(dim: usize, start: Option<isize>, end: Option<isize>, step: isize) -> Vec<usize> {
    let dim = dim as isize;
    let from_front = |bound: isize| if bound < 0 { bound + dim } else { bound };
    let mut taken = Vec::new();
    if step > 0 {
        let end = end.map_or(dim, from_front);
        let mut at = start.map_or(0, from_front).max(0);
        while at < end.min(dim) {
            taken.push(at as usize);
            at += step;
        }
    } else {
        let end = end.map_or(-1, |end| from_front(end).max(-1));
        let mut at = start.map_or(dim - 1, from_front).min(dim - 1);
        while at > end {
            taken.push(at as usize);
            at += step;
        }
    }
    taken
}

fn item() -> impl Strategy<Value = SliceItem> {
    let bound = || prop::option::of(prop_oneof![8 => -7isize..=7, 1 => any::<isize>()]);
    let step = prop_oneof![
        8 => -4isize..=4,
        1 => Just(isize::MIN),
        1 => Just(isize::MAX),
    ];
    let range = (bound(), bound(), step.prop_filter("a step", |&step| step != 0))
        .prop_map(|(start, end, step)| SliceItem::Range { start, end, step });
    prop_oneof![1 => (-4isize..4).prop_map(SliceItem::Index), 3 => range]
}

/// Like [`walk`] for bounds and steps of any size: those beyond the axis act like ones just beyond it.
fn walk_clamped(dim: usize, start: Option<isize>, end: Option<isize>, step: isize) -> Vec<usize> {
    let cut = |bound: isize| bound.clamp(-100, 100);
    walk(dim, start.map(cut), end.map(cut), cut(step))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn positions_match_those_of_the_indices(layout in layouts()) {
        let by_index: Vec<usize> =
            indices(layout.dims()).iter().map(|index| layout.position(index)).collect();
        let array = Array::of(&layout);
        prop_assert_eq!(&array.positions, &by_index);
        let ends = by_index.iter().min().copied().zip(by_index.iter().max().copied());
        prop_assert_eq!(layout.extent("test"), Ok(ends));
        let dense = by_index.windows(2).all(|pair| pair[1] == pair[0].wrapping_add(1));
        prop_assert_eq!(layout.is_contiguous(), dense);
        if layout.is_broadcast() && layout.numel() > 0 {
            let distinct: HashSet<usize> = by_index.iter().copied().collect();
            prop_assert!(distinct.len() < by_index.len());
        }
    }

    #[test]
    fn contiguous_positions_count_up(dims in prop::collection::vec(0usize..5, 0..=5)) {
        let layout = Layout::contiguous(Shape::new(&dims));
        prop_assert!(layout.is_contiguous());
        prop_assert!(layout.positions().eq(0..dims.iter().product()));
    }

    #[test]
    fn permute((layout, order) in layouts().prop_flat_map(|layout| {
        let axes: Vec<usize> = (0..layout.shape().ndim()).collect();
        (Just(layout), Just(axes).prop_shuffle())
    })) {
        let array = Array::of(&layout);
        let dims = order.iter().map(|&axis| array.dims[axis]).collect();
        let expected = array.gather(dims, |index| {
            let mut from = vec![0; index.len()];
            order.iter().zip(index).for_each(|(&axis, &i)| from[axis] = i);
            from
        });
        prop_assert_eq!(Array::of(&layout.permute("permute", &order).unwrap()), expected);
    }

    #[test]
    fn narrow((layout, axis) in layout_and_axis(), start in 0usize..6, len in 0usize..6) {
        let array = Array::of(&layout);
        let got = layout.narrow("narrow", axis, start, len);
        if start + len > array.dims[axis] {
            let is_range_error = matches!(got, Err(Error::IndexOutOfRange { op: "narrow", .. }));
            prop_assert!(is_range_error);
        } else {
            let mut dims = array.dims.clone();
            dims[axis] = len;
            let expected = array.gather(dims, |index| {
                let mut from = index.to_vec();
                from[axis] += start;
                from
            });
            prop_assert_eq!(Array::of(&got.unwrap()), expected);
        }
    }

    #[test]
    fn flip((layout, axis) in layout_and_axis()) {
        let array = Array::of(&layout);
        let last = array.dims[axis].wrapping_sub(1);
        let expected = array.gather(array.dims.clone(), |index| {
            let mut from = index.to_vec();
            from[axis] = last - from[axis];
            from
        });
        let flipped = layout.flip(axis);
        prop_assert_eq!(&Array::of(&flipped), &expected);
        prop_assert_eq!(Array::of(&flipped.flip(axis)), array);
    }

    #[test]
    fn slice(layout in layouts(), items in prop::collection::vec(item(), 0..=5)) {
        let array = Array::of(&layout);
        let got = layout.slice("slice", &items);
        if items.len() > array.dims.len() {
            let is_axis_error = matches!(got, Err(Error::AxisOutOfRange { .. }));
            prop_assert!(is_axis_error);
            return Ok(());
        }
        // Indices taken along each axis, and true if the axis is kept.
        let mut taken: Vec<(Vec<usize>, bool)> =
            array.dims.iter().map(|&dim| ((0..dim).collect(), true)).collect();
        for (axis, item) in items.iter().enumerate() {
            let dim = array.dims[axis];
            taken[axis] = match *item {
                SliceItem::Index(index) => {
                    let from_front = if index < 0 { index + dim as isize } else { index };
                    if !(0..dim as isize).contains(&from_front) {
                        let is_index_error = matches!(got, Err(Error::IndexOutOfRange { .. }));
                        prop_assert!(is_index_error);
                        return Ok(());
                    }
                    (vec![from_front as usize], false)
                }
                SliceItem::Range { start, end, step } => (walk_clamped(dim, start, end, step), true),
            };
        }
        let dims = taken.iter().filter(|(_, stays)| *stays).map(|(walk, _)| walk.len()).collect();
        let expected = array.gather(dims, |index| {
            let mut kept = index.iter();
            let pick = |(walk, stays): &(Vec<usize>, bool)| {
                if *stays { walk[*kept.next().unwrap()] } else { walk[0] }
            };
            taken.iter().map(pick).collect()
        });
        prop_assert_eq!(Array::of(&got.unwrap()), expected);
    }

    #[test]
    fn broadcasting(layout in layouts(), lead in prop::collection::vec(0usize..3, 0..=3), grow in prop::collection::vec(0usize..4, 5)) {
        let array = Array::of(&layout);
        let grown = array.dims.iter().zip(&grow);
        let dims: Vec<usize> = (lead.iter().copied())
            .chain(grown.map(|(&dim, &to)| if dim == 1 { to } else { dim }))
            .collect();
        let shape = Shape::new(&dims);
        let expected = array.gather(dims, |index| broadcast_index(index, layout.shape()));
        prop_assert_eq!(Array::of(&layout.broadcast_to("expand", &shape).unwrap()), expected);
        prop_assert_eq!(broadcast_shape(layout.shape(), &shape), Ok(shape));
    }

    #[test]
    fn broadcast_shape_is_the_smallest_that_fits_both(
        a in prop::collection::vec(0usize..4, 0..=4),
        b in prop::collection::vec(0usize..4, 0..=4),
    ) {
        let rank = a.len().max(b.len());
        let dim = |dims: &[usize], axis: usize| {
            (axis + dims.len()).checked_sub(rank).map_or(1, |axis| dims[axis])
        };
        let joined: Option<Vec<usize>> = (0..rank)
            .map(|axis| match (dim(&a, axis), dim(&b, axis)) {
                (1, other) | (other, 1) => Some(other),
                (x, y) => (x == y).then_some(x),
            })
            .collect();
        let (a, b) = (Shape::new(&a), Shape::new(&b));
        prop_assert_eq!(broadcast_shape(&a, &b).ok(), joined.clone().map(Shape::from));
        for from in [a, b] {
            let to = joined.clone().map(Shape::from);
            let fits = to.is_some_and(|to| Layout::contiguous(from).broadcast_to("expand", &to).is_ok());
            prop_assert_eq!(fits, joined.is_some());
        }
    }

    #[test]
    fn reshape_is_a_view_exactly_where_strides_exist(layout in layouts(), pick in any::<prop::sample::Index>()) {
        let array = Array::of(&layout);
        if layout.numel() == 0 {
            let flat = layout.reshape("reshape", &Shape::new([3, 0])).unwrap();
            prop_assert_eq!(flat.map(|flat| flat.numel()), Some(0));
            return Ok(());
        }
        let dims = pick.get(&shapes_of(layout.numel(), 4)).clone();
        let expected = Array { dims: dims.clone(), positions: array.positions };
        match layout.reshape("reshape", &Shape::new(&dims)).unwrap() {
            Some(view) => prop_assert_eq!(Array::of(&view), expected),
            None => prop_assert_eq!(strides_for(&expected), None),
        }
        let more = Shape::new([layout.numel() + 1]);
        let is_shape_error =
            matches!(layout.reshape("reshape", &more), Err(Error::ShapeMismatch { .. }));
        prop_assert!(is_shape_error);
    }

    #[test]
    fn axes_of_extent_1_can_be_added_and_removed(layout in layouts(), at in 0usize..6) {
        let array = Array::of(&layout);
        let rank = array.dims.len();
        let got = layout.unsqueeze("unsqueeze", at);
        if at > rank {
            let is_axis_error = matches!(got, Err(Error::AxisOutOfRange { .. }));
            prop_assert!(is_axis_error);
        } else {
            let grown = got.unwrap();
            let mut dims = array.dims.clone();
            dims.insert(at, 1);
            prop_assert_eq!(&Array::of(&grown), &Array { dims, ..array.clone() });
            prop_assert_eq!(Array::of(&grown.squeeze("squeeze", at).unwrap()), array.clone());
        }
        let squeezed = layout.squeeze("squeeze", at);
        prop_assert_eq!(squeezed.is_ok(), at < rank && array.dims[at] == 1);
    }

    #[test]
    fn merged_axes_give_the_same_positions(
        layout in layouts(),
        repeated in subsequence((0..5usize).collect::<Vec<_>>(), 0..=5),
    ) {
        // A second operand of the same shape, contiguous except for broadcast axes.
        let kept = |(axis, &dim): (usize, &usize)| if repeated.contains(&axis) { 1 } else { dim };
        let dims: Vec<usize> = layout.dims().iter().enumerate().map(kept).collect();
        let other = Layout::contiguous(Shape::new(dims));
        let other = other.broadcast_to("expand", layout.shape()).unwrap();
        let operands = [&layout, &other, &Layout::contiguous(*layout.shape())];
        let nest = merge_axes(&operands);
        prop_assert!(nest.dims().len() <= layout.shape().ndim());
        for (i, operand) in operands.into_iter().enumerate() {
            let walked: Vec<usize> = indices(nest.dims())
                .iter()
                .map(|index| {
                    let steps = index.iter().zip(nest.strides(i));
                    let shift: isize = steps.map(|(&i, &stride)| i as isize * stride).sum();
                    operand.offset().wrapping_add_signed(shift)
                })
                .collect();
            prop_assert_eq!(walked, operand.positions().collect::<Vec<_>>());
        }
        // Neighbouring axes that could be merged in every operand are merged.
        for axis in 1..nest.dims().len() {
            let dim = nest.dims()[axis] as isize;
            let apart = (0..3).any(|i| nest.strides(i)[axis - 1] != dim * nest.strides(i)[axis]);
            prop_assert!(apart || layout.numel() == 0);
        }
    }

    #[test]
    fn layouts_beyond_the_address_space_are_errors(
        dims in prop::collection::vec(any::<usize>(), 1..4),
        steps in prop::collection::vec(any::<isize>(), 4),
        offset in any::<usize>(),
    ) {
        let strides = Strides::new(&steps[..dims.len()]);
        let ends = |bound: fn(i128) -> i128| {
            let reach = dims.iter().zip(&steps).map(|(&dim, &step)| {
                (dim as i128 - 1).saturating_mul(step as i128)
            });
            reach.fold(offset as i128, |at, reach| at.saturating_add(bound(reach)))
        };
        let fits = dims.contains(&0)
            || (ends(|r| r.min(0)) >= 0 && ends(|r| r.max(0)) <= isize::MAX as i128);
        let layout = Layout::new(Shape::new(&dims), strides, offset);
        prop_assert_eq!(layout.is_some(), fits);
    }
}

#[test]
fn small_reshapes_one_by_one() {
    // Every layout of three axes of up to 3 elements with strides up to 6, reshaped to every shape.
    let dims = indices(&[3, 3, 3]);
    for dims in dims.into_iter().map(|dims| dims.iter().map(|d| d + 1).collect::<Vec<_>>()) {
        for steps in indices(&[7, 7, 7]) {
            let strides = Strides::new(steps.iter().map(|&s| s as isize).collect::<Vec<_>>());
            let layout = Layout::new(Shape::new(&dims), strides, 0).unwrap();
            let positions: Vec<usize> = layout.positions().collect();
            for dims in shapes_of(layout.numel(), 3) {
                let expected = Array { dims: dims.clone(), positions: positions.clone() };
                let view = layout.reshape("reshape", &Shape::new(&dims)).unwrap();
                assert_eq!(view.is_some(), strides_for(&expected).is_some(), "{layout:?} {dims:?}");
                assert!(view.is_none_or(|view| Array::of(&view) == expected));
            }
        }
    }
}

#[test]
fn axes_and_steps_that_do_not_exist_are_errors() {
    let layout = Layout::contiguous(Shape::new([2, 1]));
    for axis in [2, 8, 9, usize::MAX] {
        assert!(layout.narrow("narrow", axis, 0, 1).is_err());
        assert!(layout.squeeze("squeeze", axis).is_err());
        assert!(layout.permute("permute", &[0, axis]).is_err());
        assert!(layout.unsqueeze("unsqueeze", axis.saturating_add(1)).is_err());
    }
    assert!(layout.permute("permute", &[0, 0]).is_err());
    assert!(layout.permute("permute", &[0]).is_err());
    assert!(layout.narrow("narrow", 0, usize::MAX, 2).is_err());
    let zero = layout.slice("slice", &s![..;0]).unwrap_err();
    assert_eq!(zero.to_string(), "slice: the step of a slice must not be 0");
    let full = Layout::contiguous(Shape::new([1; MAX_RANK]));
    assert!(matches!(full.unsqueeze("unsqueeze", 0), Err(Error::TooManyAxes { rank: 9, .. })));
}

#[test]
fn shapes_of_too_many_axes_are_errors_everywhere() {
    let (long, short) = (Shape::new([1; 9]), Shape::new([1; 8]));
    for (a, b) in [(long, short), (short, long), (long, long)] {
        assert!(matches!(broadcast_shape(&a, &b), Err(Error::TooManyAxes { .. })));
    }
    let layout = Layout::contiguous(short);
    assert!(layout.broadcast_to("expand", &long).is_err());
    assert!(layout.reshape("reshape", &long).is_err());
}

#[test]
fn views_whose_positions_overflow_or_exceed_the_storage_are_errors() {
    fn run<B: Backend>() {
        // Two of them overflow a count of elements.
        const LONG: usize = 1 << (usize::BITS / 2 + 1);
        let x = B::ones(4).unwrap();
        let strided = |shape: &[usize], strides: &[isize], offset| {
            Layout::new(Shape::new(shape), Strides::new(strides), offset).unwrap()
        };
        for layout in [
            Layout::contiguous([LONG, LONG].into()),
            Layout::contiguous([1 << (usize::BITS - 1), 2].into()),
            // Elements that cannot be counted, all at one position.
            strided(&[LONG, LONG], &[0, 0], 0),
            Layout::contiguous(Shape::new([1; 9])),
            Layout::contiguous(5.into()),
            strided(&[2], &[3], 1),
        ] {
            assert!(text(B::view(&x, layout)).starts_with("view: "), "{layout:?}");
        }
        let square = Layout::contiguous([LONG, LONG].into());
        let found = text(square.extent("view"));
        let shape = format!("[{LONG}, {LONG}]");
        assert!(found.contains(&shape) && found.contains("overflow"), "{found}");
        for layout in [Layout::contiguous([LONG, 0].into()), strided(&[0], &[1], usize::MAX)] {
            assert_eq!(layout.extent("view"), Ok(None));
            assert!(B::view(&x, layout).is_ok());
        }
    }
    run::<CpuBackend>();
    run::<ReferenceBackend>();
}

fn text<V>(result: swath::Result<V>) -> String {
    result.err().expect("should be an error").to_string()
}
