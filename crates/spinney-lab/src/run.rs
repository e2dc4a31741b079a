//! The runner: systems take turns in shuffled order, row by row, level by level, size by size.

use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Map, Value};
use spinney_core::{Error, ErrorKind, Result};

use crate::datastore::document::State;
use crate::datastore::rows::Access;
use crate::datastore::{Documents, Operation, Row};
use crate::lane::{Lane, Limits};
use crate::limits::Sampler;
use crate::options::{COLD, Options, READERS, Scope, USUAL};
use crate::record::{Context, Record, Status};
use crate::report::{Report, Setting};
use crate::row::{self, Station};
use crate::syncs;
use crate::system::{Durability, Effect, Factory, Kind};
use crate::{
    SERDE_JSON_VERSION, cold, files, json_file, limits, machine, memory, process, readers,
};

/// Measures what `options` asks for on those of `systems` that it names.
///
/// # Errors
/// `InvalidInput` for names that do not exist and for a write try that changed nothing; `Io` when
/// the folder or the records cannot be written; whatever a system reports. A wrong result is no
/// error but `void:hash` in the report.
pub fn run(options: &Options, systems: Vec<Box<dyn Factory>>) -> Result<Report> {
    let factories = options.selected_systems(&systems)?;
    let rows = options.selected_rows()?;
    let parent = options.dir.clone().unwrap_or_else(|| PathBuf::from("target/spinney-lab"));
    std::fs::create_dir_all(&parent).map_err(|error| io(error, &parent))?;
    let folder = tempfile::Builder::new().prefix("run-").tempdir_in(&parent);
    let folder = folder.map_err(|error| io(error, &parent))?;
    let seed = options.seed.unwrap_or_else(|| fastrand::u64(..1 << 53));
    let context = Context {
        versions: versions(&factories),
        machine: machine::describe(folder.path()),
        order_seed: seed,
        baseline: options.baseline.clone(),
    };
    let mut runner = Runner {
        options,
        report: Report::new(context, &parent, settings(&factories, options), options),
        factories,
        folder: folder.path(),
        random: fastrand::Rng::with_seed(seed),
        progress: progress(options, rows.len()),
        refused: Vec::new(),
        rows,
    };
    runner.leave_out();
    if !runner.rows.is_empty() || [COLD, READERS].iter().any(|extra| options.wants(extra)) {
        for &size in options.sizes.iter().take_while(|_| !options.is_stopped()) {
            runner.measure_size(size)?;
        }
    }
    match options.is_stopped() {
        true => runner.report.left_out.push("what comes after the run was stopped".to_owned()),
        false => runner.measure_extras()?,
    }
    runner.progress.finish_and_clear();
    let report = runner.report;
    if let Some(path) = &options.records {
        std::fs::write(path, report.json_lines()).map_err(|error| io(error, path))?;
    }
    Ok(report)
}

struct Runner<'a> {
    options: &'a Options,
    rows: Vec<&'static Row>,
    factories: Vec<&'a dyn Factory>,
    folder: &'a Path,
    random: fastrand::Rng,
    progress: ProgressBar,
    report: Report,
    /// System, level and reason, where a store refused the level when it was opened.
    refused: Vec<(String, Durability, String)>,
}

impl<'a> Runner<'a> {
    fn leave_out(&mut self) {
        let all = crate::datastore::ROWS.len();
        if self.rows.len() < all {
            let left = all - self.rows.len();
            let text = match self.options.rows.is_empty() && !self.options.whole_suite {
                true => format!("{left} of {all} rows, which `bench datastore` has"),
                false => format!("{left} of {all} rows were not asked for"),
            };
            self.report.left_out.push(text);
        }
        if self.options.durability.len() > 1 && !self.options.whole_suite {
            let level = self.options.durability[0].name();
            let which = if self.options.all_levels { "`cached`" } else { "`cached` and bulk" };
            self.report.left_out.push(format!("{which} writes at levels other than {level}"));
        }
        for size in [1_000, 10_000, 100_000, 1_000_000] {
            if !self.options.sizes.contains(&size) {
                self.report.left_out.push(format!("N = {size} was not asked for"));
            }
        }
    }

    fn measure_size(&mut self, size: usize) -> Result<()> {
        let documents = Documents::new(size);
        self.progress.set_message(format!("{size} items: limits"));
        if !self.options.claims {
            // Promises stand against the limits that are sampled between tries.
            self.report.records.extend(limits::measure(&documents, self.folder)?);
        }
        for at in 0..self.options.durability.len() {
            if self.options.is_stopped() {
                return Ok(());
            }
            self.measure_level(&documents, at)?;
        }
        self.measure_handles(&documents)
    }

    /// Reads run at the first level that a system offers, writes at each.
    fn measure_level(&mut self, documents: &Documents, at: usize) -> Result<()> {
        let level = self.options.durability[at];
        let folder = self.folder.join(format!("{}-{}", documents.size(), level.name()));
        let mut stations = self.open(&folder, level)?;
        for row in self.rows.clone() {
            self.progress.inc(1);
            if self.options.is_stopped() {
                break;
            }
            if at > 0 && row.operation.commits() && !self.is_in_later_levels(row) {
                continue;
            }
            let scope = self.options.scope(row, documents.size());
            if scope == Scope::Nothing {
                continue;
            }
            self.skip_unable(row, documents, at);
            let takes_part = |factory: &dyn Factory| match row.operation.commits() {
                _ if scope == Scope::Backends && factory.kind() == Kind::Peer => false,
                true => true,
                false => self.is_first(factory, at),
            };
            let mut chosen: Vec<&mut Station<'a>> =
                stations.iter_mut().filter(|station| takes_part(station.factory)).collect();
            if !chosen.is_empty() {
                let size = documents.size();
                let message = format!("{size} items, {}: {}", level.name(), row.id);
                self.progress.set_message(message);
                let records = self.measure_row(row, documents, level, &mut chosen)?;
                self.report.records.extend(records);
            }
        }
        if self.options.count_syncs && !self.options.is_stopped() {
            self.progress.set_message(format!("{} items: counting syncs", documents.size()));
            self.count_syncs(documents, level, &mut stations)?;
        }
        drop(stations);
        std::fs::remove_dir_all(&folder).map_err(|error| io(error, &folder))
    }

    fn is_in_later_levels(&self, row: &Row) -> bool {
        let options = self.options;
        options.whole_suite
            || row.access == Access::Open && (options.all_levels || row.operation.is_single())
    }

    fn open(&mut self, folder: &Path, level: Durability) -> Result<Vec<Station<'a>>> {
        let mut stations = Vec::new();
        for &factory in &self.factories {
            if factory.lacks(level).is_some() {
                continue;
            }
            let folder = folder.join(factory.name());
            std::fs::create_dir_all(&folder).map_err(|error| io(error, &folder))?;
            match Station::open(factory, folder, level, self.options.rules) {
                Ok(station) => stations.push(station),
                // A server tells only when it is asked.
                Err(error) if error.kind() == ErrorKind::Unsupported => {
                    self.refused.push((factory.name().to_owned(), level, error.to_string()));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(stations)
    }

    /// Why a system does not take part at a level.
    fn lacks(&self, factory: &dyn Factory, level: Durability) -> Option<String> {
        factory.lacks(level).or_else(|| {
            let mut refused = self.refused.iter();
            let found = refused.find(|(name, at, _)| name == factory.name() && *at == level);
            found.map(|(_, _, reason)| reason.clone())
        })
    }

    fn is_first(&self, factory: &dyn Factory, at: usize) -> bool {
        self.options.durability[..at].iter().all(|&level| self.lacks(factory, level).is_some())
    }

    /// Notes who cannot commit at a level, and once who cannot even be read.
    fn skip_unable(&mut self, row: &Row, documents: &Documents, at: usize) {
        let options = self.options;
        let levels = &options.durability;
        let level = levels[at];
        for factory in self.factories.clone() {
            let is_absent = levels.iter().all(|&level| self.lacks(factory, level).is_some());
            let takes_part = row.operation.commits() || (at == 0 && is_absent);
            if let Some(reason) = self.lacks(factory, level).filter(|_| takes_part) {
                let mut record = row::empty_record(row, documents, factory, level);
                record.status = Status::Skipped(reason);
                self.report.records.push(record);
            }
        }
    }

    fn measure_row(
        &mut self,
        row: &Row,
        documents: &Documents,
        level: Durability,
        stations: &mut [&mut Station<'a>],
    ) -> Result<Vec<Record>> {
        let load1 = machine::load1();
        let Options { tries, budget, mode, .. } = *self.options;
        let limits = Limits { tries, budget, mode };
        let mut lanes: Vec<Lane> = stations.iter().map(|_| Lane::new(limits)).collect();
        let mut buffer = Vec::new();
        let mut limit = Sampler::of(row.operation, level, documents, self.folder)?;
        let mut limit_samples = Vec::new();
        loop {
            if self.options.is_stopped() {
                return Ok(Vec::new());
            }
            let mut turn: Vec<usize> =
                (0..lanes.len()).filter(|&at| !lanes[at].is_done()).collect();
            if turn.is_empty() {
                break;
            }
            self.random.shuffle(&mut turn);
            for at in turn {
                stations[at].turn(row, documents, &mut lanes[at], &mut buffer)?;
            }
            if let Some(limit) = &mut limit {
                limit_samples.push(limit.sample()?.wall_us);
            }
        }
        let mut records = Vec::new();
        for (station, lane) in stations.iter_mut().zip(lanes) {
            let mut record = station.conclude(row, documents, level, lane, &mut buffer)?;
            record.load1 = load1;
            record.mode = mode;
            record.limit.clone_from(&limit_samples);
            if row.operation == Operation::Import && record.status.has_number() {
                record.disk_bytes = self.fresh_disk_bytes(station, documents, level)?;
            }
            if record.status == Status::Ok && machine::is_noisy(load1) {
                record.status = Status::Noisy;
            }
            records.push(record);
        }
        self.compare(&mut records);
        Ok(records)
    }

    /// The bytes of a closed store that did nothing but one import; those of a used store tell of its
    /// past too.
    fn fresh_disk_bytes(
        &self,
        station: &Station<'_>,
        documents: &Documents,
        level: Durability,
    ) -> Result<Option<u64>> {
        let folder = tempfile::tempdir_in(self.folder).map_err(|error| io(error, self.folder))?;
        let mut system = station.factory.open(folder.path(), level)?;
        let _: Effect = system.import(&documents.text(State::Items))?;
        system.settle()?;
        let in_memory = system.memory_bytes();
        // A journal or a log beside the data is in use only while the store is open.
        drop(system);
        let bytes = in_memory.unwrap_or_else(|| process::disk_bytes(folder.path()));
        Ok((bytes > 0).then_some(bytes))
    }

    /// New processes that open a store, and readers beside a writer.
    fn measure_handles(&mut self, documents: &Documents) -> Result<()> {
        let options = self.options;
        let scratch = || tempfile::tempdir_in(self.folder).map_err(|error| io(error, self.folder));
        let turn = options.readers_turn;
        for &factory in self.factories.iter().filter(|factory| factory.kind() == Kind::Backend) {
            let name = factory.name();
            if options.is_stopped() {
                break;
            }
            let offered = |level: &&Durability| factory.lacks(**level).is_none();
            for &level in options.durability.iter().filter(offered) {
                if options.children && options.wants(COLD) {
                    self.progress.set_message(format!("{name}, {}: new processes", level.name()));
                    let records = cold::measure(documents, factory, level, scratch()?.path())?;
                    self.report.extras.extend(records);
                }
            }
            let first = options.durability.iter().find(offered);
            if let Some(&level) = first.filter(|_| !turn.is_zero() && options.wants(READERS)) {
                self.progress.set_message(format!("{name}: readers beside a writer"));
                let folder = scratch()?;
                let records = readers::measure(documents, factory, level, turn, folder.path())?;
                self.report.extras.extend(records);
            }
        }
        Ok(())
    }

    fn measure_extras(&mut self) -> Result<()> {
        if self.options.wants("data") {
            for path in &self.options.data {
                self.progress.set_message(path.display().to_string());
                let records = files::measure(path, &self.factories, self.folder)?;
                self.report.extras.extend(records);
            }
        }
        if self.options.wants("import-memory") {
            for &size in &self.options.memory_sizes {
                self.progress.set_message(format!("{size} items: peak memory of an import"));
                self.report.extras.extend(memory::measure(size, &self.factories, self.folder)?);
            }
        }
        if self.options.claims && self.options.wants("json-file") {
            for &size in self.options.sizes.iter().filter(|size| **size <= USUAL) {
                self.progress.set_message(format!("{size} items: a JSON file as a store"));
                self.report.extras.extend(json_file::measure(size, &self.factories, self.folder)?);
            }
        }
        Ok(())
    }

    fn compare(&self, records: &mut [Record]) {
        let baseline = records.iter().find(|record| record.system == self.options.baseline);
        let Some(baseline) = baseline.cloned() else { return };
        for record in records {
            record.ratio = record.advantage(&baseline, self.report.context.order_seed);
        }
    }

    /// Counts the syncs of one commit of each row, without a clock.
    fn count_syncs(
        &mut self,
        documents: &Documents,
        level: Durability,
        stations: &mut [Station<'a>],
    ) -> Result<()> {
        let Some(mut tracer) = syncs::Tracer::attach(self.folder) else {
            self.report.syncs_counted = false;
            return Ok(());
        };
        let mut buffer = Vec::new();
        for row in self.rows.iter().filter(|row| row.operation.commits()) {
            // A server syncs in a process of its own, which nobody watches.
            for station in stations.iter_mut().filter(|station| station.factory.label().is_none()) {
                let test = row::test_name(row, level);
                let key = (test, documents.size(), station.factory.name().to_owned());
                if self.report.measured(&key).is_some_and(row::is_quick) {
                    station.count(row, documents, &mut tracer, &key.0, &mut buffer)?;
                }
            }
        }
        for ((test, system), count) in tracer.finish()? {
            if let Some(record) = self.report.measured_mut(&(test, documents.size(), system)) {
                record.syncs = Some(count);
                if level == Durability::Durable && count == 0 {
                    record.status = Status::VoidDurability;
                }
            }
        }
        Ok(())
    }
}

fn versions(factories: &[&dyn Factory]) -> Map<String, Value> {
    let mut versions: Map<String, Value> = [
        ("spinney", env!("CARGO_PKG_VERSION")),
        ("rustc", env!("LAB_RUSTC")),
        ("opt-level", env!("LAB_OPT_LEVEL")),
        ("rustflags", env!("LAB_RUSTFLAGS")),
        ("allocator", "system"),
        ("serde_json", SERDE_JSON_VERSION),
    ]
    .into_iter()
    .map(|(name, version)| (name.to_owned(), version.into()))
    .collect();
    for factory in factories {
        versions.extend(factory.versions().into_iter().map(|(name, text)| (name, text.into())));
    }
    versions
}

fn settings(factories: &[&dyn Factory], options: &Options) -> Vec<Setting> {
    let mut settings = Vec::new();
    for factory in factories {
        let levels = options.durability.iter().filter(|&&level| factory.lacks(level).is_none());
        settings.push(Setting {
            system: factory.name().to_owned(),
            label: factory.label().map(str::to_owned),
            kind: factory.kind(),
            design: factory.design().to_owned(),
            levels: levels.map(|&level| (level, factory.settings(level))).collect(),
        });
    }
    settings
}

fn progress(options: &Options, rows: usize) -> ProgressBar {
    // Indicatif draws nothing where stderr is no terminal.
    let target = match options.progress {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    };
    let style = ProgressStyle::with_template("{bar:24} {pos}/{len} {elapsed}, {eta} left  {msg}");
    let steps = options.sizes.len() * options.durability.len() * rows;
    ProgressBar::with_draw_target(Some(steps as u64), target)
        .with_style(style.expect("the template is valid"))
}

fn io(error: std::io::Error, path: &Path) -> Error {
    Error::io(format!("cannot write `{}`", path.display())).with_source(error)
}
