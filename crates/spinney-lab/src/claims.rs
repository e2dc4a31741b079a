//! What spinney promises, computed within one run, and whether it holds.

use crate::datastore::document::State;
use crate::datastore::{Documents, ROWS};
use crate::limits::{FDATASYNC, PARSE, PRINT};
use crate::report::Report;
use crate::system::Kind;

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
    /// The bound.
    pub bound: f64,
    /// `x` for a ratio, `us` for a time.
    pub unit: &'static str,
    /// Where the value must lie.
    pub side: Side,
    /// Whether it does.
    pub verdict: Verdict,
}

const LEAF_ROWS: [&str; 3] = ["create an item", "modify an item", "remove an item"];
/// Size of the promises about a large tree.
const LARGE: usize = 1_000_000;
/// Size of the promises about a usual tree.
const USUAL: usize = 100_000;
/// Size against which growth is measured.
const SMALL: usize = 1_000;

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
        judge.writes();
        judge.growth();
        judge.reads();
        judge.texts();
        judge.bulk();
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
            let raw = self.time("limit", FDATASYNC, size);
            for row in LEAF_ROWS {
                let measured = ratio(self.own(row, size), raw);
                let promise = format!("{row}, durable, against a raw fdatasync");
                self.claim(promise, Some(size), measured, Side::AtMost, 3.0, "x");
            }
            for row in LEAF_ROWS {
                let staged = self.own(&format!("{row} [none]"), size);
                let promise = format!("{row}, staged without durability");
                self.claim(promise, Some(size), staged, Side::AtMost, 8.0, "us");
            }
            let leaf = self.own("modify an item", size);
            let removed = ratio(self.own("remove whole subtree", size), leaf);
            let promise = "remove whole subtree against one leaf changed".to_owned();
            self.claim(promise, Some(size), removed, Side::AtMost, 2.0, "x");
            let inserted = ratio(self.own("insert middle", size), leaf);
            let promise = "insert in the middle against one leaf changed".to_owned();
            self.claim(promise, Some(size), inserted, Side::AtMost, 1.5, "x");
        }
    }

    fn growth(&mut self) {
        for row in LEAF_ROWS {
            let growth = ratio(self.own(row, LARGE), self.own(row, SMALL));
            let promise = format!("{row}, durable, against the same at N = {SMALL}");
            self.claim(promise, Some(LARGE), growth, Side::AtMost, 1.5, "x");
        }
    }

    fn reads(&mut self) {
        for size in self.report.sizes() {
            let bound = if size >= LARGE { 1.6 } else { 1.0 };
            let leaf = self.own("leaf", size);
            self.claim("leaf read by path".into(), Some(size), leaf, Side::AtMost, bound, "us");
        }
        for (size, bound) in [(USUAL, 5.0), (LARGE, 20.0)] {
            let found = self.own("position", size);
            let promise = "element found by position".to_owned();
            self.claim(promise, Some(size), found, Side::AtMost, bound, "us");
        }
    }

    fn texts(&mut self) {
        for size in self.report.sizes() {
            let export = ratio(self.time("limit", PRINT, size), self.own("export", size));
            let promise = "speed of export against serde_json printing".to_owned();
            self.claim(promise, Some(size), export, Side::AtLeast, 1.8, "x");
            let import = ratio(self.time("limit", PARSE, size), self.own("import", size));
            let promise = "speed of import against serde_json parsing".to_owned();
            self.claim(promise, Some(size), import, Side::AtLeast, 2.0, "x");
            let record = self.report.find("import", size, self.backend);
            let disk = record.and_then(|record| record.disk_bytes).map(|bytes| bytes as f64);
            let text = disk.map(|_| Documents::new(size).text(State::Items).len() as f64);
            let promise = "bytes on disk after import against the compact text".to_owned();
            self.claim(promise, Some(size), ratio(disk, text), Side::AtMost, 1.0, "x");
        }
    }

    fn bulk(&mut self) {
        let row = "create all items";
        let sets = ratio(self.own(row, USUAL), self.time("sqlite", row, USUAL));
        let promise = format!("{USUAL} path sets in one durable commit against sqlite");
        self.claim(promise, Some(USUAL), sets, Side::AtMost, 1.0, "x");
        for size in self.report.sizes() {
            let ordered = ratio(self.own("create user ordered items", size), self.own(row, size));
            let promise = "creating in the user's order against creating sorted".to_owned();
            self.claim(promise, Some(size), ordered, Side::AtMost, 1.2, "x");
            for row in LEAF_ROWS {
                let commit = ratio(self.own(row, size), self.time("sqlite", row, size));
                let promise = format!("{row}, durable, against sqlite");
                self.claim(promise, Some(size), commit, Side::AtMost, 1.6, "x");
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
                        let own = self.own(row.id, size);
                        Some((ratio(own, self.time(peer, row.id, size))?, row.id))
                    })
                    .max_by(|(a, _), (b, _)| a.total_cmp(b));
                let (measured, row) = worst.unzip();
                let promise = format!("slowest row against {peer}: {}", row.unwrap_or("none"));
                self.claim(promise, Some(size), measured, Side::AtMost, 1.0, "x");
            }
        }
    }

    fn own(&self, test: &str, size: usize) -> Option<f64> {
        self.time(self.backend, test, size)
    }

    fn time(&self, system: &str, test: &str, size: usize) -> Option<f64> {
        self.report.find(test, size, system)?.median()
    }

    fn claim(
        &mut self,
        promise: String,
        size: Option<usize>,
        measured: Option<f64>,
        side: Side,
        bound: f64,
        unit: &'static str,
    ) {
        let verdict = match (measured, side) {
            (None, _) => Verdict::NotMeasured,
            (Some(value), Side::AtMost) if value <= bound => Verdict::Holds,
            (Some(value), Side::AtLeast) if value >= bound => Verdict::Holds,
            _ => Verdict::Fails,
        };
        let backend = self.backend.to_owned();
        self.claims.push(Claim { promise, backend, size, measured, bound, unit, side, verdict });
    }
}

fn ratio(numerator: Option<f64>, denominator: Option<f64>) -> Option<f64> {
    Some(numerator? / denominator?)
}
