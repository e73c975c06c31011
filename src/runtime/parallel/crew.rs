//! swath's own threads, which wait for the next region awake for a short while.
//!
//! ```text
//! run(parts, f):     write f; region := (next number, parts)
//!                    work(0); wait until helpers have finished all parts that they took
//! helper i:          spin up to SPIN µs for a region in which it has a share, then sleep
//!                    work(i)
//! work(i):           take and run the parts of share i, then what is left of the other shares; with the
//!                    first taken, wake those of helpers 4 i + 1 … 4 i + 4 that sleep and have a share
//! ```
//!
//! 1. The caller works itself and never waits for a helper to begin: a region takes no longer than on
//!    the caller alone, but for the waking of four, however late the others come.
//! 2. Share i is the same parts in every region of so many parts, and helper i takes it first: what it
//!    wrote in the last region is in its cache. Of fewer parts than threads the first shares have one
//!    each: the same helpers are kept awake, and the others sleep.
//! 3. One region at a time: a second caller finds the crew busy and does its work itself, so that
//!    threads of the program that call at once get one core each.
//! 4. To wake a thread takes 5 µs, and it comes 20 to 95 µs later: the caller wakes four, who wake the
//!    others, unless no part is left when they come.
//! 5. Nothing is allocated once the helpers run.
//! 6. A cache line goes from core to core in 0.05 to 0.22 µs, and a region on two threads waits for five
//!    one after the other: the region's to the caller to write it, to the helper to read it; the
//!    helper's share, which the caller has looked at; what is finished to the helper, and back. What is
//!    written together lies in one line, and what is not, in others; nothing is reset or closed:
//!    shares say which region they are of.

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

/// Helpers that a thread wakes.
const WOKEN: usize = 4;

/// Longer is a mistake.
pub(crate) const MAX_SPIN_US: u64 = 1_000_000;

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// True inside a part of a region: its own regions run where they are.
pub(super) fn is_inside() -> bool {
    INSIDE.get()
}

/// Lines that the processor fetches in pairs.
#[repr(align(128))]
#[derive(Default)]
struct Line<T>(T);

/// The number of a region and a count of parts, in one word. A region a microsecond uses up the numbers
/// in nine years.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Tally {
    region: u64,
    parts: usize,
}

/// More parts than a [`Tally`] counts are run in groups.
const MOST_PARTS: usize = u16::MAX as usize;

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

/// A region's work. The lifetime is erased: helpers use it only while `run` waits for them.
type Work = *const (dyn Fn(usize) + Sync);

/// What the caller writes: the newest region, a [`Tally`] with its parts, and what is done for each.
struct Post {
    region: AtomicU64,
    work: UnsafeCell<Option<Work>>,
}

/// What caller and helpers share.
struct Station {
    post: Line<Post>,
    /// For each thread a [`Tally`] of the parts taken from its share.
    shares: Box<[Line<AtomicU64>]>,
    /// Parts of all regions that helpers have finished, counted share by share.
    finished: Line<AtomicUsize>,
    /// A bit for each helper that sleeps or is about to; those of the caller and of nobody are set.
    asleep: Line<[AtomicU64; super::MAX_THREADS / 64]>,
    /// By the share: the helpers that have begun.
    helpers: Box<[OnceLock<Thread>]>,
    /// The first panic of a helper in the region.
    panic: Line<Mutex<Option<Box<dyn Any + Send>>>>,
    quit: AtomicBool,
}

// SAFETY: `work` is written by the one caller that holds the crew's lock, when all parts of the last
// region are finished, and read by helpers that have taken a part not yet finished (see `run` and
// `help`). What it points to is `Sync`.
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
}

impl Crew {
    pub fn new(threads: usize, warm_up: fn()) -> Self {
        Crew { threads, warm_up, busy: AtomicBool::new(false), team: OnceLock::new() }
    }

    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Threads that would begin at once with a region of so many parts: the caller, and the first helpers
    /// if they wait awake.
    pub fn awake(&self) -> usize {
        match self.team.get() {
            Some(team) if !self.busy.load(Ordering::Relaxed) => team.station.awake(self.threads),
            _ => 1,
        }
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
        let team = self.team.get_or_init(|| Team::new(self.threads - 1, self.warm_up, This));
        if parts <= MOST_PARTS {
            return team.run(parts, f);
        }
        let group = parts.div_ceil(MOST_PARTS);
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
    /// Returns when every helper is ready.
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
        let begun = (1..=wanted).map_while(|i| {
            let station = Arc::clone(&station);
            let builder = std::thread::Builder::new().name(format!("swath-{i}"));
            let life = move || {
                warm_up();
                station.set_asleep(i, false);
                station.helpers[i].get_or_init(std::thread::current);
                station.help(i, &machine);
            };
            builder.spawn(life).ok()
        });
        let begun = begun.count();
        while station.helpers.iter().filter(|helper| helper.get().is_some()).count() < begun {
            std::thread::yield_now();
        }
        Team { station }
    }

    /// As [`Crew::run`], for one caller at a time and at most [`MOST_PARTS`].
    fn run(&self, parts: usize, f: &(dyn Fn(usize) + Sync)) {
        debug_assert!(parts <= MOST_PARTS);
        let Station { post: Line(post), finished: Line(finished), .. } = &*self.station;
        let before = finished.load(Ordering::Relaxed);
        let last = Tally::load(&post.region, Ordering::Relaxed);
        let region = Tally { region: last.region + 1, parts };
        let work = std::ptr::from_ref(f);
        // SAFETY: only the lifetime changes; the pointer is used while this call lasts, see below.
        let work: Work =
            unsafe { std::mem::transmute::<*const (dyn Fn(usize) + Sync + '_), Work>(work) };
        // SAFETY: there is one caller, which has seen that all parts of the region before are finished;
        // no helper takes another of them, and without one it does not read this.
        unsafe { *post.work.get() = Some(work) };
        post.region.store(region.word(), Ordering::SeqCst);
        let (mut mine, mut panic) = (0, None);
        let run = |part| {
            // After a panic the parts that are left are taken, so that no helper runs them.
            if panic.is_none() {
                panic = catch_unwind(AssertUnwindSafe(|| f(part))).err();
            }
        };
        self.station.work(0, region, run, |parts| mine += parts);
        self.station.until_finished(before, parts - mine, &This);
        let theirs = self.station.panic.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(panic) = panic.or(theirs) {
            resume_unwind(panic);
        }
    }
}

/// What waiting takes of the machine; tests wait on one of their own.
trait Machine {
    fn now(&self) -> Instant;
    fn spin(&self);
    fn yield_now(&self);
}

#[derive(Clone, Copy)]
struct This;

impl Machine for This {
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

/// A moment's wait; now and then the processor is offered to others.
fn pause(spins: &mut u32, machine: &impl Machine) {
    *spins = spins.wrapping_add(1);
    if spins.is_multiple_of(256) {
        machine.yield_now();
    } else {
        machine.spin();
    }
}

impl Station {
    /// Takes the next part of a share, if the region is not over and one is left.
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
            // In a region that is over, every share with parts is of that region, with all taken, or of a
            // later one.
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

    /// Shares of a region of so many parts that have one: the first.
    fn shares(&self, parts: usize) -> usize {
        self.shares.len().min(parts.max(1))
    }

    /// As [`Crew::awake`].
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

    /// Those who sleep of the helpers whom this thread is to wake in a region of so many shares.
    fn to_wake(&self, index: usize, shares: usize) -> impl Iterator<Item = usize> {
        let whom = (WOKEN * index + 1..shares).take(WOKEN);
        whom.filter(|&helper| self.is_asleep(helper))
    }

    /// Takes the parts of share `first` and runs them, then what is left of the others. How many it has
    /// run of a share, if any, is said when that has no more.
    fn work(
        &self,
        first: usize,
        region: Tally,
        mut run: impl FnMut(usize),
        mut say: impl FnMut(usize),
    ) {
        struct Leave(bool);
        impl Drop for Leave {
            fn drop(&mut self) {
                INSIDE.set(self.0);
            }
        }
        let _leave = Leave(INSIDE.replace(true));
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
                say(parts);
            }
        }
    }

    /// Waits until helpers have finished so many parts more than `before`.
    fn until_finished(&self, before: usize, parts: usize, machine: &impl Machine) {
        let mut spins = 0u32;
        while self.finished.0.load(Ordering::Acquire).wrapping_sub(before) < parts {
            pause(&mut spins, machine);
        }
    }

    /// Keeps the first panic. What another carries is not dropped: if that panicked, the helper would
    /// never say that its part is finished.
    fn keep(&self, panic: Box<dyn Any + Send>) {
        let mut first = self.panic.0.lock().unwrap_or_else(PoisonError::into_inner);
        if first.is_some() {
            std::mem::forget(panic);
        } else {
            *first = Some(panic);
        }
    }

    /// A helper's life.
    fn help(&self, index: usize, machine: &impl Machine) {
        let spin = Duration::from_micros(*super::spin_us().as_ref().unwrap_or(&0));
        let mut seen = Tally { region: 0, parts: 0 };
        while !self.quit.load(Ordering::SeqCst) {
            let Some(region) = self.wait(index, seen, spin, machine) else { continue };
            seen = region;
            let run = |part| {
                // SAFETY: the part is taken and not finished, so the region is not over: its caller is
                // in `run`, waits for `finished`, and wrote this before the region's number, which
                // was read. What it points to is alive until then.
                let work = unsafe { (*self.post.0.work.get()).map(|work| &*work) };
                if let Some(work) = work {
                    let done = catch_unwind(AssertUnwindSafe(|| work(part)));
                    if let Err(panic) = done {
                        self.keep(panic);
                    }
                }
            };
            let say = |parts| _ = self.finished.0.fetch_add(parts, Ordering::Release);
            self.work(index, region, run, say);
        }
    }

    /// A region other than `seen` in which the helper has a share, or `None` after a sleep.
    fn wait(
        &self,
        index: usize,
        seen: Tally,
        spin: Duration,
        machine: &impl Machine,
    ) -> Option<Tally> {
        // Sequentially consistent, as the bits of those who sleep are: whoever wakes others for a region
        // sees all that went to sleep without having seen it.
        let newer = || {
            let region = Tally::load(&self.post.0.region, Ordering::SeqCst);
            (region != seen && index < self.shares(region.parts)).then_some(region)
        };
        // Of the first look at the clock, and of the last.
        let mut looks: Option<(Instant, Instant)> = None;
        let mut spins = 0u32;
        loop {
            if let Some(region) = newer() {
                return Some(region);
            }
            pause(&mut spins, machine);
            if spins.is_multiple_of(64) {
                let now = machine.now();
                let (first, last) = looks.unwrap_or((now, now));
                let was_away = now.saturating_duration_since(last) >= AWAY;
                let idle = now.saturating_duration_since(first);
                if was_away || idle >= spin || self.quit.load(Ordering::Relaxed) {
                    break;
                }
                looks = Some((first, now));
            }
        }
        self.set_asleep(index, true);
        // A region that began before others could see this helper asleep did not wake it.
        if newer().is_none() && !self.quit.load(Ordering::SeqCst) {
            std::thread::park();
        }
        self.set_asleep(index, false);
        None
    }
}

#[cfg(test)]
impl Crew {
    /// Threads that have begun, and how many of them sleep.
    pub fn begun_and_asleep(&self) -> (usize, usize) {
        let Some(Team { station }) = self.team.get() else { return (1, 0) };
        let begun = (1..self.threads).filter(|&i| station.helpers[i].get().is_some());
        let asleep = begun.clone().filter(|&i| station.is_asleep(i)).count();
        (1 + begun.count(), asleep)
    }
}

#[cfg(test)]
mod tests;
