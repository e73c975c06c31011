//! How many cases the tests run.

/// True if `SWATH_FULL` asks for every case.
pub fn is_full() -> bool {
    std::env::var_os("SWATH_FULL").is_some()
}

/// True for one case in `every`, and for all cases if [`is_full`].
///
/// A test over combinations passes the sum of the positions in its lists as `case`. Whatever the values of all
/// lists but one, some value of that one is taken: every value of every list is met, beside others each time.
pub fn is_sampled(case: usize, every: usize) -> bool {
    case.is_multiple_of(every) || is_full()
}
