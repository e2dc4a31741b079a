//! Records as they were written: one JSON object a line becomes a record again.

use serde_json::Value;
use spinney_core::{Error, Result};

use super::{Context, Record, Status};
use crate::options::Mode;
use crate::statistics::Ratio;
use crate::system::{Durability, Kind, Transport};

const UNITS: [&str; 6] = ["us", "ms", "s", "B", "B/key", "op/s"];
const ACCESS: [&str; 3] = ["warm", "open", "cold"];

/// A line of a text of records.
pub struct Line {
    /// The record.
    pub record: Record,
    /// What it shared with its run.
    pub context: Context,
    /// The line itself.
    pub json: Value,
}

/// The records of a text, one JSON object a line.
///
/// # Errors
/// `InvalidInput` naming the line that is no record.
pub fn read(text: &str) -> Result<Vec<Line>> {
    let lines = text.lines().enumerate();
    let read = lines.map(|(at, line)| {
        let json: Result<Value> = serde_json::from_str(line).map_err(|error| {
            let wrong = "it is no JSON object; `bench --records` writes one a line";
            Error::invalid_input(wrong).with_source(error)
        });
        let read = json.and_then(|json| {
            let (record, context) = Record::from_json(&json)?;
            Ok(Line { record, context, json })
        });
        read.map_err(|error| error.at(format!("line {}", at + 1)))
    });
    read.collect()
}

impl Status {
    fn of_text(text: &str) -> Option<Status> {
        let plain = [Status::Ok, Status::Noisy, Status::VoidHash, Status::VoidDurability];
        plain.into_iter().find(|status| status.text() == text).or_else(|| {
            text.strip_prefix("skipped:").map(|reason| Status::Skipped(reason.to_owned()))
        })
    }
}

impl Record {
    /// The record that [`Record::to_json`] made `json` of, with what it shared with its run.
    ///
    /// # Errors
    /// `InvalidInput` naming the field that is missing or has no value of a record.
    pub fn from_json(json: &Value) -> Result<(Record, Context)> {
        let fields = Fields(json);
        let ratio = fields.number("ratio").zip(json["ratio_ci"].as_array());
        let record = Record {
            test: fields.text("test")?.to_owned(),
            size: fields.word("size", |size| usize::try_from(size.as_u64()?).ok())?,
            system: fields.text("system")?.to_owned(),
            kind: fields.name("kind", Kind::of_name)?,
            transport: fields.name("transport", Transport::of_name)?,
            mode: fields.name("mode", Mode::of_name)?,
            access: fields.name("access", |name| known(&ACCESS, name))?,
            samples: fields.samples(),
            cpu: fields.number("cpu_median").into_iter().collect(),
            singles: fields.numbers("singles"),
            limit: fields.numbers("limit"),
            first: fields.number("first"),
            unit: fields.name("unit", |name| known(&UNITS, name))?,
            ops: fields.word("ops", |ops| usize::try_from(ops.as_u64()?).ok())?,
            ops_of_sample: json["ops_of_sample"].as_u64().map_or(1, |ops| ops as usize),
            durability: fields.name("durability", Durability::of_name)?,
            syncs: json["fsyncs_per_commit"].as_f64(),
            system_calls: json["system_calls_per_commit"].as_f64(),
            written_bytes: fields.number("bytes_written_per_commit"),
            disk_bytes: json["bytes_on_disk"].as_u64(),
            peak_rss_bytes: json["peak_rss_bytes"].as_u64(),
            hash: json["result_hash"].as_str().map(str::to_owned),
            status: fields.name("status", Status::of_text)?,
            ratio: ratio.and_then(|(value, ends)| {
                Some(Ratio { value, low: ends.first()?.as_f64()?, high: ends.get(1)?.as_f64()? })
            }),
            noop_tries: json["noop_tries"].as_u64().and_then(|tries| usize::try_from(tries).ok()),
            counts: json.get("counts").cloned(),
            tenths: fields.numbers("tenths").try_into().ok(),
            notes: json["notes"].as_str().map(str::to_owned).into_iter().collect(),
            load1: json["machine"]["load1"].as_f64(),
            time: fields.text("time")?.to_owned(),
        };
        if record.status.has_number() && record.samples.is_empty() {
            return Err(fields.wrong("samples"));
        }
        let context = Context {
            suite: fields.text("suite")?.to_owned(),
            versions: fields.word("versions", |versions| versions.as_object().cloned())?,
            machine: json["machine"].clone(),
            order_seed: fields.word("order_seed", Value::as_u64)?,
            baseline: fields.text("baseline")?.to_owned(),
        };
        Ok((record, context))
    }
}

struct Fields<'a>(&'a Value);

impl<'a> Fields<'a> {
    fn word<T>(&self, field: &str, read: impl FnOnce(&'a Value) -> Option<T>) -> Result<T> {
        read(&self.0[field]).ok_or_else(|| self.wrong(field))
    }

    fn text(&self, field: &str) -> Result<&'a str> {
        self.word(field, Value::as_str)
    }

    fn name<T>(&self, field: &str, of_name: impl FnOnce(&str) -> Option<T>) -> Result<T> {
        self.word(field, |value| of_name(value.as_str()?))
    }

    fn number(&self, field: &str) -> Option<f64> {
        self.0[field].as_f64()
    }

    fn numbers(&self, field: &str) -> Vec<f64> {
        self.0[field].as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
    }

    /// Older records hold none: the median stands for them, and then it alone says who wins.
    fn samples(&self) -> Vec<f64> {
        match self.0["samples"].is_null() {
            true => self.number("median").into_iter().collect(),
            false => self.numbers("samples"),
        }
    }

    fn wrong(&self, field: &str) -> Error {
        Error::invalid_input(format!(
            "`{field}` is missing or has no value of a record; `bench --records` writes records"
        ))
    }
}

fn known(words: &[&'static str], name: &str) -> Option<&'static str> {
    words.iter().find(|word| **word == name).copied()
}

/// A record with something in every field, for tests.
#[cfg(test)]
pub(crate) fn sample() -> (Record, Context) {
    let factories = crate::systems::all(&[], &["file".to_owned()]).expect("it is known");
    let record = Record {
        test: "modify an item [process]".to_owned(),
        size: 10,
        samples: vec![1.0, 2.5, 9.0],
        singles: (1..=200).map(f64::from).collect(),
        limit: vec![3.0],
        cpu: vec![2.0],
        ratio: Some(Ratio { value: 2.0, low: 1.5, high: 2.5 }),
        syncs: Some(1.0),
        system_calls: Some(4.0),
        notes: vec!["a".to_owned(), "b".to_owned()],
        ..crate::row::new_record(&*factories[0], Durability::Process)
    };
    let context = Context {
        suite: "datastore".to_owned(),
        versions: [("spinney".to_owned(), "1".into())].into_iter().collect(),
        machine: serde_json::json!({"cores": 2}),
        order_seed: 7,
        baseline: "file".to_owned(),
    };
    (record, context)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::sample;

    #[test]
    fn a_record_comes_back_as_it_was_written() {
        let (mut record, context) = sample();
        for status in [Status::Ok, Status::VoidHash, Status::Skipped("not installed".into())] {
            record.status = status;
            let json = record.to_json(&context);
            let (again, shared) = Record::from_json(&json).expect("a record");
            assert_eq!(again.to_json(&shared), json);
        }
    }

    #[test]
    fn a_field_that_is_no_records_is_named() {
        let (record, context) = sample();
        for (field, value) in [("kind", "king"), ("unit", "furlong"), ("size", "10")] {
            let mut json = record.to_json(&context);
            json[field] = value.into();
            let error = Record::from_json(&json).expect_err("it is no record").to_string();
            assert!(error.starts_with(&format!("`{field}` is missing or")), "{error}");
        }
    }
}
