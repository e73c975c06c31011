//! Measures the time of a call.

use std::time::Instant;

use swath::Result;

/// Returns the median time in seconds of all calls within `seconds`, at least three, after a warm-up of half that time.
pub fn median<R>(seconds: f64, mut call: impl FnMut() -> Result<R>) -> Result<f64> {
    let start = Instant::now();
    loop {
        call()?;
        if start.elapsed().as_secs_f64() > seconds / 2.0 {
            break;
        }
    }
    let mut times = Vec::new();
    let start = Instant::now();
    while start.elapsed().as_secs_f64() < seconds || times.len() < 3 {
        let start = Instant::now();
        call()?;
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}
