//! swath's own threads, which wait for the next region awake for a short while.
//!
//! ```text
//! run(parts, f):     publish f; epoch += 1, open; wake who sleeps, if the region is worth it
//!                    work(0); close; wait until no helper is inside
//! helper i:          spin up to SPIN µs for an open epoch not yet seen, then sleep
//!                    inside += 1; still open? work(i); inside -= 1
//! work(i):           the parts of share i, then what is left of the other shares
//! ```
//!
//! 1. The caller works itself and never waits for a helper to begin: a region takes no longer than on
//!    the caller alone, however late the others come.
//! 2. Share i is the same parts in every region of so many parts, and helper i takes it first: what it
//!    wrote in the last region is in its cache.
//! 3. One region at a time: a second caller finds the crew busy and does its work itself, so that
//!    threads of the program that call at once get one core each.
//! 4. Nothing is allocated once the helpers run.

use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// How long helpers wait awake after a region, unless `SWATH_SPIN_US` says otherwise: longer than the
/// pauses between the ops of a training step, too short to be noticed as load.
pub(crate) const DEFAULT_SPIN_US: u64 = 150;

/// A helper that finds so much time gone between two looks at the clock, which take it 2 µs, shares its
/// core with another thread, perhaps the caller, for whose time it would go on waiting: asleep it can be
/// woken where a core is free.
const AWAY: Duration = Duration::from_micros(30);

/// Longer is a mistake.
pub(crate) const MAX_SPIN_US: u64 = 1_000_000;

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// True inside a part of a region: its own regions run where they are.
pub(super) fn is_inside() -> bool {
    INSIDE.get()
}

/// One thread's parts, on a cache line of its own.
#[repr(align(128))]
#[derive(Default)]
struct Share {
    next: AtomicUsize,
    end: AtomicUsize,
}

/// A region's work. The lifetime is erased: helpers use it only while `run` waits for them.
type Work = *const (dyn Fn(usize) + Sync);

/// What caller and helpers share.
struct Station {
    /// Counts regions in its upper bits; the lowest bit is set while the region is open.
    epoch: AtomicU64,
    /// Helpers that may be using `work`.
    inside: AtomicUsize,
    /// Helpers that have begun.
    ready: AtomicUsize,
    /// Helpers that wait awake.
    awake: AtomicUsize,
    work: UnsafeCell<Option<Work>>,
    shares: Box<[Share]>,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    quit: AtomicBool,
}

// SAFETY: `work` is written by the one caller that holds the crew's lock, while the epoch is closed and
// no helper is inside, and read by helpers that are inside an open epoch (see `run` and `help`). What it
// points to is `Sync`.
unsafe impl Sync for Station {}
// SAFETY: as above; the pointer is only used while its owner waits in `run`.
unsafe impl Send for Station {}

/// The threads, and the lock that gives them to one caller at a time.
pub(super) struct Crew {
    threads: usize,
    /// Called by every helper when it begins.
    warm_up: fn(),
    busy: AtomicBool,
    /// Made when first needed; fewer helpers than wanted where the system gave no more threads.
    team: OnceLock<Team>,
}

struct Team {
    station: Arc<Station>,
    helpers: Box<[Thread]>,
}

impl Crew {
    pub fn new(threads: usize, warm_up: fn()) -> Self {
        Crew { threads, warm_up, busy: AtomicBool::new(false), team: OnceLock::new() }
    }

    pub fn threads(&self) -> usize {
        self.threads
    }

    /// True if every helper waits awake.
    pub fn is_awake(&self) -> bool {
        self.team
            .get()
            .is_some_and(|team| team.station.awake.load(Ordering::Relaxed) == team.helpers.len())
    }

    /// `f(part)` for every part; a panic of one is the caller's.
    pub fn run(&self, parts: usize, f: &(dyn Fn(usize) + Sync)) {
        let alone = self.threads == 1 || self.busy.swap(true, Ordering::Acquire);
        if alone {
            return (0..parts).for_each(f);
        }
        struct Free<'a>(&'a AtomicBool);
        impl Drop for Free<'_> {
            fn drop(&mut self) {
                self.0.store(false, Ordering::Release);
            }
        }
        let _free = Free(&self.busy);
        let team = self.team.get_or_init(|| Team::new(self.threads - 1, self.warm_up));
        let station = &*team.station;
        let shares = station.shares.len();
        for (i, share) in station.shares.iter().enumerate() {
            share.next.store(super::even_start(parts, shares, i), Ordering::Relaxed);
            share.end.store(super::even_start(parts, shares, i + 1), Ordering::Relaxed);
        }
        let work = std::ptr::from_ref(f);
        // SAFETY: only the lifetime changes; the pointer is used while this call lasts, see below.
        let work: Work =
            unsafe { std::mem::transmute::<*const (dyn Fn(usize) + Sync + '_), Work>(work) };
        // SAFETY: this caller alone holds `busy`; the epoch is closed and `inside` was seen as 0 when the
        // last region closed, so no helper reads this.
        unsafe { *station.work.get() = Some(work) };
        station.epoch.fetch_add(1, Ordering::SeqCst);
        if station.awake.load(Ordering::SeqCst) < team.helpers.len() {
            team.helpers.iter().for_each(Thread::unpark);
        }
        let mine = catch_unwind(AssertUnwindSafe(|| station.work(0, f)));
        station.epoch.fetch_add(1, Ordering::SeqCst);
        let mut spins = 0u32;
        while station.inside.load(Ordering::SeqCst) != 0 {
            pause(&mut spins);
        }
        let theirs = station.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(panic) = mine.err().or(theirs) {
            resume_unwind(panic);
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        if let Some(team) = self.team.get() {
            team.station.quit.store(true, Ordering::SeqCst);
            team.helpers.iter().for_each(Thread::unpark);
        }
    }
}

impl Team {
    /// Returns when every helper is ready.
    fn new(wanted: usize, warm_up: fn()) -> Self {
        let station = Arc::new(Station {
            epoch: AtomicU64::new(0),
            inside: AtomicUsize::new(0),
            ready: AtomicUsize::new(0),
            awake: AtomicUsize::new(0),
            work: UnsafeCell::new(None),
            shares: (0..=wanted).map(|_| Share::default()).collect(),
            panic: Mutex::new(None),
            quit: AtomicBool::new(false),
        });
        let helpers = (1..=wanted).map_while(|i| {
            let station = Arc::clone(&station);
            let builder = std::thread::Builder::new().name(format!("swath-{i}"));
            let life = move || {
                warm_up();
                station.ready.fetch_add(1, Ordering::SeqCst);
                station.help(i);
            };
            builder.spawn(life).ok().map(|handle| handle.thread().clone())
        });
        let helpers: Box<[Thread]> = helpers.collect();
        while station.ready.load(Ordering::SeqCst) < helpers.len() {
            std::thread::yield_now();
        }
        Team { station, helpers }
    }
}

/// A moment's wait; now and then the processor is offered to others.
fn pause(spins: &mut u32) {
    *spins = spins.wrapping_add(1);
    if spins.is_multiple_of(256) {
        std::thread::yield_now();
    } else {
        std::hint::spin_loop();
    }
}

impl Station {
    /// The parts of share `first`, then of the others.
    fn work(&self, first: usize, f: &(dyn Fn(usize) + Sync)) {
        struct Leave(bool);
        impl Drop for Leave {
            fn drop(&mut self) {
                INSIDE.set(self.0);
            }
        }
        let _leave = Leave(INSIDE.replace(true));
        let shares = self.shares.len();
        for i in 0..shares {
            let share = &self.shares[(first + i) % shares];
            let end = share.end.load(Ordering::Relaxed);
            loop {
                let part = share.next.fetch_add(1, Ordering::Relaxed);
                if part >= end {
                    break;
                }
                f(part);
            }
        }
    }

    /// A helper's life.
    fn help(&self, index: usize) {
        let spin = Duration::from_micros(*super::spin_us().as_ref().unwrap_or(&0));
        let mut seen = 0;
        while !self.quit.load(Ordering::SeqCst) {
            let Some(epoch) = self.wait(seen, spin) else { continue };
            seen = epoch;
            self.inside.fetch_add(1, Ordering::SeqCst);
            // Open still: the caller waits for `inside` to fall before it goes on.
            if self.epoch.load(Ordering::SeqCst) == epoch {
                // SAFETY: the epoch was open after `inside` rose, so the caller is in `run` and will not
                // return, nor another region begin, before `inside` falls: `work` is set and what it
                // points to is alive.
                let work = unsafe { (*self.work.get()).map(|work| &*work) };
                if let Some(work) = work {
                    let done = catch_unwind(AssertUnwindSafe(|| self.work(index, work)));
                    if let Err(panic) = done {
                        *self.panic.lock().unwrap_or_else(PoisonError::into_inner) = Some(panic);
                    }
                }
            }
            self.inside.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// An open epoch other than `seen`, or `None` after a sleep.
    fn wait(&self, seen: u64, spin: Duration) -> Option<u64> {
        let open = || {
            let epoch = self.epoch.load(Ordering::SeqCst);
            (epoch % 2 == 1 && epoch != seen).then_some(epoch)
        };
        self.awake.fetch_add(1, Ordering::SeqCst);
        let start = Instant::now();
        let mut seen_at = Duration::ZERO;
        let mut spins = 0u32;
        let found = loop {
            if let Some(epoch) = open() {
                break Some(epoch);
            }
            pause(&mut spins);
            if spins.is_multiple_of(64) {
                let now = start.elapsed();
                let was_away = now.saturating_sub(seen_at) >= AWAY;
                if was_away || now >= spin || self.quit.load(Ordering::Relaxed) {
                    break None;
                }
                seen_at = now;
            }
        };
        self.awake.fetch_sub(1, Ordering::SeqCst);
        // A region that opened while this helper still counted as awake did not wake it: look again.
        if found.is_some() || open().is_some() || self.quit.load(Ordering::SeqCst) {
            return found.or_else(open);
        }
        std::thread::park();
        None
    }
}
