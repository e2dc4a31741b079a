//! The suite as the runner has it: which rows run at which sizes and levels.

use std::path::Path;
use std::rc::Rc;

use spinney_core::Result;

use super::bench::Bench;
use super::rows::{Batch, Operation, Row, rows};
use super::set::Set;
use super::source::Source;
use crate::files;
use crate::limits::{self, Sampler};
use crate::options::{Mode, Options, Scope};
use crate::record::Record;
use crate::suite::{self, Scene};
use crate::system::{Durability, Factory};

/// Sizes that a run without `--sizes` has, of those that were published.
const USUAL_MAX: usize = 50_000;

/// The suite, for what is asked of it.
pub struct Suite<'a> {
    options: &'a Options,
    sources: Vec<Source>,
    rows: Vec<Row>,
    sets: Rc<Vec<Set>>,
    size: usize,
}

impl<'a> Suite<'a> {
    /// The rows that are asked for.
    ///
    /// # Errors
    /// `InvalidInput` for a name that is no row.
    pub fn new(options: &'a Options) -> Result<Suite<'a>> {
        let sources = match &*options.data {
            [] => vec![Source::hello(), Source::person(), Source::kv()],
            files => {
                let seed = options.seed.unwrap_or_default();
                files.iter().map(|path| Source::file(path, seed)).collect::<Result<_>>()?
            }
        };
        let mut rows = options.choose(rows(&sources))?;
        if options.mode == Mode::Compat {
            rows.retain(|row| row.operation.is_published());
        }
        Ok(Suite { options, sources, rows, sets: Rc::default(), size: 0 })
    }

    /// Whether a row is measured with so many documents.
    fn has(&self, row: &Row, size: usize) -> bool {
        let source = &self.sources[row.source];
        match self.options.sizes.is_empty() {
            true => {
                source.sizes.contains(&size) && (size <= USUAL_MAX || !self.options.data.is_empty())
            }
            false => self.options.sizes.contains(&size),
        }
    }
}

impl suite::Suite for Suite<'_> {
    type Row = Row;

    fn name(&self) -> &'static str {
        "documents"
    }

    fn rows(&self) -> Vec<Row> {
        self.rows.clone()
    }

    fn sizes(&self) -> Vec<usize> {
        if !self.options.sizes.is_empty() {
            return self.options.sizes.clone();
        }
        let published = self.sources.iter().flat_map(|source| &source.sizes);
        let mut sizes: Vec<usize> = published.copied().collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes.retain(|&size| self.rows.iter().any(|row| self.has(row, size)));
        sizes
    }

    fn left_out(&self) -> Vec<String> {
        let sizes = self.sizes();
        let missing = |source: &Source| {
            let missing = source.sizes.iter().filter(|size| !sizes.contains(size));
            let name = source.name.clone();
            missing.map(move |size| format!("`{name}` x {size} was not asked for")).collect()
        };
        let mut left_out: Vec<String> =
            self.sources.iter().flat_map(|source| -> Vec<String> { missing(source) }).collect();
        let all = rows(&self.sources).len();
        left_out.extend(suite::rows_left_out(self.rows.len(), all, suite::NOT_ASKED_FOR));
        left_out
    }

    /// A store holds the documents several times, whole and in the log of each level.
    fn disk_bytes(&self, size: usize) -> u64 {
        const DOCUMENT_BYTES: u64 = 5_000;
        size as u64 * DOCUMENT_BYTES
    }

    fn enter(&mut self, size: usize) -> Result<()> {
        let sets = self.sources.iter().map(|source| {
            Set::new(source.clone(), size, self.options.vary && !source.leaf.is_empty())
        });
        self.sets = Rc::new(sets.collect::<Result<_>>()?);
        self.size = size;
        Ok(())
    }

    fn limits(&self, scene: &Scene<'_>) -> Result<Vec<Record>> {
        let mut lines = Vec::new();
        let set = self.rows.iter().find(|row| self.has(row, self.size)).map(|row| row.source);
        for number in 1..=set.map_or(0, |_| self.size) {
            let first = if number == 1 { "[" } else { "," };
            lines.extend_from_slice(first.as_bytes());
            let text = self.sets[set.unwrap_or_default()].text_of(number, false);
            lines.extend_from_slice(text.as_bytes());
        }
        lines.push(b']');
        limits::measure(&lines, self.size, scene.folder)
    }

    fn scope(&self, row: &Row, _at: usize) -> Scope {
        if self.has(row, self.size) { Scope::All } else { Scope::Nothing }
    }

    /// Of durable commits of one document.
    fn sampler(&self, row: &Row, level: Durability, scene: &Scene<'_>) -> Result<Option<Sampler>> {
        let is_single = row.operation.batch() == Some(Batch::One);
        match is_single && level == Durability::Durable {
            true => Sampler::syncs(scene.folder).map(Some),
            false => Ok(None),
        }
    }

    fn open<'f>(
        &self,
        factory: &'f dyn Factory,
        folder: &Path,
        level: Durability,
    ) -> Result<Box<dyn suite::Bench<Row = Row> + 'f>> {
        Ok(Box::new(Bench::new(factory.collection(folder, level)?, Rc::clone(&self.sets))))
    }

    /// The files as they are, into stores and out of them again.
    fn extras(&self, scene: &Scene<'_>) -> Result<Vec<Record>> {
        let mut records = Vec::new();
        for path in &self.options.data {
            scene.progress.set_message(path.display().to_string());
            records.extend(files::measure(path, scene.factories, scene.folder)?);
        }
        Ok(records)
    }

    fn complete(
        &self,
        row: &Row,
        factory: &dyn Factory,
        scene: &Scene<'_>,
        record: &mut Record,
    ) -> Result<()> {
        if self.options.mode == Mode::Compat {
            record.samples.iter_mut().for_each(|us| *us -= *us % 1_000.0);
        }
        if let Operation::Set(by, Batch::All) = row.operation {
            record.disk_bytes = suite::fresh_disk_bytes(scene, |folder| {
                let mut collection = factory.collection(folder, record.durability)?;
                collection.set(by, &self.sets[row.source], 1..=self.size)?;
                collection.settle()?;
                Ok(collection.memory_bytes())
            })?;
        }
        Ok(())
    }
}
