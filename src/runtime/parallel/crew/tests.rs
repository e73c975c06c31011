use std::process::Command;
use std::sync::atomic::AtomicU32;

use super::*;

fn team(helpers: usize) -> Team {
    let team = Team::new(0, || (), RealMachine);
    let station = Arc::into_inner(team.station).map(|station| Station {
        shares: (0..=helpers).map(|_| Line::default()).collect(),
        helpers: (0..=helpers).map(|_| OnceLock::new()).collect(),
        ..station
    });
    Team { station: Arc::new(station.expect("no helper holds it")) }
}

/// A machine on which reading the clock takes `read_time`, and nothing else takes time.
struct FakeMachine<F> {
    began: Instant,
    look: Duration,
    nanoseconds: AtomicU64,
    clock_reads: AtomicU32,
    spins_since_yield: AtomicU32,
    at_yield: F,
}

impl<F: Fn()> FakeMachine<F> {
    fn new(look: Duration, at_yield: F) -> Self {
        FakeMachine {
            began: Instant::now(),
            look,
            nanoseconds: AtomicU64::new(0),
            clock_reads: AtomicU32::new(0),
            spins_since_yield: AtomicU32::new(0),
            at_yield,
        }
    }

    fn advance(&self, time: Duration) -> Duration {
        let nanoseconds = time.as_nanos() as u64;
        Duration::from_nanos(self.nanoseconds.fetch_add(nanoseconds, Ordering::SeqCst))
    }

    fn time(&self) -> Duration {
        self.advance(Duration::ZERO)
    }

    fn clock_reads(&self) -> u32 {
        self.clock_reads.load(Ordering::SeqCst)
    }
}

impl<F: Fn()> Machine for &FakeMachine<F> {
    fn now(&self) -> Instant {
        self.clock_reads.fetch_add(1, Ordering::SeqCst);
        self.began + self.advance(self.look)
    }

    fn spin(&self) {
        let spins = self.spins_since_yield.fetch_add(1, Ordering::SeqCst);
        assert!(spins < 1000, "the processor is never offered to others");
    }

    fn yield_now(&self) {
        self.spins_since_yield.store(0, Ordering::SeqCst);
        (self.at_yield)();
    }
}

/// Time that a helper spins without a region, and its number of clock readings.
fn spin_without_region(spin: Duration, read_time: Duration) -> (Duration, u32) {
    let machine = FakeMachine::new(read_time, || ());
    // Ends the sleep that follows the spinning.
    std::thread::current().unpark();
    let region = team(1).station.wait(1, Tally { region: 0, parts: 0 }, spin, &&machine);
    assert!(region.is_none());
    (machine.time(), machine.clock_reads())
}

#[test]
fn a_helper_spins_for_the_given_time() {
    let read_time = Duration::from_micros(2);
    for us in [0, 10, 150, 5000] {
        let spin = Duration::from_micros(us);
        let (time, _) = spin_without_region(spin, read_time);
        assert!(time >= spin && time <= spin + 2 * read_time, "{time:?} for {spin:?}");
    }
}

#[test]
fn a_preempted_helper_sleeps() {
    let spin = 50 * PREEMPTED;
    assert_eq!(spin_without_region(spin, PREEMPTED).1, 2);
    assert!(spin_without_region(spin, PREEMPTED - Duration::from_micros(1)).1 > 50);
}

#[test]
fn waiting_threads_yield_the_processor() {
    let yields = AtomicU32::new(0);
    let count = || _ = yields.fetch_add(1, Ordering::SeqCst);
    let machine = FakeMachine::new(Duration::from_micros(2), count);
    let station = team(1).station;
    std::thread::current().unpark();
    let none = Tally { region: 0, parts: 0 };
    assert!(station.wait(1, none, Duration::from_millis(2), &&machine).is_none());
    assert!(yields.into_inner() >= 100);
    // A part is finished each time the caller yields.
    let finish = || _ = station.finished.0.fetch_add(1, Ordering::SeqCst);
    station.until_finished(0, 5, &&FakeMachine::new(Duration::ZERO, finish));
    assert_eq!(station.finished.0.load(Ordering::SeqCst), 5);
}

/// Tests `SWATH_SPIN_US` in this process if it is set, otherwise in child processes with several values.
#[test]
#[cfg_attr(miri, ignore = "starts processes")]
fn helpers_spin_for_the_time_set_by_the_environment() {
    const NAME: &str = "helpers_spin_for_the_time_set_by_the_environment";
    const STEP: Duration = Duration::from_micros(10);
    let text = std::env::var("SWATH_SPIN_US").unwrap_or_default();
    let us = if text.is_empty() { DEFAULT_SPIN_US } else { text.parse().unwrap() };
    // The clock only advances by `advance`.
    let at_yield: fn() = || ();
    let machine: &_ = Box::leak(Box::new(FakeMachine::new(Duration::ZERO, at_yield)));
    let team = Team::new(1, || (), machine);
    let mut crew = Crew::new(2, || ());
    crew.team = OnceLock::from(team);
    assert_eq!(crew.started_and_asleep().0, 2);
    let (met, start) = (AtomicUsize::new(0), Instant::now());
    crew.run(2, &|_| {
        met.fetch_add(1, Ordering::SeqCst);
        while met.load(Ordering::SeqCst) < 2 {
            assert!(start.elapsed().as_secs() < 20, "the helper does not start");
            std::thread::yield_now();
        }
    });
    let is_asleep = || crew.started_and_asleep().1 == 1;
    // After two more readings begin, at least one is complete.
    let until_it_reads_the_clock = || {
        let (looks, start) = (machine.clock_reads(), Instant::now());
        while machine.clock_reads() < looks + 2 && !is_asleep() {
            assert!(
                start.elapsed().as_secs() < 20,
                "the helper neither reads the clock nor sleeps"
            );
            std::thread::yield_now();
        }
    };
    for _ in 0..Duration::from_micros(us).as_nanos().div_ceil(STEP.as_nanos()) {
        until_it_reads_the_clock();
        assert!(!is_asleep(), "asleep after {:?} of {us} us", machine.time());
        machine.advance(STEP);
    }
    let mut looks = 0;
    while !is_asleep() {
        assert!(looks < 10, "awake after {:?} of {us} us", machine.time());
        until_it_reads_the_clock();
        looks += 1;
    }
    if text.is_empty() {
        for us in ["0", "1000"] {
            let mut command = Command::new(std::env::current_exe().unwrap());
            let name = format!("{}::{NAME}", module_path!().split_once("::").unwrap().1);
            let output =
                command.env("SWATH_SPIN_US", us).args(["--exact", &name]).output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && text.contains("1 passed"), "{us} us: {text}");
        }
    }
}

#[test]
fn parts_are_taken_once_and_only_in_their_region() {
    let station = team(1).station;
    let [old, new] = [5, 6].map(|region| Tally { region, parts: 3 });
    let all = |region| [0, 0, 0, 1, 1].map(|share| station.take(share, region));
    assert_eq!(all(old), [Some(0), Some(1), None, Some(2), None]);
    assert_eq!(all(new), [Some(0), Some(1), None, Some(2), None]);
    assert_eq!(all(old), [None; 5], "a late helper gets no part");
    let one = Tally { region: 7, parts: 1 };
    assert_eq!([1, 0, 0].map(|share| station.take(share, one)), [None, Some(0), None]);
    assert_eq!(station.take(1, new), None, "a share without parts in the region between");
}

#[test]
fn each_sleeping_helper_with_a_share_is_woken_by_one_thread() {
    let station = team(99).station;
    let whom = |index, shares| station.to_wake(index, shares).collect::<Vec<_>>();
    assert_eq!([whom(0, 3), whom(0, 100), whom(1, 7)], [vec![1, 2], vec![1, 2, 3, 4], vec![5, 6]]);
    let mut all: Vec<usize> = (0..100).flat_map(|index| whom(index, 100)).collect();
    all.sort();
    assert!(all.into_iter().eq(1..100));
    assert_eq!(station.awake(100), 1);
    for helper in (1..=70).filter(|&helper| helper != 3) {
        station.set_asleep(helper, false);
    }
    assert_eq!((whom(0, 100), whom(17, 100)), (vec![3], vec![71, 72]));
    assert_eq!([2, 100].map(|threads| station.awake(threads)), [2, 3]);
    station.set_asleep(3, false);
    assert_eq!([64, 100].map(|threads| station.awake(threads)), [64, 71]);
}

#[test]
fn a_helper_sleeps_through_regions_in_which_it_has_no_share() {
    let station = team(7).station;
    station.set_asleep(5, false);
    let begin = |region, parts| {
        let region = Tally { region, parts };
        station.post.0.region.store(region.word(), Ordering::SeqCst);
        region
    };
    let none = begin(0, 0);
    let with_share = begin(1, 6);
    assert!(station.wait(5, none, Duration::ZERO, &RealMachine) == Some(with_share));
    begin(2, 5);
    std::thread::scope(|scope| {
        let helper = scope.spawn(|| station.wait(5, with_share, Duration::ZERO, &RealMachine));
        while !station.is_asleep(5) && !helper.is_finished() {
            std::thread::yield_now();
        }
        helper.thread().unpark();
        assert!(helper.join().is_ok_and(|region| region.is_none()));
    });
}

#[test]
fn shares_of_threads_that_the_system_refused_are_run() {
    let sum = AtomicUsize::new(0);
    team(3).run(9, &|part| _ = sum.fetch_add(part, Ordering::Relaxed));
    assert_eq!(sum.into_inner(), 36);
}
