//! Our figures beside those that were published, which come from other machines: no ratio is made of
//! them. First what is not below them.

use comfy_table::{Cell, Color};

use super::suite::{in_order, milliseconds};
use super::{drawn, line, number, table, title};
use crate::amount::{grouped, in_time};
use crate::datastore::Row;
use crate::datastore::published::{Published, SIZES};
use crate::options::Mode;
use crate::record::{Record, Status};
use crate::report::Report;
use crate::sheet::published::published;
use crate::statistics;
use crate::system::{Durability, Kind};

const FROM: &str = "from another machine";

impl Report {
    /// Rows that take, at level `none`, no less than sysrepo's own work on another machine.
    pub(super) fn write_behind(&self, out: &mut String) {
        let mut rows = Vec::new();
        for size in self.sizes().into_iter().filter(|size| SIZES.contains(size)) {
            for (row, published) in published_rows() {
                for backend in self.systems(Kind::Backend) {
                    let bound = published.real_work(size).expect("it is a published size");
                    let Some(record) = self.without_durability(row, size, backend) else {
                        continue;
                    };
                    let ours = record.median().map(|us| us / 1e3);
                    if ours.is_none_or(|ours| ours >= *bound.start()) {
                        rows.push([
                            number(grouped(size)),
                            Cell::new(row.id),
                            Cell::new(backend),
                            number(ours.map_or("-".to_owned(), milliseconds)).fg(Color::Red),
                            number(milliseconds(*bound.start())),
                            Cell::new(reason(record, self.transport(backend).is_apart())),
                        ]);
                    }
                }
            }
        }
        let what =
            "rows not below sysrepo's own work on another machine (`real work`), at level none";
        title(out, &format!("{what}: {}", rows.len()));
        if rows.is_empty() {
            return;
        }
        let mut table = table(&["N", "row", "backend", "here", "there", "why"]);
        table.add_rows(rows);
        line(out, &table.to_string());
    }

    pub(super) fn write_published(&self, size: usize, out: &mut String) {
        let backends: Vec<&str> = self.systems(Kind::Backend).collect();
        let Some(table) = published(std::slice::from_ref(self), &backends, size) else { return };
        let what = match self.mode {
            Mode::Honest => "at level none",
            Mode::Compat => "at level none, in the published procedure",
        };
        title(out, &format!("N = {}, {what}, beside published figures {FROM}", grouped(size)));
        line(out, &drawn(&table));
    }

    /// What was measured of a row at level `none`, or at the only level of a read.
    fn without_durability(&self, row: &Row, size: usize, system: &str) -> Option<&Record> {
        let level = Durability::None;
        match row.operation.commits() {
            true => self.at_level(row, size, system, level),
            false => self.measured(&(row.id.to_owned(), size, system.to_owned())),
        }
    }
}

fn published_rows() -> impl Iterator<Item = (&'static Row, &'static Published)> {
    in_order().filter_map(|row| Some((row, Published::of(row.published()?)?)))
}

fn reason(record: &Record, is_apart: bool) -> String {
    match &record.status {
        Status::Skipped(reason) => format!("skipped: {reason}"),
        status if status.is_void() => status.text(),
        _ if is_apart => "each request waits for a server".to_owned(),
        // The published figures are processor time.
        _ => match statistics::median(&record.cpu) {
            Some(cpu_us) => format!("slower; {} of processor time", in_time(cpu_us)),
            None => "slower".to_owned(),
        },
    }
}
