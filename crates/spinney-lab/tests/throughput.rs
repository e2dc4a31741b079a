//! The suite `throughput` at a tiny size: every row on every system, equal stores at the end.

mod tiny;

use std::collections::{BTreeMap, BTreeSet};

use spinney_lab::claims::{Verdict, claims};
use spinney_lab::record::Status;
use spinney_lab::system::Durability;
use spinney_lab::throughput::item::{Fill, Item};
use spinney_lab::{Options, Report};

const PUSHES: usize = 40;
const RESTART: &str = "stop and start again";

fn measure(base: Options, change: impl FnOnce(&mut Options)) -> Report {
    let base = Options { sizes: vec![3, 500], iterations_max: Some(PUSHES), ..base };
    tiny::measure(base, change)
}

#[test]
fn every_row_ends_with_the_same_store_on_every_system() {
    for fill in [Fill::Const, Fill::Random] {
        let report = measure(Options::throughput(), |options| options.fill = fill);
        let mut measured: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for record in report.records.iter().filter(|record| record.system != "limit") {
            match &record.status {
                Status::Ok | Status::Noisy => {
                    let row = record.test.split(" [").next().expect("a name");
                    let items = if row.starts_with("reads") { 1 } else { PUSHES };
                    let ops = if row == RESTART { 1 } else { PUSHES };
                    let expected = Item::new(record.size, fill).hash(items);
                    assert_eq!(record.hash.as_ref(), Some(&expected), "{record:?}");
                    assert_eq!(record.ops_of_sample, ops);
                    assert_eq!(record.tenths.is_some(), row == "read+write", "{record:?}");
                    measured.entry(row).or_default().insert(&record.system);
                }
                Status::Skipped(reason) => assert!(
                    [
                        "it lives in memory",
                        "it has one client",
                        "its commits are synced, or lost with the process",
                    ]
                    .contains(&&**reason),
                    "{record:?}"
                ),
                other => panic!("{other:?}: {record:?}"),
            }
        }
        let all = BTreeSet::from([
            "memory", "lmdb", "json", "fjall", "file", "sqlite", "lmdb-raw", "redb",
        ]);
        for row in ["read+write", "reads", "reads of texts"] {
            assert_eq!(measured[row], all, "{row}");
        }
        assert_eq!(measured["read+write by 8 clients"].len(), all.len() - 1);
        assert_eq!(measured[RESTART].len(), all.len() - 1, "what lives in memory does not");
        assert_eq!(report.exit_code(), 0);
    }
}

#[test]
fn servers_end_with_the_same_store() {
    let [backends, peers] = tiny::servers();
    for name in backends.iter().chain(&peers) {
        let report = measure(Options::throughput(), |options| {
            options.backends = backends.iter().filter(|it| *it == name).cloned().collect();
            options.peers = peers.iter().filter(|it| *it == name).cloned().collect();
        });
        for size in [3, 500] {
            for row in ["read+write", RESTART, "read+write by 8 clients [none]", "reads"] {
                let record = report.find(row, size, name);
                let record = record.unwrap_or_else(|| panic!("{row} on {name}"));
                let items = if row == "reads" { 1 } else { PUSHES };
                assert_eq!(record.hash, Some(Item::new(size, Fill::Const).hash(items)), "{name}");
            }
        }
        assert_eq!(report.exit_code(), 0, "{name}");
    }
}

#[test]
fn the_published_procedure_counts_what_a_second_holds() {
    let report = measure(Options::throughput_compat(), |options| {
        options.sizes = vec![3];
        options.rows = vec!["reads".to_owned()];
        options.backends = vec!["memory".to_owned()];
        options.peers = Vec::new();
        options.tries = Some(1);
    });
    let record = report.find("reads", 3, "memory").expect("measured");
    assert!(record.ops > PUSHES && record.ops_of_sample == 1, "{record:?}");
    let rate = record.rate().expect("a rate");
    assert!(rate / record.ops as f64 > 0.5 && rate <= record.ops as f64 * 1.01, "{record:?}");
}

#[test]
fn promises_are_judged() {
    let report = measure(Options::throughput(), |options| {
        options.sizes = vec![1];
        options.backends = vec!["lmdb".to_owned()];
        options.durability = vec![Durability::Durable, Durability::Process];
        options.rows = vec!["read+write".to_owned(), "read+write by 8 clients".to_owned()];
    });
    let claims = claims(&report);
    let find = |promise: &str| {
        let found = claims.iter().find(|claim| claim.promise.contains(promise));
        found.unwrap_or_else(|| panic!("no promise `{promise}`")).verdict
    };
    for promise in ["against a raw fdatasync", "pushes a second", "clients", "last tenth"] {
        assert_ne!(find(promise), Verdict::NotMeasured, "{promise}");
    }
    assert_eq!(find("reads a second"), Verdict::NotMeasured);
}
