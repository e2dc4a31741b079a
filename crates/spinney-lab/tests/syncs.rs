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
    // Syncs are counted for the whole process, so it comes after the other.
    let report = measure(Fault::NeverSyncs, "reference");
    let test = |record: &&Record| record.test == "modify an item" && record.size == 10;
    let rows: Vec<&Record> = report.records.iter().filter(test).collect();
    let never = rows.iter().find(|record| record.system == "reference").expect("measured");
    assert_eq!((never.syncs, &never.status), (Some(0.0), &Status::VoidDurability));
    assert!(rows.len() > 2 && rows.iter().all(|record| record.ratio.is_none()), "{rows:?}");
    assert_eq!(report.exit_code(), 1);
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
