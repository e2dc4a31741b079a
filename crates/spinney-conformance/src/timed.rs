//! How long suites take, printed and never asserted.

use std::time::Instant;

/// Runs a suite and prints its time.
pub fn timed<T>(name: &str, run: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let answer = run();
    println!("timed: {name}: {:.2} s", began.elapsed().as_secs_f64());
    answer
}
