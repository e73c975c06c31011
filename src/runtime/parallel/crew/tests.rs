use std::process::Command;
use std::sync::atomic::AtomicU32;

use super::*;

fn team(helpers: usize) -> Team {
    let team = Team::new(0, || (), This);
    let station = Arc::into_inner(team.station).map(|station| Station {
        shares: (0..=helpers).map(|_| Line::default()).collect(),
        helpers: (0..=helpers).map(|_| OnceLock::new()).collect(),
        ..station
    });
    Team { station: Arc::new(station.expect("no helper holds it")) }
}

/// A machine on which a look at the clock takes `look`, and nothing else takes any time.
struct Imagined<F> {
    began: Instant,
    look: Duration,
    nanoseconds: AtomicU64,
    looks: AtomicU32,
    spins_since_yield: AtomicU32,
    at_yield: F,
}

impl<F: Fn()> Imagined<F> {
    fn new(look: Duration, at_yield: F) -> Self {
        Imagined {
            began: Instant::now(),
            look,
            nanoseconds: AtomicU64::new(0),
            looks: AtomicU32::new(0),
            spins_since_yield: AtomicU32::new(0),
            at_yield,
        }
    }

    fn pass(&self, time: Duration) -> Duration {
        let nanoseconds = time.as_nanos() as u64;
        Duration::from_nanos(self.nanoseconds.fetch_add(nanoseconds, Ordering::SeqCst))
    }

    fn time(&self) -> Duration {
        self.pass(Duration::ZERO)
    }

    fn looks(&self) -> u32 {
        self.looks.load(Ordering::SeqCst)
    }
}

impl<F: Fn()> Machine for &Imagined<F> {
    fn now(&self) -> Instant {
        self.looks.fetch_add(1, Ordering::SeqCst);
        self.began + self.pass(self.look)
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

/// The time that a helper waits awake, and its looks at the clock, when no region comes.
fn awake(spin: Duration, look: Duration) -> (Duration, u32) {
    let machine = Imagined::new(look, || ());
    // For the sleep that ends the wait.
    std::thread::current().unpark();
    let region = team(1).station.wait(1, Tally { region: 0, parts: 0 }, spin, &&machine);
    assert!(region.is_none());
    (machine.time(), machine.looks())
}

#[test]
fn a_helper_waits_awake_as_long_as_it_is_told() {
    let look = Duration::from_micros(2);
    for us in [0, 10, 150, 5000] {
        let spin = Duration::from_micros(us);
        let (time, _) = awake(spin, look);
        assert!(time >= spin && time <= spin + 2 * look, "{time:?} for {spin:?}");
    }
}

#[test]
fn a_helper_whose_core_others_have_had_sleeps() {
    let spin = 50 * AWAY;
    assert_eq!(awake(spin, AWAY).1, 2);
    assert!(awake(spin, AWAY - Duration::from_micros(1)).1 > 50);
}

#[test]
fn those_who_wait_offer_the_processor() {
    let yields = AtomicU32::new(0);
    let count = || _ = yields.fetch_add(1, Ordering::SeqCst);
    let machine = Imagined::new(Duration::from_micros(2), count);
    let station = team(1).station;
    std::thread::current().unpark();
    let none = Tally { region: 0, parts: 0 };
    assert!(station.wait(1, none, Duration::from_millis(2), &&machine).is_none());
    assert!(yields.into_inner() >= 100);
    // A part is finished whenever the caller offers its own.
    let finish = || _ = station.finished.0.fetch_add(1, Ordering::SeqCst);
    station.until_finished(0, 5, &&Imagined::new(Duration::ZERO, finish));
    assert_eq!(station.finished.0.load(Ordering::SeqCst), 5);
}

/// What `SWATH_SPIN_US` says of this process; without it, of others that are told.
#[test]
fn helpers_wait_awake_as_long_as_the_environment_says() {
    const NAME: &str = "helpers_wait_awake_as_long_as_the_environment_says";
    const STEP: Duration = Duration::from_micros(10);
    let text = std::env::var("SWATH_SPIN_US").unwrap_or_default();
    let us = if text.is_empty() { DEFAULT_SPIN_US } else { text.parse().unwrap() };
    // Time stands still, but for what passes here.
    let at_yield: fn() = || ();
    let machine: &_ = Box::leak(Box::new(Imagined::new(Duration::ZERO, at_yield)));
    let team = Team::new(1, || (), machine);
    let mut crew = Crew::new(2, || ());
    crew.team = OnceLock::from(team);
    assert_eq!(crew.begun_and_asleep().0, 2);
    let (met, start) = (AtomicUsize::new(0), Instant::now());
    crew.run(2, &|_| {
        met.fetch_add(1, Ordering::SeqCst);
        while met.load(Ordering::SeqCst) < 2 {
            assert!(start.elapsed().as_secs() < 20, "it doesn't come");
            std::thread::yield_now();
        }
    });
    let is_asleep = || crew.begun_and_asleep().1 == 1;
    // Of two looks that begin from now on, the first is over.
    let until_it_has_looked = || {
        let (looks, start) = (machine.looks(), Instant::now());
        while machine.looks() < looks + 2 && !is_asleep() {
            assert!(start.elapsed().as_secs() < 20, "it neither looks nor sleeps");
            std::thread::yield_now();
        }
    };
    for _ in 0..Duration::from_micros(us).as_nanos().div_ceil(STEP.as_nanos()) {
        until_it_has_looked();
        assert!(!is_asleep(), "asleep after {:?} of {us} us", machine.time());
        machine.pass(STEP);
    }
    let mut looks = 0;
    while !is_asleep() {
        assert!(looks < 10, "awake after {:?} of {us} us", machine.time());
        until_it_has_looked();
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
fn parts_are_taken_once_and_in_their_region_alone() {
    let station = team(1).station;
    let [old, new] = [5, 6].map(|region| Tally { region, parts: 3 });
    let all = |region| [0, 0, 0, 1, 1].map(|share| station.take(share, region));
    assert_eq!(all(old), [Some(0), Some(1), None, Some(2), None]);
    assert_eq!(all(new), [Some(0), Some(1), None, Some(2), None]);
    assert_eq!(all(old), [None; 5], "one that comes late");
    let one = Tally { region: 7, parts: 1 };
    assert_eq!([1, 0, 0].map(|share| station.take(share, one)), [None, Some(0), None]);
    assert_eq!(station.take(1, new), None, "a share without parts in between");
}

#[test]
fn those_who_have_a_share_and_sleep_are_woken_each_by_one() {
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
    assert!(station.wait(5, none, Duration::ZERO, &This) == Some(with_share));
    begin(2, 5);
    std::thread::scope(|scope| {
        let helper = scope.spawn(|| station.wait(5, with_share, Duration::ZERO, &This));
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
