//! What is promised of an array that grows.

use super::{Judge, Side, Unit, both};
use crate::limits::{FDATASYNC, PARSE};
use crate::throughput::rows::CLIENTS;

/// Pushes a second of a path copy in memory, measured for the published comparison.
const PATH_COPY_RATE: f64 = 16_000.0;
/// How often a push that survives the process must be as fast.
const PATH_COPIES: f64 = 5.0;
/// What "as fast" leaves to chance.
const AS_FAST: f64 = 1.1;
const SMALL: [usize; 2] = [1, 100];
const LARGE: [usize; 2] = [100_000, 10_000_000];

impl Judge<'_> {
    pub(super) fn throughput(&mut self) {
        let push = "read+write";
        for size in SMALL {
            let one = self.iteration(push, size);
            let parts = both(self.limit(push, FDATASYNC, size), one);
            let promise = "rate of durable pushes against a raw fdatasync".to_owned();
            self.ratio(promise, size, parts, Side::AtLeast, 0.5);
            let together = self.iteration(&format!("{push} by {CLIENTS} clients"), size);
            let promise = format!("durable pushes of {CLIENTS} clients against one");
            self.ratio(promise, size, both(one, together), Side::AtLeast, 3.0);
            let rate = self.iteration(&format!("{push} [process]"), size).map(|us| 1e6 / us);
            let parts = both(rate, Some(PATH_COPY_RATE));
            let promise =
                "pushes a second that survive the process, against a path copy's".to_owned();
            let bound = PATH_COPIES;
            self.ratio_of(promise, Some(size), parts, Side::AtLeast, bound, Unit::Rate);
        }
        for size in LARGE {
            let test = format!("{push} [process]");
            let parts = both(self.time("limit", PARSE, size), self.iteration(&test, size));
            let promise = "speed of a push against serde_json parsing the item".to_owned();
            self.ratio(promise, size, parts, Side::AtLeast, 0.5);
        }
        for test in [push.to_owned(), format!("{push} [process]")] {
            for size in SMALL.into_iter().chain(LARGE) {
                let record = self.report.find(&test, size, self.backend);
                let tenths = record.and_then(|record| record.tenths);
                let promise = format!("{test}: one of the last tenth against one of the first");
                self.ratio(
                    promise,
                    size,
                    tenths.map(|[first, last]| [last, first]),
                    Side::AtMost,
                    AS_FAST,
                );
            }
        }
        let size = LARGE[1];
        let rate = self.iteration("reads", size).map(|us| 1e6 / us);
        let parts = both(rate, Some(1e6));
        let promise = "reads a second of a length, in millions".to_owned();
        self.ratio_of(promise, Some(size), parts, Side::AtLeast, 1.0, Unit::Rate);
    }

    /// The time of one iteration.
    fn iteration(&self, test: &str, size: usize) -> Option<f64> {
        let record = self.report.find(test, size, self.backend)?;
        record.rate().map(|rate| 1e6 / rate)
    }
}
