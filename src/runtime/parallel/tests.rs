use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

const EXPENSIVE: Cost = Cost(1_000_000_000);

#[test]
fn every_element_belongs_to_one_part() {
    let long = if cfg!(miri) { 20_003 } else { 1_000_003 };
    for (len, unit) in [(0, 1), (1, 1), (1000, 7), (long, 1024), (64, 64)] {
        let mut out = vec![0usize; len];
        for_each_chunk_mut(&mut out, unit, EXPENSIVE, &|first, slice| {
            for (i, x) in slice.iter_mut().enumerate() {
                *x += first * unit + i + 1;
            }
        });
        assert!(out.iter().enumerate().all(|(i, &x)| x == i + 1), "{len} {unit}");
    }
}

#[test]
fn all_outputs_are_cut_at_the_same_units() {
    for (units, width) in [(0, 3), (1, 1), (7, 2), (1000, 3)] {
        let (mut wide, mut narrow) = (vec![0; units * width], [vec![0; units], vec![0; units]]);
        // The last unit of one output is short.
        let short = (units * 4).saturating_sub(3);
        let mut cut = vec![0; short];
        let [a, b] = &mut narrow;
        let bands = (
            (Band::new(&mut wide, width), Band::new(&mut cut, 4)),
            [Band::new(a, 1), Band::new(b, 1)],
        );
        for_each_band(units, EXPENSIVE, bands, |range, ((wide, cut), [a, b])| {
            assert_eq!(
                (a.len(), b.len(), wide.len()),
                (range.len(), range.len(), range.len() * width)
            );
            for (i, unit) in range.enumerate() {
                wide[i * width..][..width].iter_mut().for_each(|x| *x += unit + 1);
                cut.iter_mut().skip(i * 4).take(4).for_each(|x| *x += unit + 1);
                a[i] += unit + 1;
                b[i] += unit + 1;
            }
        });
        assert!(wide.iter().enumerate().all(|(i, &x)| x == i / width + 1));
        assert!(cut.iter().enumerate().all(|(i, &x)| x == i / 4 + 1));
        assert!(narrow.iter().all(|x| x.iter().enumerate().all(|(i, &x)| x == i + 1)));
    }
}

#[test]
fn regions_in_quick_succession_run_every_part() {
    const ROUNDS: usize = if cfg!(miri) { 50 } else { 2000 };
    for threads in [1, 2, 3, 7] {
        let crew = Crew::new(threads, || ());
        let count = AtomicUsize::new(0);
        for round in 0..ROUNDS {
            crew.run(round % 11, &|part| {
                count.fetch_add(part + 1, Ordering::Relaxed);
            });
        }
        let expected: usize =
            (0..ROUNDS).map(|round| (0..round % 11).map(|p| p + 1).sum::<usize>()).sum();
        assert_eq!(count.into_inner(), expected, "{threads} threads");
    }
}

#[test]
fn helpers_whose_warm_up_panics_take_part() {
    let crew = Crew::new(3, || panic!("no memory"));
    let sum = AtomicUsize::new(0);
    for _ in 0..50 {
        crew.run(60, &|part| _ = sum.fetch_add(part, Ordering::Relaxed));
    }
    assert_eq!((sum.into_inner(), crew.started_and_asleep().0), (50 * 59 * 30, 3));
}

#[test]
#[cfg_attr(miri, ignore = "takes an hour")]
fn more_parts_than_a_tally_represents_are_run() {
    let crew = Crew::new(3, || ());
    for parts in [65_535, 65_536, 200_001] {
        let runs: Vec<AtomicUsize> = (0..parts).map(|_| AtomicUsize::new(0)).collect();
        crew.run(parts, &|part| _ = runs[part].fetch_add(1, Ordering::Relaxed));
        assert!(runs.into_iter().all(|runs| runs.into_inner() == 1), "{parts}");
    }
}

#[test]
fn sleeping_helpers_are_woken() {
    let crew = Crew::new(3, || ());
    for _ in 0..5 {
        std::thread::sleep(std::time::Duration::from_millis(2));
        let (count, met) = (AtomicUsize::new(0), AtomicUsize::new(0));
        // Each part waits until another thread is in the region too, or long enough.
        crew.run(3, &|_| {
            met.fetch_add(1, Ordering::SeqCst);
            let start = std::time::Instant::now();
            while met.load(Ordering::SeqCst) < 2 && start.elapsed().as_millis() < 2000 {
                std::thread::yield_now();
            }
            count.fetch_add(1, Ordering::SeqCst);
        });
        assert_eq!(count.into_inner(), 3);
    }
}

/// Waits until all helpers have slept for 20 ms.
fn until_all_sleep(crew: &Crew) {
    let mut looks = 0;
    for _ in 0..10_000 {
        let (started, asleep) = crew.started_and_asleep();
        looks = if started == asleep + 1 { looks + 1 } else { 0 };
        if looks == 20 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    panic!("idle helpers stay awake");
}

#[test]
fn all_sleeping_helpers_are_woken_for_a_region_of_all() {
    let crew = Crew::new(24, || ());
    crew.run(24, &|_| ());
    for _ in 0..3 {
        until_all_sleep(&crew);
        let all = crew.started_and_asleep().0;
        let (met, start) = (AtomicUsize::new(0), std::time::Instant::now());
        // Each part waits for the others, so that a helper that is not woken causes a timeout.
        crew.run(24, &|_| {
            met.fetch_add(1, Ordering::SeqCst);
            while met.load(Ordering::SeqCst) < all && start.elapsed().as_secs() < 10 {
                std::thread::yield_now();
            }
        });
        assert!(start.elapsed().as_secs() < 10);
    }
}

#[test]
fn items_are_run_one_by_one_if_that_takes_less_time() {
    let pays = |items, item_us: usize, most| pays_to_share_each(items, item_us * 1000, most);
    assert!(pays(1, 15, 2) && !pays(1, 14, 2));
    // Three threads: either two run an item each, or all share each item, in a third of its time plus 3 µs.
    assert!(pays(2, 19, 3) && !pays(2, 18, 3));
    assert!(!pays(100, 30, 128) && !pays(100, 1000, 128) && pays(100, 10_000, 128));
    assert!(!pays(2, 1_000_000, 2), "two threads, or two parts");
}

#[test]
fn few_long_items_are_run_one_by_one() {
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let in_pool = |threads, items, us: usize, most| {
        pool(threads).install(|| shares_each(items, Cost(us * 1_000_000), most))
    };
    assert!(in_pool(4, 1, 1000, 100) && in_pool(4, 2, 1000, 100) && in_pool(4, 3, 1000, 100));
    assert!(!in_pool(4, 4, 1000, 100), "an item for each thread");
    assert!(!in_pool(4, 2, 1000, 2), "both items in two parts");
    assert!(!in_pool(4, 2, 99, 100), "too short for threads that may sleep");
    assert!(!in_pool(2, 2, 1000, 100) && !in_pool(1, 1, 1000, 100), "few threads");
    // Inside a part.
    Crew::new(2, || ()).run(2, &|_| assert!(!shares_each(2, EXPENSIVE, 100)));
}

#[test]
fn a_nested_region_runs_on_the_calling_thread() {
    let inner = AtomicUsize::new(0);
    let crew = Crew::new(2, || ());
    crew.run(4, &|_| {
        assert_eq!(threads(), 1);
        let thread = std::thread::current().id();
        for_each_index(3, |_| {
            assert_eq!(std::thread::current().id(), thread);
            inner.fetch_add(1, Ordering::Relaxed);
        });
    });
    assert_eq!(inner.into_inner(), 12);
}

#[test]
fn a_panic_in_a_part_reaches_the_caller_and_the_crew_survives() {
    for bad in 0..4 {
        let crew = Crew::new(2, || ());
        let run = std::panic::AssertUnwindSafe(|| {
            crew.run(4, &|part| assert_ne!(part, bad, "this part fails"));
        });
        assert!(std::panic::catch_unwind(run).is_err());
        let count = AtomicUsize::new(0);
        crew.run(4, &|_| {
            count.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(count.into_inner(), 4);
    }
}

#[test]
fn panics_of_caller_and_helper_at_once_leave_the_next_region_clean() {
    let crew = Crew::new(2, || ());
    let met = AtomicUsize::new(0);
    // If the system refuses the helper, the caller runs both parts.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    let run = std::panic::AssertUnwindSafe(|| {
        crew.run(2, &|part| {
            met.fetch_add(1, Ordering::SeqCst);
            while met.load(Ordering::SeqCst) < 2 && std::time::Instant::now() < deadline {
                std::thread::yield_now();
            }
            panic!("part {part} fails");
        });
    });
    assert!(std::panic::catch_unwind(run).is_err());
    for _ in 0..3 {
        let count = AtomicUsize::new(0);
        crew.run(4, &|_| _ = count.fetch_add(1, Ordering::Relaxed));
        assert_eq!(count.into_inner(), 4);
    }
}

#[test]
fn few_units_and_little_work_are_cut_evenly() {
    let units = [1, 2, 3, 6, 10, 1000].map(|units| cut(units, 1_000_000, 2));
    assert_eq!(units, [1, 2, 3, 6, 8, 8]);
    let small = [1, 2, 5, 7, 9, 100].map(|parts| cut(1000, parts * MIN_PART_NS, 2));
    assert_eq!(small, [1, 2, 4, 6, 8, 8]);
    assert_eq!(cut(1000, 5 * MIN_PART_NS, 16), 5);
}

#[test]
fn a_region_uses_all_threads_of_a_pool() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    pool.install(|| {
        for parts in [3, 12] {
            let threads = std::sync::Mutex::new(std::collections::HashSet::new());
            let start = std::time::Instant::now();
            // Each part waits until every thread has one.
            for_each_index(parts, |_| {
                threads.lock().unwrap().insert(std::thread::current().id());
                while threads.lock().unwrap().len() < 3 && start.elapsed().as_secs() < 20 {
                    std::thread::yield_now();
                }
            });
            assert_eq!(threads.into_inner().unwrap().len(), 3, "{parts} parts");
        }
    });
}

#[test]
fn zero_and_too_many_threads_are_errors() {
    assert!(set_threads(0).is_err());
    assert!(set_threads(MAX_THREADS + 1).is_err());
}

/// Measures the smallest region: both threads must be in it at once.
#[test]
#[ignore = "measures: cargo test --lib hand_over -- --ignored --nocapture"]
fn hand_over_takes_less_than_half_of_rayons() {
    const REGIONS: usize = 2001;
    let median_us = |mut nanoseconds: Vec<u128>| {
        nanoseconds.sort();
        nanoseconds[REGIONS / 2] as f64 / 1e3
    };
    // Time until the other thread starts, and until the region ends.
    let measure = |name: &str, region: &dyn Fn(&(dyn Fn() + Sync))| {
        let (mut begins, mut ends) = (Vec::new(), Vec::new());
        for _ in 0..REGIONS {
            let (met, began) = (AtomicUsize::new(0), std::sync::Mutex::new(0));
            let start = std::time::Instant::now();
            region(&|| {
                let at = start.elapsed().as_nanos();
                if met.fetch_add(1, Ordering::SeqCst) == 1 {
                    *began.lock().unwrap() = at;
                }
                while met.load(Ordering::SeqCst) < 2 {
                    std::hint::spin_loop();
                }
            });
            ends.push(start.elapsed().as_nanos());
            begins.push(began.into_inner().unwrap());
        }
        let (begin, end) = (median_us(begins), median_us(ends));
        println!(
            "{name}: the other thread begins after {begin:.2} us, the region takes {end:.2} us"
        );
        end
    };
    let crew = Crew::new(2, || ());
    let own = measure("swath", &|meet| crew.run(2, &|_| meet()));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let outside = measure("rayon, from outside its pool", &|meet| {
        _ = pool.install(|| rayon::join(meet, meet));
    });
    assert!(own < outside / 2.0);
}
