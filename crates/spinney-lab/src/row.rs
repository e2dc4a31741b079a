//! One row on one open system: its turns, its conclusion and the count of its syncs.

use std::path::PathBuf;

use spinney_core::{Error, ErrorKind, Result};

use crate::datastore::rows::{Access, Place, levelled};
use crate::datastore::{self, Documents, Operation, Row};
use crate::lane::Lane;
use crate::operate::{self, Outcome, Standing};
use crate::options::{Mode, Rules};
use crate::process;
use crate::record::{Record, Status};
use crate::statistics;
use crate::syncs::Tracer;
use crate::system::{Durability, Factory, System};

/// Above this a commit is not repeated for the count of its syncs.
const COUNTED_BELOW_US: f64 = 2e4;

/// An open system between its rows.
pub struct Station<'a> {
    /// What made it.
    pub factory: &'a dyn Factory,
    /// The store.
    pub system: Box<dyn System>,
    /// Where it keeps its bytes.
    pub folder: PathBuf,
    /// Its state.
    pub standing: Standing,
    /// What it was told to keep.
    pub access: Option<Access>,
    /// Where it works.
    pub place: Place,
    /// Whether commits are judged and told to subscribers, and to how many at present.
    pub told: Option<usize>,
}

impl<'a> Station<'a> {
    /// Opens a new, empty store.
    ///
    /// # Errors
    /// What the system reports, with its name.
    pub fn open(
        factory: &'a dyn Factory,
        folder: PathBuf,
        level: Durability,
        rules: Rules,
    ) -> Result<Station<'a>> {
        let at = |error: Error| error.at(format!("`{}`", factory.name()));
        let mut system = factory.open(&folder, level).map_err(at)?;
        let told = match rules {
            Rules::None => None,
            Rules::Model => {
                system.judge().map_err(at)?;
                Some(0)
            }
        };
        let (standing, access, place) = (Standing::Unknown, None, Place::Running);
        Ok(Station { factory, system, folder, standing, access, place, told })
    }

    /// One try of `row`.
    ///
    /// # Errors
    /// What the system reports, with its name and the row.
    pub fn turn(
        &mut self,
        row: &Row,
        documents: &Documents,
        lane: &mut Lane,
        buffer: &mut Vec<u8>,
    ) -> Result<()> {
        if let Err(error) = self.allow(row) {
            if error.kind() != ErrorKind::Unsupported {
                return Err(error);
            }
            lane.unsupported = Some(error.to_string());
            return Ok(());
        }
        lane.turn(row, &mut *self.system, documents, &mut self.standing, buffer)
            .map_err(|error| self.failed(error, row))
    }

    /// The record of the tries in `lane`, its result checked.
    ///
    /// # Errors
    /// What the system reports, with its name and the row.
    pub fn conclude(
        &mut self,
        row: &Row,
        documents: &Documents,
        level: Durability,
        mut lane: Lane,
        buffer: &mut Vec<u8>,
    ) -> Result<Record> {
        let mut record = empty_record(row, documents, self.factory, level);
        if let Some(reason) = lane.unsupported {
            record.status = Status::Skipped(reason);
            return Ok(record);
        }
        let outcome = lane.last.take().expect("a lane ends after a try");
        let (hash, is_expected) =
            operate::verify(row, &mut *self.system, documents, &outcome, buffer)
                .map_err(|error| self.failed(error, row))?;
        if !is_expected {
            record.status = Status::VoidHash;
            self.standing = Standing::Unknown;
        }
        record.hash = Some(hash);
        lane.measure_singles(row, &mut *self.system, documents, buffer)
            .map_err(|error| self.failed(error, row))?;
        record.samples = lane.kept.iter().map(|elapsed| elapsed.wall_us).collect();
        record.cpu = lane.kept.iter().map(|elapsed| elapsed.cpu_us).collect();
        record.singles = lane.singles;
        record.first = lane.first;
        record.noop_tries = (lane.noops > 0).then_some(lane.noops);
        record.ops = row.operation.ops(documents.size()) * lane.batch;
        if row.operation.writes() && !record.is_socket {
            record.written_bytes = statistics::median(&lane.written);
        }
        record.peak_rss_bytes = lane.peak_rss_bytes;
        self.system.settle().map_err(|error| self.failed(error, row))?;
        record.disk_bytes =
            Some(self.system.memory_bytes().unwrap_or_else(|| process::disk_bytes(&self.folder)));
        if lane.batch > 1 {
            record.notes.push("times are for one operation, `runs` are batches".to_owned());
        }
        if let Outcome::Settled(Some(bytes)) = outcome {
            record.notes.push(format!("{bytes} B were reclaimed"));
        }
        if row.operation == Operation::InsertSeries
            && let Some(slowest) = statistics::max(&record.singles)
        {
            record
                .notes
                .push(format!("p99 is that of one commit, of which the slowest took {slowest} us"));
        }
        if lane.cut {
            record.notes.push("the time budget cut the tries".to_owned());
        }
        Ok(record)
    }

    /// Does `row` once between marks in the trace.
    ///
    /// # Errors
    /// What the system reports, with its name and the row.
    pub fn count(
        &mut self,
        row: &Row,
        documents: &Documents,
        tracer: &mut Tracer,
        test: &str,
        buffer: &mut Vec<u8>,
    ) -> Result<()> {
        self.allow(row)?;
        let prepared = operate::prepare(row, &mut *self.system, documents, self.standing);
        self.standing = prepared.map_err(|error| self.failed(error, row))?;
        tracer.begin(test, self.factory.name());
        let attempt = operate::attempt(row, &mut *self.system, documents, buffer);
        tracer.end();
        let (_, outcome) = attempt.map_err(|error| self.failed(error, row))?;
        operate::check(row, &mut *self.system, documents, &outcome)
            .map_err(|error| self.failed(error, row))?;
        self.standing = Standing::After(row.operation);
        Ok(())
    }

    fn allow(&mut self, row: &Row) -> Result<()> {
        if self.place != row.place {
            self.system.subscribe(0)?;
            self.told = self.told.map(|_| 0);
            self.standing = Standing::Unknown;
            self.system.move_to(row.place)?;
            self.place = row.place;
        }
        let subscribers = row.operation.subscribers();
        if self.told.is_some_and(|told| told != subscribers) {
            self.system.subscribe(subscribers).map_err(|error| self.failed(error, row))?;
            self.told = Some(subscribers);
        }
        if self.access != Some(row.access) {
            let kept = self.system.keep(row.access == Access::Kept);
            kept.map_err(|error| self.failed(error, row))?;
            self.access = Some(row.access);
        }
        Ok(())
    }

    fn failed(&self, error: Error, row: &Row) -> Error {
        error.at(format!("`{}`, row `{}`", self.factory.name(), row.id))
    }
}

/// The name in records: levels other than `durable` have a suffix, reads have none.
pub fn test_name(row: &Row, level: Durability) -> String {
    match row.operation.commits() {
        true => levelled(row.id, level),
        false => row.id.to_owned(),
    }
}

/// A record of `row` without numbers.
pub fn empty_record(
    row: &Row,
    documents: &Documents,
    factory: &dyn Factory,
    level: Durability,
) -> Record {
    Record {
        test: test_name(row, level),
        size: documents.size(),
        ops: row.operation.ops(documents.size()),
        notes: match row.operation {
            Operation::Reclaim => vec!["background work, not a commit".to_owned()],
            _ => Vec::new(),
        },
        ..new_record(factory, level)
    }
}

/// A record of no test without numbers.
pub fn new_record(factory: &dyn Factory, level: Durability) -> Record {
    Record {
        suite: datastore::NAME.to_owned(),
        test: String::new(),
        size: 0,
        system: factory.name().to_owned(),
        kind: factory.kind(),
        is_socket: factory.label().is_some(),
        mode: Mode::Honest,
        access: "warm",
        samples: Vec::new(),
        cpu: Vec::new(),
        singles: Vec::new(),
        limit: Vec::new(),
        first: None,
        unit: "us",
        ops: 1,
        durability: level,
        syncs: None,
        written_bytes: None,
        disk_bytes: None,
        peak_rss_bytes: None,
        hash: None,
        status: Status::Ok,
        ratio: None,
        noop_tries: None,
        notes: Vec::new(),
        load1: None,
        time: jiff::Timestamp::now().to_string(),
    }
}

/// Whether a commit is short enough to be done once more for its syncs.
pub fn is_quick(record: &Record) -> bool {
    record.median().is_some_and(|median_us| median_us < COUNTED_BELOW_US)
}
