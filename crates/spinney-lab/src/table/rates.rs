//! A suite whose rows are many equal operations: a table a size, a column a system, operations a second.

use comfy_table::Cell;

use super::{line, table, title};
use crate::amount::grouped;
use crate::record::Record;
use crate::report::Report;
use crate::system::Kind;

impl Report {
    /// The losses, then a table a size, its rows in the order in which they ran.
    pub(super) fn write_rates(&self, out: &mut String) {
        self.write_losses(out);
        let systems: Vec<&str> =
            self.systems(Kind::Backend).chain(self.systems(Kind::Peer)).collect();
        for size in self.sizes() {
            let mut header = vec!["row".to_owned()];
            header.extend(systems.iter().map(|system| self.shown_name(system)));
            let mut table = table(&header);
            for test in self.tests_of(size) {
                let mut cells = vec![Cell::new(test)];
                cells.extend(systems.iter().map(|system| {
                    self.cell(self.measured(&(test.to_owned(), size, (*system).to_owned())))
                }));
                table.add_row(cells);
            }
            if table.row_count() > 0 {
                title(out, &format!("N = {}", grouped(size)));
                line(out, &table.to_string());
                self.write_limits(size, out);
            }
        }
    }

    /// The rows at a size, of which some system has more than a reason.
    fn tests_of(&self, size: usize) -> Vec<&str> {
        let mut tests: Vec<&str> = Vec::new();
        let is_row = |record: &&Record| record.size == size && record.kind != Kind::Limit;
        for record in self.records.iter().filter(is_row) {
            let is_new = !tests.contains(&&*record.test);
            if is_new && (record.status.has_number() || record.status.is_void()) {
                tests.push(&record.test);
            }
        }
        tests
    }
}
