//! Tables and charts of records.

use super::chart::{bars, curves, ranges};
use super::{Cell, Chart, Shows, Table, Tone};
use crate::amount::{grouped, in_bytes, in_unit, plain_factor};
use crate::record::{Record, Status};
use crate::report::Report;
use crate::statistics::{max, min, quantile};
use crate::system::{Durability, Kind};

const LEVELS: [Durability; 3] = [Durability::Durable, Durability::Process, Durability::None];
/// Growth from the smallest to the largest N that counts as none.
const FLAT: f64 = 2.0;

impl Table {
    pub(super) fn new<const N: usize>(header: [&str; N], texts: usize) -> Table {
        Table { header: header.map(str::to_owned).to_vec(), texts, rows: Vec::new() }
    }
}

pub(super) fn worse(text: String) -> Cell {
    Cell { text, tone: Tone::Worse }
}

/// The systems that `records` are of, as the run had them.
pub(super) fn systems<'a>(report: &'a Report, records: &[&Record]) -> Vec<&'a str> {
    let all = report.systems(Kind::Backend).chain(report.systems(Kind::Peer));
    all.filter(|system| records.iter().any(|record| record.system == *system)).collect()
}

/// Names of rows in the order of the run.
fn tests<'a>(records: &[&'a Record]) -> Vec<&'a str> {
    let mut tests: Vec<&str> = Vec::new();
    for record in records {
        if !tests.contains(&&*record.test) {
            tests.push(&record.test);
        }
    }
    tests
}

/// A row a line, a system a column.
pub(super) fn medians(report: &Report, records: &[&Record], systems: &[&str]) -> Table {
    let mut header = vec!["row".to_owned()];
    header.extend(systems.iter().map(|system| report.shown_name(system)));
    let mut table = Table { header, texts: 1, rows: Vec::new() };
    for test in tests(records) {
        let mut cells = vec![test.into()];
        cells.extend(systems.iter().map(|system| {
            let mut of_row = records.iter().filter(|record| record.test == test);
            let record = of_row.find(|record| record.system == *system);
            record.map_or("-".into(), |record| cell(record, report))
        }));
        table.rows.push(cells);
    }
    table
}

fn cell(record: &Record, report: &Report) -> Cell {
    let Some(figure) = report.shown_figure(record) else {
        return match &record.status {
            Status::Skipped(_) => "skipped".into(),
            status => Cell { text: status.text(), tone: Tone::Void },
        };
    };
    let noisy = if record.status == Status::Noisy { "~" } else { "" };
    let text = format!("{noisy}{}", figure.trim_end());
    let Some(ratio) = record.ratio.filter(|_| record.system != report.context.baseline) else {
        return text.into();
    };
    let (sign, tone) = match ratio {
        _ if ratio.is_tie() => ("=", Tone::Plain),
        _ if ratio.value > 1.0 => ("×", Tone::Better),
        _ => ("×", Tone::Worse),
    };
    Cell { text: format!("{text}  {}{sign}", plain_factor(ratio.value)), tone }
}

/// A record a line: its distribution, its syncs and its space.
pub(super) fn spread(records: &[&Record]) -> Table {
    let header = [
        "row",
        "system",
        "N",
        "runs",
        "min",
        "median",
        "p99",
        "max",
        "first",
        "processor",
        "syncs",
        "calls",
        "written",
        "on disk",
        "memory",
    ];
    let mut table = Table::new(header, 2);
    for record in records.iter().filter(|record| !matches!(record.status, Status::Skipped(_))) {
        let shown = |value: Option<f64>, unit: &str| {
            let value = value.filter(|_| record.status.has_number());
            value.map_or("-".into(), |value| Cell::from(in_unit(value, unit).trim_end()))
        };
        let amount = |value| shown(value, record.unit);
        let counted = |count: Option<f64>| count.map_or("-".into(), |it| hundredths(it).into());
        let bytes =
            |value: Option<u64>| value.map_or("-".into(), |value| in_bytes(value as f64).into());
        table.rows.push(vec![
            (*record.test).into(),
            (*record.system).into(),
            grouped(record.size).into(),
            record.samples.len().to_string().into(),
            amount(min(&record.samples)),
            amount(record.median()),
            amount(record.p99()),
            amount(max(&record.samples)),
            amount(record.first),
            shown(quantile(&record.cpu, 0.5), "us"),
            counted(record.syncs),
            counted(record.system_calls),
            shown(record.written_bytes, "B"),
            bytes(record.disk_bytes),
            bytes(record.peak_rss_bytes),
        ]);
    }
    table
}

/// A chart of ratios for each level.
pub(super) fn bar_charts(report: &Report, records: &[&Record], systems: &[&str]) -> Vec<Chart> {
    let baseline = &report.context.baseline;
    let bar = |record: &Record, series: usize| {
        let ratio = record.ratio.filter(|_| record.system != *baseline)?;
        Some(bars::Bar { series, system: record.system.clone(), ratio })
    };
    let groups = LEVELS.into_iter().map(|level| {
        let groups = grouped_by_row(records, systems, level, bar).into_iter();
        (level, groups.map(|(name, bars)| bars::Group { name, bars }).collect::<Vec<bars::Group>>())
    });
    let charts = groups.filter(|(_, groups)| !groups.is_empty()).map(|(level, groups)| Chart {
        title: format!("{}, against {baseline}", level.name()),
        shows: Shows::Bars(baseline.clone(), groups),
    });
    charts.collect()
}

/// A chart of distributions for each level and unit.
pub(super) fn range_charts(records: &[&Record], systems: &[&str]) -> Vec<Chart> {
    let mut units: Vec<&'static str> = records.iter().map(|record| record.unit).collect();
    units.sort_unstable();
    units.dedup();
    let mut charts = Vec::new();
    for level in LEVELS {
        for &unit in &units {
            let of_unit =
                |record: &Record, series| range(record, series).filter(|_| record.unit == unit);
            let groups = grouped_by_row(records, systems, level, of_unit);
            let groups = groups.into_iter().map(|(name, ranges)| ranges::Group { name, ranges });
            let groups: Vec<ranges::Group> = groups.collect();
            if !groups.is_empty() {
                let title = level.name().to_owned();
                charts.push(Chart { title, shows: Shows::Ranges(unit, groups) });
            }
        }
    }
    charts
}

/// Of single operations where they were timed.
fn range(record: &Record, series: usize) -> Option<ranges::Range> {
    record.median()?;
    let samples = if record.singles.is_empty() { &record.samples } else { &record.singles };
    let quartile = |q| quantile(samples, q);
    let quartiles =
        [quartile(0.0)?, quartile(0.25)?, quartile(0.5)?, quartile(0.75)?, quartile(1.0)?];
    Some(ranges::Range { series, system: record.system.clone(), quartiles, p99: record.p99() })
}

/// What `part` makes of the records at a level, row by row; rows of which it makes nothing are left out.
fn grouped_by_row<T>(
    records: &[&Record],
    systems: &[&str],
    level: Durability,
    part: impl Fn(&Record, usize) -> Option<T>,
) -> Vec<(String, Vec<T>)> {
    let at_level: Vec<&Record> =
        records.iter().copied().filter(|record| record.durability == level).collect();
    let of_row = |test: &&str| {
        let parts = systems.iter().enumerate().filter_map(|(series, system)| {
            let mut of_row = at_level.iter().filter(|record| record.test == *test);
            part(of_row.find(|record| record.system == *system)?, series)
        });
        ((*test).to_owned(), parts.collect::<Vec<T>>())
    };
    let rows = tests(&at_level);
    rows.iter().map(of_row).filter(|(_, parts)| !parts.is_empty()).collect()
}

/// One row over N.
pub(super) struct Growth {
    pub(super) chart: Chart,
    name: String,
    unit: &'static str,
    curves: Vec<curves::Curve>,
}

/// Rows that were measured at two sizes or more.
pub(super) fn growths(report: &Report, systems: &[&str]) -> Vec<Growth> {
    let records: Vec<&Record> =
        report.records.iter().filter(|record| record.kind != Kind::Limit).collect();
    let mut growths = Vec::new();
    for test in tests(&records) {
        let of_row: Vec<&Record> =
            records.iter().copied().filter(|record| record.test == test).collect();
        let Some(unit) = of_row.first().map(|record| record.unit) else { continue };
        let curve = |(series, system): (usize, &&str)| {
            let of_system = of_row.iter().filter(|record| record.system == **system);
            let mut points: Vec<(usize, f64)> =
                of_system.filter_map(|record| Some((record.size, record.median()?))).collect();
            points.sort_by_key(|(size, _)| *size);
            points.dedup_by_key(|(size, _)| *size);
            (points.len() > 1).then(|| curves::Curve {
                series,
                system: (*system).to_owned(),
                points,
            })
        };
        let curves: Vec<curves::Curve> = systems.iter().enumerate().filter_map(curve).collect();
        if !curves.is_empty() {
            let shows = Shows::Curves(unit, curves.clone());
            let chart = Chart { title: test.to_owned(), shows };
            growths.push(Growth { chart, name: test.to_owned(), unit, curves });
        }
    }
    growths
}

/// How much more each system takes at the largest N than at the smallest.
pub(super) fn growth_table(growths: &[Growth], systems: &[&str]) -> Table {
    let mut header = vec!["row".to_owned()];
    header.extend(systems.iter().map(|system| (*system).to_owned()));
    let mut table = Table { header, texts: 1, rows: Vec::new() };
    for growth in growths {
        let mut cells: Vec<Cell> = vec![(*growth.name).into()];
        for system in systems {
            let curve = growth.curves.iter().find(|curve| curve.system == *system);
            let ends = curve.and_then(|curve| curve.points.first().zip(curve.points.last()));
            cells.push(ends.map_or("-".into(), |((_, small), (_, large))| {
                // A rate that falls is growth, too.
                let factor = if growth.unit == "op/s" { small / large } else { large / small };
                let flat = if factor <= FLAT { ", flat" } else { "" };
                format!("{}×{flat}", plain_factor(factor)).into()
            }));
        }
        table.rows.push(cells);
    }
    table
}

/// A count that is a whole number but where commits share.
fn hundredths(count: f64) -> String {
    ((count * 100.0).round() / 100.0).to_string()
}
