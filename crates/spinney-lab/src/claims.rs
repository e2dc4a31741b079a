//! What spinney promises, computed within one run, and whether it holds.

use crate::datastore::document::State;
use crate::datastore::rows::storm_len;
use crate::datastore::{Documents, ROWS};
use crate::json_file;
use crate::limits::{FDATASYNC, PARSE, PRINT};
use crate::options::{LARGE, SMALL, USUAL};
use crate::record::Record;
use crate::report::Report;
use crate::statistics;
use crate::system::Kind;

mod documents;
mod json;
mod throughput;

/// Whether a promise was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The measured value is within the bound.
    Holds,
    /// It is not.
    Fails,
    /// The run does not hold what the promise is about.
    NotMeasured,
}

/// On which side of the bound a value must lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// At most the bound.
    AtMost,
    /// At least the bound.
    AtLeast,
}

/// One promise about one backend at one size.
#[derive(Clone, Debug)]
pub struct Claim {
    /// What is promised.
    pub promise: String,
    /// The backend; empty where none was measured.
    pub backend: String,
    /// N.
    pub size: Option<usize>,
    /// The measured value.
    pub measured: Option<f64>,
    /// What was divided by what to give `measured`, where it is a ratio.
    pub parts: Option<[f64; 2]>,
    /// The bound.
    pub bound: f64,
    /// What `measured` and `bound` count.
    pub unit: Unit,
    /// What `parts` count.
    pub parts_unit: Unit,
    /// Where the value must lie.
    pub side: Side,
    /// Whether it does.
    pub verdict: Verdict,
}

impl Claim {
    /// A promise about a ratio, of parts that count something, still without a bound.
    pub fn ratio(
        promise: impl Into<String>,
        backend: &str,
        size: Option<usize>,
        parts: [f64; 2],
        parts_unit: Unit,
    ) -> Claim {
        let measured = parts[0] / parts[1];
        let value = Claim::value(promise, backend, size, measured, Unit::Ratio);
        Claim { parts: Some(parts), parts_unit, ..value }
    }

    /// A promise about a value, still without a bound.
    pub fn value(
        promise: impl Into<String>,
        backend: &str,
        size: Option<usize>,
        measured: f64,
        unit: Unit,
    ) -> Claim {
        Claim {
            promise: promise.into(),
            backend: backend.to_owned(),
            size,
            measured: Some(measured),
            parts: None,
            bound: f64::INFINITY,
            unit,
            parts_unit: unit,
            side: Side::AtMost,
            verdict: Verdict::Holds,
        }
    }

    /// The claim with a bound.
    pub fn bounded(self, side: Side, bound: f64) -> Claim {
        let verdict = verdict(self.measured, side, bound);
        Claim { bound, side, verdict, ..self }
    }

    /// The claim with an upper bound.
    pub fn at_most(self, bound: f64) -> Claim {
        self.bounded(Side::AtMost, bound)
    }
}

/// What numbers count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Times as much.
    Ratio,
    /// Time.
    Microseconds,
    /// Memory or disk.
    Bytes,
    /// Operations a second.
    Rate,
    /// Whatever is counted.
    Count,
}

const LEAF_ROWS: [&str; 3] = ["create an item", "modify an item", "remove an item"];
/// Bytes that an import of a file of any size may take in memory.
const IMPORT_MEMORY_BYTES_MAX: f64 = 250e6;

/// Every promise for every backend of `report`; those about rows, sizes or systems that were not
/// measured say so.
pub fn claims(report: &Report) -> Vec<Claim> {
    let mut claims = Vec::new();
    let mut backends: Vec<&str> = report.systems(Kind::Backend).collect();
    if backends.is_empty() {
        backends.push("");
    }
    for backend in backends {
        let mut judge = Judge { report, backend, claims: &mut claims };
        match &*report.context.suite {
            "documents" => {
                judge.documents();
                continue;
            }
            "throughput" => {
                judge.throughput();
                continue;
            }
            _ => {}
        }
        if backend == json_file::BACKEND {
            judge.json_file();
            continue;
        }
        judge.writes();
        judge.growth();
        judge.reads();
        judge.texts();
        judge.files();
        judge.bulk();
        judge.memory();
        judge.peers();
    }
    claims
}

struct Judge<'a> {
    report: &'a Report,
    backend: &'a str,
    claims: &'a mut Vec<Claim>,
}

impl Judge<'_> {
    fn writes(&mut self) {
        for size in self.report.sizes() {
            for row in LEAF_ROWS {
                let parts = both(self.own(row, size), self.limit(row, FDATASYNC, size));
                let promise = format!("{row}, durable, against a raw fdatasync");
                self.ratio(promise, size, parts, Side::AtMost, 3.0);
            }
            for row in LEAF_ROWS {
                let staged = self.own(&format!("{row} [none]"), size);
                let promise = format!("{row}, staged without durability");
                self.value(promise, size, staged, 8.0, Unit::Microseconds);
            }
            let leaf = self.own("modify an item", size);
            let removed = both(self.own("remove whole subtree", size), leaf);
            let promise = "remove whole subtree against one leaf changed".to_owned();
            self.ratio(promise, size, removed, Side::AtMost, 2.0);
            let inserted = both(self.own("insert middle", size), leaf);
            let promise = "insert in the middle against one leaf changed".to_owned();
            self.ratio(promise, size, inserted, Side::AtMost, 1.5);
            let storm = self.own("insert storm in one transaction", size);
            let each = storm.map(|storm| storm / storm_len(size) as f64);
            let promise = format!("one of {} inserts in one transaction", storm_len(size));
            self.value(promise, size, each, 5.0, Unit::Microseconds);
        }
    }

    fn growth(&mut self) {
        for row in LEAF_ROWS {
            let growth = both(self.own(row, LARGE), self.own(row, SMALL));
            let promise = format!("{row}, durable, against the same at N = {SMALL}");
            self.ratio(promise, LARGE, growth, Side::AtMost, 1.5);
        }
    }

    fn reads(&mut self) {
        for size in self.report.sizes() {
            let bound = if size >= LARGE { 1.6 } else { 1.0 };
            let leaf = self.own("leaf", size);
            self.value("leaf read by path".into(), size, leaf, bound, Unit::Microseconds);
        }
        for (size, bound) in [(USUAL, 5.0), (LARGE, 20.0)] {
            let found = self.own("position", size);
            let promise = "element found by position".to_owned();
            self.value(promise, size, found, bound, Unit::Microseconds);
        }
    }

    fn texts(&mut self) {
        for size in self.report.sizes() {
            let export = both(self.limit("export", PRINT, size), self.own("export", size));
            let promise = "speed of export against serde_json printing".to_owned();
            self.ratio(promise, size, export, Side::AtLeast, 1.8);
            let import = both(self.limit("import", PARSE, size), self.own("import", size));
            let promise = "speed of import against serde_json parsing".to_owned();
            self.ratio(promise, size, import, Side::AtLeast, 2.0);
            let record = self.report.find("import", size, self.backend);
            let disk = record.and_then(|record| record.disk_bytes).map(|bytes| bytes as f64);
            let text = disk.map(|_| Documents::new(size).text(State::Items).len() as f64);
            let promise = "bytes on disk after import against the compact text".to_owned();
            self.ratio_of(promise, Some(size), both(disk, text), Side::AtMost, 1.0, Unit::Bytes);
        }
    }

    fn files(&mut self) {
        let (report, backend) = (self.report, self.backend);
        let records = report.extras.iter().filter(|record| record.system == backend);
        for record in records.filter(|record| record.unit == "us") {
            let speed = both(record.limit_median(), record.median());
            let (bound, against) = match record.test.starts_with("import") {
                true => (0.7, "parsing"),
                false => (0.6, "printing"),
            };
            let promise = format!("speed of {} against serde_json {against}", record.test);
            self.ratio_of(promise, None, speed, Side::AtLeast, bound, Unit::Microseconds);
            if let Some(name) = record.test.strip_prefix("import ") {
                let disk = record.disk_bytes.map(|bytes| bytes as f64);
                let promise = format!("bytes on disk of {name} against the compact text");
                let parts = both(disk, Some(record.size as f64));
                self.ratio_of(promise, None, parts, Side::AtMost, 1.3, Unit::Bytes);
            }
        }
    }

    fn bulk(&mut self) {
        let row = "create all items";
        let sets = both(self.own(row, USUAL), self.time("sqlite", row, USUAL));
        let promise = format!("{USUAL} path sets in one durable commit against sqlite");
        self.ratio(promise, USUAL, sets, Side::AtMost, 1.0);
        for size in self.report.sizes() {
            let ordered = both(self.own("create user ordered items", size), self.own(row, size));
            let promise = "creating in the user's order against creating sorted".to_owned();
            self.ratio(promise, size, ordered, Side::AtMost, 1.2);
            let reclaim = both(self.cpu("reclaim", size), self.cpu(row, size));
            let promise = "processor time of reclaim against creating the items".to_owned();
            self.ratio(promise, size, reclaim, Side::AtMost, 1.0);
            for row in LEAF_ROWS {
                let commit = both(self.own(row, size), self.time("sqlite", row, size));
                let promise = format!("{row}, durable, against sqlite");
                self.ratio(promise, size, commit, Side::AtMost, 1.6);
            }
        }
    }

    fn memory(&mut self) {
        let (report, backend) = (self.report, self.backend);
        for record in report.extras.iter().filter(|record| record.system == backend) {
            if record.unit == "B" {
                let promise = record.test.clone();
                let peak = record.median();
                self.value(promise, record.size, peak, IMPORT_MEMORY_BYTES_MAX, Unit::Bytes);
            }
        }
    }

    /// Single durable commits have their own bound against sqlite.
    fn peers(&mut self) {
        for size in self.report.sizes() {
            for peer in ["file", "sqlite"] {
                let worst = ROWS
                    .iter()
                    .filter(|row| !(peer == "sqlite" && row.operation.is_single()))
                    .filter_map(|row| {
                        let parts = both(self.own(row.id, size), self.time(peer, row.id, size))?;
                        Some((parts, row.id))
                    })
                    .max_by(|(a, _), (b, _)| (a[0] / a[1]).total_cmp(&(b[0] / b[1])));
                let (parts, row) = worst.unzip();
                let promise = format!("slowest row against {peer}: {}", row.unwrap_or("none"));
                self.ratio(promise, size, parts, Side::AtMost, 1.0);
            }
        }
    }

    fn own(&self, test: &str, size: usize) -> Option<f64> {
        self.time(self.backend, test, size)
    }

    fn cpu(&self, test: &str, size: usize) -> Option<f64> {
        statistics::median(&self.report.find(test, size, self.backend)?.cpu)
    }

    /// The limit as it was between the tries of `test`.
    fn limit(&self, test: &str, limit: &str, size: usize) -> Option<f64> {
        let record = self.report.find(test, size, self.backend);
        record.and_then(Record::limit_median).or_else(|| self.time("limit", limit, size))
    }

    fn time(&self, system: &str, test: &str, size: usize) -> Option<f64> {
        self.report.find(test, size, system)?.median()
    }

    fn ratio(
        &mut self,
        promise: String,
        size: usize,
        parts: Option<[f64; 2]>,
        side: Side,
        bound: f64,
    ) {
        self.ratio_of(promise, Some(size), parts, side, bound, Unit::Microseconds);
    }

    fn ratio_of(
        &mut self,
        promise: String,
        size: Option<usize>,
        parts: Option<[f64; 2]>,
        side: Side,
        bound: f64,
        parts_unit: Unit,
    ) {
        let measured = parts.map(|[numerator, denominator]| numerator / denominator);
        let (backend, unit) = (self.backend.to_owned(), Unit::Ratio);
        let verdict = verdict(measured, side, bound);
        self.claims.push(Claim {
            promise,
            backend,
            size,
            measured,
            parts,
            bound,
            unit,
            parts_unit,
            side,
            verdict,
        });
    }

    /// A promise of at most `bound`.
    fn value(
        &mut self,
        promise: String,
        size: usize,
        measured: Option<f64>,
        bound: f64,
        unit: Unit,
    ) {
        let side = Side::AtMost;
        self.claims.push(Claim {
            promise,
            backend: self.backend.to_owned(),
            size: Some(size),
            measured,
            parts: None,
            bound,
            unit,
            parts_unit: unit,
            side,
            verdict: verdict(measured, side, bound),
        });
    }
}

fn verdict(measured: Option<f64>, side: Side, bound: f64) -> Verdict {
    match (measured, side) {
        (None, _) => Verdict::NotMeasured,
        (Some(value), Side::AtMost) if value <= bound => Verdict::Holds,
        (Some(value), Side::AtLeast) if value >= bound => Verdict::Holds,
        _ => Verdict::Fails,
    }
}

fn both(numerator: Option<f64>, denominator: Option<f64>) -> Option<[f64; 2]> {
    Some([numerator?, denominator?])
}
