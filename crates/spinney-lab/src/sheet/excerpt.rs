//! A table for pages that people write: a few rows of one run.

use super::markdown::write_table;
use super::{Cell, Table, Tone};
use crate::amount::in_unit;
use crate::record::{Record, Status};
use crate::report::Report;
use crate::system::Kind;

/// A backend beside the peers of its run at one N: rows in which a peer wins first, the worst first, then
/// others in their order, `rows` in all.
pub fn peers(report: &Report, backend: &str, size: usize, rows: usize) -> String {
    let losses: Vec<(String, String)> = report
        .losses()
        .into_iter()
        .filter(|loss| loss.backend == backend && loss.size == size)
        .map(|loss| (loss.test, loss.peer))
        .collect();
    let mut tests: Vec<&str> = Vec::new();
    let measured = report.records.iter().filter(|record| {
        record.system == backend && record.size == size && record.status.has_number()
    });
    let names = measured.map(|record| &*record.test);
    for test in losses.iter().map(|(test, _)| &**test).chain(names) {
        if !tests.contains(&test) {
            tests.push(test);
        }
    }
    let systems: Vec<&str> = std::iter::once(backend).chain(report.systems(Kind::Peer)).collect();
    let mut header = vec!["row".to_owned(), format!("spinney, {}", report.shown_name(backend))];
    header.extend(systems[1..].iter().map(|system| report.shown_name(system)));
    let mut table = Table { header, texts: 1, rows: Vec::new() };
    for test in tests.iter().take(rows) {
        let mut cells: Vec<Cell> = vec![(*test).into()];
        cells.extend(systems.iter().map(|system| {
            let wins = losses.iter().any(|(lost, peer)| lost == test && peer == system);
            let text = figure(report.find(test, size, system));
            Cell { text, tone: if wins { Tone::Worse } else { Tone::Plain } }
        }));
        table.rows.push(cells);
    }
    let mut out = String::new();
    write_table(&table, &mut out);
    // Older records hold no samples.
    let is_by_median = report.records.iter().any(|record| record.samples.len() == 1);
    let bold = if is_by_median { "a peer's median is less" } else { "a peer wins beyond chance" };
    let left = tests.len().saturating_sub(rows);
    let more = match left {
        0 => String::new(),
        left => format!(" {left} more rows are in the records."),
    };
    let mut out = String::new();
    write_table(&table, &mut out);
    out + &format!("\nBold: {bold}; those rows come first.{more}\n")
}

/// The rows in which a peer beats a backend at one N, the worst first, each beside the best peer; `rows` at
/// most.
pub fn losses(report: &Report, backend: &str, size: usize, rows: usize) -> String {
    let header = ["row", "spinney", "peer", "its time", "slower by", "95 %"].map(str::to_owned);
    let mut table = Table { header: header.to_vec(), texts: 1, rows: Vec::new() };
    let mut lost: Vec<String> = Vec::new();
    for loss in report.losses() {
        if loss.backend != backend || loss.size != size || lost.contains(&loss.test) {
            continue;
        }
        if lost.len() < rows {
            let ratio = |value: f64| format!("{value:.2}x");
            table.rows.push(vec![
                (*loss.test).into(),
                figure(report.find(&loss.test, size, backend)).into(),
                report.shown_name(&loss.peer).into(),
                figure(report.find(&loss.test, size, &loss.peer)).into(),
                ratio(loss.ratio.value).into(),
                format!("{} - {}", ratio(loss.ratio.low), ratio(loss.ratio.high)).into(),
            ]);
        }
        lost.push(loss.test);
    }
    let measured = report.records.iter().filter(|record| {
        record.system == backend && record.size == size && record.status.has_number()
    });
    let mut out = String::new();
    if !table.rows.is_empty() {
        write_table(&table, &mut out);
        out.push('\n');
    }
    out + &format!("Lost beyond chance: {} of {} rows.\n", lost.len(), measured.count())
}

/// The figure of a record, or that there is none.
pub(super) fn figure(record: Option<&Record>) -> String {
    let shown = record.and_then(|record| Some((record, record.figure()?)));
    shown.map_or("-".to_owned(), |(record, figure)| {
        let noisy = if record.status == Status::Noisy { "~" } else { "" };
        format!("{noisy}{}", in_unit(figure, record.unit).trim_end())
    })
}
