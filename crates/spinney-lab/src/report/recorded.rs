//! A report as lines of records and back: each line stands for itself, with how its system was set up.

use serde_json::{Map, Value, json};
use spinney_core::{Error, Result};

use super::{Report, Setting};
use crate::datastore::ROWS;
use crate::options::Rules;
use crate::record::{self, Line, Record};
use crate::system::Kind;

impl Report {
    /// All records, one JSON object a line.
    pub fn json_lines(&self) -> String {
        self.lines(self.records.iter().chain(&self.extras))
    }

    /// Such lines of `records`, whether or not they are in the report yet.
    pub(crate) fn lines<'a>(&self, records: impl IntoIterator<Item = &'a Record>) -> String {
        records.into_iter().map(|record| format!("{}\n", self.line(record))).collect()
    }

    /// A record with how its system was set up and what held for its commits.
    fn line(&self, record: &Record) -> Value {
        let mut line = record.to_json(&self.context);
        line["rules"] = json!(self.rules.name());
        let setting = self.settings.iter().find(|setting| setting.system == record.system);
        if let Some(setting) = setting {
            line["design"] = json!(setting.design);
            let mut levels = setting.levels.iter();
            let values = levels.find(|(level, _)| *level == record.durability);
            line["settings"] = values.map_or_else(Value::default, |(_, values)| {
                values.iter().map(|(name, value)| (name.clone(), json!(value))).collect()
            });
        }
        line
    }

    /// The reports of the runs whose records stand in `text`, one JSON object a line. A run has one suite
    /// and one seed.
    ///
    /// # Errors
    /// `InvalidInput` naming the line that is no record, or where there is none.
    pub fn read(text: &str) -> Result<Vec<Report>> {
        let mut reports: Vec<Report> = Vec::new();
        for line in record::read(text)? {
            let is_of_it = |report: &Report| {
                let (ours, its) = (&report.context, &line.context);
                (&ours.suite, ours.order_seed) == (&its.suite, its.order_seed)
            };
            let at = reports.iter().position(is_of_it).unwrap_or_else(|| {
                reports.push(empty(&line));
                reports.len() - 1
            });
            reports[at].add(line);
        }
        match reports.is_empty() {
            true => {
                Err(Error::invalid_input("there are no records; `bench --records` writes them"))
            }
            false => Ok(reports),
        }
    }

    fn add(&mut self, line: Line) {
        let Line { record, context, json } = line;
        self.context.versions.extend(context.versions);
        self.syncs_counted |= record.kind != Kind::Limit && record.syncs.is_some();
        add_setting(&mut self.settings, &record, &json);
        match is_of_table(&context.suite, &record) {
            true => self.records.push(record),
            false => self.extras.push(record),
        }
    }
}

/// The report that a line begins.
fn empty(line: &Line) -> Report {
    let Line { record, context, json } = line;
    let file_system = context.machine["fs"].as_str().unwrap_or("unknown").to_owned();
    Report {
        context: context.clone(),
        records: Vec::new(),
        extras: Vec::new(),
        settings: Vec::new(),
        left_out: Vec::new(),
        rules: json["rules"].as_str().and_then(Rules::of_name).unwrap_or(Rules::None),
        mode: record.mode,
        syncs_counted: false,
        folder: None,
        file_system,
    }
}

fn add_setting(settings: &mut Vec<Setting>, record: &Record, json: &Value) {
    if record.kind == Kind::Limit {
        return;
    }
    let at = settings.iter().position(|setting| setting.system == record.system);
    let at = at.unwrap_or_else(|| {
        settings.push(Setting {
            system: record.system.clone(),
            transport: record.transport,
            kind: record.kind,
            design: json["design"].as_str().unwrap_or_default().to_owned(),
            levels: Vec::new(),
        });
        settings.len() - 1
    });
    let setting = &mut settings[at];
    let is_known = setting.levels.iter().any(|(level, _)| *level == record.durability);
    if record.status.has_number() && !is_known {
        let values = json["settings"].as_object().map(texts).unwrap_or_default();
        setting.levels.push((record.durability, values));
    }
}

fn texts(values: &Map<String, Value>) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    values.iter().map(|(name, value)| (name.clone(), text(value))).collect()
}

/// Whether a record is of a row, and not measured besides them.
fn is_of_table(suite: &str, record: &Record) -> bool {
    let name = record.test.split(" [").next();
    let is_row = || ROWS.iter().any(|row| Some(row.id) == name);
    suite != "datastore" || record.kind == Kind::Limit || is_row()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::sample;
    use crate::system::{Durability, Transport};

    #[test]
    fn a_report_comes_back_from_its_lines() {
        let (mut record, context) = sample();
        let json = json!({"rules": "model"});
        let mut report = empty(&Line { record: record.clone(), context, json });
        report.settings.push(Setting {
            system: record.system.clone(),
            transport: Transport::Embedded,
            kind: Kind::Peer,
            design: "rewrites all".to_owned(),
            levels: vec![(Durability::Process, vec![("sync".to_owned(), "off".to_owned())])],
        });
        report.records.push(record.clone());
        record.test = "cold open".to_owned();
        report.extras.push(record);
        let text = report.json_lines();
        let again = Report::read(&text).expect("records").remove(0);
        assert_eq!(again.json_lines(), text);
        assert_eq!((again.records.len(), again.extras.len()), (1, 1));
        assert_eq!(again.settings[0].levels, report.settings[0].levels);
        assert_eq!(again.rules, Rules::Model);
        assert_eq!(
            Report::read("").expect_err("none").kind(),
            spinney_core::ErrorKind::InvalidInput
        );
    }
}
