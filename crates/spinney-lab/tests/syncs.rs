//! Syncs are counted for the whole process, so this test stands alone in its own.

mod common;

use std::os::unix::fs::PermissionsExt;

use common::{Fault, Reference};
use spinney_lab::record::{Record, Status};
use spinney_lab::system::Durability;
use spinney_lab::{Options, Report, run, systems};

#[test]
fn syncs_are_counted_where_strace_may_attach() {
    let report = measure(Fault::None, "file");
    let syncs = |test: &str, system: &str| report.find(test, 10, system).expect("measured").syncs;
    if !report.syncs_counted {
        println!("skipped: `strace` is missing or may not attach");
        assert_eq!(syncs("modify an item", "file"), None);
        return;
    }
    assert_eq!(syncs("modify an item", "file"), Some(2.0));
    assert_eq!(syncs("modify an item [none]", "file"), Some(0.0));
    assert_eq!(syncs("modify an item [none]", "reference"), Some(0.0));
    for peer in systems::peers().iter().filter(|peer| peer.name() != "gtm") {
        match peer.lacks(Durability::Durable) {
            Some(reason) => println!("skipped: {}: {reason}", peer.name()),
            None => assert!(syncs("modify an item", peer.name()) >= Some(1.0), "{}", peer.name()),
        }
    }
    series_are_counted_a_commit();
    // Syncs are counted for the whole process, so it comes after the others.
    let report = measure(Fault::NeverSyncs, "reference");
    let test = |record: &&Record| record.test == "modify an item" && record.size == 10;
    let rows: Vec<&Record> = report.records.iter().filter(test).collect();
    let never = rows.iter().find(|record| record.system == "reference").expect("measured");
    assert_eq!((never.syncs, &never.status), (Some(0.0), &Status::VoidDurability));
    assert!(rows.len() > 2 && rows.iter().all(|record| record.ratio.is_none()), "{rows:?}");
    assert_eq!(report.exit_code(), 1);
}

/// Of a series so many commits are watched that their syncs are known; clients may share them.
fn series_are_counted_a_commit() {
    let folder = tempfile::tempdir().expect("a folder");
    let base = Options {
        backends: vec!["lmdb".to_owned()],
        peers: vec!["sqlite".to_owned(), "rocksdb".to_owned()],
        tries: Some(1),
        durability: vec![Durability::Durable],
        dir: Some(folder.path().to_owned()),
        progress: false,
        ..Options::default()
    };
    let measured = |options: Options| {
        let systems = systems::all(&options.backends, &options.peers).expect("all are known");
        let report = run(&options, systems).expect("a run");
        assert_eq!(report.exit_code(), 0, "{:?}", report.records);
        report
    };
    let rows = vec!["person set whole".to_owned(), "person set whole by 1 000".to_owned()];
    let documents =
        Options { rows, sizes: vec![60], suite: Options::documents().suite, ..base.clone() };
    let documents = measured(documents);
    let rows = vec!["read+write".to_owned(), "read+write by 8 clients".to_owned()];
    let throughput = Options { rows, sizes: vec![1], suite: Options::throughput().suite, ..base };
    let throughput = measured(Options { iterations_max: Some(60), ..throughput });
    for (report, row, size) in [
        (&documents, "person set whole", 60),
        (&documents, "person set whole by 1 000", 60),
        (&throughput, "read+write", 1),
    ] {
        for system in ["lmdb", "sqlite", "rocksdb"] {
            let Some(record) = report.find(row, size, system) else { continue };
            assert!(record.syncs >= Some(1.0), "{record:?}");
        }
        let ours = report.find(row, size, "lmdb").expect("measured").syncs;
        assert!(ours < Some(2.0), "{row}: {ours:?}");
    }
    let shared = throughput.find("read+write by 8 clients", 1, "lmdb").expect("measured").syncs;
    assert!(shared >= Some(1.0 / 8.0) && shared <= Some(2.0), "{shared:?}");
}

/// A change of one leaf on all peers and on a system with a fault.
fn measure(fault: Fault, baseline: &str) -> Report {
    // PostgreSQL runs as another user where this one is root.
    let reachable = std::fs::Permissions::from_mode(0o711);
    let folder = tempfile::Builder::new().permissions(reachable).tempdir().expect("a folder");
    let mut factories = systems::peers();
    // It is a peer of another suite.
    factories.retain(|peer| peer.name() != "gtm");
    let options = Options {
        sizes: vec![10],
        backends: vec!["reference".to_owned()],
        peers: factories.iter().map(|peer| peer.name().to_owned()).collect(),
        tries: Some(2),
        rows: vec!["15".to_owned()],
        baseline: baseline.to_owned(),
        dir: Some(folder.path().to_owned()),
        progress: false,
        ..Options::default()
    };
    factories.push(Box::new(Reference(fault)));
    run(&options, factories).expect("a run")
}
