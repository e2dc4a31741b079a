//! The whole suite as a table a system, in the form of the published ones: a column a level, each time
//! with how many times faster than the baseline it is.

use comfy_table::Cell;

use super::{line, number, table, title};
use crate::amount::{grouped, in_bytes, in_time, in_unit};
use crate::datastore::{ROWS, Row};
use crate::record::Record;
use crate::report::Report;
use crate::row::test_name;
use crate::statistics;
use crate::system::{Durability, Kind};

const LEVELS: [Durability; 3] = [Durability::Durable, Durability::Process, Durability::None];

impl Report {
    pub(super) fn write_systems(&self, size: usize, out: &mut String) {
        for setting in &self.settings {
            let levels: Vec<Durability> =
                LEVELS.into_iter().filter(|level| self.has_level(setting, *level)).collect();
            let name = self.shown_name(&setting.system);
            let mut header = vec!["", "row"];
            header.extend(levels.iter().map(|level| level.name()));
            let mut table = table(&header);
            for row in in_order() {
                let records: Vec<Option<&Record>> = levels
                    .iter()
                    .map(|level| self.at_level(row, size, &setting.system, *level))
                    .collect();
                if records.iter().all(Option::is_none) {
                    continue;
                }
                let dagger = if row.is_dagger() { " †" } else { "" };
                let mut cells = vec![
                    number(row.number.unwrap_or_default().to_owned()),
                    Cell::new(format!("{}{dagger}", row.id)),
                ];
                cells.extend(records.into_iter().map(|record| match record {
                    Some(_) => self.cell(record),
                    None => number(String::new()),
                }));
                table.add_row(cells);
            }
            if table.row_count() > 0 {
                title(out, &format!("N = {}, {name}", grouped(size)));
                line(out, &table.to_string());
            }
        }
    }

    /// A6: syncs and bytes written of one commit.
    pub(super) fn write_costs(&self, size: usize, out: &mut String) {
        let systems: Vec<&str> =
            self.systems(Kind::Backend).chain(self.systems(Kind::Peer)).collect();
        let mut header = vec!["A6", "level"];
        header.extend(&systems);
        let mut table = table(&header);
        for row in in_order().filter(|row| matches!(row.number, Some("13" | "15" | "16" | "A1"))) {
            for level in LEVELS {
                let cost = |system: &&str| self.at_level(row, size, system, level).map(cost);
                let costs: Vec<Option<String>> = systems.iter().map(cost).collect();
                if costs.iter().flatten().all(String::is_empty) {
                    continue;
                }
                let mut cells = vec![Cell::new(row.id), Cell::new(level.name())];
                cells.extend(costs.into_iter().map(|cost| number(cost.unwrap_or_default())));
                table.add_row(cells);
            }
        }
        if table.row_count() > 0 {
            title(out, &format!("N = {}, syncs and bytes written of one commit", grouped(size)));
            line(out, &table.to_string());
        }
    }

    /// What is measured besides the rows: new processes, and readers beside a writer.
    pub(super) fn write_handles(&self, size: usize, out: &mut String) {
        let records: Vec<&Record> =
            self.extras.iter().filter(|record| record.size == size).collect();
        if records.is_empty() {
            return;
        }
        title(
            out,
            &format!("N = {}, A5 and A7: processes, and readers beside a writer", grouped(size)),
        );
        let mut table = table(&["system", "row", "median", "p99", "slowest", ""]);
        for record in records {
            let time = |value: Option<f64>| {
                number(value.map_or("-".to_owned(), |value| in_unit(value, record.unit)))
            };
            let note = match record.status.is_void() {
                true => record.status.text(),
                false => record.notes.join("; "),
            };
            table.add_row([
                Cell::new(&record.system),
                Cell::new(&record.test),
                time(record.median()),
                time(record.p99()),
                time(record.median().and(statistics::max(&record.samples))),
                Cell::new(note),
            ]);
        }
        line(out, &table.to_string());
    }

    fn has_level(&self, setting: &crate::report::Setting, level: Durability) -> bool {
        setting.levels.iter().any(|(offered, _)| *offered == level)
    }

    /// What was measured of a row at a level; reads are measured at the first one alone.
    pub(super) fn at_level(
        &self,
        row: &Row,
        size: usize,
        system: &str,
        level: Durability,
    ) -> Option<&Record> {
        let record = self.measured(&(test_name(row, level), size, system.to_owned()))?;
        (record.durability == level).then_some(record)
    }
}

/// Published rows by their numbers, then added ones, then ours.
pub(super) fn in_order() -> impl Iterator<Item = &'static Row> {
    let mut rows: Vec<&Row> = ROWS.iter().collect();
    rows.sort_by_key(|row| (row.published().unwrap_or(u8::MAX), row.number.is_none(), row.number));
    rows.into_iter()
}

fn cost(record: &Record) -> String {
    let Some(written) = record.written_bytes.filter(|_| record.status.has_number()) else {
        return String::new();
    };
    match record.syncs {
        Some(syncs) => format!("{syncs} + {}", in_bytes(written)),
        None => in_bytes(written),
    }
}

/// A time that was published in milliseconds.
pub(super) fn milliseconds(value: f64) -> String {
    in_time(value * 1e3)
}
