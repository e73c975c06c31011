//! Gathers, scatters, strided copies and scans.
//!
//! In a scatter, one thread adds a whole line, so the order of the additions is fixed. A long line takes several
//! dispatches.

use crate::error::{Error, Result};
use crate::layout::{Layout, merge_axes};
use crate::ops::ScanOp;
use crate::shape::{Shape, Strides};

use super::super::shader::{GROUP, Module, Source, Store};
use super::reduce::{Kind, Reduction, Stage, part_of};
use super::words::{GridWords, axes_of, words};
use super::{Plan, check_positions, grid_of, groups_of, step, word};

words! {
    /// `extent` and `step` are those of x along the indexed axis. The axes have steps of x and the index.
    GatherWords { rank: u32, extent: u32, step: u32, from_x: u32, from_index: u32, }
}

words! {
    /// A line has `entries` indices, of which the dispatch processes `first..end`; `extent` is that of the result's axis,
    /// `within` the number of the index's elements after the axis. The axes have steps of the result, index and source.
    ScatterWords {
        rank: u32, entries: u32, extent: u32, step_y: u32, step_index: u32, step_source: u32, from_index: u32,
        from_source: u32, first: u32, end: u32, within: u32,
    }
}

words! {
    /// The axes have steps of x and the result.
    CopyWords { rank: u32, from_x: u32, from_y: u32, }
}

words! {
    /// Lines have `entries` elements, parts of lines `part`. The axes have steps of x and the result.
    ScanWords { rank: u32, entries: u32, step_x: u32, step_y: u32, from_x: u32, part: u32, }
}

/// A kernel that moves or scans elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Index {
    /// `y[i, j] = x[i, index[i, j]]`.
    Gather(Store),
    /// `y[i, index[i, j]] += source[i, j]`.
    ScatterAdd(Store),
    /// A copy into a view of another tensor.
    CopyInto(Store),
    /// Cumulative sums or products along an axis.
    Scan { op: ScanOp, store: Store, line: Line },
}

/// The threads that compute a line of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Line {
    /// One thread.
    Thread,
    /// One workgroup.
    Group,
    /// One workgroup for each part. It reads the totals of the parts before its own.
    Groups,
}

impl Index {
    /// True if the kernel can report faults.
    pub fn has_faults(self) -> bool {
        matches!(self, Index::Gather(_) | Index::ScatterAdd(_))
    }

    /// True if the kernel reads the totals of parts.
    pub fn reads_parts(self) -> bool {
        matches!(self, Index::Scan { line: Line::Groups, .. })
    }

    /// Returns the kernel's text.
    pub fn module(self) -> Module {
        let (name, store, fields) = match self {
            Index::Gather(store) => ("gather", store, GatherWords::FIELDS),
            Index::ScatterAdd(store) => ("scatter_add", store, ScatterWords::FIELDS),
            Index::CopyInto(store) => ("copy_into", store, CopyWords::FIELDS),
            Index::Scan { op, store, .. } => (op.name(), store, ScanWords::FIELDS),
        };
        let mut source = Source::new(&[GridWords::FIELDS, fields], &[store]);
        if self.has_faults() {
            source.indices("index");
        }
        if self.reads_parts() {
            source.bind("parts_data", "read", "Total");
        }
        source.result("y", store);
        if self.has_faults() {
            source.faults();
        }
        if let Index::Scan { op, store, line } = self {
            let kind = match op {
                ScanOp::Sum => Kind::Sum,
                ScanOp::Product => Kind::Prod,
            };
            Reduction { kind, store, stage: Stage::Threads }.add_steps(&mut source);
            let threads = if line == Line::Thread { 1 } else { GROUP };
            source.add(&format!("const THREADS: u32 = {threads}u;"));
            match line {
                Line::Groups => source.add(shader!("scan_parts")),
                _ => source.add(
                    "fn before(first: u32, count: u32, thread: u32) -> Total { return start(); }",
                ),
            }
        }
        source.add(match self {
            Index::Gather(_) => shader!("gather"),
            Index::ScatterAdd(_) => shader!("scatter_add"),
            Index::CopyInto(_) => shader!("copy_into"),
            Index::Scan { .. } => shader!("scan"),
        });
        if let Index::Gather(_) = self {
            source.each_word(store, "element");
        }
        source.finish(format!("{name}_{}", store.name()))
    }
}

/// The lines of a layout along an axis, as a layout of their first elements.
fn lines_of(op: &'static str, shape: Shape, layout: &Layout) -> Result<Layout> {
    Layout::new(shape, Strides::new(layout.strides()), layout.offset())
        .ok_or(Error::Overflow { op, shape })
}

/// Returns the dispatch of a gather.
///
/// # Errors
/// [`Error::Overflow`] if a position does not fit a word; [`Error::TooManyAxes`].
pub fn gather(store: Store, x: &Layout, axis: usize, index: &Layout) -> Result<Plan<Index>> {
    let (op, shape) = ("gather", x.shape());
    check_positions(op, x)?;
    check_positions(op, index)?;
    // The kernel adds the index times the axis' step, so the layout of x itself stays at the start of the axis.
    let mut steps = x.strides().to_vec();
    steps[axis] = 0;
    // An empty x is not read.
    let (steps, offset) = match x.numel() {
        0 => (vec![0; steps.len()], 0),
        _ => (steps, x.offset()),
    };
    let seen = Layout::new(*index.shape(), Strides::new(&steps), offset);
    let seen = seen.ok_or(Error::Overflow { op, shape: *shape })?;
    let nest = merge_axes(&[&seen, index]);
    let fields = GatherWords {
        rank: nest.dims().len() as u32,
        extent: word(op, shape, x.dims()[axis])?,
        step: step(op, shape, x.strides()[axis])?,
        from_x: word(op, shape, x.offset())?,
        from_index: word(op, shape, index.offset())?,
    };
    let grid = grid_of(index.numel().div_ceil(store.per_thread()));
    let axes = axes_of(op, shape, &nest, 2)?;
    Plan::new(Index::Gather(store), (op, shape), index.numel(), grid, &[&fields], &axes)
}

/// Indices of a line that one dispatch of `scatter_add` processes.
const ENTRIES: usize = 1 << 14;

/// Returns the dispatches, in order, that add to the contiguous `y`.
///
/// # Errors
/// [`Error::Overflow`] if a position does not fit a word; [`Error::TooManyAxes`].
pub fn scatter_add(
    store: Store,
    y: &Shape,
    axis: usize,
    index: &Layout,
    source: &Layout,
) -> Result<Vec<Plan<Index>>> {
    let op = "scatter_add";
    let whole = Layout::contiguous(*y);
    for layout in [&whole, index, source] {
        check_positions(op, layout)?;
    }
    let entries = index.dims()[axis];
    // A line runs along the indexed axis.
    let along = [&whole, index, source].map(|layout| layout.strides()[axis]);
    let lines = index.shape().with_axis(axis, Some(1));
    let line = |layout| lines_of(op, lines, layout);
    let nest = merge_axes(&[&line(&whole)?, &line(index)?, &line(source)?]);
    let fields = ScatterWords {
        rank: nest.dims().len() as u32,
        entries: word(op, y, entries)?,
        extent: word(op, y, y.dim(axis))?,
        step_y: step(op, y, along[0])?,
        step_index: step(op, y, along[1])?,
        step_source: step(op, y, along[2])?,
        from_index: word(op, y, index.offset())?,
        from_source: word(op, y, source.offset())?,
        within: index.dims()[axis + 1..].iter().product::<usize>() as u32,
        ..ScatterWords::default()
    };
    let axes = axes_of(op, y, &nest, 3)?;
    let plans = (0..entries).step_by(ENTRIES).map(|first| {
        let end = (first + ENTRIES).min(entries) as u32;
        let fields = ScatterWords { first: first as u32, end, ..fields };
        let (kernel, grid) = (Index::ScatterAdd(store), grid_of(lines.numel()));
        Plan::new(kernel, (op, y), lines.numel(), grid, &[&fields], &axes)
    });
    plans.collect()
}

/// Returns the dispatch that copies `x` into the view `to` of another buffer.
///
/// # Errors
/// [`Error::Overflow`] if a position does not fit a word; [`Error::TooManyAxes`].
pub fn copy_into(op: &'static str, store: Store, x: &Layout, to: &Layout) -> Result<Plan<Index>> {
    let shape = to.shape();
    check_positions(op, x)?;
    check_positions(op, to)?;
    let nest = merge_axes(&[x, to]);
    let fields = CopyWords {
        rank: nest.dims().len() as u32,
        from_x: word(op, shape, x.offset())?,
        from_y: word(op, shape, to.offset())?,
    };
    let (kernel, grid) = (Index::CopyInto(store), grid_of(x.numel()));
    Plan::new(kernel, (op, shape), x.numel(), grid, &[&fields], &axes_of(op, shape, &nest, 2)?)
}

/// Returns the dispatch that scans `x` into a contiguous result. With [`Line::Groups`], it reads the accumulators that
/// the first dispatch of a reduction along the axis has written.
///
/// # Errors
/// [`Error::Overflow`] if a position does not fit a word.
pub fn scan(op: ScanOp, store: Store, x: &Layout, axis: usize) -> Result<Plan<Index>> {
    let (name, shape) = (op.name(), x.shape());
    check_positions(name, x)?;
    let whole = Layout::contiguous(*shape);
    let lines = shape.with_axis(axis, Some(1));
    let entries = shape.dim(axis);
    let part = part_of(entries);
    let line_by = match entries {
        _ if part < entries => Line::Groups,
        65.. => Line::Group,
        _ => Line::Thread,
    };
    let parts = lines.numel().saturating_mul(entries.div_ceil(part));
    let groups = if line_by == Line::Thread { parts.div_ceil(GROUP) } else { parts };
    let nest = merge_axes(&[&lines_of(name, lines, x)?, &lines_of(name, lines, &whole)?]);
    let fields = ScanWords {
        rank: nest.dims().len() as u32,
        entries: word(name, shape, entries)?,
        step_x: step(name, shape, x.strides()[axis])?,
        step_y: step(name, shape, whole.strides()[axis])?,
        from_x: word(name, shape, x.offset())?,
        part: word(name, shape, part)?,
    };
    let (kernel, grid) = (Index::Scan { op, store, line: line_by }, groups_of(groups));
    Plan::new(kernel, (name, shape), parts, grid, &[&fields], &axes_of(name, shape, &nest, 2)?)
}
