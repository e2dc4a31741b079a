//! The runner: systems take turns in shuffled order, row by row, level by level, size by size.

mod preparation;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use spinney_core::{Error, ErrorKind, Result};

use crate::lane::{Lane, Limits};
use crate::options::{Options, Scope};
use crate::record::{Context, Record, Status};
use crate::recorder::{self, Recorder};
use crate::report::{Key, Report};
use crate::row::{self, Station};
use crate::stores_folder::StoresFolder;
use crate::suite::{Name, Row, Scene, Suite};
use crate::syncs;
use crate::system::{Durability, Factory, Kind};
use crate::{datastore, documents, machine, throughput};
use preparation::{disk_bytes, progress, settings, versions};

/// Measures what `options` asks for on those of `systems` that it names.
///
/// # Errors
/// `InvalidInput` for names that do not exist and for a write try that changed nothing; `Io` when
/// the folder or the records cannot be written; whatever a system reports. A wrong result is no
/// error but `void:hash` in the report.
pub fn run(options: &Options, systems: Vec<Box<dyn Factory>>) -> Result<Report> {
    let factories = options.selected_systems(&systems)?;
    match options.suite {
        Name::Datastore => measure(datastore::Suite::new(options)?, options, &factories),
        Name::Documents => measure(documents::Suite::new(options)?, options, &factories),
        Name::Throughput => measure(throughput::Suite::new(options)?, options, &factories),
    }
}

fn measure<S: Suite>(suite: S, options: &Options, factories: &[&dyn Factory]) -> Result<Report> {
    let rows = suite.rows();
    let parent = options.dir.clone().unwrap_or_else(|| PathBuf::from("target/spinney-lab"));
    let stores_folder = StoresFolder::new(&parent, disk_bytes(&suite, factories))?;
    let mut context = Context {
        suite: suite.name().to_owned(),
        versions: versions(factories),
        machine: machine::describe(stores_folder.path()),
        order_seed: options.seed.unwrap_or_else(|| fastrand::u64(..1 << 53)),
        baseline: options.baseline.clone(),
    };
    let resumed = match &options.records {
        Some(path) if options.resume => recorder::resume(path, &context, options.mode)?,
        _ => None,
    };
    if let Some(resumed) = &resumed {
        context.order_seed = resumed.context.order_seed;
    }
    let settings = settings(factories, suite.name(), options);
    let mut report = Report::new(context, &parent, settings, options);
    report.left_out = suite.left_out();
    if let Some(resumed) = resumed {
        (report.records, report.extras) = (resumed.records, resumed.extras);
    }
    let recorder = options.records.as_ref();
    let recorder = recorder.map(|path| Recorder::new(path, &report.json_lines())).transpose()?;
    let progress = progress(options, suite.sizes().len(), rows.len());
    let scene = Scene { options, factories, folder: stores_folder.path(), progress: &progress };
    let done = report.records.iter().chain(&report.extras).map(key).collect();
    let mut runner =
        Runner { report, recorder, done, refused: Vec::new(), scene: &scene, suite, rows };
    match runner.measure_all() {
        // What stops a run stops servers and children, too, which then fail.
        _ if options.is_stopped() => {
            runner.report.left_out.push("what comes after the run was stopped".to_owned());
        }
        measured => measured?,
    }
    progress.finish_and_clear();
    runner.rewrite()?;
    Ok(runner.report)
}

struct Runner<'a, S: Suite> {
    suite: S,
    rows: Vec<S::Row>,
    scene: &'a Scene<'a>,
    report: Report,
    recorder: Option<Recorder>,
    /// What an earlier part of the run has measured.
    done: HashSet<Key>,
    /// System, level and reason, where a store refused the level when it was opened.
    refused: Vec<(String, Durability, String)>,
}

impl<'a, S: Suite> Runner<'a, S> {
    fn measure_all(&mut self) -> Result<()> {
        let options = self.scene.options;
        for size in self.suite.sizes().into_iter().take_while(|_| !options.is_stopped()) {
            self.measure_size(size)?;
        }
        match options.is_stopped() {
            true => Ok(()),
            false => {
                let extras = self.suite.extras(self.scene)?;
                self.keep_extras(extras)
            }
        }
    }

    fn measure_size(&mut self, size: usize) -> Result<()> {
        let scene = self.scene;
        self.suite.enter(size)?;
        scene.progress.set_message(format!("{size} items: limits"));
        let limits = self.suite.limits(scene)?;
        if !limits.iter().all(|limit| self.done.contains(&key(limit))) {
            self.keep(limits)?;
        }
        for at in 0..scene.options.durability.len() {
            if scene.options.is_stopped() {
                return Ok(());
            }
            self.measure_level(size, at)?;
        }
        match self.report.extras.iter().any(|extra| extra.size == size) {
            true => Ok(()),
            false => {
                let extras = self.suite.beside(scene)?;
                self.keep_extras(extras)
            }
        }
    }

    /// Adds records, in the place of those that have their names.
    fn keep(&mut self, records: Vec<Record>) -> Result<()> {
        let lines = self.report.lines(&records);
        replace(&mut self.report.records, records);
        self.recorder.as_mut().map_or(Ok(()), |recorder| recorder.append(&lines))
    }

    fn keep_extras(&mut self, extras: Vec<Record>) -> Result<()> {
        let lines = self.report.lines(&extras);
        replace(&mut self.report.extras, extras);
        self.recorder.as_mut().map_or(Ok(()), |recorder| recorder.append(&lines))
    }

    /// Writes all records anew: some know more than when they were added.
    fn rewrite(&mut self) -> Result<()> {
        let report = &self.report;
        self.recorder.as_mut().map_or(Ok(()), |recorder| recorder.rewrite(&report.json_lines()))
    }

    /// Reads run at the first level that a system offers, writes at each.
    fn measure_level(&mut self, size: usize, at: usize) -> Result<()> {
        let Scene { options, progress, .. } = *self.scene;
        let level = options.durability[at];
        let folder = self.scene.folder.join(format!("{size}-{}", level.name()));
        let mut stations = self.open(&folder, level)?;
        for row in self.rows.clone() {
            progress.inc(1);
            if options.is_stopped() {
                break;
            }
            let scope = self.suite.scope(&row, at);
            if scope == Scope::Nothing {
                continue;
            }
            self.skip_unable(&row, size, at)?;
            let takes_part = |factory: &dyn Factory| match row.commits() {
                _ if scope == Scope::Backends && factory.kind() == Kind::Peer => false,
                true => true,
                false => self.is_first(factory, at),
            };
            let mut chosen: Vec<&mut Station<'a, S::Row>> =
                stations.iter_mut().filter(|station| takes_part(station.factory)).collect();
            let name = |station: &&mut Station<'a, S::Row>| {
                (row::test_name(&row, level), size, station.factory.name().to_owned())
            };
            if !chosen.iter().all(|station| self.done.contains(&name(station))) {
                progress.set_message(format!("{size} items, {}: {}", level.name(), row.id()));
                let records = self.measure_row(&row, size, level, &mut chosen)?;
                self.keep(records)?;
            }
        }
        if options.count_syncs && !options.is_stopped() {
            progress.set_message(format!("{size} items: counting syncs"));
            self.count_syncs(size, level, &mut stations)?;
            self.rewrite()?;
        }
        drop(stations);
        std::fs::remove_dir_all(&folder).map_err(|error| io(error, &folder))
    }

    fn open(&mut self, folder: &Path, level: Durability) -> Result<Vec<Station<'a, S::Row>>> {
        std::fs::create_dir_all(folder).map_err(|error| io(error, folder))?;
        let mut stations = Vec::new();
        for &factory in self.scene.factories {
            if factory.lacks(level).is_some() {
                continue;
            }
            let folder = folder.join(factory.name());
            std::fs::create_dir_all(&folder).map_err(|error| io(error, &folder))?;
            match self.suite.open(factory, &folder, level) {
                Ok(bench) => stations.push(Station { factory, bench, folder }),
                // A server tells only when it is asked.
                Err(error) if error.kind() == ErrorKind::Unsupported => {
                    self.refused.push((factory.name().to_owned(), level, error.to_string()));
                }
                Err(error) => return Err(error.at(format!("`{}`", factory.name()))),
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
        self.scene.options.durability[..at]
            .iter()
            .all(|&level| self.lacks(factory, level).is_some())
    }

    /// Notes who cannot commit at a level, and once who cannot even be read.
    fn skip_unable(&mut self, row: &S::Row, size: usize, at: usize) -> Result<()> {
        let levels = &self.scene.options.durability;
        let level = levels[at];
        for &factory in self.scene.factories {
            let is_absent = levels.iter().all(|&level| self.lacks(factory, level).is_some());
            let takes_part = row.commits() || (at == 0 && is_absent);
            if let Some(reason) = self.lacks(factory, level).filter(|_| takes_part) {
                let mut record = row::empty_record(row, size, factory, level);
                record.status = Status::Skipped(reason);
                if !self.done.contains(&key(&record)) {
                    self.keep(vec![record])?;
                }
            }
        }
        Ok(())
    }

    fn measure_row(
        &mut self,
        row: &S::Row,
        size: usize,
        level: Durability,
        stations: &mut [&mut Station<'a, S::Row>],
    ) -> Result<Vec<Record>> {
        let load1 = machine::load1();
        let Options { tries, budget, mode, .. } = *self.scene.options;
        let limits = Limits { tries, budget, mode };
        let mut lanes: Vec<Lane> = stations.iter().map(|_| Lane::new(limits)).collect();
        let mut limit = self.suite.sampler(row, level, self.scene)?;
        let mut limit_samples = Vec::new();
        let mut random = self.order(row, size, level);
        loop {
            if self.scene.options.is_stopped() {
                return Ok(Vec::new());
            }
            let mut turn: Vec<usize> =
                (0..lanes.len()).filter(|&at| !lanes[at].is_done()).collect();
            if turn.is_empty() {
                break;
            }
            random.shuffle(&mut turn);
            for at in turn {
                stations[at].turn(row, &mut lanes[at])?;
            }
            if let Some(limit) = &mut limit {
                limit_samples.push(limit.sample()?.wall_us);
            }
        }
        let mut records = Vec::new();
        for (station, lane) in stations.iter_mut().zip(lanes) {
            let mut record = station.conclude(row, size, level, lane)?;
            record.load1 = load1;
            record.mode = mode;
            record.limit.clone_from(&limit_samples);
            if record.status.has_number() {
                self.suite.complete(row, station.factory, self.scene, &mut record)?;
            }
            if record.status == Status::Ok && machine::is_noisy(load1) {
                record.status = Status::Noisy;
            }
            records.push(record);
        }
        self.compare(&mut records);
        Ok(records)
    }

    /// The order of turns in a row depends on the seed and the row alone, so that a resumed run has the same.
    fn order(&self, row: &S::Row, size: usize, level: Durability) -> fastrand::Rng {
        let seed = self.report.context.order_seed;
        let name = format!("{seed} {size} {}", row::test_name(row, level));
        let digest = Sha256::digest(name.as_bytes());
        let bytes = digest[..8].try_into().expect("a digest has 32 bytes");
        fastrand::Rng::with_seed(u64::from_le_bytes(bytes))
    }

    fn compare(&self, records: &mut [Record]) {
        let baseline = records.iter().find(|record| record.system == self.scene.options.baseline);
        let Some(baseline) = baseline.cloned() else { return };
        for record in records {
            record.ratio = record.advantage(&baseline, self.report.context.order_seed);
        }
    }

    /// Counts the syncs and system calls of one commit of each row, without a clock.
    fn count_syncs(
        &mut self,
        size: usize,
        level: Durability,
        stations: &mut [Station<'a, S::Row>],
    ) -> Result<()> {
        let servers: Vec<u32> =
            stations.iter().flat_map(|station| station.bench.processes()).collect();
        let Some(mut tracer) = syncs::Tracer::attach(self.scene.folder, &servers) else {
            self.report.syncs_counted = false;
            return Ok(());
        };
        for row in self.rows.iter().filter(|row| row.commits()) {
            for station in stations.iter_mut().filter(|station| is_watched(station)) {
                let test = row::test_name(row, level);
                let key = (test, size, station.factory.name().to_owned());
                if self.report.measured(&key).is_some_and(|it| row::is_quick(row, it)) {
                    station.count(row, &mut tracer, &key.0)?;
                }
            }
        }
        let counts = tracer.finish()?;
        for row in self.rows.iter().filter(|row| row.commits()) {
            let test = row::test_name(row, level);
            let commits = row.short().commits_of_try(size) as f64;
            let syncs_min = 1.0 / row.commits_of_sync() as f64;
            for station in stations.iter() {
                let name = station.factory.name();
                let Some(count) = counts.get(&(test.clone(), name.to_owned())) else { continue };
                let of_commit = [count.syncs, count.calls].map(|count| count as f64 / commits);
                self.report.count(&test, size, name, of_commit, syncs_min);
            }
        }
        Ok(())
    }
}

fn key(record: &Record) -> Key {
    (record.test.clone(), record.size, record.system.clone())
}

fn replace(all: &mut Vec<Record>, records: Vec<Record>) {
    let names: HashSet<Key> = records.iter().map(key).collect();
    all.retain(|record| !names.contains(&key(record)));
    all.extend(records);
}

/// Whether the processes that sync its commits are known; those of a server that was named are not.
fn is_watched<R: Row>(station: &Station<'_, R>) -> bool {
    !station.factory.transport().is_apart() || !station.bench.processes().is_empty()
}

fn io(error: std::io::Error, path: &Path) -> Error {
    Error::io(format!("cannot write `{}`", path.display())).with_source(error)
}
