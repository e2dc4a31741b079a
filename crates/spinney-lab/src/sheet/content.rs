//! What a document says of runs: losses first, then each size of each suite, growth, and how it was measured.

use super::parts;
use super::published::published;
use super::{Block, Cell, Section, Sheet, Table};
use crate::amount::{factor, grouped, in_unit};
use crate::record::{Record, Status};
use crate::report::{Lost, Report, Standing};
use crate::system::Kind;

/// Losses of one standing that stand open; the rest is folded.
const LOSSES_OPEN: usize = 20;

impl Sheet {
    /// The document of one run or more. Ratios stand within each run alone.
    pub fn of(reports: &[Report]) -> Sheet {
        let mut sections = Vec::new();
        for (at, report) in reports.iter().enumerate() {
            let run = if reports.len() > 1 { format!("Run {}: ", at + 1) } else { String::new() };
            let mut parts = run_sections(report);
            parts.iter_mut().for_each(|section| section.title.insert_str(0, &run));
            sections.append(&mut parts);
        }
        Sheet { title: "spinney, measured beside others".to_owned(), sections }
    }
}

fn run_sections(report: &Report) -> Vec<Section> {
    let mut sections = vec![losses(report), what_ran(report)];
    sections.extend(report.sizes().into_iter().map(|size| of_size(report, size)));
    sections.extend(growth(report));
    sections.extend(besides(report));
    sections.push(how(report));
    sections
}

fn what_ran(report: &Report) -> Section {
    let names = |kind: Kind| report.systems(kind).collect::<Vec<&str>>().join(", ");
    let times = || report.records.iter().map(|record| &*record.time);
    let machine = |field: &str| match &report.context.machine[field] {
        serde_json::Value::Null => "not known".to_owned(),
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let ram = report.context.machine["ram"].as_u64();
    let loads = report.records.iter().filter_map(|record| record.load1);
    let load = loads.reduce(f64::max).map_or("not known".to_owned(), |load| format!("{load:.2}"));
    let versions = report.context.versions.iter().filter_map(|(name, version)| {
        let version = version.as_str().filter(|version| !version.is_empty())?;
        // What a compiler says of itself begins with its name.
        let name = if version.starts_with(&**name) { "" } else { &**name };
        Some(format!("{name} {version}").trim_start().to_owned())
    });
    let facts = [
        ("suite", report.context.suite.clone()),
        ("backends of spinney", names(Kind::Backend)),
        ("peers", names(Kind::Peer)),
        ("ratios against", report.context.baseline.clone()),
        ("procedure", report.mode.name().to_owned()),
        ("from", times().min().map_or(String::new(), without_fraction)),
        ("to", times().max().map_or(String::new(), without_fraction)),
        ("processor", format!("{}, {} cores", machine("cpu"), machine("cores"))),
        ("memory", ram.map_or("not known".to_owned(), |ram| in_unit(ram as f64, "B"))),
        ("system", format!("{}, kernel {}", machine("os"), machine("kernel"))),
        ("disk", format!("{} on {}", report.file_system, machine("disk"))),
        ("governor", machine("governor")),
        ("highest load before a row", load),
        ("order seed", report.context.order_seed.to_string()),
        ("versions", versions.collect::<Vec<String>>().join(", ")),
    ];
    let facts = facts.into_iter().filter(|(_, value)| !value.is_empty());
    let facts = facts.map(|(name, value)| (name.to_owned(), value)).collect();
    Section { title: "What ran, and where".to_owned(), blocks: vec![Block::Facts(facts)] }
}

/// A time to the second.
fn without_fraction(time: &str) -> String {
    match time.split_once('.') {
        Some((seconds, _)) => format!("{seconds}Z"),
        None => time.to_owned(),
    }
}

fn losses(report: &Report) -> Section {
    let verdict = report.verdict();
    let verdict = verdict.trim_start_matches("verdict: ");
    let mut blocks = vec![
        Block::Text(format!("Verdict: {verdict}.")),
        Block::Text(
            "Here are the rows that a backend of spinney loses to a peer at the same durability and beyond \
             chance: the 95 % interval of the ratio does not hold 1. A backend behind a socket is not ranked \
             against a peer that is called in this process. ~: others used the machine."
                .to_owned(),
        ),
    ];
    let lost = report.lost();
    for standing in Standing::ALL {
        let of_it = lost.iter().filter(|row| row.worst.standing == standing);
        let rows: Vec<Vec<Cell>> = of_it.map(lost_row).collect();
        let compared = report.compared(Some(standing));
        if compared == 0 {
            continue;
        }
        let words = standing.words();
        let text = format!("{words}: peers win {} of {} rows.", rows.len(), grouped(compared));
        blocks.push(Block::Text(text));
        let mut rows = rows.into_iter();
        let shown: Vec<Vec<Cell>> = rows.by_ref().take(LOSSES_OPEN).collect();
        let rest: Vec<Vec<Cell>> = rows.collect();
        blocks.extend((!shown.is_empty()).then(|| Block::Table(lost_table(shown))));
        if !rest.is_empty() {
            let title = format!("{} more", rest.len());
            blocks.push(Block::Folded(title, vec![Block::Table(lost_table(rest))]));
        }
    }
    Section { title: "Losses".to_owned(), blocks }
}

fn lost_table(rows: Vec<Vec<Cell>>) -> Table {
    Table { rows, ..Table::new(["row", "backend", "fastest peer", "slower by", "95 %", "N"], 3) }
}

fn lost_row(lost: &Lost) -> Vec<Cell> {
    let worst = &lost.worst;
    let (low, high) = (factor(worst.ratio.low), factor(worst.ratio.high));
    vec![
        (*worst.test).into(),
        (*worst.backend).into(),
        lost.peers().into(),
        parts::worse(lost.slower_by()),
        format!("{low} - {high}").into(),
        grouped(worst.size).into(),
    ]
}

fn of_size(report: &Report, size: usize) -> Section {
    let records = report.records.iter().filter(|record| record.size == size);
    let (limits, rows): (Vec<&Record>, Vec<&Record>) =
        records.partition(|record| record.kind == Kind::Limit);
    let systems = parts::systems(report, &rows);
    let mut blocks = vec![
        Block::Text(format!(
            "{}, and how many times better than `{}`: = no winner \
             within 95 %, ~ others used the machine, - not run.",
            match &*report.context.suite {
                "datastore" => "The median of a try or an operation",
                _ => "Operations a second, at the median of the tries",
            },
            report.context.baseline
        )),
        Block::Table(parts::medians(report, &rows, &systems)),
    ];
    if !limits.is_empty() {
        blocks.push(Block::Text("Limits of the machine and of a plain JSON library:".to_owned()));
        blocks.push(Block::Table(parts::spread(&limits)));
    }
    let backends: Vec<&str> = report.systems(Kind::Backend).collect();
    if let Some(table) = published(std::slice::from_ref(report), &backends, size) {
        let title = "Beside published figures, from other machines".to_owned();
        blocks.push(Block::Folded(title, vec![Block::Table(table)]));
    }
    let names = systems.iter().map(|system| report.shown_name(system)).collect();
    blocks.push(Block::Legend(names));
    let bars = parts::bar_charts(report, &rows, &systems);
    if !bars.is_empty() {
        let baseline = &report.context.baseline;
        blocks.push(Block::Folded(format!("Ratios against {baseline}"), vec![Block::Charts(bars)]));
    }
    let spread = Block::Table(parts::spread(&rows));
    let ranges = Block::Charts(parts::range_charts(&rows, &systems));
    blocks.push(Block::Folded("Distributions, syncs and space".to_owned(), vec![ranges, spread]));
    Section { title: format!("{}, N = {}", report.context.suite, grouped(size)), blocks }
}

fn growth(report: &Report) -> Option<Section> {
    let systems = parts::systems(report, &report.records.iter().collect::<Vec<&Record>>());
    let growths = parts::growths(report, &systems);
    if growths.is_empty() {
        return None;
    }
    let names = systems.iter().map(|system| report.shown_name(system)).collect();
    let table = Block::Table(parts::growth_table(&growths, &systems));
    let blocks = vec![
        Block::Text(
            "Medians over N. Flat is at most twice from the smallest to the largest N.".to_owned(),
        ),
        Block::Legend(names),
        Block::Charts(growths.into_iter().map(|growth| growth.chart).collect()),
        Block::Folded("As a table".to_owned(), vec![table]),
    ];
    Some(Section { title: "Growth".to_owned(), blocks })
}

fn besides(report: &Report) -> Option<Section> {
    let records: Vec<&Record> = report.extras.iter().collect();
    let notes = |record: &&Record| {
        let notes = record.notes.join("; ");
        let name = format!("{}, {}, N = {}", record.system, record.test, grouped(record.size));
        (!notes.is_empty()).then(|| format!("{name}: {notes}"))
    };
    let list = records.iter().filter_map(notes).collect();
    (!records.is_empty()).then(|| Section {
        title: "Besides the rows".to_owned(),
        blocks: vec![
            Block::Table(parts::spread(&records)),
            Block::Folded("Notes".to_owned(), vec![Block::List(list)]),
        ],
    })
}

fn how(report: &Report) -> Section {
    let mut blocks = vec![Block::List(report.method())];
    let mut facts = Vec::new();
    for setting in &report.settings {
        let mut text = setting.design.clone();
        for (level, values) in &setting.levels {
            let values: Vec<String> =
                values.iter().map(|(name, value)| format!("{name}={value}")).collect();
            if !values.is_empty() {
                let space = if text.is_empty() { "" } else { ". " };
                text += &format!("{space}{}: {}", level.name(), values.join(", "));
            }
        }
        facts.push((
            format!("{} {}", setting.kind.name(), report.shown_name(&setting.system)),
            text,
        ));
    }
    blocks.push(Block::Facts(facts));
    let mut list: Vec<String> = Vec::new();
    for record in report.records.iter().chain(&report.extras) {
        let what = match &record.status {
            Status::Skipped(reason) => {
                format!("skipped: {}, {}: {reason}", record.system, record.test)
            }
            status if status.is_void() => format!(
                "void: {}, {}, N = {}: {}",
                record.system,
                record.test,
                grouped(record.size),
                status.text()
            ),
            _ => continue,
        };
        if !list.contains(&what) {
            list.push(what);
        }
    }
    list.extend(report.left_out.iter().map(|text| format!("left out: {text}")));
    if !list.is_empty() {
        let title = format!("What is missing: {}", list.len());
        blocks.push(Block::Folded(title, vec![Block::List(list)]));
    }
    Section { title: "How".to_owned(), blocks }
}
