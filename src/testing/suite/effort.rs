//! Which cases tests run.

/// True if `SWATH_FULL` requests every case.
pub fn is_full() -> bool {
    std::env::var_os("SWATH_FULL").is_some()
}

/// True for one case in `every`, and for all cases if [`is_full`].
///
/// A test over combinations passes the sum of the indices into its lists as `case`. For any choice from the
/// other lists some element of each list is then sampled, so every element of every list occurs.
pub fn is_sampled(case: usize, every: usize) -> bool {
    case.is_multiple_of(every) || is_full()
}
