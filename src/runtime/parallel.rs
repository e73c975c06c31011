//! How work is shared by threads: how many, which, how it is cut.
//!
//! A caller inside some rayon pool gets that pool's threads, by `rayon::join`. Any other gets swath's
//! own crew (`crew.rs`), made when first needed and replaced by [`set_threads`]. On one thread, for
//! one part, or inside a part of another region, work runs where it is.
//!
//! How work is cut never changes a bit of a result: every function here hands each part to the
//! closure exactly once, and what a part computes depends on its index alone.

mod bands;
mod crew;

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use smallvec::SmallVec;

use super::recording::with_recording;
use crate::blas::trace;
use crate::error::{Error, Result};
use bands::Bands;
pub(crate) use bands::{Band, ColumnBand, Columns, for_each_band};
use crew::Crew;

/// Work below this many nanoseconds stays on the caller while the crew is awake: a region that is
/// handed to spinning threads and back costs 0.4 to 2 µs, by how far apart the cores are, and what lies
/// in the caller's caches comes to theirs at a few bytes a nanosecond. [`Cost`] is about twice the time
/// with AVX-512: `exp` of 50,000 elements, the least that is shared, takes as long on two threads as on
/// one where cores are far apart.
const MIN_HOT_REGION_NS: usize = 15_000;

/// The same while the crew sleeps, and in a rayon pool: waking a thread costs the caller 5 µs, and it
/// comes 20 to 95 µs later.
const MIN_COLD_REGION_NS: usize = 100_000;

/// Work in regions that had fewer threads than they could use because the others slept, in nanoseconds,
/// since those were last woken, or all were awake. One region too small to wake a thread is followed by
/// more of its kind: when they add up to one that is not, waking has cost less than half of what
/// sleeping has.
static KEPT_NS: AtomicUsize = AtomicUsize::new(0);

/// Parts of a region carry at least this much work, so that handing them out stays cheap.
const MIN_PART_NS: usize = 3_000;

/// Parts a thread gets, unless they would be small: several even out threads that start late and
/// units that do not divide.
pub(crate) const PARTS_PER_THREAD: usize = 4;

static CREW: RwLock<Option<Arc<Crew>>> = RwLock::new(None);

/// `SWATH_THREADS`, else what the machine offers; or why the variable cannot be followed.
pub(crate) fn default_threads() -> &'static Result<usize> {
    static DEFAULT: OnceLock<Result<usize>> = OnceLock::new();
    DEFAULT.get_or_init(|| match std::env::var("SWATH_THREADS") {
        Ok(text) if !text.is_empty() => match text.parse() {
            Ok(threads) if (1..=MAX_THREADS).contains(&threads) => Ok(threads),
            _ => Err(Error::Runtime(format!(
                "SWATH_THREADS={text}: not a number of threads from 1 to {MAX_THREADS}"
            ))),
        },
        _ => Ok(std::thread::available_parallelism().map_or(1, usize::from)),
    })
}

/// `SWATH_SPIN_US`, else [`crew::DEFAULT_SPIN_US`]; or why the variable cannot be followed.
pub(crate) fn spin_us() -> &'static Result<u64> {
    static SPIN: OnceLock<Result<u64>> = OnceLock::new();
    SPIN.get_or_init(|| match std::env::var("SWATH_SPIN_US") {
        Ok(text) if !text.is_empty() => match text.parse() {
            Ok(us) if us <= crew::MAX_SPIN_US => Ok(us),
            _ => Err(Error::Runtime(format!(
                "SWATH_SPIN_US={text}: not a number of microseconds from 0 to {}",
                crew::MAX_SPIN_US
            ))),
        },
        _ => Ok(crew::DEFAULT_SPIN_US),
    })
}

/// More threads than this are a mistake.
pub(crate) const MAX_THREADS: usize = 1024;

fn crew() -> Arc<Crew> {
    if let Some(crew) = CREW.read().unwrap_or_else(PoisonError::into_inner).as_ref() {
        return Arc::clone(crew);
    }
    let mut slot = CREW.write().unwrap_or_else(PoisonError::into_inner);
    let threads = *default_threads().as_ref().unwrap_or(&1);
    Arc::clone(slot.get_or_insert_with(|| Arc::new(Crew::new(threads, warm_up))))
}

/// Replaces the crew; a region that runs finishes on the old one.
pub(crate) fn set_threads(threads: usize) -> Result<()> {
    if !(1..=MAX_THREADS).contains(&threads) {
        let reason = format!("{threads} threads; at least 1 and at most {MAX_THREADS} can be used");
        return Err(Error::InvalidArgument { op: "set_threads", reason });
    }
    let new = Arc::new(Crew::new(threads, warm_up));
    let old = CREW.write().unwrap_or_else(PoisonError::into_inner).replace(new);
    drop(old);
    Ok(())
}

/// Threads that a region started here may use.
pub(crate) fn threads() -> usize {
    if crew::is_inside() {
        return 1;
    }
    match rayon::current_thread_index() {
        Some(_) => rayon::current_num_threads(),
        None => crew().threads(),
    }
}

/// Threads that may ask for the same memory as this one: those of the region that it is in.
pub(crate) fn threads_beside() -> usize {
    match rayon::current_thread_index() {
        Some(_) => rayon::current_num_threads(),
        None if crew::is_inside() => crew().threads(),
        None => 1,
    }
}

/// What each of the crew's threads does before its first region: all that it will keep is asked for
/// when the crew is made, not when the thread happens to get its first part.
fn warm_up() {
    super::memory::warm_up();
    super::workspace::warm_up();
}

/// How many parts to cut `units` of this cost into; 1 if the region is too small to share.
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
        || KEPT_NS.fetch_add(total_ns, Ordering::Relaxed) >= MIN_COLD_REGION_NS;
    if !is_due {
        return awake;
    }
    if awake < useful || awake == threads {
        KEPT_NS.store(0, Ordering::Relaxed);
    }
    if threads == 1 { 1 } else { cut(units, total_ns, threads) }
}

/// Whether it takes less time to give each of `items` to all threads, one item after the other, than to
/// give each thread items of its own. An item takes `cost` and can be cut into `most` parts.
///
/// A single item is for [`parts`] to judge.
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
    // Where a few are awake, some such items wake the others.
    let reached = if awake > 1 || item_ns >= MIN_COLD_REGION_NS { threads } else { 1 };
    items < threads && (items == 1 || pays_to_share_each(items, item_ns, most.min(reached)))
}

/// Of each item a region is made, which costs about as much as the least part.
fn pays_to_share_each(items: usize, item_ns: usize, most: usize) -> bool {
    let parts = (item_ns / MIN_PART_NS).min(most).max(1);
    item_ns >= MIN_HOT_REGION_NS && items.saturating_mul(item_ns / parts + MIN_PART_NS) < item_ns
}

/// The parts of a region that threads share.
fn cut(units: usize, total_ns: usize, threads: usize) -> usize {
    let most = total_ns / MIN_PART_NS;
    // As many for each thread where units suffice: a fifth part would be half a thread's time.
    let parts =
        if most < threads { most } else { threads * (most / threads).min(PARTS_PER_THREAD) };
    parts.min(units)
}

/// Time that a unit of work takes on one thread, in picoseconds: roughly, on a machine that is not the
/// fastest, from the caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cost(pub usize);

impl Cost {
    /// Nanoseconds for so many units.
    pub fn of(self, units: usize) -> usize {
        (units as f64 * self.0 as f64 / 1000.0) as usize
    }

    /// Of `n` such units taken as one.
    pub fn times(self, n: usize) -> Cost {
        Cost(self.0.saturating_mul(n))
    }
}

/// `f(part)` for every part in `0..parts`, in any order and on any thread. Neighbouring parts go to
/// the same thread, and the same parts to the same threads every time, where their data may still be.
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
        Some(_) => as_for_any_job(|| in_rayon(0..parts, f)),
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

/// Runs `f`, in which this thread may wait and, meanwhile, take up any other job of the pool: that one is
/// recorded, and traced by nobody, whatever the call is in that waits.
fn as_for_any_job<R>(f: impl FnOnce() -> R) -> R {
    trace::untraced(|| with_recording(true, f))
}

#[cfg(feature = "testing")]
thread_local! {
    static SHARED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Regions that this thread has begun and handed to other threads, in parts.
#[cfg(feature = "testing")]
pub fn shared_regions() -> usize {
    SHARED.get()
}

/// `f(part, its slice)` for every part in `0..parts`; part `i` is `start(i)..start(i + 1)` of
/// `out`, where `start` does not fall, `start(0)` is 0 and `start(parts)` is `out.len()`.
pub(crate) fn for_each_part_mut<T: Send>(
    out: &mut [T],
    parts: usize,
    start: &(dyn Fn(usize) -> usize + Sync),
    f: &(dyn Fn(usize, &mut [T]) + Sync),
) {
    if parts == 1 {
        return f(0, out);
    }
    let bounds: SmallVec<[usize; 65]> = (0..=parts).map(start).collect();
    assert!(bounds.is_sorted() && bounds[parts] <= out.len(), "parts follow one another");
    let elements = Band::new(out, 1);
    for_each_index(parts, |part| {
        // SAFETY: checked above: the pieces don't overlap; each part comes once.
        let piece = unsafe { elements.piece(&(bounds[part]..bounds[part + 1])) };
        f(part, piece);
    });
}

/// The first of `units` that part `part` of `parts` holds, when they are cut evenly.
pub(crate) fn even_start(units: usize, parts: usize, part: usize) -> usize {
    units / parts * part + (units % parts).min(part)
}

/// Cuts `out` evenly by `unit` elements into as many parts as the work is worth and runs
/// `f(first unit, slice)` on each; on none if it is empty. A last unit may be short.
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
