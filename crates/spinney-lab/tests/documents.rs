//! The suite `documents` at a tiny size: every row on every system, equal answers, counted calls.

mod tiny;

use std::collections::{BTreeMap, BTreeSet};

use spinney_lab::record::Status;
use spinney_lab::system::Durability;
use spinney_lab::{Options, run, systems};
use tiny::measure;

fn row(test: &str) -> &str {
    test.split(" [").next().expect("a name")
}

#[test]
fn every_document_comes_back_as_it_was_on_every_system() {
    for vary in [false, true] {
        let report = measure(Options::documents(), |options| {
            options.sizes = vec![12];
            options.vary = vary;
        });
        let mut hashes: BTreeMap<(&str, usize), BTreeSet<&str>> = BTreeMap::new();
        let mut measured: BTreeSet<(&str, &str)> = BTreeSet::new();
        for record in report.records.iter().filter(|record| record.system != "limit") {
            match &record.status {
                Status::Ok | Status::Noisy => {
                    let hash = record.hash.as_deref().expect("a hash");
                    hashes.entry((row(&record.test), record.size)).or_default().insert(hash);
                    measured.insert((row(&record.test), &record.system));
                }
                Status::Skipped(reason) => assert!(
                    [
                        "it lives in memory",
                        "its commits are synced, or lost with the process",
                        "its documents are set whole",
                        "a document is one value, which has no siblings to step over",
                        "what is parsed of a file is whole documents",
                        "a hash has no levels to iterate over",
                        "keys have no order, so there is no pass in order",
                        "it is asked by keys alone",
                        "it has no cursor over the leaves of a document",
                    ]
                    .contains(&&**reason),
                    "{record:?}"
                ),
                other => panic!("{other:?}: {record:?}"),
            }
        }
        assert!(hashes.values().all(|hashes| hashes.len() == 1), "{hashes:?}");
        let rows: BTreeSet<&str> = hashes.keys().map(|(row, _)| *row).collect();
        assert_eq!(rows.len(), 17 + 17 + 4, "{rows:?}");
        for row in rows {
            for system in ["memory", "lmdb", "json", "fjall", "lmdb-raw", "redb"] {
                assert!(measured.contains(&(row, system)), "`{row}` on {system}");
            }
        }
        for row in [
            "person get whole",
            "person leaf set",
            "hello replace",
            "person query (walking)",
            "kv next",
        ] {
            assert!(measured.contains(&(row, "sqlite")) && measured.contains(&(row, "file")));
        }
        assert_eq!(report.exit_code(), 0);
    }
}

#[test]
fn servers_give_back_the_same_documents() {
    let [backends, peers] = tiny::servers();
    for name in backends.iter().chain(&peers) {
        let report = measure(Options::documents(), |options| {
            options.sizes = vec![12];
            options.vary = true;
            options.backends = backends.iter().filter(|it| *it == name).cloned().collect();
            options.peers = peers.iter().filter(|it| *it == name).cloned().collect();
            options.peers.push("file".to_owned());
        });
        let mut hashes: BTreeMap<(&str, usize), BTreeSet<&str>> = BTreeMap::new();
        let mut measured = BTreeSet::new();
        for record in report.records.iter().filter(|record| record.status.has_number()) {
            let hash = record.hash.as_deref().unwrap_or_default();
            hashes.entry((row(&record.test), record.size)).or_default().insert(hash);
            if record.system == *name {
                measured.insert(&*record.test);
            }
        }
        assert!(hashes.iter().all(|((row, _), all)| *row == "fdatasync 4 KiB" || all.len() == 1));
        for test in ["kv get", "person get whole", "person leaf set [none]", "hello replace"] {
            assert!(measured.contains(test), "{test} on {name}: {measured:?}");
        }
        assert_eq!(report.exit_code(), 0, "{name}");
    }
}

#[test]
fn calls_are_counted_as_published() {
    let report = measure(Options::documents(), |options| {
        options.sizes = vec![100];
        options.backends = vec!["memory".to_owned()];
        options.durability = vec![Durability::None];
        options.peers = Vec::new();
    });
    let calls = |test: &str, call: &str| {
        let record = report.find(test, 100, "memory").expect(test);
        record.counts.as_ref().expect("counted")[call].as_u64().expect("a number")
    };
    assert_eq!(calls("hello set in one commit [none]", "set"), 100);
    assert_eq!(calls("person set in one commit [none]", "set"), 500);
    for (call, count) in [("def", 700), ("nxt", 800), ("get", 500), ("nxt_end", 200)] {
        assert_eq!(calls("person get (nested next)", call), count, "{call}");
    }
    assert_eq!(calls("person get_q (leaf cursor)", "nxq"), 500);
    assert_eq!(calls("person get_q (leaf cursor)", "nxq_end"), 100);
}

#[test]
fn the_published_procedure_has_three_rows_and_one_try() {
    let report = measure(Options::documents_compat(), |options| {
        options.sizes = vec![100];
        options.backends = vec!["memory".to_owned()];
        options.peers = vec!["sqlite".to_owned()];
        options.tries = Some(1);
    });
    let records: Vec<_> =
        report.records.iter().filter(|record| record.system == "memory").collect();
    assert_eq!(records.len(), 6);
    for record in records {
        assert_eq!(record.samples.len(), 1, "{record:?}");
        assert_eq!(record.samples[0] % 1_000.0, 0.0, "a clock of milliseconds: {record:?}");
    }
}

#[test]
fn a_row_that_does_not_exist_is_refused_with_the_choice() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options {
        rows: vec!["person put".to_owned()],
        dir: Some(folder.path().to_owned()),
        ..Options::documents()
    };
    let systems = systems::all(&options.backends, &options.peers).expect("all are known");
    let error = run(&options, systems).expect_err("no such row").to_string();
    assert!(error.contains("`person put` is no row") && error.contains("person set"), "{error}");
}

#[test]
fn own_documents_are_measured_as_the_published_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    let (lines, one) = (folder.path().join("own.jsonl"), folder.path().join("one.json"));
    let document = r#"{"[1]":"true","a/b":["1e5",{"é":[]},[1.5,null]],"n":{"~":{}}}"#;
    std::fs::write(&lines, format!("{document}\n{{\"[1]\":\"日本\"}}\n")).expect("writes");
    std::fs::write(&one, document).expect("writes");
    let report = measure(Options::documents(), |options| {
        options.data = vec![lines, one];
        options.sizes = vec![5];
        options.durability = vec![Durability::None];
    });
    assert_eq!(report.exit_code(), 0, "{:?}", report.records);
    for system in ["memory", "lmdb", "json", "fjall", "lmdb-raw", "redb"] {
        for row in ["set in one commit [none]", "get (nested next)", "get_q (leaf cursor)"] {
            let test = format!("own.jsonl {row}");
            let record =
                report.find(&test, 5, system).unwrap_or_else(|| panic!("{test}, {system}"));
            assert!(record.counts.is_some(), "{record:?}");
        }
    }
    for row in ["get whole", "leaf get", "leaf set [none]", "replace [none]", "query (walking)"] {
        for system in ["sqlite", "file", "lmdb"] {
            let test = format!("one.json {row}");
            assert!(report.find(&test, 5, system).is_some(), "{test}, {system}");
        }
    }
    let imported = |system: &str| {
        report.extras.iter().any(|extra| extra.test == "import one.json" && extra.system == system)
    };
    assert!(imported("lmdb") && imported("fjall"));
}

#[test]
fn globals_give_back_what_native_m_has_set() {
    let peers = systems::peers();
    let gtm = peers.iter().find(|peer| peer.name() == "gtm").expect("it is known");
    if let Some(reason) = gtm.lacks(Durability::Durable) {
        println!("skipped: gtm: {reason}");
        return;
    }
    let report = measure(Options::documents(), |options| {
        options.sizes = vec![12];
        options.backends = vec!["memory".to_owned()];
        options.peers = vec!["gtm".to_owned()];
        options.count_syncs = true;
    });
    let (mut measured, mut skipped) = (BTreeSet::new(), BTreeSet::new());
    for record in report.records.iter().filter(|record| record.system == "gtm") {
        match &record.status {
            Status::Ok | Status::Noisy => {
                measured.insert(&*record.test);
                let is_counted = record.syncs.is_some() && !record.test.contains('[');
                assert!(!is_counted || record.syncs >= Some(1.0), "{record:?}");
            }
            Status::Skipped(reason) => {
                let is_expected = reason.contains("run down") || reason.contains("were published");
                assert!(is_expected, "{record:?}");
                skipped.insert(&*record.test);
            }
            other => panic!("{other:?}: {record:?}"),
        }
    }
    for test in
        ["set", "set [none]", "get (nested next)", "get_q (leaf cursor)", "leaf set", "get whole"]
    {
        for document in ["hello", "person"] {
            assert!(
                measured.contains(&*format!("{document} {test}")),
                "{document} {test}: {measured:?}"
            );
        }
    }
    assert!(measured.contains("kv set [none]") && skipped.contains("person scan of leaves"));
    assert_eq!(report.exit_code(), 0);
}
