//! Panel sizes by the size of the L2 cache, and the choice of cache that B is prefetched into.
//!
//! Sizes decide the order in which elements of C are computed, never their bits.

use std::fs;
use std::sync::OnceLock;

use super::KC;
use crate::simd::MAX_LANES;

/// Bytes of the L2 cache if the system does not report it.
const DEFAULT: usize = 1 << 20;

/// Bytes of the smallest and the largest panel. 1 MiB was the best in L2 caches of 1 and 2 MiB.
const LIMITS: [usize; 2] = [128 << 10, 1 << 20];

/// Columns of a panel of B, [`KC`] deep: whole vectors on every instruction set.
#[inline]
pub(super) fn panel_columns<E>() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    let bytes = *BYTES.get_or_init(|| panel_bytes(second_level().unwrap_or(DEFAULT)));
    bytes / (KC * size_of::<E>()) / MAX_LANES * MAX_LANES
}

fn panel_bytes(cache: usize) -> usize {
    cache.clamp(LIMITS[0], LIMITS[1])
}

/// True if the hardware prefetcher runs far enough ahead; otherwise B is prefetched into L2.
///
/// Decided by the size of the L1 cache, which tells core generations apart. Cores with 48 KiB (Zen
/// 5) need no help: prefetches into L2 took 1.15 to 1.5 times as long ([1024, 4096] and [4096,
/// 4096] of B, one thread, AVX-512). Cores with 32 KiB (Zen 4) gain what `rows.rs` and `columns.rs`
/// say.
#[inline]
pub(super) fn hardware_prefetches() -> bool {
    static RUNS_AHEAD: OnceLock<bool> = OnceLock::new();
    *RUNS_AHEAD.get_or_init(|| first_level() >= Some(48 << 10))
}

fn first_level() -> Option<usize> {
    level("1")
}

fn second_level() -> Option<usize> {
    level("2")
}

/// The size of the first processor's cache of a level, as Linux reports it.
fn level(wanted: &str) -> Option<usize> {
    if cfg!(miri) {
        return None;
    }
    (0..8).find_map(|i| {
        let of = |name| {
            let path = format!("/sys/devices/system/cpu/cpu0/cache/index{i}/{name}");
            fs::read_to_string(path).ok()
        };
        let holds_data = of("type")?.trim() != "Instruction";
        (of("level")?.trim() == wanted && holds_data).then(|| parsed(&of("size")?)).flatten()
    })
}

/// Parses `1024K` or `2M` to bytes.
fn parsed(size: &str) -> Option<usize> {
    let size = size.trim();
    let (digits, unit) = match size.strip_suffix('K') {
        Some(digits) => (digits, 1 << 10),
        None => (size.strip_suffix('M')?, 1 << 20),
    };
    digits.parse::<usize>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::super::driver::{OperandB, Operands};
    use super::super::{Blocked, Epilogue, Factor as _, MatMut, MatRef, PackedB, Workspace};
    use super::{KC, LIMITS, first_level, panel_bytes, panel_columns, parsed, second_level};
    use crate::testing::unless_miri;

    #[test]
    fn sizes_are_read_as_linux_writes_them() {
        assert_eq!(parsed("1024K\n"), Some(1 << 20));
        assert_eq!(parsed("2M"), Some(2 << 20));
        for wrong in ["", "K", "12", "-1K", "1 K", "99999999999999999999K", "18446744073709551615M"]
        {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn panels_are_no_larger_than_the_cache_within_limits() {
        assert_eq!(panel_bytes(512 << 10), 512 << 10);
        assert_eq!([panel_bytes(0), panel_bytes(usize::MAX)], LIMITS);
        assert!(first_level().is_none_or(|bytes| (1 << 12..=1 << 20).contains(&bytes)));
        assert!(second_level().is_none_or(|bytes| (1 << 14..1 << 28).contains(&bytes)));
        for columns in [panel_columns::<f32>(), panel_columns::<f64>()] {
            assert!(columns >= 64 && columns.is_multiple_of(16), "{columns}");
        }
    }

    #[test]
    fn bits_do_not_depend_on_the_panels() {
        let [m, k, n] = unless_miri([70, 2 * KC + 30, 700], [2, KC + 2, 18]);
        let panels: &[usize] = unless_miri(&[16, 64, 112, 512], &[16]);
        let fill = |len: usize, seed: usize| -> Vec<f32> {
            (0..len).map(|i| ((i * seed) % 1009) as f32 / 504.5 - 1.0).collect()
        };
        let (a, b, old) = (fill(m * k, 7919), fill(k * n, 6007), fill(m * n, 4001));
        let a = MatRef::row_major(&a, [m, k]).unwrap();
        let [plain, transposed] = [MatRef::row_major(&b, [k, n]), MatRef::row_major(&b, [n, k])];
        let [plain, transposed] = [plain.unwrap(), transposed.unwrap().t()];
        let workspace = &mut Workspace::new();
        let mut product = |b: OperandB<'_, f32>, nc: usize, beta: f32| {
            let mut c = old.clone();
            let out = MatMut::row_major(&mut c, [m, n]).unwrap();
            let operands = Operands { a: &a, a_in_place: Some(a), b, k, nc };
            let epilogue = Epilogue::default();
            f32::multiply(Blocked::new(operands, (1.0, beta), None, epilogue, out, workspace));
            c.into_iter().map(f32::to_bits).collect::<Vec<_>>()
        };
        for beta in [0.0, 0.5] {
            for b in &[plain, transposed] {
                let whole = product(OperandB::Strided(b), 1024, beta);
                for &nc in panels {
                    let (mut buffer, at) = (Workspace::new(), format!("{nc} columns, beta {beta}"));
                    assert!(product(OperandB::Strided(b), nc, beta) == whole, "{at}");
                    let packed = PackedB::in_panels(*b, nc, &mut buffer);
                    assert!(product(OperandB::Packed(&packed), nc, beta) == whole, "{at}, packed");
                }
            }
            assert!(
                product(OperandB::InPlace(plain), 112, beta)
                    == product(OperandB::Strided(&plain), 1024, beta)
            );
        }
    }
}
