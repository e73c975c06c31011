//! Schedules: their ends, their formulas, and bits that do not depend on the system's math library.

use swath::optim::{CosineSchedule, Schedule, StepSchedule, WarmupSchedule};

const COSINE: CosineSchedule = CosineSchedule { peak: 3e-3, floor: 3e-4, steps: 1000 };

#[test]
fn a_cosine_starts_and_ends_at_its_rates() {
    assert_eq!(COSINE.rate(0), 3e-3);
    assert_eq!(COSINE.rate(1000), 3e-4);
    assert_eq!(COSINE.rate(u64::MAX), 3e-4);
    for steps in [0, 1] {
        let short = CosineSchedule { steps, ..COSINE };
        assert_eq!(short.rate(0), if steps == 0 { 3e-4 } else { 3e-3 });
        assert_eq!(short.rate(1), 3e-4);
    }
}

/// PyTorch's CosineAnnealingLR, in the half-angle form floor + (peak - floor) cos²(πt/2T).
#[test]
fn a_cosine_follows_its_formula() {
    let mut last = f64::INFINITY;
    for step in 0..=1000 {
        let half = std::f64::consts::PI * step as f64 / 2000.0;
        let expected = 3e-4 + (3e-3 - 3e-4) * half.cos().powi(2);
        let rate = COSINE.rate(step);
        assert!((rate - expected).abs() < 1e-17, "{step}: {rate} instead of {expected}");
        assert!(rate < last);
        last = rate;
    }
}

/// Compares with a recorded hash: among so many steps, the cosine of some system's library differs in a last
/// bit.
#[test]
fn rates_have_the_same_bits_everywhere() {
    let then = CosineSchedule { steps: 50_000, ..COSINE };
    let schedule = WarmupSchedule { warmup: 100, then };
    let fnv = |hash: u64, step: u64| {
        (hash ^ schedule.rate(step).to_bits()).wrapping_mul(0x0000_0100_0000_01b3)
    };
    let hash = (0..50_101).fold(0xcbf2_9ce4_8422_2325, fnv);
    assert_eq!(hash, 0x493f_d3f8_7218_b9b7, "{hash:#x}");
    let schedule = StepSchedule { initial: 0.1, factor: 0.9, every: 7 };
    assert_eq!(schedule.rate(7 * 1000).to_bits(), 0x3639_8b90_0fe2_3675);
}

#[test]
fn a_warm_up_rises_linearly_and_continues_with_the_other_schedule() {
    let schedule = WarmupSchedule { warmup: 9, then: COSINE };
    for step in 0..9 {
        let expected = 3e-4 * (step + 1) as f64;
        assert!((schedule.rate(step) - expected).abs() < 1e-18);
    }
    for step in [9, 10, 500, 1009, 5000] {
        assert_eq!(schedule.rate(step), COSINE.rate(step - 9));
    }
    assert_eq!(WarmupSchedule { warmup: 0, then: 0.5 }.rate(0), 0.5);
}

#[test]
fn stages_multiply() {
    let schedule = StepSchedule { initial: 2.0, factor: 0.5, every: 3 };
    let rates: Vec<f64> = (0..8).map(|step| schedule.rate(step)).collect();
    assert_eq!(rates, [2.0, 2.0, 2.0, 1.0, 1.0, 1.0, 0.5, 0.5]);
    assert_eq!(StepSchedule { every: 0, ..schedule }.rate(1 << 40), 2.0);
    let fine = StepSchedule { initial: 1.0, factor: 0.97, every: 1 };
    let product: f64 = (0..200).map(|_| 0.97).product();
    assert!((fine.rate(200) / product - 1.0).abs() < 1e-13);
}
