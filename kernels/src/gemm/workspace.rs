//! The memory that a product works in, owned by the caller.

use core::marker::PhantomData;
use core::mem::MaybeUninit;

use super::KC;
use super::cache::panel_columns;
use super::pack::A_ROWS;
use super::tile::{MAX_NV, MR};
use crate::poison::{POISON, poisons};
use crate::simd::MAX_LANES;

/// Memory for packed operands and partial sums, reused from call to call.
///
/// It grows to the needs of the largest product so far (at most 1 MiB for B, and 2 MiB more if
/// partial sums cannot be kept in C) and is the only memory that a product allocates. Use one per
/// thread.
///
/// ```
/// let mut workspace = swath_kernels::Workspace::<f32>::new();
/// assert_eq!(workspace.capacity(), 0);
/// ```
#[derive(Debug, Default)]
pub struct Workspace<E> {
    lines: Vec<Line>,
    element: PhantomData<E>,
}

/// A cache line, used for its alignment; initialised with poison alone.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line(#[allow(dead_code, reason = "gives the line its size")] [u16; 32]);

impl<E> Workspace<E> {
    /// An empty workspace; allocates nothing yet.
    pub const fn new() -> Self {
        Workspace { lines: Vec::new(), element: PhantomData }
    }

    /// Elements that it holds without growing.
    pub fn capacity(&self) -> usize {
        self.lines.capacity() * size_of::<Line>() / size_of::<E>()
    }

    /// Grows to the needs of every product whose partial sums are kept in C, at most 1.3 MiB, which
    /// the system provides as it is written.
    pub fn reserve_panel(&mut self) {
        let panel = KC * panel_columns::<E>();
        let copy = A_ROWS * KC;
        let spill = MR * MAX_NV * MAX_LANES;
        if self.capacity() < panel + copy + spill {
            self.grow(panel + copy + spill);
        }
    }

    /// Returns at least `count` elements, aligned to a cache line, with unspecified content.
    #[inline]
    pub(super) fn elements(&mut self, count: usize) -> *mut MaybeUninit<E> {
        const { assert!(align_of::<E>() <= align_of::<Line>()) };
        if self.capacity() < count {
            self.grow(count);
        }
        let lines = self.lines.spare_capacity_mut();
        if poisons() {
            let used = count.saturating_mul(size_of::<E>()).div_ceil(size_of::<Line>());
            lines[..used].fill(MaybeUninit::new(Line([POISON; 32])));
        }
        lines.as_mut_ptr().cast()
    }

    #[cold]
    fn grow(&mut self, count: usize) {
        // The old content is never needed: free it before allocating more.
        self.lines = Vec::new();
        // A size beyond memory saturates, and reserving it panics as any allocation would.
        let bytes = count.saturating_mul(size_of::<E>());
        self.lines.reserve_exact(bytes.div_ceil(size_of::<Line>()));
    }
}
