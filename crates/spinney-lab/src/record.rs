//! One measured row as a record, and its JSON form.

mod read;

#[cfg(test)]
pub(crate) use read::sample;
pub use read::{Line, read};
use serde_json::{Map, Value, json};

use crate::options::Mode;
use crate::statistics;
use crate::system::{Durability, Kind, Transport};

/// Samples that the JSON form of a record holds; of more, as many of their order at equal distances.
const SAMPLES_MAX: usize = 1_000;

/// Whether the numbers of a record stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// They do.
    Ok,
    /// They do, but others used the machine.
    Noisy,
    /// The result is not the expected one.
    VoidHash,
    /// A durable commit did not sync.
    VoidDurability,
    /// Nothing was measured, for this reason.
    Skipped(String),
}

impl Status {
    /// The text of the field `status`.
    pub fn text(&self) -> String {
        match self {
            Status::Ok => "ok".into(),
            Status::Noisy => "noisy".into(),
            Status::VoidHash => "void:hash".into(),
            Status::VoidDurability => "void:durability".into(),
            Status::Skipped(reason) => format!("skipped:{reason}"),
        }
    }

    /// Whether a number may be printed.
    pub fn has_number(&self) -> bool {
        matches!(self, Status::Ok | Status::Noisy)
    }

    /// Whether the run failed because of it.
    pub fn is_void(&self) -> bool {
        matches!(self, Status::VoidHash | Status::VoidDurability)
    }
}

/// One row of one system at one size.
#[derive(Clone, Debug)]
pub struct Record {
    /// The row's id; levels other than `durable` have a suffix.
    pub test: String,
    /// N.
    pub size: usize,
    /// The system's name.
    pub system: String,
    /// What the system is.
    pub kind: Kind,
    /// How it is asked.
    pub transport: Transport,
    /// How the tries were made.
    pub mode: Mode,
    /// What was in memory: `warm` for an open handle, `open` for a new one, `cold` for files that were
    /// read from the disk.
    pub access: &'static str,
    /// Wall time of an operation or a try, in microseconds, of each run kept.
    pub samples: Vec<f64>,
    /// Processor time, as `samples`.
    pub cpu: Vec<f64>,
    /// Single operations, where `samples` are means of batches.
    pub singles: Vec<f64>,
    /// The limit that bounds the row, sampled between its runs, in microseconds.
    pub limit: Vec<f64>,
    /// The first run.
    pub first: Option<f64>,
    /// What `samples` are: `us`, `B`, or `op/s`, of which more is better.
    pub unit: &'static str,
    /// Operations in one run.
    pub ops: usize,
    /// Operations behind one of `samples`: fewer than `ops` where a run is a batch of tries.
    pub ops_of_sample: usize,
    /// The level of the store.
    pub durability: Durability,
    /// Syncs of one commit, when counted.
    pub syncs: Option<f64>,
    /// System calls of one commit, when counted.
    pub system_calls: Option<f64>,
    /// Median bytes passed to write calls by one commit.
    pub written_bytes: Option<f64>,
    /// Allocated blocks after the last run.
    pub disk_bytes: Option<u64>,
    /// High-water mark of the process during the row.
    pub peak_rss_bytes: Option<u64>,
    /// Hash of the answer or the final state.
    pub hash: Option<String>,
    /// Whether the numbers stand.
    pub status: Status,
    /// Ratio against the baseline, above 1 when this system is better.
    pub ratio: Option<statistics::Ratio>,
    /// Tries that changed nothing, as the published procedure has them.
    pub noop_tries: Option<usize>,
    /// Calls to the store in one try, by their names, where the suite counts them.
    pub counts: Option<Value>,
    /// One operation of the first and of the last tenth of a try, in microseconds, where a try is a series.
    pub tenths: Option<[f64; 2]>,
    /// Deviations.
    pub notes: Vec<String>,
    /// Load average before the row.
    pub load1: Option<f64>,
    /// When the row was done, RFC 3339.
    pub time: String,
}

/// What all records of a run share.
#[derive(Clone, Debug)]
pub struct Context {
    /// Name of the suite.
    pub suite: String,
    /// Name to version.
    pub versions: Map<String, Value>,
    /// The machine.
    pub machine: Value,
    /// Seed of the order.
    pub order_seed: u64,
    /// The system against which ratios stand.
    pub baseline: String,
}

impl Record {
    /// The median of the runs.
    pub fn median(&self) -> Option<f64> {
        self.number(statistics::median(&self.samples))
    }

    /// The figure of the row: the median or, in the published procedure, the mean in whole
    /// microseconds.
    pub fn figure(&self) -> Option<f64> {
        match self.mode {
            Mode::Honest => self.median(),
            Mode::Compat => self.number(statistics::mean(&self.samples).map(f64::round)),
        }
    }

    /// Operations a second, at the figure of the row.
    pub fn rate(&self) -> Option<f64> {
        let us = match self.mode {
            Mode::Honest => statistics::median(&self.samples),
            Mode::Compat => statistics::mean(&self.samples),
        };
        self.number(us).filter(|us| *us > 0.0).map(|us| self.ops_of_sample as f64 * 1e6 / us)
    }

    /// The median of the limit that was sampled between the runs.
    pub fn limit_median(&self) -> Option<f64> {
        self.number(statistics::median(&self.limit))
    }

    /// The 99th percentile over single operations.
    pub fn p99(&self) -> Option<f64> {
        let singles = if self.singles.is_empty() { &self.samples } else { &self.singles };
        self.number(statistics::p99(singles))
    }

    /// How many times better this is than `other`: as much less time or space, or as much more work.
    /// `None` where one has no number or they are measured in different units.
    pub fn advantage(&self, other: &Record, seed: u64) -> Option<statistics::Ratio> {
        let both = self.status.has_number() && other.status.has_number();
        let (numerator, denominator) = match self.unit {
            _ if !both || self.unit != other.unit => return None,
            "op/s" => (self, other),
            _ => (other, self),
        };
        statistics::Ratio::of(&numerator.samples, &denominator.samples, seed)
    }

    fn number(&self, value: Option<f64>) -> Option<f64> {
        value.filter(|_| self.status.has_number())
    }

    /// The record as one JSON object.
    pub fn to_json(&self, context: &Context) -> Value {
        let mut machine = context.machine.clone();
        machine["load1"] = json!(self.load1);
        let time = |value: Option<f64>| json!(self.number(value).map(rounded));
        let interval = self.ratio.map(|ratio| [rounded(ratio.low), rounded(ratio.high)]);
        let mut record = json!({
            "suite": context.suite,
            "test": self.test,
            "size": self.size,
            "system": self.system,
            "kind": self.kind.name(),
            "transport": self.transport.name(),
            "mode": self.mode.name(),
            "access": self.access,
            "unit": self.unit,
            "runs": if self.status.has_number() { self.samples.len() } else { 0 },
            "ops": self.ops,
            "ops_of_sample": self.ops_of_sample,
            "median": time(self.median()),
            "min": time(statistics::min(&self.samples)),
            "max": time(statistics::max(&self.samples)),
            "p99": time(self.p99()),
            "first": time(self.first),
            "cpu_median": time(statistics::median(&self.cpu)),
            "durability": self.durability.name(),
            "fsyncs_per_commit": self.syncs,
            "system_calls_per_commit": self.system_calls,
            "bytes_written_per_commit": self.written_bytes,
            "bytes_on_disk": self.disk_bytes,
            "peak_rss_bytes": self.peak_rss_bytes,
            "result_hash": self.hash,
            "status": self.status.text(),
            "baseline": context.baseline,
            "ratio": self.ratio.map(|ratio| rounded(ratio.value)),
            "ratio_ci": interval,
            "versions": context.versions,
            "machine": machine,
            "order_seed": context.order_seed,
            "time": self.time,
        });
        if self.status.has_number() {
            let all =
                [("samples", &self.samples), ("singles", &self.singles), ("limit", &self.limit)];
            for (name, samples) in all.into_iter().filter(|(_, samples)| !samples.is_empty()) {
                let kept = statistics::thinned(samples, SAMPLES_MAX);
                record[name] = kept.into_iter().map(rounded).collect();
            }
        }
        if self.mode == Mode::Compat {
            record["mean"] = json!(self.figure());
        }
        if context.suite != "datastore" {
            record["rate"] = json!(self.rate().filter(|_| self.unit == "us").map(rounded));
        }
        if let Some(noop_tries) = self.noop_tries {
            record["noop_tries"] = json!(noop_tries);
        }
        if let Some(tenths) = self.tenths {
            record["tenths"] = json!(tenths.map(rounded));
        }
        if let Some(counts) = &self.counts {
            record["counts"] = counts.clone();
        }
        if !self.notes.is_empty() {
            record["notes"] = json!(self.notes.join("; "));
        }
        record
    }
}

/// Four decimals: a tenth of a nanosecond.
fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}
