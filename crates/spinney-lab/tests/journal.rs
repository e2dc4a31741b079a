//! A run of the suite `journal` at a tiny size.

use spinney_lab::journal::{Options, ROWS, run};

fn options(folder: &tempfile::TempDir, rows: &[&str]) -> Options {
    Options {
        rows: rows.iter().map(|row| (*row).to_owned()).collect(),
        items: 100,
        inserts: 3_000,
        dir: folder.path().to_owned(),
    }
}

/// The rows check what the stores hold at the end.
#[test]
fn inserts_and_commits_of_all_systems_are_checked() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut seen = Vec::new();
    let rows = ["process", "log", "layers", "subscribers", "huge"];
    let found = run(&options(&folder, &rows), |name, found| {
        seen.push((name.to_owned(), found.claims.len()));
    });
    let found = found.expect("a run");
    let expected = [("process", 2), ("log", 4), ("layers", 5), ("subscribers", 2), ("huge", 5)];
    assert_eq!(seen, expected.map(|(row, claims)| (row.to_owned(), claims)));
    assert!(found.claims.iter().all(|claim| claim.measured.is_some()));
    assert_eq!(found.facts.len(), 7);
    assert_eq!(std::fs::read_dir(folder.path()).expect("it lists").count(), 0, "all is removed");
}

#[test]
fn rows_that_do_not_exist_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let error = run(&options(&folder, &["threads", "hugh"]), |_, _| {}).expect_err("no row");
    assert!(error.to_string().contains("`hugh` is no row; choose from: threads, "), "{error}");
    let last = ROWS.last().expect("there are rows").0;
    assert!(error.to_string().ends_with(last), "{error}");
}
