//! Whole runs at tiny sizes: every row, every system, equal answers, valid records.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{Fault, Reference};
use serde_json::Value;
use spinney_lab::claims::{Verdict, claims};
use spinney_lab::datastore::ROWS;
use spinney_lab::record::{Record, Status};
use spinney_lab::system::{Durability, Factory};
use spinney_lab::{Options, Report, run, systems};

fn options(folder: &tempfile::TempDir) -> Options {
    Options {
        sizes: vec![10],
        backends: ["reference", "memory", "lmdb", "fjall"].map(str::to_owned).to_vec(),
        tries: Some(2),
        dir: Some(folder.path().to_owned()),
        seed: Some(7),
        all_levels: true,
        count_syncs: false,
        progress: false,
        ..Options::default()
    }
}

fn factories(fault: Fault) -> Vec<Box<dyn Factory>> {
    let names = |names: [&str; 2]| names.map(str::to_owned);
    let mut factories =
        systems::all(&["memory", "lmdb", "fjall"].map(str::to_owned), &names(["file", "sqlite"]))
            .expect("all are known");
    factories.push(Box::new(Reference(fault)));
    factories
}

fn measure(change: impl FnOnce(&mut Options)) -> Report {
    let folder = tempfile::tempdir().expect("a folder");
    let mut options = options(&folder);
    change(&mut options);
    run(&options, factories(Fault::None)).expect("a run")
}

#[test]
fn every_row_gives_equal_hashes_on_every_system() {
    let report = measure(|options| options.sizes = vec![10, 257]);
    let mut hashes: BTreeMap<(String, usize), BTreeSet<&str>> = BTreeMap::new();
    for record in report.records.iter().filter(|record| record.system != "limit") {
        match &record.status {
            Status::Ok | Status::Noisy => {
                assert_eq!(record.samples.len(), 2, "{record:?}");
                let row = record.test.split(" [").next().expect("a name").to_owned();
                let hash = record.hash.as_deref().expect("a hash");
                hashes.entry((row, record.size)).or_default().insert(hash);
            }
            Status::Skipped(reason) => {
                let expected = match (&*record.test, &*record.system) {
                    ("reclaim", _) => "no background work to finish",
                    ("medium reads", "sqlite") => {
                        "its keys are ordered by number, so a range has other items"
                    }
                    (_, "memory") => "it lives in memory",
                    _ => "not persistent",
                };
                assert_eq!(reason, expected, "{record:?}");
            }
            other => panic!("{other:?}: {record:?}"),
        }
    }
    assert_eq!(hashes.len(), 2 * ROWS.iter().filter(|row| !row.is_long).count());
    assert!(hashes.values().all(|hashes| hashes.len() == 1), "{hashes:?}");
    assert_eq!(report.exit_code(), 0);
}

#[test]
fn published_hashes_come_out_of_the_peers() {
    let report = measure(|options| {
        options.sizes = vec![1_000];
        options.rows = ["15", "7", "8", "import"].map(str::to_owned).to_vec();
        options.durability = vec![Durability::None];
        options.tries = Some(1);
    });
    for system in ["file", "sqlite", "reference", "memory", "lmdb", "fjall"] {
        let hash = |test: &str| {
            report.find(test, 1_000, system).and_then(|record| record.hash.clone()).expect(test)
        };
        assert_eq!(hash("modify an item [none]"), "621a0723bfe46f30");
        assert_eq!(hash("create user ordered items [none]"), "f824f106afa6a58d");
        assert_eq!(hash("create all items [none]"), "31e3485977d0728d");
        assert_eq!(hash("import [none]"), "31e3485977d0728d");
    }
}

#[test]
fn a_wrong_result_is_void_without_a_number() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut options = options(&folder);
    options.rows = vec!["create batch".to_owned()];
    let report = run(&options, factories(Fault::ForgetsItem)).expect("a run");
    let record = report
        .records
        .iter()
        .find(|record| record.system == "reference" && record.status == Status::VoidHash)
        .expect("a void record");
    let json = record.to_json(&report.context);
    assert_eq!(json["status"], "void:hash");
    assert_eq!(
        (&json["median"], &json["p99"], &json["ratio"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    assert_eq!(report.exit_code(), 1);
}

#[test]
fn a_write_without_effect_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut options = options(&folder);
    options.rows = vec!["15".to_owned()];
    let error = run(&options, factories(Fault::ChangesNothing)).expect_err("no effect");
    assert_eq!(
        error.to_string(),
        "`reference`, row `modify an item`: a try of `modify an item` changed nothing"
    );
}

#[test]
fn names_that_do_not_exist_are_refused_with_the_choice() {
    let folder = tempfile::tempdir().expect("a folder");
    for (rows, peers, word) in [("16x", "file", "modify an item"), ("16", "oracle", "sqlite")] {
        let mut options = options(&folder);
        options.rows = vec![rows.to_owned()];
        options.peers = vec![peers.to_owned()];
        let error = run(&options, factories(Fault::None)).expect_err("no such name");
        assert!(error.to_string().contains(word), "{error}");
    }
}

#[test]
fn records_hold_every_field_of_the_schema() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("records.jsonl");
    let report = measure(|options| options.records = Some(path.clone()));
    let text = std::fs::read_to_string(&path).expect("records");
    assert_eq!(text.lines().count(), report.records.len());
    let mut names = BTreeSet::new();
    for line in text.lines() {
        let record: Value = serde_json::from_str(line).expect("JSON");
        let name = ["system", "test", "size"].map(|field| record[field].to_string());
        assert!(names.insert(name), "twice: {line}");
        check(&record);
    }
}

fn check(record: &Value) {
    const TEXT: &str = "suite test system kind transport mode access unit durability status \
        baseline time";
    const NUMBER: &str = "size runs ops order_seed";
    const MAYBE: &str = "median min max p99 first cpu_median fsyncs_per_commit \
        bytes_written_per_commit bytes_on_disk peak_rss_bytes ratio";
    let is = |field: &str, fits: fn(&Value) -> bool| {
        let value = record.get(field).unwrap_or_else(|| panic!("no `{field}` in {record}"));
        assert!(fits(value), "`{field}` in {record}");
    };
    TEXT.split_whitespace().for_each(|field| is(field, Value::is_string));
    NUMBER.split_whitespace().for_each(|field| is(field, Value::is_u64));
    MAYBE
        .split_whitespace()
        .for_each(|field| is(field, |value| value.is_number() || value.is_null()));
    is("result_hash", |hash| hash.is_null() || hash.as_str().is_some_and(|text| text.len() == 16));
    is("ratio_ci", |ci| ci.is_null() || ci.as_array().is_some_and(|pair| pair.len() == 2));
    is("versions", Value::is_object);
    for field in ["cpu", "cores", "ram", "os", "kernel", "fs", "disk", "governor", "load1"] {
        assert!(record["machine"].get(field).is_some(), "no `machine.{field}` in {record}");
    }
    if record["status"] == "ok" {
        assert!(record["median"].is_number(), "{record}");
    }
}

#[test]
fn ratios_stand_against_the_file() {
    let report = measure(|options| options.rows = vec!["8".to_owned()]);
    let file = report.find("create all items", 10, "file").expect("measured");
    assert_eq!(file.ratio.expect("a ratio").value, 1.0);
    assert!(file.ratio.expect("a ratio").is_tie());
}

#[test]
fn promises_are_judged_or_said_to_be_unmeasured() {
    let report = measure(|options| options.sizes = vec![10, 20]);
    let claims = claims(&report);
    let find = |promise: &str, size: usize| {
        claims
            .iter()
            .find(|claim| claim.promise.contains(promise) && claim.size == Some(size))
            .unwrap_or_else(|| panic!("no promise `{promise}` at {size}"))
    };
    let leaf = find("leaf read by path", 20);
    let median = report.find("leaf", 20, "reference").and_then(Record::median);
    assert_eq!(leaf.measured, median);
    assert_eq!(leaf.verdict == Verdict::Holds, median < Some(1.0));
    // The reference is not persistent, and no run here has a million items.
    assert_eq!(find("modify an item, durable, against a raw", 10).verdict, Verdict::NotMeasured);
    assert_eq!(find("against the same at N", 1_000_000).verdict, Verdict::NotMeasured);
    assert_ne!(find("modify an item, staged", 10).verdict, Verdict::NotMeasured);
}

#[test]
fn the_report_shows_losses_first_and_reads_without_colour() {
    let report = measure(|options| options.sizes = vec![10]);
    let text = anstream::adapter::strip_str(&report.render()).to_string();
    let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("no `{part}` in\n{text}"));
    let order =
        ["where a peer wins", "N = 10 ", "limits: ", "what it must show", "how", "verdict: "];
    assert!(order.map(place).is_sorted(), "{text}");
    for part in ["file (baseline)", "synchronous=FULL", "left out: ", "not measured: ", "skipped: "]
    {
        place(part);
    }
    for loss in report.losses() {
        assert!(loss.ratio.low > 1.0, "{loss:?}");
    }
}
