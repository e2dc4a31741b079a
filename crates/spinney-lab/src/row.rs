//! One row on one open system: its turns, its conclusion and the count of its syncs.

use std::path::PathBuf;

use spinney_core::{Error, ErrorKind, Result};

use crate::lane::{Lane, attempt};
use crate::options::Mode;
use crate::process;
use crate::record::{Record, Status};
use crate::statistics;
use crate::suite::{Bench, Row};
use crate::syncs::Tracer;
use crate::system::{Durability, Factory, Kind};

/// Above this a commit is not repeated for the count of its syncs.
const COUNTED_BELOW_US: f64 = 2e4;

/// An open system between its rows.
pub struct Station<'a, R> {
    /// What made it.
    pub factory: &'a dyn Factory,
    /// The store, as the suite uses it.
    pub bench: Box<dyn Bench<Row = R> + 'a>,
    /// Where it keeps its bytes.
    pub folder: PathBuf,
}

impl<R: Row> Station<'_, R> {
    /// One try of `row`. A peer that fails is left out of the row, with what it said; the others go on.
    ///
    /// # Errors
    /// What a backend reports, with its name and the row.
    pub fn turn(&mut self, row: &R, lane: &mut Lane) -> Result<()> {
        let turned = self.bench.allow(row).and_then(|()| lane.turn(row, &mut *self.bench));
        turned.or_else(|error| {
            lane.unsupported = Some(self.leaves_out(error, row)?);
            Ok(())
        })
    }

    /// Why this system has no part in `row`: it cannot do that, or it is a peer and failed.
    fn leaves_out(&mut self, error: Error, row: &R) -> Result<String> {
        let reason = match (error.kind(), self.factory.kind()) {
            (ErrorKind::Unsupported, _) => error.to_string(),
            (_, Kind::Peer) => format!("it failed: {error}"),
            _ => return Err(self.failed(error, row)),
        };
        self.bench.forget();
        Ok(reason)
    }

    /// The record of the tries in `lane`, its result checked.
    ///
    /// # Errors
    /// What the system reports, with its name and the row.
    pub fn conclude(
        &mut self,
        row: &R,
        size: usize,
        level: Durability,
        lane: Lane,
    ) -> Result<Record> {
        let skipped = |reason| Record {
            status: Status::Skipped(reason),
            ..empty_record(row, size, self.factory, level)
        };
        if let Some(reason) = lane.unsupported {
            return Ok(skipped(reason));
        }
        match self.record(row, size, level, lane) {
            Err(error) => self.leaves_out(error, row).map(skipped),
            recorded => recorded,
        }
    }

    fn record(
        &mut self,
        row: &R,
        size: usize,
        level: Durability,
        mut lane: Lane,
    ) -> Result<Record> {
        let mut record = empty_record(row, size, self.factory, level);
        let outcome = lane.last.take().expect("a lane ends after a try");
        let (hash, is_expected) = self.bench.verify(row, &outcome)?;
        if !is_expected {
            record.status = Status::VoidHash;
        }
        record.hash = Some(hash);
        lane.measure_singles(row, &mut *self.bench)?;
        record.tenths = lane.tenths();
        record.samples = lane.kept.iter().map(|elapsed| elapsed.wall_us).collect();
        record.cpu = lane.kept.iter().map(|elapsed| elapsed.cpu_us).collect();
        record.singles = lane.singles;
        record.first = lane.first;
        record.noop_tries = (lane.noops > 0).then_some(lane.noops);
        record.ops = row.ops(size) * lane.batch;
        if row.writes() && !record.transport.is_apart() {
            record.written_bytes = statistics::median(&lane.written);
        }
        record.peak_rss_bytes = lane.peak_rss_bytes;
        self.bench.settle()?;
        record.disk_bytes =
            Some(self.bench.memory_bytes().unwrap_or_else(|| process::disk_bytes(&self.folder)));
        if lane.batch > 1 {
            record.notes.push("times are for one operation, `runs` are batches".to_owned());
        }
        self.bench.describe(row, &outcome, &mut record);
        if lane.cut {
            record.notes.push("the time budget cut the tries".to_owned());
        }
        Ok(record)
    }

    /// Does `row` once between marks in the trace.
    ///
    /// # Errors
    /// What the system reports, with its name and the row.
    pub fn count(&mut self, row: &R, tracer: &mut Tracer, test: &str) -> Result<()> {
        let row = &row.short();
        self.traced(row, tracer, test).or_else(|error| self.leaves_out(error, row).map(drop))
    }

    fn traced(&mut self, row: &R, tracer: &mut Tracer, test: &str) -> Result<()> {
        self.bench.allow(row)?;
        self.bench.prepare(row)?;
        tracer.begin(test, self.factory.name(), self.factory.transport().is_apart());
        let done = attempt(row, &mut *self.bench).and_then(|(_, outcome)| {
            tracer.end();
            self.bench.check(row, &outcome)
        });
        // A series that takes too long here was quick enough without a tracer.
        done.inspect_err(|_| tracer.refuse())
    }

    fn failed(&self, error: Error, row: &R) -> Error {
        error.at(format!("`{}`, row `{}`", self.factory.name(), row.id()))
    }
}

/// The name in records: levels other than `durable` have a suffix, reads have none.
pub fn test_name(row: &impl Row, level: Durability) -> String {
    match row.commits() {
        true => levelled(row.id(), level),
        false => row.id().to_owned(),
    }
}

/// The name in records of something that commits: levels other than `durable` have a suffix.
pub fn levelled(test: &str, level: Durability) -> String {
    match level {
        Durability::Durable => test.to_owned(),
        Durability::Process | Durability::None => format!("{test} [{}]", level.name()),
    }
}

/// A record of `row` without numbers.
pub fn empty_record(
    row: &impl Row,
    size: usize,
    factory: &dyn Factory,
    level: Durability,
) -> Record {
    Record {
        test: test_name(row, level),
        size,
        ops: row.ops(size),
        ops_of_sample: row.ops(size),
        notes: row.note().map(str::to_owned).into_iter().collect(),
        ..new_record(factory, level)
    }
}

/// A record of no test without numbers.
pub fn new_record(factory: &dyn Factory, level: Durability) -> Record {
    Record {
        test: String::new(),
        size: 0,
        system: factory.name().to_owned(),
        kind: factory.kind(),
        transport: factory.transport(),
        mode: Mode::Honest,
        access: "warm",
        samples: Vec::new(),
        cpu: Vec::new(),
        singles: Vec::new(),
        limit: Vec::new(),
        first: None,
        unit: "us",
        ops: 1,
        ops_of_sample: 1,
        durability: level,
        syncs: None,
        system_calls: None,
        written_bytes: None,
        disk_bytes: None,
        peak_rss_bytes: None,
        hash: None,
        status: Status::Ok,
        ratio: None,
        noop_tries: None,
        counts: None,
        tenths: None,
        notes: Vec::new(),
        load1: None,
        time: jiff::Timestamp::now().to_string(),
    }
}

/// Whether a commit is short enough to be done once more for its syncs.
pub fn is_quick(row: &impl Row, record: &Record) -> bool {
    let commits = row.commits_of_try(record.size) as f64;
    record.median().is_some_and(|median_us| median_us / commits < COUNTED_BELOW_US)
}
