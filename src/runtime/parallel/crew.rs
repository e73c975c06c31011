//! swath's own thread pool, whose threads spin for a short time before they sleep.
//!
//! ```text
//! run(parts, f):     store f; region := (next number, parts)
//!                    work(0); wait until helpers have finished all parts that they took
//! helper i:          spin up to SPIN µs for a region in which it has a share, then sleep
//!                    work(i)
//! work(i):           take and run the parts of share i, then the remaining parts of other shares; with the
//!                    first part, wake those of helpers 4 i + 1 … 4 i + 4 that sleep and have a share
//! ```
//!
//! 1. The caller works too and never waits for a helper to start: apart from waking four helpers, a region
//!    takes no longer than on the caller alone, however late the helpers start.
//! 2. Share i consists of the same parts in every region with the same number of parts, and helper i takes it
//!    first, so that its cache may contain the data of the previous region. If there are fewer parts than
//!    threads, the first shares have one part each: the same helpers stay awake, and the others sleep.
//! 3. There is one region at a time. A second caller finds the crew busy and runs its parts itself, so that
//!    concurrent callers get one core each.
//! 4. Waking a thread takes 5 µs, and it starts 20 to 95 µs later. The caller wakes four helpers, which wake
//!    the others if parts are left.
//! 5. Nothing is allocated after the helpers have started.
//! 6. Moving a cache line between cores takes 0.05 to 0.22 µs, and a region on two threads waits for five such
//!    moves in sequence: the region's line to the caller and to the helper; the line of the helper's share;
//!    and the line of the finished parts to the helper and back. Data written together share a line, and all
//!    other data have lines of their own. Shares contain the number of their region, so that none is reset.

use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use crate::runtime::on_drop::OnDrop;

/// Microseconds that helpers spin after a region, unless set by `SWATH_SPIN_US`: longer than the pauses between
/// the ops of a training step, and too short to be noticeable as load.
pub(crate) const DEFAULT_SPIN_US: u64 = 150;

/// Time between two readings of the clock, normally 2 µs apart, after which a helper assumes that it shares its
/// core with another thread, perhaps the caller. It then sleeps, so that it can be woken on a free core.
const PREEMPTED: Duration = Duration::from_micros(30);

/// Number of helpers that each thread wakes.
const WOKEN: usize = 4;

/// Maximum of `SWATH_SPIN_US`; a larger value is assumed to be a mistake.
pub(crate) const MAX_SPIN_US: u64 = 1_000_000;

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// True inside a part of a region, where nested regions run on the calling thread.
pub(super) fn is_inside() -> bool {
    INSIDE.get()
}

/// A value alone in a pair of cache lines, which the processor fetches together.
#[repr(align(128))]
#[derive(Default)]
struct Line<T>(T);

/// The number of a region and a number of parts, in one word. At one region per microsecond the numbers last
/// for nine years.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Tally {
    region: u64,
    parts: usize,
}

/// Maximum number of parts that a [`Tally`] represents; more are run in groups.
const MAX_PARTS: usize = u16::MAX as usize;

impl Tally {
    fn load(word: &AtomicU64, order: Ordering) -> Self {
        Tally::of(word.load(order))
    }

    fn of(word: u64) -> Self {
        Tally { region: word >> 16, parts: word as u16 as usize }
    }

    fn word(self) -> u64 {
        self.region << 16 | self.parts as u64
    }
}

/// The closure of a region, with its lifetime erased: helpers only use it while `run` waits for them.
type Work = *const (dyn Fn(usize) + Sync);

/// Data written by the caller: the current region as a [`Tally`], and its closure.
struct Post {
    region: AtomicU64,
    work: UnsafeCell<Option<Work>>,
}

/// State shared by caller and helpers.
struct Station {
    post: Line<Post>,
    /// For each thread, a [`Tally`] of the parts taken from its share.
    shares: Box<[Line<AtomicU64>]>,
    /// Number of parts that helpers have finished, in all regions, updated per share.
    finished: Line<AtomicUsize>,
    /// A bit per helper that is set if it sleeps or is about to. Bits without a helper are set.
    asleep: Line<[AtomicU64; super::MAX_THREADS / 64]>,
    /// The started helpers, by share.
    helpers: Box<[OnceLock<Thread>]>,
    /// The first panic of a helper in the current region.
    panic: Line<Mutex<Option<Box<dyn Any + Send>>>>,
    quit: AtomicBool,
}

// SAFETY: `work` is written by the one caller that holds the crew's lock, after all parts of the last region
// are finished, and read by helpers that have taken a part that is not finished (see `run` and `help`). The
// closure is `Sync`.
unsafe impl Sync for Station {}
// SAFETY: as above; the closure is only used while its owner waits in `run`.
unsafe impl Send for Station {}

/// The threads, and the lock that assigns them to one caller at a time.
pub(super) struct Crew {
    threads: usize,
    /// Called by every helper when it starts.
    warm_up: fn(),
    busy: AtomicBool,
    /// Started when first needed, with fewer helpers if the system refuses threads.
    team: OnceLock<Team>,
}

struct Team {
    station: Arc<Station>,
}

impl Crew {
    pub fn new(threads: usize, warm_up: fn()) -> Self {
        Crew { threads, warm_up, busy: AtomicBool::new(false), team: OnceLock::new() }
    }

    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Number of threads that would start a region immediately: the caller, and the first helpers that are
    /// awake.
    pub fn awake(&self) -> usize {
        match self.team.get() {
            Some(team) if !self.busy.load(Ordering::Relaxed) => team.station.awake(self.threads),
            _ => 1,
        }
    }

    /// Calls `f(part)` for every part; a panic of a part is propagated to the caller.
    pub fn run(&self, parts: usize, f: &(dyn Fn(usize) + Sync)) {
        let alone = self.threads == 1 || self.busy.swap(true, Ordering::Acquire);
        if alone {
            return (0..parts).for_each(f);
        }
        let _free = OnDrop(|| self.busy.store(false, Ordering::Release));
        let team = self.team.get_or_init(|| Team::new(self.threads - 1, self.warm_up, RealMachine));
        if parts <= MAX_PARTS {
            return team.run(parts, f);
        }
        let group = parts.div_ceil(MAX_PARTS);
        team.run(parts.div_ceil(group), &|i| {
            (i * group..parts.min((i + 1) * group)).for_each(f);
        });
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        if let Some(team) = self.team.get() {
            team.station.quit.store(true, Ordering::SeqCst);
            team.station.helpers.iter().filter_map(OnceLock::get).for_each(Thread::unpark);
        }
    }
}

impl Team {
    /// Starts the helpers and returns when all are ready.
    fn new(wanted: usize, warm_up: fn(), machine: impl Machine + Copy + Send + 'static) -> Self {
        let post = Post { region: AtomicU64::new(0), work: UnsafeCell::new(None) };
        let station = Arc::new(Station {
            post: Line(post),
            shares: (0..=wanted).map(|_| Line::default()).collect(),
            finished: Line::default(),
            asleep: Line(std::array::from_fn(|_| AtomicU64::new(u64::MAX))),
            helpers: (0..=wanted).map(|_| OnceLock::new()).collect(),
            panic: Line::default(),
            quit: AtomicBool::new(false),
        });
        let started = (1..=wanted).map_while(|i| {
            let station = Arc::clone(&station);
            let builder = std::thread::Builder::new().name(format!("swath-{i}"));
            let main = move || {
                // The caller waits for the registration below: a panic, of an allocation say, must not prevent it.
                let _ = catch_unwind(warm_up);
                station.set_asleep(i, false);
                station.helpers[i].get_or_init(std::thread::current);
                station.help(i, &machine);
            };
            builder.spawn(main).ok()
        });
        let started = started.count();
        while station.helpers.iter().filter(|helper| helper.get().is_some()).count() < started {
            std::thread::yield_now();
        }
        Team { station }
    }

    /// Like [`Crew::run`], for one caller at a time and at most [`MAX_PARTS`] parts.
    fn run(&self, parts: usize, f: &(dyn Fn(usize) + Sync)) {
        debug_assert!(parts <= MAX_PARTS);
        let Station { post: Line(post), finished: Line(finished), .. } = &*self.station;
        let before = finished.load(Ordering::Relaxed);
        let last = Tally::load(&post.region, Ordering::Relaxed);
        let region = Tally { region: last.region + 1, parts };
        let work = std::ptr::from_ref(f);
        // SAFETY: only the lifetime changes; the pointer is used only during this call, see below.
        let work: Work =
            unsafe { std::mem::transmute::<*const (dyn Fn(usize) + Sync + '_), Work>(work) };
        // SAFETY: there is one caller, and all parts of the previous region are finished. No helper can take
        // a part of it any more, and a helper without a part does not read this.
        unsafe { *post.work.get() = Some(work) };
        post.region.store(region.word(), Ordering::SeqCst);
        let (mut mine, mut panic) = (0, None);
        let run = |part| {
            // After a panic the remaining parts are taken but not run, so that no helper runs them.
            if panic.is_none() {
                panic = catch_unwind(AssertUnwindSafe(|| f(part))).err();
            }
        };
        self.station.work(0, region, run, |parts| mine += parts);
        self.station.until_finished(before, parts - mine, &RealMachine);
        let theirs = self.station.panic.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(panic) = panic.or(theirs) {
            resume_unwind(panic);
        }
    }
}

/// Clock and processor as used for waiting; tests replace them.
trait Machine {
    fn now(&self) -> Instant;
    fn spin(&self);
    fn yield_now(&self);
}

/// The real clock and processor.
#[derive(Clone, Copy)]
struct RealMachine;

impl Machine for RealMachine {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn spin(&self) {
        std::hint::spin_loop();
    }

    fn yield_now(&self) {
        std::thread::yield_now();
    }
}

/// Waits briefly, and yields the processor every 256th time.
fn pause(spins: &mut u32, machine: &impl Machine) {
    *spins = spins.wrapping_add(1);
    if spins.is_multiple_of(256) {
        machine.yield_now();
    } else {
        machine.spin();
    }
}

impl Station {
    /// Takes the next part of a share, if the region is current and a part is left.
    fn take(&self, share: usize, Tally { region, parts }: Tally) -> Option<usize> {
        let shares = self.shares.len();
        let start = super::even_start(parts, shares, share);
        let end = super::even_start(parts, shares, share + 1);
        let word = &self.shares[share].0;
        let mut old = word.load(Ordering::Relaxed);
        loop {
            let taken = match Tally::of(old) {
                seen if seen.region == region => seen.parts,
                seen if seen.region < region => 0,
                _ => return None,
            };
            // After a region has ended, every share with parts is either exhausted or belongs to a later region.
            if start + taken == end {
                return None;
            }
            let new = Tally { region, parts: taken + 1 }.word();
            match word.compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(start + taken),
                Err(now) => old = now,
            }
        }
    }

    /// Number of shares of a region that have parts; these are the first.
    fn shares(&self, parts: usize) -> usize {
        self.shares.len().min(parts.max(1))
    }

    /// See [`Crew::awake`].
    fn awake(&self, threads: usize) -> usize {
        let bit_of_caller = 1;
        let mut before = 0;
        for (i, word) in self.asleep.0.iter().enumerate() {
            let others = if i == 0 { !bit_of_caller } else { u64::MAX };
            let awake = (word.load(Ordering::Relaxed) & others).trailing_zeros() as usize;
            before += awake;
            if awake < 64 || before >= threads {
                break;
            }
        }
        before.min(threads)
    }

    fn is_asleep(&self, helper: usize) -> bool {
        self.asleep.0[helper / 64].load(Ordering::SeqCst) >> (helper % 64) & 1 == 1
    }

    fn set_asleep(&self, helper: usize, asleep: bool) {
        let (word, bit) = (&self.asleep.0[helper / 64], 1 << (helper % 64));
        _ = match asleep {
            true => word.fetch_or(bit, Ordering::SeqCst),
            false => word.fetch_and(!bit, Ordering::SeqCst),
        };
    }

    /// The sleeping helpers that thread `index` wakes in a region of `shares` shares.
    fn to_wake(&self, index: usize, shares: usize) -> impl Iterator<Item = usize> {
        let helpers = (WOKEN * index + 1..shares).take(WOKEN);
        helpers.filter(|&helper| self.is_asleep(helper))
    }

    /// Takes and runs the parts of share `first`, then the remaining parts of the other shares. After each share,
    /// calls `report` with the number of parts run, if any.
    fn work(
        &self,
        first: usize,
        region: Tally,
        mut run: impl FnMut(usize),
        mut report: impl FnMut(usize),
    ) {
        let was_inside = INSIDE.replace(true);
        let _leave = OnDrop(|| INSIDE.set(was_inside));
        let shares = self.shares(region.parts);
        let mut has_woken = false;
        for i in 0..shares {
            let mut parts = 0;
            while let Some(part) = self.take((first + i) % shares, region) {
                if !std::mem::replace(&mut has_woken, true) {
                    let helpers = self.to_wake(first, shares);
                    helpers.filter_map(|i| self.helpers[i].get()).for_each(Thread::unpark);
                }
                run(part);
                parts += 1;
            }
            if parts > 0 {
                report(parts);
            }
        }
    }

    /// Waits until helpers have finished `parts` parts more than `before`.
    fn until_finished(&self, before: usize, parts: usize, machine: &impl Machine) {
        let mut spins = 0u32;
        while self.finished.0.load(Ordering::Acquire).wrapping_sub(before) < parts {
            pause(&mut spins, machine);
        }
    }

    /// Keeps the first panic. The payloads of others are not dropped, because a panic in that drop would keep the
    /// helper from reporting its part as finished.
    fn keep(&self, panic: Box<dyn Any + Send>) {
        let mut first = self.panic.0.lock().unwrap_or_else(PoisonError::into_inner);
        if first.is_some() {
            std::mem::forget(panic);
        } else {
            *first = Some(panic);
        }
    }

    /// Main loop of a helper.
    fn help(&self, index: usize, machine: &impl Machine) {
        let spin = Duration::from_micros(*super::spin_us().as_ref().unwrap_or(&0));
        let mut seen = Tally { region: 0, parts: 0 };
        while !self.quit.load(Ordering::SeqCst) {
            let Some(region) = self.wait(index, seen, spin, machine) else { continue };
            seen = region;
            let run = |part| {
                // SAFETY: the part is taken and not finished, so the caller is still in `run`, waiting for
                // `finished`, and the closure is alive. The caller stored it before the region's number,
                // which was read.
                let work = unsafe { (*self.post.0.work.get()).map(|work| &*work) };
                if let Some(work) = work {
                    let done = catch_unwind(AssertUnwindSafe(|| work(part)));
                    if let Err(panic) = done {
                        self.keep(panic);
                    }
                }
            };
            let report = |parts| _ = self.finished.0.fetch_add(parts, Ordering::Release);
            self.work(index, region, run, report);
        }
    }

    /// Waits for a region other than `seen` in which the helper has a share; `None` after a sleep.
    fn wait(
        &self,
        index: usize,
        seen: Tally,
        spin: Duration,
        machine: &impl Machine,
    ) -> Option<Tally> {
        // Sequentially consistent, like the bits in `asleep`: a thread that wakes helpers for a region sees
        // all helpers that went to sleep without having seen the region.
        let newer = || {
            let region = Tally::load(&self.post.0.region, Ordering::SeqCst);
            (region != seen && index < self.shares(region.parts)).then_some(region)
        };
        // Time of the first and of the last reading of the clock.
        let mut times: Option<(Instant, Instant)> = None;
        let mut spins = 0u32;
        loop {
            if let Some(region) = newer() {
                return Some(region);
            }
            pause(&mut spins, machine);
            if spins.is_multiple_of(64) {
                let now = machine.now();
                let (first, last) = times.unwrap_or((now, now));
                let was_preempted = now.saturating_duration_since(last) >= PREEMPTED;
                let idle = now.saturating_duration_since(first);
                if was_preempted || idle >= spin || self.quit.load(Ordering::Relaxed) {
                    break;
                }
                times = Some((first, now));
            }
        }
        self.set_asleep(index, true);
        // A region that started before the bit was set did not wake this helper.
        if newer().is_none() && !self.quit.load(Ordering::SeqCst) {
            std::thread::park();
        }
        self.set_asleep(index, false);
        None
    }
}

#[cfg(test)]
impl Crew {
    /// Number of started threads, and how many of them sleep.
    pub fn started_and_asleep(&self) -> (usize, usize) {
        let Some(Team { station }) = self.team.get() else { return (1, 0) };
        let started = (1..self.threads).filter(|&i| station.helpers[i].get().is_some());
        let asleep = started.clone().filter(|&i| station.is_asleep(i)).count();
        (1 + started.count(), asleep)
    }
}

#[cfg(test)]
mod tests;
