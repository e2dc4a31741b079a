//! Two recorded runs side by side: what became faster or slower, and what one cannot tell.

use std::collections::BTreeMap;

use serde_json::Value;
use spinney_core::{Error, Result};

use crate::statistics::{Ratio, median};

/// Seed of the intervals, so that the same records give the same answer.
const SEED: u64 = 1;

/// One row that both runs have.
#[derive(Clone, Debug)]
pub struct Compared {
    /// Its name.
    pub test: String,
    /// N.
    pub size: u64,
    /// The system.
    pub system: String,
    /// `us`, or `B`.
    pub unit: String,
    /// The older median.
    pub old: f64,
    /// The newer median.
    pub new: f64,
    /// How many times less the newer run takes.
    pub ratio: Ratio,
}

/// What two runs show together.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// The rows of both, the worst first.
    pub rows: Vec<Compared>,
    /// Rows with a number in one run alone.
    pub unmatched: usize,
}

impl Comparison {
    /// Rows whose interval does not contain 1.
    pub fn winners(&self) -> impl Iterator<Item = &Compared> {
        self.rows.iter().filter(|row| !row.ratio.is_tie())
    }
}

type Key = (String, u64, String);

struct Measured {
    unit: String,
    samples: Vec<f64>,
}

/// Compares two texts of records, one JSON object a line. Records without a number are passed over.
///
/// # Errors
/// `InvalidInput` naming the line that is no record with samples.
pub fn compare(old: &str, new: &str) -> Result<Comparison> {
    let (old, mut new) = (records(old, "older")?, records(new, "newer")?);
    let mut found = Comparison::default();
    for ((test, size, system), before) in old {
        let key = (test, size, system);
        let Some(after) = new.remove(&key).filter(|after| after.unit == before.unit) else {
            found.unmatched += 1;
            continue;
        };
        let (test, size, system) = key;
        let medians = median(&before.samples).zip(median(&after.samples));
        let ratio = Ratio::of(&before.samples, &after.samples, SEED);
        if let Some(((old, new), ratio)) = medians.zip(ratio) {
            found.rows.push(Compared { test, size, system, unit: before.unit, old, new, ratio });
        }
    }
    found.unmatched += new.len();
    found.rows.sort_by(|a, b| a.ratio.value.total_cmp(&b.ratio.value));
    Ok(found)
}

fn records(text: &str, which: &str) -> Result<BTreeMap<Key, Measured>> {
    let mut records = BTreeMap::new();
    for (at, line) in text.lines().enumerate() {
        let wrong = || {
            Error::invalid_input(format!(
                "line {} of the {which} run is no record with samples; `bench --records` writes them",
                at + 1
            ))
        };
        let record: Value =
            serde_json::from_str(line).map_err(|error| wrong().with_source(error))?;
        if record["median"].is_null() {
            continue;
        }
        let text = |name: &str| record[name].as_str().map(str::to_owned).ok_or_else(wrong);
        let samples = record["samples"].as_array().ok_or_else(wrong)?;
        let samples = samples.iter().map(|sample| sample.as_f64().ok_or_else(wrong));
        let measured = Measured { unit: text("unit")?, samples: samples.collect::<Result<_>>()? };
        let size = record["size"].as_u64().ok_or_else(wrong)?;
        records.insert((text("test")?, size, text("system")?), measured);
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(rows: &[(&str, f64)]) -> String {
        let line = |(test, time): &(&str, f64)| {
            let samples: Vec<f64> =
                (0..30).map(|i| time * (1.0 + f64::from(i % 5) / 100.0)).collect();
            let record = serde_json::json!({
                "test": test, "size": 10, "system": "lmdb", "unit": "us", "median": time,
                "samples": samples,
            });
            format!("{record}\n")
        };
        rows.iter().map(line).collect()
    }

    #[test]
    fn a_run_beside_itself_has_no_winner() {
        let text = run(&[("a", 1.0), ("b", 20.0)]);
        let found = compare(&text, &text).expect("records");
        assert_eq!((found.rows.len(), found.winners().count(), found.unmatched), (2, 0, 0));
    }

    #[test]
    fn the_slower_rows_come_first_and_lone_ones_are_counted() {
        let old = run(&[("a", 1.0), ("b", 20.0), ("c", 5.0), ("gone", 1.0)]);
        let new = run(&[("a", 0.5), ("b", 30.0), ("c", 5.0)]);
        let found = compare(&old, &new).expect("records");
        let winners: Vec<(&str, f64)> =
            found.winners().map(|row| (&*row.test, (row.ratio.value * 10.0).round())).collect();
        assert_eq!(winners, [("b", 7.0), ("a", 20.0)]);
        assert_eq!(found.unmatched, 1);
    }

    #[test]
    fn what_is_no_record_is_refused_with_its_line() {
        let error = compare("", "{\"median\":1}\n").expect_err("no samples");
        assert!(error.to_string().starts_with("line 1 of the newer run is no record"), "{error}");
        compare("nonsense", "").expect_err("no JSON");
    }
}
