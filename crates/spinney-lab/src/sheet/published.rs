//! Figures of the suite `datastore` beside those that were published, which come from other machines: no
//! ratio is made of them.

use super::excerpt::figure;
use super::{Cell, Table};
use crate::amount::in_unit;
use crate::datastore::published::{PLUGINS, Published, SIZES};
use crate::datastore::{ROWS, Row};
use crate::report::Report;
use crate::row::levelled;
use crate::system::Durability;

/// The rows that a run has of `backends` at N = `size`, at level `none` where the level is part of a row;
/// `None` where nothing was published. The rows may be of several runs, as nothing is compared.
pub fn published(reports: &[Report], backends: &[&str], size: usize) -> Option<Table> {
    let mut header = vec![String::new(), "row".to_owned()];
    header.extend(backends.iter().map(|backend| format!("spinney, {backend}")));
    header.push("sysrepo's real work".to_owned());
    header.extend(PLUGINS.map(str::to_owned));
    let mut table = Table { header, texts: 2, rows: Vec::new() };
    let mut rows: Vec<(&Row, &Published)> = ROWS
        .iter()
        .filter_map(|row| Some((row, Published::of(row.published()?)?)))
        .filter(|_| SIZES.contains(&size))
        .collect();
    rows.sort_by_key(|(_, published)| published.number);
    for (row, published) in rows {
        let name = match row.operation.commits() {
            true => levelled(row.id, Durability::None),
            false => row.id.to_owned(),
        };
        let measured = |backend: &&str| {
            let is_of_suite = |report: &&Report| report.context.suite == "datastore";
            let mut of_suite = reports.iter().filter(is_of_suite);
            of_suite.find_map(|report| report.find(&name, size, backend))
        };
        let own: Vec<Option<_>> = backends.iter().map(measured).collect();
        if own.iter().all(Option::is_none) {
            continue;
        }
        let mut cells: Vec<Cell> = vec![published.number.to_string().into(), row.id.into()];
        cells.extend(own.into_iter().map(|record| Cell::from(figure(record))));
        let real = published.real_work(size)?;
        cells.push(match real.start() == real.end() {
            true => milliseconds(*real.start()).into(),
            false => {
                format!("{} - {}", milliseconds(*real.start()), milliseconds(*real.end())).into()
            }
        });
        for plugin in 0..PLUGINS.len() {
            cells.push(milliseconds(published.plugin(plugin, size)?).into());
        }
        table.rows.push(cells);
    }
    (!table.rows.is_empty()).then_some(table)
}

fn milliseconds(value: f64) -> String {
    in_unit(value * 1e3, "us").trim_end().to_owned()
}
