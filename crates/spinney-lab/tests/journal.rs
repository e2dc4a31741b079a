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
    let found = run(&options(&folder, &["process", "huge"]), |name, found| {
        seen.push((name.to_owned(), found.claims.len()));
    });
    let found = found.expect("a run");
    assert_eq!(seen, [("process".to_owned(), 2), ("huge".to_owned(), 5)]);
    assert!(found.claims.iter().all(|claim| claim.measured.is_some_and(|value| value > 0.0)));
    assert_eq!(found.facts.len(), 4);
    assert_eq!(std::fs::read_dir(folder.path()).expect("it lists").count(), 0, "all is removed");
}

#[test]
fn rows_that_do_not_exist_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let error = run(&options(&folder, &["threads", "hugh"]), |_, _| {}).expect_err("no row");
    assert!(error.to_string().contains("`hugh` is no row; choose from: threads, "), "{error}");
    assert_eq!(ROWS.len(), 7);
}
