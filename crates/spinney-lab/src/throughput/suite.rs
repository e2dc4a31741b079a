//! The suite as the runner has it: which rows run at which sizes and levels.

use std::path::Path;
use std::rc::Rc;

use spinney_core::Result;

use super::bench::Bench;
use super::item::Item;
use super::rows::{Operation, ROWS, Row, SIZES};
use crate::limits::{self, Sampler};
use crate::options::{Options, Scope};
use crate::record::Record;
use crate::suite::{self, Scene};
use crate::system::{Durability, Factory};

/// The suite, for what is asked of it.
pub struct Suite<'a> {
    options: &'a Options,
    rows: Vec<Row>,
    item: Rc<Item>,
}

impl<'a> Suite<'a> {
    /// The rows that are asked for.
    ///
    /// # Errors
    /// `InvalidInput` for a name that is no row.
    pub fn new(options: &'a Options) -> Result<Suite<'a>> {
        let mut rows = options.choose(ROWS.to_vec())?;
        for row in &mut rows {
            row.iterations_max = options.iterations_max.unwrap_or(row.iterations_max);
        }
        if options.mode == crate::options::Mode::Compat {
            rows.retain(|row| matches!(row.operation, Operation::Push | Operation::Length));
        }
        Ok(Suite { options, rows, item: Rc::new(Item::new(0, options.fill)) })
    }
}

impl suite::Suite for Suite<'_> {
    type Row = Row;

    fn name(&self) -> &'static str {
        "throughput"
    }

    fn rows(&self) -> Vec<Row> {
        self.rows.clone()
    }

    fn sizes(&self) -> Vec<usize> {
        match self.options.sizes.is_empty() {
            true => SIZES.to_vec(),
            false => self.options.sizes.clone(),
        }
    }

    fn left_out(&self) -> Vec<String> {
        let sizes = self.sizes();
        let missing = SIZES.iter().filter(|size| !sizes.contains(size));
        let mut left_out: Vec<String> =
            missing.map(|size| format!("items of {size} texts were not asked for")).collect();
        left_out.extend(suite::rows_left_out(self.rows.len(), ROWS.len(), suite::NOT_ASKED_FOR));
        left_out
    }

    fn disk_bytes(&self, size: usize) -> u64 {
        /// Of the store as text: pages, a journal, and what waits to be given back.
        const TIMES: u64 = 6;
        let pushes = self.rows.iter().filter(|row| suite::Row::writes(*row));
        let pushes = pushes.map(|row| row.iterations(size)).max().unwrap_or(1);
        (pushes * (9 * size + 2)) as u64 * TIMES
    }

    fn enter(&mut self, size: usize) -> Result<()> {
        self.item = Rc::new(Item::new(size, self.options.fill));
        Ok(())
    }

    fn limits(&self, scene: &Scene<'_>) -> Result<Vec<Record>> {
        let mut text = Vec::new();
        self.item.write_json(&mut text);
        limits::measure(&text, self.item.len(), scene.folder)
    }

    fn scope(&self, row: &Row, _at: usize) -> Scope {
        match !self.options.sizes.is_empty() || row.sizes.contains(&self.item.len()) {
            true => Scope::All,
            false => Scope::Nothing,
        }
    }

    fn sampler(&self, row: &Row, level: Durability, scene: &Scene<'_>) -> Result<Option<Sampler>> {
        match suite::Row::writes(row) && level == Durability::Durable {
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
        let folder = folder.to_owned();
        let open = Box::new(move || factory.array(&folder, level));
        Ok(Box::new(Bench::new(open, Rc::clone(&self.item), self.options.mode)?))
    }
}
