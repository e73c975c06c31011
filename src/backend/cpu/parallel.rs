//! The one door to rayon: how many threads, which pool, how work is cut.
//!
//! A caller inside some rayon pool gets that pool; any other gets swath's own, built when first
//! needed and replaced by [`set_threads`]. On one thread, or for one part, work runs where it is.
//!
//! How work is cut never changes a bit of a result: every function here hands each part to the
//! closure exactly once, and what a part computes depends on its index alone.

use std::ops::Range;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use crate::error::{Error, Result};

/// Work below this many nanoseconds stays on the caller. A join from outside the pool costs 5 µs
/// while the workers are awake and 20 to 95 µs once they sleep (idle for 20 µs to 1 ms; 2 cores).
pub(crate) const MIN_REGION_NS: usize = 150_000;

/// Parts of a region carry at least this much work, so that handing them over stays cheap.
const MIN_PART_NS: usize = 25_000;

/// Parts a thread gets on average: more than one evens out threads that start late.
const PARTS_PER_THREAD: usize = 4;

#[derive(Clone)]
struct Crew {
    threads: usize,
    /// Built when first needed; `None` inside if the system gave no threads.
    pool: Arc<OnceLock<Option<rayon::ThreadPool>>>,
}

static CREW: RwLock<Option<Crew>> = RwLock::new(None);

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

/// More threads than this are a mistake.
pub(crate) const MAX_THREADS: usize = 1024;

fn crew() -> Crew {
    if let Some(crew) = CREW.read().unwrap_or_else(PoisonError::into_inner).as_ref() {
        return crew.clone();
    }
    let mut slot = CREW.write().unwrap_or_else(PoisonError::into_inner);
    let threads = *default_threads().as_ref().unwrap_or(&1);
    slot.get_or_insert_with(|| Crew { threads, pool: Arc::default() }).clone()
}

/// Replaces the pool; regions that run finish on the old one.
pub(crate) fn set_threads(threads: usize) -> Result<()> {
    if !(1..=MAX_THREADS).contains(&threads) {
        let reason = format!("{threads} threads; at least 1 and at most {MAX_THREADS} can be used");
        return Err(Error::InvalidArgument { op: "set_threads", reason });
    }
    let new = Crew { threads, pool: Arc::default() };
    let old = CREW.write().unwrap_or_else(PoisonError::into_inner).replace(new);
    drop(old);
    Ok(())
}

/// Threads that a region started here may use.
pub(crate) fn threads() -> usize {
    match rayon::current_thread_index() {
        Some(_) => rayon::current_num_threads(),
        None => crew().threads,
    }
}

/// Runs `f` inside a pool; on the caller itself if it is in one or there is none to be had.
pub(crate) fn enter<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    if rayon::current_thread_index().is_some() {
        return f();
    }
    let crew = crew();
    let pool = crew.pool.get_or_init(|| {
        rayon::ThreadPoolBuilder::new()
            .num_threads(crew.threads)
            .thread_name(|index| format!("swath-{index}"))
            .build()
            .ok()
    });
    match pool {
        Some(pool) => pool.install(f),
        None => f(),
    }
}

/// Both closures, on two threads if one is idle. Inside [`enter`].
pub(crate) fn join<A: Send, B: Send>(
    a: impl FnOnce() -> A + Send,
    b: impl FnOnce() -> B + Send,
) -> (A, B) {
    rayon::join(a, b)
}

/// How many parts to cut `units` of this cost into; 1 if the region is too small to share.
pub(crate) fn parts(units: usize, cost: Cost) -> usize {
    let total_ns = cost.of(units);
    if units < 2 || total_ns < MIN_REGION_NS {
        return 1;
    }
    let threads = threads();
    if threads == 1 {
        return 1;
    }
    (threads * PARTS_PER_THREAD).min(total_ns / MIN_PART_NS).min(units)
}

/// Time that a unit of work takes on one thread, in picoseconds.
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

/// `f(part)` for every part in `0..parts`, in any order and on any thread.
#[allow(dead_code, reason = "called for the tiles of a system BLAS alone")]
pub(crate) fn for_each_index(parts: usize, f: impl Fn(usize) + Sync) {
    if parts <= 1 || threads() == 1 {
        return (0..parts).for_each(f);
    }
    fn split(range: Range<usize>, f: &(impl Fn(usize) + Sync)) {
        if range.len() <= 1 {
            return range.for_each(f);
        }
        let middle = range.start + range.len() / 2;
        rayon::join(|| split(range.start..middle, f), || split(middle..range.end, f));
    }
    enter(|| split(0..parts, &f));
}

/// `f(part, its slice)` for every part in `0..parts`; part `i` is `start(i)..start(i + 1)` of
/// `out`, where `start` does not fall, `start(0)` is 0 and `start(parts)` is `out.len()`.
pub(crate) fn for_each_part_mut<T: Send>(
    out: &mut [T],
    parts: usize,
    start: &(dyn Fn(usize) -> usize + Sync),
    f: &(dyn Fn(usize, &mut [T]) + Sync),
) {
    fn split<T: Send>(
        out: &mut [T],
        range: Range<usize>,
        start: &(dyn Fn(usize) -> usize + Sync),
        f: &(dyn Fn(usize, &mut [T]) + Sync),
    ) {
        if range.len() <= 1 {
            return range.for_each(|part| f(part, out));
        }
        let middle = range.start + range.len() / 2;
        let (low, high) = out.split_at_mut(start(middle) - start(range.start));
        rayon::join(
            || split(low, range.start..middle, start, f),
            || split(high, middle..range.end, start, f),
        );
    }
    if parts <= 1 || threads() == 1 {
        let mut rest = out;
        for part in 0..parts {
            let (here, after) = rest.split_at_mut(start(part + 1) - start(part));
            f(part, here);
            rest = after;
        }
        return;
    }
    enter(|| split(out, 0..parts, start, f));
}

/// The first of `units` that part `part` of `parts` holds, when they are cut evenly.
pub(crate) fn even_start(units: usize, parts: usize, part: usize) -> usize {
    units / parts * part + (units % parts).min(part)
}

/// Cuts `out` evenly by `unit` elements into as many parts as the work is worth and runs
/// `f(first unit, slice)` on each. A last unit may be short.
pub(crate) fn for_each_chunk_mut<T: Send>(
    out: &mut [T],
    unit: usize,
    cost: Cost,
    f: &(dyn Fn(usize, &mut [T]) + Sync),
) {
    let len = out.len();
    let units = len.div_ceil(unit.max(1));
    let parts = parts(units, cost.times(unit));
    if parts <= 1 {
        return f(0, out);
    }
    let first = |part| even_start(units, parts, part);
    for_each_part_mut(out, parts, &|part| (first(part) * unit).min(len), &|part, slice| {
        f(first(part), slice)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_is_handed_out_once() {
        for (len, unit) in [(0, 1), (1, 1), (1000, 7), (1_000_003, 1024), (64, 64)] {
            let mut out = vec![0usize; len];
            for_each_chunk_mut(&mut out, unit, Cost(1_000_000), &|first, slice| {
                for (i, x) in slice.iter_mut().enumerate() {
                    *x += first * unit + i + 1;
                }
            });
            assert!(out.iter().enumerate().all(|(i, &x)| x == i + 1), "{len} {unit}");
        }
    }

    #[test]
    fn a_region_inside_a_pool_stays_in_it() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        pool.install(|| {
            assert_eq!(threads(), 3);
            for_each_index(50, |_| assert_eq!(rayon::current_num_threads(), 3));
        });
    }

    #[test]
    fn no_threads_and_too_many_are_errors() {
        assert!(set_threads(0).is_err());
        assert!(set_threads(MAX_THREADS + 1).is_err());
    }
}
