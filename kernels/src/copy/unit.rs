//! Units: few bytes that are moved together, at any address.

/// Runs an expression with `$copy` bound to what copies a unit of `$unit` bytes, 1 to 127: `unsafe` where
/// it is called.
macro_rules! for_unit {
    ($unit:expr, $copy:ident => $body:expr) => {{
        use crate::copy::unit::{ends, whole};
        let unit: usize = $unit;
        macro_rules! of {
            ($move:expr) => {{
                let $copy = $move;
                $body
            }};
        }
        match unit {
            1 => of!(|src, dst| whole::<u8>(src, dst)),
            2 => of!(|src, dst| whole::<u16>(src, dst)),
            4 => of!(|src, dst| whole::<u32>(src, dst)),
            8 => of!(|src, dst| whole::<u64>(src, dst)),
            16 => of!(|src, dst| whole::<[u64; 2]>(src, dst)),
            32 => of!(|src, dst| whole::<[u64; 4]>(src, dst)),
            64 => of!(|src, dst| whole::<[u64; 8]>(src, dst)),
            0..4 => of!(|src, dst| ends::<u16>(src, dst, unit)),
            5..8 => of!(|src, dst| ends::<u32>(src, dst, unit)),
            9..16 => of!(|src, dst| ends::<u64>(src, dst, unit)),
            17..32 => of!(|src, dst| ends::<[u64; 2]>(src, dst, unit)),
            33..64 => of!(|src, dst| ends::<[u64; 4]>(src, dst, unit)),
            _ => of!(|src, dst| ends::<[u64; 8]>(src, dst, unit)),
        }
    }};
}
pub(super) use for_unit;

/// Copies the bytes of a `T`.
///
/// # Safety
/// They may be read and written.
#[inline(always)]
pub(super) unsafe fn whole<T: Copy>(src: *const u8, dst: *mut u8) {
    // SAFETY: as the caller promised; the type is one of integers, which any bytes are.
    unsafe { dst.cast::<T>().write_unaligned(src.cast::<T>().read_unaligned()) }
}

/// Copies `bytes`, at least those of a `T` and at most those of two, by two moves that may overlap.
///
/// # Safety
/// They may be read and written.
#[inline(always)]
pub(super) unsafe fn ends<T: Copy>(src: *const u8, dst: *mut u8, bytes: usize) {
    let last = bytes - size_of::<T>();
    // SAFETY: both parts lie within `bytes`.
    unsafe {
        whole::<T>(src, dst);
        whole::<T>(src.add(last), dst.add(last));
    }
}
