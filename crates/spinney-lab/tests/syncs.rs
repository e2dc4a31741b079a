//! Syncs are counted for the whole process, so this test stands alone in its own.

mod common;

use common::{Fault, Reference};
use spinney_lab::{Options, run, systems};

#[test]
fn syncs_are_counted_where_strace_may_attach() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options {
        sizes: vec![10],
        backends: vec!["reference".to_owned()],
        tries: Some(2),
        rows: vec!["15".to_owned()],
        dir: Some(folder.path().to_owned()),
        progress: false,
        ..Options::default()
    };
    let mut factories = systems::peers();
    factories.push(Box::new(Reference(Fault::None)));
    let report = run(&options, factories).expect("a run");
    let syncs = |test, system| report.find(test, 10, system).expect("measured").syncs;
    if report.syncs_counted {
        assert_eq!(syncs("modify an item", "file"), Some(2));
        assert_eq!(syncs("modify an item [none]", "file"), Some(0));
        assert_eq!(syncs("modify an item [none]", "reference"), Some(0));
        assert!(syncs("modify an item", "sqlite") >= Some(1));
    } else {
        eprintln!("skipped: `strace` is missing or may not attach");
        assert_eq!(syncs("modify an item", "file"), None);
    }
}
