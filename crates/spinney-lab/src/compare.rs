//! Two recorded runs side by side: what became faster or slower, and what one cannot tell.

use std::collections::BTreeMap;

use spinney_core::{Error, Result};

use crate::record::{self, Line, Record};
use crate::statistics::Ratio;

/// Seed of the intervals, so that the same records give the same answer.
const SEED: u64 = 1;

/// One row that both runs have.
#[derive(Clone, Debug)]
pub struct Compared {
    /// In the older run.
    pub old: Record,
    /// In the newer run.
    pub new: Record,
    /// How many times better the newer one is.
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

/// Compares two texts of records, one JSON object a line. Records without a number are passed over.
///
/// # Errors
/// `InvalidInput` naming the line that is no record with samples.
pub fn compare(old: &str, new: &str) -> Result<Comparison> {
    let (old, mut new) = (numbered(old, "older")?, numbered(new, "newer")?);
    let mut found = Comparison::default();
    for (key, old) in old {
        let new = new.remove(&key);
        match new.and_then(|new| Some((new.advantage(&old, SEED)?, new))) {
            Some((ratio, new)) => found.rows.push(Compared { old, new, ratio }),
            None => found.unmatched += 1,
        }
    }
    found.unmatched += new.len();
    found.rows.sort_by(|a, b| a.ratio.value.total_cmp(&b.ratio.value));
    Ok(found)
}

/// What names a row in both runs: its suite, its name, N and the system.
type Key = (String, String, usize, String);

fn numbered(text: &str, which: &str) -> Result<BTreeMap<Key, Record>> {
    let lines = record::read(text).map_err(|error| error.at(format!("the {which} run")))?;
    let lacks = |line: &Line| line.record.status.has_number() && line.json["samples"].is_null();
    if let Some(at) = lines.iter().position(lacks) {
        return Err(Error::invalid_input(format!(
            "the {which} run: line {}: an older record without samples tells nothing of chance; record it \
             anew",
            at + 1
        )));
    }
    let numbered = lines.into_iter().filter(|line| line.record.status.has_number());
    let keyed = numbered.map(|Line { record, context, .. }| {
        let (test, system) = (record.test.clone(), record.system.clone());
        ((context.suite, test, record.size, system), record)
    });
    Ok(keyed.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(rows: &[(&str, f64)]) -> String {
        let line = |(test, time): &(&str, f64)| {
            let samples: Vec<f64> =
                (0..30).map(|i| time * (1.0 + f64::from(i % 5) / 100.0)).collect();
            let (mut record, context) = record::sample();
            (record.test, record.samples) = ((*test).to_owned(), samples);
            format!("{}\n", record.to_json(&context))
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
            found.winners().map(|row| (&*row.new.test, (row.ratio.value * 10.0).round())).collect();
        assert_eq!(winners, [("b", 7.0), ("a", 20.0)]);
        assert_eq!(found.unmatched, 1);
    }

    #[test]
    fn more_operations_in_a_second_are_better() {
        let text = |rate: f64| {
            let (mut record, context) = record::sample();
            (record.unit, record.samples) = ("op/s", vec![rate; 30]);
            record.to_json(&context).to_string()
        };
        let found = compare(&text(100.0), &text(200.0)).expect("records");
        assert_eq!(found.rows[0].ratio.value, 2.0);
        assert_eq!(found.winners().count(), 1);
    }

    #[test]
    fn what_is_no_record_is_refused_with_its_line() {
        let error = compare("", "{\"median\":1}\n").expect_err("no samples");
        assert!(error.to_string().starts_with("the newer run: line 1: "), "{error}");
        let (record, context) = record::sample();
        let mut old = record.to_json(&context);
        old.as_object_mut().expect("an object").remove("samples");
        let error = compare(&format!("{old}\n"), "").expect_err("no samples").to_string();
        assert!(
            error.starts_with("the older run: line 1: an older record without samples"),
            "{error}"
        );
        compare("nonsense", "").expect_err("no JSON");
    }
}
