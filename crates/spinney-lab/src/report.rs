//! What a run found: records, settings, what was left out, and the verdict.

mod losses;
mod method;
mod recorded;

use std::path::{Path, PathBuf};

use crate::machine;
use crate::options::{Mode, Options, Rules};
use crate::record::{Context, Record, Status};
use crate::system::{Durability, Kind, Transport};
pub use losses::{Loss, Lost, Standing};

/// How one system was set up.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Its name.
    pub system: String,
    /// How it is asked.
    pub transport: Transport,
    /// Backend or peer.
    pub kind: Kind,
    /// How it does the work.
    pub design: String,
    /// Names and values at each level.
    pub levels: Vec<(Durability, Vec<(String, String)>)>,
}

/// What a run found.
#[derive(Clone, Debug)]
pub struct Report {
    /// What all records share.
    pub context: Context,
    /// One for each row, system and size.
    pub records: Vec<Record>,
    /// Measurements besides the suite: JSON files, and peak memory of imports.
    pub extras: Vec<Record>,
    /// How the systems were set up.
    pub settings: Vec<Setting>,
    /// Rows and sizes of the suite that this run does not hold, with the reason.
    pub left_out: Vec<String>,
    /// What held for commits.
    pub rules: Rules,
    /// How tries were made.
    pub mode: Mode,
    /// Whether syncs could be counted.
    pub syncs_counted: bool,
    /// Where the stores stood; records do not tell.
    pub folder: Option<PathBuf>,
    /// Kind of the file system there.
    pub file_system: String,
}

/// Test, size and system, which name a record.
pub type Key = (String, usize, String);

impl Report {
    /// A report without records.
    pub(crate) fn new(
        context: Context,
        folder: &Path,
        settings: Vec<Setting>,
        options: &Options,
    ) -> Report {
        Report {
            context,
            records: Vec::new(),
            extras: Vec::new(),
            settings,
            left_out: Vec::new(),
            rules: options.rules,
            mode: options.mode,
            syncs_counted: true,
            folder: Some(folder.to_owned()),
            file_system: machine::file_system(folder)
                .map_or_else(|| "unknown".to_owned(), |(kind, _)| kind),
        }
    }

    /// The record that `key` names.
    pub fn measured(&self, key: &Key) -> Option<&Record> {
        self.records.iter().find(|record| is_named(record, key))
    }

    /// Notes the syncs and system calls of one commit. What is called durable and makes fewer than it must is void, and
    /// stands in no ratio.
    pub(crate) fn count(
        &mut self,
        test: &str,
        size: usize,
        system: &str,
        [syncs, calls]: [f64; 2],
        syncs_min: f64,
    ) {
        let is_baseline = system == self.context.baseline;
        let mut row: Vec<&mut Record> = self
            .records
            .iter_mut()
            .filter(|record| record.test == test && record.size == size)
            .collect();
        let Some(counted) = row.iter_mut().find(|record| record.system == system) else { return };
        counted.syncs = Some(syncs);
        counted.system_calls = Some(calls);
        if counted.durability == Durability::Durable && syncs < syncs_min {
            counted.status = Status::VoidDurability;
            counted.ratio = None;
            if is_baseline {
                row.iter_mut().for_each(|record| record.ratio = None);
            }
        }
    }

    /// The record of `test` at `size` on `system`, when it has a number.
    pub fn find(&self, test: &str, size: usize, system: &str) -> Option<&Record> {
        self.records.iter().find(|record| {
            record.test == test
                && record.size == size
                && record.system == system
                && record.status.has_number()
        })
    }

    /// Whether a result was wrong or a durable commit did not sync.
    pub fn is_void(&self) -> bool {
        self.records.iter().chain(&self.extras).any(|record| record.status.is_void())
    }

    /// 0, or 1 when a result was wrong or a durable commit did not sync.
    pub fn exit_code(&self) -> u8 {
        u8::from(self.is_void())
    }

    /// Names of the systems of `kind`, in the order of the run.
    pub fn systems(&self, kind: Kind) -> impl Iterator<Item = &str> {
        let settings = self.settings.iter().filter(move |setting| setting.kind == kind);
        settings.map(|setting| &*setting.system)
    }

    /// Sizes in the order of the run.
    pub fn sizes(&self) -> Vec<usize> {
        let mut sizes: Vec<usize> = Vec::new();
        for record in &self.records {
            if !sizes.contains(&record.size) {
                sizes.push(record.size);
            }
        }
        sizes
    }
}

fn is_named(record: &Record, (test, size, system): &Key) -> bool {
    record.test == *test && record.size == *size && record.system == *system
}
