//! Gathers, scatters, strided copies and scans.
//!
//! ```text
//! gather  words   0 elements   1 row of the grid   2 axes   3, 4 extent and step of the indexed axis
//!                 5, 6 offsets of x, index         7..  extent, step of x, of the index
//! scatter words   0 lines      1 row of the grid   2 axes   3 indices of a line   4 extent of the axis
//!                 5..8 steps along a line: of the result, index, source           8, 9 offsets of index, source
//!                 10, 11 first index and end       12.. extent, step of the result, of the index, of the source
//!                 30   elements of `index` after the axis
//! copy    words   0 elements   1 row of the grid   2 axes   3, 4 offsets of x, the result
//!                 5..  extent, step of x, of the result
//! scan    words   0 parts of all lines     1 groups in a row   2 axes   3, 7 elements of a line, of a part
//!                 4, 5 steps of x, the result      6 offset of x        8..  extent, step of x, of the result
//! ```
//!
//! In a scatter, one thread adds a whole line, so the order of the additions is fixed. A long line takes several
//! dispatches.

use crate::error::{Error, Result};
use crate::layout::{Layout, merge_axes};
use crate::ops::ScanOp;
use crate::shape::{Shape, Strides};

use super::super::shader::{GROUP, Module, Source, Store, WORDS};
use super::reduce::{Kind, Reduction, Stage, part_of};
use super::{Plan, Words, grid_of, groups_of, step, word};

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
        let (name, store) = match self {
            Index::Gather(store) => ("gather", store),
            Index::ScatterAdd(store) => ("scatter_add", store),
            Index::CopyInto(store) => ("copy_into", store),
            Index::Scan { op, store, .. } => (op.name(), store),
        };
        let mut source = Source::new(&[store]);
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
                Line::Groups => source.add(include_str!("../shaders/scan_parts.wgsl")),
                _ => source.add(
                    "fn before(first: u32, count: u32, thread: u32) -> Total { return start(); }",
                ),
            }
        }
        source.add(match self {
            Index::Gather(_) => include_str!("../shaders/gather.wgsl"),
            Index::ScatterAdd(_) => include_str!("../shaders/scatter_add.wgsl"),
            Index::CopyInto(_) => include_str!("../shaders/copy_into.wgsl"),
            Index::Scan { .. } => include_str!("../shaders/scan.wgsl"),
        });
        if let Index::Gather(_) = self {
            source.each_word(store, "element");
        }
        source.finish(format!("{name}_{}", store.name()))
    }
}

/// Returns the words `first`, then for each merged axis its extent and the step of each layout; `None` if they do not
/// fit.
fn words_of(
    op: &'static str,
    shape: &Shape,
    first: &[u32],
    layouts: &[&Layout],
) -> Result<Option<Words>> {
    let nest = merge_axes(layouts);
    let width = layouts.len() + 1;
    let mut words = Words::from_slice(first);
    if first.len() + width * nest.dims().len() > WORDS - 2 {
        return Ok(None);
    }
    words[2] = nest.dims().len() as u32;
    for axis in (0..nest.dims().len()).rev() {
        words.push(word(op, shape, nest.dims()[axis])?);
        for i in 0..layouts.len() {
            words.push(step(op, shape, nest.strides(i)[axis])?);
        }
    }
    words.resize(WORDS, 0);
    Ok(Some(words))
}

fn last_fits(op: &'static str, layout: &Layout) -> Result<u32> {
    let last = layout.extent(op)?.map_or(0, |(_, last)| last);
    word(op, layout.shape(), last)
}

/// Returns the dispatch of a gather.
///
/// # Errors
/// [`Error::Overflow`] if a position does not fit a word.
pub fn gather(store: Store, x: &Layout, axis: usize, index: &Layout) -> Result<Plan<Index>> {
    let (op, shape) = ("gather", x.shape());
    last_fits(op, x)?;
    last_fits(op, index)?;
    let numel = index.numel();
    let (grid, row) = grid_of(numel.div_ceil(store.per_thread()));
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
    let first = [
        word(op, shape, numel)?,
        row,
        0,
        word(op, shape, x.dims()[axis])?,
        step(op, shape, x.strides()[axis])?,
        word(op, shape, x.offset())?,
        word(op, shape, index.offset())?,
    ];
    let words = words_of(op, shape, &first, &[&seen, index])?;
    let words = words.ok_or(Error::TooManyAxes { op, rank: x.dims().len() })?;
    Ok(Plan { kernel: Index::Gather(store), words, grid })
}

/// Indices of a line that one dispatch of `scatter_add` processes.
const ENTRIES: usize = 1 << 14;

/// Returns the dispatches, in order, that add to the contiguous `y`; `None` if the layouts have too many axes.
///
/// # Errors
/// [`Error::Overflow`] if a position does not fit a word.
pub fn scatter_add(
    store: Store,
    y: &Shape,
    axis: usize,
    index: &Layout,
    source: &Layout,
) -> Result<Option<Vec<Plan<Index>>>> {
    let op = "scatter_add";
    let whole = Layout::contiguous(*y);
    for layout in [&whole, index, source] {
        last_fits(op, layout)?;
    }
    let entries = index.dims()[axis];
    // A line runs along the indexed axis.
    let along = [&whole, index, source].map(|layout| layout.strides()[axis]);
    let lines = index.shape().with_axis(axis, Some(1));
    let line = |layout: &Layout| {
        Layout::new(lines, Strides::new(layout.strides()), layout.offset())
            .ok_or(Error::Overflow { op, shape: *y })
    };
    let [to, indices, values] = [line(&whole)?, line(index)?, line(source)?];
    let (grid, row) = grid_of(lines.numel());
    let first = [
        word(op, y, lines.numel())?,
        row,
        0,
        word(op, y, entries)?,
        word(op, y, y.dim(axis))?,
        step(op, y, along[0])?,
        step(op, y, along[1])?,
        step(op, y, along[2])?,
        word(op, y, index.offset())?,
        word(op, y, source.offset())?,
        0,
        0,
    ];
    let words = words_of(op, y, &first, &[&to, &indices, &values])?;
    let within: usize = index.dims()[axis + 1..].iter().product();
    let Some(words) = words else { return Ok(None) };
    let plans = (0..entries).step_by(ENTRIES).map(|first| {
        let mut words = words.clone();
        (words[10], words[11]) = (first as u32, (first + ENTRIES).min(entries) as u32);
        words[30] = within as u32;
        Plan { kernel: Index::ScatterAdd(store), words, grid }
    });
    Ok(Some(plans.collect()))
}

/// Returns the dispatch that copies `x` into the view `to` of another buffer.
///
/// # Errors
/// [`Error::Overflow`] if a position does not fit a word.
pub fn place(op: &'static str, store: Store, x: &Layout, to: &Layout) -> Result<Plan<Index>> {
    let shape = to.shape();
    let (grid, row) = grid_of(x.numel());
    last_fits(op, x)?;
    last_fits(op, to)?;
    let first = [
        word(op, shape, x.numel())?,
        row,
        0,
        word(op, shape, x.offset())?,
        word(op, shape, to.offset())?,
    ];
    let words = words_of(op, shape, &first, &[x, to])?;
    let words = words.ok_or(Error::TooManyAxes { op, rank: x.dims().len() })?;
    Ok(Plan { kernel: Index::CopyInto(store), words, grid })
}

/// Returns the dispatch that scans `x` into a contiguous result. With [`Line::Groups`], it reads the accumulators that
/// the first dispatch of a reduction along the axis has written.
///
/// # Errors
/// [`Error::Overflow`] if a position does not fit a word.
pub fn scan(op: ScanOp, store: Store, x: &Layout, axis: usize) -> Result<Plan<Index>> {
    let (name, shape) = (op.name(), x.shape());
    last_fits(name, x)?;
    let whole = Layout::contiguous(*shape);
    let lines = shape.with_axis(axis, Some(1));
    let line = |layout: &Layout| {
        Layout::new(lines, Strides::new(layout.strides()), layout.offset())
            .ok_or(Error::Overflow { op: name, shape: *shape })
    };
    let [from, to] = [line(x)?, line(&whole)?];
    let entries = shape.dim(axis);
    let part = part_of(entries);
    let line_by = match entries {
        _ if part < entries => Line::Groups,
        65.. => Line::Group,
        _ => Line::Thread,
    };
    let parts = lines.numel().saturating_mul(entries.div_ceil(part));
    let groups = if line_by == Line::Thread { parts.div_ceil(GROUP) } else { parts };
    let (grid, across) = groups_of(groups);
    let first = [
        word(name, shape, parts)?,
        across,
        0,
        word(name, shape, entries)?,
        step(name, shape, x.strides()[axis])?,
        step(name, shape, whole.strides()[axis])?,
        word(name, shape, x.offset())?,
        word(name, shape, part)?,
    ];
    let words = words_of(name, shape, &first, &[&from, &to])?;
    let words = words.ok_or(Error::TooManyAxes { op: name, rank: shape.ndim() })?;
    Ok(Plan { kernel: Index::Scan { op, store, line: line_by }, words, grid })
}
