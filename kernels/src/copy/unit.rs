//! Units: a few bytes that are moved together, at any address.

/// Evaluates an expression with `$copy` bound to a closure that copies a unit of `$unit` bytes, 1
/// to 127; calling it is `unsafe`.
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
/// The bytes are valid for reads and writes.
#[inline(always)]
pub(super) unsafe fn whole<T: Copy>(src: *const u8, dst: *mut u8) {
    // SAFETY: the caller promises the bytes; `T` is made of integers, for which any bits are valid.
    unsafe { dst.cast::<T>().write_unaligned(src.cast::<T>().read_unaligned()) }
}

/// Copies `bytes` bytes, between one and two `T`, by two moves that may overlap.
///
/// # Safety
/// The bytes are valid for reads and writes.
#[inline(always)]
pub(super) unsafe fn ends<T: Copy>(src: *const u8, dst: *mut u8, bytes: usize) {
    let last = bytes - size_of::<T>();
    // SAFETY: both parts are inside of the `bytes` that the caller promised.
    unsafe {
        whole::<T>(src, dst);
        whole::<T>(src.add(last), dst.add(last));
    }
}
