//! The suite `datastore` at a tiny size: every row on every backend that needs no server and on every peer
//! that is installed, with commits judged and given to subscribers.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use serde_json::Value;
use spinney_lab::datastore::ROWS;
use spinney_lab::record::Status;
use spinney_lab::system::Durability;
use spinney_lab::{Mode, Options, Report, run, systems};

fn measure(base: Options, change: impl FnOnce(&mut Options)) -> Report {
    // PostgreSQL runs as another user where this one is root.
    let reachable = std::fs::Permissions::from_mode(0o711);
    let folder = tempfile::Builder::new().permissions(reachable).tempdir().expect("a folder");
    let mut options = Options {
        sizes: vec![20],
        backends: ["memory", "lmdb", "json", "fjall"].map(str::to_owned).to_vec(),
        tries: Some(2),
        dir: Some(folder.path().to_owned()),
        seed: Some(7),
        count_syncs: false,
        // The program of a test serves no children.
        children: false,
        progress: false,
        ..base
    };
    change(&mut options);
    let systems = systems::all(&options.backends, &options.peers).expect("all are known");
    run(&options, systems).expect("a run")
}

fn is_peer(system: &str) -> bool {
    systems::peers().iter().any(|peer| peer.name() == system)
}

/// What a system cannot do, by the numbers of rows.
fn is_expected(number: &str, system: &str, reason: &str) -> bool {
    match (number, system) {
        (_, "memory") if reason == "it lives in memory" => true,
        (_, system) if is_peer(system) && reason.starts_with("not installed") => true,
        (_, "gtm") => reason.contains("no part in this suite") || reason.contains("run down"),
        (_, "redb") if reason.starts_with("its commits are synced") => true,
        ("5" | "9" | "10" | "14", system) if is_peer(system) => {
            reason == "it keeps no state of connections"
        }
        ("5" | "9" | "10" | "14", "json") if reason == "what is pushed over it is in memory" => {
            true
        }
        ("5", _) => reason == "it asks no providers",
        ("A4a" | "A4b", system) if is_peer(system) => reason == "it has no candidate",
        ("A4a" | "A4b", "json") => reason.starts_with("datastores are several trees"),
        ("A8", "redis-direct") => reason.starts_with("fields of a hash have no order"),
        ("A8", "sqlite") => reason.starts_with("its keys are ordered by number"),
        ("", _) => reason == "no background work to finish",
        // On a machine that others use.
        ("A3", _) => reason.ends_with("commits take longer than 5 s"),
        _ => false,
    }
}

#[test]
fn every_row_runs_judged_and_told_with_equal_hashes() {
    let report = measure(Options::datastore(), |options| {
        options.readers_turn = Duration::ZERO;
        options.peers = systems::peers().iter().map(|peer| peer.name().to_owned()).collect();
    });
    let mut hashes: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut measured: BTreeSet<(&str, &str)> = BTreeSet::new();
    for record in report.records.iter().filter(|record| record.system != "limit") {
        let name = record.test.split(" [").next().expect("a name");
        let row = ROWS.iter().find(|row| row.id == name).expect("a row");
        match &record.status {
            Status::Ok | Status::Noisy => {
                hashes.entry(row.id).or_default().insert(record.hash.as_deref().expect("a hash"));
                measured.insert((row.id, &record.system));
            }
            Status::Skipped(reason) => {
                let number = row.number.unwrap_or_default();
                assert!(is_expected(number, &record.system, reason), "{record:?}");
            }
            other => panic!("{other:?}: {record:?}"),
        }
    }
    assert!(hashes.values().all(|hashes| hashes.len() == 1), "{hashes:?}");
    for row in ROWS.iter().filter(|row| row.number == Some("15")) {
        for peer in systems::peers().into_iter().filter(|peer| peer.name() != "gtm") {
            if let Some(reason) = peer.lacks(Durability::Durable) {
                println!("skipped: {}: {reason}", peer.name());
                continue;
            }
            assert!(
                measured.contains(&(row.id, peer.name())),
                "`{}` was not measured",
                peer.name()
            );
        }
    }
    for row in ROWS.iter().filter(|row| row.number != Some("5")) {
        assert!(measured.contains(&(row.id, "lmdb")), "`{}` was not measured", row.id);
    }
    for id in ["create an item oper", "create all items oper", "many oper change_subs"] {
        let on = |system| measured.contains(&(id, system));
        assert!(["memory", "json", "fjall"].into_iter().all(on), "{id}: {measured:?}");
    }
    assert_eq!(report.exit_code(), 0);
}

#[test]
fn the_published_procedure_repeats_tries_that_change_nothing() {
    let report = measure(Options::compat(), |options| {
        options.tries = None;
        options.backends = vec!["lmdb".to_owned()];
    });
    let mut order = Vec::new();
    for record in report.records.iter().filter(|record| record.system == "lmdb") {
        let name = record.test.split(" [").next().expect("a name");
        let row = ROWS.iter().find(|row| row.id == name).expect("a row");
        order.push(row.published().expect("it is published"));
        let json = record.to_json(&report.context);
        assert_eq!(json["mode"], "compat");
        if row.published() == Some(5) {
            continue;
        }
        assert_eq!((record.mode, json["runs"].as_u64()), (Mode::Compat, Some(10)), "{json}");
        let expected = if row.is_dagger() { Value::from(9) } else { Value::Null };
        assert_eq!(json["noop_tries"], expected, "{json}");
        let mean = record.samples.iter().sum::<f64>() / 10.0;
        assert_eq!(json["mean"].as_f64(), Some(mean.round()));
    }
    assert_eq!(order, (1..=22).collect::<Vec<u8>>());
}

#[test]
fn readers_beside_a_writer_see_whole_commits() {
    let report = measure(Options::datastore(), |options| {
        options.rows = vec!["A7".to_owned()];
        options.readers_turn = Duration::from_millis(30);
    });
    for system in ["memory", "lmdb", "json", "fjall"] {
        let records: Vec<_> =
            report.extras.iter().filter(|record| record.system == system).collect();
        assert_eq!(records.len(), 1 + 3 * 4, "{system}");
        for record in records {
            assert!(record.status == Status::Ok && record.median() > Some(0.0), "{record:?}");
        }
    }
}

#[test]
fn rows_about_subscribers_need_the_suite() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options {
        rows: vec!["10".to_owned()],
        dir: Some(folder.path().to_owned()),
        durability: vec![Durability::None],
        ..Options::default()
    };
    let systems = systems::all(&options.backends, &options.peers).expect("all are known");
    let error = run(&options, systems).expect_err("nobody is told");
    assert!(error.to_string().contains("bench datastore"), "{error}");
}
