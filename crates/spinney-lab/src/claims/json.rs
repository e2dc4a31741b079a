//! Promises of JSON files as stores.

use super::{Judge, LEAF_ROWS, Side, Unit, both};
use crate::datastore::Documents;
use crate::datastore::document::State;
use crate::json_file::{CLOSE, OPEN, REPLAY};
use crate::limits::FDATASYNC;
use crate::record::Record;

impl Judge<'_> {
    pub(super) fn json_file(&mut self) {
        for size in self.report.sizes() {
            for row in LEAF_ROWS {
                let parts = both(self.own(row, size), self.limit(row, FDATASYNC, size));
                let promise = format!("{row}, durable, against a raw fdatasync");
                self.ratio(promise, size, parts, Side::AtMost, 1.3);
                for (level, bound) in [("process", 10.0), ("none", 8.0)] {
                    let time = self.own(&format!("{row} [{level}]"), size);
                    let promise = format!("{row}, `{level}`");
                    self.value(promise, size, time, bound, Unit::Microseconds);
                }
                for (level, row) in
                    [("durable", row.to_owned()), ("process", format!("{row} [process]"))]
                {
                    let parts = both(self.own(&row, size), self.time("sqlite", &row, size));
                    let promise = format!("{row}, {level}, against sqlite");
                    self.ratio(promise, size, parts, Side::AtMost, 1.0);
                }
            }
            self.opening(size);
        }
    }

    fn opening(&mut self, size: usize) {
        let commit = self.extra(REPLAY, size).and_then(Record::median);
        self.value(format!("{REPLAY}, for each"), size, commit, 10.0, Unit::Microseconds);
        let (open, close) = (self.extra(OPEN, size), self.extra(CLOSE, size));
        // Beside a small text, syncs and blocks of the file system are much.
        let text = close.map(|_| Documents::new(size).text(State::Items).len());
        let text = text.filter(|text| *text > 1 << 20);
        let parse = text.and_then(|_| both(open?.median(), open?.limit_median()));
        let disk = both(
            close.and_then(|close| Some(close.disk_bytes? as f64)),
            text.map(|len| len as f64),
        );
        let promise = format!("{OPEN} against serde_json parsing");
        self.ratio(promise, size, parse, Side::AtMost, 2.0);
        let promise = "bytes on disk after a close against the compact text".to_owned();
        self.ratio_of(promise, Some(size), disk, Side::AtMost, 1.5, Unit::Bytes);
    }

    fn extra(&self, test: &str, size: usize) -> Option<&Record> {
        let mut extras = self.report.extras.iter();
        extras.find(|record| {
            record.system == self.backend && record.test == test && record.size == size
        })
    }
}
