//! The report as text for a terminal: losses first, then a table a size, then how it was measured.
//!
//! Colour only underlines what words and numbers say; `anstream` strips it where it does not show.

mod comparison;
mod published;
mod rates;
mod suite;

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ContentArrangement, LineStyle, Table, TableStyle,
};

use crate::amount::{factor, grouped, in_bytes, in_rate, in_time, plain_factor};
use crate::claims::{Claim, Side, Unit, Verdict, claims};
use crate::datastore::{Documents, ROWS, document::State};
use crate::options::{Mode, Rules};
use crate::record::{Record, Status};
use crate::report::{Loss, Lost, Report, Standing};
use crate::row::test_name;
use crate::system::{Durability, Kind};
use crate::{limits, sheet};

const TITLE: Style = Style::new().bold();
const BAD: Style = AnsiColor::Red.on_default();
/// Losses shown in full; the rest is counted.
const LOSSES_SHOWN: usize = 20;

impl Report {
    /// The whole report with colour; print it through `anstream`.
    pub fn render(&self) -> String {
        let mut out = String::new();
        match self.rules {
            _ if self.context.suite != "datastore" => {
                self.write_rates(&mut out);
                self.write_claims(&mut out);
            }
            Rules::None => {
                self.write_losses(&mut out);
                self.sizes().into_iter().for_each(|size| self.write_size(size, &mut out));
                self.write_claims(&mut out);
            }
            // Promises are about stores that nothing judges.
            Rules::Model => self.write_suite(&mut out),
        }
        self.write_method(&mut out);
        let style = if self.is_void() { BAD } else { TITLE };
        line(&mut out, &format!("{style}{}{style:#}", self.verdict()));
        out
    }

    fn write_suite(&self, out: &mut String) {
        if self.mode == Mode::Honest {
            self.write_behind(out);
            self.write_losses(out);
        }
        for size in self.sizes() {
            self.write_systems(size, out);
            self.write_limits(size, out);
            self.write_costs(size, out);
            self.write_handles(size, out);
            self.write_published(size, out);
        }
    }

    /// Prints the report on stdout, in colour where it shows.
    pub fn print(&self) {
        anstream::print!("{}", self.render());
    }

    /// The run in one line.
    pub fn verdict(&self) -> String {
        let count =
            |wanted: Verdict| claims(self).iter().filter(|claim| claim.verdict == wanted).count();
        let void = self.records.iter().filter(|record| record.status.is_void()).count();
        match (void, self.systems(Kind::Backend).next()) {
            (0, Some(_)) if self.rules == Rules::Model => format!(
                "verdict: all results agree, and every commit was told to all; peers win {}",
                self.lost_of_all(&self.lost())
            ),
            (0, None) => "verdict: only peers were measured; all results agree".to_owned(),
            (0, Some(_)) => format!(
                "verdict: all results agree; peers win {}; promises: {} hold, {} fail, {} not measured",
                self.lost_of_all(&self.lost()),
                count(Verdict::Holds),
                count(Verdict::Fails),
                count(Verdict::NotMeasured)
            ),
            _ => format!("verdict: void, {void} rows gave a wrong result or did not sync"),
        }
    }

    fn write_losses(&self, out: &mut String) {
        if self.systems(Kind::Backend).next().is_none() {
            return;
        }
        let lost = self.lost();
        title(out, &format!("where a peer wins: {}", self.lost_of_all(&lost)));
        for standing in Standing::ALL {
            let of_it: Vec<&Lost> =
                lost.iter().filter(|row| row.worst.standing == standing).collect();
            if of_it.is_empty() {
                continue;
            }
            let compared = grouped(self.compared(Some(standing)));
            line(out, &format!("{}: {} of {compared} rows", standing.words(), of_it.len()));
            line(out, &lost_table(&of_it).to_string());
            if of_it.len() > LOSSES_SHOWN {
                line(out, &format!("and {} more", of_it.len() - LOSSES_SHOWN));
            }
        }
    }

    fn lost_of_all(&self, lost: &[Lost]) -> String {
        format!("{} of {} rows", grouped(Lost::rows(lost)), grouped(self.compared(None)))
    }

    fn write_size(&self, size: usize, out: &mut String) {
        let bytes = Documents::new(size).text(State::Items).len();
        let text = format!("N = {} ({} of JSON text)", grouped(size), in_bytes(bytes as f64));
        title(out, &text);
        let systems: Vec<&str> =
            self.systems(Kind::Backend).chain(self.systems(Kind::Peer)).collect();
        let mut header = vec!["row".to_owned()];
        header.extend(systems.iter().map(|system| self.shown_name(system)));
        let mut table = table(&header);
        for test in tests() {
            let key = |system: &str| (test.clone(), size, system.to_owned());
            let records: Vec<Option<&Record>> =
                systems.iter().map(|system| self.measured(&key(system))).collect();
            if records.iter().all(Option::is_none) {
                continue;
            }
            let mut cells = vec![Cell::new(&test)];
            cells.extend(records.into_iter().map(|record| self.cell(record)));
            table.add_row(cells);
        }
        line(out, &table.to_string());
        self.write_limits(size, out);
    }

    fn cell(&self, record: Option<&Record>) -> Cell {
        let Some(record) = record else { return number("-".to_owned()) };
        let Some(mut text) = self.shown_figure(record) else {
            let text = match &record.status {
                Status::Skipped(_) => "skipped".to_owned(),
                status => status.text(),
            };
            let cell = number(text);
            return if record.status.is_void() { cell.fg(Color::Red) } else { cell };
        };
        if record.status == Status::Noisy {
            text.insert(0, '~');
        }
        let Some(ratio) = record.ratio.filter(|_| record.system != self.context.baseline) else {
            return number(text);
        };
        let winner = match ratio {
            _ if ratio.is_tie() => None,
            _ if ratio.value > 1.0 => Some(Color::Green),
            _ => Some(Color::Red),
        };
        let sign = if winner.is_none() { "=" } else { "x" };
        let _ = write!(text, "  {:>7}{sign}", plain_factor(ratio.value));
        match winner {
            Some(colour) => number(text).fg(colour),
            None => number(text),
        }
    }

    fn write_limits(&self, size: usize, out: &mut String) {
        let texts = [limits::FDATASYNC, limits::MEMCPY, limits::PARSE, limits::PRINT].map(|test| {
            let record = self.measured(&(test.to_owned(), size, "limit".to_owned()));
            let median = record.and_then(Record::median).map_or("-".to_owned(), in_time);
            format!("{test} {median}")
        });
        line(out, &format!("limits: {} (parse and print by serde_json)", texts.join(", ")));
    }

    /// The promises that were measured, the broken ones first.
    pub fn render_claims(&self) -> String {
        let mut out = String::new();
        write_judged(&claims(self), &mut out);
        line(&mut out, &self.verdict());
        out
    }

    fn write_claims(&self, out: &mut String) {
        if self.systems(Kind::Backend).next().is_none() {
            return;
        }
        let all = claims(self);
        write_judged(&all, out);
        let mut missing: Vec<String> = all
            .iter()
            .filter(|claim| claim.verdict == Verdict::NotMeasured)
            .map(|claim| match claim.size {
                Some(size) => format!("{} (N = {})", claim.promise, grouped(size)),
                None => claim.promise.clone(),
            })
            .collect();
        missing.sort();
        missing.dedup();
        for promise in missing {
            line(out, &format!("not measured: {promise}"));
        }
    }

    fn write_method(&self, out: &mut String) {
        title(out, "how");
        let baseline = &self.context.baseline;
        let figure = match &*self.context.suite {
            "datastore" => "median of a try or operation",
            _ => "operations a second, at the median of the tries",
        };
        line(out, &format!("cells: {figure}, then how many times faster than `{baseline}`"));
        line(out, "marks: = no winner within 95 %, ~ others used the machine, - not run");
        self.method().iter().for_each(|text| line(out, text));
        for setting in &self.settings {
            line(out, &format!("{} `{}`: {}", setting.kind.name(), setting.system, setting.design));
            for (level, values) in &setting.levels {
                let values: Vec<String> =
                    values.iter().map(|(name, value)| format!("{name}={value}")).collect();
                if !values.is_empty() {
                    line(out, &format!("  {}: {}", level.name(), values.join(", ")));
                }
            }
        }
        let mut reasons: Vec<String> = Vec::new();
        for record in &self.records {
            if let Status::Skipped(reason) = &record.status {
                let text = format!("skipped: `{}`, {}: {reason}", record.system, record.test);
                if !reasons.contains(&text) {
                    reasons.push(text);
                }
            }
        }
        reasons.iter().for_each(|reason| line(out, reason));
        self.left_out.iter().for_each(|text| line(out, &format!("left out: {text}")));
    }
}

fn lost_table(lost: &[&Lost]) -> Table {
    let mut table = table(&["N", "row", "backend", "fastest peer", "slower by", "95 %"]);
    for row in lost.iter().take(LOSSES_SHOWN) {
        let Loss { ratio, .. } = row.worst;
        table.add_row([
            number(grouped(row.worst.size)),
            Cell::new(&row.worst.test),
            Cell::new(&row.worst.backend),
            Cell::new(row.peers()),
            number(row.slower_by()).fg(Color::Red),
            number(format!("{} - {}", factor(ratio.low), factor(ratio.high))),
        ]);
    }
    table
}

/// Claims as a table with colour, the broken ones first; print it through `anstream`.
pub fn render_claims(claims: &[Claim]) -> String {
    let mut out = String::new();
    write_judged(claims, &mut out);
    out
}

fn write_judged(all: &[Claim], out: &mut String) {
    title(out, "what it must show");
    let mut table = table(&["promise", "N", "backend", "measured", "bound", "", "from"]);
    let mut judged: Vec<&Claim> =
        all.iter().filter(|claim| claim.verdict != Verdict::NotMeasured).collect();
    judged.sort_by_key(|claim| claim.verdict != Verdict::Fails);
    for claim in judged {
        let (word, colour) = match claim.verdict {
            Verdict::Holds => ("holds", Color::Green),
            _ => ("MISSED", Color::Red),
        };
        let from = claim.parts.map_or(String::new(), |parts| {
            parts.map(|part| amount(part, claim.parts_unit)).join(" / ")
        });
        table.add_row([
            Cell::new(&claim.promise),
            number(claim.size.map_or(String::new(), grouped)),
            Cell::new(&claim.backend),
            number(claim.measured.map_or(String::new(), |value| quantity(claim, value))),
            number(bound(claim)),
            Cell::new(word).fg(colour),
            Cell::new(from),
        ]);
    }
    line(out, &table.to_string());
}

/// Names of all rows at all levels, in the order of the table.
fn tests() -> impl Iterator<Item = String> {
    let levels = [Durability::Durable, Durability::Process, Durability::None];
    let all = levels.into_iter().flat_map(|level| ROWS.iter().map(move |row| (row, level)));
    all.filter(|(row, level)| row.operation.commits() || *level == Durability::Durable)
        .map(|(row, level)| test_name(row, level))
}

fn table<T: ToString>(header: &[T]) -> Table {
    let mut table = Table::new();
    table.load_style(TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─')));
    table.set_content_arrangement(ContentArrangement::Disabled).enforce_styling();
    table.set_header(
        header.iter().map(|name| Cell::new(name.to_string()).add_attribute(Attribute::Bold)),
    );
    table
}

/// A table of a document on a terminal.
fn drawn(sheet: &sheet::Table) -> String {
    let mut table = table(&sheet.header);
    for row in &sheet.rows {
        table.add_row(row.iter().enumerate().map(|(at, cell)| match at < sheet.texts {
            true => Cell::new(&cell.text),
            false => number(cell.text.clone()),
        }));
    }
    table.to_string()
}

fn number(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

fn title(out: &mut String, text: &str) {
    line(out, &format!("\n{TITLE}{text}{TITLE:#}"));
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

fn quantity(claim: &Claim, value: f64) -> String {
    amount(value, claim.unit)
}

fn amount(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Ratio => factor(value),
        Unit::Microseconds => in_time(value).trim_end().to_owned(),
        Unit::Bytes => in_bytes(value),
        Unit::Rate => in_rate(value),
        Unit::Count => value.to_string(),
    }
}

fn bound(claim: &Claim) -> String {
    let sign = if claim.side == Side::AtMost { "<=" } else { ">=" };
    format!("{sign} {}", quantity(claim, claim.bound))
}
