//! The suite as the runner has it: which rows run at which sizes and levels, beside which limits, and what
//! is measured besides them.

use std::path::Path;
use std::rc::Rc;

use spinney_core::{Error, Result};

use super::rows::Access;
use super::{Bench, Documents, Operation, ROWS, Row, document::State};
use crate::documents::source;
use crate::limits::{self, Sampler};
use crate::options::{LARGE, Mode, Options, Rules, SMALL, Scope, USUAL, unknown_row};
use crate::record::Record;
use crate::suite::{self, Scene};
use crate::system::{Durability, Effect, Factory, Kind};
use crate::{cold, files, json_file, memory, readers};

/// Row names besides those of the table: JSON files to import, peak memory of imports, JSON files as
/// stores, new processes, and readers beside a writer.
const EXTRAS: [&str; 5] = ["data", "import-memory", "json-file", COLD, READERS];
/// Rows about new processes that open a store.
const COLD: &str = "A5";
/// Rows about readers beside a writer.
const READERS: &str = "A7";

/// The suite, for what is asked of it.
pub struct Suite<'a> {
    options: &'a Options,
    rows: Vec<Row>,
    documents: Rc<Documents>,
}

impl<'a> Suite<'a> {
    /// The rows that are asked for.
    ///
    /// # Errors
    /// `InvalidInput` for a name that is no row, and for rows that need the whole suite.
    pub fn new(options: &'a Options) -> Result<Suite<'a>> {
        let rows = selected_rows(options)?;
        let is_told = |row: &&Row| row.operation == Operation::TellSubscribers;
        if let Some(row) = rows.iter().find(is_told).filter(|_| options.rules == Rules::None) {
            return Err(Error::invalid_input(format!(
                "the row `{}` is about subscribers, which only the suite has; write `bench datastore`",
                row.id
            )));
        }
        if options.wants("data") {
            // They are measured last, and a wrong one should not end a run of half an hour.
            options.data.iter().try_for_each(|path| source::check(path))?;
        }
        Ok(Suite { options, rows, documents: Rc::new(Documents::new(0)) })
    }

    fn is_in_later_levels(&self, row: &Row) -> bool {
        let options = self.options;
        options.whole_suite
            || row.access == Access::Open && (options.all_levels || row.operation.is_single())
    }
}

impl suite::Suite for Suite<'_> {
    type Row = Row;

    fn name(&self) -> &'static str {
        "datastore"
    }

    fn rows(&self) -> Vec<Row> {
        self.rows.clone()
    }

    fn sizes(&self) -> Vec<usize> {
        let is_needed =
            !self.rows.is_empty() || [COLD, READERS].iter().any(|extra| self.options.wants(extra));
        if is_needed { self.options.sizes.clone() } else { Vec::new() }
    }

    fn left_out(&self) -> Vec<String> {
        let options = self.options;
        let mut left_out = Vec::new();
        let why = match options.rows.is_empty() && !options.whole_suite {
            true => "are in `bench datastore` alone",
            false => suite::NOT_ASKED_FOR,
        };
        left_out.extend(suite::rows_left_out(self.rows.len(), ROWS.len(), why));
        if options.durability.len() > 1 && !options.whole_suite {
            let level = options.durability[0].name();
            let which = if options.all_levels { "`cached`" } else { "`cached` and bulk" };
            left_out.push(format!("{which} writes at levels other than {level}"));
        }
        for size in [1_000, 10_000, 100_000, 1_000_000] {
            if !options.sizes.contains(&size) {
                left_out.push(format!("N = {size} was not asked for"));
            }
        }
        left_out
    }

    /// A store holds the items several times: what was there before each commit stays in its log.
    fn disk_bytes(&self, size: usize) -> u64 {
        const ITEM_BYTES: u64 = 1_000;
        size as u64 * ITEM_BYTES
    }

    fn enter(&mut self, size: usize) -> Result<()> {
        self.documents = Rc::new(Documents::new(size));
        Ok(())
    }

    fn limits(&self, scene: &Scene<'_>) -> Result<Vec<Record>> {
        match self.options.claims {
            // Promises stand against the limits that are sampled between tries.
            true => Ok(Vec::new()),
            false => {
                let text = self.documents.text(State::Items);
                limits::measure(&text, self.documents.size(), scene.folder)
            }
        }
    }

    /// Beside the peers, alone, or not at all.
    fn scope(&self, row: &Row, at: usize) -> Scope {
        if at > 0 && row.operation.commits() && !self.is_in_later_levels(row) {
            return Scope::Nothing;
        }
        let is_leaf = row.operation.is_single() && row.operation.start() != State::Ordered;
        match self.documents.size() {
            _ if !self.options.claims => Scope::All,
            _ if row.access == Access::Kept => Scope::Nothing,
            SMALL if is_leaf => Scope::Backends,
            USUAL => Scope::All,
            LARGE if is_leaf || matches!(row.operation, Operation::Leaf | Operation::Element) => {
                Scope::Backends
            }
            _ => Scope::Nothing,
        }
    }

    /// Of durable commits of one entry, texts in and texts out.
    fn sampler(&self, row: &Row, level: Durability, scene: &Scene<'_>) -> Result<Option<Sampler>> {
        let is_durable = level == Durability::Durable;
        let text = || self.documents.text(State::Items);
        Ok(match row.operation {
            Operation::Import if is_durable => Some(Sampler::Parse(text())),
            Operation::Export => Some(Sampler::print(&text())),
            Operation::RemoveTree | Operation::RemoveItems if is_durable => {
                Some(Sampler::syncs(scene.folder)?)
            }
            operation if is_durable && operation.is_single() => Some(Sampler::syncs(scene.folder)?),
            _ => None,
        })
    }

    fn open<'f>(
        &self,
        factory: &'f dyn Factory,
        folder: &Path,
        level: Durability,
    ) -> Result<Box<dyn suite::Bench<Row = Row> + 'f>> {
        let system = factory.open(folder, level)?;
        let documents = Rc::clone(&self.documents);
        Ok(Box::new(Bench::new(system, documents, self.options.rules)?))
    }

    fn complete(
        &self,
        row: &Row,
        factory: &dyn Factory,
        scene: &Scene<'_>,
        record: &mut Record,
    ) -> Result<()> {
        if row.operation == Operation::Import {
            record.disk_bytes = suite::fresh_disk_bytes(scene, |folder| {
                let mut system = factory.open(folder, record.durability)?;
                let _: Effect = system.import(&self.documents.text(State::Items))?;
                system.settle()?;
                Ok(system.memory_bytes())
            })?;
        }
        Ok(())
    }

    /// New processes that open a store, and readers beside a writer.
    fn beside(&self, scene: &Scene<'_>) -> Result<Vec<Record>> {
        let (options, documents) = (self.options, &*self.documents);
        let turn = options.readers_turn;
        let mut records = Vec::new();
        for &factory in scene.factories.iter().filter(|factory| factory.kind() == Kind::Backend) {
            let name = factory.name();
            if options.is_stopped() {
                break;
            }
            let offered = |level: &&Durability| factory.lacks(**level).is_none();
            for &level in options.durability.iter().filter(offered) {
                if options.children && options.wants(COLD) {
                    scene.progress.set_message(format!("{name}, {}: new processes", level.name()));
                    let folder = scene.scratch()?;
                    records.extend(cold::measure(documents, factory, level, folder.path())?);
                }
            }
            let first = options.durability.iter().find(offered);
            if let Some(&level) = first.filter(|_| !turn.is_zero() && options.wants(READERS)) {
                scene.progress.set_message(format!("{name}: readers beside a writer"));
                let folder = scene.scratch()?;
                records.extend(readers::measure(documents, factory, level, turn, folder.path())?);
            }
        }
        Ok(records)
    }

    fn extras(&self, scene: &Scene<'_>) -> Result<Vec<Record>> {
        let options = self.options;
        let mut records = Vec::new();
        if options.wants("data") {
            for path in &options.data {
                scene.progress.set_message(path.display().to_string());
                records.extend(files::measure(path, scene.factories, scene.folder)?);
            }
        }
        if options.wants("import-memory") {
            for &size in &options.memory_sizes {
                scene.progress.set_message(format!("{size} items: peak memory of an import"));
                records.extend(memory::measure(size, scene.factories, scene.folder)?);
            }
        }
        if options.claims && options.wants("json-file") {
            for &size in options.sizes.iter().filter(|size| **size <= USUAL) {
                scene.progress.set_message(format!("{size} items: a JSON file as a store"));
                records.extend(json_file::measure(size, scene.factories, scene.folder)?);
            }
        }
        Ok(records)
    }
}

/// The rows that are asked for, in the order of the suite.
///
/// # Errors
/// `InvalidInput` for a name that is no row.
fn selected_rows(options: &Options) -> Result<Vec<Row>> {
    let names = |row: &Row, name: &str| row.id == name || row.number == Some(name);
    let is_known = |name: &str| EXTRAS.contains(&name) || ROWS.iter().any(|row| names(row, name));
    if let Some(name) = options.rows.iter().find(|name| !is_known(name)) {
        let ids: Vec<&str> = ROWS.iter().map(|row| row.id).chain(EXTRAS).collect();
        return Err(unknown_row(name, &ids));
    }
    let asked = |row: &Row| match options.rows.is_empty() {
        true => options.whole_suite || !row.is_long,
        false => options.rows.iter().any(|name| names(row, name)),
    };
    let mut rows: Vec<Row> = ROWS.iter().filter(|row| asked(row)).copied().collect();
    if options.mode == Mode::Compat {
        rows.retain(|row| row.published().is_some());
        rows.sort_by_key(|row| row.published());
    }
    Ok(rows)
}
