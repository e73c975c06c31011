//! Sharing of work among threads: the number of threads, their choice, and the cut into parts.
//!
//! A caller inside a rayon pool uses the threads of that pool, through `rayon::join`. Any other caller uses
//! swath's own thread pool (`crew.rs`), which is started when first needed and replaced by [`set_threads`]. A
//! parallel region runs on the calling thread if there is one thread or one part, or if it is inside a part
//! of another region.
//!
//! The cut never changes a bit of a result: every function here calls the closure exactly once per part, and
//! the result of a part depends only on its index.

mod bands;
mod crew;

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use smallvec::SmallVec;

use super::recording::{RECORDING, with_flags};
use super::setting;
use crate::blas::trace;
use crate::error::{Error, Result};
use bands::Bands;
pub(crate) use bands::{Band, ColumnBand, Columns, for_each_band};
use crew::Crew;

/// Minimum work of a parallel region while the crew is awake. Handing a region to spinning threads and back
/// takes 0.4 to 2 µs, depending on the distance between cores, and data in the caller's caches moves at a few
/// bytes per nanosecond. A [`Cost`] is about twice the time with AVX-512: `exp` of 50,000 elements, the least
/// work that is shared, takes as long on two distant cores as on one.
const MIN_HOT_REGION_NS: usize = 15_000;

/// The same while the crew sleeps, and in a rayon pool: waking a thread takes the caller 5 µs, and the thread
/// starts 20 to 95 µs later.
const MIN_COLD_REGION_NS: usize = 100_000;

/// Nanoseconds of work in regions that were too small to wake sleeping threads, since threads were last woken
/// or all were awake. Once they add up to a region that is large enough, threads are woken: small regions
/// tend to be followed by more.
static UNSHARED_NS: AtomicUsize = AtomicUsize::new(0);

/// Minimum work of a part, so that distributing parts is cheap.
const MIN_PART_NS: usize = 3_000;

/// Number of parts per thread, unless they would be too small: several parts balance the load if threads start
/// late or units do not divide evenly.
pub(crate) const PARTS_PER_THREAD: usize = 4;

static CREW: RwLock<Option<Arc<Crew>>> = RwLock::new(None);

/// Value of `SWATH_THREADS`, by default the number of available cores, or the error if it is invalid.
pub(crate) fn default_threads() -> &'static Result<usize> {
    static DEFAULT: OnceLock<Result<usize>> = OnceLock::new();
    DEFAULT.get_or_init(|| {
        let available = || std::thread::available_parallelism().map_or(1, usize::from);
        let is_valid = |threads: &usize| (1..=MAX_THREADS).contains(threads);
        let expected = format!("threads from 1 to {MAX_THREADS}");
        setting("SWATH_THREADS", available, is_valid, &expected)
    })
}

/// Value of `SWATH_SPIN_US`, by default [`crew::DEFAULT_SPIN_US`], or the error if it is invalid.
pub(crate) fn spin_us() -> &'static Result<u64> {
    static SPIN: OnceLock<Result<u64>> = OnceLock::new();
    SPIN.get_or_init(|| {
        let is_valid = |us: &u64| *us <= crew::MAX_SPIN_US;
        let expected = format!("microseconds from 0 to {}", crew::MAX_SPIN_US);
        setting("SWATH_SPIN_US", || crew::DEFAULT_SPIN_US, is_valid, &expected)
    })
}

/// Maximum number of threads; a larger one is assumed to be a mistake.
pub(crate) const MAX_THREADS: usize = 1024;

fn crew() -> Arc<Crew> {
    if let Some(crew) = CREW.read().unwrap_or_else(PoisonError::into_inner).as_ref() {
        return Arc::clone(crew);
    }
    let mut slot = CREW.write().unwrap_or_else(PoisonError::into_inner);
    let threads = *default_threads().as_ref().unwrap_or(&1);
    Arc::clone(slot.get_or_insert_with(|| Arc::new(Crew::new(threads, warm_up))))
}

/// Replaces the crew. A running region finishes on the old one.
pub(crate) fn set_threads(threads: usize) -> Result<()> {
    if !(1..=MAX_THREADS).contains(&threads) {
        let reason = format!("expected 1 to {MAX_THREADS} threads, got {threads}");
        return Err(Error::InvalidArgument { op: "set_threads", reason });
    }
    let new = Arc::new(Crew::new(threads, warm_up));
    // The lock is released before the old crew is dropped.
    let old = CREW.write().unwrap_or_else(PoisonError::into_inner).replace(new);
    drop(old);
    Ok(())
}

/// Number of threads that a region started on this thread may use.
pub(crate) fn threads() -> usize {
    if crew::is_inside() {
        return 1;
    }
    match rayon::current_thread_index() {
        Some(_) => rayon::current_num_threads(),
        None => crew().threads(),
    }
}

/// Number of threads in the same region as this one, which may need the same temporary memory.
pub(crate) fn threads_of_region() -> usize {
    match rayon::current_thread_index() {
        Some(_) => rayon::current_num_threads(),
        None if crew::is_inside() => crew().threads(),
        None => 1,
    }
}

/// Prepares a thread of the crew before its first region, so that it allocates the memory that it keeps when
/// the crew starts and not with its first part.
fn warm_up() {
    super::memory::warm_up();
    super::workspace::warm_up();
}

/// Number of parts to cut `units` of this cost into; 1 if the region is too small to share.
pub(crate) fn parts(units: usize, cost: Cost) -> usize {
    if units < 2 {
        return 1;
    }
    let total_ns = cost.of(units);
    if total_ns < MIN_HOT_REGION_NS || crew::is_inside() {
        return 1;
    }
    if rayon::current_thread_index().is_some() {
        return match rayon::current_num_threads() {
            threads if threads > 1 && total_ns >= MIN_COLD_REGION_NS => {
                cut(units, total_ns, threads)
            }
            _ => 1,
        };
    }
    let crew = crew();
    let (threads, awake) = (crew.threads(), crew.awake());
    let useful = threads.min(total_ns / MIN_PART_NS).min(units);
    let is_due = awake >= useful
        || total_ns >= MIN_COLD_REGION_NS
        || UNSHARED_NS.fetch_add(total_ns, Ordering::Relaxed) >= MIN_COLD_REGION_NS;
    if !is_due {
        return awake;
    }
    if awake < useful || awake == threads {
        UNSHARED_NS.store(0, Ordering::Relaxed);
    }
    if threads == 1 { 1 } else { cut(units, total_ns, threads) }
}

/// True if running the items one by one, each on all threads, beats one item per thread. An item takes `cost`
/// and can be cut into at most `most` parts.
///
/// True for a single item, whose parallel region [`parts`] decides about.
pub(crate) fn shares_each(items: usize, cost: Cost, most: usize) -> bool {
    if crew::is_inside() {
        return false;
    }
    let (threads, awake) = match rayon::current_thread_index() {
        Some(_) => (rayon::current_num_threads(), 1),
        None => {
            let crew = crew();
            (crew.threads(), crew.awake())
        }
    };
    let item_ns = cost.of(1);
    // If some helpers are awake, a sequence of such items wakes the others.
    let reached = if awake > 1 || item_ns >= MIN_COLD_REGION_NS { threads } else { 1 };
    items < threads && (items == 1 || pays_to_share_each(items, item_ns, most.min(reached)))
}

/// True if running the items one by one, each as a region whose overhead is that of the smallest part, beats
/// one item per thread.
fn pays_to_share_each(items: usize, item_ns: usize, most: usize) -> bool {
    let parts = (item_ns / MIN_PART_NS).min(most).max(1);
    item_ns >= MIN_HOT_REGION_NS && items.saturating_mul(item_ns / parts + MIN_PART_NS) < item_ns
}

/// Number of parts of a region that threads share.
fn cut(units: usize, total_ns: usize, threads: usize) -> usize {
    let most = total_ns / MIN_PART_NS;
    // A multiple of the number of threads, so that all threads get the same number of parts.
    let parts =
        if most < threads { most } else { threads * (most / threads).min(PARTS_PER_THREAD) };
    parts.min(units)
}

/// Approximate picoseconds per unit of work on one thread of a typical machine, with data in the caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cost(pub usize);

impl Cost {
    /// Nanoseconds of `units` units.
    pub fn of(self, units: usize) -> usize {
        (units as f64 * self.0 as f64 / 1000.0) as usize
    }

    /// Cost of `n` units together.
    pub fn times(self, n: usize) -> Cost {
        Cost(self.0.saturating_mul(n))
    }
}

/// Calls `f(part)` for every part in `0..parts`, in any order and on any thread. Adjacent parts go to the same
/// thread, and the same parts to the same threads each time, as their caches may still contain the data.
pub(crate) fn for_each_index(parts: usize, f: impl Fn(usize) + Sync) {
    if parts <= 1 || crew::is_inside() {
        return (0..parts).for_each(f);
    }
    share(parts, &f);
}

/// Calls `f(index, item)` for every item, in any order and on any thread.
pub(crate) fn for_each_item<T: Send>(
    items: impl IntoIterator<Item = T>,
    f: impl Fn(usize, T) + Sync,
) {
    let slots = items.into_iter().map(|item| Mutex::new(Some(item)));
    let slots: SmallVec<[_; 16]> = slots.collect();
    for_each_index(slots.len(), |i| {
        let item = slots[i].lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(item) = item {
            f(i, item);
        }
    });
}

/// Not generic, so that all closures share one compiled copy of `rayon::join`.
fn share(parts: usize, f: &(dyn Fn(usize) + Sync)) {
    #[cfg(feature = "testing")]
    SHARED.set(SHARED.get() + 1);
    match rayon::current_thread_index() {
        Some(_) => with_default_state(|| in_rayon(0..parts, f)),
        None => crew().run(parts, f),
    }
}

fn in_rayon(range: Range<usize>, f: &(dyn Fn(usize) + Sync)) {
    if range.len() <= 1 {
        return range.for_each(f);
    }
    let middle = range.start + range.len() / 2;
    rayon::join(|| in_rayon(range.start..middle, f), || in_rayon(middle..range.end, f));
}

/// Runs `f`, during which this thread may run any other job of the pool while it waits. Such a job is recorded
/// and not traced, whatever the state of the waiting call.
fn with_default_state<R>(f: impl FnOnce() -> R) -> R {
    trace::untraced(|| with_flags(RECORDING, !RECORDING, f))
}

#[cfg(feature = "testing")]
thread_local! {
    static SHARED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Number of regions that this thread has started and shared with other threads.
#[cfg(feature = "testing")]
pub fn shared_regions() -> usize {
    SHARED.get()
}

/// Calls `f(part, its slice)` for every part in `0..parts`. Part `i` is `start(i)..start(i + 1)` of `out`, where
/// `start` does not decrease, `start(0)` is 0 and `start(parts)` is `out.len()`, which debug builds check.
#[track_caller]
pub(crate) fn for_each_part_mut<T: Send>(
    out: &mut [T],
    parts: usize,
    start: &(dyn Fn(usize) -> usize + Sync),
    f: &(dyn Fn(usize, &mut [T]) + Sync),
) {
    debug_assert_eq!([start(0), start(parts)], [0, out.len()], "bounds of {parts} parts");
    if parts == 1 {
        return f(0, out);
    }
    let bounds: SmallVec<[usize; 65]> = (0..=parts).map(start).collect();
    assert!(bounds.is_sorted() && bounds[parts] <= out.len(), "parts are in order");
    let elements = Band::new(out, 1);
    for_each_index(parts, |part| {
        // SAFETY: the bounds are in order, so the pieces do not overlap, and each part comes once.
        let piece = unsafe { elements.piece(&(bounds[part]..bounds[part + 1])) };
        f(part, piece);
    });
}

/// First unit of part `part` if `units` units are cut evenly into `parts` parts.
pub(crate) fn even_start(units: usize, parts: usize, part: usize) -> usize {
    units / parts * part + (units % parts).min(part)
}

/// Cuts `out` into as many parts of whole units of `unit` elements as the work is worth, and calls
/// `f(first unit, slice)` on each; not at all if `out` is empty. The last unit may be short.
pub(crate) fn for_each_chunk_mut<T: Send>(
    out: &mut [T],
    unit: usize,
    cost: Cost,
    f: &(dyn Fn(usize, &mut [T]) + Sync),
) {
    let units = out.len().div_ceil(unit.max(1));
    for_each_band(units, cost.times(unit), Band::new(out, unit), |units, piece| {
        f(units.start, piece);
    });
}

#[cfg(test)]
mod tests;
