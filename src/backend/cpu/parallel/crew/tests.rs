use super::*;

fn team(helpers: usize) -> Team {
    let team = Team::new(0, || ());
    let station = Arc::into_inner(team.station).map(|station| Station {
        shares: (0..=helpers).map(|_| Line::default()).collect(),
        helpers: (0..=helpers).map(|_| OnceLock::new()).collect(),
        ..station
    });
    Team { station: Arc::new(station.expect("no helper holds it")) }
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
    assert!(station.wait(5, none, Duration::ZERO) == Some(with_share));
    begin(2, 5);
    std::thread::scope(|scope| {
        let helper = scope.spawn(|| station.wait(5, with_share, Duration::ZERO));
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
