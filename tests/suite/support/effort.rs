//! How many cases the tests run.

/// True if `SWATH_FULL` asks for every case.
pub fn is_full() -> bool {
    std::env::var_os("SWATH_FULL").is_some()
}

/// True for one case in `every`, and for all cases if [`is_full`].
///
/// A test over combinations passes the sum of the positions in its lists as `case`. For any values of the
/// other lists some value of each list is then taken, so that every value of every list is met.
pub fn is_sampled(case: usize, every: usize) -> bool {
    case.is_multiple_of(every) || is_full()
}
